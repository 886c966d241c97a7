/* exec_texture.h - shared by exec_texture.c and exec_surface.c: one instruction under way. */
#ifndef PTX_EXEC_TEXTURE_H
#define PTX_EXEC_TEXTURE_H

#include "ptx/exec_check.h"
#include "ptx/texture.h"

struct texel {
    uint32_t bits[4];
    struct shadow checked[4];          /* checked mode */
    struct ptx_shadow_value number[4]; /* shadow mode */
};

struct texture_access {
    struct worker *worker;
    struct block *block;
    struct thread *thread;
    const struct insn *in;
    const struct texture_op *op;
    const struct ptx_texture *texture;
    bool checked, shadow;
    uint8_t flags;       /* shadow mode: what coordinates and handle say of the result, enum ptx_shadow_flags */
    unsigned axes, face; /* axes of a texel's place, without layers; face of a cube */
    uint32_t layer, cube;
    double coordinates[3], level, gradients[2][3];
    int32_t offset[3];
};

/* What the handle stands for, from the worker's cache or the caller; NULL: nothing. */
const struct ptx_texture *texture_find(struct worker *w, uint64_t handle);
uint32_t texel_bytes(const struct ptx_texture *t);
/* Device memory of a texel; NULL: a fault was reported. */
uint8_t *texture_device(struct texture_access *x, uint64_t address, uint32_t bytes);
/* The texel's value goes into a sum: in checked mode it matters, in shadow mode its flags do. */
void texture_used(struct texture_access *x, struct texel *t);

/* ---- exec_surface.c ---- */
/* A load, store or reduction; the results are zero before. False: as texture_execute(). */
bool surface_access(struct texture_access *x, const uint64_t *in);

#endif
