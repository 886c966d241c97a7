#include "analyzer/place.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyzer/name.h"

const struct judgement_frame *place_frame(const struct judgement_access *a)
{
    for (size_t i = 0; i < a->frame_count; i++)
        if (a->frames[i].file && a->frames[i].line && name_own_source(a->frames[i].file))
            return &a->frames[i];
    return a->frame_count && a->frames[0].file && a->frames[0].line ? &a->frames[0] : NULL;
}

bool place_equal(const struct judgement_access *a, const struct judgement_access *b)
{
    const struct judgement_frame *x = place_frame(a), *y = place_frame(b);
    if (!x || !y)
        return !x && !y && a->ptx_line == b->ptx_line;
    return x->line == y->line && strcmp(x->file, y->file) == 0;
}

void place_thread(const struct judgement_access *a, char out[PLACE_THREAD_BYTES])
{
    char block[40], thread[40];
    if (a->block[1] || a->block[2])
        snprintf(block, sizeof block, "(%u,%u,%u)", a->block[0], a->block[1], a->block[2]);
    else
        snprintf(block, sizeof block, "%u", a->block[0]);
    if (a->thread[1] || a->thread[2])
        snprintf(thread, sizeof thread, "(%u,%u,%u)", a->thread[0], a->thread[1], a->thread[2]);
    else
        snprintf(thread, sizeof thread, "%u", a->thread[0]);
    snprintf(out, PLACE_THREAD_BYTES, "block %s thread %s", block, thread);
}

void place_text(const struct judgement_access *a, char out[PLACE_TEXT_BYTES])
{
    const struct judgement_frame *frame = place_frame(a);
    if (frame)
        snprintf(out, PLACE_TEXT_BYTES, "%s:%u (PTX line %u)", name_file(frame->file), frame->line, a->ptx_line);
    else
        snprintf(out, PLACE_TEXT_BYTES, "PTX line %u", a->ptx_line);
}

void place_allocation(struct symbols *symbols, const struct model_allocation *a, char out[PLACE_ALLOCATION_BYTES])
{
    char place[200];
    symbols_place(symbols, a->record->stack, place, sizeof place);
    if (a->parent) {
        snprintf(out, PLACE_ALLOCATION_BYTES, "region %u of allocation %u%s%s%s", a->id, a->parent->id,
                 *place ? " (registered at " : "", place, *place ? ")" : "");
        return;
    }
    snprintf(out, PLACE_ALLOCATION_BYTES, "allocation %u%s%s%s", a->id, *place ? " (allocated at " : "", place,
             *place ? ")" : "");
}

void place_set(struct finding *out, const struct judgement_access *place, bool thread)
{
    const struct judgement_frame *frame = place_frame(place);
    if (frame) {
        out->file = strdup(frame->file);
        out->line = frame->line;
    }
    if (!frame && place->frame_count)
        frame = &place->frames[0];
    if (frame && frame->function)
        out->function = name_short(frame->function);
    out->ptx_line = place->ptx_line;
    out->has_thread = thread;
    if (thread) {
        memcpy(out->block, place->block, sizeof out->block);
        memcpy(out->thread, place->thread, sizeof out->thread);
    }
}

bool place_same(const struct finding *f, const struct judgement_access *place)
{
    const struct judgement_frame *frame = place_frame(place);
    if (!frame)
        return !f->line && f->ptx_line == place->ptx_line;
    return f->line == frame->line && f->file && strcmp(f->file, frame->file) == 0;
}

void place_inlined(struct finding *out, const struct judgement_access *a)
{
    for (size_t i = 1; i < a->frame_count; i++) {
        char *function = a->frames[i].function ? name_short(a->frames[i].function) : NULL;
        if (a->frames[i].file)
            finding_evidence(out, "inlined-at", "%s%s%s:%u", function ? function : "", function ? " " : "",
                             name_file(a->frames[i].file), a->frames[i].line);
        free(function);
    }
}
