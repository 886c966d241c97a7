/* classify_damage.c - damaged redzones, joined to the launch that did it.
 *
 * A check that found damage gives a window: the work between the last check that found the redzone intact and this one.
 * Tried in turn: a re-executed launch of the window that wrote there; a copy or memset of the window that reaches
 * there; a launch of the window whose kernel wrote past the end of the same argument at another launch that was
 * re-executed; the only launch of the window that can reach the allocation. Else the window is all that is known, and
 * that is what is said.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyzer/finding.h"
#include "analyzer/place.h"
#include "analyzer/name.h"

struct damage_case {
    const struct model *model;
    const struct judgements *judgements;
    struct symbols *symbols;
    struct findings *out;
    const struct cap_damage *record;
    const struct model_allocation *allocation;
    size_t first, last;                 /* launch indices [first, last) of the window */
    const struct cap_damage_look *look; /* NULL: an older capture, or not seen by one stream */
};

/* Of the looking stream only the work between its own two looks; of the others all of the window. */
static bool in_window(const struct damage_case *c, const struct model_launch *l)
{
    return model_launch_ran(l) &&
           (!c->look || l->record->stream != c->look->stream ||
            (model_launch_seq(l) >= c->look->clean_seq && model_launch_seq(l) < c->look->upto_seq));
}

static bool outside_write(const struct judgement_fault *f)
{
    return f->kind == JUDGEMENT_FAULT_OUT_OF_BOUNDS && f->access.write && f->finding;
}

static bool host_can_write(const struct damage_case *c)
{
    uint32_t kind = c->allocation->record->kind;
    return kind == CAP_ALLOC_HOST || kind == CAP_ALLOC_REGISTERED || kind == CAP_ALLOC_MANAGED;
}

static void hex(const uint8_t *bytes, size_t count, char *out, size_t room)
{
    size_t used = 0;
    out[0] = '\0';
    for (size_t i = 0; i < count && used + 4 < room; i++)
        used += (size_t)snprintf(out + used, room - used, "%s%02x", i ? " " : "", bytes[i]);
}

/* Told once per finding, and counted: the same mistake damages the same redzone at every launch. `by`: the store that
 * did it, NULL where it was not seen. */
static void add_sentinel(const struct damage_case *c, struct finding *f, const struct judgement_fault *by)
{
    if (f->damages++)
        return;
    const struct cap_damage *d = c->record;
    char found[64], expected[64];
    size_t shown = d->length < 8 ? (size_t)d->length : 8;
    hex(d->found, shown, found, sizeof found);
    hex(d->expected, shown, expected, sizeof expected);
    finding_evidence(f, "sentinel",
                     "%" PRIu64 " bytes %s of allocation %u overwritten, from offset %" PRId64 " of %" PRIu64
                     ": %s%s, were %s",
                     d->length, d->tail ? "behind the end" : "before the start", c->allocation->id, d->offset,
                     c->allocation->bytes, found, d->length > shown ? " ..." : "", expected);
    if (by && by->allocation && by->allocation != c->allocation->id)
        finding_evidence(f, "landed-in", "the redzone %s allocation %u, which the store was not meant for",
                         d->tail ? "behind" : "before", c->allocation->id);
    if (host_can_write(c))
        finding_evidence(f, "host-or-launch", "the host can write to this allocation, too; it may have been the host");
}

static bool reaches(const struct damage_case *c, const struct model_launch *l)
{
    const uint8_t *params = model_launch_params(l);
    const struct model_allocation *a = c->allocation;
    if (model_launch_graph(l)) {
        struct model_nodes nodes = model_launch_nodes(l);
        bool found = !nodes.complete;
        for (size_t i = 0; i < nodes.count && !found; i++)
            found = model_node_reaches(nodes.items[i], a->address, a->bytes ? a->bytes : 1);
        model_nodes_free(&nodes);
        return found;
    }
    for (size_t at = 0; params && at + 8 <= l->record->param_bytes; at += 8) {
        uint64_t word;
        memcpy(&word, params + at, sizeof word);
        if (word >= a->address && word - a->address < (a->bytes ? a->bytes : 1))
            return true;
    }
    return !params;
}

static bool join_reexecuted(const struct damage_case *c)
{
    for (size_t i = c->first; i < c->last; i++) {
        const struct judgement *j = judgements_find(c->judgements, c->model->launches[i].number);
        for (size_t k = 0; j && in_window(c, &c->model->launches[i]) && k < j->fault_count; k++) {
            const struct judgement_fault *f = &j->faults[k];
            uint64_t at = c->allocation->address + (uint64_t)c->record->offset;
            bool same = f->allocation == c->allocation->id || (f->address >= at && f->address - at < c->record->length);
            if (!outside_write(f) || !same)
                continue;
            struct finding *finding = &c->out->items[f->finding - 1];
            add_sentinel(c, finding, f);
            finding->confidence = 0.99;
            return true;
        }
    }
    return false;
}

