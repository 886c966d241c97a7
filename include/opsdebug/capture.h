/* capture.h - what the shim writes and the analyzer reads. The only thing that crosses that border.
 *
 * A capture is a directory of one process, mode 0700, valid at every instant:
 *     capture.bin            one struct cap_header (4096 bytes), mapped shared and updated in place
 *     segment-NNNNNN.rec     records of one thread, append-only, written through a shared mapping
 *     blobs/HH/HASH.zst      contents (snapshots, module images), named by the XXH3-128 of the plain bytes as 32
 *                            hexadecimal digits, HH being the first two; one zstd frame with its content size.
 *                            Written to a temporary name in the same folder and renamed, so a blob is whole or absent.
 *     process-PID/           the capture of another process that was given the same folder (fork, exec)
 *     verify.json            added by `ops-debug verify`, never by the shim
 *
 * A segment is a struct cap_segment (64 bytes) and then records, each 8-byte aligned, up to a record whose size is 0 or
 * the end of the file. The writer fills a record's body first and stores `size` last (release), so a killed process
 * leaves whole records only. Members marked "patched" are written once more later, each with a single aligned store.
 * Space in the file is allocated (not sparse) before it is mapped, so that a full disk cannot raise SIGBUS. `seq` is
 * one counter over all threads of the process: sorting all records by it gives the order of the calls' starts.
 *
 * All integers are little-endian. Bump CAP_VERSION whenever the meaning or layout of anything here changes; readers
 * keep reading every older version. Unknown record types are skipped by their size. Strings are bytes, not
 * NUL-terminated. Ids (string, stack, kernel, ...) count from 1, 0 is "none", and are unique within the capture; the
 * defining record is always written before its first use, but may lie in another segment.
 */
#ifndef OPSDEBUG_CAPTURE_H
#define OPSDEBUG_CAPTURE_H

#include <stdint.h>

#define CAP_MAGIC         UINT64_C(0x0047554245445350) /* "PSDEBUG\0" */
#define CAP_SEGMENT_MAGIC UINT64_C(0x0000474553505344) /* "DSPSEG\0\0" */
enum { CAP_VERSION = 1 };

enum cap_state { CAP_RUNNING = 1, CAP_ENDED = 2, CAP_STEPPED_ASIDE = 3 };

/* Every member behind `version` that says "live" is updated while the program runs; times are CLOCK_MONOTONIC in ns. */
struct cap_header {
    uint64_t magic;
    uint32_t version;
    uint32_t header_bytes; /* sizeof (struct cap_header) */
    uint32_t pid, parent_pid;
    uint64_t start_realtime_ns; /* CLOCK_REALTIME */
    uint64_t tsc_start, mono_start_ns;
    uint64_t tsc_now, mono_now_ns; /* live: a later pair; the two pairs calibrate the TSC */
    uint64_t tsc_hz_estimate;      /* from a short measurement at start; used while the pairs are too close */
    uint32_t state;                /* live: enum cap_state */
    uint32_t reserved0;
    /* Live counters. */
    uint64_t next_seq;
    uint64_t own_tsc; /* time spent in our code inside wrappers, without the real calls, summed over threads */
    uint64_t wrapped_calls;
    uint64_t launches;
    uint64_t records, record_bytes;
    uint64_t snapshots, snapshot_bytes;
    uint64_t dropped_records;   /* no space or no memory */
    uint64_t dropped_snapshots; /* budget, memory, disk */
    uint64_t sentinel_checks;   /* redzones looked at, summed over checks */
    uint64_t helper_tsc;        /* CPU time of our own threads, off the program's path */
    /* Of a capture with a limit (see rotation in docs/capture-format.md): what was dropped to stay within it. */
    uint64_t dropped_before;           /* live: of the program's work before this seq records may be missing; 0: none */
    uint64_t dropped_snapshots_before; /* live: of launches before this seq snapshots may be missing; 0: none */
    uint64_t dropped_segments, dropped_segment_bytes, dropped_launches;
    /* What the tool itself held of the process's memory, see shim/memory.h: limit (0: none) and peak in bytes. */
    uint64_t memory_limit, memory_peak; /* peak: live; 0: not counted, by an older writer */
    uint64_t memory_refused;            /* live: how often something was left out for want of it */
    uint64_t budget_device_tsc; /* live: device time of the tool's own work, in ticks, where measured: with a budget */
    uint64_t start_own_tsc;     /* of own_tsc what the start took, before the first call's record; 0: an older writer */
    uint64_t reserved1[28];
    char shim_version[64]; /* NUL-terminated */
    char reason[256];      /* NUL-terminated: why it stepped aside, when it did */
    char command[3296];    /* NUL-separated argv, truncated; ends with two NULs */
};
_Static_assert(sizeof(struct cap_header) == 4096, "cap_header is one page");

