/* rt_array.h - channel descriptors as the driver's formats, and back. */
#ifndef SOFTGPU_RT_ARRAY_H
#define SOFTGPU_RT_ARRAY_H

#include "softgpu/rt.h"

/* False: channels of different sizes, or a kind that the driver has no format for. */
bool rt_array_format(const struct cudaChannelFormatDesc *desc, CUarray_format *format, unsigned *channels);
struct cudaChannelFormatDesc rt_channel_desc(CUarray_format format, unsigned channels);

#endif
