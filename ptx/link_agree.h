/* link_agree.h - what the modules that are linked say of a name they share. */
#ifndef PTX_LINK_AGREE_H
#define PTX_LINK_AGREE_H

#include "ptx/opsptx.h"

/* A module's syntax tree; everything in it lives until link_tree_free(). */
struct link_tree;

/* NULL in *out on an error, which *diag tells by the module's name. `text` and `name` must outlive the tree. */
enum status link_tree_read(const char *text, const char *name, struct link_tree **out, struct diag *diag);
void link_tree_free(struct link_tree *tree); /* NULL is fine */

struct ptx_version link_tree_version(const struct link_tree *tree);
uint32_t link_tree_files(const struct link_tree *tree); /* more than its highest number of a source file */

/* The function or variable that the module has by this name at file scope; NULL: none. */
const struct symbol *link_tree_find(struct link_tree *tree, const char *name, size_t bytes);

/* What makes it impossible that both are one: b has "other parameters"; NULL: they agree. What a device linker looks
 * at, too: what a function takes and returns, a variable's state space and, where both tell it, size. */
const char *link_disagreement(const struct symbol *a, const struct symbol *b);

#endif
