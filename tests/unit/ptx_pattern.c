#include "tests/unit/ptx_pattern.h"

#include <string.h>

static uint32_t set_size(const uint64_t *v, uint32_t n, uint32_t unit)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < n; i++) {
        bool seen = false;
        for (uint32_t k = 0; k < i; k++)
            seen |= v[k] / unit == v[i] / unit;
        count += !seen;
    }
    return count;
}

/* Lanes [from, to) of a warp at once: how often the fullest bank has to answer. */
static uint32_t bank_turns(const uint64_t *bytes, uint32_t n)
{
    uint32_t most = 0;
    for (uint64_t bank = 0; bank < 32; bank++) {
        uint64_t words[WARP * 16];
        uint32_t count = 0;
        for (uint32_t i = 0; i < n; i++)
            if (bytes[i] / 4 % 32 == bank)
                words[count++] = bytes[i];
        uint32_t turns = set_size(words, count, 4);
        most = turns > most ? turns : most;
    }
    return most;
}

struct expected expect(const struct pattern *p, uint64_t base)
{
    struct expected e = {0};
    static uint8_t touched[1 << 20];
    memset(touched, 0, sizeof touched);
    for (uint32_t first = 0; first < p->threads; first += WARP) {
        uint64_t addresses[WARP], bytes[WARP * 16];
        uint32_t n = 0, byte_count = 0;
        for (uint32_t i = first; i < first + WARP && i < p->threads; i++) {
            if (!p->active[i])
                continue;
            addresses[n++] = base + p->offset[i];
            for (uint32_t k = 0; k < p->size; k++) {
                bytes[byte_count++] = base + p->offset[i] + k;
                touched[p->offset[i] + k] = 1;
            }
        }
        if (!n)
            continue;
        e.accesses += n;
        e.bytes += (uint64_t)n * p->size;
        e.requests++;
        e.sectors += set_size(bytes, byte_count, 32);
        e.lines += set_size(bytes, byte_count, 128);
        e.ideal += (set_size(bytes, byte_count, 1) + 31) / 32;
        uint32_t most = 0;
        for (uint32_t i = 0; i < n; i++) {
            uint32_t same = 0;
            for (uint32_t k = 0; k < n; k++)
                same += addresses[k] == addresses[i];
            most = same > most ? same : most;
        }
        e.same += most;
        e.same_most = most > e.same_most ? most : e.same_most;
        uint32_t part = p->size <= 4 ? 32 : p->size == 8 ? 16 : 8;
        for (uint32_t from = 0; from < WARP; from += part) {
            uint64_t in_part[WARP * 16];
            uint32_t count = 0;
            for (uint32_t i = first + from; i < first + from + part && i < p->threads; i++)
                for (uint32_t k = 0; p->active[i] && k < p->size; k++)
                    in_part[count++] = p->offset[i] + k;
            e.wavefronts += bank_turns(in_part, count);
            e.ideal_wavefronts += count > 0;
        }
    }
    for (size_t i = 0; i < sizeof touched; i++)
        e.unique += touched[i];
    return e;
}
