#include "common/diag.h"

#include <stdarg.h>
#include <stdio.h>

enum status diag_set(struct diag *diag, enum status status, const char *where, long offset, const char *format, ...)
{
    if (!diag)
        return status;
    *diag = (struct diag){.offset = offset};
    snprintf(diag->where, sizeof diag->where, "%s", where);
    va_list args;
    va_start(args, format);
    vsnprintf(diag->text, sizeof diag->text, format, args);
    va_end(args);
    return status;
}
