#include "analyzer/process.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>

#define HEADER_FILE "/capture.bin"

char *process_capture(uint32_t pid)
{
    char path[64], *line = NULL, *found = NULL;
    size_t room = 0;
    ssize_t n;
    snprintf(path, sizeof path, "/proc/%u/maps", pid);
    FILE *maps = fopen(path, "re");
    if (!maps)
        return NULL;
    while (!found && (n = getline(&line, &room, maps)) > 0) {
        char *name = strchr(line, '/');
        if (line[n - 1] == '\n')
            line[--n] = '\0';
        size_t length = name ? strlen(name) : 0;
        if (length <= sizeof HEADER_FILE - 1 || strcmp(name + length - (sizeof HEADER_FILE - 1), HEADER_FILE) != 0)
            continue;
        name[length - (sizeof HEADER_FILE - 1)] = '\0';
        found = strdup(name);
    }
    free(line);
    fclose(maps);
    return found;
}

enum process_life process_writes(uint32_t pid, const char *folder)
{
    char real[PATH_MAX];
    if (!pid || pid > INT_MAX || (kill((pid_t)pid, 0) != 0 && errno == ESRCH))
        return PROCESS_GONE;
    char *held = process_capture(pid);
    bool same = held && realpath(folder, real) && strcmp(held, real) == 0;
    bool told = held != NULL;
    free(held);
    if (same)
        return PROCESS_ALIVE;
    if (told)
        return PROCESS_GONE;
    /* Its mappings cannot be read, or hold no capture: then it is another process of that number. */
    char path[64];
    snprintf(path, sizeof path, "/proc/%u/maps", pid);
    FILE *maps = fopen(path, "re");
    int readable = maps ? fgetc(maps) : EOF;
    if (maps)
        fclose(maps);
    return readable == EOF ? PROCESS_UNKNOWN : PROCESS_GONE;
}

static void read_text(const char *path, char *out, size_t bytes)
{
    FILE *file = fopen(path, "re");
    size_t n = file ? fread(out, 1, bytes - 1, file) : 0;
    if (file)
        fclose(file);
    while (n && (out[n - 1] == '\n' || out[n - 1] == '\0'))
        n--;
    out[n] = '\0';
    for (char *p = out; *p; p++)
        if ((unsigned char)*p < 0x20 || (unsigned char)*p >= 0x7f)
            *p = '?';
}

struct process_thread process_thread(uint32_t pid, uint32_t tid)
{
    struct process_thread out = {0};
    char path[96], stat[512];
    snprintf(path, sizeof path, "/proc/%u/task/%u/stat", pid, tid);
    read_text(path, stat, sizeof stat);
    const char *behind = strrchr(stat, ')'); /* the name before it may hold anything */
    if (behind && behind[1] == ' ')
        out.state = behind[2];
    snprintf(path, sizeof path, "/proc/%u/task/%u/comm", pid, tid);
    read_text(path, out.name, sizeof out.name);
    snprintf(path, sizeof path, "/proc/%u/task/%u/wchan", pid, tid);
    read_text(path, out.wchan, sizeof out.wchan);
    if (strcmp(out.wchan, "0") == 0)
        out.wchan[0] = '\0';
    return out;
}
