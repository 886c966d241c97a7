/* path.h - names of the capture's files, in memory of their own: a thread of the program may have the smallest stack
 * that there is, and PATH_MAX bytes are a third of it.
 */
#ifndef SHIM_PATH_H
#define SHIM_PATH_H

/* What `format` says, in the capture's folder; to be freed. NULL: no memory, which is to be treated like a file that
 * cannot be used. */
char *path_of(const char *format, ...) __attribute__((format(printf, 1, 2)));
char *path_of_segment(unsigned number);

/* char *PATH_FREED path = path_of(...): until the end of the block. */
void path_free(char **path);
#define PATH_FREED __attribute__((cleanup(path_free)))

#endif
