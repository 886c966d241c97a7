/* module.c - the public side of a module: loading, kernels, variables. */
#include <stdlib.h>
#include <string.h>
#include "ptx/lanes.h"
#include "ptx/lower.h"

static void describe_kernels(struct ptx_module *m)
{
    struct reader *r = m->ast.reader;
    for (uint32_t i = 0; i < m->code_count; i++)
        m->kernel_count += m->code[i]->entry && m->code[i]->defined;
    m->kernels = reader_alloc(r, m->kernel_count, sizeof *m->kernels);
    m->kernel_code = reader_alloc(r, m->kernel_count, sizeof(struct code *));
    uint32_t n = 0;
    for (uint32_t i = 0; i < m->code_count; i++) {
        const struct code *code = m->code[i];
        const struct function *f = code->function;
        if (!code->entry || !code->defined)
            continue;
        struct ptx_param *params = reader_alloc(r, f->param_count, sizeof *params);
        uint32_t k = 0;
        for (const struct symbol *s = f->params; s; s = s->next)
            params[k++] = (struct ptx_param){s->name->text, (uint32_t)s->offset, (uint32_t)s->bytes, s->align};
        uint64_t threads = (uint64_t)f->maxntid[0] * f->maxntid[1] * f->maxntid[2];
        struct kernel_layout layout;
        if (layout_kernel(m, i, NULL, &layout))
            reader_fail(r, STATUS_NO_MEMORY, (struct place){0, 0}, "out of memory while reading PTX");
        m->kernel_code[n] = m->code[i];
        m->kernels[n++] = (struct ptx_kernel){
            .name = f->name->text,
            .params = params,
            .param_count = f->param_count,
            .param_bytes = f->param_bytes,
            .static_shared_bytes = layout.static_bytes,
            .local_bytes = f->local_bytes,
            .max_threads = threads && threads <= 1024 ? (uint32_t)threads : 1024,
            .required_block = {f->reqntid[0], f->reqntid[1], f->reqntid[2]},
            .instruction_count = f->statement_count,
            .first_line = f->first_line,
            .last_line = f->last_line,
        };
    }
}

static void describe_variables(struct ptx_module *m)
{
    struct reader *r = m->ast.reader;
    m->variable_count = m->ast.device_variable_count;
    m->variable_symbols = m->ast.device_variables;
    m->variables = reader_alloc(r, m->variable_count, sizeof *m->variables);
    for (uint32_t i = 0; i < m->variable_count; i++) {
        const struct symbol *s = m->variable_symbols[i];
        m->variables[i] = (struct ptx_variable){
            .name = s->name->text,
            .size = s->bytes,
            .align = s->align,
            .constant = s->space == SPACE_CONST,
            .external = s->external,
            .managed = s->managed,
            .opaque = s->type == TYPE_TEXREF       ? PTX_TEXREF
                      : s->type == TYPE_SAMPLERREF ? PTX_SAMPLERREF
                      : s->type == TYPE_SURFREF    ? PTX_SURFREF
                                                   : PTX_NOT_OPAQUE,
        };
    }
    m->shared = m->ast.shared;
    m->shared_count = m->ast.shared_count;
}

/* Everything a function may reach: itself, its callees, and with an indirect call every function. */
enum status mark_reachable(const struct ptx_module *m, uint32_t index, uint8_t *seen)
{
    if (seen[index])
        return STATUS_OK;
    uint32_t *stack = malloc((m->code_count + 1) * sizeof *stack);
    if (!stack)
        return STATUS_NO_MEMORY;
    uint32_t depth = 0;
    stack[depth++] = index;
    seen[index] = 1;
    while (depth) {
        const struct code *k = m->code[stack[--depth]];
        for (uint32_t i = 0; i < k->callee_count; i++) {
            if (!seen[k->callees[i]]) {
                seen[k->callees[i]] = 1;
                stack[depth++] = k->callees[i];
            }
        }
        for (uint32_t i = 0; k->indirect && i < m->code_count; i++) {
            if (!seen[i] && !m->code[i]->entry) {
                seen[i] = 1;
                stack[depth++] = i;
            }
        }
    }
    free(stack);
    return STATUS_OK;
}

enum status mark_launchable(const struct ptx_module *m, uint32_t index, uint8_t *seen)
{
    enum status status = mark_reachable(m, index, seen);
    for (bool more = true; more && status == STATUS_OK;) {
        more = false;
        for (uint32_t i = 0; i < m->code_count; i++)
            for (uint32_t k = 0; seen[i] && k < m->code[i]->start_count && status == STATUS_OK; k++)
                if (!seen[m->code[i]->starts[k]]) {
                    status = mark_reachable(m, m->code[i]->starts[k], seen);
                    more = true;
                }
    }
    return status;
}

