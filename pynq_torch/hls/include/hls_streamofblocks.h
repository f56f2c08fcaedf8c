// hls::stream_of_blocks: a channel of whole arrays between two processes of a dataflow region
// (UG1399, "Stream-of-Blocks"). A lock gives one block; it is handed on, or back, when the lock ends.
#pragma once

#include <cstddef>
#include <deque>
#include <memory>
#include <stdexcept>
#include <type_traits>

#include "pynq_torch_flow.h"

namespace hls {

template <class Block, int Depth = 2> class stream_of_blocks;

namespace blocks_detail {
template <class Block> struct Boxed {
    Block value;
};
template <class Block> struct Channel {
    std::deque<std::shared_ptr<Boxed<Block>>> blocks;
    size_t depth = 0, writing = 0;
};
// In a DATAFLOW region a process waits for a block, or for room for one.
template <class Block> void await(Channel<Block>& of, bool room) {
    struct Here : pynq_torch::Condition {
        Here(Channel<Block>& of, bool room) : of(of), room(room) {}
        bool ready() override {
            return room ? of.blocks.size() + of.writing < of.depth : !of.blocks.empty();
        }
        std::string text() const override {
            return room ? "waits for room in a stream of blocks" : "waits to read a block";
        }
        Channel<Block>& of;
        bool room;
    } here(of, room);
    while (pynq_torch::in_process() && !here.ready()) pynq_torch::scheduler().wait(here);
}
}  // namespace blocks_detail

template <class Block> class stream_of_blocks<Block, 0> : public blocks_detail::Channel<Block> {
  public:
    stream_of_blocks() = default;
    stream_of_blocks(const stream_of_blocks&) = delete;
    bool empty() const {  // who looks and finds nothing lets the others run first
        struct : pynq_torch::Condition {
            bool ready() override { return true; }
            std::string text() const override { return "polls an empty stream of blocks"; }
        } look;
        if (this->blocks.empty() && pynq_torch::in_process()) pynq_torch::scheduler().poll(look);
        return this->blocks.empty();
    }
    bool full() const { return false; }
};
template <class Block, int Depth> class stream_of_blocks : public stream_of_blocks<Block, 0> {
  public:
    stream_of_blocks() { this->depth = Depth; }
};

template <class Block> class write_lock {
  public:
    template <int Depth>
    explicit write_lock(stream_of_blocks<Block, Depth>& stream)
        : channel_(stream), box_(std::make_shared<blocks_detail::Boxed<Block>>()) {
        blocks_detail::await(channel_, true);
        ++channel_.writing;
    }
    ~write_lock() {
        --channel_.writing;
        channel_.blocks.push_back(box_);
        pynq_torch::scheduler().moved();
    }
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
        blocks_detail::await(channel_, false);
        if (stream.empty())
            throw std::runtime_error("read from empty hls::stream_of_blocks: nothing fills it");
        box_ = channel_.blocks.front();
    }
    ~read_lock() {
        channel_.blocks.pop_front();
        pynq_torch::scheduler().moved();
    }
    operator Block&() { return box_->value; }
    template <class Index> auto& operator[](Index i) { return box_->value[i]; }
    Block& get() { return box_->value; }

  private:
    blocks_detail::Channel<Block>& channel_;
    std::shared_ptr<blocks_detail::Boxed<Block>> box_;
};

}  // namespace hls
