/* verify_input.h - the parts of an input of fuzz_verify. */
#ifndef TESTS_VERIFY_INPUT_H
#define TESTS_VERIFY_INPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <opsdebug/capture.h>

/* All numbers of the header, and those that are still to come: inputs stay what they are. */
enum { VERIFY_HEADER_PART = offsetof(struct cap_header, shim_version), VERIFY_BLOBS = 64 };

struct verify_blob {
    uint64_t low, high;
    const uint8_t *data;
    uint32_t bytes;
};
struct verify_input { /* everything points into the input */
    const uint8_t *header, *segment, *rest;
    size_t segment_bytes, rest_bytes; /* rest: the blobs as they stand in the input */
    struct verify_blob blobs[VERIFY_BLOBS];
    size_t blob_count;
};

static inline void verify_input_blobs(struct verify_input *in)
{
    size_t at = 0;
    in->blob_count = 0;
    while (in->rest_bytes - at >= 24 && in->blob_count < VERIFY_BLOBS) {
        struct verify_blob *b = &in->blobs[in->blob_count++];
        memcpy(&b->low, in->rest + at, 8);
        memcpy(&b->high, in->rest + at + 8, 8);
        memcpy(&b->bytes, in->rest + at + 16, 4);
        at += 24;
        if (b->bytes > in->rest_bytes - at)
            b->bytes = (uint32_t)(in->rest_bytes - at);
        b->data = in->rest + at;
        size_t padded = (b->bytes + (size_t)7) & ~(size_t)7;
        at += padded < in->rest_bytes - at ? padded : in->rest_bytes - at;
    }
}

/* False: too short. A length that is too large is cut. */
static inline bool verify_input_read(struct verify_input *in, const uint8_t *data, size_t bytes)
{
    uint32_t length;
    if (bytes < 8 + VERIFY_HEADER_PART + sizeof(struct cap_segment))
        return false;
    memcpy(&length, data, sizeof length);
    in->header = data + 8;
    in->segment = in->header + VERIFY_HEADER_PART;
    size_t left = bytes - 8 - VERIFY_HEADER_PART;
    in->segment_bytes = length < sizeof(struct cap_segment) ? sizeof(struct cap_segment)
                        : length < left                     ? length
                                                            : left;
    in->rest = in->segment + in->segment_bytes;
    in->rest_bytes = left - in->segment_bytes;
    verify_input_blobs(in);
    return true;
}

#endif
