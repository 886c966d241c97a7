/* Hostile module images: every entry is listed and unpacked, and the best PTX chosen, without touching a byte outside.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "common/fatbin.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct diag diag;
    struct fatbin_entry entry;
    size_t offset = 0, bytes = 0;
    char *text = NULL;
    if (size >= 16)
        (void)fatbin_data_size(data);
    while (fatbin_next(data, size, &offset, &entry, &diag)) {
        if (offset <= entry.offset || offset > size)
            abort();
        if (entry.plain_bytes < (64u << 20) && fatbin_payload(&entry, &text, &bytes, &diag) == STATUS_OK) {
            if (text[bytes] != '\0')
                abort();
            free(text);
        }
    }
    for (uint32_t sm = 0; sm <= 90; sm += 45) {
        if (fatbin_ptx(data, size, sm, &text, &bytes, &diag) == STATUS_OK) {
            if (text[bytes] != '\0')
                abort();
            free(text);
        } else if (text) {
            abort();
        }
    }
    return 0;
}
