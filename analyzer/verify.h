/* verify.h - runs the launches of a capture again, in order, and judges each.
 *
 * For every launch: memory from its snapshots, the kernel's PTX with every access checked, then the memory it leaves
 * against the snapshots after it. docs/verify.md says what each answer means. Not thread-safe; the executor may use
 * threads.
 */
#ifndef ANALYZER_VERIFY_H
#define ANALYZER_VERIFY_H

#include "analyzer/blob_cache.h"
#include "analyzer/judgement.h"
#include "analyzer/selection.h"
#include "analyzer/valid_bytes.h"
#include "analyzer/verify_garbage.h"
#include "analyzer/verify_memory.h"
#include "analyzer/verify_overlap.h"

struct verify_options {
    uint32_t workers;
    uint64_t instruction_limit;
    uint64_t memory_limit; /* of one launch; 0: as much as seems right */
    /* Called before each launch with what was judged so far, which is in order; may be NULL. */
    void (*progress)(void *context, const struct model_launch *next, const struct judgements *so_far);
    void *progress_context;
    const ptx_flag *cancel; /* becomes true: stops soon after; may be NULL */
};

/* Judges the launches that `selection` takes (NULL: all). STATUS_CANCELLED: *out holds those that were judged till
 * then, the others as JUDGEMENT_INTERRUPTED. On other failures (STATUS_NO_MEMORY only: what cannot be judged is a
 * judgement with its reason) it is empty. */
enum status verify_capture(const struct model *model, struct selection *selection, const struct verify_options *options,
                           struct judgements *out, struct diag *diag);

/* ---- inside ---- */

struct verify_module { /* by module id; loaded once, also when that failed */
    struct reference_module *module;
    const char *reason; /* static; why there is none */
    char *detail;       /* owned */
};
/* Bytes of an allocation that a launch stored, made from bytes that nobody wrote. */
struct verify_stain {
    const struct model_launch *launch;
    const struct model_allocation *allocation;
    const struct model_launch *root; /* whose loads brought the unwritten bytes in: `launch`, or an earlier one */
    uint8_t *bits;                   /* owned; one per byte */
    struct judgement_fault *faults;  /* owned; the launch's own such loads, in one stain of it; NULL once told */
    size_t fault_count;
    bool used;    /* the loads' values were computed with, not only moved on */
    bool own;     /* the faults are this stain's, and say nothing about other outputs of the launch */
    bool padding; /* they look like the holes of structures that were moved on: the host may have them */
};

/* Where a kernel's stores go, as far as is known. */
enum verify_reach { VERIFY_REACH_UNKNOWN, VERIFY_REACH_ARGUMENTS, VERIFY_REACH_ANYWHERE };

enum verify_kernel_trait { VERIFY_KERNEL_KNOWN = 1, VERIFY_KERNEL_WAITS = 2, VERIFY_KERNEL_ATOMICS = 4 };

struct verify {
    const struct model *model;
    const struct verify_options *options;
    struct model_live live;
    struct valid_bytes valid;
    struct blob_cache blobs;
    struct overlap overlap;
    struct verify_module *modules; /* owned */
    size_t module_count;
    struct map module_index; /* module id -> index */
    uint8_t *reach;          /* enum verify_reach by kernel index: where it writes */
    uint8_t *kernels;        /* likewise: enum verify_kernel_trait */
    uint64_t *exhausted;     /* likewise: threads of the smallest launch that did not end within the budget, 0: none */
    uint32_t sm, sm_count;
    struct verify_stain *stains; /* owned */
    size_t stain_count;
    uint64_t last_host_copy; /* seq of the newest copy to the host, 0 none */
};

/* Always followed by verify_end(). The options stay the caller's. */
enum status verify_start(struct verify *v, const struct model *model, const struct verify_options *options,
                         struct diag *diag);
void verify_end(struct verify *v);

const struct verify_module *verify_module_of(struct verify *v, const struct model_launch *launch);
/* Fills *j. *memory holds what the launch wrote when j->verdict is CHECKED or it ran to its end; free it in any case.
 */
void verify_judge(struct verify *v, const struct model_launch *launch, struct judgement *j,
                  struct verify_memory *memory, bool *ran);
/* Can the launch be run, and how? Runs it checked; *run, *memory and *result are as that leaves them. False: *j says
 * why not. Free *memory and *result in any case. */
bool verify_execute(struct verify *v, const struct model_launch *launch, struct reference_launch *run,
                    struct verify_memory *memory, struct reference_result *result, struct judgement *j);
/* The same with counts instead of checks (docs/counts.md): result->profile is what was counted. `layout`: NULL, or
 * where an earlier run found that the memory has to lie. */
bool verify_profile(struct verify *v, const struct model_launch *launch, const enum reference_layout *layout,
                    struct reference_launch *run, struct verify_memory *memory, struct reference_result *result,
                    struct judgement *j);
/* Counts what the launch does and fills the counts of *j; they stay unknown when that cannot be. Shared and local
 * memory begin with other contents than in a checked run: true when it left the same as that did in *checked, or it is
 * not known. */