struct cap_segment {
    uint64_t magic;
    uint32_t version, number;
    uint32_t tid, reserved0; /* Linux thread id of the writer, up to the first CAP_WRITER */
    uint64_t first_seq;
    uint64_t replaces[2]; /* numbers + 1 of segments whose place this one has taken, 0 none: they count as deleted */
    uint64_t reserved1[2];
};
_Static_assert(sizeof(struct cap_segment) == 64, "cap_segment");

enum cap_type {
    CAP_STRING = 1,
    CAP_STACK = 2,
    CAP_OBJECT = 3,
    CAP_HOOK = 4,
    CAP_OPTION = 5,
    CAP_NOTE = 6,
    CAP_DEVICE = 10,
    CAP_CONTEXT = 11,
    CAP_STREAM = 12,
    CAP_EVENT = 13,
    CAP_MODULE = 14,
    CAP_KERNEL = 15,
    CAP_CONFIG = 16,
    CAP_ALLOC = 20,
    CAP_FREE = 21,
    CAP_COPY = 22,
    CAP_SET = 23,
    CAP_LAUNCH = 24,
    CAP_SYNC = 25,
    CAP_EVENT_OP = 26,
    CAP_TIMES = 30,
    CAP_SNAPSHOT = 31,
    CAP_DAMAGE = 32,
    CAP_ERROR = 33,
    CAP_CHECKED = 34,
    CAP_DAMAGE_LOOK = 35,
    CAP_HEALTH = 36,
    CAP_HEALTH_CHECKED = 37,
    CAP_END = 40,
    CAP_ORDER = 45,
    CAP_GRAPH = 50,
    CAP_GRAPH_NODE = 51,
    CAP_GRAPH_LAUNCH = 52,
    CAP_PATH = 60,
    CAP_RANGE = 61,
    CAP_FUNCTION = 62,
    CAP_OPERATOR = 63,
    CAP_DETAIL = 64,
    CAP_NAME = 65,
    CAP_REGION = 66,
    CAP_MARK = 67,
    CAP_VALUE = 68,
    CAP_GUARD = 41,
    CAP_RESERVE = 42,
    CAP_BAD_FREE = 43,
    CAP_HELD_DAMAGE = 44,
    CAP_THREAD_STATE = 70,
    CAP_STREAM_STATE = 71,
    CAP_STREAM_VALUE = 72,
    CAP_BUDGET = 73,
    CAP_PACE = 74,
    CAP_HOST_FUNCTION = 75,
    CAP_WRITER = 80,
    CAP_HOST_MAP = 81,
};

struct cap_head {
    uint32_t size; /* whole record in bytes, a multiple of 8; stored last */
    uint16_t type;
    uint16_t scope; /* index (CAP_HOOK) of the outermost hooked function this happened in, 0xffff: none */
    uint64_t seq;
    uint64_t tsc; /* at the start of the call */
};
_Static_assert(sizeof(struct cap_head) == 24, "cap_head");

/* ---- names and places ---- */

struct cap_string { /* text follows: `bytes`, padded with zeros */
    struct cap_head head;
    uint32_t id, bytes;
};

struct cap_stack { /* uint64_t frames[count] follow: return addresses, innermost first, without our own frames */
    struct cap_head head;
    uint32_t id, count;
};

struct cap_object { /* a loaded ELF object; its path is string `path` */
    struct cap_head head;
    uint64_t bias, start, end; /* load bias; executable mapping [start, end) */
    uint32_t path, build_id_bytes;
    uint8_t build_id[24];
};

struct cap_hook { /* one per row of hooks.def, at start */
    struct cap_head head;
    uint32_t index, name;
    uint64_t calls; /* patched from time to time */
};

struct cap_option { /* the effective configuration, one record per option; both are strings */
    struct cap_head head;
    uint32_t name, value;
};

enum cap_note { CAP_NOTE_INFO = 0, CAP_NOTE_LOST = 1 /* something asked for could not be done */ };
struct cap_note_record { /* something of the tool's own that a reader should know */
    struct cap_head head;
    uint32_t kind, text;
};

/* ---- the CUDA objects ---- */

struct cap_device {
    struct cap_head head;
    uint32_t ordinal, name;
    uint32_t major, minor, sm_count, clock_khz, memory_clock_khz, bus_bits;
    uint64_t memory_bytes;
    uint32_t driver_version;
    uint32_t host_access; /* enum cap_host_access */
};
/* Whether kernels reach memory of the host that was neither allocated nor registered with the driver. */
enum cap_host_access { CAP_HOST_ACCESS_UNKNOWN, CAP_HOST_ACCESS_NO, CAP_HOST_ACCESS_YES };

struct cap_context {
    struct cap_head head;
    uint32_t id, device;
    uint64_t handle;
    uint32_t destroyed, reserved; /* 1: this record tells of its end */
};

