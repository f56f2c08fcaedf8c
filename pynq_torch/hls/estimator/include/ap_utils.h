// Clock and protocol helpers for the estimator (UG1399).
#pragma once
extern "C" void __hls_wait(int) noexcept;
inline void ap_wait() { __hls_wait(1); }
template <class AP_T> inline void ap_wait_n(AP_T n) { __hls_wait((int)n); }
#define ap_wait_until(condition) ((void)(condition))
