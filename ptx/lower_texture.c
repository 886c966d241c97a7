/* lower_texture.c - instructions on textures and surfaces: which forms exist, and where their operands lie. */
#include <string.h>
#include "ptx/lower.h"
#include "ptx/texture.h"

enum { MAX_FORMS = 1 << 16 };

/* ---- words behind the opcode, in their order ---- */

static const char *word_at(const struct lower *l, uint32_t at)
{
    return at < l->s->mod_count ? l->s->mods[at]->text : "";
}

static bool take(const struct lower *l, uint32_t *at, const char *text)
{
    if (strcmp(word_at(l, *at), text) != 0)
        return false;
    ++*at;
    return true;
}

static void need(struct lower *l, bool good)
{
    if (!good)
        lower_refuse(l, "its words are not those of a form known here");
}

static void take_geometry(struct lower *l, uint32_t *at, struct texture_op *op)
{
    static const struct {
        const char *word;
        uint8_t dimensions;
        bool layered, cube;
    } geometries[] = {
        {"1d", 1, false, false}, {"2d", 2, false, false},  {"3d", 3, false, false},  {"a1d", 1, true, false},
        {"a2d", 2, true, false}, {"cube", 3, false, true}, {"acube", 3, true, true},
    };
    for (size_t i = 0; i < sizeof geometries / sizeof *geometries; i++)
        if (take(l, at, geometries[i].word)) {
            op->dimensions = geometries[i].dimensions;
            op->layered = geometries[i].layered;
            op->cube = geometries[i].cube;
            return;
        }
    need(l, false);
}

/* ---- operands ---- */

/* A register with the handle, a variable, or a kernel's parameter. */
static uint32_t handle(struct lower *l, const struct operand *o, bool surface)
{
    if (o->kind == OPERAND_ADDRESS || o->kind == OPERAND_TEXTURE) {
        if (!o->name || o->value)
            reader_fail(l->reader, STATUS_BAD_INPUT, o->at, "expected a texture or a surface in [ ]");
    }
    uint32_t index;
    const struct symbol *s = symbols_find_register(l->ast, l->s->scope, o->name, &index);
    if (s && s->kind == SYMBOL_VARIABLE && s->type != (surface ? TYPE_SURFREF : TYPE_TEXREF))
        reader_fail(l->reader, STATUS_BAD_INPUT, o->at, "`%s` is no .%s", o->name->text,
                    surface ? "surfref" : "texref");
    if (s && s->kind == SYMBOL_VARIABLE && s->space == SPACE_PARAM) {
        if (!l->function->entry || s->function_param)
            lower_refuse(l, "a texture or surface as a function's parameter is not known here");
        return fill_slot(l, (struct fill){.kind = FILL_PARAM, .value = (uint32_t)s->offset, .bytes = 8});
    }
    struct operand name = *o;
    name.kind = OPERAND_NAME;
    return source_operand(l, &name, TYPE_B64);
}

static const struct operand *texture_operand(struct lower *l, uint32_t i)
{
    const struct operand *o = operand_at(l, i);
    if (!o || o->kind != OPERAND_TEXTURE)
        lower_bad_operand(l, i, "a texture or surface and its coordinates in [ ]");
    if (o->item_count == 2)
        lower_refuse(l, "a sampler of its own is not known here");
    return o;
}

static void input(struct lower *l, struct texture_op *op, const struct operand *o, enum type type)
{
    if (o->negated || o->pair || op->inputs == TEXTURE_MAX_INPUTS)
        reader_fail(l->reader, STATUS_BAD_INPUT, o->at, "expected a register or a literal");
    emit_extra(l, source_operand(l, o, type));
    op->inputs++;
}

/* `count` values, in braces or, when it is one, without. Three may stand as four, of which the last says nothing. */
static void inputs(struct lower *l, struct texture_op *op, const struct operand *o, uint32_t count, enum type type)
{
    const struct operand *items = o;
    uint32_t given = 1;
    if (o->kind == OPERAND_VECTOR) {
        items = o->items;
        given = o->item_count;
    }
    if (given != count && !(count == 3 && given == 4))
        reader_fail(l->reader, STATUS_BAD_INPUT, o->at, "expected as many elements as the form has");
    for (uint32_t i = 0; i < count; i++)
        input(l, op, &items[i], type);
}