enum status layout_kernel(const struct ptx_module *m, uint32_t index, uint32_t *offsets, struct kernel_layout *layout)
{
    uint8_t *seen = calloc(m->code_count + 1, 1), *used = calloc(m->shared_count + m->ast.shared_count + 1, 1);
    memset(layout, 0, sizeof *layout);
    layout->reachable = seen;
    if (!seen || !used || mark_reachable(m, index, seen)) {
        free(used);
        free(seen);
        layout->reachable = NULL;
        return STATUS_NO_MEMORY;
    }
    for (uint32_t i = 0; i < m->code_count; i++) {
        for (uint32_t k = 0; seen[i] && k < m->code[i]->shared_count; k++)
            used[m->code[i]->shared[k]] = 1;
        if (seen[i] && m->code[i]->reserved)
            layout->reserved_bytes = RESERVED_SHARED;
    }
    uint64_t at = layout->reserved_bytes;
    uint32_t dynamic_align = 16;
    for (uint32_t i = 0; i < m->ast.shared_count; i++) {
        const struct symbol *s = m->ast.shared[i];
        bool dynamic = s->external && s->bytes == 0;
        if (!used[i])
            continue;
        if (dynamic) {
            if (s->align > dynamic_align)
                dynamic_align = s->align;
            continue;
        }
        at = (at + s->align - 1) / s->align * s->align;
        if (offsets)
            offsets[i] = (uint32_t)at;
        at += s->bytes;
    }
    if (at > UINT32_MAX)
        at = UINT32_MAX;
    layout->static_bytes = (uint32_t)at - layout->reserved_bytes;
    layout->dynamic_offset = (uint32_t)((at + dynamic_align - 1) / dynamic_align * dynamic_align);
    for (uint32_t i = 0; offsets && i < m->ast.shared_count; i++)
        if (used[i] && m->ast.shared[i]->external && m->ast.shared[i]->bytes == 0)
            offsets[i] = layout->dynamic_offset;
    free(used);
    if (!offsets) {
        free(seen);
        layout->reachable = NULL;
    }
    return STATUS_OK;
}

static void find_users(struct ptx_module *m)
{
    struct reader *r = m->ast.reader;
    bool any = false;
    for (uint32_t f = 0; f < m->code_count; f++)
        any = any || m->code[f]->heap || m->code[f]->textures || m->code[f]->runtime;
    uint8_t *reachable = reader_alloc(r, m->code_count, 1);
    for (uint32_t i = 0; any && i < m->kernel_count; i++) {
        memset(reachable, 0, m->code_count);
        if (mark_launchable(m, m->kernel_code[i]->function->index, reachable))
            reader_fail(r, STATUS_NO_MEMORY, (struct place){0, 0}, "out of memory while reading PTX");
        for (uint32_t f = 0; f < m->code_count; f++) {
            m->kernels[i].uses_runtime |= reachable[f] && m->code[f]->runtime;
            m->kernels[i].uses_heap |= reachable[f] && m->code[f]->heap;
            m->kernels[i].uses_textures |= reachable[f] && m->code[f]->textures;
        }
    }
}

/* The stages. Nothing here is changed between setjmp() and a jump back but what lies behind `m`. */
static enum status read_stages(struct ptx_module *m, const char *text, size_t bytes, const char *name)
{
    struct reader *r = &m->reader;
    jmp_buf fail;
    r->fail = &fail;
    if (setjmp(fail))
        return r->status;
    r->name = name; /* until the copy is made */
    r->name = reader_intern(r, name, strlen(name))->text;
    char *copy = reader_alloc(r, bytes + 1, 1);
    if (bytes)
        memcpy(copy, text, bytes);
    r->text = copy;
    r->bytes = bytes;
    const char *nul = memchr(copy, 0, bytes);
    if (nul)
        reader_fail(r, STATUS_BAD_INPUT, (struct place){0, 0}, "the text contains a NUL byte at offset %zu",
                    (size_t)(nul - copy));
    parse_module(r, &m->ast);
    resolve_module(&m->ast);
    lower_module(m);
    describe_variables(m);
    describe_kernels(m);
    refusals_find(m);
    find_users(m);
    m->version = (struct ptx_version){m->ast.version_major, m->ast.version_minor, m->ast.target, m->ast.address_size};
    return STATUS_OK;
}

enum status ptx_module_load(const char *text, size_t bytes, const char *name, struct ptx_module **out,
                            struct diag *diag)
{
    *out = NULL;
    memset(diag, 0, sizeof *diag);
    diag->offset = -1;
    struct ptx_module *m = calloc(1, sizeof *m);
    struct lower *l = calloc(1, sizeof *l);
    if (!m || !l) {
        free(m);
        free(l);
        return STATUS_NO_MEMORY;
    }
    m->lower = l;
    m->reader.arena = &m->arena;
    m->reader.diag = diag;
    while (bytes && text[bytes - 1] == 0)
        bytes--;
    enum status status = read_stages(m, text, bytes, name ? name : "PTX");
    map_free(&l->slots);
    map_free(&l->constants);
    map_free(&l->fills);
    free(l);
    m->lower = NULL;
    m->reader.fail = NULL;
    m->reader.diag = NULL; /* the caller's */
    if (status) {
        ptx_module_free(m);
        return status;
    }
    memset(diag, 0, sizeof *diag); /* of what a single kernel lacks */
    diag->offset = -1;
    *out = m;
    return STATUS_OK;
}

