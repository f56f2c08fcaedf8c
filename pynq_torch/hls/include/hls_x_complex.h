// hls::x_complex (UG902, "HLS Linear Algebra Library"): a complex number whose parts are
// references, which begins with any value, and functions on it.
#pragma once

#include <complex>

#include <hls_math.h>

namespace hls {
template <class Type> class x_complex {
    Type re, im;

  public:
    typedef Type value_type;
    x_complex() = default;
    x_complex(const Type& real, const Type& imag = Type(0)) : re(real), im(imag) {}
    template <class Other>
    x_complex(const x_complex<Other>& o) : re(Type(o.real())), im(Type(o.imag())) {}
    template <class Other>
    x_complex(const std::complex<Other>& o) : re(Type(o.real())), im(Type(o.imag())) {}
    operator std::complex<Type>() const { return std::complex<Type>(re, im); }
    Type& real() { return re; }
    Type& imag() { return im; }
    const Type& real() const { return re; }
    const Type& imag() const { return im; }
    void real(const Type& value) { re = value; }
    void imag(const Type& value) { im = value; }

    friend x_complex operator+(const x_complex& a, const x_complex& b) {
        return x_complex(Type(a.re + b.re), Type(a.im + b.im));
    }
    friend x_complex operator-(const x_complex& a, const x_complex& b) {
        return x_complex(Type(a.re - b.re), Type(a.im - b.im));
    }
    friend x_complex operator*(const x_complex& a, const x_complex& b) {
        return x_complex(Type(a.re * b.re - a.im * b.im), Type(a.re * b.im + a.im * b.re));
    }
    friend x_complex operator/(const x_complex& a, const x_complex& b) {
        const Type size = b.re * b.re + b.im * b.im;
        return x_complex(Type((a.re * b.re + a.im * b.im) / size),
                         Type((a.im * b.re - a.re * b.im) / size));
    }
    friend x_complex operator+(const x_complex& a, const Type& b) {
        return x_complex(Type(a.re + b), a.im);
    }
    friend x_complex operator-(const x_complex& a, const Type& b) {
        return x_complex(Type(a.re - b), a.im);
    }
    friend x_complex operator*(const x_complex& a, const Type& b) {
        return x_complex(Type(a.re * b), Type(a.im * b));
    }
    friend x_complex operator/(const x_complex& a, const Type& b) {
        return x_complex(Type(a.re / b), Type(a.im / b));
    }
    friend x_complex operator*(const Type& a, const x_complex& b) { return b * a; }
    friend x_complex operator+(const Type& a, const x_complex& b) { return b + a; }
    x_complex operator-() const { return x_complex(Type(-re), Type(-im)); }
    template <class Other> x_complex& operator+=(const Other& o) { return *this = *this + o; }
    template <class Other> x_complex& operator-=(const Other& o) { return *this = *this - o; }
    template <class Other> x_complex& operator*=(const Other& o) { return *this = *this * o; }
    template <class Other> x_complex& operator/=(const Other& o) { return *this = *this / o; }
    friend bool operator==(const x_complex& a, const x_complex& b) {
        return a.re == b.re && a.im == b.im;
    }
    friend bool operator!=(const x_complex& a, const x_complex& b) { return !(a == b); }
};

// Of x_complex, and of std::complex.
template <template <class> class Number, class Type> Type x_real(const Number<Type>& z) {
    return z.real();
}
template <template <class> class Number, class Type> Type x_imag(const Number<Type>& z) {
    return z.imag();
}
template <template <class> class Number, class Type> Number<Type> x_conj(const Number<Type>& z) {
    return Number<Type>(z.real(), Type(-z.imag()));
}
template <template <class> class Number, class Type> Type x_norm(const Number<Type>& z) {
    return z.real() * z.real() + z.imag() * z.imag();
}
template <template <class> class Number, class Type> Type x_abs(const Number<Type>& z) {
    return hls::sqrt(x_norm(z));
}
}  // namespace hls
