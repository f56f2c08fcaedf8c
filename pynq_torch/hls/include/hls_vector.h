// hls::vector<T, N>: N values side by side, with element-wise arithmetic (UG1399, "HLS Vector
// Library").
#pragma once

#include <hls_half.h>

#include <array>
#include <cstddef>
#include <initializer_list>
#include <type_traits>

namespace hls {

namespace vector_detail {
// Greatest power of two that divides `bytes`: vectors are aligned to it, so that one whose size is
// a power of two never straddles a bus word.
constexpr std::size_t alignment(std::size_t bytes) { return bytes & (~bytes + 1); }
}  // namespace vector_detail

template <typename Type, std::size_t Count>
class alignas(vector_detail::alignment(sizeof(Type) * Count) > alignof(Type)
                  ? vector_detail::alignment(sizeof(Type) * Count)
                  : alignof(Type)) vector {
    static_assert(Count > 0, "hls::vector needs at least one element");

  public:
    using value_type = Type;

    vector() = default;
    vector(const Type& value) {
        for (Type& one : values_) one = value;
    }
    vector(const std::array<Type, Count>& values) : values_(values) {}
    vector(std::initializer_list<Type> list) {
        std::size_t i = 0;
        for (const Type& value : list)
            if (i < Count) values_[i++] = value;
        for (; i < Count; ++i) values_[i] = Type();
    }

    Type& operator[](std::size_t i) { return values_[i]; }
    const Type& operator[](std::size_t i) const { return values_[i]; }
    static constexpr std::size_t size() { return Count; }
    auto begin() { return values_.begin(); }
    auto end() { return values_.end(); }
    auto begin() const { return values_.begin(); }
    auto end() const { return values_.end(); }

#define PYNQ_TORCH_VECTOR_BINARY(op, assign)                                           \
    vector& operator assign(const vector& other) {                                     \
        for (std::size_t i = 0; i < Count; ++i) values_[i] = Type(values_[i] op other.values_[i]); \
        return *this;                                                                  \
    }                                                                                  \
    friend vector operator op(vector left, const vector& right) { return left assign right; }
    PYNQ_TORCH_VECTOR_BINARY(+, +=)
    PYNQ_TORCH_VECTOR_BINARY(-, -=)
    PYNQ_TORCH_VECTOR_BINARY(*, *=)
    PYNQ_TORCH_VECTOR_BINARY(/, /=)
    PYNQ_TORCH_VECTOR_BINARY(%, %=)
    PYNQ_TORCH_VECTOR_BINARY(&, &=)
    PYNQ_TORCH_VECTOR_BINARY(|, |=)
    PYNQ_TORCH_VECTOR_BINARY(^, ^=)
    PYNQ_TORCH_VECTOR_BINARY(<<, <<=)
    PYNQ_TORCH_VECTOR_BINARY(>>, >>=)
#undef PYNQ_TORCH_VECTOR_BINARY

    vector operator-() const {
        vector result;
        for (std::size_t i = 0; i < Count; ++i) result.values_[i] = Type(-values_[i]);
        return result;
    }
    vector& operator++() {
        for (Type& value : values_) ++value;
        return *this;
    }
    vector& operator--() {
        for (Type& value : values_) --value;
        return *this;
    }

#define PYNQ_TORCH_VECTOR_COMPARE(op)                                                      \
    friend vector<bool, Count> operator op(const vector& left, const vector& right) {          \
        vector<bool, Count> result;                                                            \
        for (std::size_t i = 0; i < Count; ++i) result[i] = left.values_[i] op right.values_[i]; \
        return result;                                                                     \
    }
    PYNQ_TORCH_VECTOR_COMPARE(==)
    PYNQ_TORCH_VECTOR_COMPARE(!=)
    PYNQ_TORCH_VECTOR_COMPARE(<)
    PYNQ_TORCH_VECTOR_COMPARE(<=)
    PYNQ_TORCH_VECTOR_COMPARE(>)
    PYNQ_TORCH_VECTOR_COMPARE(>=)
#undef PYNQ_TORCH_VECTOR_COMPARE

    // HLS builds a balanced tree; the order is kept here, so that float sums agree with it.
    Type reduce_add() const {
        return reduce([](const Type& a, const Type& b) { return Type(a + b); });
    }
    Type reduce_mult() const {
        return reduce([](const Type& a, const Type& b) { return Type(a * b); });
    }
    Type reduce_and() const {
        return reduce([](const Type& a, const Type& b) { return Type(a & b); });
    }
    Type reduce_or() const {
        return reduce([](const Type& a, const Type& b) { return Type(a | b); });
    }
    Type reduce_xor() const {
        return reduce([](const Type& a, const Type& b) { return Type(a ^ b); });
    }

  private:
    template <class Operation> Type reduce(Operation operation) const {
        std::array<Type, Count> level = values_;
        for (std::size_t count = Count; count > 1; count = (count + 1) / 2) {
            for (std::size_t i = 0; i < count / 2; ++i)
                level[i] = operation(level[2 * i], level[2 * i + 1]);
            if (count % 2) level[count / 2] = level[count - 1];
        }
        return level[0];
    }

    std::array<Type, Count> values_;
};

}  // namespace hls
