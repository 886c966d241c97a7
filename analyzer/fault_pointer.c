#include "analyzer/fault_pointer.h"

#include <string.h>

enum { MANY_ACCESSES = 32 };
#define LOWEST_POINTER (UINT64_C(1) << 32) /* below are small numbers, and null with an index */

bool fault_pointer_astray(const struct judgement *j, const struct judgement_fault *f)
{
    if (f->kind != JUDGEMENT_FAULT_OUT_OF_BOUNDS || !f->landed || !f->allocation || f->node || f->count < MANY_ACCESSES)
        return false;
    for (size_t i = 0; i < j->touch_count; i++)
        if (j->touches[i].allocation == f->allocation)
            return false;
    return true;
}

void fault_pointer_null(const struct model_launch *l, const struct judgement_fault *f, struct finding *out)
{
    const uint8_t *params = f->node ? NULL : model_launch_params(l);
    bool null = false;
    for (uint32_t at = 0; params && !null && at + 8u <= l->record->param_bytes; at += 8) {
        uint64_t word;
        memcpy(&word, params + at, sizeof word);
        null = word == 0;
    }
    if (null && f->kind == JUDGEMENT_FAULT_OUT_OF_BOUNDS && !f->allocation && f->address < LOWEST_POINTER &&
        strcmp(f->space, "global") == 0)
        finding_evidence(out, "pointer", "the kernel was given a null pointer");
}
