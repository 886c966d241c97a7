/* session.h - what every command that looks at a capture opens first: the capture, its model, what verify found out
 * before. */
#ifndef ANALYZER_SESSION_H
#define ANALYZER_SESSION_H

#include "analyzer/finding.h"

struct session {
    struct capture *capture;
    struct model *model;
    struct symbols *symbols;
    struct judgements judgements; /* empty: not verified */
    char store_problem[256];      /* why verify.json was not used, "" when all is well */
    bool leak_check;              /* leaks are findings, also when the run did not ask for it */
    struct findings findings;     /* filled by session_classify() */
};

enum status session_open(const char *path, struct session *out, struct diag *diag);
/* The same on a capture that is already there (taken over, also on failure), without looking for verify.json. */
enum status session_adopt(struct capture *capture, struct session *out, struct diag *diag);
void session_classify(struct session *session);
void session_close(struct session *session);

#endif
