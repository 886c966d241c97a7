/* code.h - decoded code: what the lowering makes and the engines run.
 *
 * A function becomes a flat array of micro-operations (microops.def) over a frame of 64-bit slots. Constants, launch
 * facts (parameters, %ntid, addresses of variables) and thread facts (%tid) are slots like registers, filled when the
 * frame is made; so an operand is always just a slot number. Nothing in here changes after loading: any number of
 * launches share it.
 */
#ifndef PTX_CODE_H
#define PTX_CODE_H

#include "ptx/ast.h"
#include "ptx/opsptx.h"

union slot {
    uint64_t u64;
    int64_t s64;
    uint32_t u32;
    int32_t s32;
    uint16_t u16;
    int16_t s16;
    float f32;
    double f64;
};
_Static_assert(sizeof(union slot) == 8, "one slot is 64 bits");

/* What a micro-operation does with each of d, a, b, c: not a slot, read, written, or both. `extra` operands (vectors,
 * calls) lie in code.extra. */
enum slot_use { USE_NONE, USE_READ, USE_WRITE, USE_BOTH };

enum microop {
#define ALU1(id, shadow, D, A, expression)       OP_##id,
#define ALU2(id, shadow, D, A, B, expression)    OP_##id,
#define ALU3(id, shadow, D, A, B, C, expression) OP_##id,
#define LOAD(id, space, type)                    OP_##id,
#define STORE(id, space, type)                   OP_##id,
#define OTHER(id, d, a, b, c, extra)             OP_##id,
#include "ptx/microops.def"
    OP_COUNT
};

struct microop_info {
    const char *name;
    uint8_t d, a, b, c; /* enum slot_use */
    uint8_t extra;      /* enum slot_use of extra[aux2 ...] */
};
extern const struct microop_info microop_info[OP_COUNT];

struct insn {
    uint16_t op, mod;
    uint32_t d, a, b, c; /* slots */
    uint32_t aux;        /* memory: number of the access in the module; calls, tables: index */
    uint64_t imm;        /* offset, branch target, first extra operand */
};
_Static_assert(sizeof(struct insn) == 32, "two instructions per cache line");

/* mod of vector accesses and of volatile and atomic ones */
enum {
    MOD_STRONG = 0x8000, /* volatile, relaxed, acquire, release: never half of a race */
    MOD_RELEASE = 0x4000,
    MOD_ACQUIRE = 0x2000,
    MOD_VECTOR_SHIFT = 8, /* number of elements of LDV and STV */
    MOD_ELEMENT = 0x0f,   /* enum element */
    MOD_SPACE_SHIFT = 4,  /* enum mem_space of LDV, STV, ATOM */
    /* Of single precision that no rounding is given for: a bound is, .approx or .full. The value is the same here. */
    FLOAT_APPROXIMATE = 0x100,
    ATOM_NO_RESULT = 0x1000, /* red: nobody uses d */
};
enum element { ELEMENT_U8, ELEMENT_S8, ELEMENT_U16, ELEMENT_S16, ELEMENT_B32, ELEMENT_S32, ELEMENT_B64, ELEMENT_COUNT };
enum mem_space { MEM_GLOBAL, MEM_SHARED, MEM_LOCAL, MEM_PARAM, MEM_GENERIC, MEM_CONST };

enum atom_op {
    ATOM_ADD,
    ATOM_MIN,
    ATOM_MAX,
    ATOM_INC,
    ATOM_DEC,
    ATOM_AND,
    ATOM_OR,
    ATOM_XOR,
    ATOM_EXCH,
    ATOM_CAS,
    ATOM_OP_COUNT
};
enum atom_type {
    ATOM_U32,
    ATOM_S32,
    ATOM_U64,
    ATOM_S64,
    ATOM_F32,
    ATOM_F64,
    ATOM_F16,
    ATOM_F16X2,
    ATOM_BF16,
    ATOM_BF16X2,
    ATOM_B16
};

/* A slot whose value is known only when a frame is made. */
enum fill_kind {
    FILL_PARAM,    /* kernel parameter bytes at `value`, `bytes` wide, sign-extended when `sign` */
    FILL_VARIABLE, /* device address of module variable `value`, plus `addend` */
    FILL_SHARED,   /* offset of shared variable `value` in the kernel's layout, plus `addend` */
    FILL_FUNCTION, /* address of function `value` in the code window */
    FILL_NTID,
    FILL_NCTAID, /* value: axis; launch */
    FILL_NWARPID,
    FILL_NSMID,
    FILL_GRIDID,
    FILL_DYNAMIC_SMEM,
    FILL_TOTAL_SMEM, /* value: 1 with what the system keeps for itself */
    FILL_CTAID,
    FILL_SMID,      /* value: axis; block */
    FILL_GRID_SYNC, /* %envreg1/2: halves of the address of the grid barrier's workspace; value: half */
    FILL_TID,
    FILL_LANEID,
    FILL_WARPID,
    FILL_LANEMASK, /* value: axis, or which mask; thread */
    FILL_LOCAL,    /* address in .local of the frame plus `addend`; frame */
};
struct fill {
    enum fill_kind kind;
    uint32_t slot, value;
    uint8_t bytes;
    bool sign;
    int64_t addend;
};

