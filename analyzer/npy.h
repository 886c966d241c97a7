/* npy.h - NumPy's array files, version 1.0 (numpy.lib.format): magic, version, header length, a Python dictionary
 * padded to a multiple of 64 bytes, then the elements, little-endian.
 */
#ifndef ANALYZER_NPY_H
#define ANALYZER_NPY_H

#include <opsdebug/status.h>
#include "analyzer/element.h"

/* Writes `bytes` bytes of elements (whole ones) as a one-dimensional array. bf16 is widened to float32, exactly. An
 * existing file is replaced. STATUS_IO with *diag. */
enum status npy_write(const char *path, enum element_type type, const uint8_t *data, uint64_t bytes, struct diag *diag);

#endif
