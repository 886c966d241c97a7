/* hang_judge.c - is it stuck, or only slow? Time alone never says so: there has to be something that speaks against its
 * ever going on. What cannot be told is a note. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "analyzer/hang.h"
#include "analyzer/text.h"

enum { FAR_ABOVE = 20 };              /* times as long as the longest other launch of the kernel */
#define FRESH_NS UINT64_C(3000000000) /* an answer of the device, while the process lives */

static uint64_t still_ns(const struct hang *h)
{
    uint64_t still = UINT64_MAX;
    for (size_t i = 0; i < h->stream_count; i++)
        if (h->streams[i].state && h->streams[i].still_ns < still)
            still = h->streams[i].still_ns;
    return still;
}

static size_t running_count(const struct hang *h)
{
    size_t n = 0;
    for (size_t i = 0; i < h->stream_count; i++)
        n += h->streams[i].running != NULL;
    return n;
}

static void who_waits(struct finding *f, const struct hang *h, const struct hang_stream *s)
{
    char time[24];
    const struct hang_thread *t = s->waiter;
    if (!t)
        finding_evidence(f, "host", "no thread of the program waits for the stream now");
    else if (t->polls)
        finding_evidence(f, "host", "thread %u asks again and again (%s)", t->state->tid, t->scope);
    else
        finding_evidence(f, "host", "thread %u has been inside %s for %s", t->state->tid, t->scope ? t->scope : t->call,
                         text_time(t->since_ns, time));
}

static struct finding *add(struct hang *h, enum finding_class class, double confidence)
{
    size_t index = findings_add(&h->session->findings, class, confidence);
    struct finding *f = index == SIZE_MAX ? NULL : &h->session->findings.items[index];
    if (f)
        f->cure = finding_class_cure(FINDING_HANG); /* of what cannot be told, too: more snapshots would tell nothing */
    return f;
}

static void next_commands(struct finding *f, const struct hang *h, const struct model_launch *l)
{
    const char *path = h->session->capture->shell_path;
    if (l)
        finding_next(f, "ops-debug show %s %u", path, l->number);
    if (l && l->snapshots)
        finding_next(f, "ops-debug verify --launch %u %s", l->number, path);
    if (h->life == PROCESS_ALIVE)
        finding_next(f, "gdb -p %u", h->session->capture->header.pid);
}

static void judge_running(struct hang *h, const struct hang_stream *s)
{
    char ran[24], usual[24];
    bool far = s->usual_ns && s->running_ns / FAR_ABOVE > s->usual_ns, stuck = s->waiter && far;
    if (s->running_ns < h->after_ns || (s->usual_ns && !far))
        return;
    struct finding *f =
        add(h, stuck ? FINDING_HANG : FINDING_UNKNOWN, stuck ? (running_count(h) > 1 ? 0.6 : 0.9) : 0.3);
    if (!f)
        return;
    finding_launch(f, s->running->number);
    text_time(s->running_ns, ran);
    if (stuck)
        finding_summary(f, "has been running for %s and does not end; nothing else goes on", ran);
    else
        finding_summary(f, "has been running for %s; whether it is stuck or slow cannot be told", ran);
    finding_evidence(f, "device", "by the events around it, it has begun and not ended%s",
                     running_count(h) > 1 ? "; so have launches of other streams, and one may keep the others waiting"
                                          : "");
    if (s->usual_ns)
        finding_evidence(f, "times", "the longest other launch of this kernel took %s", text_time(s->usual_ns, usual));
    else
        finding_evidence(f, "times", "no other launch of this kernel was measured: there is nothing to compare with");
    who_waits(f, h, s);
    if (!stuck)
        f->severity = FINDING_NOTE;
    next_commands(f, h, s->running);
}

/* The newest write of the word by another stream that waits itself: what it waits for must come first. */
static const struct cap_stream_value *write_behind_wait(const struct hang *h, const struct cap_stream_value *wait,
                                                        const struct hang_stream **by)
{
    const struct capture *c = h->session->capture;
    for (size_t i = 0; i < c->record_count; i++) {
        const struct cap_stream_value *w = (const void *)c->records[i];
        if (w->head.type != CAP_STREAM_VALUE || w->op != CAP_VALUE_WRITE || w->address != wait->address)
            continue;
        for (size_t k = 0; k < h->stream_count; k++) {
            const struct hang_stream *s = &h->streams[k];
            if (s->stream->id == w->stream && s->value && s->value->head.seq < w->head.seq) {
                *by = s;
                return w;
            }
        }
    }
    return NULL;
}

/* From stream to stream by the writes that each one waits for: back at the first one, nobody can go on. */
static bool in_circle(const struct hang *h, const struct hang_stream *first)
{
    const struct hang_stream *s = first;
    for (size_t steps = 0; steps <= h->stream_count; steps++) {
        const struct hang_stream *by = NULL;
        if (!s->value || !write_behind_wait(h, s->value, &by))
            return false;
        if (by == first)
            return true;
        s = by;
    }
    return false;
}

static bool written_before(const struct hang *h, const struct cap_stream_value *wait)
{
    const struct capture *c = h->session->capture;
    for (size_t i = 0; i < c->record_count; i++) {
        const struct cap_stream_value *w = (const void *)c->records[i];
        if (w->head.type == CAP_STREAM_VALUE && w->op == CAP_VALUE_WRITE && w->address == wait->address)
            return true;
    }
    return false;
}

/* Memory that only calls of this program and its kernels can write. */
static bool only_device_writes(const struct hang *h, uint64_t address)
{
    const struct model *m = h->session->model;
    for (size_t i = m->allocation_count; i-- > 0;) {
        const struct model_allocation *a = &m->allocations[i];
        if (address >= a->address && address - a->address < a->bytes)
            return a->record->kind == CAP_ALLOC_DEVICE || a->record->kind == CAP_ALLOC_PITCHED;
    }
    return false;
}

