/* fault_pointer.h - what the pointer of a faulty access tells about the fault. */
#ifndef ANALYZER_FAULT_POINTER_H
#define ANALYZER_FAULT_POINTER_H

#include "analyzer/finding.h"

/* Many accesses left the allocation that their pointer came from for another one, and none of the launch touches it: a
 * pointer that begins elsewhere on purpose (x - first, or the distance of two buffers) looks like this, too. */
bool fault_pointer_astray(const struct judgement *j, const struct judgement_fault *f);

/* Says so when an access near address 0 comes of a null pointer among the arguments. */
void fault_pointer_null(const struct model_launch *launch, const struct judgement_fault *fault,
                        struct finding *finding);

#endif
