// What g++ calls where an index is outside its array, with -fsanitize=bounds: the first one is noted
// for the board, and the kernel goes on. In the PL such an address wraps round inside the RAM or
// selects nothing. Included by engine.hpp.
#pragma once

#if !defined(__SANITIZE_ADDRESS__)

namespace pynq_torch {

// As libubsan describes a place and a type.
struct IndexedType {
    uint16_t kind, info;
    char name[];
};
struct OutsideArray {
    const char* file;
    uint32_t line, column;
    const IndexedType *array, *index;
};

inline void note_outside(const OutsideArray& place, long long index) {
    static std::atomic_flag noting = ATOMIC_FLAG_INIT;
    if (g_engine == nullptr || noting.test_and_set()) return;
    Mailbox& mailbox = *g_engine->mailbox;
    if (mailbox.outside[0] == 0) {
        const char* file = std::strrchr(place.file, '/');
        std::snprintf(mailbox.outside, sizeof mailbox.outside, "%s:%u uses index %lld of an array %s",
                      file ? file + 1 : place.file, place.line, index, place.array->name);
    }
    noting.clear();
}

}  // namespace pynq_torch

extern "C" __attribute__((weak, noinline)) void __ubsan_handle_out_of_bounds(void* place, void* index) {
    pynq_torch::note_outside(*static_cast<pynq_torch::OutsideArray*>(place),
                             static_cast<long long>(reinterpret_cast<uintptr_t>(index)));
}

#endif
