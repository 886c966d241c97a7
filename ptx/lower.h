/* lower.h - from the syntax tree to decoded code. lower.c walks functions and owns the tables; the other
 * lower_*.c have one function per opcode row of opcodes.def. A modifier, type or operand that a row does not allow is
 * refused here: nothing that is not understood ever runs. */
#ifndef PTX_LOWER_H
#define PTX_LOWER_H

#include "common/map.h"
#include "ptx/arith.h"
#include "ptx/code.h"

enum { HALF_NONE, HALF_LO, HALF_HI, HALF_WIDE };
enum {
    COMPARE_NONE,
    COMPARE_EQ,
    COMPARE_NE,
    COMPARE_LT,
    COMPARE_LE,
    COMPARE_GT,
    COMPARE_GE,
    COMPARE_LO,
    COMPARE_LS,
    COMPARE_HI,
    COMPARE_HS,
    COMPARE_EQU,
    COMPARE_NEU,
    COMPARE_LTU,
    COMPARE_LEU,
    COMPARE_GTU,
    COMPARE_GEU,
    COMPARE_NUM,
    COMPARE_NAN
};
enum { OPER_POPC = ATOM_OP_COUNT };
enum { SEM_NONE, SEM_WEAK, SEM_VOLATILE, SEM_RELAXED, SEM_ACQUIRE, SEM_RELEASE, SEM_ACQ_REL, SEM_SC };
enum { SHFL_IDX, SHFL_UP, SHFL_DOWN, SHFL_BFLY, VOTE_ALL, VOTE_ANY, VOTE_UNI, VOTE_BALLOT };
enum { BAR_MODE_SYNC, BAR_MODE_ARRIVE, BAR_MODE_RED, BAR_MODE_WARP };

/* Classes of modifiers; a row of opcodes.def names those it takes. */
// clang-format off
#define MODIFIER_CLASSES(X)                                                                                            \
    X(ROUND) X(ROUND_INT) X(FTZ) X(SAT) X(SATFINITE) X(RELU) X(APPROX) X(FULL) X(NOFTZ) X(NAN) X(XORSIGN) X(ABS)       \
    X(CC) X(HALF) X(COMPARE) X(OPER) X(SPACE) X(VECTOR) X(SEMANTICS) X(MMIO) X(SCOPE) X(CACHE) X(UNI) X(SYNC)          \
    X(ALIGNED) X(TO) X(SHIFTAMT) X(MODE) X(PROPERTY) X(PERMUTE) X(SIDE) X(CLAMP) X(BARRIER) X(ASYNC) X(GROUP)       \
    X(MATRIX) X(TF32) X(TEXTURE)                                                                                       \
    X(SUBBYTE) X(PACK) X(PLUS_ONE) X(SCALE) X(MBARRIER) X(POLICY) X(FENCE) X(CREATE)
// clang-format on
#define CLASS_INDEX(name) CLASS_##name,
enum modifier_class { MODIFIER_CLASSES(CLASS_INDEX) CLASS_COUNT };
#undef CLASS_INDEX
#define M(name) (UINT64_C(1) << CLASS_##name)

struct mods {
    uint64_t set;           /* M(class) of every one present */
    int value[CLASS_COUNT]; /* by class */
    enum type types[4];
    uint32_t type_count;
};

struct lower;
struct opcode {
    const char *name;
    uint64_t modifiers;   /* allowed classes */
    uint32_t types;       /* allowed for the first type, as 1 << TYPE_x; 0: none is given */
    const char *operands; /* "d,a,b": for the count and for messages; "[c]" may be left out */
    void (*lower)(struct lower *l);
    const char *effect;
};
_Static_assert(TYPE_COUNT <= 32, "a set of types is one word");
extern const struct opcode opcodes[];
extern const uint32_t opcode_count;

struct lower {
    struct ptx_module *module;
    struct reader *reader;
    struct ast *ast;
    struct function *function;
    struct code *code;
    /* the current statement */
    struct statement *s;
    const struct opcode *row;
    struct mods m;
    enum type type; /* m.types[0] */
    /* tables of the current function */
    struct map slots;     /* register id + index (times 4 + component) -> slot */
    struct map constants; /* value -> slot */
    struct map fills;     /* hash of a fill -> first fill with it + 1 */
    uint32_t insn_capacity, line_capacity, line_count, weight_capacity, weight_count, extra_capacity;
    uint32_t fill_capacity, call_capacity, table_capacity, frame_capacity;
    uint32_t *statement_pc; /* first instruction of each statement; one more for the end */
    uint32_t *weights;      /* PTX instructions that end with each micro-op */
    uint32_t pending_weight;
    uint32_t carry_slot; /* of add.cc and its kind; UINT32_MAX before the first */
};

/* ---- messages ---- */
__attribute__((noreturn)) void lower_refuse(struct lower *l,
                                            const char *why); /* NOT_SUPPORTED, names the whole instruction */
void lower_lacks(struct lower *l, const char *why); /* the same, and comes back: the rest is read for errors */
__attribute__((noreturn)) void lower_bad_operand(struct lower *l, uint32_t i, const char *expected);

/* ---- operands: slot numbers ---- */
bool has(const struct lower *l, uint64_t modifiers);
uint32_t source(struct lower *l, uint32_t i, enum type type);
uint32_t destination(struct lower *l, uint32_t i, enum type type);
uint32_t source_operand(struct lower *l, const struct operand *o, enum type type);
uint32_t destination_operand(struct lower *l, const struct operand *o, enum type type);
uint32_t predicate(struct lower *l, const struct operand *o); /* a source; `!p` becomes a temporary */
uint32_t constant(struct lower *l, uint64_t value);
uint32_t temporary(struct lower *l);
uint32_t fill_slot(struct lower *l, struct fill fill);
/* The register's declared width in bits; 0 when the operand is no register. */
unsigned register_bits(struct lower *l, const struct operand *o);
bool is_sink(const struct operand *o);
const struct operand *operand_at(const struct lower *l, uint32_t i); /* NULL behind the last */

/* ---- code ---- */
struct insn *emit(struct lower *l, enum microop op, unsigned mod, uint32_t d, uint32_t a, uint32_t b, uint32_t c);
uint32_t emit_extra(struct lower *l, uint32_t slot); /* index of a new extra operand */

/* The two slots of a 128-bit register. */
void destination_wide(struct lower *l, const struct operand *o, uint32_t slots[2]);
void source_wide(struct lower *l, const struct operand *o, uint32_t slots[2]);

void number_access(struct lower *l); /* the instruction emitted last is the module's next access to memory */

/* Where an address operand points: base slot and offset. */
struct address {
    uint32_t base;
    int64_t offset;
    enum mem_space space;
    struct symbol *symbol; /* when the base is a variable */
};
struct address lower_address(struct lower *l, const struct operand *o, enum space space);
enum microop load_op(enum mem_space space, enum element element);

/* The statement's functions, by row of opcodes.def. */
#define OPCODE(name, modifiers, types, operands, function, effect) void function(struct lower *l);
#include "ptx/opcodes.def"

/* lower_mbarrier.c: cp.async.mbarrier and cp.async.bulk */
void lower_cp_mbarrier(struct lower *l);
void lower_cp_bulk(struct lower *l);

/* refusal.c: keeps the reader's present message as one of the function's; false when there are so many that no more are
 * wanted. And, when all functions are lowered: which kernels can reach such a function. */
bool refusal_note(struct lower *l);
void refusals_find(struct ptx_module *m);

/* fold.c: forwards launch constants, drops what became useless, closes the gaps. */
void fold_code(struct lower *l);

#endif
