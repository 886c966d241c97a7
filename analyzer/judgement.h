/* judgement.h - what re-running one launch on the CPU said about it. Made by verify, kept in CAPTURE/verify.json, read
 * by report.
 *
 * Plain data: it names launches by number and allocations by id, so that it means the same to every later reader.
 */
#ifndef ANALYZER_JUDGEMENT_H
#define ANALYZER_JUDGEMENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/map.h"

/* "Executed as written?" CHECKED: judged, and either sound or with faults or differences that are listed. NOT: see
 * reason. */
enum judgement_verdict { JUDGEMENT_NOT, JUDGEMENT_CHECKED };

/* Kinds of faults, in the words of the cause classes where there is one. */
#define JUDGEMENT_FAULTS(X)                                                                                            \
    X(OUT_OF_BOUNDS, "out-of-bounds")                                                                                  \
    X(MISALIGNED, "misaligned")                                                                                        \
    X(READ_ONLY, "read-only")                                                                                          \
    X(FREED, "use-after-free")                                                                                         \
    X(UNINITIALISED, "uninitialised")                                                                                  \
    X(RACE, "race")                                                                                                    \
    X(BARRIER, "barrier")                                                                                              \
    X(STOPPED, "stopped") /* trap, assert, stack, bad call */
enum judgement_fault_kind {
#define X(name, text) JUDGEMENT_FAULT_##name,
    JUDGEMENT_FAULTS(X)
#undef X
        JUDGEMENT_FAULT_KINDS
};

enum { JUDGEMENT_FRAMES = 6 };
struct judgement_frame {
    char *file, *function; /* owned; NULL: unknown */
    uint32_t line;
};
struct judgement_access {
    struct judgement_frame frames[JUDGEMENT_FRAMES]; /* innermost first, then where it was inlined */
    size_t frame_count;
    uint32_t ptx_line; /* 0: there is no such access */
    uint32_t block[3], thread[3];
    bool write, atomic;
};

struct judgement_fault {
    enum judgement_fault_kind kind;
    char *detail; /* owned; the executor's own word for the kind */
    char *space;  /* owned; "global", "shared", ... */
    struct judgement_access access, other;
    uint64_t address; /* as the program would have used it */
    uint32_t bytes;
    uint32_t allocation; /* id of the one that was meant, 0: unknown */
    int64_t offset;      /* of the access from its start */
    uint32_t landed;     /* id of the other allocation that the bytes belong to, 0: none */
    bool landed_changed; /* its contents changed there on the device, too */
    uint64_t count, threads;
    bool same_value;     /* a race of stores of the same value */
    bool unseen;         /* uninitialised: nobody is known to have looked at what was made of it */
    uint32_t node;       /* of a graph's launch: which of its nodes, from 1; 0: the launch is a kernel's */
    uint32_t other_node; /* a race of two nodes that nothing orders: the other one */
    size_t finding;      /* 1 + index of the finding it became; not stored */
};

/* Bytes that the device left otherwise than the kernel's PTX does. */
#define JUDGEMENT_DIFFERENCES(X)                                                                                       \
    X(MISMATCH, "mismatch") /* other values, beyond what rounding may do */                                            \
    X(DROPPED, "dropped")   /* every differing word still holds its old value */                                       \
    X(OUTSIDE, "outside")   /* changed although the kernel does not write there */
enum judgement_difference_kind {
#define X(name, text) JUDGEMENT_DIFFERENCE_##name,
    JUDGEMENT_DIFFERENCES(X)
#undef X
        JUDGEMENT_DIFFERENCE_KINDS
};
enum { JUDGEMENT_CANDIDATES = 8 };
struct judgement_difference {
    enum judgement_difference_kind kind;
    uint32_t allocation;
    uint64_t words, of;        /* 4-byte words that differ, of those that were compared */
    uint64_t offset;           /* of the first one */
    uint32_t device, expected; /* its bits */
    uint32_t node;             /* of a graph's launch: the one that stored the first of them last; 0: none did */
    /* Nodes whose own outputs are gone when the graph has ended: it may have been one of these, too. */
    uint32_t candidates[JUDGEMENT_CANDIDATES], candidate_count;
    double scales; /* how many scales of its envelope the worst one is off; 0: bits were compared */
    size_t finding;
};

