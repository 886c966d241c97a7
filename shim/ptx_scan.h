/* ptx_scan.h - reads two things out of PTX text: the parameter layout of every .entry, and the module-level variables.
 *
 * Not a parser of PTX: what it does not understand it skips. Any text is safe, also hostile or truncated. Pure.
 */
#ifndef SHIM_PTX_SCAN_H
#define SHIM_PTX_SCAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { PTX_PARAM_BYTES_MAX = 32764 }; /* the largest parameter space of any target (PTX ISA 8.1, sm_70 and later) */

struct ptx_param {
    uint32_t offset, size;
};
struct ptx_entry {
    char *name;
    struct ptx_param *params;
    uint32_t param_count, param_bytes;
};
struct ptx_variable {
    char *name;
    bool constant; /* .const, else .global */
};
struct ptx_scan {
    struct ptx_entry *entries; /* owned, like everything in it */
    size_t entry_count;
    struct ptx_variable *variables;
    size_t variable_count;
};

bool ptx_scan_text(const char *text, size_t bytes, struct ptx_scan *out); /* false: no memory; *out is valid anyway */
/* Moves what `from` has behind what `to` has; false: no memory, and nothing was moved. */
bool ptx_scan_take(struct ptx_scan *to, struct ptx_scan *from);
void ptx_scan_free(struct ptx_scan *scan);
size_t ptx_scan_bytes(const struct ptx_scan *scan); /* that it owns */
const struct ptx_entry *ptx_scan_entry(const struct ptx_scan *scan, const char *name);

#endif
