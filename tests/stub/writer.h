/* writer.h - between tests/stub/writer.c, which runs the shim's capture writer one store at a time, and the test that
 * reads the capture after each of them (tests/unit/test_capture_crash.c). Lies in memory that both have mapped. */
#ifndef STUB_WRITER_H
#define STUB_WRITER_H

#include <stdint.h>

/* What the writer is about to write, and then has written. */
struct writer_entry {
    uint64_t seq;
    uint64_t hash, patched; /* of the whole record; `patched`: what it may become later, or the same */
    uint32_t type, bytes;
    uint32_t committed;   /* capture_commit has returned */
    uint32_t patch_begun; /* from then on either is right */
    uint32_t patch_done;  /* from then on only the second */
    uint32_t reserved;
};

enum { WRITER_ENTRIES = 256, WRITER_STRINGS = 64 };
struct writer_log {
    uint32_t published; /* capture_open has returned with success */
    uint32_t closed;    /* capture_close has begun */
    uint32_t stores, calls;
    uint32_t lost; /* stores that could not be followed: must stay 0 */
    uint32_t entries, strings;
    uint32_t string_ids[WRITER_STRINGS]; /* returned by intern_string; the text is "string N" */
    struct writer_entry entry[WRITER_ENTRIES];
};

/* writer step FOLDER LOG_FD TO_TEST_FD FROM_TEST_FD: one byte to the test after every store into a file and after every
 * system call that changes the folder, then waits for one byte.
 * writer fail FOLDER LOG_FD N: the Nth such call fails with ENOSPC; no stops. */

#endif
