/* A whole capture from hostile bytes: loaded, modelled, classified, reported as text and JSON.
 *
 * The input is a segment (its 64-byte header is put right) behind 192 bytes of capture header (magic and version are
 * put right).
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyzer/report.h"
#include "analyzer/session.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

enum { HEADER_PART = 192 };

static void show(struct session *s)
{
    static FILE *null;
    if (!null)
        null = fopen("/dev/null", "we");
    session_classify(s);
    report_text(null, s, (struct report_style){.verbose = true});
    report_json(null, s);
    for (size_t i = 0; i < s->model->launch_count && i < 16; i++) {
        size_t count;
        free(report_arguments(s->model, &s->model->launches[i], &count));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    if (bytes < HEADER_PART + sizeof(struct cap_segment))
        return 0;
    struct cap_header header = {.command = "./program"};
    memcpy(&header, data, HEADER_PART);
    header.magic = CAP_MAGIC;
    header.version = CAP_VERSION;
    header.header_bytes = sizeof header;
    data += HEADER_PART;
    bytes -= HEADER_PART;
    uint8_t *segment = malloc(bytes);
    if (!segment)
        return 0;
    memcpy(segment, data, bytes);
    struct cap_segment head = {.magic = CAP_SEGMENT_MAGIC, .version = CAP_VERSION, .number = 1};
    memcpy(segment, &head, sizeof head);
    struct capture *capture;
    struct diag diag;
    struct session session;
    struct capture_bytes one = {segment, bytes};
    if (capture_open_memory((struct capture_bytes){&header, sizeof header}, &one, 1, &capture, &diag) == STATUS_OK &&
        session_adopt(capture, &session, &diag) == STATUS_OK) {
        show(&session);
        session_close(&session);
    }
    free(segment);
    return 0;
}