static struct finding *new_finding(const struct damage_case *c, double confidence, size_t launch)
{
    size_t index = findings_add(c->out, FINDING_OUT_OF_BOUNDS_WRITE, confidence);
    if (index == SIZE_MAX)
        return NULL;
    struct finding *f = &c->out->items[index];
    f->allocation = c->allocation->id;
    f->offset = c->record->offset;
    if (launch)
        finding_launch(f, launch);
    return f;
}

static void allocated_text(const struct damage_case *c, char out[280])
{
    char text[PLACE_ALLOCATION_BYTES];
    place_allocation(c->symbols, c->allocation, text);
    snprintf(out, 280, "%s %s", c->record->tail ? "past the end of" : "before the start of", text);
}

static void finish_new(const struct damage_case *c, struct finding *f, const char *by)
{
    char what[280];
    allocated_text(c, what);
    finding_summary(f, "%" PRIu64 " bytes written %s%s", c->record->length, what, by);
    add_sentinel(c, f, NULL);
}

/* Every launch of the window was re-executed and only one of them stored outside: it did this, too, at another address.
 */
static bool join_by_elimination(const struct damage_case *c)
{
    const struct judgement_fault *guilty = NULL;
    size_t launch = 0;
    for (size_t i = c->first; i < c->last; i++) {
        const struct judgement *j = judgements_find(c->judgements, c->model->launches[i].number);
        if (!in_window(c, &c->model->launches[i]))
            continue;
        if (!j || j->verdict != JUDGEMENT_CHECKED)
            return false;
        for (size_t k = 0; k < j->fault_count; k++) {
            if (!outside_write(&j->faults[k]))
                continue;
            if (launch && launch != j->launch)
                return false;
            launch = j->launch;
            guilty = guilty ? guilty : &j->faults[k];
        }
    }
    if (!guilty)
        return false;
    struct finding *f = &c->out->items[guilty->finding - 1];
    add_sentinel(c, f, guilty);
    f->confidence = 0.99;
    return true;
}

/* A copy or memset that left this allocation has been found from its record; the damage is its trace. */
static bool join_copy(const struct damage_case *c)
{
    for (size_t i = 0; i < c->out->count; i++) {
        struct finding *f = &c->out->items[i];
        if (f->class == FINDING_OUT_OF_BOUNDS_WRITE && !f->launch && f->ptx_line == 0 && !f->refused &&
            f->allocation == c->allocation->id && c->record->tail) {
            add_sentinel(c, f, NULL);
            f->confidence = 0.99;
            return true;
        }
    }
    return false;
}

/* The launch was not re-executed, but another one of its kernel was, and wrote past the end, too. */
static bool join_sibling(const struct damage_case *c)
{
    for (size_t i = c->first; i < c->last; i++) {
        const struct model_launch *l = &c->model->launches[i];
        const struct judgement *own = judgements_find(c->judgements, l->number);
        if ((own && own->verdict == JUDGEMENT_CHECKED) || !in_window(c, l) || !reaches(c, l))
            continue;
        for (size_t s = 0; s < c->judgements->count; s++) {
            const struct judgement *j = &c->judgements->items[s];
            const struct model_launch *sibling = model_launch_by_number(c->model, j->launch);
            if (!sibling || strcmp(sibling->kernel->full_name, l->kernel->full_name) != 0)
                continue;
            for (size_t k = 0; k < j->fault_count; k++) {
                if (!outside_write(&j->faults[k]))
                    continue;
                struct finding *f = &c->out->items[j->faults[k].finding - 1];
                finding_launch(f, l->number);
                if (f->evidence_count < 8)
                    finding_evidence(
                        f, "sibling",
                        "launch %u was not re-executed; it is of the same kernel%s as launch %u, which was", l->number,
                        l->record->config == sibling->record->config ? " and shape" : "", sibling->number);
                add_sentinel(c, f, NULL);
                return true;
            }
        }
    }
    return false;
}

static void add_next(const struct damage_case *c, struct finding *f)
{
    if (!judgements_known(c->judgements))
        finding_next(f, "ops-debug verify %s", c->model->capture->shell_path);
    finding_next_deeper(f, c->model);
}

/* "scale (launch 14), copy (launch 15)": those of the window that can reach the allocation, the first few. */
static void suspects_text(const struct damage_case *c, char *out, size_t bytes)
{
    size_t used = 0, shown = 0;
    out[0] = '\0';
    for (size_t i = c->first; i < c->last && used < bytes; i++) {
        const struct model_launch *l = &c->model->launches[i];
        const struct judgement *j = judgements_find(c->judgements, l->number);
        if (!in_window(c, l) || (j && j->verdict == JUDGEMENT_CHECKED) || !reaches(c, l))
            continue;
        if (shown++ == 4) {
            snprintf(out + used, bytes - used, ", ...");
            return;
        }
        used += (size_t)snprintf(out + used, bytes - used, "%s%.60s (launch %u)", shown == 1 ? ": " : ", ",
                                 l->kernel->name, l->number);
    }
}

