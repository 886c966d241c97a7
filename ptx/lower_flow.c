/* lower_flow.c - branches, calls, and what threads do together. */
#include <stdio.h>
#include <string.h>
#include "ptx/lower.h"

#define PUSH(l, type, items, count, capacity)                                                                          \
    ((type *)reader_push((l)->reader, (void **)&(items), &(count), &(capacity), sizeof(type)))

static struct symbol *find(struct lower *l, const struct name *name)
{
    return symbols_find(l->ast, l->s->scope, name);
}

static const struct symbol *label(struct lower *l, const struct name *name, struct place at)
{
    const struct symbol *s = find(l, name);
    if (!s || s->kind != SYMBOL_LABEL)
        reader_fail(l->reader, STATUS_BAD_INPUT, at, "`%s` is no label of this function", name->text);
    return s;
}

void lower_bra(struct lower *l)
{
    const struct operand *o = operand_at(l, 0);
    if (o->kind != OPERAND_NAME)
        lower_bad_operand(l, 0, "a label");
    const struct symbol *s = label(l, o->name, o->at);
    emit(l, OP_BRA, 0, 0, 0, 0, 0)->imm = s->statement; /* becomes an instruction in fix_branches() */
}

void lower_brx(struct lower *l)
{
    const struct operand *o = operand_at(l, 1);
    if (!has(l, M(MODE)) || l->m.value[CLASS_MODE] != SHFL_IDX)
        lower_refuse(l, "expected brx.idx");
    const struct symbol *s = o->kind == OPERAND_NAME ? find(l, o->name) : NULL;
    if (!s || s->kind != SYMBOL_TARGETS)
        lower_bad_operand(l, 1, "a .branchtargets label");
    struct branch_table *t = PUSH(l, struct branch_table, l->code->tables, l->code->table_count, l->table_capacity);
    t->count = s->target_count;
    uint32_t *targets = reader_alloc(l->reader, s->target_count, sizeof *targets);
    t->targets = targets;
    for (uint32_t i = 0; i < s->target_count; i++)
        targets[i] = label(l, s->targets[i], s->target_places[i])->statement;
    uint32_t index = source(l, 0, TYPE_U32);
    emit(l, OP_BRX, 0, 0, index, 0, 0)->aux = l->code->table_count - 1;
}

static const struct {
    const char *name;
    uint8_t result, params[MAX_RUNTIME_PARAMS];
} runtime_functions[] = {
#define RUNTIME(id, name, result, ...) {#name, result, {__VA_ARGS__}},
#include "ptx/runtime.def"
};
enum { RUNTIME_COUNT = sizeof runtime_functions / sizeof *runtime_functions };

static uint32_t find_runtime(const char *name)
{
    static const char *const prefixes[] = {"__cudaCDP2", "cuda"};
    for (uint32_t p = 0; p < 2; p++) {
        size_t n = strlen(prefixes[p]);
        for (uint32_t i = 0; strncmp(name, prefixes[p], n) == 0 && i < RUNTIME_COUNT; i++)
            if (strcmp(name + n, runtime_functions[i].name) == 0)
                return BUILTIN_RUNTIME + i;
    }
    return BUILTIN_NONE;
}

static uint32_t find_builtin(const struct name *name)
{
    if (strcmp(name->text, "vprintf") == 0)
        return BUILTIN_VPRINTF;
    if (strcmp(name->text, "__assertfail") == 0)
        return BUILTIN_ASSERTFAIL;
    if (strcmp(name->text, "malloc") == 0)
        return BUILTIN_MALLOC;
    if (strcmp(name->text, "free") == 0)
        return BUILTIN_FREE;
    return find_runtime(name->text);
}

static bool is_declared_as_runtime(const struct function *f, uint32_t row)
{
    const uint8_t *bytes = runtime_functions[row].params;
    uint32_t n = 0;
    for (const struct symbol *s = f->params; s; s = s->next, n++)
        if (n == MAX_RUNTIME_PARAMS || s->bytes != bytes[n])
            return false;
    return (n == MAX_RUNTIME_PARAMS || bytes[n] == 0) && f->return_count == (runtime_functions[row].result != 0) &&
           (!f->returns || f->returns->bytes == runtime_functions[row].result);
}