enum cap_stream_kind { CAP_STREAM_LEGACY, CAP_STREAM_PER_THREAD, CAP_STREAM_CREATED };
struct cap_stream { /* the default streams get a record at first use */
    struct cap_head head;
    uint32_t id, context, kind, flags; /* flags: of cuStreamCreate */
    uint64_t handle;
    uint32_t destroyed, reserved;
};

struct cap_event {
    struct cap_head head;
    uint32_t id, context, flags, destroyed;
    uint64_t handle;
};

/* FATBIN: a container, or those of a program linked as device code, one behind the other at multiples of 8. */
enum cap_module_kind { CAP_MODULE_UNKNOWN, CAP_MODULE_PTX, CAP_MODULE_FATBIN, CAP_MODULE_CUBIN };
struct cap_module { /* image: blob of the bytes as given; zero hash when they could not be read */
    struct cap_head head;
    uint32_t id, kind, context, file; /* file: string, when loaded by name */
    uint64_t handle, image_bytes;
    uint64_t hash_low, hash_high;
};

/* struct cap_kernel_param params[param_count] follow. May come again with the same id: the later one tells more
 * (attributes and layout, which a driver may only be asked for after the kernel's first launch) and replaces the
 * earlier. */
struct cap_kernel {
    struct cap_head head;
    uint32_t id, module, name;
    uint32_t param_count, param_bytes;
    uint32_t static_shared_bytes, local_bytes, registers;
    uint32_t layout_source; /* enum cap_layout */
    uint32_t ptx_version;   /* CU_FUNC_ATTRIBUTE_PTX_VERSION, 0 unknown */
};
enum cap_layout { CAP_LAYOUT_UNKNOWN, CAP_LAYOUT_DRIVER, CAP_LAYOUT_PTX };
struct cap_kernel_param {
    uint32_t offset, size;
};

enum cap_config_flags { CAP_CONFIG_COOPERATIVE = 1, CAP_CONFIG_CLUSTER = 2, CAP_CONFIG_ATTRIBUTES = 4 /* others */ };
struct cap_config { /* a launch shape, interned */
    struct cap_head head;
    uint32_t id, flags;
    uint32_t grid[3], block[3];
    uint32_t dynamic_shared_bytes, reserved;
};

/* ---- what happened ---- */

enum cap_alloc_kind {
    CAP_ALLOC_DEVICE,
    CAP_ALLOC_PITCHED,
    CAP_ALLOC_MANAGED,
    CAP_ALLOC_HOST,
    CAP_ALLOC_REGISTERED,
    CAP_ALLOC_ASYNC,
    CAP_ALLOC_POOL,
    CAP_ALLOC_MAPPED /* cuMemMap */,
    CAP_ALLOC_VARIABLE /* a module's global or constant */,
    CAP_ALLOC_IMPORTED,
};
struct cap_alloc {
    struct cap_head head;
    uint32_t id, kind, context, stack;
    uint64_t address, bytes;             /* as the program sees them (for pitched: pitch * rows) */
    uint64_t host_address;               /* of host memory, when it differs; else 0 */
    uint32_t head_redzone, tail_redzone; /* sentinel bytes directly before and behind */
    uint32_t module, name;               /* of a variable */
    uint32_t stream;                     /* of stream-ordered allocations */
    uint32_t constant;                   /* a __constant__ variable */
};

struct cap_free { /* recorded before the real call; id 0: unknown address */
    struct cap_head head;
    uint32_t id, stack;
    uint64_t address;
    uint32_t stream; /* of stream-ordered frees */
    int32_t result;  /* patched: CUresult */
};

enum cap_copy_kind {
    CAP_COPY_UNIFIED,
    CAP_COPY_HTOD,
    CAP_COPY_DTOH,
    CAP_COPY_DTOD,
    CAP_COPY_ARRAY /* any with an array */
};
struct cap_copy {
    struct cap_head head;
    uint64_t target, source;                         /* first byte of each side */
    uint64_t width, height, depth;                   /* bytes, rows, slices; 1D: height = depth = 1 */
    uint64_t target_pitch, source_pitch;             /* bytes between rows; 1D: 0 */
    uint64_t target_slice_pitch, source_slice_pitch; /* bytes between slices; else 0 */
    uint32_t kind, stream;
    uint32_t asynchronous, stack;
    uint64_t call_ns; /* patched: time inside the real call (waiting included when synchronous) */
    int32_t result;   /* patched */
    uint32_t reserved;
};

struct cap_set {
    struct cap_head head;
    uint64_t target, width, height, pitch; /* width in bytes */
    uint32_t value, value_bytes;           /* 1, 2 or 4 */
    uint32_t stream, asynchronous;
    uint64_t call_ns; /* patched */
    int32_t result;   /* patched */
    uint32_t stack;
};

