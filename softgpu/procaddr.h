/* procaddr.h - which export a base name, a version and a kind of default stream mean. */
#ifndef SOFTGPU_PROCADDR_H
#define SOFTGPU_PROCADDR_H

#include <stddef.h>

typedef int (*proc_function)(void); /* of whatever type */
enum procaddr_status { PROCADDR_FOUND, PROCADDR_UNKNOWN, PROCADDR_TOO_NEW };

/* The newest form not above `version`, with per-thread forms before others when asked for; NULL with *status when there
 * is none. */
proc_function procaddr_find(const char *base, int version, int per_thread, enum procaddr_status *status);

#endif
