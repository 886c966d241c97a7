/* counts_table.c - what is known of a kernel's PTX instructions before it runs: class, floating-point operations, which
 * micro-operations carry them out, and which of these touch memory. */
#include <stdlib.h>
#include <string.h>
#include "ptx/counts.h"
#include "ptx/exec_mbarrier.h"
#include "ptx/matrix.h"

/* ---- classes ---- */

/* Those whose class is not their type's. */
static const struct {
    const char *opcode;
    uint8_t class;
} fixed_classes[] = {
    {"cvt", PTX_CLASS_CONVERSION},
    {"rcp", PTX_CLASS_SPECIAL},
    {"sqrt", PTX_CLASS_SPECIAL},
    {"rsqrt", PTX_CLASS_SPECIAL},
    {"sin", PTX_CLASS_SPECIAL},
    {"cos", PTX_CLASS_SPECIAL},
    {"lg2", PTX_CLASS_SPECIAL},
    {"ex2", PTX_CLASS_SPECIAL},
    {"tanh", PTX_CLASS_SPECIAL},
    {"mma", PTX_CLASS_TENSOR},
    {"ld", PTX_CLASS_LOAD},
    {"ldu", PTX_CLASS_LOAD},
    {"ldmatrix", PTX_CLASS_LOAD},
    {"cp", PTX_CLASS_LOAD},
    {"st", PTX_CLASS_STORE},
    {"stmatrix", PTX_CLASS_STORE},
    {"atom", PTX_CLASS_ATOMIC},
    {"red", PTX_CLASS_ATOMIC},
    {"tex", PTX_CLASS_TEXTURE},
    {"tld4", PTX_CLASS_TEXTURE},
    {"txq", PTX_CLASS_TEXTURE},
    {"suq", PTX_CLASS_TEXTURE},
    {"suld", PTX_CLASS_TEXTURE},
    {"sust", PTX_CLASS_TEXTURE},
    {"sured", PTX_CLASS_TEXTURE},
    {"bra", PTX_CLASS_BRANCH},
    {"brx", PTX_CLASS_BRANCH},
    {"call", PTX_CLASS_BRANCH},
    {"ret", PTX_CLASS_BRANCH},
    {"exit", PTX_CLASS_BRANCH},
    {"trap", PTX_CLASS_BRANCH},
    {"brkpt", PTX_CLASS_BRANCH},
    {"bar", PTX_CLASS_BARRIER},
    {"barrier", PTX_CLASS_BARRIER},
    {"mbarrier", PTX_CLASS_BARRIER},
    {"fence", PTX_CLASS_BARRIER},
    {"membar", PTX_CLASS_BARRIER},
    {"shfl", PTX_CLASS_SHUFFLE},
    {"vote", PTX_CLASS_SHUFFLE},
    {"match", PTX_CLASS_SHUFFLE},
    {"redux", PTX_CLASS_SHUFFLE},
    {"elect", PTX_CLASS_SHUFFLE},
    {"activemask", PTX_CLASS_SHUFFLE},
    {"movmatrix", PTX_CLASS_SHUFFLE},
    {"mov", PTX_CLASS_MOVE},
    {"selp", PTX_CLASS_MOVE},
    {"slct", PTX_CLASS_MOVE},
    {"cvta", PTX_CLASS_MOVE},
    {"mapa", PTX_CLASS_MOVE},
    {"prefetch", PTX_CLASS_OTHER},
    {"prefetchu", PTX_CLASS_OTHER},
    {"discard", PTX_CLASS_OTHER},
    {"applypriority", PTX_CLASS_OTHER},
    {"createpolicy", PTX_CLASS_OTHER},
    {"pmevent", PTX_CLASS_OTHER},
    {"nanosleep", PTX_CLASS_OTHER},
    {"setmaxnreg", PTX_CLASS_OTHER},
    {"griddepcontrol", PTX_CLASS_OTHER},
    {"alloca", PTX_CLASS_OTHER},
    {"stacksave", PTX_CLASS_OTHER},
    {"stackrestore", PTX_CLASS_OTHER},
    {"getctarank", PTX_CLASS_INTEGER},
    {"isspacep", PTX_CLASS_INTEGER},
    {"istypep", PTX_CLASS_INTEGER},
};

static bool has_word(const struct statement *s, const char *word)
{
    for (uint32_t i = 0; i < s->mod_count; i++)
        if (strcmp(s->mods[i]->text, word) == 0)
            return true;
    return false;
}