void ptx_module_free(struct ptx_module *m)
{
    if (!m)
        return;
    for (uint32_t i = 0; i < m->code_count; i++)
        lane_code_free(atomic_load(&m->code[i]->lanes));
    arena_free(&m->arena);
    free(m);
}

struct ptx_version ptx_module_version(const struct ptx_module *m)
{
    return m->version;
}

size_t ptx_module_kernel_count(const struct ptx_module *m)
{
    return m->kernel_count;
}

const struct ptx_kernel *ptx_module_kernel(const struct ptx_module *m, size_t index)
{
    return index < m->kernel_count ? &m->kernels[index] : NULL;
}

const struct ptx_kernel *ptx_module_find_kernel(const struct ptx_module *m, const char *name)
{
    for (uint32_t i = 0; i < m->kernel_count; i++)
        if (strcmp(m->kernels[i].name, name) == 0)
            return &m->kernels[i];
    return NULL;
}

size_t ptx_module_variable_count(const struct ptx_module *m)
{
    return m->variable_count;
}

const struct ptx_variable *ptx_module_variable(const struct ptx_module *m, size_t index)
{
    return index < m->variable_count ? &m->variables[index] : NULL;
}

enum status ptx_module_variable_init(const struct ptx_module *m, size_t index, const uint64_t *addresses, void *out)
{
    if (index >= m->variable_count)
        return STATUS_NOT_FOUND;
    const struct symbol *s = m->variable_symbols[index];
    memset(out, 0, s->bytes);
    for (uint32_t i = 0; i < s->init_count; i++) {
        const struct initializer *e = &s->init[i];
        uint64_t value = e->value;
        if (e->symbol && e->symbol->kind == SYMBOL_FUNCTION)
            value += PTX_CODE_WINDOW + (uint64_t)(e->symbol->function->index + 1) * CODE_ADDRESS_STEP;
        else if (e->symbol)
            value += addresses[e->symbol->id];
        if (e->masked)
            value >>= e->mask_shift;
        if (e->offset <= s->bytes && e->bytes <= s->bytes - e->offset) /* of .b128 the upper half stays 0 */
            memcpy((char *)out + e->offset, &value, e->bytes < sizeof value ? e->bytes : sizeof value);
    }
    return STATUS_OK;
}

/* ---- source positions ---- */

static const char *debug_name(const struct ast *ast, const struct location *l)
{
    if (!l->label)
        return NULL;
    for (uint32_t i = 0; i < ast->debug_label_count; i++)
        if (ast->debug_labels[i].name == l->label) {
            uint64_t at = (uint64_t)ast->debug_labels[i].offset + l->label_offset;
            return at < ast->debug_str_bytes ? ast->debug_str + at : NULL;
        }
    return NULL;
}

static const char *file_name(const struct ast *ast, uint32_t number)
{
    return number < ast->file_count && ast->files[number] ? ast->files[number]->text : NULL;
}

/* The last .loc at or before `ptx_line` in the function's list; the list is sorted by line. */
static const struct location *location_at(const struct function *f, uint32_t ptx_line)
{
    uint32_t low = 0, high = f->location_count;
    while (low < high) {
        uint32_t mid = low + (high - low) / 2;
        if (f->locations[mid].ptx_line <= ptx_line)
            low = mid + 1;
        else
            high = mid;
    }
    return low ? &f->locations[low - 1] : NULL;
}

/* inlined_at names a position; the .loc of that position, when it is itself inlined code, tells the next caller. */
static const struct location *caller_location(const struct function *f, const struct location *l)
{
    for (const struct location *c = l; c-- > f->locations;)
        if (c->file == l->at_file && c->line == l->at_line && c->column == l->at_column)
            return c;
    return NULL;
}

size_t ptx_module_source(const struct ptx_module *m, uint32_t ptx_line, struct ptx_source *frames, size_t max)
{
    const struct function *f = NULL;
    for (uint32_t i = 0; i < m->code_count && !f; i++) {
        const struct function *g = m->code[i]->function;
        if (g->defined && g->first_line <= ptx_line && ptx_line <= g->last_line)
            f = g;
    }
    if (!f || max == 0)
        return 0;
    const struct location *l = location_at(f, ptx_line);
    size_t n = 0;
    if (!l || l->line == 0) {
        frames[n++] = (struct ptx_source){.function = f->name->text, .ptx_line = ptx_line};
        return n;
    }
    struct location here = *l;
    const struct location *at = l;
    while (n < max && n < 64) {
        const char *function = at ? debug_name(&m->ast, at) : NULL;
        frames[n++] = (struct ptx_source){
            .file = file_name(&m->ast, here.file),
            .function = function ? function : f->name->text,
            .line = here.line,
            .column = here.column,
            .ptx_line = ptx_line,
        };
        if (!at || !at->inlined)
            break;
        here.file = at->at_file;
        here.line = at->at_line;
        here.column = at->at_column;
        at = caller_location(f, at);
    }
    return n;
}
