/* opsptx.h - PTX text in, execution on the CPU out. The only public header of libopsptx.a.
 *
 * What it is for: run a CUDA kernel from its PTX, exactly as the PTX ISA defines it, on a machine without a GPU; and,
 * in checked mode, judge every memory access on the way. It knows nothing of captures and nothing of the CUDA API.
 *
 * The life of a kernel here:
 *     ptx_module_load()     text -> immutable module (parsed, resolved, lowered); may be shared by threads
 *     ptx_module_kernel()   its entries, with parameter layout and resource use
 *     ptx_module_variable() its .global and .const variables; the caller gives each a device address and memory
 *     ptx_run()             one grid, run to its end on the calling thread (or `options.workers` threads)
 * There are no globals: any number of modules and launches may be active at once.
 *
 * Memory. Device addresses are 64-bit integers and unrelated to host pointers. The caller describes global memory as
 * ranges; every access is checked to lie inside one range, which is found by binary search in `ranges`, or, when `find`
 * is set, by that call. The .shared, .local and .param spaces belong to the executor; as generic addresses they live in
 * the windows below, which no range may touch. .const variables are ordinary device memory of the caller.
 */
#ifndef OPSPTX_H
#define OPSPTX_H

#ifdef __cplusplus
#include <atomic>
typedef std::atomic<bool> ptx_flag;
#else
#include <stdatomic.h>
typedef atomic_bool ptx_flag;
#endif
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <opsdebug/status.h>

