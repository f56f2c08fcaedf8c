// hls::x_complex where the linear algebra library has it.
#pragma once
#include <hls_x_complex.h>
