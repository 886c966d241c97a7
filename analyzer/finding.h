/* finding.h - a finding: what went wrong, where, how sure that is, on what evidence, and what to do next.
 *
 * The classify_*.c files make findings from a model and the judgements of its launches; nothing here prints.
 */
#ifndef ANALYZER_FINDING_H
#define ANALYZER_FINDING_H

#include "analyzer/judgement.h"
#include "analyzer/model_graph.h"
#include "analyzer/symbol.h"

enum finding_class {
#define CLASS(id, name, cure) FINDING_##id,
#include "analyzer/classes.def"
#undef CLASS
    FINDING_CLASSES
};
enum finding_severity { FINDING_ERROR, FINDING_WARNING, FINDING_NOTE };

struct finding_evidence {
    const char *kind; /* static: "sentinel", "re-execution", "device-error", ... */
    char *text;       /* owned */
};

struct finding {
    enum finding_class class;
    enum finding_severity severity;
    double confidence;   /* 0 to 1 */
    char *summary;       /* owned; what happened, without launch and place */
    size_t launch;       /* number of the first one; 0: none is known */
    uint32_t node;       /* of a graph's launch: which of its nodes it was at that launch, from 1; 0: not known */
    uint32_t other_node; /* a race of two nodes: the other one; else 0 */
    size_t window_last;  /* not attributed: one of launch..window_last did it; else 0 */
    size_t *launches;    /* owned; every launch with this root cause, in order */
    size_t launch_count;
    char *file, *function;   /* owned; NULL: unknown */
    uint32_t line, ptx_line; /* 0: unknown */
    const char *cure;        /* static; NULL: that of its class */
    uint32_t stack;          /* of the call that is the error itself, a free say; 0: none */
    bool has_thread;
    uint32_t block[3], thread[3];
    uint32_t allocation;               /* id; 0: none */
    int64_t offset;                    /* of the access or the damage from the allocation's start */
    size_t mark;                       /* of the program's own assertion; 0 none */
    size_t mark_count;                 /* how often that failed */
    bool refused;                      /* a copy or memset that the driver did not do */
    size_t damages;                    /* damaged redzones joined to it */
    struct finding_evidence *evidence; /* owned */
    size_t evidence_count;
    char **next; /* owned; commands */
    size_t next_count;
};

struct findings {
    struct finding *items; /* owned; in order of the first launch */
    size_t count;
    bool no_memory; /* the list is incomplete */
};

const char *finding_class_name(enum finding_class class);
const char *finding_class_cure(enum finding_class class);
const char *finding_cure(const struct finding *finding); /* what usually cures it */
const char *finding_severity_name(enum finding_severity severity);

/* Adds an empty finding and returns its index, or SIZE_MAX when memory runs out. */
size_t findings_add(struct findings *findings, enum finding_class class, double confidence);
void finding_evidence(struct finding *finding, const char *kind, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
void finding_next(struct finding *finding, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* The command that brings more than the capture has: preset deep, and where it was that, guard pages too (which stop a
 * kernel at the access itself). None when it had both. */
void finding_next_deeper(struct finding *finding, const struct model *model);
/* Before the others. */
void finding_next_first(struct finding *finding, const char *format, ...) __attribute__((format(printf, 2, 3)));
void finding_summary(struct finding *finding, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Once per launch; the first one becomes the finding's own when it has none. */
void finding_launch(struct finding *finding, size_t launch);
void findings_free(struct findings *findings);
/* Errors and warnings; notes are not counted. */
size_t findings_serious(const struct findings *findings);

/* Everything that the capture and the judgements (may be empty) show, joined to one finding per root cause and sorted.
 */
void classify(const struct model *model, const struct judgements *judgements, struct symbols *symbols,
              struct findings *out);

/* The steps of classify(). */
void classify_faults(const struct model *model, const struct judgements *judgements, struct symbols *symbols,
                     struct findings *out);
void classify_differences(const struct model *model, const struct judgements *judgements, struct findings *out);
void classify_numbers(const struct model *model, const struct judgements *judgements, struct symbols *symbols,
                      struct findings *out);
void classify_damage(const struct model *model, const struct judgements *judgements, struct symbols *symbols,
                     struct findings *out);
void classify_errors(const struct model *model, const struct judgements *judgements, struct symbols *symbols,
                     struct findings *out);
/* The last one: launches whose error is not there, when nothing else was found. */
void classify_unexplained(const struct model *model, struct symbols *symbols, struct findings *out);
void classify_copies(const struct model *model, struct symbols *symbols, struct findings *out);
void classify_order(const struct model *model, const struct judgements *judgements, struct symbols *symbols,
                    struct findings *out);
void classify_held(const struct model *model, const struct judgements *judgements, struct symbols *symbols,
                   struct findings *out);
/* After the ones that find accesses and errors. */
void classify_guard(const struct model *model, struct symbols *symbols, struct findings *out);
void classify_marks(const struct model *model, struct symbols *symbols, struct findings *out);
void classify_names(const struct model *model, struct findings *out);
/* What was never freed; not a step of classify(), but behind it where it is asked for. */
void classify_leaks(const struct model *model, struct symbols *symbols, struct findings *out);
/* How many allocations that is, 0 for a program that did not end in an orderly way. */
size_t leaks_count(const struct model *model, uint64_t *bytes);
void classify_frees(const struct model *model, struct symbols *symbols, struct findings *out);

#endif