static bool is_declared_as_builtin(const struct function *f, uint32_t builtin)
{
    if (builtin >= BUILTIN_RUNTIME)
        return is_declared_as_runtime(f, builtin - BUILTIN_RUNTIME);
    static const struct {
        uint32_t params, returns;
    } known[] = {
        [BUILTIN_VPRINTF] = {2, 1}, [BUILTIN_ASSERTFAIL] = {5, 0}, [BUILTIN_MALLOC] = {1, 1}, [BUILTIN_FREE] = {1, 0}};
    if (f->param_count != known[builtin].params || f->return_count != known[builtin].returns)
        return false;
    if (builtin != BUILTIN_MALLOC && builtin != BUILTIN_FREE)
        return true;
    return f->params->bytes == 8 && (!f->returns || f->returns->bytes == 8);
}

static bool uses_heap(uint32_t builtin)
{
    if (builtin < BUILTIN_RUNTIME)
        return builtin == BUILTIN_MALLOC || builtin == BUILTIN_FREE;
    const char *name = runtime_functions[builtin - BUILTIN_RUNTIME].name;
    return strcmp(name, "Malloc") == 0 || strcmp(name, "Free") == 0;
}

/* An actual parameter: a .param block of this frame, a register, or a literal. `bytes` is what the callee declares. */
static struct call_arg actual(struct lower *l, const struct operand *o, const struct symbol *formal, bool result)
{
    const struct symbol *s = NULL;
    uint32_t index;
    if (o->kind == OPERAND_NAME)
        s = symbols_find_register(l->ast, l->s->scope, o->name, &index);
    if (s && s->kind == SYMBOL_VARIABLE && s->space == SPACE_PARAM && s->function_param) {
        if (formal->unsized && s->bytes > formal->bytes)
            lower_refuse(l, "a variable number of arguments does not go with a call through a pointer here");
        if (formal->kind == SYMBOL_VARIABLE && !formal->unsized && s->bytes != formal->bytes)
            reader_fail(l->reader, STATUS_BAD_INPUT, o->at, "`%s` has %llu bytes: the function declares %llu",
                        o->name->text, (unsigned long long)s->bytes, (unsigned long long)formal->bytes);
        return (struct call_arg){false, (uint32_t)s->offset, (uint32_t)s->bytes};
    }
    if (formal->bytes > 8 || type_info[formal->type].bits > 64)
        reader_fail(l->reader, STATUS_BAD_INPUT, o->at, "expected a .param variable");
    uint32_t bytes =
        formal->kind == SYMBOL_REGISTER ? (type_info[formal->type].bits + 7u) / 8u : (uint32_t)formal->bytes;
    if (result)
        return (struct call_arg){true, destination_operand(l, o, formal->type), bytes};
    return (struct call_arg){true, source_operand(l, o, formal->type), bytes};
}

static void actuals(struct lower *l, const struct operand *list, const struct symbol *formal, bool result,
                    struct call_arg **out, uint32_t *count)
{
    uint32_t n = list ? list->item_count : 0;
    struct call_arg *args = reader_alloc(l->reader, n, sizeof *args);
    for (uint32_t i = 0; i < n; i++, formal = formal->next) {
        if (!formal)
            reader_fail(l->reader, STATUS_BAD_INPUT, list->items[i].at, "more parameters than the function declares");
        args[i] = actual(l, &list->items[i], formal, result);
    }
    if (formal)
        reader_fail(l->reader, STATUS_BAD_INPUT, list ? list->at : l->s->at,
                    "fewer parameters than the function declares");
    *out = args;
    *count = n;
}

static void note_callee(struct code *k, struct lower *l, uint32_t index)
{
    for (uint32_t i = 0; i < k->callee_count; i++)
        if (k->callees[i] == index)
            return;
    *PUSH(l, uint32_t, k->callees, k->callee_count, k->callee_capacity) = index;
}

