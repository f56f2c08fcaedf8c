// Which physical addresses answer, and where their bytes are.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <sys/mman.h>
#include <sys/types.h>
#include <vector>

namespace pynq_torch {
namespace rtl {

struct AccessFault {
    enum Kind : uint32_t { none = 0, outside = 1, guard = 2 };
    uint64_t cycle;
    uint64_t address;  // of the first byte that does not answer
    uint32_t kind;
    uint32_t write;
    uint32_t port;  // row of the board's table of ports
    uint32_t reserved;
};

// The physical address space: the shared memories of the board at their addresses, and which pages
// of DDR belong to a buffer. The table of grants is that of board/memory.py, see engine.hpp.
class MemoryMap {
  public:
    explicit MemoryMap(bool guard, bool goes_on = false)
        : guard_(guard), goes_on_(goes_on), pages_(kSpace >> kPageBits, kNothing) {
        void* p =
            mmap(nullptr, kSpace, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (p == MAP_FAILED) throw std::runtime_error("cannot reserve the physical address space");
        base_ = static_cast<uint8_t*>(p);
    }
    ~MemoryMap() { munmap(base_, kSpace); }
    MemoryMap(const MemoryMap&) = delete;
    MemoryMap& operator=(const MemoryMap&) = delete;

    // Maps a physical memory. That at address 0 is DDR, the only one that is guarded.
    void add_window(uint64_t base, uint64_t size, int fd, uint64_t file_offset) {
        if (base + size > kSpace || ((base | size) & (kPage - 1)))
            throw std::runtime_error("a physical memory is not made of pages below 4 GB");
        if (mmap(base_ + base, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd,
                 off_t(file_offset)) == MAP_FAILED)
            throw std::runtime_error("cannot map a physical memory");
        const uint8_t state = guard_ && base == 0 ? kClosed : kOpen;
        std::fill_n(pages_.begin() + long(base >> kPageBits), size >> kPageBits, state);
    }

    void use_grants(const void* table) { grants_ = static_cast<const Grants*>(table); }

    // Opens the pages of buffers allocated since the last look and closes those freed.
    void refresh_grants() {
        if (!grants_ || !guard_) return;
        const uint64_t generation = grants_->generation.load(std::memory_order_acquire);
        if (generation == generation_) return;
        const size_t count = size_t(grants_->count.load(std::memory_order_acquire));
        if (applied_.size() < count) applied_.resize(count, {0, 0});
        // Closing before opening: a page freed by one slot may be granted again through another.
        for (size_t i = 0; i < count; ++i) {
            const Slot now = grants_->slots[i];
            Slot& was = applied_[i];
            if (was.begin == now.begin && was.end == now.end) continue;
            mark(was, kFreed);
            was = {0, 0};
        }
        for (size_t i = 0; i < count; ++i) {
            // A range that changed since it was looked at is the next look's, with the generation.
            if (applied_[i].end != 0) continue;
            applied_[i] = grants_->slots[i];
            mark(applied_[i], kOpen);
            guard_behind(applied_[i]);
        }
        generation_ = generation;
    }

    // Whether a kernel that is answered DECERR goes on, as it would on a board.
    bool goes_on() const { return goes_on_; }

    // Where the bytes of a physical address are; only for addresses that `check` lets pass.
    uint8_t* at(uint64_t address) const { return base_ + address; }

    // AccessFault::none, or why [address, address + nbytes) does not answer; `first` becomes the
    // first address that does not.
    AccessFault::Kind check(uint64_t address, uint64_t nbytes, uint64_t& first) const {
        const uint64_t last = address + nbytes - 1;
        for (uint64_t page = address >> kPageBits; page <= last >> kPageBits; ++page) {
            const uint8_t found = state(page);
            if (found == kOpen) continue;
            first = std::max(address, page << kPageBits);
            return found == kNothing ? AccessFault::outside : AccessFault::guard;
        }
        return AccessFault::none;
    }

    // Whether a read leaves a buffer by at most kReach bytes, into memory that belonged to none: RTL
    // that HLS made reads ahead, and a board gives what is there.
    bool just_outside(uint64_t address, uint64_t nbytes) const {
        const uint64_t last = address + nbytes - 1;
        for (uint64_t page = address >> kPageBits; page <= last >> kPageBits; ++page) {
            if (state(page) == kOpen) continue;
            const uint64_t from = std::max(address, page << kPageBits) - (page << kPageBits);
            const uint64_t to = std::min(last, ((page + 1) << kPageBits) - 1) - (page << kPageBits);
            const bool behind = to < kReach && state(page - 1) == kOpen;
            const bool before = kPage - from <= kReach && state(page + 1) == kOpen;
            if (state(page) != kClosed || !(behind || before)) return false;
        }
        return true;
    }

  private:
    static constexpr uint64_t kReach = 64;  // bytes
    static constexpr uint64_t kSpace = uint64_t(1) << 32;  // Zynq-7000's AXI addresses have 32 bits
    static constexpr unsigned kPageBits = 12;
    static constexpr uint64_t kPage = uint64_t(1) << kPageBits;
    static constexpr uint8_t kNothing = 0, kClosed = 1, kOpen = 2, kFreed = 3;

    struct Slot {
        uint64_t begin, end;
    };
    struct Grants {
        std::atomic<uint64_t> generation, count;
        Slot slots[];
    };

    uint8_t state(uint64_t page) const { return page < pages_.size() ? pages_[size_t(page)] : kNothing; }

    // The page behind a buffer is its own, whatever used it before.
    void guard_behind(const Slot& range) {
        const uint64_t page = range.end == 0 ? 0 : ((range.end - 1) >> kPageBits) + 1;
        if (state(page) == kFreed) pages_[size_t(page)] = kClosed;
    }

    // A page is open as a whole, as for the compiled engines.
    void mark(const Slot& range, uint8_t state) {
        if (range.end <= range.begin || range.end > kSpace) return;
        for (uint64_t page = range.begin >> kPageBits; page <= (range.end - 1) >> kPageBits; ++page)
            if (pages_[size_t(page)] != kNothing) pages_[size_t(page)] = state;
    }

    bool guard_, goes_on_;
    uint8_t* base_ = nullptr;
    std::vector<uint8_t> pages_;
    const Grants* grants_ = nullptr;
    uint64_t generation_ = ~uint64_t(0);
    std::vector<Slot> applied_;
};

}  // namespace rtl
}  // namespace pynq_torch
