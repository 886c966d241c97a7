/* link_agree.c - whether two modules mean the same by a name, from their syntax trees. */
#include "ptx/link_agree.h"
#include <stdlib.h>
#include <string.h>

static enum status read_tree(struct link_tree *tree)
{
    jmp_buf fail;
    tree->reader.fail = &fail;
    if (setjmp(fail))
        return tree->reader.status;
    parse_module(&tree->reader, &tree->ast);
    return STATUS_OK;
}

enum status link_tree_read(const char *text, const char *name, struct link_tree **out, struct diag *diag)
{
    *out = NULL;
    struct link_tree *tree = calloc(1, sizeof *tree);
    if (!tree)
        return STATUS_NO_MEMORY;
    tree->reader =
        (struct reader){.arena = &tree->arena, .diag = diag, .name = name, .text = text, .bytes = strlen(text)};
    enum status status = read_tree(tree);
    tree->reader.fail = NULL;
    if (status != STATUS_OK) {
        link_tree_free(tree);
        return status;
    }
    *out = tree;
    return STATUS_OK;
}

void link_tree_free(struct link_tree *tree)
{
    if (!tree)
        return;
    arena_free(&tree->arena);
    free(tree);
}

uint32_t link_tree_files(const struct link_tree *tree)
{
    uint32_t n = tree->ast.file_count;
    while (n && !tree->ast.files[n - 1])
        n--;
    return n;
}

const struct symbol *link_tree_find(const struct link_tree *tree, const struct name *name)
{
    const struct ast *ast = &tree->ast;
    const struct symbol *s = symbols_find_here(ast, 0, name);
    for (uint32_t i = 0; !s && i < ast->alias_count; i++)
        if (ast->aliases[i].name == name)
            s = symbols_find_here(ast, 0, ast->aliases[i].target);
    return s && (s->kind == SYMBOL_FUNCTION || s->kind == SYMBOL_VARIABLE) ? s : NULL;
}

const char *link_disagreement(const struct symbol *a, const struct symbol *b)
{
    if (a->kind != b->kind)
        return "another kind";
    if (a->kind == SYMBOL_FUNCTION)
        return a->function->entry != b->function->entry ? "another kind"
                                                        : function_disagreement(a->function, b->function);
    if (a->space != b->space)
        return "another state space";
    if ((type_info[a->type].kind == 'o' || type_info[b->type].kind == 'o') && a->type != b->type)
        return "another type";
    return a->bytes != b->bytes && !a->unsized && !b->unsized ? "another size" : NULL;
}
