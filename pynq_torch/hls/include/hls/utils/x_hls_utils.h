// As some sources spell it.
#pragma once
#include <utils/x_hls_utils.h>
