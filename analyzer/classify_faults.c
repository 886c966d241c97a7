/* classify_faults.c - what the checked re-execution saw becomes findings, one per kernel, class and source line. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyzer/fault_pointer.h"
#include "analyzer/finding.h"
#include "analyzer/host_pointer.h"
#include "analyzer/name.h"
#include "analyzer/place.h"

static enum finding_class fault_class(const struct judgement_fault *f)
{
    switch (f->kind) {
    case JUDGEMENT_FAULT_OUT_OF_BOUNDS:
        return f->access.write ? FINDING_OUT_OF_BOUNDS_WRITE : FINDING_OUT_OF_BOUNDS_READ;
    case JUDGEMENT_FAULT_READ_ONLY:
        return FINDING_OUT_OF_BOUNDS_WRITE;
    case JUDGEMENT_FAULT_MISALIGNED:
        return FINDING_MISALIGNED;
    case JUDGEMENT_FAULT_FREED:
        return FINDING_USE_AFTER_FREE;
    case JUDGEMENT_FAULT_UNINITIALISED:
        return FINDING_UNINITIALISED_READ;
    case JUDGEMENT_FAULT_RACE: /* of two branches of a graph: pieces of work, as those of two streams are */
        return f->other_node ? FINDING_STREAM_RACE : FINDING_RACE;
    case JUDGEMENT_FAULT_BARRIER:
        return FINDING_DIVERGENT_BARRIER;
    default:
        return FINDING_FAILED_LAUNCH;
    }
}

/* Of two accesses that race, the one that read is where the wrong value came in; of unwritten bytes the load from the
 * buffer, not the use of its copy. */
static const struct judgement_access *fault_place(const struct judgement_fault *f)
{
    if (f->kind == JUDGEMENT_FAULT_UNINITIALISED && f->other.ptx_line)
        return &f->other;
    return f->kind == JUDGEMENT_FAULT_RACE && f->access.write && f->other.ptx_line && !f->other.write ? &f->other
                                                                                                      : &f->access;
}

/* "allocation 9 (allocated at block.cu:210)", or "a freed allocation", or the plain address. */
static void allocation_text(const struct model *m, struct symbols *symbols, const struct judgement_fault *f, char *out,
                            size_t bytes)
{
    char text[PLACE_ALLOCATION_BYTES];
    const struct model_allocation *a = model_allocation_by_id(m, f->allocation);
    if (!a) {
        snprintf(out, bytes, "address 0x%" PRIx64, f->address);
        return;
    }
    place_allocation(symbols, a, text);
    const char *variable = a->record->kind == CAP_ALLOC_VARIABLE ? capture_string(m->capture, a->record->name) : "";
    if (*variable)
        snprintf(out, bytes, "variable %s", variable);
    else
        snprintf(out, bytes, "%s", text);
}

/* A wide access that starts inside. */
static bool crosses_end(const struct model_allocation *a, const struct judgement_fault *f)
{
    return f->kind == JUDGEMENT_FAULT_OUT_OF_BOUNDS && f->offset >= 0 && (uint64_t)f->offset < a->bytes &&
           f->bytes > a->bytes - (uint64_t)f->offset;
}

static void distance_text(const struct model_allocation *a, const struct judgement_fault *f, char out[96])
{
    if (a && f->offset >= 0 && (uint64_t)f->offset >= a->bytes) {
        uint64_t past = (uint64_t)f->offset - a->bytes;
        if (past)
            snprintf(out, 96, "%" PRIu64 " bytes past the end of ", past);
        else
            snprintf(out, 96, "past the end of ");
    } else if (a && f->offset < 0) {
        snprintf(out, 96, "%" PRIu64 " bytes before the start of ", 0 - (uint64_t)f->offset);
    } else if (a && crosses_end(a, f)) {
        snprintf(out, 96, "past the end of ");
    } else {
        snprintf(out, 96, "outside of any buffer, at ");
    }
}

/* In memory that outlives the launch. */
static bool on_device(const struct judgement_fault *f)
{
    return strcmp(f->space, "global") == 0 || strcmp(f->space, "const") == 0;
}

