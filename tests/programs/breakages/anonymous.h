/* anonymous.h - the process's anonymous memory, for programs that look whether a tool's grows. */
#ifndef PROGRAMS_BREAKAGES_ANONYMOUS_H
#define PROGRAMS_BREAKAGES_ANONYMOUS_H

#include <stdio.h>

/* KiB; -1: not known. */
static long anonymous_kib(void)
{
    char line[256];
    long kib = -1;
    FILE *f = fopen("/proc/self/status", "r");
    while (f && fgets(line, sizeof line, f))
        if (sscanf(line, "RssAnon: %ld", &kib) == 1)
            break;
    if (f)
        fclose(f);
    return kib;
}

#endif
