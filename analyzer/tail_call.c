#include "analyzer/tail_call.h"

#include <stdbool.h>
#include <stdlib.h>

#include <dwarf.h>

enum {
    DEPTH_MAX = 64, /* of blocks within a function */
    SITES_MAX = 16  /* jumps of one function that are looked at */
};

/* The description that all others of this function refer to. */
static Dwarf_Die root_of(Dwarf_Die die)
{
    Dwarf_Attribute attribute;
    for (int i = 0; i < 4; i++) {
        Dwarf_Die next;
        if ((!dwarf_attr(&die, DW_AT_abstract_origin, &attribute) &&
             !dwarf_attr(&die, DW_AT_specification, &attribute)) ||
            !dwarf_formref_die(&attribute, &next))
            break;
        die = next;
    }
    return die;
}

/* The same for an inlined or a separate copy of the function. */
static Dwarf_Off identity_of(Dwarf_Die *die)
{
    Dwarf_Die root = root_of(*die);
    return dwarf_dieoffset(&root);
}

/* ---- calls within a function ---- */

struct site {
    Dwarf_Addr return_pc;
    bool tail;
    bool direct; /* `target` is known */
    Dwarf_Die target;
};

static bool is_site(Dwarf_Die *die, struct site *out)
{
    Dwarf_Attribute attribute;
    bool now = dwarf_tag(die) == DW_TAG_call_site, flag = false;
    if (!now && dwarf_tag(die) != DW_TAG_GNU_call_site)
        return false;
    *out = (struct site){0};
    if (dwarf_formaddr(dwarf_attr(die, now ? DW_AT_call_return_pc : DW_AT_low_pc, &attribute), &out->return_pc) != 0)
        return false;
    out->tail =
        dwarf_formflag(dwarf_attr(die, now ? DW_AT_call_tail_call : DW_AT_GNU_tail_call, &attribute), &flag) == 0 &&
        flag;
    out->direct = dwarf_formref_die(dwarf_attr(die, now ? DW_AT_call_origin : DW_AT_abstract_origin, &attribute),
                                    &out->target) != NULL;
    return true;
}

typedef bool site_function(const struct site *site, void *data); /* false: enough */

static bool each_site(Dwarf_Die *function, site_function *visit, void *data, int depth)
{
    Dwarf_Die child;
    struct site site;
    if (depth > DEPTH_MAX || dwarf_child(function, &child) != 0)
        return true;
    do {
        int tag = dwarf_tag(&child);
        if (is_site(&child, &site)) {
            if (!visit(&site, data))
                return false;
        } else if ((tag == DW_TAG_lexical_block || tag == DW_TAG_inlined_subroutine) &&
                   !each_site(&child, visit, data, depth + 1)) {
            return false;
        }
    } while (dwarf_siblingof(&child, &child) == 0);
    return true;
}

struct search {
    Dwarf_Addr return_pc;
    bool found;
    struct site site;
};

static bool match(const struct site *site, void *data)
{
    struct search *s = data;
    if (site->return_pc != s->return_pc)
        return true;
    s->found = true;
    s->site = *site;
    return false;
}

struct tails {
    struct site sites[SITES_MAX];
    unsigned count; /* may be more than were kept */
};

static bool collect(const struct site *site, void *data)
{
    struct tails *t = data;
    if (site->tail && t->count++ < SITES_MAX)
        t->sites[t->count - 1] = *site;
    return true;
}

/* ---- functions ---- */

static bool has_code(Dwarf_Die *die)
{
    Dwarf_Addr pc;
    return dwarf_tag(die) == DW_TAG_subprogram && dwarf_entrypc(die, &pc) == 0;
}

static bool code_below(Dwarf_Die *parent, Dwarf_Off identity, Dwarf_Die *out, int depth)
{
    Dwarf_Die child;
    if (depth > DEPTH_MAX || dwarf_child(parent, &child) != 0)
        return false;
    do {
        int tag = dwarf_tag(&child);
        if (has_code(&child) && identity_of(&child) == identity) {
            *out = child;
            return true;
        }
        if ((tag == DW_TAG_namespace || tag == DW_TAG_structure_type || tag == DW_TAG_class_type) &&
            code_below(&child, identity, out, depth + 1))
            return true;
    } while (dwarf_siblingof(&child, &child) == 0);
    return false;
}