static void summarise(const struct model *m, struct symbols *symbols, const struct judgement_fault *f,
                      struct finding *out)
{
    char who[96], what[400], where[96], other[96], other_place[160];
    const struct judgement_access *place = fault_place(f);
    const struct judgement_access *partner = place == &f->access ? &f->other : &f->access;
    const struct model_allocation *a = model_allocation_by_id(m, f->allocation);
    place_thread(place, who);
    allocation_text(m, symbols, f, what, sizeof what);
    distance_text(a, f, where);
    const char *verb = f->access.atomic ? "updated atomically" : f->access.write ? "written" : "read";
    switch (f->kind) {
    case JUDGEMENT_FAULT_OUT_OF_BOUNDS:
        if (!on_device(f))
            finding_summary(out, "%u bytes %s outside of the kernel's %s memory by %s", f->bytes, verb, f->space, who);
        else if (a && crosses_end(a, f))
            finding_summary(out, "%" PRIu64 " of %u bytes %s %s%s by %s", f->bytes - (a->bytes - (uint64_t)f->offset),
                            f->bytes, verb, where, what, who);
        else
            finding_summary(out, "%u bytes %s %s%s by %s", f->bytes, verb, where, what, who);
        break;
    case JUDGEMENT_FAULT_READ_ONLY:
        finding_summary(out, "%u bytes written to read-only %s by %s", f->bytes, what, who);
        break;
    case JUDGEMENT_FAULT_MISALIGNED:
        finding_summary(out, "%u bytes %s at an address that is not a multiple of %u, in %s, by %s", f->bytes, verb,
                        f->bytes, what, who);
        break;
    case JUDGEMENT_FAULT_FREED:
        finding_summary(out, "%u bytes at offset %" PRId64 " %s after the free of %s by %s", f->bytes, f->offset, verb,
                        what, who);
        break;
    case JUDGEMENT_FAULT_UNINITIALISED:
        if (f->access.write) {
            finding_summary(out, "%u bytes of %s memory that nobody wrote are stored at offset %" PRId64 " of %s by %s",
                            f->bytes, f->space, f->offset, what, who);
            break;
        }
        if (!on_device(f) && f->other.ptx_line) {
            finding_summary(out,
                            "bytes that nobody ever wrote, from offset %" PRId64
                            " of %s, are copied to %s memory and used there by %s",
                            f->offset, what, f->space, who);
            break;
        }
        if (!on_device(f)) {
            finding_summary(out, "%u bytes of %s memory read that nobody wrote%s%s, by %s", f->bytes, f->space,
                            a ? "; they were copied there from unwritten bytes of " : "", a ? what : "", who);
            break;
        }
        finding_summary(out, "%u bytes read at offset %" PRId64 " that nobody ever wrote, in %s, by %s", f->bytes,
                        f->offset, what, who);
        break;
    case JUDGEMENT_FAULT_RACE:
        place_thread(partner, other);
        place_text(partner, other_place);
        finding_summary(out, "%s memory %s by %s races with the %s at %s by %s", f->space,
                        place->write ? "written" : "read", who, partner->write ? "write" : "read", other_place, other);
        break;
    case JUDGEMENT_FAULT_BARRIER:
        finding_summary(out, "threads of a block wait at different barriers, or some have left; %s waits in vain", who);
        break;
    default:
        finding_summary(out, "the kernel stopped itself (%s), %s", f->detail, who);
        break;
    }
}

static void add_evidence(const struct model *m, const struct judgement_fault *f, struct finding *out)
{
    char who[96], place[160];
    /* Of a copy: where it is used; the load is the finding's own place. */
    const struct judgement_access *a = f->kind == JUDGEMENT_FAULT_UNINITIALISED ? &f->access : fault_place(f);
    place_thread(a, who);
    place_text(a, place);
    char times[64] = "";
    if (f->count > 1)
        snprintf(times, sizeof times, ", %" PRIu64 " accesses in all", f->count);
    if (f->bytes)
        finding_evidence(out, "re-execution", "%s %s of %u bytes at %s by %s%s",
                         f->kind == JUDGEMENT_FAULT_UNINITIALISED && a->write ? "global" : f->space,
                         a->write ? "store" : "load", f->bytes, place, who, times);
    else
        finding_evidence(out, "re-execution", "%s at %s by %s%s", f->detail, place, who, times);
    place_inlined(out, a);
    if (f->kind == JUDGEMENT_FAULT_UNINITIALISED && f->unseen)
        finding_evidence(out, "use",
                         "what was made of it decides no store, and nothing that was recorded brought it to "
                         "the host");
    else if (f->kind == JUDGEMENT_FAULT_UNINITIALISED && f->access.write)
        finding_evidence(out, "use", "the program copied it to the host");
    const struct model_allocation *landed = model_allocation_by_id(m, f->landed);
    if (landed)
        finding_evidence(out, "landed-in", "the bytes belong to %s %u, offset %" PRIu64 "%s",
                         landed->parent ? "region" : "allocation", landed->id, f->address - landed->address,
                         f->landed_changed ? "; its contents did change there on the device" : "");
}