static void coordinates(struct lower *l, struct texture_op *op, const struct operand *o)
{
    const struct operand *c = &o->items[0];
    enum type type = op->integer ? TYPE_S32 : TYPE_F32;
    if (!op->layered) {
        inputs(l, op, c, op->dimensions, type);
        return;
    }
    uint32_t count = op->dimensions + 1u;
    if (c->kind != OPERAND_VECTOR || (c->item_count != count && !(count == 3 && c->item_count == 4)))
        reader_fail(l->reader, STATUS_BAD_INPUT, c->at, "expected the layer and as many coordinates as the form has");
    input(l, op, &c->items[0], TYPE_U32);
    for (uint32_t i = 1; i < count; i++)
        input(l, op, &c->items[i], type);
}

/* Results come before anything else is emitted. */
static void outputs(struct lower *l, struct texture_op *op, uint32_t count, enum type type)
{
    const struct operand *o = operand_at(l, 0), *items = o;
    uint32_t given = 1;
    if (o->kind == OPERAND_VECTOR) {
        items = o->items;
        given = o->item_count;
    }
    if (given != count)
        lower_bad_operand(l, 0, "as many registers as the form has");
    for (uint32_t i = 0; i < count; i++)
        emit_extra(l, destination_operand(l, &items[i], type));
    op->outputs = (uint8_t)count;
    if (o->pair) {
        if (op->kind != TEXTURE_FETCH && op->kind != TEXTURE_GATHER)
            lower_bad_operand(l, 0, "no predicate");
        emit_extra(l, destination_operand(l, o->pair, TYPE_PRED));
        op->resident = true;
        op->outputs++;
    }
}

/* ---- code ---- */

static unsigned form_number(struct lower *l, const struct texture_op *op)
{
    struct ptx_module *m = l->module;
    for (uint32_t i = 0; i < m->texture_op_count; i++)
        if (memcmp(&m->texture_ops[i], op, sizeof *op) == 0)
            return i;
    if (m->texture_op_count == MAX_FORMS)
        lower_refuse(l, "the module has too many forms of instructions on textures");
    struct texture_op *fresh =
        reader_push(l->reader, (void **)&m->texture_ops, &m->texture_op_count, &m->texture_op_capacity, sizeof *fresh);
    *fresh = *op;
    return m->texture_op_count - 1;
}

static void emit_texture(struct lower *l, const struct texture_op *op, uint32_t handle_slot, uint32_t first)
{
    struct insn *in = emit(l, OP_TEXTURE, form_number(l, op), op->outputs, handle_slot, first, 0);
    in->aux = l->module->access_count++;
    l->code->textures = true;
}

/* {, e} {, f}: offsets; comparison with a depth. */
static void optional_operands(struct lower *l, struct texture_op *op, uint32_t at)
{
    const struct operand *e = operand_at(l, at);
    if (!e)
        return;
    if (op->cube || operand_at(l, at + 1) || e->kind != OPERAND_VECTOR)
        lower_refuse(l, "comparison with a depth is not known here");
    op->offset = true;
    inputs(l, op, e, op->dimensions, TYPE_S32);
}

void lower_tex(struct lower *l)
{
    struct texture_op op = {.kind = TEXTURE_FETCH};
    uint32_t at = 0, first = l->code->extra_count, next = 2;
    op.mip = take(l, &at, "level") ? MIP_LEVEL : take(l, &at, "grad") ? MIP_GRADIENT : MIP_BASE;
    if (op.mip == MIP_BASE)
        (void)take(l, &at, "base");
    take_geometry(l, &at, &op);
    if (take(l, &at, "v2"))
        op.result = RESULT_F16X2;
    else
        need(l, take(l, &at, "v4"));
    if (op.result == RESULT_F16X2)
        need(l, take(l, &at, "f16x2"));
    else if (take(l, &at, "f16"))
        op.result = RESULT_F16;
    else
        need(l, take(l, &at, "f32") || take(l, &at, "s32") || take(l, &at, "u32"));
    op.integer = take(l, &at, "s32");
    need(l, (op.integer || take(l, &at, "f32")) && at == l->s->mod_count && !(op.integer && op.cube));
    if (op.integer && op.mip == MIP_GRADIENT)
        lower_refuse(l, "gradients do not go with integer coordinates");
    const struct operand *o = texture_operand(l, 1);
    outputs(l, &op, op.result == RESULT_F16X2 ? 2 : 4, l->type);
    uint32_t from = handle(l, o, false);
    coordinates(l, &op, o);
    if (op.mip == MIP_LEVEL)
        next = 3;
    if (op.mip == MIP_GRADIENT)
        next = 4;
    for (uint32_t i = 2; i < next; i++) {
        if (!operand_at(l, i))
            lower_bad_operand(l, i, "a level of detail or gradients");
        inputs(l, &op, operand_at(l, i), op.mip == MIP_LEVEL ? 1 : op.dimensions,
               op.mip == MIP_LEVEL && op.integer ? TYPE_S32 : TYPE_F32);
    }
    optional_operands(l, &op, next);
    emit_texture(l, &op, from, first);
}