/* What the run with an fp64 shadow of every float says: is what the kernel computes what it should compute? */
#define JUDGEMENT_NUMBERS(X)                                                                                           \
    X(NAN, "nan")                     /* stored NaNs that one instruction made from numbers */                         \
    X(APPROXIMATION, "approximation") /* stored values too far from their shadows, and one instruction to blame */
enum judgement_number_kind {
#define X(name, text) JUDGEMENT_NUMBER_##name,
    JUDGEMENT_NUMBERS(X)
#undef X
        JUDGEMENT_NUMBER_KINDS
};
struct judgement_number {
    enum judgement_number_kind kind;
    struct judgement_access access; /* the instruction, at the first (NAN) or worst (APPROXIMATION) time */
    uint32_t operand_count;
    double operands[3], result, result_wide; /* of that instruction at that time */
    uint32_t allocation;
    uint64_t offset;     /* of the first (NAN) or worst (APPROXIMATION) element */
    uint64_t count, of;  /* elements concerned, of the floating-point elements that the launch stored there */
    double stored, wide; /* APPROXIMATION: the worst element and its shadow */
    double limit_absolute, limit_relative;
    uint32_t node; /* as of a fault */
    size_t finding;
};

/* Floating-point operations by type, as the executor counts them (enum ptx_flop_type, in this order). */
#define JUDGEMENT_OPERATIONS(X)                                                                                        \
    X(F16, "f16")                                                                                                      \
    X(BF16, "bf16")                                                                                                    \
    X(F32, "f32")                                                                                                      \
    X(F64, "f64")                                                                                                      \
    X(TENSOR_F8, "tensor-f8")                                                                                          \
    X(TENSOR_F16, "tensor-f16")                                                                                        \
    X(TENSOR_BF16, "tensor-bf16")                                                                                      \
    X(TENSOR_TF32, "tensor-tf32")                                                                                      \
    X(TENSOR_F64, "tensor-f64")                                                                                        \
    X(TENSOR_INTEGER, "tensor-integer")
enum judgement_operation {
#define X(name, text) JUDGEMENT_OPERATION_##name,
    JUDGEMENT_OPERATIONS(X)
#undef X
        JUDGEMENT_OPERATION_TYPES
};

/* A source line that makes the device do more than its accesses need. */
#define JUDGEMENT_PATTERNS(X)                                                                                          \
    X(SECTORS, "sectors")               /* of global memory: more than the bytes need, side by side */                 \
    X(BANK_CONFLICTS, "bank-conflicts") /* passes of shared memory: more than without conflicts */                     \
    X(SAME_ADDRESS, "same-address")     /* atomics of a warp on one address, one after the other */                    \
    X(DIVERGENCE, "divergence")         /* branches whose lanes go different ways */
enum judgement_pattern_kind {
#define X(name, text) JUDGEMENT_PATTERN_##name,
    JUDGEMENT_PATTERNS(X)
#undef X
        JUDGEMENT_PATTERN_KINDS
};
struct judgement_pattern {
    enum judgement_pattern_kind kind;
    struct judgement_access access; /* only its place */
    uint64_t requests;              /* of warps; DIVERGENCE: branches */
    uint64_t actual, ideal;         /* summed over them; DIVERGENCE: divergent ones, and 0 */
};

/* What the launch does, counted in a run of its own (docs/counts.md). */
struct judgement_counts {
    bool known;
    uint64_t operations[JUDGEMENT_OPERATION_TYPES];
    uint64_t threads, alone;      /* thread instructions; of them, executed outside of warps in lock-step */
    uint64_t warps, warp_threads; /* warp instructions, and the lanes that executed them */
    uint64_t requests, sectors, ideal_sectors;              /* of global memory */
    uint64_t shared_requests, wavefronts, ideal_wavefronts; /* of shared memory */
    uint64_t branches, divergent;
    struct judgement_pattern *patterns; /* owned; the worst of each kind, if any is bad enough to be told */
    size_t pattern_count;
};

/* Bytes that a launch touched: `bytes` at `offset` of the allocation and at each `stride` behind it, `count` times. */
struct judgement_run {
    uint64_t offset, bytes, stride, count;
};
struct judgement_touch {
    uint32_t allocation;
    bool write;                 /* else read, before it was written */
    struct judgement_run *runs; /* owned; ascending */
    size_t count;
    uint64_t values; /* of a write: hash of what the launch left there, below 2^53; 0: not known */
};

