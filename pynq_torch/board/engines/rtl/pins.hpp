// A model's signals by name, and what every port on them has in common.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <string>
#include <string_view>

#include "model.hpp"

namespace pynq_torch {
namespace rtl {

// One signal of a model. Verilator keeps it in the smallest of four integer types, or in words.
class Pin {
  public:
    uint32_t width = 0;

    Pin() = default;
    Pin(void* data, uint32_t bits) : width(bits), data_(data) {
        shift_ = bits <= 8 ? 0 : bits <= 16 ? 1 : bits <= 32 ? 2 : 3;
    }
    bool exists() const { return data_ != nullptr; }

    // The lowest 64 bits; 0 of a signal that is not there.
    uint64_t get() const {
        if (!data_) return 0;
        switch (shift_) {
        case 0: return *static_cast<const uint8_t*>(data_);
        case 1: return *static_cast<const uint16_t*>(data_);
        case 2: return *static_cast<const uint32_t*>(data_);
        default: break;
        }
        uint64_t value;
        std::memcpy(&value, data_, 8);  // of a wide signal: its two least significant words
        return value;
    }
    // A control signal of one bit: the commonest of all, without the switch.
    bool high() const { return data_ && (*static_cast<const uint8_t*>(data_) & 1); }
    void set_bit(bool value) const {
        if (data_) *static_cast<uint8_t*>(data_) = value;
    }
    // Sets the signal, up to 64 bits of it; bits above its width may not be set in a model.
    void set(uint64_t value) const {
        if (!data_) return;
        if (width < 64) value &= (uint64_t(1) << width) - 1;
        switch (shift_) {
        case 0: *static_cast<uint8_t*>(data_) = uint8_t(value); break;
        case 1: *static_cast<uint16_t*>(data_) = uint16_t(value); break;
        case 2: *static_cast<uint32_t*>(data_) = uint32_t(value); break;
        default: std::memcpy(data_, &value, 8);
        }
    }
    // Verilator's storage: the bytes of the signal, least significant first.
    uint8_t* bytes() const { return static_cast<uint8_t*>(data_); }
    size_t nbytes() const { return (width + 7) / 8; }
    // Bytes of the storage itself.
    size_t stored() const { return width > 64 ? (width + 31) / 32 * 4 : size_t(1) << shift_; }
    void clear() const {
        if (data_) std::memset(data_, 0, stored());
    }

  private:
    void* data_ = nullptr;
    uint32_t shift_ = 0;
};

// The signals of one model.
class Pins {
  public:
    Pins(const Signal* list, size_t count) : list_(list), count_(count) {}

    // The signal, or a Pin that does not exist.
    Pin find(std::string_view name) const {
        for (size_t i = 0; i < count_; ++i)
            if (name == list_[i].name) return Pin(list_[i].data, list_[i].width);
        return {};
    }
    Pin need(std::string_view name) const {
        const Pin pin = find(name);
        if (!pin.exists())
            throw std::runtime_error("the model has no signal " + std::string(name) +
                                     ": its top's ports differ from what the board expects");
        return pin;
    }

  private:
    const Signal* list_;
    size_t count_;
};

// What serves some of a model's signals, in the model's clock. `drive` writes inputs of the model
// from what was registered, `sample` reads the settled outputs and moves on.
struct Port {
    uint64_t last_handshake = 0;  // cycle

    virtual ~Port() = default;
    virtual void drive(uint64_t cycle) = 0;
    virtual void sample(uint64_t cycle) = 0;
    virtual bool pending() const = 0;  // something is under way that a clock would bring forward
    virtual void reset() = 0;          // drops all that is under way
    virtual void begin_run(uint64_t number) { (void)number; }  // the unit starts
    // Instead of `sample` while the reset is active, `n` cycles since it became so.
    virtual void sample_reset(uint64_t cycle, uint64_t n) = 0;
};

// The design broke a rule of its bus.
struct ProtocolError : std::runtime_error {
    uint64_t cycle;
    std::string port;
    std::string text;

    ProtocolError(uint64_t at, std::string where, std::string what)
        : std::runtime_error("cycle " + std::to_string(at) + ", " + where + ": " + what), cycle(at),
          port(std::move(where)), text(std::move(what)) {}
};

}  // namespace rtl
}  // namespace pynq_torch