/* call (results), function, (arguments); call (results), register, (arguments), prototype-or-targets; */
void lower_call(struct lower *l)
{
    const struct operand *ops = l->s->operands;
    uint32_t n = l->s->operand_count, at = 0;
    const struct operand *results = n && ops[0].kind == OPERAND_LIST ? &ops[at++] : NULL;
    if (at >= n || ops[at].kind != OPERAND_NAME)
        lower_bad_operand(l, at, "a function or a register");
    const struct operand *target = &ops[at++];
    const struct operand *args = at < n && ops[at].kind == OPERAND_LIST ? &ops[at++] : NULL;
    const struct operand *prototype = at < n ? &ops[at++] : NULL;
    if (at < n)
        lower_bad_operand(l, at, "nothing more");
    uint32_t index;
    struct symbol *s = symbols_find_register(l->ast, l->s->scope, target->name, &index);
    struct call_site site = {.callee = UINT32_MAX};
    uint32_t pointer = 0;
    const struct symbol *formal_params, *formal_returns;
    if (s && s->kind == SYMBOL_FUNCTION) {
        const struct function *f = s->function;
        if (f->entry)
            lower_refuse(l, "an entry cannot be called");
        site.callee = f->index;
        if (!f->defined) {
            site.builtin = find_builtin(f->name);
            if (site.builtin == BUILTIN_NONE) {
                char why[300];
                snprintf(why, sizeof why, "function `%.200s` is not defined in this module", f->name->text);
                lower_lacks(l, why);
            } else if (!is_declared_as_builtin(f, site.builtin)) {
                lower_lacks(l, "the built-in function has other parameters");
            }
            l->code->runtime |= site.builtin >= BUILTIN_RUNTIME;
            l->code->heap |= uses_heap(site.builtin);
        } else {
            note_callee(l->code, l, f->index);
        }
        formal_params = f->params;
        formal_returns = f->returns;
    } else if (s && s->kind == SYMBOL_REGISTER) {
        const struct symbol *p = prototype && prototype->kind == OPERAND_NAME ? find(l, prototype->name) : NULL;
        if (p && p->kind == SYMBOL_TARGETS && p->target_count) { /* the first target tells the parameters */
            const struct symbol *f = find(l, p->targets[0]);
            if (!f || f->kind != SYMBOL_FUNCTION)
                reader_fail(l->reader, STATUS_BAD_INPUT, p->target_places[0], "`%s` is no function",
                            p->targets[0]->text);
            formal_params = f->function->params;
            formal_returns = f->function->returns;
        } else if (p && p->kind == SYMBOL_PROTOTYPE) {
            formal_params = p->params;
            formal_returns = p->returns;
        } else {
            lower_refuse(l, "an indirect call needs a .callprototype or .calltargets");
        }
        pointer = source_operand(l, target, TYPE_U64);
        l->code->indirect = true;
    } else {
        reader_fail(l->reader, STATUS_BAD_INPUT, target->at, "`%s` is no function", target->name->text);
    }
    actuals(l, args, formal_params, false, &site.args, &site.arg_count);
    actuals(l, results, formal_returns, true, &site.returns, &site.return_count);
    *PUSH(l, struct call_site, l->code->calls, l->code->call_count, l->call_capacity) = site;
    emit(l, OP_CALL, 0, 0, pointer, 0, 0)->aux = l->code->call_count - 1;
}

void lower_ret(struct lower *l)
{
    emit(l, l->function->entry ? OP_EXIT : OP_RET, 0, 0, 0, 0, 0);
}

void lower_exit(struct lower *l)
{
    emit(l, OP_EXIT, 0, 0, 0, 0, 0);
}

void lower_trap(struct lower *l)
{
    emit(l, OP_TRAP, 0, 0, 0, 0, 0);
}

void lower_nanosleep(struct lower *l)
{
    uint32_t a = source(l, 0, TYPE_U32);
    emit(l, OP_NANOSLEEP, 0, 0, a, 0, 0);
}

/* ---- barriers ---- */

/* barrier.cluster: the block is the only one of its cluster. */
static void lower_barrier_cluster(struct lower *l)
{
    bool arrives = has(l, M(BARRIER)), waits = has(l, M(GROUP));
    int order = l->m.value[CLASS_SEMANTICS];
    bool known = arrives ? order == SEM_NONE || order == SEM_RELEASE || order == SEM_RELAXED
                         : order == SEM_NONE || order == SEM_ACQUIRE;
    if (arrives == waits || (arrives && l->m.value[CLASS_BARRIER] != BAR_MODE_ARRIVE) ||
        (waits && strcmp(l->s->mods[1]->text, "wait") != 0) || !known || has(l, M(SYNC) | M(OPER)) || l->m.type_count ||
        l->s->operand_count)
        lower_refuse(l, "expected .arrive or .wait");
    emit(l, arrives ? OP_CLUSTER_ARRIVE : OP_CLUSTER_WAIT, 0, 0, 0, 0, 0);
}

