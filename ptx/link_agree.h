/* link_agree.h - a module that is to be linked, as its syntax tree, and what two modules say of a name they share. */
#ifndef PTX_LINK_AGREE_H
#define PTX_LINK_AGREE_H

#include "ptx/ast.h"

struct link_tree {
    struct arena arena;
    struct reader reader; /* `fail` is NULL outside of link_tree_read() */
    struct ast ast;
};

/* NULL in *out on an error, which *diag tells by the module's name. `text` and `name` must outlive the tree. */
enum status link_tree_read(const char *text, const char *name, struct link_tree **out, struct diag *diag);
void link_tree_free(struct link_tree *tree);            /* NULL is fine */
uint32_t link_tree_files(const struct link_tree *tree); /* more than its highest number of a source file */

/* The function or variable that the module has by this name at file scope; of an alias, what it stands for; NULL: none.
 */
const struct symbol *link_tree_find(const struct link_tree *tree, const struct name *name);

/* What makes it impossible that both are one: b has "other parameters"; NULL: they agree. What a device linker looks
 * at, too: what a function takes and returns, a variable's state space and, where both tell it, size. */
const char *link_disagreement(const struct symbol *a, const struct symbol *b);

#endif
