/* arith_integer.h - integers and bits; part of arith.h. */
#ifndef PTX_ARITH_INTEGER_H
#define PTX_ARITH_INTEGER_H

static inline int32_t saturate_s32(int64_t x)
{
    return x > INT32_MAX ? INT32_MAX : x < INT32_MIN ? INT32_MIN : (int32_t)x;
}

static inline int32_t sign24(uint32_t a)
{
    return (int32_t)(a << 8) >> 8;
}

/* ---- shifts: amounts above the width clamp ---- */

static inline uint32_t shift_left32(uint32_t a, uint32_t n)
{
    uint32_t r = a << (n & 31);
    return n > 31 ? 0 : r;
}

static inline uint64_t shift_left64(uint64_t a, uint64_t n)
{
    uint64_t r = a << (n & 63);
    return n > 63 ? 0 : r;
}

static inline uint32_t shift_right32(uint32_t a, uint32_t n)
{
    uint32_t r = a >> (n & 31);
    return n > 31 ? 0 : r;
}

static inline uint64_t shift_right64(uint64_t a, uint64_t n)
{
    uint64_t r = a >> (n & 63);
    return n > 63 ? 0 : r;
}

static inline uint32_t shift_signed32(int32_t a, uint32_t n)
{
    return (uint32_t)(a >> (n > 31 ? 31 : n));
}

/* The sign travels through an unsigned shift: AVX2 has no arithmetic one for 64 bits. */
static inline uint64_t shift_signed64(int64_t a, uint32_t n)
{
    uint64_t sign = 0 - ((uint64_t)a >> 63);
    return (((uint64_t)a ^ sign) >> (n > 63 ? 63 : n)) ^ sign;
}

/* {b, a} shifted left, upper half; n at most 32. */
static inline uint32_t funnel_left(uint32_t a, uint32_t b, uint32_t n)
{
    uint64_t both = (uint64_t)b << 32 | a;
    return (uint32_t)((both << n) >> 32);
}

/* {b, a} shifted right, lower half; n at most 32. */
static inline uint32_t funnel_right(uint32_t a, uint32_t b, uint32_t n)
{
    uint64_t both = (uint64_t)b << 32 | a;
    return (uint32_t)(both >> n);
}

/* ---- division. By zero it is unspecified in PTX; devices give all ones, and the dividend as remainder. ---- */

/* Any 32 bits as a double, without a conversion of unsigned numbers, which AVX2 lacks: the mantissa of 2^52 + a. */
static inline double double_of_u32(uint32_t a)
{
    return float64(UINT64_C(0x4330000000000000) | a) - 0x1p52;
}

/* The quotient of doubles is the true one rounded; a true quotient that is no integer lies at least 2^-32 of itself
 * below the next integer, so that rounding never reaches it. Its integer part is found by rounding to nearest and going
 * back. */
static inline uint32_t quotient_u32(uint32_t a, uint32_t b)
{
    double q = double_of_u32(a) / double_of_u32(b);
    double nearest = (q + 0x1p52) - 0x1p52;
    nearest -= nearest > q ? 1.0 : 0.0;
    return (uint32_t)bits64(nearest + 0x1p52);
}

static inline uint32_t divide_u32(uint32_t a, uint32_t b)
{
    uint32_t q = quotient_u32(a, b);
    return b == 0 ? UINT32_MAX : q;
}

static inline uint32_t remainder_u32(uint32_t a, uint32_t b)
{
    uint32_t r = a - quotient_u32(a, b) * b;
    return b == 0 ? a : r;
}

static inline uint32_t magnitude32(int32_t a)
{
    uint32_t sign = (uint32_t)(a >> 31);
    return ((uint32_t)a ^ sign) - sign;
}

static inline uint32_t divide_s32(int32_t a, int32_t b)
{
    uint32_t sign = (uint32_t)((a ^ b) >> 31), q = quotient_u32(magnitude32(a), magnitude32(b));
    return b == 0 ? UINT32_MAX : (q ^ sign) - sign;
}

static inline uint32_t remainder_s32(int32_t a, int32_t b)
{
    uint32_t sign = (uint32_t)(a >> 31), m = magnitude32(b);
    uint32_t r = magnitude32(a) - quotient_u32(magnitude32(a), m) * m;
    return b == 0 ? (uint32_t)a : (r ^ sign) - sign;
}

/* 16 bits likewise, in single precision. */
static inline int32_t quotient16(int32_t a, int32_t b)
{
    return (int32_t)((float)a / (float)(b == 0 ? 1 : b));
}

static inline uint16_t divide16(int32_t a, int32_t b)
{
    int32_t q = quotient16(a, b);
    return (uint16_t)(b == 0 ? 0xffff : q);
}

static inline uint16_t remainder16(int32_t a, int32_t b)
{
    int32_t r = a - quotient16(a, b) * b;
    return (uint16_t)(b == 0 ? a : r);
}

