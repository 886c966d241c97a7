/* A whole capture from hostile bytes: loaded, modelled, classified, reported as text and JSON.
 *
 * The input is the part of a capture header that tells something (magic and version are put right) and one or two
 * segments (theirs, too): `reserved0` of the first one's header is its length in units of 8 bytes when another one
 * follows. The seeds hold every type of record.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cjson/cJSON.h>

#include "analyzer/hang.h"
#include "analyzer/report.h"
#include "analyzer/report_operators.h"
#include "analyzer/session.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

enum { HEADER_PART = offsetof(struct cap_header, reserved1) };

static void show(struct session *s)
{
    static FILE *null;
    if (!null)
        null = fopen("/dev/null", "we");
    struct hang hang;
    session_classify(s);
    s->capture->header.pid = 0; /* nobody's */
    if (hang_look(s, 1000000, &hang) == STATUS_OK)
        hang_free(&hang);
    report_text(null, s, (struct report_style){.verbose = true});
    report_json(null, s);
    for (size_t i = 0; i < s->model->launch_count && i < 16; i++) {
        size_t count;
        char text[256];
        struct report_argument *arguments = report_arguments(s->model, &s->model->launches[i], &count);
        for (size_t k = 0; k < count; k++)
            report_argument_text(s, &arguments[k], model_launch_seq(&s->model->launches[i]), text, sizeof text);
        free(arguments);
    }
    for (size_t i = 0; i < s->model->operator_count && i < 16; i++) {
        report_operator_text(null, s, &s->model->operators[i]);
        cJSON_Delete(report_operator_json(s, &s->model->operators[i]));
    }
}

static void put_right(uint8_t *segment)
{
    struct cap_segment head;
    memcpy(&head, segment, sizeof head);
    head.magic = CAP_SEGMENT_MAGIC;
    head.version = CAP_VERSION;
    memcpy(segment, &head, sizeof head);
}

/* One or two of them, in `bytes` bytes. */
static size_t cut(uint8_t *data, size_t bytes, struct capture_bytes out[2])
{
    struct cap_segment head;
    memcpy(&head, data, sizeof head);
    size_t first = (size_t)head.reserved0 * 8;
    bool two = first >= sizeof head && first <= bytes && bytes - first >= sizeof head;
    out[0] = (struct capture_bytes){data, two ? first : bytes};
    put_right(data);
    if (!two)
        return 1;
    out[1] = (struct capture_bytes){data + first, bytes - first};
    put_right(data + first);
    return 2;
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
    uint8_t *copy = malloc(bytes);
    if (!copy)
        return 0;
    memcpy(copy, data, bytes);
    struct capture *capture;
    struct diag diag;
    struct session session;
    struct capture_bytes segments[2];
    size_t count = cut(copy, bytes, segments);
    if (capture_open_memory((struct capture_bytes){&header, sizeof header}, segments, count, &capture, &diag) ==
            STATUS_OK &&
        session_adopt(capture, &session, &diag) == STATUS_OK) {
        show(&session);
        session_close(&session);
    }
    free(copy);
    return 0;
}
