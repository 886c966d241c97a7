/* blob.h - contents on disk, by hash: compressed and written by one helper thread, off the program's path.
 *
 * A job is embedded in the caller's own structure. `stored` is called on the helper thread when the job's bytes are no
 * longer needed: ok says whether the blob is there (now, or since earlier). The helper never calls CUDA and has all
 * signals blocked.
 */
#ifndef SHIM_BLOB_H
#define SHIM_BLOB_H

#include <stdbool.h>
#include <stddef.h>

#include "common/hash.h"
#include "shim/deadline.h"

struct blob_job {
    const void *data;
    size_t bytes;
    bool hashed; /* `hash` is given; else it is computed by the helper before `stored` is called */
    struct hash128 hash;
    void (*stored)(struct blob_job *job, bool ok);
    struct blob_job *next;
};

bool blob_put(struct blob_job *job); /* false: no helper thread; `stored` was not called */
/* Copies `bytes` and stores the copy; the hash is returned at once. `stored` may be late, the copy is freed by itself.
 */
struct hash128 blob_put_copy(const void *data, size_t bytes);
uint64_t blob_delete(struct hash128 hash); /* on the helper: nothing names it any more; bytes that it took */
void blob_wake(void);                      /* lets the helper, if there is one, make a spare segment */
/* Waits until what was put before is stored; false: not until the deadline. */
bool blob_wait(struct deadline deadline);
bool blob_wait_copies(struct deadline deadline); /* what blob_put_copy was given: the images of modules */
void blob_finish(struct deadline deadline);      /* the same at the end, and notes what was not stored */
bool blob_broken(void);                          /* a blob could not be written (disk): no use in making more */

#endif
