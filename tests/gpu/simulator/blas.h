// Products of matrices by the names of cuBLAS, in column-major order, as cupy calls them.
#include <complex>
#define WITHOUT_CUPY
#include "device.h"
#include "half.h"

typedef std::complex<float> Complex;
typedef std::complex<double> Complex2;
enum Kind { F32 = 0, F64 = 1, F16 = 2, C64 = 4, C128 = 5, I8 = 3, I32 = 10, BF16 = 14 };

static int size_of(int kind) {
    switch (kind) {
    case F16: case BF16: return 2;
    case F64: case C64: return 8;
    case C128: return 16;
    case I8: return 1;
    default: return 4;
    }
}

template <class T, class A>
int product(int ta, int tb, int m, int n, int k, const void *alpha, const void *a, int lda, const void *b, int ldb,
            const void *beta, void *c, int ldc) {
    const T *x = (const T *)a, *y = (const T *)b;
    T *z = (T *)c;
    A scale = *(const A *)alpha, kept = *(const A *)beta;
    for (int j = 0; j < n; j++)
        for (int i = 0; i < m; i++) {
            A sum = A(0);
            for (int l = 0; l < k; l++)
                sum += A(ta ? x[(size_t)i * lda + l] : x[(size_t)l * lda + i]) *
                       A(tb ? y[(size_t)l * ldb + j] : y[(size_t)j * ldb + l]);
            T &at = z[(size_t)j * ldc + i];
            at = T(scale * sum + (kept == A(0) ? A(0) : kept * A(at)));
        }
    return 0;
}

static int product_of(int kind, int ta, int tb, int m, int n, int k, const void *alpha, const void *a, int lda,
                      const void *b, int ldb, const void *beta, void *c, int ldc) {
    switch (kind) {
    case F32: return product<float, float>(ta, tb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
    case F64: return product<double, double>(ta, tb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
    case F16: return product<half, float>(ta, tb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
    case BF16: return product<__nv_bfloat16, float>(ta, tb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
    case C64: return product<Complex, Complex>(ta, tb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
    case C128: return product<Complex2, Complex2>(ta, tb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
    case I32: { // of numbers of 8 bits
        const int8_t *x = (const int8_t *)a, *y = (const int8_t *)b;
        for (int j = 0; j < n; j++)
            for (int i = 0; i < m; i++) {
                int sum = 0;
                for (int l = 0; l < k; l++) sum += (ta ? x[i * lda + l] : x[l * lda + i]) * (tb ? y[l * ldb + j] : y[j * ldb + l]);
                ((int *)c)[j * ldc + i] = sum;
            }
        return 0;
    }
    }
    return 15;
}

extern "C" {
int cublasCreate_v2(void **handle) { *handle = (void *)1; return 0; }
int cublasGetVersion_v2(void *h, int *version) { *version = 120800; return 0; }
int cublasGetPointerMode_v2(void *h, int *mode) { *mode = 0; return 0; }
int cublasGetMathMode(void *h, int *mode) { *mode = 0; return 0; }
int cublasGetStream_v2(void *h, void **stream) { *stream = nullptr; return 0; }
int cublasGemmEx(void *h, int ta, int tb, int m, int n, int k, const void *alpha, const void *a, int ka, int lda,
                 const void *b, int kb, int ldb, const void *beta, void *c, int kc, int ldc, int compute, int way) {
    return product_of(kc, ta, tb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
}
int cublasSgemmEx(void *h, int ta, int tb, int m, int n, int k, const void *alpha, const void *a, int ka, int lda,
                  const void *b, int kb, int ldb, const void *beta, void *c, int kc, int ldc) {
    return product_of(kc, ta, tb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
}
int cublasGemmStridedBatchedEx(void *h, int ta, int tb, int m, int n, int k, const void *alpha, const char *a, int ka,
                               int lda, long long sa, const char *b, int kb, int ldb, long long sb, const void *beta,
                               char *c, int kc, int ldc, long long sc, int count, int compute, int way) {
    for (int i = 0; i < count; i++)
        if (int failed = product_of(kc, ta, tb, m, n, k, alpha, a + i * sa * size_of(ka), lda, b + i * sb * size_of(kb),
                                    ldb, beta, c + i * sc * size_of(kc), ldc))
            return failed;
    return 0;
}
#define GEMM(L, kind) \
    int cublas##L##gemm_v2(void *h, int ta, int tb, int m, int n, int k, const void *alpha, const void *a, int lda, \
                           const void *b, int ldb, const void *beta, void *c, int ldc) { \
        return product_of(kind, ta, tb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc); \
    } \
    int cublas##L##gemmStridedBatched(void *h, int ta, int tb, int m, int n, int k, const void *alpha, const char *a, \
                                      int lda, long long sa, const char *b, int ldb, long long sb, const void *beta, \
                                      char *c, int ldc, long long sc, int count) { \
        return cublasGemmStridedBatchedEx(h, ta, tb, m, n, k, alpha, a, kind, lda, sa, b, kind, ldb, sb, beta, c, kind, \
                                          ldc, sc, count, 0, 0); \
    } \
    int cublas##L##gemmBatched(void *h, int ta, int tb, int m, int n, int k, const void *alpha, void **a, int lda, \
                               void **b, int ldb, const void *beta, void **c, int ldc, int count) { \
        for (int i = 0; i < count; i++) product_of(kind, ta, tb, m, n, k, alpha, a[i], lda, b[i], ldb, beta, c[i], ldc); \
        return 0; \
    }
GEMM(S, F32) GEMM(D, F64) GEMM(C, C64) GEMM(Z, C128)
#define DOT(name, T, first) \
    int cublas##name##_v2(void *h, int n, const T *x, int sx, const T *y, int sy, T *result) { \
        T sum = T(0); \
        for (int i = 0; i < n; i++) sum += first * y[i * sy]; \
        *result = sum; \
        return 0; \
    }
DOT(Sdot, float, x[i * sx]) DOT(Ddot, double, x[i * sx]) DOT(Cdotu, Complex, x[i * sx]) DOT(Zdotu, Complex2, x[i * sx])
DOT(Cdotc, Complex, std::conj(x[i * sx])) DOT(Zdotc, Complex2, std::conj(x[i * sx]))
}
