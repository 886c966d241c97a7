#include "softgpu/blas/log.h"

#include <pthread.h>
#include <string.h>
#include <unistd.h>

enum { FILES = 3, LEVELS = 6 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned mask;
static bool disabled;
static blas_log_callback *callback;
static struct {
    FILE *file;
    bool own;
} files[FILES];

void blas_log_set_mask(unsigned new_mask)
{
    __atomic_store_n(&mask, new_mask, __ATOMIC_RELAXED);
}

void blas_log_disable(void)
{
    __atomic_store_n(&disabled, true, __ATOMIC_RELAXED);
}

void blas_log_set_callback(blas_log_callback *new_callback)
{
    __atomic_store_n(&callback, new_callback, __ATOMIC_RELEASE);
}

void blas_log_clear_files(void)
{
    pthread_mutex_lock(&lock);
    for (int i = 0; i < FILES; i++) {
        if (files[i].own)
            fclose(files[i].file);
        files[i].file = NULL;
        files[i].own = false;
    }
    pthread_mutex_unlock(&lock);
}

static void add(FILE *file, bool own)
{
    pthread_mutex_lock(&lock);
    for (int i = 0; i < FILES; i++)
        if (!files[i].file) {
            files[i].file = file;
            files[i].own = own;
            break;
        }
    pthread_mutex_unlock(&lock);
}

void blas_log_add_file(FILE *file)
{
    add(file, false);
}

bool blas_log_open_file(const char *name)
{
    FILE *file = fopen(name, "a");
    if (file)
        add(file, true);
    return file != NULL;
}

static bool wanted(enum blas_log_level level)
{
    return (__atomic_load_n(&mask, __ATOMIC_RELAXED) & blas_log_bit(level)) &&
           !__atomic_load_n(&disabled, __ATOMIC_RELAXED);
}

void blas_log(enum blas_log_level level, const char *function, const char *message)
{
    static const char *const names[LEVELS] = {"", "Error", "Trace", "Hint", "Heuristics", "Api"};
    if (!wanted(level))
        return;
    const char *library = strncmp(function, "cublasLt", 8) ? "cublas" : "cublasLt";
    /* Outside of the lock: it may call the library again. */
    blas_log_callback *to = __atomic_load_n(&callback, __ATOMIC_ACQUIRE);
    if (to)
        to(level, function, message);
    pthread_mutex_lock(&lock);
    for (int i = 0; i < FILES; i++)
        if (files[i].file) {
            fprintf(files[i].file, "[%s][%d][%s][%s] %s\n", library, (int)getpid(), names[level], function, message);
            fflush(files[i].file);
        }
    pthread_mutex_unlock(&lock);
}
