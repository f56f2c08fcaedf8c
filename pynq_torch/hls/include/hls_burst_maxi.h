// hls::burst_maxi<T>: bursts on an m_axi port, asked for by hand (UG1399, "Using Manual Burst").
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <stdexcept>
#include <string>
#include <type_traits>

namespace hls {

template <typename Type> class burst_maxi {
  public:
    burst_maxi(Type* base) : base_(base), state_(std::make_shared<State>()) {}
    // The engine gives an address in bytes.
    template <class Byte, class = std::enable_if_t<std::is_same<Byte, unsigned char>::value &&
                                                   !std::is_same<Type, unsigned char>::value>>
    explicit burst_maxi(Byte* base) : burst_maxi(reinterpret_cast<Type*>(base)) {}

    void read_request(std::size_t offset, std::size_t length) { state_->reads.add(offset, length); }
    Type read() {
        return base_[state_->reads.next("read() without read_request(), or beyond its length")];
    }
    void write_request(std::size_t offset, std::size_t length) {
        state_->writes.add(offset, length);
        ++state_->responses;
    }
    void write(const Type& value) { base_[next_write()] = value; }
    // Byte enables: bytes whose bit is 0 keep what memory holds.
    template <class Mask> void write(const Type& value, const Mask& enable) {
        Type& target = base_[next_write()];
        auto* to = reinterpret_cast<unsigned char*>(&target);
        const auto* from = reinterpret_cast<const unsigned char*>(&value);
        for (std::size_t i = 0; i < sizeof(Type); ++i)
            if (bool(enable[int(i)])) to[i] = from[i];
    }
    void write_response() {
        if (state_->responses == 0)
            throw std::runtime_error("hls::burst_maxi: write_response() without write_request()");
        --state_->responses;
    }

  private:
    // Bursts asked for, in order; the current one is apart, since an element of it is a step.
    class Bursts {
      public:
        void add(std::size_t offset, std::size_t length) {
            if (length == 0)  // AXI counts from one beat on
                throw std::runtime_error("hls::burst_maxi: a request of no elements");
            waiting_.push_back({offset, length});
        }
        std::size_t next(const char* fault) {
            while (at_ == end_) {
                if (waiting_.empty())
                    throw std::runtime_error(std::string("hls::burst_maxi: ") + fault);
                at_ = waiting_.front().offset;
                end_ = at_ + waiting_.front().length;
                waiting_.pop_front();
            }
            return at_++;
        }

      private:
        struct Burst {
            std::size_t offset, length;
        };
        std::deque<Burst> waiting_;
        std::size_t at_ = 0, end_ = 0;
    };
    struct State {
        Bursts reads, writes;
        std::size_t responses = 0;
    };

    std::size_t next_write() {
        return state_->writes.next("write() without write_request(), or beyond its length");
    }

    Type* base_;
    // Shared by copies: functions of a dataflow region take the port by value.
    std::shared_ptr<State> state_;
};

}  // namespace hls
