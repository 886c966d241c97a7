/* log.h - the log of libcublas or libcublasLt, which goes to a callback and to files. Off until a mask is set. The
 * levels are those of cublasLt; libcublas knows only whether it logs. All functions may be called by any thread; a
 * message that is being written while settings change goes to the old place or to the new one. */
#ifndef SOFTGPU_BLAS_LOG_H
#define SOFTGPU_BLAS_LOG_H

#include <stdbool.h>
#include <stdio.h>

enum blas_log_level { BLAS_LOG_ERROR = 1, BLAS_LOG_TRACE = 2, BLAS_LOG_HEURISTICS = 4, BLAS_LOG_API = 5 };
typedef void blas_log_callback(int level, const char *function, const char *message);

static inline unsigned blas_log_bit(int level)
{
    return 1u << (level - 1);
}
void blas_log_set_mask(unsigned mask); /* of blas_log_bit() */
void blas_log_disable(void);           /* for good */
void blas_log_set_callback(blas_log_callback *callback);
void blas_log_clear_files(void);
void blas_log_add_file(FILE *file); /* stays the caller's */
bool blas_log_open_file(const char *name);
void blas_log(enum blas_log_level level, const char *function, const char *message);

#endif
