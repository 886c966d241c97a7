/* CUPTI's numbers of the API functions. */
#include <stdlib.h>
#include <string.h>

#include "softgpu/cupti/tracer.h"

static const struct row {
    uint32_t id;
    const char *export; /* name that the library exports */
    const char *name;   /* CUPTI's name */
} driver_rows[] =
    {
#define DRIVER_CBID(id, export) {id, #export, #export},
#define RUNTIME_CBID(id, export, version)
#include "softgpu/cupti_cbids.h"
#undef DRIVER_CBID
#undef RUNTIME_CBID
},
  runtime_rows[] = {
#define DRIVER_CBID(id, export)
#define RUNTIME_CBID(id, export, version) {id, #export, #export "_" #version},
#include "softgpu/cupti_cbids.h"
};

enum {
    DRIVER_ROWS = sizeof driver_rows / sizeof *driver_rows,
    RUNTIME_ROWS = sizeof runtime_rows / sizeof *runtime_rows
};

/* The newest version of a function that changed: it has the highest number, and is the one that the headers declare. */
uint32_t names_id(const struct trace_site *site)
{
    const struct row *rows = site->side == TRACE_DRIVER ? driver_rows : runtime_rows;
    size_t n = site->side == TRACE_DRIVER ? (size_t)DRIVER_ROWS : (size_t)RUNTIME_ROWS;
    uint32_t best = 0;
    for (size_t i = 0; i < n; i++)
        if (rows[i].id > best && !strcmp(rows[i].export, site->name))
            best = rows[i].id;
    return best;
}

static const char *name_in(const struct row *rows, size_t n, uint32_t id)
{
    for (size_t i = 0; i < n; i++)
        if (rows[i].id == id)
            return rows[i].name;
    return NULL;
}

const char *names_of(CUpti_CallbackDomain domain, uint32_t id)
{
    if (domain == CUPTI_CB_DOMAIN_DRIVER_API)
        return name_in(driver_rows, DRIVER_ROWS, id);
    return domain == CUPTI_CB_DOMAIN_RUNTIME_API ? name_in(runtime_rows, RUNTIME_ROWS, id) : NULL;
}
