#include "shim/bad_free.h"

#include <errno.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "shim/alloc_table.h"
#include "shim/capture_write.h"

/* Whether the host can read there. The kernel copies the mask before it looks at what is to be done with it, and ~0 is
 * nothing it knows: so it answers EFAULT or EINVAL, and does nothing. */
static bool host_can_read(uint64_t address)
{
    int before = errno;
    bool readable = syscall(SYS_rt_sigprocmask, ~0L, address & ~UINT64_C(7), 0L, 8L) != 0 && errno != EFAULT;
    errno = before;
    return readable;
}

void bad_free_explain(const struct call *call, const struct cap_free *record, uint64_t address, CUresult result)
{
    struct allocation a;
    if (!record || !address || (result != CUDA_ERROR_INVALID_VALUE && result != CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED))
        return;
    bool inside = alloc_table_find(address, &a) && address - a.address < a.bytes;
    bool host = !inside && host_can_read(address);
    struct cap_bad_free *out = capture_record(CAP_BAD_FREE, sizeof *out, capture_next_seq(), call->tsc);
    if (!out)
        return;
    out->free = record->head.seq;
    out->kind = inside ? (address == a.address ? CAP_BAD_FREE_OTHER_KIND : CAP_BAD_FREE_INSIDE)
                : host ? CAP_BAD_FREE_HOST
                       : CAP_BAD_FREE_NOWHERE;
    out->allocation = inside ? a.id : 0;
    out->offset = inside ? (int64_t)(address - a.address) : 0;
    capture_commit(out);
}
