/* exec_shadow.h - shadow mode: beside every float its value in double precision, how deep a chain of operations made
 * it, and which instruction contributed most of its error. What that means is in docs/shadow.md.
 *
 *     shadow.def             the meaning of each operation in double precision
 *     exec_shadowed.c        the loop, exec_loop.inc once more (exec_shadowed_fma.c: for processors with FMA)
 *     exec_shadow.c          judging an error, events, half precision
 *     exec_shadow_decide.c   decisions that rounding might have turned
 *     exec_shadow_memory.c   frames, and shadows in memory
 *     exec_shadow_move.c     bits that are packed, shifted or masked
 */
#ifndef PTX_EXEC_SHADOW_H
#define PTX_EXEC_SHADOW_H

#include "common/map.h"
#include "ptx/arith.h"
#include "ptx/double_double.h"
#include "ptx/exec.h"

/* Kinds of a slot beside those of memory. A slot of kind NONE is a plain number with `wide` and `depth` zero; its
 * `origin` tells what was loaded from what was computed or written in the program. LOADED occurs under perturbation
 * only: bits from device memory whose type the consumer will tell, `wide` is the address of their first byte. PAIR16
 * and PAIR32: two values, in the slot's struct number_pair. LOW32 and HIGH32: the 32-bit halves of a double, which is
 * in `low` of the pair; `origin` of its `high` keeps the bits of the other half. Kinds from F64 on have a pair. BITS:
 * an integer that a rounded float's bits went into; `wide` says by how much it is off. */
_Static_assert(sizeof(struct ptx_shadow_value) == 16, "entries are written to memory by callers");

enum { NUMBER_LOADED = PTX_SHADOW_REST + 1, NUMBER_PAIR16, NUMBER_PAIR32, NUMBER_LOW32, NUMBER_HIGH32, NUMBER_BITS };
enum { ORIGIN_COMPUTED, ORIGIN_MEMORY };
/* Flags that go on to whatever is made of a value; those that go from a condition or an address to what depends on it.
 */
enum {
    FLAGS_SPREADING = PTX_SHADOW_LOST | PTX_SHADOW_DECIDED | PTX_SHADOW_TIMED,
    FLAGS_CONTROL = PTX_SHADOW_DECIDED | PTX_SHADOW_TIMED,
};
#define NUMBER_PLAIN  ((struct ptx_shadow_value){0})
#define NUMBER_MEMORY ((struct ptx_shadow_value){.origin = ORIGIN_MEMORY})
/* `wide` of an entry of kind NONE in memory, under perturbation: 0 nothing is known; the address that the bits were
 * loaded from; or this: stored by the launch, exact. */
#define STORED_EXACT (-1.0)
enum { MAX_SHADOW_DEPTH = (1 << 24) - 1 };

struct number_pair {
    struct ptx_shadow_value low, high;
};

/* An operand as the arithmetic reads it. */
struct operand_value {
    double actual, wide, low; /* the wide value is wide + low; low is for doubles */
    uint32_t origin, depth;
    uint8_t flags;
    bool constant; /* a plain number that was not loaded */
};

/* Precisions: a result may be off by `bound` (64 units) times its size plus `floor` before its error is looked at. */
enum precision { PRECISION_F16, PRECISION_BF16, PRECISION_TF32, PRECISION_F32, PRECISION_F64, PRECISION_ROUGH64 };
#define BOUND_F16     0x1p-5
#define FLOOR_F16     0x1p-23
#define BOUND_BF16    0x1p-2
#define FLOOR_BF16    0x1p-126
#define BOUND_TF32    0x1p-5
#define FLOOR_TF32    0x1p-126
#define BOUND_F32     0x1p-18
#define FLOOR_F32     0x1p-126
#define BOUND_F64     0x1p-47
#define FLOOR_F64     0x1p-1022
#define BOUND_ROUGH64 0x1p-14
#define FLOOR_ROUGH64 0x1p-1022
/* A value that was rounded may be off, on another device or in another order, by this much: so many times its present
 * error, and so many units in its last place. */
