/* matrix_order.c - which piece of the registers is which piece of the rows, as tables: see matrix_fast.h. */
#include <string.h>
#include "ptx/matrix_fast.h"

/* The rows' place `at` as an element of the matrix (row, column, the latter fastest). Memory is in lines. Of `paired`
 * rows two are interleaved. */
static unsigned element_at(const struct matrix *m, const struct fragment *f, bool paired, unsigned at)
{
    if (paired)
        return (at / (2u * f->columns) * 2 + at % 2) * f->columns + at / 2 % f->columns;
    if (m->columns)
        return at % m->line_elements * f->columns + at / m->line_elements;
    return at;
}

/* Pairs of pieces that stay together become one. */
static bool join(struct matrix_order *o)
{
    for (unsigned i = 0; i < o->pieces; i += 2)
        if (i + 1u == o->pieces || o->from[i] % 2 || o->from[i + 1] != o->from[i] + 1)
            return false;
    for (unsigned i = 0; i < o->pieces; i += 2)
        o->from[i / 2] = o->from[i] / 2;
    o->grain *= 2;
    o->pieces /= 2;
    return true;
}

static void order(const struct matrix *m, const struct fragment *f, struct matrix_order *o)
{
    uint16_t at_of[TILE_ELEMENTS] = {0};
    const unsigned cells = (unsigned)f->rows * f->columns * f->batches, per = f->per_register;
    const bool written = f == &m->d;
    for (unsigned at = 0; at < cells; at++)
        at_of[element_at(m, f, o->paired, at)] = (uint16_t)at;
    const uint16_t *place = f->place;
    for (unsigned lane = 0; lane < WARP; lane++) /* of those that hold one element, the last one gives it */
        for (unsigned r = 0; r < f->registers; r++)
            for (unsigned s = 0; s < per; s++, place++) {
                unsigned in_registers = (r * WARP + lane) * per + s, at = at_of[*place];
                o->from[written ? in_registers : at] = (uint16_t)(written ? at : in_registers);
            }
    o->grain = f->bits < 8 ? 8 : f->bits;
    o->pieces = (uint16_t)(written ? WARP * f->registers * per : cells);
    while (o->grain < 64 && join(o))
        continue;
}

/* What a chunk is made of, in pieces of `bits`, two other chunks at a time. */
static void find_sources(struct matrix_chunk *c, const uint16_t *from, unsigned bits)
{
    const unsigned per_chunk = MATRIX_CHUNK * 8 / bits;
    unsigned count = 0;
    for (unsigned i = 0; i < per_chunk; i++) {
        const unsigned source = from[i] / per_chunk;
        unsigned which = 0;
        while (which < count && c->source[which] != source)
            which++;
        if (which == count)
            c->source[count++] = (uint8_t)source;
        c->index[i] = (uint8_t)(which % 2 * per_chunk + from[i] % per_chunk);
        c->mask[which / 2] |= UINT32_C(1) << i;
    }
    if (count % 2)
        c->source[count] = c->source[count - 1];
    c->pairs = (uint8_t)((count + 1) / 2);
}

/* Pieces as wide as shuffles move, from those of the table, which may be twice as wide. */
static void find_chunks(struct matrix_order *o)
{
    const unsigned bits = o->grain < 32 ? o->grain : 32, times = o->grain / bits;
    const unsigned per_chunk = MATRIX_CHUNK * 8 / bits, total = o->pieces * times;
    memset(o->chunks, 0, sizeof o->chunks);
    for (unsigned i = 0; i < total / per_chunk; i++) {
        uint16_t from[MATRIX_CHUNK / 2];
        for (unsigned j = 0; j < per_chunk; j++) {
            unsigned at = i * per_chunk + j;
            from[j] = (uint16_t)(o->from[at / times] * times + at % times);
        }
        find_sources(&o->chunks[i], from, bits);
    }
}

void matrix_order(const struct matrix *m, const struct fragment *f, struct matrix_order *o)
{
    /* Two rows of b at a time are multiplied and added where these are integers: mma's registers have them so. */
    o->paired = f == &m->b && m->d.type == MATRIX_S32 && !m->bits;
    order(m, f, o);
    if (o->paired && o->grain == 8) {
        o->paired = false;
        order(m, f, o);
    }
    if (o->grain > 8)
        find_chunks(o);
}
