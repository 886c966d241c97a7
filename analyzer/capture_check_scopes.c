/* capture_check_scopes.c - are the records of docs/scopes.md possible? */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include "analyzer/capture_check.h"

/* Above these a value is a flipped bit, not a function. */
enum { PARAMETERS_LIMIT = 64, DETAILS_LIMIT = 256 };

static bool no(char *why, const char *format, ...) __attribute__((format(printf, 2, 3)));
static bool no(char *why, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(why, CAPTURE_CHECK_TEXT, format, args);
    va_end(args);
    return false;
}

static bool tail_fits(const struct cap_head *record, size_t fixed, uint64_t count, size_t item)
{
    return count <= (record->size - fixed) / item;
}

static bool wraps(uint64_t address, uint64_t bytes)
{
    uint64_t end;
    return __builtin_add_overflow(address, bytes, &end);
}

static bool check_name(const struct cap_name *n, char *why)
{
    uint64_t elements = 1;
    if (wraps(n->address, n->bytes))
        return no(why, "named buffer wraps around the end of the address space");
    if (n->dtype >= CAP_DTYPES || n->dims > CAP_DIMS_MAX)
        return no(why, "named buffer with element type %u and %u dimensions", n->dtype, n->dims);
    for (uint32_t i = 0; i < n->dims; i++)
        if (__builtin_mul_overflow(elements, n->shape[i], &elements) || elements > n->bytes * 8)
            return no(why, "named buffer of %" PRIu64 " bytes has a larger shape", n->bytes);
    return true;
}

static bool check_function(const struct cap_function *f, char *why)
{
    if (f->param_count > PARAMETERS_LIMIT || f->library > CAP_LIBRARY_NCCL ||
        !tail_fits(&f->head, sizeof *f, f->param_count, sizeof(struct cap_parameter)))
        return no(why, "library function %u of library %u claims %u parameters", f->id, f->library, f->param_count);
    return true;
}

static bool check_detail(const struct cap_detail *d, char *why)
{
    if (d->count > DETAILS_LIMIT || !tail_fits(&d->head, sizeof *d, d->count, sizeof(struct cap_detail_item)))
        return no(why, "operator detail claims %u items", d->count);
    const struct cap_detail_item *items = (const void *)(d + 1);
    for (uint32_t i = 0; i < d->count; i++)
        if (items[i].kind > CAP_DETAIL_BYTES || items[i].bytes > sizeof items[i].value)
            return no(why, "operator detail of kind %u with %u bytes", items[i].kind, items[i].bytes);
    return true;
}

bool capture_check_scope_shape(const struct cap_head *record, char *why)
{
    switch (record->type) {
    case CAP_PATH: {
        const struct cap_path *p = (const void *)record;
        /* Parents come first, so that following them ends. */
        return p->parent < p->id || no(why, "path %u lies inside path %u", p->id, p->parent);
    }
    case CAP_RANGE: {
        const struct cap_range *r = (const void *)record;
        return r->kind <= CAP_RANGE_THREAD_END || no(why, "range of kind %u", r->kind);
    }
    case CAP_FUNCTION:
        return check_function((const void *)record, why);
    case CAP_OPERATOR: {
        const struct cap_operator *o = (const void *)record;
        return !o->end_seq || o->end_seq > o->head.seq ||
               no(why, "operator that ends at %" PRIu64 ", before its start", o->end_seq);
    }
    case CAP_DETAIL:
        return check_detail((const void *)record, why);
    case CAP_NAME:
        return check_name((const void *)record, why);
    case CAP_REGION: {
        const struct cap_region *r = (const void *)record;
        return !wraps(r->address, r->bytes) || no(why, "region %u wraps around the end of the address space", r->id);
    }
    case CAP_MARK: {
        const struct cap_mark *m = (const void *)record;
        if (m->kind > CAP_MARK_ASSERT_FINITE || m->dtype >= CAP_DTYPES)
            return no(why, "mark of kind %u with element type %u", m->kind, m->dtype);
        return !wraps(m->address, m->bytes) || no(why, "mark wraps around the end of the address space");
    }
    default:
        return true;
    }
}

static bool refers(const struct capture *c, enum cap_type type, uint32_t id, bool optional, const char *what, char *why)
{
    if ((optional && id == 0) || capture_definition(c, type, id))
        return true;
    return no(why, "record refers to %s %u, which is not there", what, id);
}

static bool check_operator(const struct capture *c, const struct cap_operator *o, char *why)
{
    const struct cap_function *f = capture_definition(c, CAP_FUNCTION, o->function);
    if (!f)
        return no(why, "operator of library function %u, which is not there", o->function);
    if (!tail_fits(&o->head, sizeof *o, f->param_count, sizeof(uint64_t)))
        return no(why, "operator of %u bytes; its function has %u parameters", o->head.size, f->param_count);
    return true;
}

static bool check_region(const struct capture *c, const struct cap_region *r, char *why)
{
    const struct cap_alloc *a = capture_definition(c, CAP_ALLOC, r->allocation);
    if (r->ended)
        return refers(c, CAP_REGION, r->id, false, "region", why);
    if (!a)
        return no(why, "region in allocation %u, which is not there", r->allocation);
    if (capture_definition(c, CAP_ALLOC, r->id)) /* also a later one: they are found by id alone */
        return no(why, "region %u has the id of an allocation", r->id);
    if (r->address < a->address || r->address - a->address > a->bytes ||
        r->bytes > a->bytes - (r->address - a->address))
        return no(why, "region %u lies outside allocation %u", r->id, a->id);
    return true;
}

bool capture_check_scope_references(const struct capture *c, const struct cap_head *record, char *why)
{
    switch (record->type) {
    case CAP_PATH:
        return refers(c, CAP_PATH, ((const struct cap_path *)record)->parent, true, "path", why);
    case CAP_RANGE:
        return refers(c, CAP_PATH, ((const struct cap_range *)record)->path, true, "path", why);
    case CAP_OPERATOR:
        return check_operator(c, (const void *)record, why);
    case CAP_NAME:
        return refers(c, CAP_ALLOC, ((const struct cap_name *)record)->allocation, true, "allocation", why);
    case CAP_REGION:
        return check_region(c, (const void *)record, why);
    case CAP_MARK:
        return refers(c, CAP_ALLOC, ((const struct cap_mark *)record)->allocation, true, "allocation", why);
    default:
        return true;
    }
}
