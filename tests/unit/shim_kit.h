/* shim_kit.h - runs the probe (tests/stub/probe.c) under the shim and reads the capture that it leaves. */
#ifndef SHIM_KIT_H
#define SHIM_KIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>
#include <opsdebug/capture.h>

/* Given by build.mk; only the linter sees these. */
#ifndef KIT_BUILD
#define KIT_BUILD           "build"
#define KIT_SANITIZER       ""
#define KIT_SANITIZER_COLON ""
#endif

struct kit_run {
    char directory[256]; /* scratch: OUT is "out" inside */
    int status;          /* of waitpid */
    char output[4096];   /* what the probe and the shim printed */
    pid_t pid;
    int from_probe;
};

/* Runs `probe ROUTE ACTION [ARGUMENT]`; `environment` is a NULL-terminated list of NAME=VALUE to add, may be NULL. */
void kit_run(struct kit_run *run, const char *route, const char *action, const char *argument,
             const char *const *environment);
/* The same in two steps: what is started may be killed by its pid. */
void kit_start(struct kit_run *run, const char *route, const char *action, const char *argument,
               const char *const *environment);
void kit_finish(struct kit_run *run);
void kit_remove(struct kit_run *run);   /* deletes the scratch folder */
bool kit_ok(const struct kit_run *run); /* exit status 0 and nothing printed */

/* What a command prints, as a stream to read and fclose; `argv` ends with NULL. */
FILE *kit_command(const char *const *argv);

struct kit_record {
    const struct cap_head *head;
};
struct kit_capture {
    struct cap_header header;
    struct kit_record *records; /* in order of seq */
    size_t count;
    char **files; /* what the records point into */
    unsigned segments;
};

/* Reads DIRECTORY/NAME; every record must be whole and of a sane size. False when there is no capture. */
bool kit_read(const struct kit_run *run, const char *name, struct kit_capture *out);
void kit_free(struct kit_capture *capture);
size_t kit_count(const struct kit_capture *capture, enum cap_type type);
const void *kit_nth(const struct kit_capture *capture, enum cap_type type, size_t n); /* NULL behind the last */
const char *kit_string(const struct kit_capture *capture, uint32_t id);               /* a copy in static memory; "" */
bool kit_note(const struct kit_capture *capture, const char *part);                   /* a note contains this */
uint64_t kit_calls(const struct kit_capture *capture, const char *hook);
bool kit_blob(const struct kit_run *run, const char *name, uint64_t hash_low, uint64_t hash_high); /* is it there */

#endif
