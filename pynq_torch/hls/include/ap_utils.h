// Clock and protocol helpers (UG1399): a PC has no clock, so that waiting is nothing.
#pragma once

#include "ap_int.h"

inline void ap_wait() {}
template <class Count> inline void ap_wait_n(Count) {}
#define ap_wait_until(condition) ((void)0)
