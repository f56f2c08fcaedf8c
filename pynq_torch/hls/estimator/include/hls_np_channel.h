// Channels from one to several and from several to one, for the estimator, which does not know
// them. UG1399, "HLS Split/Merge Library".
#pragma once
#include "hls_stream.h"
#define AP_UNKNOWN __attribute__((unavailable( \
    "split and merge are processes that never end, which have no latency; estimate each function around them as a top")))
#define AP_CHANNEL(AP_KIND, AP_WAY, AP_IN, AP_OUT) \
  namespace hls { namespace AP_KIND { \
  template <class AP_T, int AP_N, int AP_DEPTH = 2, int AP_EACH = 2> struct AP_WAY { \
    AP_UNKNOWN AP_WAY() {} \
    AP_UNKNOWN explicit AP_WAY(const char*) {} \
    hls::stream<AP_T> AP_IN, AP_OUT; \
  }; \
  } }
AP_CHANNEL(split, round_robin, in, out[AP_N])
AP_CHANNEL(split, load_balance, in, out[AP_N])
AP_CHANNEL(merge, round_robin, in[AP_N], out)
AP_CHANNEL(merge, load_balance, in[AP_N], out)
#undef AP_CHANNEL
#undef AP_UNKNOWN