#ifdef __cplusplus
extern "C" {
#else
_Static_assert(sizeof(atomic_bool) == 1, "as C++ has it");
#endif

/* Generic-address windows, 4 GiB each. */
#define PTX_SHARED_WINDOW UINT64_C(0x00fe000000000000)
#define PTX_LOCAL_WINDOW  UINT64_C(0x00fd000000000000)
#define PTX_PARAM_WINDOW  UINT64_C(0x00fc000000000000)
#define PTX_CODE_WINDOW   UINT64_C(0x00fb000000000000) /* addresses of functions */

/* ---- modules ---------------------------------------------------------------------------------------------------- */

struct ptx_module;

/* Parses and lowers `bytes` bytes of PTX (a trailing NUL is allowed). `name` is used in messages only and copied. On
 * failure *out is NULL and *diag (never NULL) says what, where (line, column, caret excerpt) and what was expected.
 * An instruction that the executor lacks does not fail the module: the kernels that can reach it are refused, see
 * ptx_kernel_refusal(). */
enum status ptx_module_load(const char *text, size_t bytes, const char *name, struct ptx_module **out,
                            struct diag *diag);
void ptx_module_free(struct ptx_module *module); /* NULL is fine; no launch may be using it */

/* Several modules as one, as nvcc -rdc=true and cuLink* have it: the joined text, in *out (NUL-terminated, free() it),
 * is a module for ptx_module_load(). External declarations find the definitions of other modules; of weak definitions
 * one remains, for all; a module's own names stay its own (with a suffix where another module has the name, too). A
 * symbol that two modules define, one that is used and defined nowhere, or one that is a function here and a variable
 * there, or declared with other parameters, another size or state space, is BAD_INPUT: *diag (never NULL) names it and
 * the modules, by their `name`. Functions of CUDA's own libraries may stay undefined: what needs one that the executor
 * lacks is refused as usual. */
struct ptx_link_input {
    const char *text; /* NUL-terminated PTX that loads */
    const char *name; /* for messages */
};
enum status ptx_link(const struct ptx_link_input *inputs, size_t count, char **out, struct diag *diag);

struct ptx_version {
    unsigned major, minor; /* .version */
    unsigned target;       /* 75 for sm_75 */
    unsigned address_size; /* 64 */
};
struct ptx_version ptx_module_version(const struct ptx_module *module);

/* An .entry. Pointers live as long as the module. */
struct ptx_param {
    const char *name;
    uint32_t offset, size, align; /* bytes within the packed parameter buffer */
};
struct ptx_kernel {
    const char *name; /* as in the PTX (mangled) */
    const struct ptx_param *params;
    uint32_t param_count, param_bytes;
    uint32_t static_shared_bytes; /* module- and function-scope .shared that the entry can reach */
    uint32_t local_bytes;         /* .local per thread, without calls */
    uint32_t max_threads;         /* product of .maxntid, or 1024 */
    uint32_t required_block[3];   /* .reqntid, or 0 */
    uint32_t instruction_count;
    uint32_t first_line, last_line; /* in the PTX text */
    /* It, or a kernel that it may launch: */
    bool uses_heap;     /* may call malloc or free */
    bool uses_textures; /* may reach an instruction on textures or surfaces */
    bool uses_runtime;  /* may call the device runtime: launch kernels of the module, copy, fill */
};
size_t ptx_module_kernel_count(const struct ptx_module *module);
const struct ptx_kernel *ptx_module_kernel(const struct ptx_module *module, size_t index);
/* NULL when there is no such entry. */
const struct ptx_kernel *ptx_module_find_kernel(const struct ptx_module *module, const char *name);

/* Why the kernel cannot be run here: an instruction (or another feature) that the executor lacks, in the kernel or in a
 * function that it can reach; directly, or, when any of them calls indirectly, in any function of the module. Its name
 * is in `text`, with line, column and excerpt. NULL: it can. ptx_run() refuses such a kernel before it does anything.
 * The message lives as long as the module. */
const struct diag *ptx_kernel_refusal(const struct ptx_module *module, const struct ptx_kernel *kernel);
/* All that is missing, one message per function and instruction: writes at most `max` of them, returns how many there
 * are. (A function's list ends at 64.) */
size_t ptx_kernel_missing(const struct ptx_module *module, const struct ptx_kernel *kernel, const struct diag **list,
                          size_t max);

enum ptx_opaque { PTX_NOT_OPAQUE, PTX_TEXREF, PTX_SAMPLERREF, PTX_SURFREF };

/* A module-scope .global or .const variable with a home in device memory. An opaque one holds nothing that can be read:
 * its address is the handle by which instructions name the texture or surface that it is bound to. */
struct ptx_variable {
    const char *name;
    uint64_t size;
    uint32_t align;
    bool constant; /* .const */
    bool external; /* .extern without a definition here: the caller must find the address elsewhere */
    bool managed;  /* .attribute(.managed) */
    enum ptx_opaque opaque;
};
size_t ptx_module_variable_count(const struct ptx_module *module);
const struct ptx_variable *ptx_module_variable(const struct ptx_module *module, size_t index);
/* Writes the initial contents (zeros where none are given) of variable `index` to `out` (`size` bytes). `addresses`
 * holds the device address of every variable, by index; initialisers that name other variables or functions need them.
 */
enum status ptx_module_variable_init(const struct ptx_module *module, size_t index, const uint64_t *addresses,
                                     void *out);

/* Source position of an instruction, from .loc and .file; strings live as long as the module, NULL where unknown. */
struct ptx_source {
    const char *file,
        *function; /* `function`: from `function_name` of .loc for inlined code, else the enclosing PTX function */
    uint32_t line, column;
    uint32_t ptx_line;
};
/* The position of the instruction at PTX line `ptx_line`: frames[0] innermost, then each `inlined_at` caller. Returns
 * the number of frames written, at most `max`. */
size_t ptx_module_source(const struct ptx_module *module, uint32_t ptx_line, struct ptx_source *frames, size_t max);

/* ---- memory ----------------------------------------------------------------------------------------------------- */

enum ptx_range_flags {
    PTX_RANGE_READ_ONLY = 1, /* stores are faults (.const) */
    PTX_RANGE_FREED = 2,     /* checked mode: the bytes are there, but any access is a use after free */
};
enum { PTX_SHADOW_CHUNK = 512 };
struct ptx_range {
    uint64_t address, bytes; /* [address, address + bytes) */
    void *host;              /* backing memory, `bytes` long */
    uint32_t id, flags;      /* id: the caller's, returned in faults */
    /* One bit per byte (bit k of byte k/8 from the range's start), each NULL or (bytes + 7) / 8 long: */
    uint8_t *written; /* out: set by every store, atomic or reduction of this launch */
    uint8_t *read;    /* out: set by every load of a byte that this launch had not written before */
    /* Shadow mode: NULL, or one entry per two bytes, (bytes + 1) / 2 long, zeroed by the caller: set by every
     * floating-point store, cleared to kind NONE by any other. A load takes the entry when its kind fits, else the
     * loaded value itself. */
    struct ptx_shadow_value *shadow;
    /* Shadow mode: NULL, or one byte per PTX_SHADOW_CHUNK bytes of the range, begun ones included, zeroed together with
     * `shadow`: not 0 where entries may be other than zero. Where it is 0 they are not looked at, so that data without
     * entries costs nothing. */
    uint8_t *shadow_used;
    /* Shadow mode, out: NULL, or one byte per byte, `bytes` long, zeroed by the caller: enum ptx_shadow_flags (LOST,
     * DECIDED, TIMED) of what was stored there last. They travel through memory that has `shadow`. */
    uint8_t *tainted;
    const uint8_t
        *valid; /* in, checked mode: bytes that were ever written before this launch; others are uninitialised */
};

/* Shadow mode: what is known of one stored value beside its bits. `wide` is the value that the same control flow gives
 * when every floating-point operation is done in fp64 (of doubles: in double-double) on the operands' shadows. */
enum ptx_shadow_kind {
    PTX_SHADOW_NONE,
    PTX_SHADOW_F16,
    PTX_SHADOW_BF16,
    PTX_SHADOW_F32,
    PTX_SHADOW_F64,
    PTX_SHADOW_REST, /* a later entry of a double, see ptx_shadow_low() */
};
/* What else is known of a value, and, but for INEXACT, of an integer, too. docs/shadow.md says how they spread. */
enum ptx_shadow_flags {
    PTX_SHADOW_INEXACT = 1, /* some operation behind it was rounded */
    PTX_SHADOW_LOST = 2,    /* made of the bits of a rounded float in a way that is not followed: `wide` is at fault */
    PTX_SHADOW_DECIDED = 4, /* another way of rounding might have taken another decision, and given any other value */
    PTX_SHADOW_TIMED = 8,   /* depends on clocks, on the place in the device, or on what an atomic found */
};
struct ptx_shadow_value {
    double wide;
    uint32_t origin; /* PTX line of the instruction that contributed most of the present error, or that made the NaN; 0:
                        none */
    uint32_t depth : 24; /* floating-point operations on the longest path from an input, saturating */
    uint32_t kind : 4;   /* enum ptx_shadow_kind of the value whose first byte is here; NONE: the bits are all there is
                            to know, `wide` means nothing outside the executor */
    uint32_t flags : 4;  /* enum ptx_shadow_flags */
};
/* A double's wide value has twice its digits: `entry->wide` plus this, which is 0 for other kinds. `entry` lies among
 * the entries of a range. */
static inline double ptx_shadow_low(const struct ptx_shadow_value *entry)
{
    return entry->kind == PTX_SHADOW_F64 && entry[1].kind == PTX_SHADOW_REST ? entry[1].wide : 0;
}

/* ---- textures and surfaces: docs/textures.md ---- */

enum { PTX_TEXTURE_MAX_LEVELS = 16 };
enum ptx_texel_kind { PTX_TEXEL_UNSIGNED, PTX_TEXEL_SIGNED, PTX_TEXEL_FLOAT };
enum ptx_addressing { PTX_ADDRESS_WRAP, PTX_ADDRESS_CLAMP, PTX_ADDRESS_MIRROR, PTX_ADDRESS_BORDER };

/* One level of detail. Element (x, y, z) of it, or (x, y) of layer z, lies z * slice_bytes + y * row_bytes + x * (size
 * of an element) bytes behind its start. */
struct ptx_texture_level {
    void *host;       /* an array's memory; NULL: device memory at `address`, which is accessed like any other */
    uint64_t address; /* aligned to the size of an element */
    uint64_t row_bytes, slice_bytes;
    uint32_t width, height, depth; /* in elements; what a geometry lacks is 1 */
};

/* What a handle stands for: a texture with its sampler, or a surface, which needs only the first part. */
struct ptx_texture {
    bool surface;     /* for suld, sust, sured; else for tex, tld4 */
    uint32_t layers;  /* 1 when not layered; six for each cube */
    uint8_t channels; /* 1, 2 or 4 */
    uint8_t bits;     /* of a channel: 8, 16 or 32; a float: 16 or 32 */
    enum ptx_texel_kind kind;
    uint32_t level_count; /* at least 1; surfaces use the first */
    struct ptx_texture_level levels[PTX_TEXTURE_MAX_LEVELS];
    bool linear_memory;                /* tex1Dfetch on it gives 0 outside; told by suq.memory_layout */
    enum ptx_addressing addressing[3]; /* WRAP and MIRROR are CLAMP where coordinates are not normalised */
    bool linear, mip_linear;           /* filters; textures of integers are never filtered */
    bool normalised;                   /* coordinates: 0 to 1 */
    bool read_normalised;              /* integers of 8 and 16 bits are read as floats of 0 to 1, or -1 to 1 */
    bool srgb;                         /* red, green, blue of 8 bits, read as normalised floats, are linearised */
    bool seamless;                     /* cubes: filtering goes over edges */
    float level_bias, level_min, level_max;
    uint32_t border[4]; /* as the instruction returns it: bits of floats or integers */
};

struct ptx_memory {
    const struct ptx_range *ranges; /* sorted by address, not overlapping */
    size_t range_count;
    /* Optional, asked when `ranges` has no match: fills *range and returns true when `address` is mapped. Called from
     * the launching threads; what it returned must stay mapped until the launch ends. */
    bool (*find)(void *context, uint64_t address, struct ptx_range *range);
    /* Optional: what a handle stands for; false: nothing. Called from the launching threads; the answer must hold until
     * the launch ends. */
    bool (*texture)(void *context, uint64_t handle, struct ptx_texture *out);
    void *context;
};

/* ---- faults ----------------------------------------------------------------------------------------------------- */

enum ptx_fault_kind {
    PTX_FAULT_NONE,
    PTX_FAULT_OUT_OF_BOUNDS, /* no range holds all the bytes */
    PTX_FAULT_MISALIGNED,
    PTX_FAULT_READ_ONLY,     /* store to .const or to a read-only range */
    PTX_FAULT_FREED,         /* checked mode */
    PTX_FAULT_UNINITIALISED, /* checked mode */
    PTX_FAULT_SHARED_RACE,   /* checked mode; `other` is the earlier access */
    PTX_FAULT_GLOBAL_RACE,   /* checked mode; likewise */
    PTX_FAULT_BARRIER,       /* threads of a block wait at different barriers, or some left: nobody can go on */
    PTX_FAULT_TRAP,          /* trap, or brkpt */
    PTX_FAULT_ASSERT,        /* __assertfail; the text went to `print` */
    PTX_FAULT_BAD_CALL,      /* indirect call or branch to no function */
    PTX_FAULT_STACK,         /* recursion too deep, .local exhausted */
    PTX_FAULT_TEXTURE,       /* `address` is no handle of a texture, or of a surface, as the instruction wants it */
};
/* SURFACE: out of bounds with .trap, or misaligned; `address` is the handle, `offset` where in the surface's memory. */
enum ptx_space {
    PTX_SPACE_GLOBAL,
    PTX_SPACE_SHARED,
    PTX_SPACE_LOCAL,
    PTX_SPACE_CONST,
    PTX_SPACE_PARAM,
    PTX_SPACE_SURFACE,
};

struct ptx_access {
    uint32_t ptx_line; /* resolve with ptx_module_source() */
    uint32_t block[3], thread[3];
    bool write, atomic;
};
struct ptx_fault {
    enum ptx_fault_kind kind;
    enum ptx_space space;
    struct ptx_access access, other; /* other.ptx_line is 0 when there is none */
    uint64_t address;                /* as accessed; offsets within the window for shared and local */
    uint32_t bytes;
    /* The range that the bytes belong to, or, when out of bounds, the one that the address was most likely meant for:
     * the range its base pointer pointed into when that is known (provenance), else the nearest one. */
    bool has_range;
    bool provenance; /* range_id comes from the pointer's origin, not from distance */
    uint32_t range_id;
    int64_t offset;   /* address - range.address; >= range bytes: past the end; < 0: before the start */
    uint64_t count;   /* how often this (kind, instruction, range) occurred, all threads */
    bool same_value;  /* races of writes: the later one stored what was there already */
    uint64_t threads; /* by how many accesses of distinct threads, at most `count`; 0 when not counted */
    /* Whose thread it was: NULL that of the launch, else a kernel that a kernel launched. Of a copy or fill that a
     * kernel asked for: the one that did, and `access` is the call. */
    const struct ptx_kernel *kernel;
};

/* ---- numbers ---- */

enum ptx_number_kind {
    PTX_NUMBER_NAN,       /* a NaN from operands none of which is NaN */
    PTX_NUMBER_INF,       /* an infinity from finite operands */
    PTX_NUMBER_AMPLIFIED, /* the result's relative error is far above its operands': cancellation */
    PTX_NUMBER_DECIDED,   /* a comparison, or a conversion to an integer, nearer than its operands' errors */
};
struct ptx_number_event { /* one per (kind, instruction); ordered by (ptx_line, kind) */
    enum ptx_number_kind kind;
    struct ptx_access access; /* of the first block and thread; write and atomic mean nothing */
    uint32_t operand_count;
    double operands[3], operands_wide[3]; /* the first time; for AMPLIFIED and DECIDED the worst time */
    double result, result_wide;           /* DECIDED: the distance to the other outcome, and what the errors may be */
    double error_in, error_out; /* AMPLIFIED: relative errors of the worst operand and of the result, the worst time;
                                   DECIDED: error_out is 1 - result / result_wide */
    uint64_t count;
};

/* ---- execution -------------------------------------------------------------------------------------------------- */

struct ptx_counts {
    uint64_t thread_instructions; /* executed, per lane */
    uint64_t warp_instructions;
    uint64_t blocks, threads;
    uint64_t device_launches; /* grids that kernels started; copies and fills are none. All of this counts them, too */
    uint64_t tainted_threads; /* shadow mode: that branched on what is DECIDED or TIMED */
    uint64_t global_read_bytes, global_write_bytes;
};

/* ---- exact counts of a launch (ptx_launch.profile): docs/counts.md ----
 *
 * Threads are counted one by one and always exactly. What is a warp's (requests, sectors, bank conflicts, divergence)
 * is counted where its lanes run in lock-step, as they do but for kernels and warps that docs/lanes.md names; `alone`
 * says how much that was not. All figures are sums, sets or maxima over the launch: they do not depend on `workers`,
 * unless the kernel's own control flow depends on what other blocks did. */

enum ptx_class {                 /* of an instruction: the unit of a multiprocessor that it is for */
                 PTX_CLASS_FP16, /* f16 and bf16, pairs too */
                 PTX_CLASS_FP32,
                 PTX_CLASS_FP64,
                 PTX_CLASS_INTEGER, /* and bits, comparisons of integers, predicates */
                 PTX_CLASS_CONVERSION,
                 PTX_CLASS_SPECIAL, /* rcp, sqrt, rsqrt, sin, cos, lg2, ex2, tanh */
                 PTX_CLASS_TENSOR,  /* mma, wmma.mma */
                 PTX_CLASS_LOAD,    /* and ldmatrix, wmma.load, cp.async */
                 PTX_CLASS_STORE,
                 PTX_CLASS_ATOMIC,
                 PTX_CLASS_TEXTURE, /* and surfaces */
                 PTX_CLASS_BRANCH,  /* and calls, returns, exits */
                 PTX_CLASS_BARRIER, /* and fences, mbarrier */
                 PTX_CLASS_SHUFFLE, /* what the lanes of a warp tell each other */
                 PTX_CLASS_MOVE,    /* mov, selp, slct, cvta */
                 PTX_CLASS_OTHER,
                 PTX_CLASS_COUNT
};
const char *ptx_class_name(enum ptx_class c);

/* Floating-point operations by the type of their operands. Additions, subtractions, multiplications, divisions, roots,
 * the special functions, and atomic additions are one each, fma two; on pairs twice that. Comparisons, minima, maxima,
 * changes of sign and conversions are none. A matrix product of m x n x k is 2 * m * n * k, by the type of a and b. */
enum ptx_flop_type {
    PTX_FLOP_F16,
    PTX_FLOP_BF16,
    PTX_FLOP_F32,
    PTX_FLOP_F64,
    PTX_FLOP_TENSOR_F8,
    PTX_FLOP_TENSOR_F16,
    PTX_FLOP_TENSOR_BF16,
    PTX_FLOP_TENSOR_TF32,
    PTX_FLOP_TENSOR_F64,
    PTX_FLOP_TENSOR_INTEGER, /* 8, 4 and 1 bit: operations on integers */
    PTX_FLOP_TYPE_COUNT
};
const char *ptx_flop_type_name(enum ptx_flop_type t);

/* Accesses to one space. A request is one instruction of one warp in lock-step, of those of its lanes that execute it
 * together and whose guards are true. */
struct ptx_access_counts {
    uint64_t accesses;                /* of threads */
    uint64_t read_bytes, write_bytes; /* as the threads asked for them; an atomic reads and writes */
    uint64_t requests;
    uint64_t request_accesses; /* of the threads in them: fewer than `accesses` when some ran alone */
    /* Global and local memory: different 32-byte sectors and 128-byte lines touched, summed over requests; and the
     * least number of sectors that hold as many different bytes. Words of local memory lie side by side for the lanes
     * of a warp. */
    uint64_t sectors, ideal_sectors, lines;
    /* Shared memory: passes that the 32 banks of 4 bytes need, and would need without conflicts. */
    uint64_t wavefronts, ideal_wavefronts;
    /* Atomics and reductions: how many requests; the lanes that met at one address, the most of each request summed,
     * and the most of any. */
    uint64_t atomics, same_address, same_address_most;
};

/* One PTX instruction that was executed. */
struct ptx_instruction_counts {
    uint32_t ptx_line;  /* several may share one; resolve with ptx_module_source() */
    const char *opcode; /* lives as long as the module */
    enum ptx_class kind;
    enum ptx_flop_type flop_type; /* where `flops` is not 0 */
    uint64_t threads;             /* that executed it, those included whose guard was false */
    uint64_t guarded_off;         /* and these alone */
    uint64_t flops;
    uint64_t warps, warp_threads; /* in lock-step: warps that executed it, and their lanes that did */
    uint64_t branches, divergent; /* bra with a condition, brx: executed by warps; whose lanes did not all go one way */
    struct ptx_access_counts access[5]; /* by enum ptx_space: GLOBAL, SHARED, LOCAL, CONST, PARAM */
};

struct ptx_profile {
    struct ptx_instruction_counts *instructions; /* by line, then by place in it */
    size_t instruction_count;
    /* Sums over them. */
    uint64_t classes[PTX_CLASS_COUNT]; /* thread instructions */
    uint64_t flops[PTX_FLOP_TYPE_COUNT];
    uint64_t threads, guarded_off; /* `threads` is ptx_counts.thread_instructions */
    uint64_t warps, warp_threads;
    uint64_t
        alone; /* of `threads`, those executed one thread at a time: not 0, and what is a warp's is not all known */
    uint64_t branches, divergent;
    struct ptx_access_counts access[5];
    /* Different bytes that were read, written, either, by space. Of .shared and .local: offsets, of all blocks and
     * threads together. Not known for PARAM. */
    struct {
        uint64_t read, written, either;
    } unique[5];
};

/* How matrix instructions add the products of one element to that of c; f64 has fma's, in the order of k or backwards.
 */
enum ptx_matrix_sum {
    PTX_MATRIX_EXACT,      /* about 100 bits, rounded once */
    PTX_MATRIX_SEQUENTIAL, /* fma's of single precision, in the order of k */
    /* As devices: so many products at a time with the sum so far, aligned to the largest and cut off below its 25th
     * bit, the result cut to single precision. */
    PTX_MATRIX_BY_4,
    PTX_MATRIX_BY_8,
    PTX_MATRIX_BY_16,
    PTX_MATRIX_SUM_COUNT
};

/* Identity of the launch and of the device as the kernel sees it. Zero-initialise, then set what matters. */
struct ptx_launch {
    const struct ptx_module *module;
    const struct ptx_kernel *kernel;
    uint32_t grid[3], block[3];
    uint32_t dynamic_shared_bytes;
    const void *params;        /* packed, kernel->param_bytes long */
    const uint64_t *variables; /* device address per module variable, by index; NULL when there are none */
    const struct ptx_memory *memory;
    bool cooperative; /* all blocks are resident together; grid sync works */

    /* Options; all zero is: device-like, one worker, in order. */
    bool checked;         /* record faults and go on: a bad load yields 0, a bad store is dropped */
    uint32_t fault_limit; /* distinct faults kept; 0 means 64 */
    uint8_t fill;         /* what every byte of .shared and .local holds before anybody writes it */
    /* Shadow mode, not together with `checked`: fp64 beside every float. Memory faults as in checked mode: a bad load
     * yields 0, a bad store is dropped, nothing is reported. */
    bool shadow;
    /* Not 0: every float loaded from a range without a shadow entry is taken as off by up to half a unit in its last
     * place, by a hash of its address and this seed (its bits stay). Comparing `wide` of two runs gives the
     * conditioning of the problem itself, which no algorithm can beat. */
    uint64_t perturbation;
    /* Not 0: every inexact floating-point operation is rounded up or down by chance, to the nearer neighbour the more
     * often, drawn from this seed; approximate functions are off by up to their bound. The same seed gives the same
     * results. Not together with `checked` or `shadow`. */
    uint64_t rounding_seed;
    /* Not 0: every choice that the PTX ISA leaves open is made otherwise than by default, drawn from this seed: errors
     * of approximate functions within their bounds, contraction, sums of matrix instructions, undefined bits, the order
     * of lanes; `seed` too, when it is 0. docs/arithmetic.md. The same variant gives the same results on one worker.
     * Not together with `shadow` or `rounding_seed`. */
    uint64_t variant;
    enum ptx_matrix_sum matrix_sum; /* of mma and wmma with floats, when `variant` is 0 */
    /* Device mode only, without a variant: fills ptx_result.profile. Of grids that kernels start nothing is counted. */
    bool profile;
    uint64_t seed;   /* 0: blocks, warps and lanes in order; else a seeded order, with turns of seeded length */
    bool one_by_one; /* one thread at a time, never warps in lock-step: slower, same results; so with a
                        seed or a variant */
    /* Only these blocks, in this order: their numbers (x + grid.x * (y + grid.y * z)), each below the grid's count; a
     * block may come more than once. NULL: all. Not with `cooperative`. What the kernel sees (%nctaid ...) is the whole
     * grid. */
    const uint64_t *chosen_blocks;
    uint64_t chosen_count;
    /* Called now and then with how many blocks have ended, of how many; the last time with all, when the launch ends
     * well. By the threads that run blocks, one at a time. NULL: never. */
    void (*progress)(void *context, uint64_t done, uint64_t blocks);
    void *progress_context;
    uint32_t workers;           /* threads for blocks; 0 or 1: on the calling thread only */
    uint64_t instruction_limit; /* thread instructions; 0: none. Reached: STATUS_LIMIT */
    uint64_t time_limit_ns;     /* from ptx_run()'s start; 0: none. Reached: STATUS_LIMIT soon after */
    const ptx_flag *cancel;     /* becomes true: STATUS_CANCELLED soon after */
    void (*print)(void *context, const char *text, size_t bytes); /* device printf and assert text; NULL drops it */
    void *print_context;
    /* The heap of malloc and free: memory of the caller, at `heap_host`, which `memory` has as device memory at
     * `heap_address` (both multiples of 16), for one range. Its first 32 bytes are zero before the first launch that
     * has it; then it belongs to the kernels. Launches that share it may run at the same time. All 0: malloc gives 0.
     */
    uint64_t heap_address, heap_bytes;
    void *heap_host;
    /* The device runtime (docs/ptx.md). Works that a kernel may have in streams at a time; 0: 65536. More fail with
     * cudaErrorLaunchOutOfResources in the kernel. */
    uint32_t device_launch_limit;
    /* cudaDeviceGetAttribute of kernels: false is cudaErrorInvalidValue. NULL: some common ones are known. */
    bool (*device_attribute)(void *context, int attribute, int *value);
    /* cudaGraphSetConditional of kernels. NULL: without effect. By the threads that run blocks, one at a time. */
    void (*set_condition)(void *context, uint64_t handle, uint32_t value);
    void *runtime_context;
    uint64_t launch_id; /* %gridid; of grids that kernels start this, plus a number above 2^32 */
    uint32_t sm_count;  /* %nsmid; 0 means 1 */
};

struct ptx_result {
    enum status status; /* OK; FAULT (unchecked: `faults[0]` ended the launch); LIMIT; CANCELLED; NO_MEMORY; BAD_INPUT;
                           NOT_SUPPORTED */
    struct ptx_fault
        *faults; /* owned; free with ptx_result_free(); ordered by (ptx_line, kind, range), deterministic */
    size_t fault_count;
    uint64_t faults_dropped; /* distinct ones above fault_limit */
    bool guarded;        /* checked mode: it was run in lock-step, and there is nothing to report (docs/guarded.md) */
    const char *doubt;   /* else, why it was run one thread at a time; "": it cannot be guarded; constant text */
    uint32_t doubt_line; /* of the PTX; 0: not known */
    struct ptx_number_event *events; /* shadow mode; owned likewise */
    size_t event_count;
    struct ptx_counts counts;
    uint64_t lane_steps;         /* of the instructions, in lock-step: done one lane after the other */
    struct ptx_profile *profile; /* owned; NULL unless asked for and the launch was started; after a fault or at a limit
                                    it says what was executed till then */
};

/* Runs the launch. *result is always filled (release it with ptx_result_free); the return value is result->status. In
 * checked mode faults do not change the status. A configuration the kernel cannot run with (block too large, zero grid,
 * missing parameter buffer) is STATUS_BAD_INPUT with *diag (may be NULL) filled; a kernel that ptx_kernel_refusal()
 * names is STATUS_NOT_SUPPORTED with that message. */
enum status ptx_run(const struct ptx_launch *launch, struct ptx_result *result, struct diag *diag);
void ptx_result_free(struct ptx_result *result);
/* Adds up what profiles say of one space. */
void ptx_access_counts_add(struct ptx_access_counts *to, const struct ptx_access_counts *from);
void ptx_profile_free(struct ptx_profile *profile); /* of one that was taken out of a result; NULL is fine */

const char *ptx_fault_kind_name(enum ptx_fault_kind kind);

#ifdef __cplusplus
}
#endif
#endif