enum cap_launch_flags {
    CAP_LAUNCH_INPUTS = 1,       /* snapshots of what its arguments reach were asked for, before it */
    CAP_LAUNCH_OUTPUTS = 2,      /* and after it */
    CAP_LAUNCH_CAPTURING = 4,    /* recorded into a graph, not executed now */
    CAP_LAUNCH_ARGS_UNKNOWN = 8, /* no layout: params are not there */
    CAP_LAUNCH_BUDGET = 16,      /* snapshots were left out: budget */
};
enum cap_launch_outcome { CAP_LAUNCH_PENDING /* the call has not returned */, CAP_LAUNCH_OK, CAP_LAUNCH_FAILED };
struct cap_launch { /* the packed parameter buffer, param_bytes long, follows, padded with zeros */
    struct cap_head head;
    uint32_t kernel, config, stream, stack;
    uint32_t host_ns; /* patched: time in the real launch call, saturating */
    uint16_t param_bytes;
    uint8_t outcome; /* patched: enum cap_launch_outcome; a failed one is followed by its CAP_ERROR */
    uint8_t flags;
};
_Static_assert(sizeof(struct cap_launch) == 48, "cap_launch");

enum cap_sync_kind { CAP_SYNC_CONTEXT, CAP_SYNC_STREAM, CAP_SYNC_EVENT };
struct cap_sync { /* the program waited */
    struct cap_head head;
    uint32_t kind, object; /* context, stream or event id */
    uint64_t wait_ns;      /* patched */
    int32_t result;        /* patched */
    uint32_t stack;
};

enum cap_event_op { CAP_EVENT_RECORD, CAP_EVENT_STREAM_WAIT };
struct cap_event_op_record {
    struct cap_head head;
    uint32_t op, event, stream, reserved;
};

/* What else orders the program's work, or may, beside CAP_SYNC and CAP_EVENT_OP. Written after the call succeeded, with
 * the seq of its start. Memory that graphs and stream memory operations touch is not told. */
enum cap_order_op {
    CAP_ORDER_STREAM_DONE,   /* cuStreamQuery: all work of the stream is complete */
    CAP_ORDER_EVENT_DONE,    /* cuEventQuery, cuEventElapsedTime: what the event was recorded behind is complete */
    CAP_ORDER_HOST_FUNCTION, /* a function of the host in the stream: it may tell anybody, and wait for anybody */
    CAP_ORDER_WRITE_VALUE,   /* the stream writes a word that somebody may wait for */
    CAP_ORDER_WAIT_VALUE,    /* the stream waits for a word, which anybody may write */
    CAP_ORDER_GRAPH_LAUNCH,  /* not written any more: a CAP_GRAPH_LAUNCH says the same */
    CAP_ORDER_CAPTURE_BEGIN, /* from here on the stream's work goes into a graph, as does that of streams that wait for
                              */
    CAP_ORDER_CAPTURE_END,   /* an event recorded in it */
    CAP_ORDER_FOREIGN,       /* other interfaces, other processes, whole contexts: anything may be ordered by it */
    CAP_ORDER_OPS
};
struct cap_order {
    struct cap_head head;
    uint32_t op, event, stream, reserved; /* ids; 0: none, or unknown */
};
_Static_assert(sizeof(struct cap_order) == 40, "cap_order");

/* ---- what the shim measured or found ---- */

enum cap_time_source { CAP_TIME_EVENTS = 1, CAP_TIME_CUPTI = 2 };
struct cap_time {
    uint32_t launch_delta;   /* launch seq - base_launch */
    uint32_t begin_delta_ns; /* device begin - base_begin_ns */
    uint32_t device_ns;      /* execution, an upper bound when from events */
};
struct cap_times { /* struct cap_time times[count] follow, padded to 8 */
    struct cap_head head;
    uint64_t base_launch, base_begin_ns; /* CLOCK_MONOTONIC ns */
    uint32_t source, count;
};

enum cap_snapshot_when { CAP_BEFORE, CAP_AFTER };
struct cap_snapshot { /* contents of [offset, offset + bytes) of an allocation, in stream order just before or after a
                         launch */
    struct cap_head head;
    uint64_t launch; /* its seq */
    uint32_t allocation, when;
    uint64_t offset, bytes;
    uint64_t hash_low, hash_high;
};

struct cap_damage { /* a redzone no longer holds its sentinel */
    struct cap_head head;
    uint32_t allocation, tail; /* tail: 1 behind the end, 0 before the start */
    int64_t offset;            /* of the first damaged byte, from the allocation's start (tail: >= its bytes) */
    uint64_t length;           /* from the first to the last damaged byte */
    uint64_t clean_seq,
        seen_seq; /* intact for work before clean_seq, damaged when seen at seen_seq (seqs of any records) */
    uint8_t expected[32], found[32]; /* the first min(length, 32) bytes from `offset` */
};

