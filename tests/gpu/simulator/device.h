// What kernels for GPUs find in CUDA, for the CPU: words, threads, atomics, arithmetic.  See launch.h for how they run.
#pragma once
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <tuple>
#include <ucontext.h>
#include <utility>
#include <vector>

#define __device__
#define __host__
#define __global__
#define __constant__
#define __shared__ static
#define __forceinline__ inline __attribute__((always_inline))
#define __noinline__ __attribute__((noinline))
#define __launch_bounds__(...)
#define __align__(n) __attribute__((aligned(n)))
#define __restrict__
#undef assert
#define assert(x) ((void)0)

// ---- threads: each is a context of its own, which gives way where it has to wait for others

struct dim3 { unsigned x = 1, y = 1, z = 1; };
static dim3 threadIdx, blockIdx, blockDim, gridDim;
static const int warpSize = 32;
static ucontext_t scheduler;
static ucontext_t *current = nullptr;
static unsigned thread_number = 0;
enum Waiting { NOT_WAITING, FOR_BLOCK, FOR_WARP };
static Waiting waiting[1024];

static inline void give_way(Waiting reason) {
    if (!current) return;
    waiting[thread_number] = reason;
    swapcontext(current, &scheduler);
}
static inline void __syncthreads() { give_way(FOR_BLOCK); }
static inline void __syncwarp(unsigned mask = 0) { give_way(FOR_WARP); }
static inline void __threadfence() {}
static inline void __threadfence_block() {}

static char exchanged[1024][16];
template <class T> T from_thread(T value, unsigned other, bool is_there) {
    memcpy(exchanged[thread_number], &value, sizeof value);
    __syncwarp();
    T found = value;
    if (is_there) memcpy(&found, exchanged[other], sizeof found);
    __syncwarp();
    return found;
}
template <class T> T __shfl_up_sync(unsigned, T value, int step, int width = 32) {
    return from_thread(value, thread_number - step, int(thread_number % width) >= step);
}
template <class T> T __shfl_down_sync(unsigned, T value, int step, int width = 32) {
    return from_thread(value, thread_number + step, int(thread_number % width) + step < width);
}
template <class T> T __shfl_xor_sync(unsigned, T value, int mask, int width = 32) {
    return from_thread(value, thread_number ^ mask, true);
}
template <class T> T __shfl_sync(unsigned, T value, int lane, int width = 32) {
    return from_thread(value, thread_number / width * width + lane, true);
}

// ---- atomics: one thread runs at a time

#define ADDING(T) \
    static inline T atomicAdd(T *at, T value) { T before = *at; *at = before + value; return before; }
#define EXCHANGING(T) \
    static inline T atomicExch(T *at, T value) { T before = *at; *at = value; return before; } \
    static inline T atomicCAS(T *at, T old, T value) { T before = *at; if (before == old) *at = value; return before; } \
    static inline T atomicMax(T *at, T value) { T before = *at; if (value > before) *at = value; return before; } \
    static inline T atomicMin(T *at, T value) { T before = *at; if (value < before) *at = value; return before; } \
    static inline T atomicAnd(T *at, T value) { T before = *at; *at = before & value; return before; } \
    static inline T atomicOr(T *at, T value) { T before = *at; *at = before | value; return before; } \
    static inline T atomicXor(T *at, T value) { T before = *at; *at = before ^ value; return before; }
ADDING(int) ADDING(unsigned) ADDING(unsigned long long) ADDING(float) ADDING(double)
EXCHANGING(int) EXCHANGING(unsigned) EXCHANGING(unsigned long long)
static inline float atomicExch(float *at, float value) { float before = *at; *at = value; return before; }
static inline int atomicSub(int *at, int value) { return atomicAdd(at, -value); }
static inline unsigned atomicSub(unsigned *at, unsigned value) { return atomicAdd(at, -value); }

// ---- bits

template <class To, class From> To bits_as(From from) { To to; memcpy(&to, &from, sizeof to); return to; }
static inline int __float_as_int(float x) { return bits_as<int>(x); }
static inline float __int_as_float(int x) { return bits_as<float>(x); }
static inline unsigned __float_as_uint(float x) { return bits_as<unsigned>(x); }
static inline float __uint_as_float(unsigned x) { return bits_as<float>(x); }
static inline long long __double_as_longlong(double x) { return bits_as<long long>(x); }
static inline double __longlong_as_double(long long x) { return bits_as<double>(x); }
static inline int __double2hiint(double x) { return int(bits_as<unsigned long long>(x) >> 32); }
static inline int __double2loint(double x) { return int(bits_as<unsigned long long>(x)); }
static inline int __popc(unsigned x) { return __builtin_popcount(x); }
static inline int __popcll(unsigned long long x) { return __builtin_popcountll(x); }
static inline int __clz(int x) { return x ? __builtin_clz(x) : 32; }
static inline int __clzll(long long x) { return x ? __builtin_clzll(x) : 64; }
static inline int __ffs(int x) { return __builtin_ffs(x); }
static inline int __ffsll(long long x) { return __builtin_ffsll(x); }

