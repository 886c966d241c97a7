/* texture.h - the forms of instructions on textures and surfaces: made by lower_texture.c, done by exec_texture.c.
 *
 * The micro-op TEXTURE has the form's number in `mod`, the handle in `a`, and in extra[b ...] first `d` results, then
 * the form's inputs:
 *     tex, tld4   [layer] coordinates [level, or both gradients] [offsets]
 *     suld        [layer] coordinates
 *     sust, sured [layer] coordinates, values
 *     txq         [level]
 */
#ifndef PTX_TEXTURE_H
#define PTX_TEXTURE_H

#include <stdbool.h>
#include <stdint.h>

enum texture_kind {
    TEXTURE_FETCH,
    TEXTURE_GATHER,
    TEXTURE_QUERY,
    TEXTURE_IS,
    SURFACE_LOAD,
    SURFACE_STORE,
    SURFACE_REDUCE
};
enum texture_mip { MIP_BASE, MIP_LEVEL, MIP_GRADIENT };
enum texture_result { RESULT_32, RESULT_F16, RESULT_F16X2 };
enum surface_bounds { BOUNDS_TRAP, BOUNDS_CLAMP, BOUNDS_ZERO };
enum texture_query {
    QUERY_WIDTH,
    QUERY_HEIGHT,
    QUERY_DEPTH,
    QUERY_DATA_TYPE,
    QUERY_ORDER,
    QUERY_NORMALISED,
    QUERY_ARRAY_SIZE,
    QUERY_LEVELS,
    QUERY_SAMPLES,
    QUERY_FORCE_UNNORMALISED,
    QUERY_FILTER,
    QUERY_ADDRESS_0,
    QUERY_ADDRESS_1,
    QUERY_ADDRESS_2,
    QUERY_MEMORY_LAYOUT,
};
enum { TEXTURE_MAX_OUTPUTS = 5, TEXTURE_MAX_INPUTS = 16 };

struct texture_op {
    uint8_t kind;
    uint8_t dimensions; /* of the coordinates: 1 to 3; a cube has 3 */
    bool layered, cube;
    bool integer;  /* coordinates are texel numbers */
    bool offset;   /* offsets follow */
    bool resident; /* the last result is the predicate "is in memory", which is true here */
    bool surface;  /* QUERY, IS: of a surface */
    uint8_t mip, result;
    uint8_t component, query; /* GATHER; QUERY */
    uint8_t elements, bytes;  /* surfaces: how many values of how many bytes */
    uint8_t bounds;           /* enum surface_bounds */
    bool formatted;           /* sust.p, sured.p: x counts elements; values are converted (sust.p) */
    uint8_t atomic;           /* SURFACE_REDUCE: operation | enum atom_type << 4 */
    uint8_t outputs, inputs;
};
_Static_assert(sizeof(struct texture_op) == 19, "no padding: forms are compared as bytes");

#endif
