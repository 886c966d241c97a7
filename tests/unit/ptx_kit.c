#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "ptx/lanes_choice.h"
#include "tests/unit/ptx_kit.h"

static void print(void *context, const char *text, size_t bytes)
{
    struct kit *k = context;
    if (bytes > sizeof k->printed - 1 - k->printed_bytes)
        bytes = sizeof k->printed - 1 - k->printed_bytes;
    memcpy(k->printed + k->printed_bytes, text, bytes);
    k->printed_bytes += bytes;
    k->printed[k->printed_bytes] = 0;
}

char *kit_read_file(const char *name, size_t *bytes)
{
    char path[512];
    const char *root = getenv("OPSDEBUG_SOURCE");
    snprintf(path, sizeof path, "%s/tests/ptx/%s", root ? root : ".", name);
    FILE *f = fopen(path, "rb");
    if (!f)
        fail_msg("cannot open %s: run from the repository's root, or set OPSDEBUG_SOURCE", path);
    char *text = malloc(1 << 20);
    assert_non_null(text);
    *bytes = fread(text, 1, (1 << 20) - 1, f);
    text[*bytes] = 0;
    fclose(f);
    return text;
}

void kit_load(struct kit *k, const char *text)
{
    memset(k, 0, sizeof *k);
    if (ptx_module_load(text, strlen(text), "test.ptx", &k->module, &k->diag) != STATUS_OK)
        fail_msg("%s:%u:%u: %s\n%s", k->diag.where, k->diag.line, k->diag.column, k->diag.text, k->diag.excerpt);
    k->memory.ranges = k->ranges;
    k->launch.module = k->module;
    k->launch.memory = &k->memory;
    k->launch.params = k->params;
    k->launch.variables = k->variables;
    k->launch.print = print;
    k->launch.print_context = k;
}

void kit_load_file(struct kit *k, const char *name)
{
    size_t bytes;
    char *text = kit_read_file(name, &bytes);
    kit_load(k, text);
    free(text);
}

uint64_t kit_buffer(struct kit *k, int param, void *host, size_t bytes)
{
    size_t n = k->memory.range_count++;
    assert_true(n < KIT_BUFFERS);
    uint64_t address = 0x7f0000000000 + n * 0x10000000;
    k->ranges[n] = (struct ptx_range){.address = address, .bytes = bytes, .host = host, .id = (uint32_t)n + 1};
    if (param >= 0)
        k->params[param] = address;
    return address;
}

void kit_variables(struct kit *k)
{
    size_t used = 0;
    for (size_t i = 0; i < ptx_module_variable_count(k->module); i++) {
        const struct ptx_variable *v = ptx_module_variable(k->module, i);
        assert_true(i < 16 && used + v->size <= sizeof k->variable_memory);
        k->variables[i] = kit_buffer(k, -1, k->variable_memory + used, v->size);
        if (v->constant)
            k->ranges[k->memory.range_count - 1].flags = PTX_RANGE_READ_ONLY;
        used += (v->size + 15) / 16 * 16;
    }
    used = 0;
    for (size_t i = 0; i < ptx_module_variable_count(k->module); i++) {
        assert_int_equal(ptx_module_variable_init(k->module, i, k->variables, k->variable_memory + used), STATUS_OK);
        used += (ptx_module_variable(k->module, i)->size + 15) / 16 * 16;
    }
}

/* ---- checked launches: what is run in lock-step under guard must be what a thread at a time gives ---- */

struct kept {
    unsigned char *maps[KIT_BUFFERS][3]; /* memory, written, read */
};

static void *const *maps_of(const struct ptx_range *r, void *maps[3])
{
    maps[0] = r->host;
    maps[1] = r->written;
    maps[2] = r->read;
    return maps;
}

static size_t map_bytes(const struct ptx_range *r, int map)
{
    return map == 0 ? (size_t)r->bytes : (size_t)((r->bytes + 7) / 8);
}

static void keep(const struct kit *k, struct kept *out)
{
    for (size_t i = 0; i < k->memory.range_count; i++) {
        void *maps[3] = {0};
        (void)maps_of(&k->ranges[i], maps);
        for (int m = 0; m < 3; m++) {
            size_t bytes = map_bytes(&k->ranges[i], m);
            out->maps[i][m] = maps[m] ? malloc(bytes + 1) : NULL;
            if (out->maps[i][m])
                memcpy(out->maps[i][m], maps[m], bytes);
        }
    }
}

static void put_back(const struct kit *k, struct kept *from)
{
    for (size_t i = 0; i < k->memory.range_count; i++) {
        void *maps[3] = {0};
        (void)maps_of(&k->ranges[i], maps);
        for (int m = 0; m < 3; m++)
            if (from->maps[i][m])
                memcpy(maps[m], from->maps[i][m], map_bytes(&k->ranges[i], m));
    }
}