static void join_window(const struct damage_case *c)
{
    size_t ran = 0, can_reach = 0, only = 0, first = 0, last = 0;
    for (size_t i = c->first; i < c->last; i++) {
        const struct model_launch *l = &c->model->launches[i];
        const struct judgement *j = judgements_find(c->judgements, l->number);
        /* Re-executed and found not to write there: not this one. */
        if (!in_window(c, l) || (j && j->verdict == JUDGEMENT_CHECKED))
            continue;
        ran++;
        first = first ? first : l->number;
        last = l->number;
        if (reaches(c, l)) {
            can_reach++;
            only = l->number;
        }
    }
    struct finding *f;
    char by[160] = "";
    if (can_reach == 1 || ran == 1) {
        f = new_finding(c, ran == 1 ? 0.9 : 0.7, can_reach == 1 ? only : first);
        if (f && ran > 1)
            finding_evidence(f, "window",
                             "of launches %zu to %zu only this one has an argument that points into the allocation",
                             first, last);
    } else if (ran) {
        f = new_finding(c, 0.6, first);
        snprintf(by, sizeof by, " by one of them"); /* the headline names them */
        if (f) {
            char suspects[512];
            suspects_text(c, suspects, sizeof suspects);
            f->window_last = last;
            finding_evidence(
                f, "window",
                "%zu launches ran between the last intact check and this one; %zu of them can reach the allocation%s",
                ran, can_reach, suspects);
        }
    } else {
        bool host = host_can_write(c) && !c->model->uses_graphs;
        f = new_finding(c, host ? 0.9 : 0.6, 0);
        snprintf(by, sizeof by, "; %s",
                 host ? "no launch ran since it was intact: it was the host" : "no recorded launch did it");
    }
    if (!f)
        return;
    if (f->launch && host_can_write(c)) { /* nothing shows which of the two */
        f->confidence = 0.5;
        if (f->window_last)
            snprintf(by, sizeof by, " by one of them, or by the host");
        else
            snprintf(by, sizeof by, " by this launch or by the host");
    }
    finish_new(c, f, by);
    add_next(c, f);
}

/* The same redzone damaged again, or a neighbouring piece of it: said once. A finding that knows its line has the same
 * cause when it damaged this redzone before, too. */
static bool known_already(const struct damage_case *c)
{
    for (size_t i = 0; i < c->out->count; i++) {
        struct finding *f = &c->out->items[i];
        if (f->class == FINDING_OUT_OF_BOUNDS_WRITE && f->allocation == c->allocation->id && !f->refused &&
            (!f->ptx_line || (f->damages && f->offset == c->record->offset))) {
            add_sentinel(c, f, NULL);
            return true;
        }
    }
    return false;
}

static const struct cap_damage_look *look_of(const struct model *m, const struct cap_damage *d)
{
    for (size_t i = 0; i < m->look_count; i++)
        if (m->looks[i]->damage == d->head.seq)
            return m->looks[i];
    return NULL;
}

/* Every damage joined: the evidence says how many there were. */
static void count_damages(struct findings *out)
{
    for (size_t i = 0; i < out->count; i++)
        for (size_t k = 0; k < out->items[i].evidence_count; k++) {
            struct finding_evidence *e = &out->items[i].evidence[k];
            char *text;
            if (strcmp(e->kind, "sentinel") != 0 || out->items[i].damages < 2 ||
                asprintf(&text, "%s; %zu times in all", e->text, out->items[i].damages) < 0)
                continue;
            free(e->text);
            e->text = text;
        }
}

static struct damage_case case_of(const struct model *m, const struct judgements *js, struct symbols *symbols,
                                  struct findings *out, const struct cap_damage *d)
{
    return (struct damage_case){
        .model = m,
        .judgements = js,
        .symbols = symbols,
        .out = out,
        .record = d,
        .allocation = model_allocation_by_id(m, d->allocation),
        .first = model_first_launch_from(m, d->clean_seq),
        .last = model_first_launch_from(m, d->seen_seq),
        .look = look_of(m, d),
    };
}

void classify_damage(const struct model *m, const struct judgements *js, struct symbols *symbols, struct findings *out)
{
    bool *joined = calloc(m->damage_count + 1, sizeof *joined);
    /* Those that a line is known for first: the others may be more of the same. */
    for (size_t i = 0; joined && i < m->damage_count; i++) {
        struct damage_case c = case_of(m, js, symbols, out, m->damages[i]);
        joined[i] = !c.allocation || join_reexecuted(&c);
    }
    for (size_t i = 0; joined && i < m->damage_count; i++) {
        struct damage_case c = case_of(m, js, symbols, out, m->damages[i]);
        if (!joined[i] && !join_copy(&c) && !join_by_elimination(&c) && !join_sibling(&c) && !known_already(&c))
            join_window(&c);
    }
    out->no_memory = out->no_memory || !joined;
    free(joined);
    count_damages(out);
}
