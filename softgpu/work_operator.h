/* work_operator.h - routines of softgpu's own libraries that were captured: one object, run at each launch of its
 * graphs, by one launch at a time. */
#ifndef SOFTGPU_WORK_OPERATOR_H
#define SOFTGPU_WORK_OPERATOR_H

#include "softgpu/engine.h"
#include "softgpu/operator.h"

struct shared_operator;
/* Takes the operator over: it is dropped with the last reference. NULL when memory is out; then nothing was taken. */
struct shared_operator *operator_share(struct softgpu_operator *self);
void operator_disown(struct shared_operator *shared); /* gives it back: whoever made it drops it */
void operator_ref(struct shared_operator *shared);
void operator_unref(struct shared_operator *shared); /* NULL is fine */
CUresult operator_make(struct shared_operator *shared, struct context *context, struct op **out);
const char *operator_name(const struct shared_operator *shared);

#endif
