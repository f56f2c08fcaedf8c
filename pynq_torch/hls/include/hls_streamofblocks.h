// hls::stream_of_blocks: a channel of whole arrays between two processes of a dataflow region
// (UG1399, "Stream-of-Blocks"). A lock gives one block; it is handed on, or back, when the lock ends.
#pragma once

#include <cstddef>
#include <deque>
#include <memory>
#include <stdexcept>
#include <type_traits>

namespace hls {

template <class Block, int Depth = 2> class stream_of_blocks;

namespace blocks_detail {
template <class Block> struct Boxed {
    Block value;
};
template <class Block> struct Channel {
    std::deque<std::shared_ptr<Boxed<Block>>> blocks;
};
}  // namespace blocks_detail

template <class Block> class stream_of_blocks<Block, 0> : public blocks_detail::Channel<Block> {
  public:
    stream_of_blocks() = default;
    stream_of_blocks(const stream_of_blocks&) = delete;
    bool empty() const { return this->blocks.empty(); }
    bool full() const { return false; }
};
template <class Block, int Depth> class stream_of_blocks : public stream_of_blocks<Block, 0> {};

template <class Block> class write_lock {
  public:
    template <int Depth>
    explicit write_lock(stream_of_blocks<Block, Depth>& stream)
        : channel_(stream), box_(std::make_shared<blocks_detail::Boxed<Block>>()) {}
    ~write_lock() { channel_.blocks.push_back(box_); }
    operator Block&() { return box_->value; }
    template <class Index> auto& operator[](Index i) { return box_->value[i]; }
    Block& get() { return box_->value; }

  private:
    blocks_detail::Channel<Block>& channel_;
    std::shared_ptr<blocks_detail::Boxed<Block>> box_;
};

template <class Block> class read_lock {
  public:
    template <int Depth>
    explicit read_lock(stream_of_blocks<Block, Depth>& stream) : channel_(stream) {
        if (stream.empty())
            throw std::runtime_error("read from empty hls::stream_of_blocks: nothing fills it");
        box_ = channel_.blocks.front();
    }
    ~read_lock() { channel_.blocks.pop_front(); }
    operator Block&() { return box_->value; }
    template <class Index> auto& operator[](Index i) { return box_->value[i]; }
    Block& get() { return box_->value; }

  private:
    blocks_detail::Channel<Block>& channel_;
    std::shared_ptr<blocks_detail::Boxed<Block>> box_;
};

}  // namespace hls