static void drop(const struct kit *k, struct kept *kept)
{
    for (size_t i = 0; i < k->memory.range_count; i++)
        for (int m = 0; m < 3; m++)
            free(kept->maps[i][m]);
}

bool kit_same_access(const struct ptx_access *a, const struct ptx_access *b)
{
    return a->ptx_line == b->ptx_line && memcmp(a->block, b->block, sizeof a->block) == 0 &&
           memcmp(a->thread, b->thread, sizeof a->thread) == 0 && a->write == b->write && a->atomic == b->atomic;
}

bool kit_same_faults(const struct ptx_result *a, const struct ptx_result *b)
{
    if (a->fault_count != b->fault_count || a->faults_dropped != b->faults_dropped)
        return false;
    for (size_t i = 0; i < a->fault_count; i++) {
        const struct ptx_fault *x = &a->faults[i], *y = &b->faults[i];
        if (x->kind != y->kind || x->kernel != y->kernel || x->space != y->space ||
            !kit_same_access(&x->access, &y->access) || !kit_same_access(&x->other, &y->other) ||
            x->address != y->address || x->bytes != y->bytes || x->has_range != y->has_range ||
            x->provenance != y->provenance || x->range_id != y->range_id || x->offset != y->offset ||
            x->count != y->count || x->same_value != y->same_value || x->threads != y->threads)
            return false;
    }
    return true;
}

static enum status run_both(struct kit *k)
{
    static const char *const names[] = {"memory", "what was written", "what was read"};
    struct kept before = {0}, after = {0};
    struct ptx_result exact;
    keep(k, &before);
    k->launch.one_by_one = true;
    enum status status = ptx_run(&k->launch, &exact, &k->diag);
    k->launch.one_by_one = false;
    keep(k, &after);
    put_back(k, &before);
    k->printed_bytes = 0;
    k->printed[0] = 0;
    assert_int_equal(ptx_run(&k->launch, &k->result, &k->diag), status);
    if (!kit_same_faults(&exact, &k->result))
        fail_msg("%s: %zu faults one by one, %zu under guard (%s)", k->launch.kernel->name, exact.fault_count,
                 k->result.fault_count, k->result.guarded ? "sound" : k->result.doubt);
    for (size_t i = 0; i < k->memory.range_count; i++) {
        void *maps[3] = {0};
        (void)maps_of(&k->ranges[i], maps);
        for (int m = 0; m < 3; m++)
            if (!k->order_matters && after.maps[i][m] &&
                memcmp(maps[m], after.maps[i][m], map_bytes(&k->ranges[i], m)) != 0)
                fail_msg("%s: %s of buffer %zu differs under guard", k->launch.kernel->name, names[m], i);
    }
    if (getenv("OPSDEBUG_GUARD_TELL") && !exact.fault_count && !k->result.guarded)
        print_message("%s: sound, but not guarded: %s, line %u\n", k->launch.kernel->name,
                      k->result.doubt[0] ? k->result.doubt : "none that can be", k->result.doubt_line);
    assert_memory_equal(&exact.counts, &k->result.counts, sizeof exact.counts);
    drop(k, &before);
    drop(k, &after);
    ptx_result_free(&exact);
    return status;
}

void kit_choose_handlers(void)
{
    static unsigned runs;
    lanes_only_avx2(runs++ % 3 == 2 || getenv("OPSDEBUG_LANES_AVX2"));
}

enum status kit_run(struct kit *k, const char *kernel, uint32_t grid, uint32_t block)
{
    ptx_result_free(&k->result);
    k->printed_bytes = 0;
    k->printed[0] = 0;
    k->launch.kernel = ptx_module_find_kernel(k->module, kernel);
    assert_non_null(k->launch.kernel);
    k->launch.grid[0] = grid;
    k->launch.block[0] = block;
    for (int i = 1; i < 3; i++) {
        k->launch.grid[i] = k->launch.grid[i] ? k->launch.grid[i] : 1;
        k->launch.block[i] = k->launch.block[i] ? k->launch.block[i] : 1;
    }
    const struct ptx_launch *l = &k->launch;
    kit_choose_handlers();
    if (l->shadow && !l->one_by_one)
        return kit_run_shadow(k);
    if (l->checked && !l->one_by_one && !l->seed && !l->cancel && !l->progress && !l->instruction_limit &&
        !l->time_limit_ns)
        return run_both(k);
    return ptx_run(&k->launch, &k->result, &k->diag);
}

void kit_free(struct kit *k)
{
    ptx_result_free(&k->result);
    ptx_module_free(k->module);
    k->module = NULL;
}

