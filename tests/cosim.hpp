// What co-simulation does with the pointers that a testbench hands to the top function, for
// tests/test_hw_cosim.py: it copies `depth` elements behind each of them into the memory of the
// simulation, and those that the kernel writes back. Here that memory ends at pages nobody may touch.
#pragma once
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>

namespace cosim_check {
// Every block of `new`, in a list; a vector's buffer is one.
struct alignas(std::max_align_t) Block {
    Block *before, *after;
    std::size_t size;
};
inline Block* blocks = nullptr;

[[noreturn]] inline void fail(const char* name, const char* said) {
    std::fprintf(stderr, "co-simulation of %s: %s\n", name, said);
    std::fflush(stdout);
    _exit(3);
}

inline const char* running = "";
inline void on_fault(int) { fail(running, "an access outside the elements that depth= promises"); }

// Elements of one m_axi argument during a call.
template <class Type> class Port {
  public:
    Port(const char* name, Type* given, std::size_t depth, bool written)
        : given_(given), size_(depth * sizeof(Type)), written_(written) {
        if (given == nullptr) fail(name, "a null pointer");
        const char* at = reinterpret_cast<const char*>(given);
        const Block* block = blocks;
        const auto begin = [](const Block* b) { return reinterpret_cast<const char*>(b + 1); };
        while (block != nullptr && (at < begin(block) || at > begin(block) + block->size)) block = block->after;
        if (block == nullptr) fail(name, "a pointer to no buffer of new or std::vector");
        if (begin(block) + block->size - at < static_cast<std::ptrdiff_t>(size_)) fail(name, "a buffer shorter than depth=");
        const std::size_t page = sysconf(_SC_PAGESIZE), inside = (size_ + page - 1) / page * page;
        whole_ = inside + 2 * page;
        memory_ = static_cast<char*>(mmap(nullptr, whole_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
        if (memory_ == MAP_FAILED || mprotect(memory_ + page, inside, PROT_READ | PROT_WRITE) != 0) std::abort();
        copy_ = memory_ + page + inside - size_;
        std::memcpy(copy_, at, size_);
    }
    ~Port() {
        if (written_) std::memcpy(const_cast<void*>(static_cast<const void*>(given_)), copy_, size_);
        munmap(memory_, whole_);
    }
    Type* copy() { return reinterpret_cast<Type*>(copy_); }

  private:
    Type* given_;
    std::size_t size_, whole_;
    bool written_;
    char *memory_, *copy_;
};
}  // namespace cosim_check

void* operator new(std::size_t size) {
    auto* block = static_cast<cosim_check::Block*>(std::malloc(sizeof(cosim_check::Block) + size));
    if (block == nullptr) std::abort();
    *block = {nullptr, cosim_check::blocks, size};
    if (cosim_check::blocks != nullptr) cosim_check::blocks->before = block;
    cosim_check::blocks = block;
    return block + 1;
}
void operator delete(void* memory) noexcept {
    if (memory == nullptr) return;
    auto* block = static_cast<cosim_check::Block*>(memory) - 1;
    (block->before != nullptr ? block->before->after : cosim_check::blocks) = block->after;
    if (block->after != nullptr) block->after->before = block->before;
    std::free(block);
}
void operator delete(void* memory, std::size_t) noexcept { operator delete(memory); }
