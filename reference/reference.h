/* reference.h - a launch again, on the CPU: what should have come out, and what went wrong on the way.
 *
 * One interface for every way of knowing that ("strategy"). There is one so far: "ptx", the kernel's own PTX executed
 * with every access checked, which answers "executed as written?". It knows nothing of captures: the caller brings the
 * module's image, the memory and the arguments, and gets back the memory as the launch leaves it, with faults.
 *
 * Layouts. REFERENCE_AS_LAUNCHED puts every region where the program had it. There a store far past the end of one
 * buffer may land in another one and look sound. REFERENCE_ISOLATED therefore moves the regions that the arguments
 * point into terabytes apart, keeping the low 30 bits of their addresses, and rewrites the pointers among the
 * arguments: whatever leaves its own buffer then hits nothing, and the address tells which buffer it left. Pointers
 * that come out of memory still have the program's values; the first access through one is reported as `foreign`, and
 * the caller falls back to the other layout.
 */
#ifndef REFERENCE_REFERENCE_H
#define REFERENCE_REFERENCE_H

#include <opsdebug/status.h>
#include "ptx/opsptx.h"

/* ---- modules ---- */

struct reference_module;

/* `image`: a fat binary or PTX text; `sm`: the device's capability (75), 0: unknown. `name` is for messages. On failure
 * *out is NULL and *diag says why: STATUS_NOT_FOUND no PTX inside, STATUS_NOT_SUPPORTED, STATUS_BAD_INPUT. A kernel
 * with an instruction that the executor lacks is refused by reference_run() only, as "unsupported". Immutable
 * afterwards, may be shared by threads. */
enum status reference_module_open(const void *image, size_t bytes, uint32_t sm, const char *name,
                                  struct reference_module **out, struct diag *diag);
void reference_module_close(struct reference_module *module); /* NULL is fine; no launch may be using it */
/* For the kernel's parameter layout and the sources of lines. Borrowed. */
const struct ptx_module *reference_module_ptx(const struct reference_module *module);

/* What a kernel's PTX leaves open to the device: if nothing, every sound device gives the same bits. Found by looking
 * at the instructions' names only, so a trait may be there without mattering. */
enum reference_trait {
    REFERENCE_ORDER = 1,       /* atomics, reductions: the order of threads matters */
    REFERENCE_CONTRACTION = 2, /* floating mul and add that the device's compiler may fuse */
    REFERENCE_APPROXIMATE = 4, /* .approx, .full: a bound, not a value */
    REFERENCE_MATRIX = 8,      /* mma, wmma: accumulation order and width are the device's own */
    REFERENCE_DECISION = 16, /* floating comparisons, min/max, float to integer: a last bit can become a whole value */
    REFERENCE_IDENTITY = 32, /* clocks, SM and warp numbers */
    /* No freedom, but good to know: it loads 64-bit words from memory, so it may follow pointers that are no arguments.
     */
    REFERENCE_POINTERS = 64,
};
enum { REFERENCE_FREEDOMS = REFERENCE_POINTERS - 1 };
unsigned reference_traits(const struct reference_module *module, const struct ptx_kernel *kernel);

/* May it wait for memory that others write while it runs (a spin loop)? Yes also where that cannot be ruled out. */
bool reference_may_wait(const struct reference_module *module, const struct ptx_kernel *kernel);

/* ---- launches ---- */

enum reference_region_flags {
    REFERENCE_READ_ONLY = 1, /* a __constant__ variable */
    REFERENCE_FREED = 2,     /* the program has freed it */
};
struct reference_region {
    uint64_t address, bytes;
    uint8_t *host; /* contents before, then after the launch; `bytes` long */
    uint32_t id, flags;
    uint8_t *written, *read; /* bitmaps as in struct ptx_range, zeroed by the caller; may be NULL */
    const uint8_t *valid;    /* NULL: all bytes were written before */
    /* With `shadow`: NULL, or one entry per two bytes as in struct ptx_range, zeroed by the caller. */
    struct ptx_shadow_value *shadow;
    uint8_t *shadow_used; /* likewise, as in struct ptx_range */
    uint8_t *tainted;     /* likewise, one byte per byte: enum ptx_shadow_flags */
};
struct reference_pointer { /* the 8-byte word at `offset` of the parameters points into a region */
    uint32_t offset;
    size_t region;
};
struct reference_variable { /* a module variable whose memory is a region */
    const char *name;
    size_t region;
};

enum reference_layout { REFERENCE_AS_LAUNCHED, REFERENCE_ISOLATED };
struct reference_launch {
    const struct reference_module *module;
    const char *kernel; /* as in the PTX */
    uint32_t grid[3], block[3];
    uint32_t dynamic_shared_bytes;
    bool cooperative;
    const void *params;
    uint32_t param_bytes;
    struct reference_region *regions; /* sorted by address, not overlapping */
    size_t region_count;
    const struct reference_pointer *pointers;
    size_t pointer_count;
    const struct reference_variable *variables;
    size_t variable_count;
    enum reference_layout layout;
    /* Every float in fp64 beside; instead of checking accesses. `perturbation` as in struct ptx_launch. */
    bool shadow;
    uint8_t fill; /* of shared and local memory that nobody wrote */
    uint64_t perturbation;
    bool profile;           /* counts what it does (docs/counts.md), unchecked, and ends at the first fault */
    uint64_t rounding_seed; /* not 0: rounds by chance, unchecked, and ends at the first fault */
    uint64_t seed;          /* order of blocks, warps and lanes; 0: as numbered */
    uint32_t workers;
    uint64_t instruction_limit;
    const ptx_flag *cancel; /* as in struct ptx_launch; may be NULL */
    uint32_t sm_count;
};

struct reference_fault {
    struct ptx_fault fault; /* address and offset as the program would have had them */
    size_t region;          /* that was meant, SIZE_MAX: unknown */
};
struct reference_result {
    enum status status;
    const char *reason;             /* static; why it did not run to its end, as a coverage word; NULL: it did */
    struct diag diag;               /* details of the reason */
    struct reference_fault *faults; /* owned */
    size_t fault_count;
    struct ptx_number_event *events; /* owned; with `shadow` */
    size_t event_count;
    struct ptx_profile *profile; /* owned; with `profile`, also after a fault: till then */
    bool foreign;                /* isolated: an address was used that does not derive from the arguments */
    bool unknown_read;           /* a variable without recorded contents was read */
    uint64_t instructions;
    uint64_t tainted_threads; /* with `shadow`: see struct ptx_counts */
};

/* Runs it. `launch->regions[].host`, `written` and `read` are changed. *result is always filled; release it. */
void reference_run(const struct reference_launch *launch, struct reference_result *result);
void reference_result_free(struct reference_result *result);

#endif
