// The linear algebra library (UG902, "HLS Linear Algebra Library"): its names. What its functions
// do, loop by loop, is not documented, so that there is no estimate of them.
#pragma once

#include <hls_math.h>
#include <hls_x_complex.h>

#if __has_attribute(unavailable)
#define HLS_UNKNOWN(NAME)                                                                         \
    __attribute__((unavailable(NAME                                                               \
        " of hls_linear_algebra.h is the vendor's, whose loops are not known here; write it as a " \
        "function of your own")))
#else
#define HLS_UNKNOWN(NAME)
#endif
// A function, the same with traits, and what those derive from.
#define HLS_PARAMETERS(...) __VA_ARGS__
#define HLS_ALGEBRA(NAME, PARAMETERS, TRAITS, ARGUMENTS, RESULT)                                  \
    namespace hls {                                                                               \
    template <TRAITS> struct NAME##_traits {};                                                    \
    template <PARAMETERS> HLS_UNKNOWN(#NAME) RESULT NAME(ARGUMENTS);                              \
    template <PARAMETERS, class Traits> HLS_UNKNOWN(#NAME) RESULT NAME##_top(ARGUMENTS);          \
    }

namespace hls {
struct NoTranspose {};
struct Transpose {};
struct ConjugateTranspose {};
}  // namespace hls

HLS_ALGEBRA(matrix_multiply,
            HLS_PARAMETERS(class A, class B, int RowsA, int ColsA, int RowsB, int ColsB, int RowsC,
                           int ColsC, class In, class Out),
            HLS_PARAMETERS(class A, class B, int RowsA, int ColsA, int RowsB, int ColsB, class In,
                           class Out),
            HLS_PARAMETERS(const In[RowsA][ColsA], const In[RowsB][ColsB], Out[RowsC][ColsC]), void)
HLS_ALGEBRA(cholesky, HLS_PARAMETERS(bool Lower, int N, class In, class Out),
            HLS_PARAMETERS(bool Lower, int N, class In, class Out),
            HLS_PARAMETERS(const In[N][N], Out[N][N]), int)
HLS_ALGEBRA(cholesky_inverse, HLS_PARAMETERS(int N, class In, class Out),
            HLS_PARAMETERS(int N, class In, class Out),
            HLS_PARAMETERS(const In[N][N], Out[N][N], int&), void)
HLS_ALGEBRA(qrf, HLS_PARAMETERS(bool TransposedQ, int Rows, int Cols, class In, class Out),
            HLS_PARAMETERS(int Rows, int Cols, class In, class Out),
            HLS_PARAMETERS(const In[Rows][Cols], Out[Rows][Rows], Out[Rows][Cols]), void)
HLS_ALGEBRA(qr_inverse, HLS_PARAMETERS(int N, class In, class Out),
            HLS_PARAMETERS(int N, class In, class Out),
            HLS_PARAMETERS(const In[N][N], Out[N][N], int&), void)
HLS_ALGEBRA(svd, HLS_PARAMETERS(int Rows, int Cols, class In, class Out),
            HLS_PARAMETERS(int Rows, int Cols, class In, class Out),
            HLS_PARAMETERS(const In[Rows][Cols], Out[Rows][Cols], Out[Rows][Rows], Out[Cols][Cols]),
            void)
HLS_ALGEBRA(back_substitute, HLS_PARAMETERS(int N, class In, class Out),
            HLS_PARAMETERS(int N, class In, class Out),
            HLS_PARAMETERS(const In[N][N], Out[N][N], int&), void)

#undef HLS_ALGEBRA
#undef HLS_PARAMETERS
#undef HLS_UNKNOWN