/* ---- the stack ---- */

/* alloca d, bytes {, alignment}: an address in .local. */
void lower_alloca(struct lower *l)
{
    const struct operand *align = operand_at(l, 2);
    uint64_t alignment = align ? align->value : 8;
    if (l->m.type_count != 1)
        lower_refuse(l, "expected one type");
    if (alignment == 0 || (alignment & (alignment - 1)) || alignment > 1u << 15 ||
        (align && align->kind != OPERAND_INT))
        lower_bad_operand(l, 2, "an alignment: a power of two");
    uint32_t bytes = source(l, 1, l->type);
    emit(l, OP_ALLOCA, 0, destination(l, 0, l->type), bytes, 0, 0)->imm = alignment < 16 ? 16 : alignment;
}

void lower_stacksave(struct lower *l)
{
    emit(l, OP_STACK_SAVE, 0, destination(l, 0, l->type), 0, 0, 0);
}

void lower_stackrestore(struct lower *l)
{
    emit(l, OP_STACK_RESTORE, 0, 0, source(l, 0, l->type), 0, 0);
}

void lower_bar(struct lower *l)
{
    int mode = has(l, M(BARRIER)) ? l->m.value[CLASS_BARRIER] : BAR_MODE_SYNC;
    uint32_t n = l->s->operand_count;
    if (has(l, M(SCOPE)) && strcmp(l->s->mods[0]->text, "cluster") == 0) {
        lower_barrier_cluster(l);
        return;
    }
    if (has(l, M(GROUP) | M(SEMANTICS)) || (has(l, M(SCOPE)) && strcmp(l->s->mods[0]->text, "cta") != 0))
        lower_refuse(l, "this form is not known here");
    if (mode == BAR_MODE_WARP) {
        if (!has(l, M(SYNC)) || n != 1)
            lower_refuse(l, "expected bar.warp.sync mask");
        uint32_t mask = source(l, 0, TYPE_B32);
        emit(l, OP_WARP_SYNC, 0, 0, mask, 0, 0);
        return;
    }
    if (mode == BAR_MODE_RED) {
        if (!has(l, M(OPER)) || n < 3)
            lower_refuse(l, "expected bar.red.op d, a, {b,} c");
        unsigned op = (unsigned)l->m.value[CLASS_OPER];
        bool popc = op == OPER_POPC;
        if (!popc && op != ATOM_AND && op != ATOM_OR)
            lower_refuse(l, "expected .popc, .and or .or");
        uint32_t a = source(l, 1, TYPE_U32), b = n == 4 ? source(l, 2, TYPE_U32) : 0,
                 c = predicate(l, operand_at(l, n - 1));
        uint32_t d = destination(l, 0, popc ? TYPE_U32 : TYPE_PRED);
        emit(l, OP_BAR_RED, (n == 4 ? 0u : 1u) | (popc ? 2u : op == ATOM_AND ? 0u : 1u) << 2, d, a, b, c);
        return;
    }
    if (has(l, M(OPER)) || l->m.type_count || n < 1 || n > 2 || (mode == BAR_MODE_SYNC && !has(l, M(SYNC))) ||
        (mode == BAR_MODE_ARRIVE && n != 2))
        lower_refuse(l, "this form is not known here");
    uint32_t a = source(l, 0, TYPE_U32), b = n == 2 ? source(l, 1, TYPE_U32) : 0;
    emit(l, mode == BAR_MODE_ARRIVE ? OP_BAR_ARRIVE : OP_BAR_SYNC, n == 2 ? 0 : 1, 0, a, b, 0);
}

/* ---- lanes of a warp ---- */

static void need_sync(struct lower *l)
{
    if (!has(l, M(SYNC)))
        lower_refuse(l, "the form without .sync is not known here");
}

