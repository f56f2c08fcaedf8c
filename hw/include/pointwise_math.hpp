// What the expressions of pointwise kernels use, and the loop around them.
//
// UNARY(ABS, 1, std::fabs(x)) is the case of a switch: for every element of the tile, one in as many
// cycles as the number says, y = the expression over x, p and q. BINARY and TERNARY have a, b and c.
// BINARY_LOOP(REMAINDER, modulo(a, b)) holds a loop whose length depends on the operands, fmod's: such a
// loop cannot be unrolled, so the one around it is no pipeline (UG1399, "pragma HLS pipeline").
#pragma once
#include <cmath>

#define POINTWISE_PRAGMA(text) _Pragma(#text)
#define POINTWISE_CASE(opcode, schedule, operands, expression)            \
    case opcode:                                                          \
        for (int i = 0; i < count; ++i) {                                 \
            POINTWISE_PRAGMA(HLS PIPELINE schedule)                       \
            POINTWISE_PRAGMA(HLS LOOP_TRIPCOUNT min=1 max=TILE) operands  \
            y_tile[i] = static_cast<Type>(expression);                    \
        }                                                                 \
        break;
#define POINTWISE_READ(name) const Type name = name##_tile[i];
#define UNARY(opcode, interval, expression) \
    POINTWISE_CASE(opcode, II=interval, POINTWISE_READ(x), expression)
#define BINARY(opcode, interval, expression) \
    POINTWISE_CASE(opcode, II=interval, POINTWISE_READ(a) POINTWISE_READ(b), expression)
#define BINARY_LOOP(opcode, expression) \
    POINTWISE_CASE(opcode, off, POINTWISE_READ(a) POINTWISE_READ(b), expression)
#define TERNARY(opcode, interval, expression) \
    POINTWISE_CASE(opcode, II=interval, POINTWISE_READ(a) POINTWISE_READ(b) POINTWISE_READ(c), expression)

namespace pointwise {
// NaN stays NaN; where the limits cross, the upper one wins. All as in torch.
template <class Type, class Limit> Type between(Type x, Limit low, Limit high) {
    const Type above = x < low ? static_cast<Type>(low) : x;
    return above > high ? static_cast<Type>(high) : above;
}
template <class Type> Type larger(Type a, Type b) { return a != a || a > b ? a : b; }
template <class Type> Type smaller(Type a, Type b) { return a != a || a < b ? a : b; }

// ---- integers; what does not fit wraps around, and nothing is divided by 0 (the driver sees to it)
inline int quotient(int a, int b) { return b == -1 ? static_cast<int>(0u - static_cast<unsigned>(a)) : a / b; }
inline int modulo(int a, int b) {
    const int rest = b == -1 ? 0 : a % b;
    return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}
inline int floor_divide(int a, int b) {
    const int towards_zero = quotient(a, b);
    return b != -1 && a % b != 0 && (a < 0) != (b < 0) ? towards_zero - 1 : towards_zero;
}
// Up to 62 products: in 32 cycles two multipliers do them.
inline int power(int base, int exponent) {
    if (exponent < 0) return base == 1 ? 1 : base == -1 ? (exponent % 2 ? -1 : 1) : 0;
    unsigned result = 1, square = static_cast<unsigned>(base);
power_loop:
    for (int bit = 0; bit < 31; ++bit) {
#pragma HLS UNROLL
        if (exponent >> bit & 1) result *= square;
        square *= square;
    }
    return static_cast<int>(result);
}

// ---- float32
inline float modulo(float a, float b) {
    const float rest = std::fmod(a, b);
    return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}
// a // b of Python: the remainder is taken off first, so that the quotient is whole but for rounding.
inline float floor_divide(float a, float b) {
    if (b == 0) return a / b;
    const float rest = std::fmod(a, b);
    float quotient = (a - rest) / b;
    if (rest != 0 && (b < 0) != (rest < 0)) quotient -= 1;
    if (quotient == 0) return std::copysign(0.0f, a / b);
    const float whole = std::floor(quotient);
    return quotient - whole > 0.5f ? whole + 1 : whole;
}
// 1 whatever the other operand is, a signalling NaN too.
inline float power(float a, float b) { return a == 1 || b == 0 ? 1.0f : std::pow(a, b); }
// From the nearer end, so that weight 1 gives b; rounded once, as torch does.
inline float lerp(float a, float b, float weight) {
    const bool near = std::fabs(weight) < 0.5f;
    return std::fma(near ? weight : weight - 1, b - a, near ? a : b);
}

constexpr float SQRT_HALF = 0.70710678f, SQRT_2_OVER_PI = 0.79788456f, CUBIC = 0.044715f;
constexpr float DENSITY = 0.39894228f;  // 1 / sqrt(2 pi)

inline float gelu(float x) { return x * 0.5f * (1 + std::erf(x * SQRT_HALF)); }
inline float gelu_tanh(float x) {
    return 0.5f * x * (1 + std::tanh(SQRT_2_OVER_PI * (x + CUBIC * (x * x * x))));
}
inline float silu_backward(float gradient, float x) {
    const float sigmoid = 1 / (1 + std::exp(-x));
    return gradient * sigmoid * (1 + x * (1 - sigmoid));
}
inline float gelu_backward(float gradient, float x) {
    const float cdf = 0.5f * (1 + std::erf(x * SQRT_HALF));
    return gradient * (cdf + x * (DENSITY * std::exp(-0.5f * x * x)));
}
inline float gelu_tanh_backward(float gradient, float x) {
    const float t = std::tanh(SQRT_2_OVER_PI * (x + CUBIC * (x * x * x)));
    const float slope = (1 - t * t) * SQRT_2_OVER_PI * (1 + 3 * CUBIC * (x * x));
    return gradient * (0.5f * (1 + t) + 0.5f * x * slope);
}
}  // namespace pointwise