bool verify_counts(struct verify *v, const struct model_launch *launch, const struct reference_launch *like,
                   const struct verify_memory *checked, struct judgement *j);
/* enum verify_kernel_trait: what its kernel may do, as far as its PTX is known. */
unsigned verify_kernel_traits(struct verify *v, const struct model_launch *launch);
/* How many instructions it gets at most: all, or, when its kernel has used up all before, a part. */
uint64_t verify_limit(const struct verify *v, const struct model_launch *launch);
/* How many before it is asked whether it waits; as many as at most: it is not asked. */
uint64_t verify_first_limit(struct verify *v, const struct model_launch *launch);
/* After that many, as `run` says: does it seem to wait for memory that nobody writes here? Then *j says so. */
bool verify_waits(struct verify *v, const struct model_launch *launch, const struct reference_launch *run,
                  struct judgement *j);
/* Its limit was not enough: says so in *j, and remembers. Returns false, as verify_not(). */
bool verify_exhausted(struct verify *v, const struct model_launch *launch, struct judgement *j);
/* Sets verdict NOT with a copy of the detail. Returns false, so that a step can end with it. */
bool verify_not(struct judgement *j, const char *reason, const char *detail);
/* The same for a launch that failed. */
bool verify_refused(const struct verify *v, const struct model_launch *launch, struct judgement *j);
/* Appends the faults of a run, with sources and in the program's terms. */
void verify_take_faults(struct verify *v, const struct model_launch *launch, const struct reference_module *module,
                        const struct verify_memory *memory, const struct reference_result *run, struct judgement *j);
/* An access with its source lines; strings are copies. */
void verify_take_access(const struct reference_module *module, const struct ptx_access *from,
                        struct judgement_access *to);
/* Runs the launch with shadows and fills the numbers of *j. `like` tells module and layout; memory is made anew. */
void verify_numbers(struct verify *v, const struct model_launch *launch, const struct reference_launch *like,
                    struct judgement *j);
/* Fills in what the run read and wrote, and what its kernel may do beside that; for the order between streams. */
void verify_take_touches(const struct verify_memory *memory, struct judgement *j);
void verify_take_kernel(struct verify *v, const struct model_launch *launch, struct judgement *j);
/* Compares and decides: as written, different, or not to be told. `memory` is as the run left it; it may be made again.
 */
void verify_outputs(struct verify *v, const struct model_launch *launch, const struct reference_module *module,
                    struct reference_launch *run, struct verify_memory *memory, struct judgement *j);
/* Fills in what a launch, its module and its memory say. */
void verify_fill_launch(const struct verify *v, const struct model_launch *launch,
                        const struct reference_module *module, const struct verify_memory *memory,
                        struct reference_launch *out);

/* May the host read and write it at any time, without a copy? */
bool verify_shared_with_host(const struct model_allocation *allocation);
/* Could anybody but the launch have written to the allocation while it ran? */
bool verify_concurrent(const struct verify *v, const struct model_launch *launch, uint32_t allocation);
/* What a library call may have written counts as written: exactly, where its arguments tell what that is. */
void verify_operator(struct verify *v, const struct model_operator *op);
/* Does a call between the two seqs, of another stream than `stream`, perhaps write to the allocation? */
bool verify_operator_beside(const struct model *model, uint64_t first_seq, uint64_t last_seq, uint32_t stream,
                            const struct model_allocation *allocation);
/* Frees *memory and makes it anew. False: *j says why not. */
bool verify_make_memory(struct verify *v, const struct model_launch *launch, bool everything,
                        struct verify_memory *memory, struct judgement *j);

/* Fills `other` of the first uninitialised shared or local load with the global load that its bytes came by. */
void verify_locate_source(struct verify *v, const struct model_launch *launch, const struct reference_launch *run,
                          const struct verify_memory *memory, struct judgement *j);
/* Notes which outputs are made of unwritten bytes; before the launch's stores are merged. The loads in `held` (taken
 * out of it) are told when such an output gets to the host; NULL: they are looked for. `fillings` of the launch, or
 * zeroes when none was tried. */
void verify_trace_unwritten(struct verify *v, const struct model_launch *launch, const struct reference_launch *run,
                            const struct verify_memory *memory, struct verify_fillings *fillings,
                            struct judgement *held);
/* What the launch leaves in region `region` depends on bytes that nobody wrote; `faults` (taken out of it) say so when
 * it gets to the host. */
void verify_stain(struct verify *v, const struct model_launch *launch, struct verify_fillings *fillings, size_t region,
                  struct judgement *faults);
/* Notes which outputs are made of shared or local memory that nobody wrote; false: none. */
bool verify_trace_private(struct verify *v, const struct model_launch *launch, const struct reference_launch *run);
/* Makes these outputs unwritten again; after the merge. */
void verify_apply_stains(struct verify *v, const struct model_launch *launch);
/* Reports the loads whose bytes a copy carries to the host, each once. */
void verify_host_copy(struct verify *v, const struct cap_copy *copy, struct judgements *judgements);
/* Reports, as notes, what is held back when no copy to the host came after it that could have shown it. */
void verify_stains_rest(struct verify *v, struct judgements *judgements);
void verify_stains_end(struct verify *v);

#endif