/* The members' mask. Without .sync, as PTX was before 6.0, the lanes that run together: they are found first. */
static uint32_t members(struct lower *l, uint32_t operand)
{
    if (has(l, M(SYNC)))
        return source(l, operand, TYPE_B32);
    if (operand_at(l, operand))
        lower_bad_operand(l, operand, "no mask without .sync");
    uint32_t mask = temporary(l);
    emit(l, OP_ACTIVEMASK, 0, mask, 0, 0, 0);
    return mask;
}

/* The second destination of shfl, match, elect: a predicate, or a slot nobody reads. */
static uint32_t second_predicate(struct lower *l)
{
    const struct operand *d = operand_at(l, 0);
    return d->pair ? destination_operand(l, d->pair, TYPE_PRED) : temporary(l);
}

void lower_shfl(struct lower *l)
{
    int mode = l->m.value[CLASS_MODE];
    if (!has(l, M(MODE)) || mode > SHFL_BFLY)
        lower_refuse(l, "expected .up, .down, .bfly or .idx");
    uint32_t a = source(l, 1, TYPE_B32), b = source(l, 2, TYPE_B32), c = source(l, 3, TYPE_B32), mask = members(l, 4);
    uint32_t d = destination(l, 0, TYPE_B32), p = second_predicate(l);
    uint32_t extra = emit_extra(l, p);
    emit_extra(l, mask);
    emit(l, OP_SHFL, (unsigned)mode, d, a, b, c)->imm = extra;
}

void lower_vote(struct lower *l)
{
    int mode = has(l, M(UNI)) ? VOTE_UNI : l->m.value[CLASS_MODE];
    if (has(l, M(UNI)) == has(l, M(MODE)) || mode < VOTE_ALL)
        lower_refuse(l, "expected .all, .any, .uni or .ballot");
    if ((l->type == TYPE_PRED) == (mode == VOTE_BALLOT))
        lower_refuse(l, ".ballot takes .b32, the others .pred");
    uint32_t a = source(l, 1, TYPE_PRED), mask = members(l, 2);
    emit(l, OP_VOTE, (unsigned)mode, destination(l, 0, l->type), a, mask, 0);
}

void lower_match(struct lower *l)
{
    need_sync(l);
    int mode = l->m.value[CLASS_MODE];
    if (!has(l, M(MODE)) || (mode != VOTE_ANY && mode != VOTE_ALL))
        lower_refuse(l, "expected .any or .all");
    if (mode == VOTE_ANY && operand_at(l, 0)->pair)
        lower_bad_operand(l, 0, "one destination");
    uint32_t a = source(l, 1, l->type), mask = source(l, 2, TYPE_B32), p = second_predicate(l);
    uint32_t extra = emit_extra(l, p);
    emit(l, OP_MATCH, (mode == VOTE_ALL) | (type_info[l->type].bits == 64 ? 2u : 0), destination(l, 0, TYPE_B32), a,
         mask, 0)
        ->imm = extra;
}

void lower_redux(struct lower *l)
{
    need_sync(l);
    unsigned op = (unsigned)l->m.value[CLASS_OPER];
    bool bitwise = op == ATOM_AND || op == ATOM_OR || op == ATOM_XOR;
    bool order = op == ATOM_ADD || op == ATOM_MIN || op == ATOM_MAX;
    if (!has(l, M(OPER)) || (l->type == TYPE_B32 ? !bitwise : !order))
        lower_refuse(l, "this operation does not go with its type");
    uint32_t a = source(l, 1, l->type), mask = source(l, 2, TYPE_B32);
    emit(l, OP_REDUX, op | (l->type == TYPE_S32 ? 16u : 0), destination(l, 0, l->type), a, mask, 0);
}

void lower_elect(struct lower *l)
{
    need_sync(l);
    uint32_t mask = source(l, 1, TYPE_B32), p = second_predicate(l);
    uint32_t extra = emit_extra(l, p);
    const struct operand *d = operand_at(l, 0);
    emit(l, OP_ELECT, 0, is_sink(d) ? temporary(l) : destination(l, 0, TYPE_B32), mask, 0, 0)->imm = extra;
}

void lower_activemask(struct lower *l)
{
    emit(l, OP_ACTIVEMASK, 0, destination(l, 0, TYPE_B32), 0, 0, 0);
}
