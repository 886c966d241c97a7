/* A hostile verify.json beside a small sound capture: parsed, classified, reported. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyzer/report.h"
#include "analyzer/session.h"
#include "analyzer/store.h"
#include "tests/unit/capture_make.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

static struct session session;
static FILE *null;

static void start(void)
{
    struct capture_make m;
    struct capture *capture;
    struct diag diag;
    uint64_t params[2] = {0x10000, 0x20000};
    capture_make_start(&m);
    uint32_t module = capture_make_module(&m, NULL);
    uint32_t kernel = capture_make_kernel(&m, module, "_Z5scalePf", (const uint32_t[]){8, 8, 0});
    uint32_t config = capture_make_config(&m, 3, 32);
    uint32_t a = capture_make_alloc(&m, 0x10000, 256), b = capture_make_alloc(&m, 0x20000, 256);
    for (int i = 0; i < 4; i++)
        capture_make_launch(&m, kernel, config, params, 16);
    capture_make_damage(&m, a, 256, 4, 1, m.seq);
    capture_make_damage(&m, b, -8, 4, 1, m.seq);
    capture_make_error(&m, 700, "CUDA_ERROR_ILLEGAL_ADDRESS");
    struct capture_bytes segment = {m.records, m.bytes};
    if (capture_open_memory((struct capture_bytes){&m.header, sizeof m.header}, &segment, 1, &capture, &diag) ||
        session_adopt(capture, &session, &diag))
        abort();
    capture_make_end(&m);
    null = fopen("/dev/null", "we");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    struct diag diag;
    if (!null)
        start();
    char *text = malloc(bytes + 1);
    if (!text)
        return 0;
    memcpy(text, data, bytes);
    text[bytes] = '\0';
    judgements_free(&session.judgements);
    if (store_parse(session.model, text, "verify.json", &session.judgements, &diag) == STATUS_OK) {
        session_classify(&session);
        report_text(null, &session, (struct report_style){.verbose = true});
        report_json(null, &session);
    }
    free(text);
    return 0;
}
