/* options_record.c - the options as they took effect, written into the capture. */
#include <opsdebug/capture.h>

#include "shim/capture_write.h"
#include "shim/intern.h"
#include "shim/options.h"
#include "shim/shim.h"

void options_record(void)
{
    for (unsigned i = 0; i < options_count(); i++) {
        struct option_taken row = options_taken(i);
        uint32_t name = intern_string(row.name), value = intern_string(row.value);
        struct cap_option *record = capture_define(CAP_OPTION, sizeof *record);
        if (record) {
            record->name = name;
            record->value = value;
            capture_commit(record);
        }
        if (*row.given)
            shim_note(CAP_NOTE_LOST, "OPSDEBUG_%s=%.400s is not understood: \"%s\" is used", row.name, row.given,
                      row.value);
    }
}
