/* host_maps.h - what lies where in the host's memory, recorded once, when the device stopped at an illegal address: so
 * that a reader can tell that a pointer given to a kernel was one of the host's. */
#ifndef SHIM_HOST_MAPS_H
#define SHIM_HOST_MAPS_H

void host_maps_record(void); /* CAP_HOST_MAP; only the first call does anything */

#endif