/* The type that an instruction computes in: `set` and `testp` name their result's first, or only theirs. */
static enum type computed_type(const struct statement *s)
{
    enum type type = TYPE_NONE;
    bool second = strcmp(s->opcode->text, "set") == 0;
    for (uint32_t i = 0; i < s->mod_count; i++) {
        enum type t = type_find(s->mods[i]->text);
        if (t == TYPE_NONE)
            continue;
        type = t;
        if (!second)
            break;
    }
    return type;
}

static enum ptx_class type_class(enum type t)
{
    switch (t) {
    case TYPE_F16:
    case TYPE_F16X2:
    case TYPE_BF16:
    case TYPE_BF16X2:
        return PTX_CLASS_FP16;
    case TYPE_F32:
        return PTX_CLASS_FP32;
    case TYPE_F64:
        return PTX_CLASS_FP64;
    default:
        return PTX_CLASS_INTEGER;
    }
}

static enum ptx_class class_of(const struct statement *s)
{
    const char *opcode = s->opcode->text;
    if (strcmp(opcode, "wmma") == 0)
        return has_word(s, "load") ? PTX_CLASS_LOAD : has_word(s, "store") ? PTX_CLASS_STORE : PTX_CLASS_TENSOR;
    if (strcmp(opcode, "cp") == 0 && (has_word(s, "commit_group") || has_word(s, "wait_group") ||
                                      has_word(s, "wait_all") || has_word(s, "mbarrier")))
        return PTX_CLASS_BARRIER;
    for (size_t i = 0; i < sizeof fixed_classes / sizeof *fixed_classes; i++)
        if (strcmp(fixed_classes[i].opcode, opcode) == 0)
            return (enum ptx_class)fixed_classes[i].class;
    return type_class(computed_type(s));
}

/* ---- floating-point operations ---- */

static bool is_any(const char *opcode, const char *const *list)
{
    for (; *list; list++)
        if (strcmp(opcode, *list) == 0)
            return true;
    return false;
}

static void scalar_flops(const struct statement *s, struct counted *c)
{
    static const char *const one[] = {"add", "sub", "mul", "div", "rcp",  "sqrt", "rsqrt",
                                      "sin", "cos", "lg2", "ex2", "tanh", NULL};
    static const char *const two[] = {"fma", "mad", NULL};
    const char *opcode = s->opcode->text;
    enum type t = computed_type(s);
    uint32_t n = is_any(opcode, one) ? 1 : is_any(opcode, two) ? 2 : 0;
    if ((strcmp(opcode, "atom") == 0 || strcmp(opcode, "red") == 0) && has_word(s, "add"))
        n = has_word(s, "v2") ? 2 : has_word(s, "v4") ? 4 : has_word(s, "v8") ? 8 : 1;
    switch (t) {
    case TYPE_F16X2:
    case TYPE_BF16X2:
        n *= 2;
        break;
    case TYPE_F16:
    case TYPE_BF16:
    case TYPE_F32:
    case TYPE_F64:
        break;
    default:
        n = 0;
    }
    c->flops = n;
    c->flop_type = t == TYPE_F16 || t == TYPE_F16X2     ? PTX_FLOP_F16
                   : t == TYPE_BF16 || t == TYPE_BF16X2 ? PTX_FLOP_BF16
                   : t == TYPE_F64                      ? PTX_FLOP_F64
                                                        : PTX_FLOP_F32;
}

static void matrix_flops(const struct matrix *m, struct counted *c)
{
    static const uint8_t types[MATRIX_TYPE_COUNT] = {
        [MATRIX_F16] = PTX_FLOP_TENSOR_F16,    [MATRIX_BF16] = PTX_FLOP_TENSOR_BF16,
        [MATRIX_TF32] = PTX_FLOP_TENSOR_TF32,  [MATRIX_F64] = PTX_FLOP_TENSOR_F64,
        [MATRIX_S8] = PTX_FLOP_TENSOR_INTEGER, [MATRIX_U8] = PTX_FLOP_TENSOR_INTEGER,
        [MATRIX_S4] = PTX_FLOP_TENSOR_INTEGER, [MATRIX_U4] = PTX_FLOP_TENSOR_INTEGER,
        [MATRIX_B1] = PTX_FLOP_TENSOR_INTEGER, [MATRIX_E4M3] = PTX_FLOP_TENSOR_F8,
        [MATRIX_E5M2] = PTX_FLOP_TENSOR_F8,
    };
    uint32_t depth = m->a.columns * (m->a.type == MATRIX_B1 ? 32u : 1u);
    uint32_t batches = m->d.batches ? m->d.batches : 1;
    c->flops = 2u * m->d.rows * m->d.columns * depth * batches;
    c->flop_type = types[m->a.type];
    c->warp_flops = true;
}

