#include "analyzer/judgement.h"

#include <stdlib.h>
#include <string.h>

const char *judgement_fault_kind_name(enum judgement_fault_kind kind)
{
    static const char *const names[] = {
#define X(name, text) text,
        JUDGEMENT_FAULTS(X)
#undef X
    };
    return kind < JUDGEMENT_FAULT_KINDS ? names[kind] : "?";
}

const char *judgement_difference_kind_name(enum judgement_difference_kind kind)
{
    static const char *const names[] = {
#define X(name, text) text,
        JUDGEMENT_DIFFERENCES(X)
#undef X
    };
    return kind < JUDGEMENT_DIFFERENCE_KINDS ? names[kind] : "?";
}

const char *judgement_number_kind_name(enum judgement_number_kind kind)
{
    static const char *const names[] = {
#define X(name, text) text,
        JUDGEMENT_NUMBERS(X)
#undef X
    };
    return kind < JUDGEMENT_NUMBER_KINDS ? names[kind] : "?";
}

const char *judgement_operation_name(enum judgement_operation type)
{
    static const char *const names[] = {
#define X(name, text) text,
        JUDGEMENT_OPERATIONS(X)
#undef X
    };
    return type < JUDGEMENT_OPERATION_TYPES ? names[type] : "?";
}

const char *judgement_pattern_kind_name(enum judgement_pattern_kind kind)
{
    static const char *const names[] = {
#define X(name, text) text,
        JUDGEMENT_PATTERNS(X)
#undef X
    };
    return kind < JUDGEMENT_PATTERN_KINDS ? names[kind] : "?";
}

struct judgement_access judgement_access_copy(const struct judgement_access *from)
{
    struct judgement_access to = *from;
    for (size_t i = 0; i < to.frame_count; i++) {
        to.frames[i].file = from->frames[i].file ? strdup(from->frames[i].file) : NULL;
        to.frames[i].function = from->frames[i].function ? strdup(from->frames[i].function) : NULL;
    }
    return to;
}

void judgement_access_clear(struct judgement_access *a)
{
    for (size_t i = 0; i < a->frame_count; i++) {
        free(a->frames[i].file);
        free(a->frames[i].function);
    }
}

void judgement_clear(struct judgement *j)
{
    for (size_t i = 0; i < j->fault_count; i++) {
        free(j->faults[i].detail);
        free(j->faults[i].space);
        judgement_access_clear(&j->faults[i].access);
        judgement_access_clear(&j->faults[i].other);
    }
    free(j->faults);
    free(j->differences);
    for (size_t i = 0; i < j->number_count; i++)
        judgement_access_clear(&j->numbers[i].access);
    free(j->numbers);
    for (size_t i = 0; i < j->counts.pattern_count; i++)
        judgement_access_clear(&j->counts.patterns[i].access);
    free(j->counts.patterns);
    for (size_t i = 0; i < j->touch_count; i++)
        free(j->touches[i].runs);
    free(j->touches);
    free(j->numbers_reason);
    free(j->reason);
    free(j->detail);
    *j = (struct judgement){0};
}