/* Branches: no vector unit divides 64 bits. */
static inline uint64_t divide_s64(int64_t a, int64_t b)
{
    return b == 0 ? UINT64_MAX : b == -1 ? 0 - (uint64_t)a : (uint64_t)(a / b);
}

static inline uint64_t remainder_s64(int64_t a, int64_t b)
{
    return b == 0 ? (uint64_t)a : b == -1 ? 0 : (uint64_t)(a % b);
}

/* ---- bits ---- */

static inline uint32_t pick_bits(uint32_t selector, uint32_t if_one, uint32_t if_zero)
{
    return if_zero ^ (selector & (if_zero ^ if_one));
}

/* Bit k of the table says the result where a, b, c have the bits of k, a the highest. */
static inline uint32_t lop3(uint32_t a, uint32_t b, uint32_t c, unsigned table)
{
#define ROW(k) (0 - (table >> (k)&1))
    uint32_t r11 = pick_bits(c, ROW(7), ROW(6)), r10 = pick_bits(c, ROW(5), ROW(4)), r01 = pick_bits(c, ROW(3), ROW(2)),
             r00 = pick_bits(c, ROW(1), ROW(0));
#undef ROW
    return pick_bits(a, pick_bits(b, r11, r10), pick_bits(b, r01, r00));
}

static inline uint32_t permute_bytes(uint32_t a, uint32_t b, uint32_t selector)
{
    uint32_t r = 0;
    for (unsigned i = 0; i < 4; i++) {
        uint32_t s = selector >> (4 * i);
        uint32_t byte = (s & 4 ? b : a) >> (8 * (s & 3)) & 0xff;
        uint32_t filled = (0 - (byte >> 7)) & 0xff;
        r |= (s & 8 ? filled : byte) << (8 * i);
    }
    return r;
}

static inline uint32_t permute_selector(unsigned mode, uint32_t c)
{
    uint32_t n = c & 3, r = 0;
    for (uint32_t i = 0; i < 4; i++) {
        uint32_t s = mode == PRMT_F4E   ? n + i
                     : mode == PRMT_B4E ? (n - i) & 7
                     : mode == PRMT_RC8 ? n
                     : mode == PRMT_ECL ? (i > n ? i : n)
                     : mode == PRMT_ECR ? (i < n ? i : n)
                                        : (n & 1) * 2 + (i & 1);
        r |= s << (4 * i);
    }
    return r;
}

static inline uint32_t count_ones32(uint32_t x)
{
    x -= x >> 1 & 0x55555555;
    x = (x & 0x33333333) + (x >> 2 & 0x33333333);
    x = (x + (x >> 4)) & 0x0f0f0f0f;
    x += x >> 8;
    return (x + (x >> 16)) & 0x3f;
}

static inline uint32_t count_ones64(uint64_t x)
{
    return count_ones32((uint32_t)x) + count_ones32((uint32_t)(x >> 32));
}

/* The exponent of x as a float tells its highest bit. Clearing the bit below that one keeps the conversion from
 * rounding up to the next power of two. */
static inline uint32_t leading_zeros32(uint32_t x)
{
    uint32_t exponent = bits32((float)(int32_t)(x & ~(x >> 1))) >> 23;
    uint32_t zeros = 127 + 31 - exponent;
    return x == 0 ? 32 : x >> 31 ? 0 : zeros;
}

static inline uint32_t leading_zeros64(uint64_t x)
{
    uint32_t high = (uint32_t)(x >> 32), low = (uint32_t)x;
    uint32_t zeros = leading_zeros32(high ? high : low);
    return high ? zeros : 32 + zeros;
}

static inline uint32_t reverse_bits32(uint32_t x)
{
    x = (x >> 1 & 0x55555555) | (x & 0x55555555) << 1;
    x = (x >> 2 & 0x33333333) | (x & 0x33333333) << 2;
    x = (x >> 4 & 0x0f0f0f0f) | (x & 0x0f0f0f0f) << 4;
    return __builtin_bswap32(x);
}

static inline uint64_t reverse_bits64(uint64_t x)
{
    x = (x >> 1 & UINT64_C(0x5555555555555555)) | (x & UINT64_C(0x5555555555555555)) << 1;
    x = (x >> 2 & UINT64_C(0x3333333333333333)) | (x & UINT64_C(0x3333333333333333)) << 2;
    x = (x >> 4 & UINT64_C(0x0f0f0f0f0f0f0f0f)) | (x & UINT64_C(0x0f0f0f0f0f0f0f0f)) << 4;
    return __builtin_bswap64(x);
}

static inline uint32_t find_top_bit32(uint32_t a, unsigned shift_amount)
{
    uint32_t zeros = leading_zeros32(a);
    uint32_t found = shift_amount ? zeros : 31 - zeros;
    return a == 0 ? UINT32_MAX : found;
}