/* Beside a CAP_DAMAGE, what the looking stream itself knows: its own work before clean_seq left the redzone intact, its
 * own work before upto_seq was complete when the damage was seen. So either one of this stream's launches in
 * [clean_seq, upto_seq) did it, or a launch of another stream in the wider window of the CAP_DAMAGE. */
struct cap_damage_look {
    struct cap_head head;
    uint64_t damage; /* seq of the CAP_DAMAGE */
    uint64_t clean_seq, upto_seq;
    uint32_t stream, reserved;
};

struct cap_error { /* a hooked call returned an error (CUDA_ERROR_NOT_READY excepted) */
    struct cap_head head;
    int32_t code;
    uint32_t name; /* string: CUDA_ERROR_... */
    uint32_t stack, reserved;
};

struct cap_checked { /* a sentinel check ran: how far, how many; for coverage */
    struct cap_head head;
    uint64_t upto_seq; /* work before this seq was complete when it looked */
    uint32_t redzones, damaged;
};

/* A range of memory that a launch's arguments reach holds NaN, Inf or values above the threshold, and at the places
 * that were looked at held none just before the launch. */
enum cap_health_type { CAP_HEALTH_UNKNOWN, CAP_HEALTH_F32 };
enum cap_health_flags {
    CAP_HEALTH_FULL = 1,   /* every word of the range was looked at (or its first `words`), not a sample */
    CAP_HEALTH_INPUTS = 2, /* another range that the arguments reach held such values before: perhaps only passed on */
};
struct cap_health {
    struct cap_head head;
    uint64_t launch;           /* its seq */
    uint32_t allocation, type; /* type: enum cap_health_type, judged from the contents */
    uint64_t offset, bytes;    /* the range, from the allocation's start */
    uint64_t first;            /* offset in the allocation of the first such value among those looked at */
    uint64_t words;            /* 32-bit words looked at */
    uint32_t nan, inf, over;   /* how many of them */
    uint32_t flags;
    float threshold;
    uint32_t reserved;
};
_Static_assert(sizeof(struct cap_health) == 96, "cap_health");

struct cap_health_checked { /* for coverage: what was looked at since the record before */
    struct cap_head head;
    uint32_t launches, ranges;   /* ranges: pieces of memory around those launches */
    uint32_t floats, reported;   /* ranges that look like fp32; CAP_HEALTH records */
    uint32_t left_out, reserved; /* launches or ranges for which there was no room */
};

/* ---- what the program says about itself: NVTX ranges, opsdebug.h; and what libraries are asked to do ---- */

struct cap_path { /* a stack of pushed ranges, as one name: "step.layers.0.mlp"; see docs/scopes.md */
    struct cap_head head;
    uint32_t id, parent; /* parent: path, 0 none */
    uint32_t domain, text;
};

enum cap_range_kind {
    CAP_RANGE_PUSH,
    CAP_RANGE_POP,
    CAP_RANGE_START, /* by id, not part of any path; may end in another thread */
    CAP_RANGE_END,
    CAP_RANGE_MARK,
    CAP_RANGE_THREAD_END, /* the thread is over: its number may come again */
};
struct cap_range {
    struct cap_head head;
    uint32_t kind, thread; /* thread: Linux thread id, as in cap_segment */
    uint32_t path;         /* of the thread from here on; 0 none */
    uint32_t iteration;    /* how often that path had been entered before, in the whole process */
    uint32_t name, domain; /* strings; 0: none, or the default domain */
    uint64_t range;        /* START and END: its number, from 1 */
};

/* A library function with its parameters, once per function that is called. struct cap_parameter params[param_count]
 * follow. `scope` is the index that cap_head.scope has inside its calls. */
enum cap_library { CAP_LIBRARY_CUBLAS, CAP_LIBRARY_CUBLASLT, CAP_LIBRARY_NCCL };
enum cap_parameter_kind {
    CAP_PARAMETER_INTEGER,
    CAP_PARAMETER_ENUM,
    CAP_PARAMETER_POINTER,  /* to what is only read: operand, scalar; the name tells */
    CAP_PARAMETER_TARGET,   /* to what may be written */
    CAP_PARAMETER_POINTERS, /* to a list of pointers to what is only read */
    CAP_PARAMETER_TARGETS,
    CAP_PARAMETER_HANDLE,
    CAP_PARAMETER_OTHER, /* where a handle is put, or a structure, whose value is not recorded */
};
struct cap_parameter {
    uint32_t name;    /* string, as in the library's header: "lda" */
    uint16_t kind;    /* enum cap_parameter_kind */
    uint16_t pointee; /* bytes of what it points to, 0 unknown (void) */
};
struct cap_function {
    struct cap_head head;
    uint32_t id, library, name, param_count;
    uint32_t scope, reserved;
};

