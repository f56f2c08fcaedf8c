// hls::task: a function that runs for ever in a thread of its own, fed by streams (UG1399, "Task
// Level Parallelism: Data-driven"). Streams block instead of throwing once a task exists.
#pragma once

#include <functional>
#include <thread>
#include <utility>

#include "hls_stream.h"

// A block-scope thread_local lives as long as the thread, as tasks and their channels do.
#define hls_thread_local thread_local

namespace hls {

class task {
  public:
    template <class Function, class... Arguments>
    explicit task(Function&& function, Arguments&&... arguments) {
        pynq_torch::stream_threads().fetch_add(1);
        // Arguments are streams: they are referred to, never copied.
        auto body = [function, &arguments...] {
            pynq_torch::in_task() = true;
            try {
                for (;;) function(arguments...);
            } catch (const pynq_torch::Aborted&) {
                // The board resets the compute unit, or one of the streams is gone.
            }
            pynq_torch::task_ended();
        };
        std::thread(body).detach();
    }
    task(const task&) = delete;
    task& operator=(const task&) = delete;
};

}  // namespace hls