static inline uint32_t find_top_bit64(uint64_t a, unsigned shift_amount)
{
    uint32_t zeros = leading_zeros64(a);
    uint32_t found = shift_amount ? zeros : 63 - zeros;
    return a == 0 ? UINT32_MAX : found;
}

/* A loop: rare enough. */
static inline uint32_t find_nth_set(uint32_t mask, uint32_t base, int32_t offset)
{
    if (offset == 0)
        return base < 32 && (mask >> base & 1) ? base : UINT32_MAX;
    int64_t left = offset < 0 ? -(int64_t)offset : offset;
    for (int64_t at = base; at >= 0 && at<32; at += offset> 0 ? 1 : -1)
        if ((mask >> at & 1) && --left == 0)
            return (uint32_t)at;
    return UINT32_MAX;
}

/* The lowest n bits set; n may be anything. */
static inline uint32_t low_ones32(uint32_t n)
{
    return ~(n > 31 ? 0 : UINT32_MAX << (n & 31));
}

static inline uint64_t low_ones64(uint64_t n)
{
    return ~(n > 63 ? 0 : UINT64_MAX << (n & 63));
}

static inline uint32_t extract_field32(uint32_t a, uint32_t position, uint32_t length, bool is_signed)
{
    uint32_t pos = position & 0xff, len = length & 0xff;
    uint32_t room = pos > 31 ? 0 : 32 - pos, kept = len < room ? len : room;
    uint32_t top = pos + len - 1 < 31 ? pos + len - 1 : 31;
    uint32_t fill = is_signed ? 0 - (a >> (top & 31) & 1) : 0, low = low_ones32(kept);
    uint32_t field = (shift_right32(a, pos) & low) | (fill & ~low);
    return len == 0 ? 0 : field;
}

static inline uint64_t extract_field64(uint64_t a, uint32_t position, uint32_t length, bool is_signed)
{
    uint64_t pos = position & 0xff, len = length & 0xff;
    uint64_t room = pos > 63 ? 0 : 64 - pos, kept = len < room ? len : room;
    uint64_t top = pos + len - 1 < 63 ? pos + len - 1 : 63;
    uint64_t fill = is_signed ? 0 - (a >> (top & 63) & 1) : 0, low = low_ones64(kept);
    uint64_t field = (shift_right64(a, pos) & low) | (fill & ~low);
    return len == 0 ? 0 : field;
}

static inline uint32_t insert_field32(uint32_t a, uint32_t b, uint32_t position, uint32_t length)
{
    uint32_t pos = position & 0xff, mask = shift_left32(low_ones32(length & 0xff), pos);
    return (b & ~mask) | (shift_left32(a, pos) & mask);
}

static inline uint64_t insert_field64(uint64_t a, uint64_t b, uint32_t position, uint32_t length)
{
    uint64_t pos = position & 0xff;
    uint64_t mask = shift_left64(low_ones64(length & 0xff), pos);
    return (b & ~mask) | (shift_left64(a, pos) & mask);
}

static inline uint32_t bit_mask(uint32_t start, uint32_t width, unsigned clamp)
{
    uint32_t from = clamp ? start : start & 31, count = clamp ? width : width & 31;
    return shift_left32(low_ones32(count), from);
}

static inline uint32_t size_extend(uint32_t a, uint32_t n, unsigned clamp, bool is_signed)
{
    uint32_t count = clamp ? n : n & 31, mask = low_ones32(count);
    uint32_t fill = is_signed ? 0 - (a >> ((count - 1) & 31) & 1) : 0;
    uint32_t r = count > 31 ? a : (a & mask) | (fill & ~mask);
    return count == 0 ? 0 : r;
}

/* `kept`: -1 leaves the sign that fills the upper bits. */
static inline int32_t byte_of(uint32_t x, unsigned i, int32_t kept)
{
    return (int32_t)(x << (24 - 8 * i)) >> 24 & kept;
}

static inline int32_t word_half(uint32_t x, unsigned i, int32_t kept)
{
    return (int32_t)(x << (16 - 16 * i)) >> 16 & kept;
}

static inline uint32_t dot4(uint32_t a, uint32_t b, uint32_t c, unsigned mod)
{
    int32_t kept_a = mod & DOT_A_SIGNED ? -1 : 0xff, kept_b = mod & DOT_B_SIGNED ? -1 : 0xff;
    for (unsigned i = 0; i < 4; i++)
        c += (uint32_t)(byte_of(a, i, kept_a) * byte_of(b, i, kept_b));
    return c;
}

static inline uint32_t dot2(uint32_t a, uint32_t b, uint32_t c, unsigned mod)
{
    int32_t kept_a = mod & DOT_A_SIGNED ? -1 : 0xffff, kept_b = mod & DOT_B_SIGNED ? -1 : 0xff;
    uint32_t bytes = mod & DOT_HIGH ? b >> 16 : b;
    for (unsigned i = 0; i < 2; i++)
        c += (uint32_t)(word_half(a, i, kept_a) * byte_of(bytes, i, kept_b));
    return c;
}

#endif
