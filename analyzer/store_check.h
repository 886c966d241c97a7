/* store_check.h - is what a stored judgement names there? Used by store.c only.
 *
 * Launches and nodes are places in lists, so those that are not there are refused. Allocations are looked up by id, and
 * memory between allocations is judged under ids of its own: any number may stand there.
 */
#ifndef ANALYZER_STORE_CHECK_H
#define ANALYZER_STORE_CHECK_H

#include "analyzer/judgement.h"
#include "analyzer/model.h"

bool store_check(const struct model *model, const struct judgement *judgement);

#endif
