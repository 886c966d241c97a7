/* verify_kit.h - synthetic captures of capture_make.h through the analyzer: opened, verified, judged. Failures end the
 * test. Include cmocka.h before. */
#ifndef TESTS_VERIFY_KIT_H
#define TESTS_VERIFY_KIT_H

#include "analyzer/coverage.h"
#include "analyzer/session.h"
#include "analyzer/verify.h"
#include "tests/unit/capture_make.h"

/* Writes it with an orderly end, and opens it. */
static inline void verify_kit_open(struct capture_make *make, struct session *session)
{
    struct diag diag = {.text = ""};
    capture_make_finish(make);
    if (session_open(capture_make_write(make), session, &diag))
        fail_msg("%s", diag.text);
}

static inline void verify_kit_verify(struct capture_make *make, struct session *session)
{
    struct diag diag = {.text = ""};
    struct verify_options options = {.workers = 1, .instruction_limit = 10000000};
    verify_kit_open(make, session);
    assert_int_equal(session->capture->rejected.count, 0);
    assert_int_equal(verify_capture(session->model, NULL, &options, &session->judgements, &diag), STATUS_OK);
    session_classify(session);
}

static inline void verify_kit_end(struct capture_make *make, struct session *session)
{
    session_close(session);
    capture_make_end(make);
}

static inline void verify_kit_finds_nothing(const struct session *session)
{
    for (size_t i = 0; i < session->findings.count; i++)
        fail_msg("unexpected: %s: %s", finding_class_name(session->findings.items[i].class),
                 session->findings.items[i].summary);
}

/* Nothing was found, and so many launches were judged. */
static inline void verify_kit_is_silent(const struct session *session, size_t checked)
{
    struct coverage c = coverage_of(session->model, &session->judgements);
    verify_kit_finds_nothing(session);
    if (c.as_written.checked != checked)
        fail_msg("%zu checked, %s", c.as_written.checked, c.as_written.reasons ? c.as_written.not [0].reason : "?");
}

/* The only finding, which is of this class. */
static inline const struct finding *verify_kit_only(const struct session *session, enum finding_class class)
{
    assert_int_equal(session->findings.count, 1);
    const struct finding *f = &session->findings.items[0];
    assert_string_equal(finding_class_name(f->class), finding_class_name(class));
    return f;
}

#endif