#define MARGIN_ERRORS 8.0
#define MARGIN_UNITS  4.0
/* What is not known is taken to be of this size. */
#define MARGIN_LOST 0x1p-8
#define UNIT_F32    0x1p-23
#define LEAST_F32   0x1p-149
#define UNIT_F64    0x1p-52
#define LEAST_F64   0x1p-1074
/* Adding a constant of this size rounds to an integer on purpose (exec_shadow.c). */
#define MAGIC_F16     INFINITY
#define MAGIC_BF16    INFINITY
#define MAGIC_TF32    INFINITY
#define MAGIC_F32     0x1p23
#define MAGIC_F64     0x1p52
#define MAGIC_ROUGH64 INFINITY

enum how { HOW_ONE, HOW_SUM, HOW_PRODUCT, HOW_FMA };

/* Why an operation's result is off, and from where. */
struct judgement {
    const struct operand_value *operands;
    unsigned count;
    enum how how;
    enum precision precision;
    double actual;
    struct dd wide, exact; /* exact: the operation in higher precision on the actual operands */
};
/* The origin of a result whose error is above the bound or that is no finite number; takes note of events. */
uint32_t shadow_judge(struct worker *w, struct block *b, struct thread *t, const struct insn *in,
                      const struct judgement *j);

/* ---- exec_shadow_decide.c: takes note of decisions that are nearer than `reach` ---- */
/* False: the comparison asks for something else than order. */
bool shadow_compared(struct worker *w, struct block *b, struct thread *t, const struct insn *in,
                     const struct operand_value o[2], double reach);
void shadow_rounded(struct worker *w, struct block *b, struct thread *t, const struct insn *in,
                    const struct operand_value *x, double reach);

/* ---- exec_shadow.c ---- */
/* Of events of a kind at a line, the first is kept, or that with the largest `error_out`. First in the order of blocks,
 * then of threads, then of what a thread does: whatever order they ran in. */
void shadow_note(struct worker *w, const struct block *b, const struct thread *t, uint32_t line,
                 enum ptx_number_kind kind, const struct judgement *j, double error_in, double error_out);
struct number_table;
bool shadow_launch_start(struct launch *l);
bool shadow_launch_finish(struct launch *l); /* fills the result's events */
void shadow_launch_end(struct launch *l);
/* The relative error of an entry by perturbation: a number in [-1, 1] for the value at `address`. */
double shadow_unit(uint64_t seed, uint64_t address);
/* A float operand whose slot is not of the plain kind `kind`. */
struct operand_value shadow_operand(const struct worker *w, enum ptx_shadow_kind kind, const struct ptx_shadow_value *s,
                                    const struct number_pair *p, union slot v, double actual);
/* Has another thread of the launch (of the block, in shared memory) worked there with an atomic before? Takes note. */
bool shadow_contended(struct worker *w, const struct block *b, const struct thread *t, enum mem_space space,
                      uint64_t address);
void shadow_half(struct worker *w, struct block *b, struct thread *t, const struct insn *in, const union slot *R,
                 struct ptx_shadow_value *S, struct number_pair *P, union slot result);

/* ---- exec_shadow_move.c ---- */
/* Half `which` of a 32-bit slot. */
struct ptx_shadow_value shadow_half_of(const struct ptx_shadow_value *s, const struct number_pair *p, unsigned which);
/* An arithmetic micro-operation as a function of its operands and `mod`. */
typedef union slot shadow_meaning(union slot a, union slot b, union slot c, unsigned mod);
/* What the shadow of `in`'s result is, `in` being a MOVE of shadow.def with some shadow among its operands. */
void shadow_move(const struct insn *in, const union slot *R, struct ptx_shadow_value *S, struct number_pair *P,
                 union slot result, shadow_meaning *meaning);
/* Likewise of any instruction that shadow.def does not name, which reads its first `count` operands. */
void shadow_other(const struct insn *in, const union slot *R, struct ptx_shadow_value *S, struct number_pair *P,
                  union slot result, unsigned count, shadow_meaning *meaning);
