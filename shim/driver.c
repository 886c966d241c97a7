#include "shim/driver.h"

#include "shim/doors.h"

struct driver driver;

void driver_load(void)
{
#define DRIVER_LOAD(name) driver.name = (__typeof__(&name))doors_library_symbol(false, #name);
    DRIVER_FUNCTIONS(DRIVER_LOAD)
#undef DRIVER_LOAD
}
