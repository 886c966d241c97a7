#include "tests/unit/shim_kit.h"

#include <dirent.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/hash.h"

static void fail(const char *what)
{
    perror(what);
    exit(2);
}

static void child(const struct kit_run *run, const char *route, const char *action, const char *argument,
                  const char *const *environment)
{
    char text[4096];
    const char *probe = strcmp(route, "direct") == 0 ? KIT_BUILD "/stub/probe_direct" : KIT_BUILD "/stub/probe";
    /* The sanitizer's run time must come before anything that it instruments. */
    const char *first = KIT_SANITIZER;
    snprintf(text, sizeof text, "%s%s%s/libopsdebug.so", first, *first ? ":" : "", KIT_BUILD);
    setenv("LD_PRELOAD", text, 1);
    /* GCC 12's leak check follows what was never set in the thread vectors of our threads, and dies of it. */
    if (*first)
        setenv("ASAN_OPTIONS", "detect_leaks=0", 0);
    setenv("LD_LIBRARY_PATH", KIT_BUILD "/stub", 1);
    snprintf(text, sizeof text, "%s/out", run->directory);
    setenv("OPSDEBUG_OUT", text, 1);
    for (; environment && *environment; environment++)
        putenv((char *)*environment);
    execl(probe, probe, route, action, argument, (char *)NULL);
    _exit(126);
}

void kit_start(struct kit_run *run, const char *route, const char *action, const char *argument,
               const char *const *environment)
{
    int ends[2];
    memset(run, 0, sizeof *run);
    snprintf(run->directory, sizeof run->directory, "/tmp/shim-test-XXXXXX");
    if (!mkdtemp(run->directory) || pipe(ends) != 0)
        fail("kit_start");
    run->pid = fork();
    if (run->pid == 0) {
        dup2(ends[1], 1);
        dup2(ends[1], 2);
        close(ends[0]);
        close(ends[1]);
        child(run, route, action, argument, environment);
    }
    close(ends[1]);
    run->from_probe = ends[0];
}

void kit_finish(struct kit_run *run)
{
    size_t got = 0;
    for (;;) {
        ssize_t n = read(run->from_probe, run->output + got, sizeof run->output - 1 - got);
        if (n <= 0)
            break;
        got += (size_t)n;
    }
    close(run->from_probe);
    waitpid(run->pid, &run->status, 0);
}

void kit_run(struct kit_run *run, const char *route, const char *action, const char *argument,
             const char *const *environment)
{
    kit_start(run, route, action, argument, environment);
    kit_finish(run);
}

FILE *kit_command(const char *const *argv)
{
    FILE *out = tmpfile();
    pid_t pid = out ? fork() : -1;
    if (pid == 0) {
        dup2(fileno(out), 1);
        execvp(argv[0], (char *const *)argv);
        _exit(126);
    }
    if (pid > 0)
        waitpid(pid, NULL, 0);
    if (out)
        rewind(out);
    return out;
}

bool kit_ok(const struct kit_run *run)
{
    if (run->status == 0 && !*run->output)
        return true;
    fprintf(stderr, "# status %#x, output: %s\n", (unsigned)run->status, run->output);
    return false;
}

static int remove_one(const char *path, const struct stat *facts, int type, struct FTW *where)
{
    return remove(path);
}