/* An operand that is an integer, in a slot with a shadow. */
struct operand_value shadow_integer(const struct ptx_shadow_value *s, const struct number_pair *p, union slot v,
                                    double actual);
/* A slot that holds bits of `s` which are not followed. */
struct ptx_shadow_value shadow_plain_of(const struct ptx_shadow_value *s);

/* ---- exec_shadow_memory.c ---- */
/* What a slot of this kind holds says where or as what a thread runs: the device's choice. */
bool shadow_names_place(enum fill_kind kind);
bool shadow_enter(struct thread *t, const struct code *code);
/* Only memory for the frame, whose slots are plain numbers then. */
bool shadow_prepare(struct thread *t, const struct code *code);
void shadow_thread_free(struct thread *t);
void shadow_block_start(struct block *b);
void shadow_block_free(struct block *b);
void shadow_pass(struct thread *t, uint32_t from_base, uint32_t from_local, const struct call_arg *from,
                 uint32_t to_base, uint32_t to_local, const struct call_arg *to, uint32_t bytes);
/* The entries of one value of 1, 2, 4 or 8 bytes, into or out of a slot. */
void shadow_take(const struct worker *w, const struct ptx_shadow_value *from, uint64_t address, uint32_t bytes,
                 bool device, struct ptx_shadow_value *s, struct number_pair *p);
/* `taint`: flags that all of it gets. */
void shadow_put(const struct worker *w, struct ptx_shadow_value *to, uint64_t address, uint32_t bytes, bool device,
                const struct ptx_shadow_value *s, const struct number_pair *p, unsigned taint);
/* A store into the middle of an older value makes its entry void. `first`: address of the first entry of all. */
void shadow_clear_around(struct ptx_shadow_value *to, uint64_t address, uint32_t bytes, uint64_t first);
void shadow_load(struct worker *w, struct block *b, struct thread *t, const struct insn *in, enum mem_space space,
                 uint64_t address, uint32_t bytes, uint32_t slot);
void shadow_store(struct worker *w, struct block *b, struct thread *t, const struct insn *in, enum mem_space space,
                  uint64_t address, uint32_t bytes, uint32_t slot);
/* The same of a value that is in no frame. `taint`: of the thread and of the address. */
void shadow_load_value(struct worker *w, struct block *b, struct thread *t, const struct insn *in, enum mem_space space,
                       uint64_t address, uint32_t bytes, struct ptx_shadow_value *s, struct number_pair *p);
void shadow_store_value(struct worker *w, struct block *b, struct thread *t, const struct insn *in,
                        enum mem_space space, uint64_t address, uint32_t bytes, const struct ptx_shadow_value *s,
                        const struct number_pair *p, unsigned taint);
void shadow_atomic(struct worker *w, struct block *b, struct thread *t, const struct insn *in, enum mem_space space,
                   uint64_t address, uint32_t bytes, uint64_t operand, uint64_t swapped, uint64_t before,
                   uint64_t after);
/* alloca: local memory has no entries there yet. */
void shadow_stack(struct thread *t, uint32_t from, uint32_t to);
void shadow_copy(struct worker *w, struct block *b, const struct thread *t, const struct insn *in, uint64_t to,
                 uint64_t from, uint32_t bytes, uint32_t given);

/* ---- what the loop does itself ---- */

static inline double clamp_unit(double x)
{
    return x > 0 ? (x < 1 ? x : 1.0) : 0.0;
}

static inline double clamp_relu(double x, unsigned mod)
{
    return (mod & HALF_RELU) && x < 0 ? 0.0 : x;
}

/* min and max of halves, with .xorsign.abs too: whether the result is operand x, and the result's wide value. */
static inline bool half_is(double r, double x, unsigned mod)
{
    return mod & HALF_XORSIGN ? fabs(r) == fabs(x) : r == x;
}

static inline double half_signed(double x, double r, unsigned mod)
{
    return mod & HALF_XORSIGN ? copysign(x, r) : x;
}

