/* model.h - what the records of a capture add up to: kernels, launches, allocations with their lifetimes, and what was
 * found.
 *
 * Built once from a capture and then read-only; pointers into it live as long as it does. Everything is in order of the
 * records' seq. A launch's number is its place among the launches, from 1: that is the `launch N` of reports and the
 * `seq` of the JSON; the record's own seq counts records of all types and is never shown.
 */
#ifndef ANALYZER_MODEL_H
#define ANALYZER_MODEL_H

#include "analyzer/address_list.h"
#include "analyzer/capture_read.h"
#include "analyzer/operator.h"

struct model_graph;

struct model_kernel {
    const struct cap_kernel *record;
    const struct model_graph *graph; /* that it stands for; NULL: it is a kernel */
    const struct cap_module *module; /* NULL: unknown */
    const char *mangled;             /* as in the PTX */
    char *name;                      /* owned; demangled, without parameters and return type */
    char *full_name;                 /* owned; demangled with them */
};

struct model_allocation {
    const struct cap_alloc *record;
    uint32_t id;
    uint64_t address, bytes;
    uint64_t seq;      /* alive for records with seq in (seq, free_seq) */
    uint64_t free_seq; /* UINT64_MAX: not freed */
    uint32_t free_stack;
    bool released;                         /* not by a free, but with its context */
    const struct model_allocation *parent; /* of a region inside it; NULL: an allocation, see docs/scopes.md */
};

struct graph_contents;

struct model_place {         /* what a launch belongs to, see docs/scopes.md */
    const char *module_path; /* the ranges its thread had pushed, "" none */
    uint32_t iteration;      /* of that path */
    uint32_t operator;       /* number of the library call it was launched in, 0 none */
};

/* There may be tens of millions: what the record has is read there, what few launches have stands in lists beside. */
struct model_launch {
    const struct cap_launch *record; /* of a graph: the first part of its struct cap_graph_launch */
    struct model_kernel *kernel;     /* of a graph: what stands for it */
    const struct cap_config *config; /* of a graph: empty */
    uint64_t wait_ns : 56;           /* its share of the program's waiting, see model_times.c */
    uint64_t time_source : 7;        /* enum cap_time_source, 0: not measured */
    uint64_t node : 1;               /* a node that is run again: part of a struct model_node_launch */
    uint32_t number;                 /* from 1 */
    uint32_t device_ns;              /* execution; meaningful when time_source is not 0 */
    uint32_t place;                  /* in model.places */
    uint32_t snapshots;              /* its first one in model.snapshots, from 1; 0: none */
};
_Static_assert(sizeof(struct model_launch) <= 3 * sizeof(void *) + 24, "one more field costs every launch");

/* A node of a graph's launch as a launch of its own: its number is that launch's, its memory that of `contents`. */
struct model_node_launch {
    struct model_launch launch;
    const struct graph_contents *contents;
};

struct model_refusal {
    uint32_t launch; /* number */
    const struct cap_error *error;
};

struct model_mark { /* see marks.h */
    const struct cap_mark *record;
    const struct cap_value *value; /* NULL: not looked at */
    size_t number;                 /* from 1 */
    bool has_step;
    uint64_t step; /* the newest one that had begun, in any thread */
    const char *module_path;
};

/* An allocation comes to life or ends, for model_live.c. */
struct model_change {
    uint64_t seq;
    struct model_allocation *allocation;
    bool freed;
};

struct model {
    struct capture *capture; /* borrowed */
    struct model_kernel *kernels;
    size_t kernel_count;
    struct model_allocation *allocations;
    size_t allocation_count;          /* regions included */
    struct cap_alloc *region_records; /* owned; what regions have for a record */
    size_t region_count;
    struct model_launch *launches;
    size_t launch_count;
    struct model_place *places; /* the first one is nowhere */
    size_t place_count;
    struct model_refusal *refusals; /* of launches that failed, in order */
    size_t refusal_count;
    struct model_operator *operators;
    size_t operator_count;
    struct model_mark *marks;
    size_t mark_count;
    const struct cap_name **names; /* of buffers, in order */
    size_t name_count;
    struct model_change *changes;
    size_t change_count;
    const struct cap_snapshot **snapshots; /* by (launch, when, allocation, offset) */
    size_t snapshot_count;
    const struct cap_damage **damages;
    size_t damage_count;
    const struct cap_damage_look **looks; /* what the looking stream knows of each damage */
    size_t look_count;
    const struct cap_reserve **reserves; /* address ranges reserved and given back by the program */
    size_t reserve_count;
    const struct cap_host_map **host_maps; /* the host's memory when the device stopped */
    size_t host_map_count;
    size_t guard_count; /* allocations with guard pages */
    const struct cap_error **errors;
    size_t error_count;
    const struct cap_free **bad_frees; /* of addresses that were not allocated */
    size_t bad_free_count;
    const struct cap_note_record **notes;
    size_t note_count;
    const struct cap_option **options;
    size_t option_count;
    const struct cap_device *device; /* the first one, NULL: none */
    const struct cap_end *end;       /* NULL: the process was killed, or still runs */
    uint64_t redzones_checked;
    bool has_paths;              /* a launch or operator has a module path */
    struct model_graph **graphs; /* executable ones */
    size_t graph_count;
    bool uses_graphs;   /* work ran that the records do not show one by one */
    bool records_order; /* the shim records all that orders work (CAP_ORDER), and each copy of a batch */
    struct map kernel_index, allocation_index, graph_index; /* id -> index */
    struct map operator_index;                              /* seq -> index */
};