/* One call of a library function. uint64_t values[function's param_count] follow; integers are sign-extended. What
 * happened in the same thread between its seq and `end_seq` under the function's scope belongs to it. */
struct cap_operator {
    struct cap_head head;
    uint32_t function, stream; /* stream: 0 unknown */
    uint32_t stack;
    int32_t status;   /* patched: the library's own; meaningful when end_seq is not 0 */
    uint64_t end_seq; /* patched; 0: the call did not return */
    uint64_t host_ns; /* patched */
};

/* More about the call `operator`, found after it had succeeded: struct cap_detail_item items[count] follow. */
enum cap_detail_kind { CAP_DETAIL_INTEGER, CAP_DETAIL_BYTES /* a number in the call's own format, up to 16 bytes */ };
struct cap_detail_item {
    uint32_t name;        /* string: "pointer_mode", "alpha", "A.rows" */
    uint16_t kind, bytes; /* enum cap_detail_kind */
    uint64_t value[2];
};
struct cap_detail {
    struct cap_head head;
    uint64_t operator; /* its seq */
    uint32_t count, reserved;
};

enum cap_dtype { /* element types that buffers are named with; the numbers stay */
                 CAP_DTYPE_UNKNOWN,
                 CAP_DTYPE_F64,
                 CAP_DTYPE_F32,
                 CAP_DTYPE_F16,
                 CAP_DTYPE_BF16,
                 CAP_DTYPE_F8_E4M3,
                 CAP_DTYPE_F8_E5M2,
                 CAP_DTYPE_I8,
                 CAP_DTYPE_U8,
                 CAP_DTYPE_I16,
                 CAP_DTYPE_U16,
                 CAP_DTYPE_I32,
                 CAP_DTYPE_U32,
                 CAP_DTYPE_I64,
                 CAP_DTYPE_U64,
                 CAP_DTYPES
};
enum { CAP_DIMS_MAX = 8 };
struct cap_name { /* from here on, until it is freed or named again, this memory is called so */
    struct cap_head head;
    uint64_t address, bytes;
    uint32_t name, dtype;
    uint32_t allocation; /* that holds it; 0 unknown */
    uint32_t dims;
    uint64_t shape[CAP_DIMS_MAX];
};

/* A piece of an allocation with bounds of its own, given out by an allocator of the program's. Ids are those of
 * allocations. */
enum cap_region_source { CAP_REGION_API, CAP_REGION_NVTX };
struct cap_region {
    struct cap_head head;
    uint32_t id, allocation; /* allocation: that holds it */
    uint64_t address, bytes;
    uint32_t source, ended; /* ended: 1: this record tells of its end */
    uint32_t name, stack;
};

enum cap_mark_kind { CAP_MARK_STEP, CAP_MARK_TEXT, CAP_MARK_CHECKPOINT, CAP_MARK_ASSERT_FINITE };
struct cap_mark { /* what the program says through opsdebug.h, in its order among the launches */
    struct cap_head head;
    uint32_t kind, text;
    uint64_t number;         /* STEP: which */
    uint64_t address, bytes; /* CHECKPOINT, ASSERT_FINITE: what is looked at */
    uint32_t dtype, stack;
    uint32_t allocation, stream;
};

struct cap_value { /* contents of a mark's memory, in stream order */
    struct cap_head head;
    uint64_t mark; /* its seq */
    uint64_t bytes;
    uint64_t hash_low, hash_high;
};
/* ---- graphs ----
 *
 * An executable graph has an id and versions. CAP_GRAPH describes it as a whole: at its instantiation (version 1), when
 * another graph took its place by an update, and at its end; its nodes follow, as CAP_GRAPH_NODE records of the same
 * version with the indices 0 to node_count - 1, each after those it depends on. A node whose parameters are changed
 * alone is recorded again with a version of its own: the graph of version V has of each index the newest record that
 * is not newer than V. A child graph's nodes stand in its place, between two empty nodes. */
enum cap_graph_flags {
    CAP_GRAPH_INCOMPLETE = 1, /* not all of it could be asked for: it may do more than its nodes say */
    CAP_GRAPH_DESTROYED = 2,  /* this record tells of its end; no nodes follow */
};
struct cap_graph {
    struct cap_head head;
    uint32_t id, version;
    uint32_t node_count, flags;
    uint32_t context, stack;
    uint64_t handle;
};
_Static_assert(sizeof(struct cap_graph) == 56, "cap_graph");