/* The description of the function's own code; false: it is elsewhere. */
static bool code_of(Dwarf_Die *target, Dwarf_Die *out)
{
    Dwarf_Die unit;
    if (has_code(target)) {
        *out = *target;
        return true;
    }
    return dwarf_diecu(target, &unit, NULL, NULL) && code_below(&unit, identity_of(target), out, 0);
}

static bool function_at(Dwarf_Die *unit, Dwarf_Addr address, Dwarf_Die *out)
{
    Dwarf_Die *scopes = NULL;
    int count = dwarf_getscopes(unit, address, &scopes), found = -1;
    for (int i = 0; i < count && found < 0; i++)
        if (dwarf_tag(&scopes[i]) == DW_TAG_subprogram)
            found = i;
    if (found >= 0 && has_code(&scopes[found])) {
        *out = scopes[found];
    } else if (count > 0) { /* within what was inlined: the scopes are those of its source */
        Dwarf_Die *around = NULL;
        int outer = dwarf_getscopes_die(&scopes[0], &around);
        found = -1;
        for (int i = 0; i < outer && found < 0; i++)
            if (has_code(&around[i])) {
                *out = around[i];
                found = i;
            }
        free(around);
    }
    free(scopes);
    return found >= 0;
}

Dwarf_Off tail_call_identity_at(Dwarf_Die *unit, Dwarf_Addr address)
{
    Dwarf_Die function;
    return function_at(unit, address, &function) ? identity_of(&function) : 0;
}

/* The jump by which a function was left: the only one that leads to `callee`, or the only one. */
static const struct site *left_by(const struct tails *t, Dwarf_Off callee, bool *arrived)
{
    const struct site *only = NULL;
    unsigned there = 0;
    *arrived = false;
    for (unsigned i = 0; i < t->count && i < SITES_MAX; i++) {
        Dwarf_Die target = t->sites[i].target;
        if (callee && t->sites[i].direct && identity_of(&target) == callee) {
            only = &t->sites[i];
            there++;
        }
    }
    *arrived = there > 0;
    if (there)
        return there == 1 ? only : NULL;
    return t->count == 1 ? &t->sites[0] : NULL;
}

size_t tail_calls_missing(Dwarf_Die *unit, Dwarf_Addr return_pc, Dwarf_Off callee, struct tail_call *out, size_t limit)
{
    Dwarf_Die caller, body;
    struct search call = {.return_pc = return_pc};
    size_t count = 0;
    if (!function_at(unit, return_pc - 1, &caller))
        return 0;
    each_site(&caller, match, &call, 0);
    if (!call.found || call.site.tail || !call.site.direct)
        return 0;
    Dwarf_Die target = call.site.target;
    for (bool arrived = false; !arrived && count < limit && identity_of(&target) != callee;) {
        struct tails tails = {.count = 0};
        if (!code_of(&target, &body))
            break;
        each_site(&body, collect, &tails, 0);
        if (!tails.count) /* it does not jump on: at run time another function was called, say one of another module */
            return 0;
        const struct site *by = left_by(&tails, callee, &arrived);
        Dwarf_Die source;
        Dwarf_Line *line =
            by && dwarf_diecu(&body, &source, NULL, NULL) ? dwarf_getsrc_die(&source, by->return_pc - 1) : NULL;
        int number = 0;
        out[count] = (struct tail_call){.function = dwarf_diename(&body)};
        dwarf_entrypc(&body, &out[count].start);
        if (line && dwarf_lineno(line, &number) == 0 && number > 0) {
            out[count].file = dwarf_linesrc(line, NULL, NULL);
            out[count].line = (unsigned)number;
        }
        count++;
        Dwarf_Die next = by ? by->target : target;
        if (!by || !by->direct || identity_of(&next) == identity_of(&target)) /* a loop, written as a call */
            break;
        target = next;
    }
    return count;
}