/* cvt.relu and .satfinite; what was saturated follows the actual value. */
static inline double clamp_narrow(double x, double r, unsigned mod)
{
    if ((mod & NARROW_RELU) && x < 0)
        return 0;
    return (mod & NARROW_SATFINITE) && fabs(x) > fabs(r) * 1.01 && fabs(r) > 60000 ? r : x;
}

/* Kind and flags at once, since most instructions find neither: not 0 when there are any. */
static inline uint32_t number_tag(const struct ptx_shadow_value *s)
{
    _Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "kind and flags are the last byte");
    uint32_t word;
    memcpy(&word, (const char *)s + sizeof *s - sizeof word, sizeof word);
    return word & 0xff000000u;
}

/* The value of slot `v` as type T, and the operand with its shadow. */
#define VALUE_F32(v)        ((double)(v).f32)
#define VALUE_TF32(v)       ((double)(v).f32)
#define VALUE_F64(v)        ((v).f64)
#define VALUE_ROUGH64(v)    ((v).f64)
#define VALUE_F16(v)        ((double)half_to_float((v).u16))
#define VALUE_BF16(v)       ((double)bfloat_to_float((v).u16))
#define VALUE_S32(v)        ((double)(v).s32)
#define VALUE_U32(v)        ((double)(v).u32)
#define VALUE_S64(v)        ((double)(v).s64)
#define VALUE_U64(v)        ((double)(v).u64)
#define SHADOW_KIND_F32     PTX_SHADOW_F32
#define SHADOW_KIND_TF32    PTX_SHADOW_F32
#define SHADOW_KIND_F64     PTX_SHADOW_F64
#define SHADOW_KIND_ROUGH64 PTX_SHADOW_F64
#define SHADOW_KIND_F16     PTX_SHADOW_F16
#define SHADOW_KIND_BF16    PTX_SHADOW_BF16
/* Integers have no shadow: a kind that no slot has. */
#define SHADOW_KIND_S32 PTX_SHADOW_NONE
#define SHADOW_KIND_U32 PTX_SHADOW_NONE
#define SHADOW_KIND_S64 PTX_SHADOW_NONE
#define SHADOW_KIND_U64 PTX_SHADOW_NONE

static inline struct operand_value operand_value(const struct worker *w, enum ptx_shadow_kind kind,
                                                 const struct ptx_shadow_value *s, const struct number_pair *p,
                                                 union slot v, double actual)
{
    if (kind == PTX_SHADOW_NONE)
        return __builtin_expect(number_tag(s) != 0, 0) ? shadow_integer(s, p, v, actual)
                                                       : (struct operand_value){actual, actual, 0, 0, 0, 0, false};
    if (__builtin_expect(s->kind == kind, 1))
        return (struct operand_value){actual,   s->wide, kind == PTX_SHADOW_F64 ? p->low.wide : 0, s->origin, s->depth,
                                      s->flags, false};
    if (__builtin_expect(s->kind == PTX_SHADOW_NONE, 1))
        return (struct operand_value){actual, actual, 0, 0, 0, s->flags, s->origin == ORIGIN_COMPUTED};
    return shadow_operand(w, kind, s, p, v, actual);
}

static inline double reach_of(const struct operand_value *o, double unit, double least)
{
    double size = fabs(o->actual), reach = o->flags & PTX_SHADOW_LOST ? size * MARGIN_LOST : 0;
    if (o->flags & PTX_SHADOW_INEXACT)
        reach += MARGIN_ERRORS * fabs(o->actual - o->wide - o->low) + MARGIN_UNITS * (size * unit + least);
    return reach;
}
#define REACH(T, o) reach_of(o, UNIT_##T, LEAST_##T)
#define SLOT_F32(x) ((union slot){.u64 = bits32((float)(x))})
#define SLOT_F64(x) ((union slot){.f64 = (x)})

static inline uint32_t deeper(uint32_t a, uint32_t b)
{
    uint32_t most = a > b ? a : b;
    return most < MAX_SHADOW_DEPTH ? most + 1 : most;
}

