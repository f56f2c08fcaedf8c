// Whether a model repeats itself: whether it is in a state in which it was before.
//
// A model whose inputs stay as they are, and which is in a state again that it was in before, goes
// round for ever: no number of cycles brings anything out of it. So a unit that waits can be told
// from one that computes, whatever its TREADY does meanwhile.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

namespace pynq_torch {
namespace rtl {

// A copy of the model's state, renewed every so many cycles, and the later states compared with it.
class StateCopy {
  public:
    // `doubles`: each copy lasts twice as long as the one before.
    StateCopy(uint64_t span, bool doubles) : span_(span), doubles_(doubles) {}
    void forget() { left_ = 0; }
    // The state a cycle later; true if it is that of the copy.
    bool look(const unsigned char* bytes, size_t nbytes) {
        if (left_ == 0) {
            lasts_ = span_;
        } else {
            if (same(bytes)) return true;
            if (--left_ > 0) return false;
            if (doubles_) lasts_ *= 2;
        }
        left_ = lasts_;
        copy_.assign(bytes, bytes + nbytes);
        return false;
    }

  private:
    static constexpr size_t kBlock = 256;

    // Most states differ from the copy where the one before did, a counter for instance: large
    // models are seldom compared from end to end.
    bool same(const unsigned char* bytes) {
        if (differs(bytes, differs_)) return false;
        for (size_t at = 0; at < copy_.size(); at += kBlock) {
            if (!differs(bytes, at)) continue;
            differs_ = at;
            return false;
        }
        return true;
    }
    bool differs(const unsigned char* bytes, size_t at) const {
        if (at >= copy_.size()) return false;
        return std::memcmp(bytes + at, copy_.data() + at, std::min(kBlock, copy_.size() - at)) != 0;
    }

    std::vector<unsigned char> copy_;
    size_t differs_ = 0;
    uint64_t span_, lasts_ = 0, left_ = 0;
    bool doubles_;
};

class Repeats {
  public:
    // An input changed: what was found holds no longer.
    void forget() {
        found_ = false;
        short_.forget();
        long_.forget();
    }
    bool found() const { return found_; }
    // The state after one more cycle in which no input changed.
    void look(const void* state, size_t nbytes) {
        const auto* bytes = static_cast<const unsigned char*>(state);
        if (!found_) found_ = short_.look(bytes, nbytes) || long_.look(bytes, nbytes);
    }

  private:
    // A unit that has stopped computing is found within twice this.
    static constexpr uint64_t kShort = 32;

    bool found_ = false;
    StateCopy short_{kShort, false};  // of few cycles, such as a TREADY that comes and goes
    StateCopy long_{kShort, true};    // of any length: a counter that starts again (R. Brent, 1980)
};

}  // namespace rtl
}  // namespace pynq_torch