static const char *register_type(unsigned bits)
{
    return bits == 1 ? "pred" : bits == 64 ? "b64" : bits == 32 ? "b32" : "b16";
}

/* How the lanes of a warp come to the instruction. */
enum shape_of_warp {
    WARP_VARIED,   /* all together, each with its own operands */
    WARP_UNIFORM,  /* all together, with the operands of the warp's first element */
    WARP_DIVERGED, /* odd and even ones by themselves */
};

static void instruction_text(char *text, size_t room, const char *instruction, struct kit_shape shape,
                             enum shape_of_warp warp)
{
    size_t n = 0;
#define ADD(...) n += (size_t)snprintf(text + n, room - n, __VA_ARGS__)
    ADD(".version 9.0\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u64 in, .param .u64 out, .param .u32 "
        "n) {\n");
    ADD(".reg .b64 %%x<4>; .reg .b32 %%t<6>; .reg .pred %%q; .reg .pred %%p; .reg .pred %%odd;\n");
    const uint8_t bits[3] = {shape.a, shape.b, shape.c};
    for (int i = 0; i < 3; i++)
        if (bits[i])
            ADD(".reg .%s %%%c;\n", register_type(bits[i]), 'a' + i);
    ADD(".reg .%s %%d;\n", register_type(shape.d));
    ADD("mov.u32 %%t0, %%ctaid.x; mov.u32 %%t1, %%tid.x; mad.lo.s32 %%t0, %%t0, 256, %%t1;\n");
    ADD("ld.param.u32 %%t2, [n]; setp.ge.u32 %%q, %%t0, %%t2; @%%q bra END;\n");
    if (warp == WARP_UNIFORM)
        ADD("mov.u32 %%t4, %%warpid; shl.b32 %%t4, %%t4, 5; mov.u32 %%t5, %%ctaid.x; mad.lo.s32 %%t4, %%t5, 256, "
            "%%t4;\n");
    else
        ADD("mov.u32 %%t4, %%t0;\n");
    ADD("ld.param.u64 %%x0, [in]; mad.wide.u32 %%x0, %%t4, 24, %%x0; ld.param.u64 %%x1, [out]; mad.wide.u32 %%x1, "
        "%%t0, 8, %%x1;\n");
    for (int i = 0; i < 3; i++) {
        if (bits[i] == 1)
            ADD("ld.global.u32 %%t3, [%%x0+%d]; setp.ne.u32 %%%c, %%t3, 0;\n", 8 * i, 'a' + i);
        else if (bits[i])
            ADD("ld.global.b%u %%%c, [%%x0+%d];\n", bits[i], 'a' + i, 8 * i);
    }
    if (warp == WARP_DIVERGED)
        ADD("and.b32 %%t5, %%t1, 1; setp.ne.u32 %%odd, %%t5, 0; @%%odd bra ODD;\n{%s}\nbra BOTH;\nODD: {%s}\nBOTH:\n",
            instruction, instruction);
    else
        ADD("%s\n", instruction);
    if (shape.d == 1)
        ADD("selp.u32 %%t3, 1, 0, %%d; st.global.u32 [%%x1], %%t3;\n");
    else
        ADD("st.global.b%u [%%x1], %%d;\n", shape.d);
    ADD("END: ret;\n}\n");
#undef ADD
}

bool kit_try_instruction(struct kit *k, const char *instruction, struct kit_shape shape)
{
    char text[8192];
    instruction_text(text, sizeof text, instruction, shape, WARP_VARIED);
    memset(k, 0, sizeof *k);
    if (ptx_module_load(text, strlen(text), "test.ptx", &k->module, &k->diag) != STATUS_OK)
        return false;
    bool admitted = ptx_kernel_refusal(k->module, ptx_module_kernel(k->module, 0)) == NULL;
    kit_free(k);
    return admitted;
}

static void run_instruction(struct kit *k, uint64_t *out, uint32_t count)
{
    memset(out, 0, count * sizeof *out);
    k->ranges[1].host = out;
    assert_int_equal(kit_run(k, "k", (count + 255) / 256, 256), STATUS_OK);
}

enum { SHADOWED = 512 };

/* Operands with shadows of all kinds: an instruction does the same with them in both engines, however the lanes come to
 * it. */
