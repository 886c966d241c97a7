/* exec_check.h - what the checked loop adds to an instruction: undefined bytes and pointer origins travel beside the
 * values, every access is judged.
 *
 *     exec_check.c    accesses: bounds by the pointer's origin, then as in device mode
 *     exec_undef.c    which bytes were never written; reported when a value made from them matters
 *     exec_race.c     accesses of two threads that nothing orders
 */
#ifndef PTX_EXEC_CHECK_H
#define PTX_EXEC_CHECK_H

#include "common/map.h"
#include "ptx/exec.h"

/* Origins: 0 a plain number, else the number of a range, or this: made from several pointers, or by other than adding.
 */
#define ORIGIN_MIXED UINT32_MAX

/* One access, as races remember it. */
struct race_record {
    uint32_t block, line, epoch, fence;
    uint16_t thread; /* low 10 bits; RACE_* above */
    uint16_t warp_clock;
};
struct race_cell { /* of 4 bytes */
    struct race_record write, read, other_read;
};
enum { RACE_MASK_SHIFT = 10, RACE_SEEN = 1 << 14, RACE_WRITE = 1 << 15 };
#define RACE_SILENT 0x80000000u /* in the line of a write that stored what was there already */
enum { RACE_PAGE_BYTES = 4096, RACE_MAX_PAGES = 8192 };

/* Undefined bytes that were loaded and have not mattered yet. */
struct latent {
    const struct insn *in;
    struct ptx_fault fault; /* address, bytes and thread of the latest load */
};

struct check {
    struct map latent_index; /* (instruction, range) -> index into latents */
    struct latent *latents;
    uint32_t latent_count, latent_capacity;
    uint8_t **defined; /* by range number: bitmap once the launch stored something, for ranges with `valid` */
    uint32_t defined_count;
    uint32_t **origins; /* by function and fill: what a filled slot points into */
    struct map pages;   /* address / RACE_PAGE_BYTES -> pointer to cells */
    uint64_t last_page;
    struct race_cell *last_cells;
    uint32_t page_count;
    uint32_t *fences;         /* by block: fences executed; NULL when there are too many blocks to tell */
    uint64_t lowest, highest; /* addresses that ranges span */
};

uint8_t *check_access(struct worker *w, struct block *b, struct thread *t, const struct insn *in, struct shadow *base,
                      enum mem_space space, uint64_t address, uint32_t bytes, bool write);
uint8_t *check_atomic(struct worker *w, struct block *b, struct thread *t, const struct insn *in, struct shadow *S,
                      enum mem_space space, uint64_t address, uint32_t bytes);
uint8_t *check_atomic_wide(struct worker *w, struct block *b, struct thread *t, const struct insn *in, struct shadow *S,
                           enum mem_space space, uint64_t address);
void check_loaded(struct worker *w, struct block *b, struct thread *t, const struct insn *in, struct shadow *d,
                  enum mem_space space, uint64_t address, uint32_t bytes, const uint8_t *p, uint64_t value);
void check_stored(struct worker *w, struct block *b, struct thread *t, const struct insn *in, const struct shadow *s,
                  enum mem_space space, uint64_t address, uint32_t bytes, const uint8_t *p, uint64_t value);
void check_copied(struct worker *w, struct block *b, struct thread *t, const struct insn *in, uint64_t to,
                  uint64_t from, uint32_t bytes, uint32_t given, const uint8_t *p);
void check_fence(struct block *b, struct thread *t);
void check_fill_origins(const struct block *b, const struct code *code, struct shadow *S);
uint32_t origin_of(struct launch *l, uint64_t value);

/* ---- exec_undef.c ---- */
/* Bytes (bit k: byte k) of the accessed memory that were never written. */
uint32_t undef_at(struct worker *w, struct block *b, struct thread *t, enum mem_space space, uint64_t address,
                  uint32_t bytes);
/* The bytes are written now; those in `undef` with undefined values. */
void undef_store(struct worker *w, struct block *b, struct thread *t, enum mem_space space, uint64_t address,
                 uint32_t bytes, uint32_t undef);
uint32_t undef_record(struct worker *w, struct block *b, struct thread *t, const struct insn *in, enum mem_space space,
                      uint64_t address, uint32_t bytes, uint32_t undef);
/* The value matters: report the load it came from, once per loaded value. */
void undef_used(struct worker *w, struct block *b, struct thread *t, struct shadow *s);
/* What undefined bytes become in an instruction of class PART. */
uint32_t undef_part(const struct insn *in, const union slot *R, const struct shadow *S, uint32_t operands);

/* ---- exec_race.c ---- */
void race_access(struct worker *w, struct block *b, struct thread *t, const struct insn *in, enum mem_space space,
                 uint64_t address, uint32_t bytes, bool write, const uint8_t *old, uint64_t value);

