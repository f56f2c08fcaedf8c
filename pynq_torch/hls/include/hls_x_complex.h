// hls::x_complex: the older name of a complex number.
#pragma once

#include <complex>

namespace hls {
template <class Type> using x_complex = std::complex<Type>;
}  // namespace hls