// ---- numbers of 16 bits

static inline unsigned short __float2half_rn(float x) {
    unsigned bits = bits_as<unsigned>(x), sign = bits >> 16 & 0x8000, rest = bits & 0x7fffffff;
    if (rest >= 0x7f800000) return sign | (rest > 0x7f800000 ? 0x7e00 : 0x7c00);
    if (rest >= 0x477ff000) return sign | 0x7c00;
    if (rest < 0x38800000) return sign | (unsigned short)nearbyintf(bits_as<float>(rest) * 16777216.0f);
    return sign | ((rest + 0xfff + (rest >> 13 & 1) - 0x38000000) >> 13);
}
static inline float __half2float(unsigned short x) {
    unsigned sign = (x & 0x8000u) << 16, exponent = x >> 10 & 31, rest = x & 1023;
    if (exponent == 31) return bits_as<float>(sign | 0x7f800000 | rest << 13);
    float size = exponent ? bits_as<float>((exponent + 112) << 23 | rest << 13) : rest * 5.9604644775390625e-8f;
    return bits_as<float>(bits_as<unsigned>(size) | sign);
}
struct __nv_bfloat16 {
    unsigned short x;
    __nv_bfloat16() = default;
    __nv_bfloat16(float value) {
        unsigned bits = bits_as<unsigned>(value);
        x = value != value ? 0x7fc0 | (bits >> 16 & 0x8000) : (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
    }
    __nv_bfloat16(double value) : __nv_bfloat16(float(value)) {}
    operator float() const { return bits_as<float>(unsigned(x) << 16); }
};
static inline unsigned short __bfloat16_as_ushort(__nv_bfloat16 value) { return value.x; }
static inline __nv_bfloat16 __ushort_as_bfloat16(unsigned short bits) { __nv_bfloat16 made; made.x = bits; return made; }
static inline bool __hisnan(__nv_bfloat16 value) { return std::isnan(float(value)); }
static inline int __hisinf(__nv_bfloat16 value) { return std::isinf(float(value)); }

// ---- arithmetic

#define KNOWN(name) using std::name;
KNOWN(abs) KNOWN(acos) KNOWN(acosh) KNOWN(asin) KNOWN(asinh) KNOWN(atan) KNOWN(atan2) KNOWN(atanh) KNOWN(cbrt) KNOWN(ceil)
KNOWN(copysign) KNOWN(cos) KNOWN(cosh) KNOWN(erf) KNOWN(erfc) KNOWN(exp) KNOWN(exp2) KNOWN(expm1) KNOWN(fabs) KNOWN(floor)
KNOWN(fmax) KNOWN(fmin) KNOWN(fmod) KNOWN(frexp) KNOWN(hypot) KNOWN(isfinite) KNOWN(isinf) KNOWN(isnan) KNOWN(ldexp)
KNOWN(lgamma) KNOWN(log) KNOWN(log10) KNOWN(log1p) KNOWN(log2) KNOWN(logb) KNOWN(modf) KNOWN(nearbyint) KNOWN(nextafter)
KNOWN(pow) KNOWN(remainder) KNOWN(rint) KNOWN(round) KNOWN(signbit) KNOWN(sin) KNOWN(sinh) KNOWN(sqrt) KNOWN(tan) KNOWN(tanh)
KNOWN(tgamma) KNOWN(trunc)
template <class A, class B> typename std::common_type<A, B>::type min(A a, B b) { return b < a ? b : a; }
template <class A, class B> typename std::common_type<A, B>::type max(A a, B b) { return a < b ? b : a; }
static inline double rsqrt(double x) { return 1 / std::sqrt(x); }
static inline float rsqrt(float x) { return 1 / std::sqrt(x); }
static inline double normcdf(double x) { return .5 * erfc(-x / 1.4142135623730951); }
static inline double sinpi(double x) { return std::sin(M_PI * x); }
static inline double cospi(double x) { return std::cos(M_PI * x); }

#ifndef WITHOUT_CUPY
#include <cupy/complex.cuh>

#include <cupy/atomics.cuh>
#include <cupy/carray.cuh>
#include <cupy/math_constants.h>
#endif