/* Threads that store what is there already do no harm, though nothing orders them; nor does what is thrown away. */
static bool harmless(const struct judgement_fault *f)
{
    return (f->kind == JUDGEMENT_FAULT_RACE && f->same_value) ||
           (f->kind == JUDGEMENT_FAULT_UNINITIALISED && f->unseen);
}

static enum finding_severity fault_severity(const struct judgement_fault *f)
{
    return harmless(f) ? FINDING_NOTE : FINDING_ERROR;
}

/* The finding that the same mistake has made already, or NULL. */
static struct finding *same_cause(const struct model *m, struct findings *fs, enum finding_class class,
                                  const struct model_launch *l, const struct judgement_fault *f)
{
    const struct judgement_access *place = fault_place(f);
    for (size_t i = 0; i < fs->count; i++) {
        struct finding *old = &fs->items[i];
        /* A harmless pair of accesses beside a harmful one is another side of it. */
        if (old->severity != fault_severity(f) && !(harmless(f) && old->class == class))
            continue;
        const struct model_launch *first = model_launch_by_number(m, old->launch);
        /* Nobody initialised it, or somebody freed it: one mistake, whoever reads it afterwards. */
        bool by_allocation = class == FINDING_UNINITIALISED_READ || class == FINDING_USE_AFTER_FREE;
        if (old->class == class && by_allocation && old->allocation && old->allocation == f->allocation)
            return old;
        if (old->class != class || !first || f->other_node || old->other_node ||
            strcmp(model_launch_kernel(m, first, old->node)->full_name,
                   model_launch_kernel(m, l, f->node)->full_name) != 0)
            continue;
        /* A tile that was never filled is read on many lines. */
        if (class == FINDING_UNINITIALISED_READ && !old->allocation && !f->allocation)
            return old;
        /* One missing barrier shows as many pairs of accesses. */
        if (class == FINDING_RACE || class == FINDING_DIVERGENT_BARRIER)
            return old;
        if (place_same(old, place))
            return old;
    }
    return NULL;
}

/* Another launch of the same graph, or of one like it: the same two kernels. */
static struct finding *same_branches(const struct model *m, struct findings *fs, const struct model_launch *l,
                                     const struct judgement_fault *f)
{
    for (size_t i = 0; i < fs->count; i++) {
        struct finding *old = &fs->items[i];
        const struct model_launch *first = model_launch_by_number(m, old->launch);
        if (!first || !old->other_node ||
            model_launch_kernel(m, first, old->node) != model_launch_kernel(m, l, f->node) ||
            model_launch_kernel(m, first, old->other_node) != model_launch_kernel(m, l, f->other_node))
            continue;
        if (model_launch_graph(first) == model_launch_graph(l)
                ? old->node == f->node && old->other_node == f->other_node
                : old->allocation == f->allocation)
            return old;
    }
    return NULL;
}

/* "node 3 (scale)" */
static void node_text(const struct model *m, const struct model_launch *l, uint32_t node, char *out, size_t bytes)
{
    const struct cap_graph_node *n = model_launch_node(l, node);
    const char *what = n && n->kind != CAP_NODE_KERNEL ? model_node_kind(n) : model_launch_kernel(m, l, node)->name;
    snprintf(out, bytes, "node %u (%.120s)", node, what);
}

/* Two nodes of a graph that nothing orders. */
static void describe_branches(const struct model *m, struct symbols *symbols, const struct model_launch *l,
                              const struct judgement_fault *f, struct finding *out)
{
    char one[160], other[160], what[400];
    node_text(m, l, f->node, one, sizeof one);
    node_text(m, l, f->other_node, other, sizeof other);
    allocation_text(m, symbols, f, what, sizeof what);
    out->allocation = f->allocation;
    out->offset = f->offset;
    finding_summary(
        out, "%u bytes of %s, from offset %" PRId64 ", are %s by %s and %s by %s, and no path of the graph orders them",
        f->bytes, what, f->offset, f->access.write ? "written" : "read", one, f->other.write ? "written" : "read",
        other);
    finding_evidence(out, "order",
                     "a dependency between the two (or, while capturing, a wait for an event) orders them");
    finding_evidence(out, "re-execution",
                     "run one after the other, both touch these bytes, and what is written changes them");
}

/* A load past the end by the very thread that also stores past the end comes from the same unchecked index. */
static struct finding *store_by_same_thread(struct findings *fs, const struct judgement *j,
                                            const struct judgement_fault *f)
{
    if (f->kind != JUDGEMENT_FAULT_OUT_OF_BOUNDS || f->access.write)
        return NULL;
    for (size_t i = 0; i < j->fault_count; i++) {
        const struct judgement_fault *w = &j->faults[i];
        if (w->kind == JUDGEMENT_FAULT_OUT_OF_BOUNDS && w->access.write && w->finding &&
            memcmp(w->access.block, f->access.block, sizeof f->access.block) == 0 &&
            memcmp(w->access.thread, f->access.thread, sizeof f->access.thread) == 0)
            return &fs->items[w->finding - 1];
    }
    return NULL;
}