void lower_tld4(struct lower *l)
{
    struct texture_op op = {.kind = TEXTURE_GATHER};
    uint32_t at = 0, first = l->code->extra_count;
    while (op.component < 4 && !take(l, &at, (const char *[]){"r", "g", "b", "a"}[op.component]))
        op.component++;
    need(l, op.component < 4);
    take_geometry(l, &at, &op);
    need(l, op.cube || op.dimensions == 2);
    need(l, take(l, &at, "v4") && (take(l, &at, "f32") || take(l, &at, "s32") || take(l, &at, "u32")));
    need(l, take(l, &at, "f32") && at == l->s->mod_count);
    const struct operand *o = texture_operand(l, 1);
    outputs(l, &op, 4, l->type);
    uint32_t from = handle(l, o, false);
    coordinates(l, &op, o);
    optional_operands(l, &op, 2);
    emit_texture(l, &op, from, first);
}

/* ---- properties ---- */

static const char *const query_words[] = {
    [QUERY_WIDTH] = "width",
    [QUERY_HEIGHT] = "height",
    [QUERY_DEPTH] = "depth",
    [QUERY_DATA_TYPE] = "channel_data_type",
    [QUERY_ORDER] = "channel_order",
    [QUERY_NORMALISED] = "normalized_coords",
    [QUERY_ARRAY_SIZE] = "array_size",
    [QUERY_LEVELS] = "num_mipmap_levels",
    [QUERY_SAMPLES] = "num_samples",
    [QUERY_FORCE_UNNORMALISED] = "force_unnormalized_coords",
    [QUERY_FILTER] = "filter_mode",
    [QUERY_ADDRESS_0] = "addr_mode_0",
    [QUERY_ADDRESS_1] = "addr_mode_1",
    [QUERY_ADDRESS_2] = "addr_mode_2",
    [QUERY_MEMORY_LAYOUT] = "memory_layout",
};

static void lower_query(struct lower *l, bool surface)
{
    struct texture_op op = {.kind = TEXTURE_QUERY, .surface = surface};
    uint32_t at = 0, first = l->code->extra_count;
    bool level = !surface && take(l, &at, "level");
    enum { QUERIES = sizeof query_words / sizeof *query_words };
    while (op.query < QUERIES && !take(l, &at, query_words[op.query]))
        op.query++;
    need(l, op.query < QUERIES && take(l, &at, "b32") && at == l->s->mod_count);
    bool both = op.query <= QUERY_ORDER || op.query == QUERY_ARRAY_SIZE;
    need(l, (both || surface == (op.query == QUERY_MEMORY_LAYOUT)) && (!level || op.query <= QUERY_DEPTH));
    const struct operand *o = operand_at(l, 1);
    if (o->kind != OPERAND_ADDRESS)
        lower_bad_operand(l, 1, "a texture or surface in [ ]");
    outputs(l, &op, 1, TYPE_B32);
    uint32_t from = handle(l, o, surface);
    if (level != (operand_at(l, 2) != NULL))
        lower_bad_operand(l, 2, "a level of detail, with .level only");
    if (level)
        input(l, &op, operand_at(l, 2), TYPE_B32);
    emit_texture(l, &op, from, first);
}

void lower_txq(struct lower *l)
{
    lower_query(l, false);
}

void lower_suq(struct lower *l)
{
    lower_query(l, true);
}

void lower_istypep(struct lower *l)
{
    if (l->m.type_count != 1 || l->type == TYPE_SAMPLERREF)
        lower_refuse(l, "expected .texref or .surfref");
    struct texture_op op = {.kind = TEXTURE_IS, .surface = l->type == TYPE_SURFREF};
    uint32_t first = l->code->extra_count;
    outputs(l, &op, 1, TYPE_PRED);
    emit_texture(l, &op, source(l, 1, TYPE_B64), first);
}

