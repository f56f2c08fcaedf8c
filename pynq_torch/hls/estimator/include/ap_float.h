// Floating point of a width and an exponent, for the estimator: those that the compiler has.
#pragma once
#include <hls_half.h>
#include <type_traits>

template <int AP_W, int AP_E>
using ap_float = std::conditional_t<AP_W == 16 && AP_E == 5, half, std::conditional_t<AP_W == 32 && AP_E == 8, float, std::enable_if_t<(AP_W == 64 && AP_E == 11) || (AP_W == 16 && AP_E == 5) || (AP_W == 32 && AP_E == 8), double>>>;