static void set_place(const struct model *m, struct finding *out, const struct judgement_fault *f)
{
    const struct model_allocation *a = model_allocation_by_id(m, f->allocation);
    const struct judgement_access *place = fault_place(f);
    place_set(out, place, true);
    out->allocation = f->allocation;
    out->offset = a && crosses_end(a, f) ? (int64_t)a->bytes : f->offset; /* the first byte that is not its own */
}

static double fault_confidence(const struct judgement *j, const struct judgement_fault *f)
{
    switch (f->kind) {
    case JUDGEMENT_FAULT_UNINITIALISED:
        return f->unseen ? 0.5 : 0.9; /* a write that was never recorded would explain it, too */
    case JUDGEMENT_FAULT_OUT_OF_BOUNDS:
        if (fault_pointer_astray(j, f))
            return 0.6;
        return f->allocation || !on_device(f) ? 0.95 : 0.8;
    default:
        return 0.95;
    }
}

/* Has an access by the same thread on the same line been told of already? Only their PTX lines differ. */
static bool told(const struct judgement *j, const struct judgement_fault *f, size_t finding)
{
    for (size_t i = 0; i < j->fault_count; i++) {
        const struct judgement_fault *g = &j->faults[i];
        if (g != f && g->finding == finding && g->kind == f->kind && g->access.write == f->access.write &&
            g->bytes == f->bytes && g->allocation == f->allocation && place_frame(&f->access) &&
            place_equal(&g->access, &f->access) &&
            memcmp(g->access.block, f->access.block, sizeof f->access.block) == 0 &&
            memcmp(g->access.thread, f->access.thread, sizeof f->access.thread) == 0)
            return true;
    }
    return false;
}

static void take_fault(const struct model *m, struct symbols *symbols, const struct model_launch *l,
                       const struct judgement *j, struct judgement_fault *f, struct findings *out)
{
    enum finding_class class = fault_class(f);
    struct finding *old = store_by_same_thread(out, j, f);
    if (!old)
        old = f->other_node ? same_branches(m, out, l, f) : same_cause(m, out, class, l, f);
    if (old) {
        size_t before = old->launch_count;
        finding_launch(old, l->number);
        size_t finding = (size_t)(old - out->items) + 1;
        if (old->launch_count == before && old->launch == l->number && old->evidence_count < 6 && !f->other_node &&
            !told(j, f, finding))
            add_evidence(m, f, old); /* another side of it at the same launch */
        f->finding = finding;
        return;
    }
    size_t index = findings_add(out, class, fault_confidence(j, f));
    if (index == SIZE_MAX)
        return;
    struct finding *new = &out->items[index];
    f->finding = index + 1;
    new->severity = fault_severity(f);
    finding_launch(new, l->number);
    new->node = f->node;
    new->other_node = f->other_node;
    if (f->other_node)
        describe_branches(m, symbols, l, f, new);
    else {
        set_place(m, new, f);
        summarise(m, symbols, f, new);
        add_evidence(m, f, new);
        if (f->kind == JUDGEMENT_FAULT_OUT_OF_BOUNDS && !f->allocation && on_device(f))
            host_pointer_explains(m, l, f->address, new);
        fault_pointer_null(l, f, new);
        if (fault_pointer_astray(j, f))
            finding_evidence(
                new, "pointer",
                "nothing of the launch touches allocation %u itself: a pointer that begins elsewhere on purpose "
                "(x - first) would look the same",
                f->allocation);
    }
    finding_next(new, "ops-debug show %s %u", m->capture->shell_path, l->number);
}

void classify_faults(const struct model *m, const struct judgements *js, struct symbols *symbols, struct findings *out)
{
    for (size_t i = 0; i < js->count; i++) {
        struct judgement *j = &js->items[i];
        const struct model_launch *l = model_launch_by_number(m, j->launch);
        if (!l)
            continue;
        /* Stores first, so that loads by the same thread can join them; what is harmless last, so that it can join the
         * rest. */
        for (int last = 0; last <= 1; last++)
            for (int writes = 1; writes >= 0; writes--)
                for (size_t k = 0; k < j->fault_count; k++)
                    if (j->faults[k].access.write == (writes == 1) && harmless(&j->faults[k]) == (last == 1))
                        take_fault(m, symbols, l, j, &j->faults[k], out);
    }
}