static void run_shadowed(struct kit *k, const uint64_t *in, uint32_t count)
{
    static uint64_t operands[SHADOWED * 3], results[SHADOWED];
    static struct ptx_shadow_value in_shadow[SHADOWED * 12], out_shadow[SHADOWED * 4];
    static uint8_t tainted[sizeof results];
    static const uint8_t kinds[] = {PTX_SHADOW_NONE, PTX_SHADOW_F32, PTX_SHADOW_F32,
                                    PTX_SHADOW_F64,  PTX_SHADOW_F16, PTX_SHADOW_BF16};
    uint64_t random = 1 + count;
    count = count < SHADOWED ? count : SHADOWED;
    memset(in_shadow, 0, sizeof in_shadow);
    memset(out_shadow, 0, sizeof out_shadow);
    memset(tainted, 0, sizeof tainted);
    memcpy(operands, in, count * 3 * sizeof *in);
    for (uint32_t i = 0; i < count * 3; i++) {
        uint64_t r = kit_random(&random);
        struct ptx_shadow_value *s = &in_shadow[4 * i];
        float single;
        double value;
        /* A warp in two has one kind for all, which goes another way than a mixture. */
        s->kind = i / 96 % 2 ? kinds[i / 192 % sizeof kinds] & 0xf : kinds[r % sizeof kinds] & 0xf;
        memcpy(&single, &operands[i], 4);
        memcpy(&value, &operands[i], 8);
        value = s->kind == PTX_SHADOW_F64 ? value : (double)single;
        s->wide = s->kind ? value * (1 + (double)(int64_t)(r >> 8 & 0xff) * (r & 1 << 16 ? 0x1p-28 : 0x1p-50)) : 0;
        s->origin = s->kind && r & 1 << 17 ? 3 : 0;
        s->depth = s->kind ? r >> 20 & 7 : 0;
        s->flags = (s->kind ? r >> 24 & 3 : r >> 24 & 2) | (r >> 30 & 15 ? 0 : r >> 26 & 12);
        if (s->kind == PTX_SHADOW_F64)
            s[1].kind = PTX_SHADOW_REST, s[1].wide = s->wide * 0x1p-55;
    }
    k->memory.range_count = 0;
    kit_buffer(k, 0, operands, count * 3 * sizeof *operands);
    kit_buffer(k, 1, results, count * sizeof *results);
    k->ranges[0].shadow = in_shadow;
    k->ranges[1].shadow = out_shadow;
    k->ranges[1].tainted = tainted;
    k->params[2] = count;
    k->launch.shadow = true;
    run_instruction(k, results, count);
}

void kit_instruction_variant(const char *instruction, struct kit_shape shape, const uint64_t *in, uint64_t *out,
                             uint32_t count, uint64_t variant)
{
    char text[8192];
    struct kit k;
    instruction_text(text, sizeof text, instruction, shape, WARP_VARIED);
    kit_load(&k, text);
    kit_buffer(&k, 0, (void *)(uintptr_t)in, (size_t)count * 24);
    kit_buffer(&k, 1, out, (size_t)count * 8);
    k.params[2] = count;
    k.launch.variant = variant;
    run_instruction(&k, out, count);
    kit_free(&k);
}

void kit_instruction(const char *instruction, struct kit_shape shape, const uint64_t *in, uint64_t *out, uint32_t count)
{
    char text[8192];
    uint64_t *other = calloc(count + 1u, sizeof *other);
    assert_non_null(other);
    for (enum shape_of_warp warp = WARP_VARIED; warp <= WARP_DIVERGED; warp++) {
        struct kit k;
        instruction_text(text, sizeof text, instruction, shape, warp);
        kit_load(&k, text);
        kit_buffer(&k, 0, (void *)(uintptr_t)in, (size_t)count * 24);
        kit_buffer(&k, 1, out, (size_t)count * 8);
        k.params[2] = count;
        if (warp == WARP_VARIED) { /* these are the results; every other way must give the same bits */
            k.launch.one_by_one = true;
            run_instruction(&k, out, count);
            k.launch.one_by_one = false;
        }
        run_instruction(&k, other, count);
        for (uint32_t i = 0; i < count; i++)
            if (other[i] != out[warp == WARP_UNIFORM ? i & ~31u : i])
                fail_msg("%s: 0x%llx in lock-step (%s), 0x%llx one by one, operands 0x%llx 0x%llx 0x%llx", instruction,
                         (unsigned long long)other[i],
                         warp == WARP_VARIED    ? "varied"
                         : warp == WARP_UNIFORM ? "uniform"
                                                : "diverged",
                         (unsigned long long)out[warp == WARP_UNIFORM ? i & ~31u : i], (unsigned long long)in[3 * i],
                         (unsigned long long)in[3 * i + 1], (unsigned long long)in[3 * i + 2]);
        if (warp == WARP_VARIED) {
            k.launch.shadow = true;
            run_instruction(&k, other, count);
            if (memcmp(out, other, count * sizeof *out) != 0)
                fail_msg("%s: not the same in shadow mode", instruction);
        }
        run_shadowed(&k, in, count);
        kit_free(&k);
    }
    free(other);
}

uint64_t kit_random(uint64_t *state)
{
    uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}