void kit_remove(struct kit_run *run)
{
    nftw(run->directory, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static char *read_file(const char *path, size_t *bytes)
{
    FILE *f = fopen(path, "rb");
    if (!f)
        return NULL;
    fseek(f, 0, SEEK_END);
    long size = ftell(f);
    rewind(f);
    char *data = calloc(1, (size_t)size + 1);
    *bytes = data ? fread(data, 1, (size_t)size, f) : 0;
    fclose(f);
    return data;
}

static int by_seq(const void *left, const void *right)
{
    const struct kit_record *a = left, *b = right;
    return a->head->seq < b->head->seq ? -1 : a->head->seq > b->head->seq;
}

static void read_segment(struct kit_capture *out, const char *data, size_t bytes)
{
    const struct cap_segment *segment = (const void *)data;
    if (bytes < sizeof *segment || segment->magic != CAP_SEGMENT_MAGIC)
        return;
    for (size_t at = sizeof *segment; at + sizeof(struct cap_head) <= bytes;) {
        const struct cap_head *head = (const void *)(data + at);
        if (!head->size)
            break;
        if (head->size % 8 || head->size < sizeof *head || head->size > bytes - at || !head->seq)
            fail("a record is broken");
        if (!(out->count & (out->count - 1)))
            out->records = realloc(out->records, (out->count ? out->count * 2 : 1) * sizeof *out->records);
        out->records[out->count++].head = head;
        at += head->size;
    }
}

bool kit_read(const struct kit_run *run, const char *name, struct kit_capture *out)
{
    char path[PATH_MAX], file[PATH_MAX + 256];
    size_t bytes;
    memset(out, 0, sizeof *out);
    snprintf(path, sizeof path, "%s/%s", run->directory, name);
    snprintf(file, sizeof file, "%s/capture.bin", path);
    char *header = read_file(file, &bytes);
    if (!header || bytes != sizeof out->header) {
        free(header);
        return false;
    }
    memcpy(&out->header, header, sizeof out->header);
    free(header);
    DIR *folder = opendir(path);
    const struct dirent *entry;
    while (folder && (entry = readdir(folder)))
        if (strncmp(entry->d_name, "segment-", 8) == 0) {
            snprintf(file, sizeof file, "%s/%s", path, entry->d_name);
            char *data = read_file(file, &bytes);
            if (!data)
                continue;
            out->files = realloc(out->files, (out->segments + 1) * sizeof *out->files);
            out->files[out->segments++] = data;
            read_segment(out, data, bytes);
        }
    if (folder)
        closedir(folder);
    if (out->count)
        qsort(out->records, out->count, sizeof *out->records, by_seq);
    return true;
}

void kit_free(struct kit_capture *capture)
{
    for (unsigned i = 0; i < capture->segments; i++)
        free(capture->files[i]);
    free(capture->files);
    free(capture->records);
    memset(capture, 0, sizeof *capture);
}

size_t kit_count(const struct kit_capture *capture, enum cap_type type)
{
    size_t n = 0;
    for (size_t i = 0; i < capture->count; i++)
        n += capture->records[i].head->type == type;
    return n;
}

const void *kit_nth(const struct kit_capture *capture, enum cap_type type, size_t n)
{
    for (size_t i = 0; i < capture->count; i++)
        if (capture->records[i].head->type == type && n-- == 0)
            return capture->records[i].head;
    return NULL;
}

const char *kit_string(const struct kit_capture *capture, uint32_t id)
{
    static char text[4096];
    text[0] = '\0';
    for (size_t i = 0; i < capture->count; i++) {
        const struct cap_string *s = (const void *)capture->records[i].head;
        if (s->head.type == CAP_STRING && s->id == id)
            snprintf(text, sizeof text, "%.*s", (int)s->bytes, (const char *)(s + 1));
    }
    return text;
}

bool kit_note(const struct kit_capture *capture, const char *part)
{
    const struct cap_note_record *note;
    for (size_t i = 0; (note = kit_nth(capture, CAP_NOTE, i)); i++)
        if (strstr(kit_string(capture, note->text), part))
            return true;
    return false;
}

uint64_t kit_calls(const struct kit_capture *capture, const char *hook)
{
    const struct cap_hook *record;
    for (size_t i = 0; (record = kit_nth(capture, CAP_HOOK, i)); i++)
        if (strcmp(kit_string(capture, record->name), hook) == 0)
            return record->calls;
    return 0;
}

bool kit_blob(const struct kit_run *run, const char *name, uint64_t hash_low, uint64_t hash_high)
{
    char text[HASH_TEXT_BYTES], path[PATH_MAX];
    hash_text((struct hash128){hash_low, hash_high}, text);
    snprintf(path, sizeof path, "%s/%s/blobs/%.2s/%s.zst", run->directory, name, text, text);
    return access(path, R_OK) == 0;
}
