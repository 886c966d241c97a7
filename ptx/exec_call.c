/* exec_call.c - calls: of the module's functions, and of what the system gives every module. */
#include <string.h>
#include "ptx/exec_runtime.h"
#include "ptx/exec_shadow.h"

static const struct code *call_target(struct launch *l, const struct insn *in, const union slot *R,
                                      const struct call_site *site)
{
    if (site->callee != UINT32_MAX)
        return l->module->code[site->callee];
    uint64_t address = R[in->a].u64 - PTX_CODE_WINDOW;
    uint64_t index = address / CODE_ADDRESS_STEP - 1;
    if (address % CODE_ADDRESS_STEP || address == 0 || index >= l->module->code_count)
        return NULL;
    const struct code *code = l->module->code[index];
    if (!code->defined || code->entry || code->param_count != site->arg_count ||
        code->return_count != site->return_count)
        return NULL;
    for (uint32_t i = 0; i < site->arg_count; i++)
        if (code->params[i].bytes < site->args[i].bytes)
            return NULL;
    for (uint32_t i = 0; i < site->return_count; i++)
        if (code->returns[i].bytes < site->returns[i].bytes)
            return NULL;
    return code;
}

static void read_arg(const struct thread *t, uint32_t base, uint32_t local_base, const struct call_arg *a, void *out)
{
    memcpy(out, a->slot ? (const uint8_t *)&t->stack[base + a->at] : t->local + local_base + a->at, a->bytes);
}

static void write_result(struct thread *t, const struct call_arg *r, uint64_t value)
{
    if (r->slot)
        thread_set(t, r->at, value);
    else if (r->bytes <= 8)
        memcpy(t->local + t->local_base + r->at, &value, r->bytes);
    if (!r->slot && t->local_valid)
        memset(t->local_valid + t->local_base + r->at, 1, r->bytes);
}

static bool call_runtime(struct worker *w, struct block *b, struct thread *t, const struct insn *in,
                         const struct call_site *site)
{
    uint8_t arguments[MAX_RUNTIME_PARAMS][MAX_RUNTIME_PARAM_BYTES] = {{0}};
    uint64_t result = 0;
    for (uint32_t i = 0; i < site->arg_count && i < MAX_RUNTIME_PARAMS; i++)
        if (site->args[i].bytes <= MAX_RUNTIME_PARAM_BYTES)
            read_arg(t, t->base, t->local_base, &site->args[i], arguments[i]);
    if (!runtime_call(w, b, t, in, site->builtin - BUILTIN_RUNTIME, arguments, &result))
        return false;
    if (site->return_count)
        write_result(t, &site->returns[0], result);
    return true;
}

/* All parameters have at most 8 bytes. */
static bool call_builtin(struct worker *w, struct block *b, struct thread *t, const struct insn *in,
                         const struct call_site *site)
{
    uint64_t values[5] = {0};
    if (site->builtin >= BUILTIN_RUNTIME)
        return call_runtime(w, b, t, in, site);
    for (uint32_t i = 0; i < site->arg_count && i < 5; i++)
        if (site->args[i].bytes <= 8)
            read_arg(t, t->base, t->local_base, &site->args[i], &values[i]);
    if (site->builtin == BUILTIN_ASSERTFAIL) {
        device_assert(w, b, t, values);
        return false;
    }
    if (site->builtin == BUILTIN_FREE) {
        struct ptx_fault f = {.kind = device_free(w, values[0]), .space = PTX_SPACE_GLOBAL, .address = values[0]};
        if (f.kind != PTX_FAULT_NONE)
            fault_report(w, b, t, in, &f);
        return f.kind == PTX_FAULT_NONE || w->launch->checked || w->launch->shadow;
    }
    uint64_t result =
        site->builtin == BUILTIN_MALLOC ? device_malloc(w, values[0]) : device_printf(w, b, t, values[0], values[1]);
    write_result(t, &site->returns[0], result);
    return true;
}

bool do_call(struct worker *w, struct block *b, struct thread *t, const struct insn *in)
{
    const struct call_site *site = &t->code->calls[in->aux];
    if (site->builtin != BUILTIN_NONE)
        return call_builtin(w, b, t, in, site);
    const struct code *code = call_target(w->launch, in, t->stack + t->base, site);
    uint32_t base = t->base, local_base = t->local_base;
    const struct code *caller = t->code;
    if (!code || !b->templates[code->function->index]) {
        struct ptx_fault f = {.kind = PTX_FAULT_BAD_CALL, .address = t->stack[t->base + in->a].u64};
        fault_report(w, b, t, in, &f);
        return false;
    }
    if (!thread_push(b, t, code)) {
        t->code = caller;
        struct ptx_fault f = {.kind = PTX_FAULT_STACK, .space = PTX_SPACE_LOCAL};
        fault_report(w, b, t, in, &f);
        return false;
    }
    t->frames[t->depth - 1].site = site;
    for (uint32_t i = 0; i < site->arg_count; i++) {
        const struct call_arg *from = &site->args[i], *to = &code->params[i];
        uint8_t *out = to->slot ? (uint8_t *)&t->stack[t->base + to->at] : t->local + t->local_base + to->at;
        read_arg(t, base, local_base, from, out);
        if (t->numbers)
            shadow_pass(t, base, local_base, from, t->base, t->local_base, to, from->bytes);
        if (!t->shadow)
            continue;
        struct shadow s = from->slot ? t->shadow[base + from->at] : (struct shadow){0};
        if (to->slot)
            t->shadow[t->base + to->at] = s;
        else if (from->slot)
            memset(t->local_valid + t->local_base + to->at, 1, from->bytes);
        else
            memcpy(t->local_valid + t->local_base + to->at, t->local_valid + local_base + from->at, from->bytes);
    }
    return true;
}

void do_return(struct thread *t)
{
    const struct code *callee = t->code;
    uint32_t base = t->base, local_base = t->local_base;
    const struct frame *f = &t->frames[--t->depth];
    t->code = f->code;
    t->pc = f->pc;
    t->base = f->base;
    t->local_base = f->local_base;
    t->local_top = f->local_top;
    for (uint32_t i = 0; i < f->site->return_count; i++) {
        const struct call_arg *from = &callee->returns[i], *to = &f->site->returns[i];
        uint64_t wide = 0;
        if (t->numbers)
            shadow_pass(t, base, local_base, from, t->base, t->local_base, to, to->bytes);
        if (to->slot) {
            struct call_arg part = *from;
            part.bytes = to->bytes;
            read_arg(t, base, local_base, &part, &wide);
            t->stack[t->base + to->at].u64 = wide;
            if (t->shadow)
                t->shadow[t->base + to->at] = (struct shadow){0};
            continue;
        }
        struct call_arg part = *from;
        part.bytes = to->bytes;
        read_arg(t, base, local_base, &part, t->local + t->local_base + to->at);
        if (t->shadow && from->slot)
            memset(t->local_valid + t->local_base + to->at, 1, to->bytes);
        else if (t->shadow)
            memcpy(t->local_valid + t->local_base + to->at, t->local_valid + local_base + from->at, to->bytes);
    }
}
