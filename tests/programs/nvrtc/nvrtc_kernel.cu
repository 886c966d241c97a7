/* nvrtc_kernel.cu - compiled while nvrtc_api.c runs; FAULT_TAIL_WRITE plants a fault. */

/* out = (over * alpha + under * (255 - alpha)) / 255, rounded, for each of CHANNELS bytes. */
template <int CHANNELS>
__global__ void blend_pixels(unsigned char *out, const unsigned char *over,
                             const unsigned char *under, int pixels, int alpha)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned char blended[CHANNELS] = {};

    if (i < pixels)
        for (int c = 0; c < CHANNELS; c++) {
            const int sum =
                over[i * CHANNELS + c] * alpha + under[i * CHANNELS + c] * (255 - alpha);
            blended[c] = (unsigned char)((sum + 127) / 255);
        }
#ifndef FAULT_TAIL_WRITE
    if (i >= pixels)
        return;
#endif
    for (int c = 0; c < CHANNELS; c++)
        out[i * CHANNELS + c] = blended[c]; /* FAULT: tail_write */
}
