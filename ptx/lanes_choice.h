/* lanes_choice.h - which handlers the lock-step engine takes, for tests: what runs where there is no AVX-512 runs
 * elsewhere, too. */
#ifndef PTX_LANES_CHOICE_H
#define PTX_LANES_CHOICE_H

#include <stdbool.h>

/* From now on launches of this process take the handlers for AVX2, also where the processor has AVX-512. */
void lanes_only_avx2(bool only);
/* What the processor can, and was not switched off. */
bool lanes_take_avx2(void);
bool lanes_take_avx512(void);

#endif