/* ---- the classes of microops.def ---- */
#define BYTES_OF_u64 0xff
#define BYTES_OF_s64 0xff
#define BYTES_OF_f64 0xff
#define BYTES_OF_u32 0x0f
#define BYTES_OF_s32 0x0f
#define BYTES_OF_f32 0x0f
#define BYTES_OF_u16 0x03
#define BYTES_OF_s16 0x03

/* Arithmetic on a pointer other than adding to it gives a number that must not pass for one. */
static inline uint32_t mixed(uint32_t origins)
{
    return origins ? ORIGIN_MIXED : 0;
}

static inline uint32_t added(uint32_t a, uint32_t b)
{
    return a && b ? ORIGIN_MIXED : a | b;
}

#define USE_OPERAND(slot)                                                                                              \
    do {                                                                                                               \
        if (__builtin_expect(S[slot].undef != 0, 0))                                                                   \
            undef_used(w, blk, t, &S[slot]);                                                                           \
    } while (0)
#define RESULT(o, u)                                                                                                   \
    S[in->d] = (struct shadow)                                                                                         \
    {                                                                                                                  \
        o, u                                                                                                           \
    }
#define CHECK1_USE                                                                                                     \
    do {                                                                                                               \
        USE_OPERAND(in->a);                                                                                            \
        RESULT(mixed(S[in->a].origin), 0);                                                                             \
    } while (0)
#define CHECK2_USE                                                                                                     \
    do {                                                                                                               \
        USE_OPERAND(in->a);                                                                                            \
        USE_OPERAND(in->b);                                                                                            \
        RESULT(mixed(S[in->a].origin | S[in->b].origin), 0);                                                           \
    } while (0)
#define CHECK3_USE                                                                                                     \
    do {                                                                                                               \
        USE_OPERAND(in->a);                                                                                            \
        USE_OPERAND(in->b);                                                                                            \
        USE_OPERAND(in->c);                                                                                            \
        RESULT(mixed(S[in->a].origin | S[in->b].origin | S[in->c].origin), 0);                                         \
    } while (0)
#define CHECK1_MOVE S[in->d] = S[in->a]
#define CHECK1_PART                                                                                                    \
    RESULT(mixed(S[in->a].origin), __builtin_expect(S[in->a].undef != 0, 0) ? undef_part(in, R, S, 1) : 0)
#define CHECK2_PART                                                                                                    \
    RESULT(mixed(S[in->a].origin | S[in->b].origin),                                                                   \
           __builtin_expect((S[in->a].undef | S[in->b].undef) != 0, 0) ? undef_part(in, R, S, 2) : 0)
#define CHECK3_PART                                                                                                    \
    RESULT(mixed(S[in->a].origin | S[in->b].origin | S[in->c].origin),                                                 \
           __builtin_expect((S[in->a].undef | S[in->b].undef | S[in->c].undef) != 0, 0) ? undef_part(in, R, S, 3) : 0)
#define CHECK2_ADDR                                                                                                    \
    do {                                                                                                               \
        USE_OPERAND(in->a);                                                                                            \
        USE_OPERAND(in->b);                                                                                            \
        RESULT(added(S[in->a].origin, S[in->b].origin), 0);                                                            \
    } while (0)
#define CHECK2_SUBT                                                                                                    \
    do {                                                                                                               \
        USE_OPERAND(in->a);                                                                                            \
        USE_OPERAND(in->b);                                                                                            \
        RESULT(S[in->b].origin ? ORIGIN_MIXED : S[in->a].origin, 0);                                                   \
    } while (0)
#define CHECK3_ADDR                                                                                                    \
    do {                                                                                                               \
        USE_OPERAND(in->a);                                                                                            \
        USE_OPERAND(in->b);                                                                                            \
        USE_OPERAND(in->c);                                                                                            \
        RESULT(added(mixed(S[in->a].origin | S[in->b].origin), S[in->c].origin), 0);                                   \
    } while (0)
#define CHECK3_SEL                                                                                                     \
    do {                                                                                                               \
        USE_OPERAND(in->c);                                                                                            \
        S[in->d] = SELECTED ? S[in->a] : S[in->b];                                                                     \
    } while (0)
#define CHECK_ALL                                                                                                      \
    do {                                                                                                               \
        USE_OPERAND(in->a);                                                                                            \
        USE_OPERAND(in->b);                                                                                            \
        USE_OPERAND(in->c);                                                                                            \
        RESULT(mixed(S[in->a].origin | S[in->b].origin), 0);                                                           \
    } while (0)
/* add.cc and its kind may build a 64-bit address from halves: the origin is not followed. */
#define CHECK_CARRY     CHECK2_USE
#define CHECK_CLEAR     RESULT(0, 0)
#define CHECK_CLOCK     CHECK_CLEAR
#define CHECK_CONDITION USE_OPERAND(in->a)

#endif