/* ---- surfaces ---- */

static void take_bounds(struct lower *l, uint32_t *at, struct texture_op *op)
{
    op->bounds = take(l, at, "clamp") ? BOUNDS_CLAMP : take(l, at, "zero") ? BOUNDS_ZERO : BOUNDS_TRAP;
    if (op->bounds == BOUNDS_TRAP)
        (void)take(l, at, "trap");
    need(l, *at == l->s->mod_count);
}

static void take_surface_geometry(struct lower *l, uint32_t *at, struct texture_op *op)
{
    op->integer = true;
    take_geometry(l, at, op);
    need(l, !op->cube);
}

static void skip_cache(const struct lower *l, uint32_t *at)
{
    static const char *const words[] = {"ca", "cg", "cs", "cv", "wb", "wt"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (take(l, at, words[i]))
            return;
}

/* geometry {.cop} {.vec} .type {.mode} */
static void take_access(struct lower *l, uint32_t *at, struct texture_op *op)
{
    take_surface_geometry(l, at, op);
    skip_cache(l, at);
    op->elements = take(l, at, "v2") ? 2 : take(l, at, "v4") ? 4 : 1;
    op->bytes = type_info[l->type].bits / 8;
    need(l, l->m.type_count == 1 && take(l, at, type_info[l->type].name) && op->bytes * op->elements <= 16);
    take_bounds(l, at, op);
}

void lower_suld(struct lower *l)
{
    struct texture_op op = {.kind = SURFACE_LOAD};
    uint32_t at = 0, first = l->code->extra_count;
    need(l, take(l, &at, "b"));
    take_access(l, &at, &op);
    const struct operand *o = texture_operand(l, 1);
    outputs(l, &op, op.elements, l->type);
    uint32_t from = handle(l, o, true);
    coordinates(l, &op, o);
    emit_texture(l, &op, from, first);
}

void lower_sust(struct lower *l)
{
    struct texture_op op = {.kind = SURFACE_STORE};
    uint32_t at = 0, first = l->code->extra_count;
    op.formatted = take(l, &at, "p");
    need(l, op.formatted || take(l, &at, "b"));
    take_access(l, &at, &op);
    need(l, !op.formatted || (l->type == TYPE_B32 && !op.layered));
    const struct operand *o = texture_operand(l, 0);
    uint32_t from = handle(l, o, true);
    coordinates(l, &op, o);
    inputs(l, &op, operand_at(l, 1), op.elements, l->type);
    emit_texture(l, &op, from, first);
}

static unsigned reduction_type(struct lower *l, bool formatted)
{
    unsigned op = (unsigned)l->m.value[CLASS_OPER];
    bool add = op == ATOM_ADD, order = op == ATOM_MIN || op == ATOM_MAX, logic = op == ATOM_AND || op == ATOM_OR;
    switch (l->type) {
    case TYPE_U32:
        need(l, !formatted && (add || order));
        return ATOM_U32;
    case TYPE_S32:
        need(l, !formatted && (add || order));
        return ATOM_S32;
    case TYPE_U64:
        need(l, !formatted && (add || order));
        return ATOM_U64;
    case TYPE_S64:
        need(l, !formatted && order);
        return ATOM_S64;
    case TYPE_B64:
        need(l, formatted && order);
        return ATOM_U64;
    default:
        need(l, logic || (formatted && (add || order)));
        return ATOM_U32;
    }
}

void lower_sured(struct lower *l)
{
    struct texture_op op = {.kind = SURFACE_REDUCE, .elements = 1};
    uint32_t at = 0, first = l->code->extra_count;
    op.formatted = take(l, &at, "p");
    need(l, (op.formatted || take(l, &at, "b")) && has(l, M(OPER)));
    at++; /* the operation */
    take_surface_geometry(l, &at, &op);
    need(l, !op.layered && l->m.type_count == 1 && take(l, &at, type_info[l->type].name));
    take_bounds(l, &at, &op);
    op.bytes = type_info[l->type].bits / 8;
    op.atomic = (uint8_t)((unsigned)l->m.value[CLASS_OPER] | reduction_type(l, op.formatted) << 4);
    const struct operand *o = texture_operand(l, 0);
    uint32_t from = handle(l, o, true);
    coordinates(l, &op, o);
    inputs(l, &op, operand_at(l, 1), 1, l->type);
    emit_texture(l, &op, from, first);
}
