#include "analyzer/selection.h"

#include "common/diag.h"

enum status selection_start(const struct options *o, struct selection *out, struct diag *diag)
{
    *out = (struct selection){.launch = o->launch, .skip = o->launch_skip, .count = o->launch_count};
    if (!o->kernel)
        return STATUS_OK;
    int error = regcomp(&out->pattern, o->kernel, REG_EXTENDED | REG_NOSUB);
    if (error) {
        char text[128];
        regerror(error, &out->pattern, text, sizeof text);
        return diag_set(diag, STATUS_BAD_INPUT, "--kernel", -1, "'%s' is no regular expression: %s", o->kernel, text);
    }
    out->has_pattern = true;
    return STATUS_OK;
}

void selection_end(struct selection *s)
{
    if (s->has_pattern)
        regfree(&s->pattern);
    s->has_pattern = false;
}

bool selection_any(const struct selection *s, const struct model *model)
{
    struct selection again = *s;
    bool chosen = s->launch || s->has_pattern || s->skip || s->count;
    for (size_t i = 0; chosen && i < model->launch_count; i++)
        if (selection_takes(&again, &model->launches[i]))
            return true;
    return !chosen;
}

bool selection_takes(struct selection *s, const struct model_launch *l)
{
    if (s->launch && l->number != s->launch)
        return false;
    if (s->has_pattern && regexec(&s->pattern, l->kernel->full_name, 0, NULL, 0) != 0 &&
        regexec(&s->pattern, l->kernel->mangled, 0, NULL, 0) != 0)
        return false;
    s->seen++;
    return s->seen > s->skip && (!s->count || s->seen - s->skip <= s->count);
}