/* Nobody in the program does anything but wait for this stream. */
static bool all_wait(const struct hang *h, const struct hang_stream *s)
{
    for (size_t i = 0; i < h->thread_count; i++)
        if (!h->threads[i].call || h->threads[i].since_ns < h->after_ns)
            return false;
    for (size_t i = 0; i < h->stream_count; i++)
        if (h->streams[i].running)
            return false;
    return s->waiter != NULL;
}

static void judge_value(struct hang *h, const struct hang_stream *s)
{
    char place[200], still[24];
    const struct cap_stream_value *v = s->value;
    bool circle = in_circle(h, s);
    bool stuck = circle || (!written_before(h, v) && only_device_writes(h, v->address) && all_wait(h, s));
    struct finding *f = add(h, stuck ? FINDING_HANG : FINDING_UNKNOWN, circle ? 0.95 : stuck ? 0.7 : 0.3);
    if (!f)
        return;
    f->severity = circle ? FINDING_ERROR : stuck ? FINDING_WARNING : FINDING_NOTE;
    if (s->next)
        finding_launch(f, s->next->number);
    text_time(s->still_ns, still);
    const struct hang_stream *by = NULL;
    const struct cap_stream_value *write = circle ? write_behind_wait(h, v, &by) : NULL;
    symbols_place(h->session->symbols, v->stack, place, sizeof place);
    if (write && by)
        finding_summary(f,
                        "stream %u waits for a word that stream %u writes only after a word that it waits for itself",
                        v->stream, by->stream->id);
    else if (stuck)
        finding_summary(f, "stream %u waits for a word of device memory that no call writes, and every thread waits",
                        v->stream);
    else
        finding_summary(f, "stream %u may be waiting for a word of memory; whether it will be written cannot be told",
                        v->stream);
    finding_evidence(f, "stream",
                     "stream %u has not moved for %s; it waits for the word at 0x%" PRIx64 " (value %" PRIu64 ")%s%s",
                     v->stream, still, v->address, v->value, *place ? ", asked for at " : "", place);
    if (write && by) {
        symbols_place(h->session->symbols, write->stack, place, sizeof place);
        finding_evidence(f, "stream",
                         "stream %u writes that word%s%s, but behind its own wait for the word at 0x%" PRIx64,
                         by->stream->id, *place ? " at " : "", place, by->value->address);
    }
    who_waits(f, h, s);
    next_commands(f, h, s->next);
}

static void who_calls(struct finding *f, struct hang *h, const struct hang_stream *s)
{
    char place[200], name[300], since[24];
    const struct cap_host_function *called = s->called;
    if (!called)
        return;
    symbols_function(h->session->symbols, called->function, called->seq, name, sizeof name);
    symbols_place(h->session->symbols, called->stack, place, sizeof place);
    finding_evidence(f, "function", "it is %s, at 0x%" PRIx64 "%s%s", name, called->function,
                     *place ? ", put into the stream at " : "", place);
    if (s->called_ns)
        finding_evidence(f, "function", "it began %s ago in thread %u%s%s%s", text_time(s->called_ns, since),
                         called->tid,
                         s->caller.state == 'S'   ? ", which sleeps"
                         : s->caller.state == 'R' ? ", which runs"
                                                  : "",
                         *s->caller.wchan ? " in " : "", s->caller.wchan);
}

bool hang_in_function(const struct hang_stream *s)
{
    return s->called_ns || (s->function && (!s->value || s->function->head.seq < s->value->head.seq));
}

/* Nobody tells what the function does: that it has been running for long is no proof that it will not return. */
static void judge_function(struct hang *h, const struct hang_stream *s)
{
    char still[24];
    if (s->called_ns && s->called_ns < h->after_ns)
        return;
    struct finding *f = add(h, FINDING_UNKNOWN, 0.3);
    if (!f)
        return;
    f->severity = FINDING_NOTE;
    if (s->next)
        finding_launch(f, s->next->number);
    finding_summary(f, "stream %u %s inside a function of the host; whether it will return cannot be told",
                    s->stream->id, s->called_ns ? "is" : "may be");
    finding_evidence(f, "stream", "stream %u has not moved for %s%s", s->stream->id, text_time(s->still_ns, still),
                     s->called_ns ? "" : "; a function of the host is next in it");
    who_calls(f, h, s);
    who_waits(f, h, s);
    next_commands(f, h, s->next);
}

/* One of the streams of a circle speaks for all. */
static bool circle_told(const struct hang *h, const struct hang_stream *s)
{
    if (!in_circle(h, s))
        return false;
    for (const struct hang_stream *before = h->streams; before < s; before++)
        if (before->value && before->state && before->state->busy == CAP_BUSY_YES && in_circle(h, before))
            return true;
    return false;
}

void hang_judge(struct hang *h)
{
    uint64_t still = still_ns(h);
    if (still == UINT64_MAX || still < h->after_ns)
        return; /* nobody asked, since nothing took long; or something moved */
    for (size_t i = 0; i < h->stream_count; i++) {
        struct hang_stream *s = &h->streams[i];
        bool fresh = s->state && (h->life != PROCESS_ALIVE || s->asked_ns < FRESH_NS);
        if (!fresh || s->state->busy != CAP_BUSY_YES)
            continue;
        if (s->running)
            judge_running(h, s);
        else if (hang_in_function(s))
            judge_function(h, s);
        else if (s->value && !circle_told(h, s))
            judge_value(h, s);
    }
}