/* ---- sites ---- */

static uint32_t new_site(struct count_table *t, struct site site)
{
    if (t->site_count == t->site_capacity) {
        uint32_t want = t->site_capacity ? 2 * t->site_capacity : 16;
        struct site *fresh = realloc(t->sites, want * sizeof *fresh);
        if (!fresh)
            return UINT32_MAX;
        t->sites = fresh;
        t->site_capacity = want;
    }
    t->sites[t->site_count] = site;
    return t->site_count++;
}

static const uint8_t element_sizes[ELEMENT_COUNT] = {1, 1, 2, 2, 4, 4, 8};

static bool matrix_site(const struct matrix *m, struct site *s)
{
    const struct fragment *f = m->kind == MATRIX_LOAD ? &m->d : &m->a;
    if (m->kind != MATRIX_LOAD && m->kind != MATRIX_STORE)
        return false;
    s->kind = m->addressed ? SITE_ROWS : SITE_MATRIX;
    s->space = (enum mem_space)m->space;
    s->read = m->kind == MATRIX_LOAD;
    s->write = !s->read;
    s->lines = m->lines;
    s->bits = f->bits;
    s->bytes = m->line_elements * f->bits / 8u;
    return true;
}

/* What micro-operation `in` does with memory; false: nothing. */
static bool describe(const struct ptx_module *m, const struct insn *in, struct site *s)
{
    s->slot = in->a;
    s->imm = in->imm;
    switch (in->op) {
#define LOAD(id, where, type)                                                                                          \
    case OP_##id:                                                                                                      \
        s->space = MEM_##where;                                                                                        \
        s->bytes = element_sizes[ELEMENT_##type];                                                                      \
        s->read = true;                                                                                                \
        return true;
#define STORE(id, where, type)                                                                                         \
    case OP_##id:                                                                                                      \
        s->space = MEM_##where;                                                                                        \
        s->bytes = element_sizes[ELEMENT_##type];                                                                      \
        s->write = true;                                                                                               \
        return true;
#include "ptx/microops.def"
    case OP_LDV:
    case OP_STV:
        s->space = (enum mem_space)(in->mod >> MOD_SPACE_SHIFT & 0xf);
        s->bytes = (in->mod >> MOD_VECTOR_SHIFT & 0xfu) * element_sizes[in->mod & MOD_ELEMENT];
        s->read = in->op == OP_LDV;
        s->write = in->op == OP_STV;
        return true;
    case OP_ATOM:
    case OP_ATOM128:
        s->space = (enum mem_space)(in->mod >> 8 & 0xf);
        s->bytes = in->op == OP_ATOM ? atom_bytes(in->mod) : 16;
        s->imm = in->op == OP_ATOM ? in->imm : 0; /* there it says where the upper halves are */
        s->read = s->write = s->atomic = true;
        return true;
    case OP_MBARRIER:
        s->space = MEM_SHARED;
        s->bytes = 8;
        s->read = s->write = true;
        return true;
    case OP_CP_ASYNC:
    case OP_CP_BULK:
        s->kind = in->op == OP_CP_ASYNC ? SITE_COPY : SITE_BULK;
        s->space = MEM_GLOBAL;
        s->bytes = in->op == OP_CP_ASYNC ? in->mod : 0;
        s->to_global = in->op == OP_CP_BULK && in->mod == BULK_TO_GLOBAL;
        s->other_slot = in->b;
        s->length_slot = in->c;
        s->imm = 0;
        return true;
    case OP_MATRIX:
        s->other_slot = in->c;
        return matrix_site(&m->matrices[in->mod], s);
    default:
        return false;
    }
}

/* ---- a function ---- */

static bool is_skip(const struct insn *in)
{
    return in->op == OP_SKIP_IF || in->op == OP_SKIP_UNLESS;
}

static bool in_param_space(const struct statement *s)
{
    return has_word(s, "param") || has_word(s, "param::entry") || has_word(s, "param::func");
}

static void param_access(const struct statement *s, struct counted *c)
{
    enum type t = computed_type(s);
    uint32_t elements = has_word(s, "v2") ? 2 : has_word(s, "v4") ? 4 : 1;
    if (!in_param_space(s) || (c->class != PTX_CLASS_LOAD && c->class != PTX_CLASS_STORE) || t == TYPE_NONE)
        return;
    c->param_bytes = type_info[t].bits / 8u * elements;
    c->param_write = c->class == PTX_CLASS_STORE;
}

static bool add_sites(struct count_table *t, const struct code *k, const struct statement *s, uint32_t from,
                      uint32_t to)
{
    uint32_t function = k->function->index;
    for (uint32_t pc = from; pc < to; pc++) {
        struct site site = {.function = function, .pc = pc};
        if (!describe(t->module, &k->insns[pc], &site) || (s && in_param_space(s)))
            continue;
        if (s && site.space == MEM_GLOBAL && has_word(s, "const"))
            site.space = MEM_CONST;
        uint32_t number = new_site(t, site);
        if (number == UINT32_MAX)
            return false;
        t->site_of[t->base[function] + pc] = number;
    }
    return true;
}

static void add_flops(const struct count_table *t, const struct code *k, const struct statement *s, uint32_t from,
                      uint32_t to, struct counted *c)
{
    scalar_flops(s, c);
    for (uint32_t pc = from; pc < to && c->class == PTX_CLASS_TENSOR; pc++)
        if (k->insns[pc].op == OP_MATRIX && t->module->matrices[k->insns[pc].mod].kind == MATRIX_MULTIPLY)
            matrix_flops(&t->module->matrices[k->insns[pc].mod], c);
}

/* An instruction is counted with the micro-operation in whose weight it is: its own last one, or, where it has none,
 * that of the instruction behind it. A guard that is false skips micro-operations and counts all the same, so where
 * there is one, its own micro-operation tells how often. */
static bool add_function(struct count_table *t, const struct code *k)
{
    const struct function *f = k->function;
    uint32_t pc = 0, owner = 0;
    for (uint32_t i = 0; i < f->statement_count; i++) {
        const struct statement *s = &f->statements[i];
        uint32_t from = k->statement_pc[i], to = k->statement_pc[i + 1];
        if (!add_sites(t, k, s, from, to))
            return false;
        while (pc < k->count && k->weight[pc + 1] <= i)
            pc++;
        if (pc == k->count)
            break; /* behind the last one that does anything: never counted */
        owner = owner < i ? i : owner;
        while (owner < f->statement_count && k->statement_pc[owner + 1] <= pc)
            owner++;
        uint32_t first = owner < f->statement_count ? k->statement_pc[owner] : pc;
        struct counted *c = &t->list[t->count++];
        *c = (struct counted){.function = f->index, .statement = i, .line = s->at.line, .class = (uint8_t)class_of(s)};
        c->issue_pc = first < pc && is_skip(&k->insns[first]) ? first : pc;
        c->done_pc = owner == i ? pc : c->issue_pc;
        c->guarded = c->done_pc != c->issue_pc;
        uint16_t op = k->insns[pc].op;
        c->branch = owner == i && (op == OP_BRA_IF || op == OP_BRA_UNLESS || op == OP_BRX);
        add_flops(t, k, s, from, to, c);
        param_access(s, c);
    }
    return true;
}

void count_table_free(struct count_table *t)
{
    if (!t)
        return;
    for (int partial = 0; partial < 2; partial++)
        free((void *)t->handlers[partial]);
    free(t->base);
    free(t->site_of);
    free(t->sites);
    free(t->list);
    free(t);
}

struct count_table *count_table_make(const struct launch *l)
{
    const struct ptx_module *m = l->module;
    struct count_table *t = calloc(1, sizeof *t);
    if (!t)
        return NULL;
    t->module = m;
    t->base = calloc(m->code_count + 1u, sizeof *t->base);
    uint32_t statements = 0;
    for (uint32_t i = 0; t->base && i < m->code_count; i++) {
        if (!l->layout.reachable[i] || !m->code[i]->defined)
            continue;
        t->base[i] = t->pc_count;
        t->pc_count += m->code[i]->count + 1;
        statements += m->code[i]->function->statement_count;
    }
    t->site_of = calloc(t->pc_count + 1u, sizeof *t->site_of);
    t->list = calloc(statements + 1u, sizeof *t->list);
    bool ok = t->base && t->site_of && t->list && new_site(t, (struct site){0}) == NO_SITE;
    for (uint32_t i = 0; ok && i < m->code_count; i++)
        if (l->layout.reachable[i] && m->code[i]->defined)
            ok = add_function(t, m->code[i]);
    if (!ok) {
        count_table_free(t);
        return NULL;
    }
    t->entry_base = t->base[l->entry->function->index];
    return t;
}