enum cap_graph_node_kind {
    CAP_NODE_EMPTY,
    CAP_NODE_KERNEL, /* body: the packed arguments, as of a launch */
    CAP_NODE_COPY,   /* body: struct cap_copy; of its head nothing, no stream, stack, times */
    CAP_NODE_SET,    /* body: struct cap_set, likewise */
    CAP_NODE_HOST,
    CAP_NODE_ALLOC, /* body: struct cap_graph_memory */
    CAP_NODE_FREE,  /* likewise; bytes 0 */
    CAP_NODE_EVENT_RECORD,
    CAP_NODE_EVENT_WAIT, /* for work outside of the graph */
    CAP_NODE_CONDITIONAL,
    CAP_NODE_OTHER, /* memory operations, external semaphores, what is newer */
    CAP_NODE_KINDS
};
enum cap_graph_node_flags {
    CAP_NODE_DISABLED = 1,
    CAP_NODE_UNKNOWN = 2,      /* its parameters could not be asked for: no body */
    CAP_NODE_ARGS_UNKNOWN = 4, /* a kernel whose layout is not known: no body */
    CAP_NODE_BODY = 8,         /* in the body of a conditional node: runs as often as that decides */
    CAP_NODE_CHAINED = 16,     /* some edge to it is programmatic: it may start before what it depends on has ended */
};
struct cap_graph_memory {
    uint64_t address, bytes;
};
/* uint32_t dependencies[dependency_count] follow, each an index below its own, padded to 8; then the body. */
struct cap_graph_node {
    struct cap_head head;
    uint32_t graph, version;
    uint32_t index, kind; /* kind: enum cap_graph_node_kind */
    uint32_t flags, type; /* type: CUgraphNodeType */
    uint32_t kernel, config;
    uint32_t dependency_count, body_bytes;
};
_Static_assert(sizeof(struct cap_graph_node) == 64, "cap_graph_node");

struct cap_graph_launch {     /* snapshots, times and errors belong to it as to any launch */
    struct cap_launch launch; /* kernel, config and param_bytes are 0 */
    uint32_t graph, version;
};
_Static_assert(sizeof(struct cap_graph_launch) == 56, "cap_graph_launch");
/* An allocation (its CAP_ALLOC comes first) is a mapping of its own: around [mapped, mapped + mapped_bytes) nothing is
 * mapped up to the ends of [range, range + range_bytes), and an access there faults. After the free all of the range is
 * unmapped, for as long as the process needs no room. */
struct cap_guard {
    struct cap_head head;
    uint32_t allocation, under; /* under: its start lies at the start of the mapping, else its end at the end */
    uint64_t range, range_bytes;
    uint64_t mapped, mapped_bytes;
    uint64_t seed; /* of the random choice in this run */
};
_Static_assert(sizeof(struct cap_guard) == 72, "cap_guard");

/* The program reserved an address range for its mappings, or gave it back. */
struct cap_reserve {
    struct cap_head head;
    uint64_t address, bytes; /* as the program sees it */
    uint64_t side;           /* bytes before and behind that are reserved, too, and never mapped */
    uint32_t asked;          /* 1: at an address of the program's choice, perhaps as a continuation of another range */
    uint32_t freed;          /* 1: given back */
};
_Static_assert(sizeof(struct cap_reserve) == 56, "cap_reserve");

/* What the address of a failed CAP_FREE without an allocation is. */
enum cap_bad_free_kind {
    CAP_BAD_FREE_NOWHERE,    /* nothing that is there now */
    CAP_BAD_FREE_INSIDE,     /* inside a live allocation, at `offset` */
    CAP_BAD_FREE_OTHER_KIND, /* the start of a live allocation, which another function frees */
    CAP_BAD_FREE_HOST,       /* memory of the host that was not allocated here */
};
struct cap_bad_free {
    struct cap_head head;
    uint64_t free; /* seq of the CAP_FREE */
    int64_t offset;
    uint32_t kind, allocation; /* allocation: 0 none */
};
_Static_assert(sizeof(struct cap_bad_free) == 48, "cap_bad_free");

/* Freed memory that was held back (OPSDEBUG_QUARANTINE) no longer holds the pattern it was filled with. */
struct cap_held_damage {
    struct cap_head head;
    uint32_t allocation, reserved;
    uint64_t offset, length;      /* from the first to the last damaged byte among those looked at */
    uint64_t clean_seq, seen_seq; /* as of CAP_DAMAGE; clean_seq is the free's at the earliest */
    uint8_t found[32];            /* the first min(length, 32) bytes from `offset` */
};
_Static_assert(sizeof(struct cap_held_damage) == 96, "cap_held_damage");

/* ---- for a look from outside ----
 *
 * Patched as long as the process lives; all zero until then. See docs/hang.md. */

struct cap_thread_state { /* where a thread of the program is; taken over by another one when it has ended */
    struct cap_head head;
    uint32_t tid;   /* patched: Linux thread id, 0: nobody's */
    uint32_t call;  /* patched: CAP_HOOK index of the driver function that it is inside of, 0xffff: of none */
    uint32_t scope; /* patched: of the outermost hooked function at its newest call */
    uint32_t reserved;
    uint64_t entered_tsc; /* patched: when it entered that newest call */
    uint64_t seq;         /* patched: what the records of that call carry */
};
_Static_assert(sizeof(struct cap_thread_state) == 56, "cap_thread_state");

