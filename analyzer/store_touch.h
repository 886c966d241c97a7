/* store_touch.h - what launches touch, in verify.json. */
#ifndef ANALYZER_STORE_TOUCH_H
#define ANALYZER_STORE_TOUCH_H

#include <cjson/cJSON.h>

#include "analyzer/judgement.h"

void store_touch_write(cJSON *to, const struct judgement *judgement);
/* False: malformed, or no memory; what was read so far is in *judgement all the same. */
bool store_touch_read(const cJSON *from, struct judgement *judgement);

#endif