/* An actual or formal parameter: bytes in the frame's local memory, or a slot. */
struct call_arg {
    bool slot;
    uint32_t at, bytes;
};
enum builtin {
    BUILTIN_NONE,
    BUILTIN_VPRINTF,
    BUILTIN_ASSERTFAIL,
    BUILTIN_MALLOC,
    BUILTIN_FREE,
    BUILTIN_RUNTIME, /* and on: rows of runtime.def */
};
enum { MAX_RUNTIME_PARAMS = 8, MAX_RUNTIME_PARAM_BYTES = 32 };
struct call_site {
    uint32_t callee;  /* function index; UINT32_MAX: indirect, through slot a */
    uint32_t builtin; /* enum builtin */
    struct call_arg *args, *returns;
    uint32_t arg_count, return_count;
};
struct branch_table {
    uint32_t *targets;
    uint32_t count;
};

struct code {
    const struct name *name;
    struct function *function;
    bool entry, defined;
    struct insn *insns;
    uint32_t count;
    uint32_t *lines; /* PTX line per instruction */
    uint32_t
        *weight; /* PTX instructions before this one (count + 1 long): folded ones are counted with their successor */
    uint32_t *statement_pc; /* of each of the function's statements, and of its end: its first micro-operation, or, when
                               it has none, what follows */
    uint32_t *extra;
    uint32_t extra_count;
    union slot *frame; /* initial slots: constants, zeros */
    uint32_t slot_count;
    struct fill *fills;
    uint32_t fill_count;
    struct call_site *calls;
    uint32_t call_count;
    struct branch_table *tables;
    uint32_t table_count;
    uint32_t local_bytes;              /* .local variables and parameter blocks of one frame */
    struct call_arg *params, *returns; /* formal, of a .func */
    uint32_t param_count, return_count;
    uint32_t *callees; /* function indices it may call directly */
    uint32_t callee_count;
    uint32_t *starts; /* entries whose address it takes: it may launch them */
    uint32_t start_count, start_capacity;
    bool heap;        /* calls malloc or free, perhaps through the device runtime */
    bool runtime;     /* calls the device runtime */
    bool reserved;    /* knows where the reserved shared memory is */
    bool textures;    /* has instructions on textures or surfaces */
    bool indirect;    /* has indirect calls: may reach any function */
    uint32_t *shared; /* shared variables it names */
    uint32_t shared_count, shared_capacity, callee_capacity;
    /* What this executor lacks to run it, in order of lines, one per distinct message; such a function has no code. */
    struct diag **refusals;
    uint32_t refusal_count, refusal_capacity;
    _Atomic(struct lane_code *) lanes; /* lanes.h; made when the function first runs there */
};

struct lower;
/* PTX instructions that are counted with micro-operation `pc`. */
static inline uint32_t insn_weight(const struct code *k, uint32_t pc)
{
    return k->weight[pc + 1] - k->weight[pc];
}

struct ptx_module {
    struct arena arena;
    struct lower *lower; /* while loading only */
    struct ast ast;
    struct reader reader;
    struct ptx_version version;
    struct code **code; /* by function index; defined or not */
    uint32_t code_count;
    struct ptx_kernel *kernels;
    struct code **kernel_code;
    const struct diag **kernel_refusals; /* by kernel; NULL: it can be run */
    uint32_t kernel_count;
    struct ptx_variable *variables;
    struct symbol **variable_symbols;
    uint32_t variable_count;
    struct symbol *
        *shared; /* every .shared variable of the module, in order; a kernel's layout holds those it reaches */
    uint32_t shared_count;
    struct matrix *matrices; /* forms of matrix instructions, ptx/matrix.h */
    uint32_t matrix_count, matrix_capacity;
    struct texture_op *texture_ops; /* forms of instructions on textures and surfaces, ptx/texture.h */
    uint32_t texture_op_count, texture_op_capacity;
    uint32_t access_count; /* memory accesses: size of an engine's cache */
};

/* Function i is at PTX_CODE_WINDOW + (i + 1) * CODE_ADDRESS_STEP. */
enum { CODE_ADDRESS_STEP = 16 };

/* Shared memory that belongs to the system: cooperative groups keep the barriers of tiles of several warps in it. As on
 * devices it lies before all variables, and is zero when a block starts. Only kernels that ask for it have it, so that
 * in others the first variable is at 0, and whatever lies before it is out of bounds. */
enum { RESERVED_SHARED = 1024, RESERVED_SHARED_GROUPS = 512 };
enum { MAX_SHARED = 256 * 1024 }; /* a block's, with these; no device has more */

/* Where a kernel's shared variables lie. `offsets`, indexed by shared variable, may be NULL when only sizes are wanted;
 * with it `reachable` (one byte per function) is kept and the caller frees it. */
struct kernel_layout {
    uint32_t reserved_bytes; /* before the variables: RESERVED_SHARED or 0 */
    uint32_t static_bytes;   /* the variables alone */
    uint32_t dynamic_offset;
    uint8_t *reachable;
};
enum status layout_kernel(const struct ptx_module *module, uint32_t function, uint32_t *offsets,
                          struct kernel_layout *layout);
/* Marks in `seen` (one byte per function) everything that function `index` may reach, itself included. */
enum status mark_reachable(const struct ptx_module *module, uint32_t index, uint8_t *seen);
/* Likewise with the kernels that it may launch, and what they reach. */
enum status mark_launchable(const struct ptx_module *module, uint32_t index, uint8_t *seen);

void lower_module(struct ptx_module *module);

#endif