enum cap_busy { CAP_BUSY_UNKNOWN, CAP_BUSY_NO, CAP_BUSY_YES };
struct cap_stream_state { /* how far a stream got, asked now and then while something takes long */
    struct cap_head head;
    uint32_t stream;      /* patched: 0: of none */
    uint32_t busy;        /* patched: enum cap_busy */
    uint64_t asked_tsc;   /* patched */
    uint64_t changed_tsc; /* patched: when an answer last differed from the one before it */
    uint64_t running; /* patched: seq of the launch that has begun, or comes next, and has not ended; 0: none known */
    uint64_t running_tsc; /* patched: when it was first seen so */
    uint64_t waiting;  /* patched: seq of the launch that has not begun while all before it have ended; 0: none known */
    uint64_t complete; /* patched: seq of the newest launch that was seen to have ended */
};
_Static_assert(sizeof(struct cap_stream_state) == 80, "cap_stream_state");

struct cap_host_function { /* a function of the host that a stream is to call; taken over by another when it returned */
    struct cap_head head;
    uint64_t seq;           /* patched: of the call that put it into the stream, as its CAP_ORDER has; 0: nobody's */
    uint32_t stream, stack; /* patched; the stack of that call */
    uint64_t function;      /* patched: its address */
    uint64_t begun_tsc;     /* patched: 0: not yet */
    uint32_t tid, reserved; /* patched: the thread that it runs in */
};
_Static_assert(sizeof(struct cap_host_function) == 64, "cap_host_function");

/* A stream waits for a word of memory, or writes it. Written after the call succeeded. */
enum cap_stream_value_op { CAP_VALUE_WAIT, CAP_VALUE_WRITE };
struct cap_stream_value {
    struct cap_head head;
    uint32_t op, stream;
    uint64_t address, value;
    uint32_t bytes, flags; /* bytes: 4 or 8; flags: as given */
    uint32_t stack, reserved;
};
_Static_assert(sizeof(struct cap_stream_value) == 64, "cap_stream_value");

/* What a budget of the tool's own time made it leave out: one record per part, patched as long as the process lives;
 * only when there is a budget. */
enum cap_budget_part { /* in the order in which they are given up */
                       CAP_BUDGET_TIMES,
                       CAP_BUDGET_STACKS, /* of launches, copies, sets and waits */
                       CAP_BUDGET_HEALTH,
                       CAP_BUDGET_SNAPSHOTS,
                       CAP_BUDGET_LOOKS,      /* at redzones, after launches, copies and sets */
                       CAP_BUDGET_SYNC_LOOKS, /* before waits */
                       CAP_BUDGET_PARTS
};
struct cap_budget {
    struct cap_head head;
    uint32_t part;
    float share;             /* the budget: of wall time, 0.05 is 5 % */
    uint32_t level;          /* patched: one of 2^level is done */
    uint32_t highest;        /* patched: the highest level so far */
    uint64_t taken, skipped; /* patched */
    uint64_t own_tsc;        /* patched: what the part cost the program's threads */
};
_Static_assert(sizeof(struct cap_budget) == 64, "cap_budget");

/* Looks of ours that were left out so that they take no more than a share of the device's time. */
enum cap_pace_kind { CAP_PACE_REDZONES, CAP_PACE_HEALTH, CAP_PACE_KINDS };
struct cap_pace {
    struct cap_head head;
    uint32_t kind;
    float share;             /* in each context, of its time; and what five seconds give, in advance */
    uint64_t taken, skipped; /* patched */
    uint64_t device_ns;      /* patched: what they took, by those that were measured */
};
_Static_assert(sizeof(struct cap_pace) == 56, "cap_pace");

/* A thread that ended has handed its segment on: what follows in the segment is of thread `tid`. */
struct cap_writer {
    struct cap_head head;
    uint32_t tid, reserved;
};

/* The host's memory when the device stopped at an illegal address: one record per mapping that the program could read.
 * Memory that the driver knows may lie in it, too. */
enum cap_host_map_kind { CAP_HOST_MAP_OTHER, CAP_HOST_MAP_STACK, CAP_HOST_MAP_HEAP, CAP_HOST_MAP_FILE };
struct cap_host_map {
    struct cap_head head;
    uint64_t start, end;
    uint32_t kind, path; /* path: string, of a file */
};
_Static_assert(sizeof(struct cap_host_map) == 48, "cap_host_map");

struct cap_end { /* the process ends in an orderly way */
    struct cap_head head;
    uint32_t live_allocations, reserved;
    uint64_t live_bytes;
};

#endif