struct judgement {
    size_t launch; /* number */
    enum judgement_verdict verdict;
    char *reason; /* owned; coverage word when it was not judged ("no-ptx"), else NULL */
    char *detail; /* owned; more about the reason, may be NULL */
    struct judgement_fault *faults;
    size_t fault_count;
    struct judgement_difference *differences;
    size_t difference_count;
    uint64_t instructions; /* thread instructions executed */
    bool bytes_known;      /* distinct bytes of the buffers that it read before it wrote them, and that it wrote */
    uint64_t bytes_read, bytes_written;
    /* "Operator right?", as far as the kernel's own shadow can tell. */
    bool numbers_checked;
    char *numbers_reason; /* owned; coverage word when not checked, may be NULL: not looked at */
    struct judgement_number *numbers;
    size_t number_count;
    struct judgement_counts counts;
    /* For the order between streams (docs/order.md). */
    bool kernel_known;               /* the next two mean something */
    bool may_wait;                   /* it may wait for memory that others write meanwhile */
    bool atomics;                    /* it uses atomics or reductions on global memory */
    struct judgement_touch *touches; /* owned; known when bytes_known; not necessarily all */
    size_t touch_count;
    bool raced; /* part of a stream race that was told; not stored */
};

/* Of many launches the same few words are all there is to say: why they were not judged. These are kept once, and by
 * launch only which ones apply. */
struct judgements {
    struct judgement *items; /* owned; by launch number */
    size_t count;
    size_t capacity;          /* of items; may be 0 when somebody else made them */
    struct judgement *common; /* owned; `launch` is the first that it is said of */
    size_t common_count;
    uint32_t *said;    /* owned; by launch number: 1 + index in `common`, 0: see items. NULL: nothing is common */
    size_t launches;   /* the highest number that `said` has room for */
    size_t said_count; /* of how many launches it says something */
    struct map index;  /* hash of what is said -> index in `common` */
};

/* Why a launch was not judged when somebody stopped verify before: any other judgement says more. */
#define JUDGEMENT_INTERRUPTED "interrupted"

const char *judgement_fault_kind_name(enum judgement_fault_kind kind);
const char *judgement_difference_kind_name(enum judgement_difference_kind kind);
const char *judgement_number_kind_name(enum judgement_number_kind kind);
const char *judgement_operation_name(enum judgement_operation type);
const char *judgement_pattern_kind_name(enum judgement_pattern_kind kind);
/* 1 + index in `common` of what is said of the launch; 0: it has an item, or nothing is known. */
static inline uint32_t judgements_said(const struct judgements *judgements, size_t launch)
{
    return judgements->said && launch <= judgements->launches ? judgements->said[launch] : 0;
}
/* NULL when the launch was not looked at. What is common to several launches is not to be changed. */
struct judgement *judgements_find(const struct judgements *judgements, size_t launch);
/* Takes *judgement over and empties it; of a launch numbered 1 to `launches` of which nothing is known yet. The order
 * of items is the order of calls, see judgements_sort(). False: no memory, *judgement is the caller's as before. */
bool judgements_add(struct judgements *judgements, struct judgement *judgement, size_t launches);
/* Says what common[which] says of one more launch, numbered 1 to `launches`. False: of that one something is said. */
bool judgements_say(struct judgements *judgements, size_t which, size_t launch);
/* Puts the items in order. Returns 0, or the number of a launch that comes twice. */
size_t judgements_sort(struct judgements *judgements);
/* Of how many launches something is known. */
static inline size_t judgements_known(const struct judgements *judgements)
{
    return judgements->count + judgements->said_count;
}
/* Moves into `to` what `from` has and `to` has not, in order; empties `from`. False: no memory, `to` is then sound, but
 * may lack some of it. */
bool judgements_merge(struct judgements *to, struct judgements *from);
void judgement_clear(struct judgement *judgement);
struct judgement_access judgement_access_copy(const struct judgement_access *access); /* with strings of its own */
void judgement_access_clear(struct judgement_access *access);                         /* frees its strings */
void judgements_free(struct judgements *judgements);

#endif
