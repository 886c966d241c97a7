/* reference_layout.h - where the regions of a launch lie while it is executed. Used by reference.c only. */
#ifndef REFERENCE_LAYOUT_H
#define REFERENCE_LAYOUT_H

#include "reference/reference.h"

struct layout {
    const struct reference_launch *launch;
    struct ptx_range *ranges; /* owned, sorted; ids are indices of regions; own variables follow */
    size_t range_count;
    uint64_t *variables; /* owned; address of each module variable */
    uint8_t *params;     /* owned; rewritten when isolated */
    void **own;          /* owned; memory of variables that no region holds */
    size_t own_count;
};

/* STATUS_NOT_FOUND with *diag: an external variable that nothing defines. Always followed by layout_end(). */
enum status layout_make(struct layout *layout, const struct reference_launch *launch, struct diag *diag);
void layout_end(struct layout *layout);
/* Turns a fault's address and range into the program's. False: it lies in no region's slot (isolated layout only). */
bool layout_translate(const struct layout *layout, struct ptx_fault *fault, size_t *region);
/* Was a variable of unknown contents read? */
bool layout_own_read(const struct layout *layout);

#endif
