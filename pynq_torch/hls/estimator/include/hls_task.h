// hls::task for the estimator: a thread that never ends has no latency. UG1399, "Task Level
// Parallelism: Data-driven".
#pragma once
#include "hls_stream.h"
#define hls_thread_local
namespace hls {
class __attribute__((unavailable(
    "a task never ends, so that it has no latency; estimate each function that tasks run as a top"))) task {
 public:
  template <class AP_F, class... AP_A> explicit task(AP_F&&, AP_A&&...) {}
};
}
