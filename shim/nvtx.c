/* nvtx.c - the shim as an NVTX injection: what a program marks with NVTX (version 3, header-only) becomes ranges.
 *
 * Every library and program that was built with NVTX's headers has an instance of its own. At its first NVTX call an
 * instance loads the library that NVTX_INJECTION64_PATH names and hands over a table of function pointers, in which we
 * put ours. Shared libraries also find InitializeInjectionNvtx2_fnptr, which each of them defines weakly, in whatever
 * was loaded before them. Handles that we give out are only ever given back to us.
 */
#include "shim/nvtx.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>

#include "shim/ranges.h"
#include "shim/shim.h"

enum { NAME_MAX_BYTES = 256 };

/* NVTX's wide characters are Linux's: one code point each. */
void nvtx_utf8(char *out, size_t bytes, const wchar_t *wide)
{
    size_t at = 0;
    for (; wide && *wide && at + 5 <= bytes; wide++) {
        uint32_t c = (uint32_t)*wide;
        if (c < 0x80) {
            out[at++] = (char)c;
        } else if (c < 0x800) {
            out[at++] = (char)(0xc0 | c >> 6);
            out[at++] = (char)(0x80 | (c & 0x3f));
        } else if (c < 0x10000) {
            out[at++] = (char)(0xe0 | c >> 12);
            out[at++] = (char)(0x80 | (c >> 6 & 0x3f));
            out[at++] = (char)(0x80 | (c & 0x3f));
        } else {
            out[at++] = (char)(0xf0 | (c >> 18 & 7));
            out[at++] = (char)(0x80 | (c >> 12 & 0x3f));
            out[at++] = (char)(0x80 | (c >> 6 & 0x3f));
            out[at++] = (char)(0x80 | (c & 0x3f));
        }
    }
    out[at] = '\0';
}

const char *nvtx_message(int32_t type, union nvtx_message message, char *space, size_t bytes)
{
    switch (type) {
    case NVTX_ASCII:
        return message.ascii;
    case NVTX_UNICODE:
        nvtx_utf8(space, bytes, message.unicode);
        return space;
    case NVTX_REGISTERED:
        return message.registered; /* what register_a gave out */
    default:
        return NULL;
    }
}

static const char *attribute_name(const struct nvtx_attributes *a, char space[NAME_MAX_BYTES])
{
    if (!a || a->size < offsetof(struct nvtx_attributes, message) + sizeof a->message)
        return NULL;
    return nvtx_message(a->message_type, a->message, space, NAME_MAX_BYTES);
}

/* ---- the functions that go into an instance's tables ---- */

static int push_ex(const char *domain, const struct nvtx_attributes *attributes)
{
    char space[NAME_MAX_BYTES];
    ranges_push(domain, attribute_name(attributes, space));
    return NVTX_NO_TRACKING; /* as without a tool */
}

static int pop(const char *domain)
{
    ranges_pop(domain);
    return NVTX_NO_TRACKING;
}

static uint64_t start_ex(const char *domain, const struct nvtx_attributes *attributes)
{
    char space[NAME_MAX_BYTES];
    return ranges_start(domain, attribute_name(attributes, space));
}

static void end(const char *domain, uint64_t range)
{
    ranges_end(range);
}

static void mark_ex(const char *domain, const struct nvtx_attributes *attributes)
{
    char space[NAME_MAX_BYTES];
    ranges_mark(domain, attribute_name(attributes, space));
}

static int default_push_ex(const struct nvtx_attributes *attributes)
{
    return push_ex(NULL, attributes);
}

static int default_push_a(const char *name)
{
    ranges_push(NULL, name);
    return NVTX_NO_TRACKING;
}

static int default_push_w(const wchar_t *name)
{
    char text[NAME_MAX_BYTES];
    nvtx_utf8(text, sizeof text, name);
    ranges_push(NULL, text);
    return NVTX_NO_TRACKING;
}

static int default_pop(void)
{
    return pop(NULL);
}

static uint64_t default_start_ex(const struct nvtx_attributes *attributes)
{
    return start_ex(NULL, attributes);
}

static uint64_t default_start_a(const char *name)
{
    return ranges_start(NULL, name);
}

static uint64_t default_start_w(const wchar_t *name)
{
    char text[NAME_MAX_BYTES];
    nvtx_utf8(text, sizeof text, name);
    return ranges_start(NULL, text);
}

static void default_end(uint64_t range)
{
    ranges_end(range);
}

static void default_mark_ex(const struct nvtx_attributes *attributes)
{
    mark_ex(NULL, attributes);
}

static void default_mark_a(const char *name)
{
    ranges_mark(NULL, name);
}

