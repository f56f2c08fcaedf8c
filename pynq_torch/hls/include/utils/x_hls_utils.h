// The tools' helpers (UG902): limits of HLS types, which are those of the wheel's header or of Vitis' own;
// hls::reg, and fp_struct.
#pragma once
#include_next <utils/x_hls_utils.h>
#include "../hls_parts.h"