enum status model_build(struct capture *capture, struct model **out, struct diag *diag);
void model_free(struct model *model); /* NULL is fine */

/* NULL when there is none. */
struct model_allocation *model_allocation_by_id(const struct model *model, uint32_t id);
struct model_launch *model_launch_by_number(const struct model *model, size_t number);
struct model_launch *model_launch_by_seq(const struct model *model, uint64_t seq);
/* The part of a snapshot that lies in `a`, an allocation or a piece of one: where in `a`, where in the contents, how
 * long. False: none. */
struct snapshot_part {
    uint64_t offset, skip, bytes;
};
bool model_snapshot_part(const struct cap_snapshot *snapshot, const struct model_allocation *a,
                         struct snapshot_part *out);
struct model_operator *model_operator_by_number(const struct model *model, size_t number);
struct model_mark *model_mark_by_number(const struct model *model, size_t number);
struct model_operator *model_operator_by_seq(const struct model *model, uint64_t seq);
/* The value of an option of the run, or NULL. */
const char *model_option(const struct model *model, const char *name);
/* The packed parameter buffer, record->param_bytes long; NULL when it was not recorded. */
const uint8_t *model_launch_params(const struct model_launch *launch);
/* The device ran it in the program's own order: it is neither failed nor a node of a graph being captured. */
bool model_launch_ran(const struct model_launch *launch);
static inline uint64_t model_launch_seq(const struct model_launch *launch)
{
    return launch->record->head.seq;
}
/* In the launch call. */
static inline uint64_t model_launch_host_ns(const struct model_launch *launch)
{
    return launch->record->host_ns;
}
/* NULL: it is a launch of a kernel. */
static inline const struct model_graph *model_launch_graph(const struct model_launch *launch)
{
    return launch->kernel->graph;
}
uint32_t model_launch_version(const struct model_launch *launch); /* of its graph; 0: none */
const struct model_place *model_launch_place(const struct model *model, const struct model_launch *launch);
/* Of a failed launch; NULL: none. */
const struct cap_error *model_launch_error(const struct model *model, const struct model_launch *launch);
/* Its snapshots, from 0, by (when, allocation, offset); NULL: no more. */
const struct cap_snapshot *model_launch_snapshot(const struct model *model, const struct model_launch *launch,
                                                 size_t index);
/* Of a node that is run again: its memory, in place of snapshots; else NULL. */
const struct graph_contents *model_launch_contents(const struct model_launch *launch);
/* First launch with seq >= `seq`, as an index; launch_count when there is none. */
size_t model_first_launch_from(const struct model *model, uint64_t seq);

/* At the time of record `seq`, may memory mapped on both sides of `boundary` be one array of the program's? Not when a
 * reserved range begins or ends there, unless the program chose its address. */
bool model_mappings_join(const struct model *model, uint64_t seq, uint64_t boundary);

/* Fills device_ns and wait_ns; called by model_build(). */
void model_times(struct model *model);
/* Fills module paths and operators; called by model_build(). False: no memory. */
bool model_scopes(struct model *model);

/* ---- which allocation lies where, at a moment (model_live.c) ---- */

/* Moves forward only. Allocations alive now, and freed ones whose address range nobody has taken since. */
struct model_live {
    const struct model *model;
    size_t next_change;
    struct address_list live, freed, regions; /* regions: alive */
    bool no_memory;
};
void model_live_start(struct model_live *live, const struct model *model);
void model_live_advance(struct model_live *live, uint64_t seq); /* to just before the record `seq` */
void model_live_end(struct model_live *live);
/* The allocation that holds `address`, or NULL. */
struct model_allocation *model_live_find(const struct model_live *live, uint64_t address);
/* The region that holds it, or NULL: it lies in none. */
struct model_allocation *model_live_find_region(const struct model_live *live, uint64_t address);
/* Whether an allocation holds regions; *first: before the first one of them. */
bool model_live_regions(const struct model_live *live, const struct model_allocation *a, struct address_place *first);
/* The next one of them, NULL: none. */
struct model_allocation *model_live_next_region(const struct model_live *live, const struct model_allocation *a,
                                                struct address_place *place);
/* The region that holds `address`, else the allocation, else NULL. */
struct model_allocation *model_live_find_inner(const struct model_live *live, uint64_t address);
struct model_allocation *model_live_find_freed(const struct model_live *live, uint64_t address);

#endif
