/* ptx_kit.h - what the tests of the PTX executor share: run a kernel text over buffers, and run one instruction over
 * many operands. Device addresses are made up; every buffer gets its own, with a gap behind. */
#ifndef TESTS_PTX_KIT_H
#define TESTS_PTX_KIT_H

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include "ptx/opsptx.h"

enum { KIT_BUFFERS = 24 };
struct kit {
    struct ptx_module *module;
    struct ptx_range ranges[KIT_BUFFERS];
    struct ptx_memory memory;
    struct ptx_launch launch; /* module, memory, params set; the rest is the test's */
    struct ptx_result result;
    struct diag diag;
    uint64_t params[KIT_BUFFERS + 8];
    uint64_t variables[16];
    _Alignas(16) unsigned char variable_memory[4096];
    bool order_matters; /* what it leaves in memory depends on the order of threads */
    char printed[4096];
    size_t printed_bytes;
    /* What both engines need not agree on in shadow mode: counts, when how often it looks depends on the order;
     * anything but flags, when it reads clocks. */
    bool spins, timed;
};

/* Loads `text`, which must load. */
void kit_load(struct kit *k, const char *text);
void kit_load_file(struct kit *k, const char *name); /* tests/ptx/NAME */
/* Adds a buffer (host memory stays the test's) and returns its device address; parameter i becomes it when i >= 0. */
uint64_t kit_buffer(struct kit *k, int param, void *host, size_t bytes);
/* Gives every variable of the module an address and its initial contents (in k->variable_memory). */
void kit_variables(struct kit *k);
/* A checked launch is also run a thread at a time, and must give the same. With OPSDEBUG_GUARD_TELL in the environment,
 * sound ones that were not guarded are named. So is one in shadow mode, ptx_kit_shadow.c. */
enum status kit_run(struct kit *k, const char *kernel, uint32_t grid, uint32_t block);
enum status kit_run_shadow(struct kit *k);
/* Every third run takes the lock-step handlers for AVX2 where there is AVX-512; with OPSDEBUG_LANES_AVX2 in the
 * environment, all do. kit_run() asks for that itself. */
void kit_choose_handlers(void);
bool kit_same_access(const struct ptx_access *a, const struct ptx_access *b);
bool kit_same_faults(const struct ptx_result *a, const struct ptx_result *b);
void kit_free(struct kit *k);
char *kit_read_file(const char *name, size_t *bytes); /* tests/ptx/NAME; malloc'd */

/* One instruction over `count` operand triples. `instruction` uses %a, %b, %c and %d, of `bits` width each (0: unused;
 * 1: a predicate). Values are 64-bit in in[3 * i + k]; out[i] gets d, zero-extended. */
struct kit_shape {
    uint8_t d, a, b, c;
};
void kit_instruction(const char *instruction, struct kit_shape shape, const uint64_t *in, uint64_t *out,
                     uint32_t count);

/* The same in device mode only, with the choices of a variant. */
void kit_instruction_variant(const char *instruction, struct kit_shape shape, const uint64_t *in, uint64_t *out,
                             uint32_t count, uint64_t variant);
/* Whether the executor takes the instruction at all. `k` is scratch. */
bool kit_try_instruction(struct kit *k, const char *instruction, struct kit_shape shape);

uint64_t kit_random(uint64_t *state);

#endif
