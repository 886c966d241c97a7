/* staging.h - a bounded pool of pinned host memory that snapshots are copied into. Thread-safe.
 *
 * Buffers come in powers of two and are kept for reuse. Pinned memory lets a copy run beside the program; when there is
 * none, snapshots are left out.
 */
#ifndef SHIM_STAGING_H
#define SHIM_STAGING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define STAGING_BYTES_MAX ((uint64_t)1 << 30) /* in flight at any time */

struct staging_buffer;
struct staging_buffer *staging_take(size_t bytes);   /* NULL: all in use, or no memory */
void staging_release(struct staging_buffer *buffer); /* from any thread; makes no driver call */
void *staging_data(const struct staging_buffer *buffer);
bool staging_in_use(void);

#endif
