/* reference_module.h - the inside of struct reference_module. */
#ifndef REFERENCE_MODULE_H
#define REFERENCE_MODULE_H

#include "reference/reference.h"

struct reference_module {
    struct ptx_module *ptx;
    char *text; /* the PTX, for reference_traits() */
    size_t bytes;
};

#endif