/* Rounding to an integer by adding 1.5 * 2^23 and its kind: the result is that integer, which follows the actual one.
 */
static inline bool is_magic(double x, double magic)
{
    return fabs(x) >= magic && fabs(x) < 2 * magic;
}

static inline bool rounds_on_purpose(enum how how, double magic, const struct operand_value *a,
                                     const struct operand_value *b, const struct operand_value *c)
{
    return (how == HOW_SUM &&
            ((a->constant && is_magic(a->actual, magic)) || (b->constant && is_magic(b->actual, magic)))) ||
           (how == HOW_FMA && c->constant && is_magic(c->actual, magic));
}

static inline struct ptx_shadow_value *device_entries(const struct range_cache *c, uint64_t address)
{
    const struct ptx_range *r = c->range;
    return r && r->shadow ? r->shadow + (address - r->address) / 2 : NULL;
}

/* Whether some of the entries of these bytes may be other than zero; that they are. */
static inline bool entries_used(const struct ptx_range *r, uint64_t address, uint64_t bytes)
{
    uint64_t from = (address - r->address) / PTX_SHADOW_CHUNK,
             to = (address - r->address + bytes - 1) / PTX_SHADOW_CHUNK;
    bool used = !r->shadow_used;
    for (uint64_t i = from; i <= to && !used; i++)
        used = r->shadow_used[i];
    return used;
}

static inline void use_entries(const struct ptx_range *r, uint64_t address, uint64_t bytes)
{
    uint64_t from = (address - r->address) / PTX_SHADOW_CHUNK,
             to = (address - r->address + bytes - 1) / PTX_SHADOW_CHUNK;
    for (uint64_t i = from; i <= to && r->shadow_used; i++)
        r->shadow_used[i] = 1;
}

/* The slot was loaded from `address`, or, without `found`, zeroed. Constant arguments fold away. */
static inline __attribute__((always_inline)) void shadow_loaded(struct worker *w, struct block *b, struct thread *t,
                                                                const struct insn *in, enum mem_space space,
                                                                uint64_t address, uint32_t bytes, uint32_t slot,
                                                                bool found)
{
    struct ptx_shadow_value *s = &t->numbers[t->base + slot];
    const struct ptx_shadow_value *entry = NULL;
    if (__builtin_expect(!found, 0)) {
        *s = NUMBER_PLAIN;
        return;
    }
    if (space == MEM_GLOBAL) {
        entry = device_entries(&w->cache[in->aux], address);
        if (!entry && !w->launch->config->perturbation) {
            *s = NUMBER_MEMORY;
            return;
        }
    } else if (space == MEM_SHARED) {
        if (!b->shared_numbers) {
            *s = NUMBER_MEMORY;
            return;
        }
        entry = b->shared_numbers + narrow_address(MEM_SHARED, address) / 2;
    } else if (space == MEM_LOCAL && !t->local_numbers) {
        *s = NUMBER_MEMORY;
        return;
    }
    if (bytes == 4 && entry && entry->kind == PTX_SHADOW_F32)
        *s = *entry;
    else
        shadow_load(w, b, t, in, space, address, bytes, slot);
}

/* The slot was stored to `address`. */
static inline __attribute__((always_inline)) void shadow_stored(struct worker *w, struct block *b, struct thread *t,
                                                                const struct insn *in, enum mem_space space,
                                                                uint64_t address, uint32_t bytes, uint32_t slot)
{
    const struct range_cache *cache = &w->cache[in->aux];
    bool told = number_tag(&t->numbers[t->base + slot]) || number_tag(&t->numbers[t->base + in->a]) || t->taint;
    bool kept = space == MEM_GLOBAL   ? cache->range && (cache->range->shadow || cache->range->tainted)
                : space == MEM_SHARED ? b->shared_numbers || told
                : space == MEM_LOCAL  ? t->local_numbers || told
                                      : true;
    if (kept)
        shadow_store(w, b, t, in, space, address, bytes, slot);
}

#endif
