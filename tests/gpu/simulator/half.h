// CUDA's float16, which cupy's float16 is made of.
#pragma once
struct __half_raw { unsigned short x; };
struct half {
    unsigned short x;
    half() = default;
    explicit half(const __half_raw &raw) : x(raw.x) {}
#define FROM(T) half(T value) : x(__float2half_rn(float(value))) {}
    FROM(float) FROM(double) FROM(int) FROM(unsigned) FROM(long long) FROM(unsigned long long) FROM(bool)
    operator float() const { return __half2float(x); }
    operator __half_raw() const { return {x}; }
};
typedef half __half;
static inline unsigned short __half_as_ushort(half value) { return value.x; }
static inline half __ushort_as_half(unsigned short bits) { half made; made.x = bits; return made; }
static inline bool __hisnan(half value) { return std::isnan(float(value)); }
static inline int __hisinf(half value) { return std::isinf(float(value)); }
