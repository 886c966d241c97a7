#include "analyzer/session.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/diag.h"
#include "analyzer/store.h"

enum status session_adopt(struct capture *capture, struct session *s, struct diag *diag)
{
    *s = (struct session){.capture = capture};
    enum status status = model_build(capture, &s->model, diag);
    if (!status && !(s->symbols = symbols_new(capture)))
        status = diag_set(diag, STATUS_NO_MEMORY, capture->path, -1, "no memory");
    if (status)
        session_close(s);
    return status;
}

enum status session_open(const char *path, struct session *s, struct diag *diag)
{
    struct capture *capture;
    enum status status = capture_open(path, &capture, diag);
    if (status) {
        *s = (struct session){0};
        return status;
    }
    status = session_adopt(capture, s, diag);
    if (status)
        return status;
    /* An earlier verdict is welcome, not needed: without it the report says how to get one. */
    struct diag problem;
    status = store_read(s->model, &s->judgements, &problem);
    if (status && status != STATUS_NOT_FOUND)
        snprintf(s->store_problem, sizeof s->store_problem, "verify.json is not used: %.200s", problem.text);
    return STATUS_OK;
}

void session_classify(struct session *s)
{
    findings_free(&s->findings);
    for (size_t i = 0; i < s->judgements.count; i++) {
        struct judgement *j = &s->judgements.items[i];
        for (size_t k = 0; k < j->fault_count; k++)
            j->faults[k].finding = 0;
        j->raced = false;
    }
    classify(s->model, &s->judgements, s->symbols, &s->findings);
    const char *leaks = model_option(s->model, "LEAK_CHECK");
    if (s->leak_check || (leaks && strcmp(leaks, "on") == 0))
        classify_leaks(s->model, s->symbols, &s->findings);
}

void session_close(struct session *s)
{
    findings_free(&s->findings);
    judgements_free(&s->judgements);
    symbols_free(s->symbols);
    model_free(s->model);
    capture_close(s->capture);
    *s = (struct session){0};
}