static void default_mark_w(const wchar_t *name)
{
    char text[NAME_MAX_BYTES];
    nvtx_utf8(text, sizeof text, name);
    ranges_mark(NULL, text);
}

/* The handles of strings and domains are their texts, each kept once, within a bound (ranges_keep). They are not freed:
 * another thread may still be using one that this one destroys. A string beyond the bound has no handle, as without a
 * tool; domains share one, since ranges of theirs must not be taken for those of the default domain. */

static const char *register_a(const char *domain, const char *text)
{
    char cut[NAME_MAX_BYTES];
    snprintf(cut, sizeof cut, "%s", text ? text : "");
    return ranges_keep(text ? cut : NULL);
}

static const char *register_w(const char *domain, const wchar_t *text)
{
    char cut[NAME_MAX_BYTES];
    nvtx_utf8(cut, sizeof cut, text);
    return ranges_keep(text ? cut : NULL);
}

static const char *create_a(const char *name)
{
    const char *kept = register_a(NULL, name ? name : "");
    return kept ? kept : "(more)";
}

static const char *create_w(const wchar_t *name)
{
    const char *kept = register_w(NULL, name ? name : L"");
    return kept ? kept : "(more)";
}

struct slot {
    uint32_t module, index;
    void (*function)(void);
};
#define SLOT(module, index, function)                                                                                  \
    {                                                                                                                  \
        module, index, (void (*)(void))(function)                                                                      \
    }
static const struct slot slots[] = {
    SLOT(NVTX_MODULE_CORE, NVTX_CORE_MARK_EX, default_mark_ex),
    SLOT(NVTX_MODULE_CORE, NVTX_CORE_MARK_A, default_mark_a),
    SLOT(NVTX_MODULE_CORE, NVTX_CORE_MARK_W, default_mark_w),
    SLOT(NVTX_MODULE_CORE, NVTX_CORE_START_EX, default_start_ex),
    SLOT(NVTX_MODULE_CORE, NVTX_CORE_START_A, default_start_a),
    SLOT(NVTX_MODULE_CORE, NVTX_CORE_START_W, default_start_w),
    SLOT(NVTX_MODULE_CORE, NVTX_CORE_END, default_end),
    SLOT(NVTX_MODULE_CORE, NVTX_CORE_PUSH_EX, default_push_ex),
    SLOT(NVTX_MODULE_CORE, NVTX_CORE_PUSH_A, default_push_a),
    SLOT(NVTX_MODULE_CORE, NVTX_CORE_PUSH_W, default_push_w),
    SLOT(NVTX_MODULE_CORE, NVTX_CORE_POP, default_pop),
    SLOT(NVTX_MODULE_CORE2, NVTX_CORE2_MARK_EX, mark_ex),
    SLOT(NVTX_MODULE_CORE2, NVTX_CORE2_START_EX, start_ex),
    SLOT(NVTX_MODULE_CORE2, NVTX_CORE2_END, end),
    SLOT(NVTX_MODULE_CORE2, NVTX_CORE2_PUSH_EX, push_ex),
    SLOT(NVTX_MODULE_CORE2, NVTX_CORE2_POP, pop),
    SLOT(NVTX_MODULE_CORE2, NVTX_CORE2_REGISTER_A, register_a),
    SLOT(NVTX_MODULE_CORE2, NVTX_CORE2_REGISTER_W, register_w),
    SLOT(NVTX_MODULE_CORE2, NVTX_CORE2_CREATE_A, create_a),
    SLOT(NVTX_MODULE_CORE2, NVTX_CORE2_CREATE_W, create_w),
};

int InitializeInjectionNvtx2(nvtx_export_table *export_table)
{
    const struct nvtx_callbacks *callbacks = export_table ? export_table(NVTX_TABLE_CALLBACKS) : NULL;
    if (!callbacks || callbacks->bytes < sizeof *callbacks || !callbacks->module_table)
        return 0;
    for (size_t i = 0; i < sizeof slots / sizeof *slots; i++) {
        void (***table)(void) = NULL;
        unsigned count = 0;
        if (callbacks->module_table(slots[i].module, &table, &count) && table && slots[i].index < count &&
            table[slots[i].index])
            *table[slots[i].index] = slots[i].function;
    }
    return 1;
}

nvtx_initialize *InitializeInjectionNvtx2_fnptr = InitializeInjectionNvtx2;

bool nvtx_other_tool(const char **which)
{
    *which = getenv("NVTX_INJECTION64_PATH");
    const char *slash = *which ? strrchr(*which, '/') : NULL;
    return *which && **which && strcmp(slash ? slash + 1 : *which, "libopsdebug.so") != 0;
}
