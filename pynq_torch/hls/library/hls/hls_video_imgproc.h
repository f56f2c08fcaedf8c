// Functions on pictures of the video library of Vivado HLS. UG902, "HLS Video Library". Each passes
// its pictures once, a pixel a cycle; what is not here does not compile (hls::Resize, hls::Remap and
// other functions that keep more than a few rows, drawing, most statistics).
#pragma once
#include "hls_video_core.h"
#include <cmath>

#define HLS_RGB2GRAY 0
#define HLS_BGR2GRAY 1
#define HLS_GRAY2RGB 2
#define HLS_GRAY2BGR 2
#define HLS_RGB2BGR 3
#define HLS_BGR2RGB 3
#define HLS_RGB2YCrCb 4
#define HLS_BGR2YCrCb 5
#define HLS_YCrCb2RGB 6
#define HLS_CMP_EQ 0
#define HLS_CMP_GT 1
#define HLS_CMP_GE 2
#define HLS_CMP_LT 3
#define HLS_CMP_LE 4
#define HLS_CMP_NE 5
#define HLS_THRESH_BINARY 0
#define HLS_THRESH_BINARY_INV 1
#define HLS_THRESH_TRUNC 2
#define HLS_THRESH_TOZERO 3
#define HLS_THRESH_TOZERO_INV 4

namespace hls {
// ---- Pixel by pixel -------------------------------------------------------------------------------

// From one picture to another: `act` makes a pixel from a pixel.
template <int AP_ROWS, int AP_COLS, int AP_S, int AP_D, class AP_F>
void EachPixelTo(Mat<AP_ROWS, AP_COLS, AP_S>& source, Mat<AP_ROWS, AP_COLS, AP_D>& target, const AP_F& act) {
#pragma HLS INLINE
  EachPixel(source, [&](int, int) {
    typename Mat<AP_ROWS, AP_COLS, AP_S>::Value from;
    typename Mat<AP_ROWS, AP_COLS, AP_D>::Value to;
    source >> from;
    act(from, to);
    target << to;
  });
}
// The same channel by channel: `value` is the sum, product or whatever of the channel's values.
template <int AP_ROWS, int AP_COLS, int AP_S, int AP_D, class AP_F>
void EachChannelTo(Mat<AP_ROWS, AP_COLS, AP_S>& source, Mat<AP_ROWS, AP_COLS, AP_D>& target, const AP_F& value) {
#pragma HLS INLINE
  typedef Mat<AP_ROWS, AP_COLS, AP_D> To;
  EachPixelTo(source, target, [&](const typename Mat<AP_ROWS, AP_COLS, AP_S>::Value& from, typename To::Value& to) {
    for (int k = 0; k < To::channels; ++k) {
#pragma HLS UNROLL
      to.val[k] = saturate_cast<typename To::pixel>(value(from.val[k], k));
    }
  });
}
// Of two pictures.
template <int AP_ROWS, int AP_COLS, int AP_S, int AP_D, class AP_F>
void EachPairTo(Mat<AP_ROWS, AP_COLS, AP_S>& left, Mat<AP_ROWS, AP_COLS, AP_S>& right, Mat<AP_ROWS, AP_COLS, AP_D>& target, const AP_F& value) {
#pragma HLS INLINE
  typedef Mat<AP_ROWS, AP_COLS, AP_D> To;
  EachPixel(left, [&](int, int) {
    typename Mat<AP_ROWS, AP_COLS, AP_S>::Value a, b;
    typename To::Value to;
    left >> a;
    right >> b;
    for (int k = 0; k < To::channels; ++k) {
#pragma HLS UNROLL
      to.val[k] = saturate_cast<typename To::pixel>(value(a.val[k], b.val[k]));
    }
    target << to;
  });
}

#define PYNQ_TORCH_PICTURES template <int AP_ROWS, int AP_COLS, int AP_S, int AP_D>

// A picture may have more channels than a conversion takes or makes: gray may be the first of three,
// as where one type serves all pictures of a program. What the others hold is not defined.
template <int AP_CODE> struct Conversion;
template <> struct Conversion<HLS_RGB2GRAY> {
  template <int AP_N, int AP_M, class AP_S, class AP_D> static void of(const Scalar<AP_N, AP_S>& from, Scalar<AP_M, AP_D>& to) {
    static_assert(AP_N >= 3 && AP_M >= 1, "three channels to one");
    to.val[0] = gray<AP_D>(from.val[0], from.val[1], from.val[2]);
  }
  // Of ITU-R BT.601, as in OpenCV.
  template <class AP_D> static AP_D gray(ap_ufixed<16, 16> r, ap_ufixed<16, 16> g, ap_ufixed<16, 16> b) {
    const ap_ufixed<16, 0> of_r = 0.299, of_g = 0.587, of_b = 0.114;
    const ap_ufixed<33, 17> sum = r * of_r + g * of_g + b * of_b + ap_ufixed<1, 0>(0.5);
    return saturate_cast<AP_D>(int(sum.to_int()));
  }
};
template <> struct Conversion<HLS_BGR2GRAY> {
  template <int AP_N, int AP_M, class AP_S, class AP_D> static void of(const Scalar<AP_N, AP_S>& from, Scalar<AP_M, AP_D>& to) {
    static_assert(AP_N >= 3 && AP_M >= 1, "three channels to one");
    to.val[0] = Conversion<HLS_RGB2GRAY>::gray<AP_D>(from.val[2], from.val[1], from.val[0]);
  }
};
template <> struct Conversion<HLS_GRAY2RGB> {
  template <int AP_N, int AP_M, class AP_S, class AP_D> static void of(const Scalar<AP_N, AP_S>& from, Scalar<AP_M, AP_D>& to) {
    static_assert(AP_N >= 1 && AP_M >= 3, "one channel to three");
    for (int k = 0; k < 3; ++k) {
#pragma HLS UNROLL
      to.val[k] = from.val[0];
    }
  }
};
template <> struct Conversion<HLS_RGB2BGR> {
  template <int AP_N, int AP_M, class AP_S, class AP_D> static void of(const Scalar<AP_N, AP_S>& from, Scalar<AP_M, AP_D>& to) {
    static_assert(AP_N >= 3 && AP_M >= 3, "three channels to three");
    for (int k = 0; k < 3; ++k) {
#pragma HLS UNROLL
      to.val[k] = from.val[2 - k];
    }
  }
};
// Brightness and two differences of colour, likewise.
template <> struct Conversion<HLS_RGB2YCrCb> {
  template <int AP_N, int AP_M, class AP_S, class AP_D> static void of(const Scalar<AP_N, AP_S>& from, Scalar<AP_M, AP_D>& to) {
    static_assert(AP_N >= 3 && AP_M >= 3, "three channels to three");
    parted(from.val[0], from.val[1], from.val[2], to);
  }
  template <int AP_M, class AP_D> static void parted(int r, int g, int b, Scalar<AP_M, AP_D>& to) {
    const int y = Conversion<HLS_RGB2GRAY>::gray<AP_D>(r, g, b);
    to.val[0] = y;
    to.val[1] = saturate_cast<AP_D>(apart(r - y, 0.713));
    to.val[2] = saturate_cast<AP_D>(apart(b - y, 0.564));
  }
  static int apart(ap_int<18> difference, ap_ufixed<16, 0> factor) {
    const ap_fixed<35, 19> shifted = difference * factor + ap_ufixed<9, 8>(128.5);
    return shifted.to_int();
  }
};
template <> struct Conversion<HLS_BGR2YCrCb> {
  template <int AP_N, int AP_M, class AP_S, class AP_D> static void of(const Scalar<AP_N, AP_S>& from, Scalar<AP_M, AP_D>& to) {
    static_assert(AP_N >= 3 && AP_M >= 3, "three channels to three");
    Conversion<HLS_RGB2YCrCb>::parted(from.val[2], from.val[1], from.val[0], to);
  }
};
template <> struct Conversion<HLS_YCrCb2RGB> {
  template <int AP_N, int AP_M, class AP_S, class AP_D> static void of(const Scalar<AP_N, AP_S>& from, Scalar<AP_M, AP_D>& to) {
    static_assert(AP_N >= 3 && AP_M >= 3, "three channels to three");
    const ap_fixed<20, 18> y = int(from.val[0]) + ap_ufixed<1, 0>(0.5);
    const ap_int<18> cr = int(from.val[1]) - 128, cb = int(from.val[2]) - 128;
    const ap_fixed<17, 2> to_r = 1.403, to_g = -0.714, and_g = -0.344, to_b = 1.773;
    to.val[0] = saturate_cast<AP_D>(ap_fixed<38, 22>(y + cr * to_r).to_int());
    to.val[1] = saturate_cast<AP_D>(ap_fixed<38, 22>(y + cr * to_g + cb * and_g).to_int());
    to.val[2] = saturate_cast<AP_D>(ap_fixed<38, 22>(y + cb * to_b).to_int());
  }
};
template <int AP_CODE, int AP_S, int AP_D, int AP_ROWS, int AP_COLS>
void CvtColor(Mat<AP_ROWS, AP_COLS, AP_S>& source, Mat<AP_ROWS, AP_COLS, AP_D>& target) {
  EachPixelTo(source, target, [](const typename Mat<AP_ROWS, AP_COLS, AP_S>::Value& from, typename Mat<AP_ROWS, AP_COLS, AP_D>::Value& to) {
    Conversion<AP_CODE>::of(from, to);
  });
}

PYNQ_TORCH_PICTURES void ConvertScaleAbs(Mat<AP_ROWS, AP_COLS, AP_S>& source, Mat<AP_ROWS, AP_COLS, AP_D>& target, double scale = 1.0, double shift = 0.0) {
  const ap_fixed<25, 9> factor = scale;
  const ap_fixed<33, 17> offset = shift;
  EachChannelTo(source, target, [&](int value, int) {
    const ap_fixed<58, 42> scaled = factor * ap_fixed<32, 32>(value) + offset;
    const ap_fixed<58, 42> size = scaled < 0 ? ap_fixed<58, 42>(-scaled) : scaled;
    return int(ap_fixed<58, 42>(size + ap_fixed<3, 1>(0.5)).to_int());
  });
}
PYNQ_TORCH_PICTURES void Scale(Mat<AP_ROWS, AP_COLS, AP_S>& source, Mat<AP_ROWS, AP_COLS, AP_D>& target, double scale = 1.0, double shift = 0.0) {
  EachChannelTo(source, target, [&](double value, int) { return value * scale + shift; });
}
PYNQ_TORCH_PICTURES void Threshold(Mat<AP_ROWS, AP_COLS, AP_S>& source, Mat<AP_ROWS, AP_COLS, AP_D>& target, int limit, int most, int kind) {
  EachChannelTo(source, target, [&](int value, int) {
    const bool above = value > limit;
    if (kind == HLS_THRESH_BINARY) return above ? most : 0;
    if (kind == HLS_THRESH_BINARY_INV) return above ? 0 : most;
    if (kind == HLS_THRESH_TRUNC) return above ? limit : value;
    return above == (kind == HLS_THRESH_TOZERO) ? value : 0;
  });
}
PYNQ_TORCH_PICTURES void Not(Mat<AP_ROWS, AP_COLS, AP_S>& source, Mat<AP_ROWS, AP_COLS, AP_D>& target) {
  typedef typename Mat<AP_ROWS, AP_COLS, AP_D>::pixel Pixel;
  EachChannelTo(source, target, [](int value, int) { return int(Pixel(~value)); });
}

PYNQ_TORCH_PICTURES void Duplicate(Mat<AP_ROWS, AP_COLS, AP_S>& source, Mat<AP_ROWS, AP_COLS, AP_D>& first, Mat<AP_ROWS, AP_COLS, AP_D>& second) {
  EachPixel(source, [&](int, int) {
    typename Mat<AP_ROWS, AP_COLS, AP_S>::Value from;
    typename Mat<AP_ROWS, AP_COLS, AP_D>::Value to;
    source >> from;
    for (int k = 0; k < HLS_MAT_CN(AP_D); ++k) {
#pragma HLS UNROLL
      to.val[k] = from.val[k];
    }
    first << to;
    second << to;
  });
}
PYNQ_TORCH_PICTURES void Split(Mat<AP_ROWS, AP_COLS, AP_S>& source, Mat<AP_ROWS, AP_COLS, AP_D>& first, Mat<AP_ROWS, AP_COLS, AP_D>& second, Mat<AP_ROWS, AP_COLS, AP_D>& third) {
  EachPixel(source, [&](int, int) {
    typename Mat<AP_ROWS, AP_COLS, AP_S>::Value from;
    source >> from;
    first.data_stream[0].write(from.val[0]);
    second.data_stream[0].write(from.val[1]);
    third.data_stream[0].write(from.val[2]);
  });
}
PYNQ_TORCH_PICTURES void Merge(Mat<AP_ROWS, AP_COLS, AP_S>& first, Mat<AP_ROWS, AP_COLS, AP_S>& second, Mat<AP_ROWS, AP_COLS, AP_S>& third, Mat<AP_ROWS, AP_COLS, AP_D>& target) {
  EachPixel(first, [&](int, int) {
    typename Mat<AP_ROWS, AP_COLS, AP_D>::Value to;
    to.val[0] = first.data_stream[0].read();
    to.val[1] = second.data_stream[0].read();
    to.val[2] = third.data_stream[0].read();
    target << to;
  });
}

// Two pictures to a third.
#define PYNQ_TORCH_TWO_PICTURES(name, ...)                                                       \
  PYNQ_TORCH_PICTURES void name(Mat<AP_ROWS, AP_COLS, AP_S>& left,                               \
                                Mat<AP_ROWS, AP_COLS, AP_S>& right,                              \
                                Mat<AP_ROWS, AP_COLS, AP_D>& target) {                           \
    EachPairTo(left, right, target, [](int a, int b) { return int(__VA_ARGS__); });              \
  }
PYNQ_TORCH_TWO_PICTURES(AbsDiff, a < b ? b - a : a - b)
PYNQ_TORCH_TWO_PICTURES(And, a & b)
PYNQ_TORCH_TWO_PICTURES(Or, a | b)
PYNQ_TORCH_TWO_PICTURES(Xor, a ^ b)
PYNQ_TORCH_TWO_PICTURES(Min, a < b ? a : b)
PYNQ_TORCH_TWO_PICTURES(Max, a < b ? b : a)
// 255 where two pictures, or one and a number, compare so; 0 elsewhere.
inline int compared(double a, double b, int how) {
  const bool equal = a == b, above = a > b;
  const bool which[] = {equal, above, above || equal, !above && !equal, !above, !equal};
  return which[how] ? 255 : 0;
}
PYNQ_TORCH_PICTURES void Cmp(Mat<AP_ROWS, AP_COLS, AP_S>& left, Mat<AP_ROWS, AP_COLS, AP_S>& right, Mat<AP_ROWS, AP_COLS, AP_D>& target, int how) {
  EachPairTo(left, right, target, [&](double a, double b) { return compared(a, b, how); });
}
PYNQ_TORCH_PICTURES void CmpS(Mat<AP_ROWS, AP_COLS, AP_S>& source, double limit, Mat<AP_ROWS, AP_COLS, AP_D>& target, int how) {
  EachChannelTo(source, target, [&](double value, int) { return compared(value, limit, how); });
}
PYNQ_TORCH_PICTURES void AddWeighted(Mat<AP_ROWS, AP_COLS, AP_S>& left, double alpha, Mat<AP_ROWS, AP_COLS, AP_S>& right, double beta, double gamma, Mat<AP_ROWS, AP_COLS, AP_D>& target) {
  EachPairTo(left, right, target, [&](double a, double b) { return a * alpha + b * beta + gamma; });
}

// A picture and a constant for each channel.
#define PYNQ_TORCH_WITH_CONSTANT(name, ...)                                                      \
  template <int AP_ROWS, int AP_COLS, int AP_S, int AP_D, class AP_T>                            \
  void name(Mat<AP_ROWS, AP_COLS, AP_S>& source, Scalar<HLS_MAT_CN(AP_S), AP_T> constant,        \
            Mat<AP_ROWS, AP_COLS, AP_D>& target) {                                               \
    EachChannelTo(source, target, [&](int a, int k) {                                            \
      const int b = constant.val[k];                                                             \
      return int(__VA_ARGS__);                                                                   \
    });                                                                                          \
  }
PYNQ_TORCH_WITH_CONSTANT(AddS, a + b)
PYNQ_TORCH_WITH_CONSTANT(SubS, a - b)
PYNQ_TORCH_WITH_CONSTANT(SubRS, b - a)
template <int AP_ROWS, int AP_COLS, int AP_D, class AP_T> void Set(Scalar<HLS_MAT_CN(AP_D), AP_T> value, Mat<AP_ROWS, AP_COLS, AP_D>& target) {
  EachPixel(target, [&](int, int) {
    typename Mat<AP_ROWS, AP_COLS, AP_D>::Value to;
    for (int k = 0; k < HLS_MAT_CN(AP_D); ++k) {
#pragma HLS UNROLL
      to.val[k] = value.val[k];
    }
    target << to;
  });
}
template <int AP_ROWS, int AP_COLS, int AP_D> void Zero(Mat<AP_ROWS, AP_COLS, AP_D>& target) {
  EachPixel(target, [&](int, int) {
    typename Mat<AP_ROWS, AP_COLS, AP_D>::Value to;
    for (int k = 0; k < HLS_MAT_CN(AP_D); ++k) {
#pragma HLS UNROLL
      to.val[k] = 0;
    }
    target << to;
  });
}

// ---- Neighbourhoods -------------------------------------------------------------------------------

// What stands for pixel `at` of `count` where the neighbourhood leaves the picture.
struct BORDER_REFLECT_101 {
  static int of(int at, int count) { return at < 0 ? -at : at >= count ? 2 * count - 2 - at : at; }
};
struct BORDER_REFLECT {
  static int of(int at, int count) { return at < 0 ? -at - 1 : at >= count ? 2 * count - 1 - at : at; }
};
struct BORDER_REPLICATE {
  static int of(int at, int count) { return at < 0 ? 0 : at >= count ? count - 1 : at; }
};
// 0 is out there: no pixel of the picture stands for it.
struct BORDER_CONSTANT {
  static int of(int at, int count) { return at < 0 || at >= count ? 2 * (count + 4096) : at; }
};
typedef BORDER_REFLECT_101 BORDER_DEFAULT;

// `operation.of(window)` makes a pixel from the AP_H x AP_W pixels around each. The rows before are
// kept in line buffers; rows and columns behind the picture's see to its edges: as many columns as a
// window has beside one, but only the rows below its middle and one more (reports of 2018 and 2019).
template <class AP_BORDER, int AP_H, int AP_W, class AP_F, int AP_S, int AP_D, int AP_ROWS, int AP_COLS>
void Neighbourhood(Mat<AP_ROWS, AP_COLS, AP_S>& source, Mat<AP_ROWS, AP_COLS, AP_D>& target, const AP_F& operation) {
#pragma HLS INLINE
  typedef Mat<AP_ROWS, AP_COLS, AP_S> From;
  typedef typename From::pixel Pixel;
  Pixel lines[From::channels][AP_H][AP_COLS];
#pragma HLS ARRAY_PARTITION variable=lines complete dim=1
#pragma HLS ARRAY_PARTITION variable=lines complete dim=2
  Pixel seen[From::channels][AP_H][AP_W];
#pragma HLS ARRAY_PARTITION variable=seen complete dim=0
  const int rows = source.rows, cols = source.cols;
  assert(rows <= AP_ROWS && cols <= AP_COLS);
loop_height:
  for (int i = 0; i < rows + AP_H / 2 + 1; ++i) {
  loop_width:
    for (int j = 0; j < cols + AP_W - 1; ++j) {
#pragma HLS LOOP_FLATTEN off
#pragma HLS DEPENDENCE variable=lines inter false
#pragma HLS PIPELINE II=1
      typename From::Value from = typename From::Value();
      typename Mat<AP_ROWS, AP_COLS, AP_D>::Value to;
      if (i < rows && j < cols) source >> from;
      const int y = i - AP_H / 2, x = j - AP_W / 2;
      const bool inside = y >= 0 && y < rows && x >= 0 && x < cols;
      for (int k = 0; k < From::channels; ++k) {
        for (int r = 0; r < AP_H; ++r)
          for (int c = 0; c < AP_W - 1; ++c) seen[k][r][c] = seen[k][r][c + 1];
        if (j < cols) {
          // Which rows of the picture are seen is the same for all of a row: it is chosen here.
          Pixel next[AP_H];
          for (int r = 0; r < AP_H - 1; ++r) {
            next[r] = lines[k][r + 1][j];
            lines[k][r][j] = next[r];
          }
          next[AP_H - 1] = from.val[k];
          lines[k][AP_H - 1][j] = from.val[k];
          for (int r = 0; r < AP_H; ++r) {
            const int row = AP_BORDER::of(y + r - AP_H / 2, rows) - y + AP_H / 2;
            seen[k][r][AP_W - 1] = 0;
            for (int other = 0; other < AP_H; ++other)
              if (row == other) seen[k][r][AP_W - 1] = next[other];
          }
        }
        Window<AP_H, AP_W, Pixel> window;
        for (int c = 0; c < AP_W; ++c) {
          const int column = AP_BORDER::of(x + c - AP_W / 2, cols) - x + AP_W / 2;
          for (int r = 0; r < AP_H; ++r) {
            window.val[r][c] = 0;
            for (int other = 0; other < AP_W; ++other)
              if (column == other) window.val[r][c] = seen[k][r][other];
          }
        }
        if (inside) to.val[k] = operation.template of<typename Mat<AP_ROWS, AP_COLS, AP_D>::pixel>(window);
      }
      if (inside) target << to;
    }
  }
}

template <int AP_H, int AP_W, class AP_K> struct Convolution {
  const Window<AP_H, AP_W, AP_K>& kernel;
  explicit Convolution(const Window<AP_H, AP_W, AP_K>& factors) : kernel(factors) {}
  template <class AP_D, class AP_S> AP_D of(const Window<AP_H, AP_W, AP_S>& window) const {
    return saturate_cast<AP_D>(sum(window, AP_K()));
  }
  template <class AP_S> int sum(const Window<AP_H, AP_W, AP_S>& window, int) const { return added<int>(window); }
  template <class AP_S> float sum(const Window<AP_H, AP_W, AP_S>& window, float) const { return added<float>(window); }
  template <class AP_S> double sum(const Window<AP_H, AP_W, AP_S>& window, double) const { return added<double>(window); }
  template <class AP_S, int AP_N, int AP_I, ap_q_mode AP_Q, ap_o_mode AP_O>
  int sum(const Window<AP_H, AP_W, AP_S>& window, ap_fixed<AP_N, AP_I, AP_Q, AP_O>) const {
    const ap_fixed<AP_I + 27, AP_I + 27> whole = added<ap_fixed<AP_N + 26, AP_I + 26> >(window) + ap_fixed<3, 1>(0.5);
    return whole.to_int();
  }
  template <class AP_V, class AP_S> AP_V added(const Window<AP_H, AP_W, AP_S>& window) const {
    AP_V total = 0;
    for (int at = 0; at < AP_H * AP_W; ++at) {
#pragma HLS UNROLL
      total += AP_V(window.val[at / AP_W][at % AP_W]) * AP_V(kernel.val[at / AP_W][at % AP_W]);
    }
    return total;
  }
};
template <class AP_BORDER, int AP_S, int AP_D, int AP_ROWS, int AP_COLS, class AP_K, int AP_H, int AP_W>
void Filter2D(Mat<AP_ROWS, AP_COLS, AP_S>& source, Mat<AP_ROWS, AP_COLS, AP_D>& target, Window<AP_H, AP_W, AP_K>& kernel, Point_<int> anchor = Point_<int>()) {
#pragma HLS ARRAY_PARTITION variable=kernel complete dim=0
  assert((anchor.x == -1 || anchor.x == AP_W / 2) && (anchor.y == -1 || anchor.y == AP_H / 2));
  Neighbourhood<AP_BORDER, AP_H, AP_W>(source, target, Convolution<AP_H, AP_W, AP_K>(kernel));
}
template <int AP_S, int AP_D, int AP_ROWS, int AP_COLS, class AP_K, int AP_H, int AP_W>
void Filter2D(Mat<AP_ROWS, AP_COLS, AP_S>& source, Mat<AP_ROWS, AP_COLS, AP_D>& target, Window<AP_H, AP_W, AP_K>& kernel, Point_<int> anchor = Point_<int>()) {
  Filter2D<BORDER_DEFAULT>(source, target, kernel, anchor);
}

template <int AP_X, int AP_Y, int AP_SIZE, int AP_S, int AP_D, int AP_ROWS, int AP_COLS>
void Sobel(Mat<AP_ROWS, AP_COLS, AP_S>& source, Mat<AP_ROWS, AP_COLS, AP_D>& target) {
  static_assert(AP_X + AP_Y == 1 && AP_X >= 0 && AP_Y >= 0, "a first derivative, along x or y");
  static_assert(AP_SIZE == 3 || AP_SIZE == 5 || AP_SIZE == 7, "a kernel of 3 x 3, 5 x 5 or 7 x 7");
  const int smooth[3][7] = {{1, 2, 1}, {1, 4, 6, 4, 1}, {1, 6, 15, 20, 15, 6, 1}};
  const int slope[3][7] = {{-1, 0, 1}, {-1, -2, 0, 2, 1}, {-1, -4, -5, 0, 5, 4, 1}};
  Window<AP_SIZE, AP_SIZE, int> kernel;
  for (int at = 0; at < AP_SIZE * AP_SIZE; ++at) {
#pragma HLS UNROLL
    const int r = at / AP_SIZE, c = at % AP_SIZE, which = AP_SIZE / 2 - 1;
    kernel.val[r][c] = (AP_Y ? slope : smooth)[which][r] * (AP_X ? slope : smooth)[which][c];
  }
  Neighbourhood<BORDER_DEFAULT, AP_SIZE, AP_SIZE>(source, target, Convolution<AP_SIZE, AP_SIZE, int>(kernel));
}

// A row of the kernel that makes a picture soft. A sigma of 0 follows from the size as in OpenCV, but
// for small sizes too, which have powers of two there; and factors have 14 bits behind the point, and
// no more: so the constants in a report of 2019 say.
template <int AP_N> struct Bell {
  double value[AP_N];
  explicit Bell(double sigma) {
#pragma HLS INLINE
    static_assert(AP_N % 2 == 1, "an odd number of pixels");
    const double width = sigma > 0 ? sigma : 0.15 * AP_N + 0.35;
    double sum = 0;
    for (int at = 0; at < AP_N; ++at) {
#pragma HLS UNROLL
      const double from = at - AP_N / 2;
      value[at] = std::exp(-0.5 * from * from / (width * width));
      sum += value[at];
    }
    for (int at = 0; at < AP_N; ++at) {
#pragma HLS UNROLL
      value[at] /= sum;
    }
  }
};
template <int AP_H, int AP_W, int AP_S, int AP_D, int AP_ROWS, int AP_COLS>
void GaussianBlur(Mat<AP_ROWS, AP_COLS, AP_S>& source, Mat<AP_ROWS, AP_COLS, AP_D>& target, double sigma_x = 0, double sigma_y = 0) {
  const Bell<AP_H> column(sigma_y > 0 ? sigma_y : sigma_x);
  const Bell<AP_W> row(sigma_x);
  Window<AP_H, AP_W, ap_fixed<16, 2> > kernel;
  for (int at = 0; at < AP_H * AP_W; ++at) {
#pragma HLS UNROLL
    kernel.val[at / AP_W][at % AP_W] = column.value[at / AP_W] * row.value[at % AP_W];
  }
  Neighbourhood<BORDER_DEFAULT, AP_H, AP_W>(source, target, Convolution<AP_H, AP_W, ap_fixed<16, 2> >(kernel));
}

template <bool AP_LARGEST> struct Extreme {
  template <class AP_D, class AP_S, int AP_H, int AP_W> AP_D of(const Window<AP_H, AP_W, AP_S>& window) const {
    AP_S found = window.val[0][0];
    for (int at = 1; at < AP_H * AP_W; ++at) {
#pragma HLS UNROLL
      const AP_S value = window.val[at / AP_W][at % AP_W];
      if (AP_LARGEST ? value > found : value < found) found = value;
    }
    return found;
  }
};
// The same of the pixels below a structuring element, a window with a number other than 0 for each
// that counts. AP_SHAPE says how it was made, and changes nothing.
template <bool AP_LARGEST, int AP_H, int AP_W, class AP_K> struct ExtremeBelow {
  const Window<AP_H, AP_W, AP_K>& element;
  explicit ExtremeBelow(const Window<AP_H, AP_W, AP_K>& chosen) : element(chosen) {}
  template <class AP_D, class AP_S> AP_D of(const Window<AP_H, AP_W, AP_S>& window) const {
    AP_S found = window.val[AP_H / 2][AP_W / 2];
    bool any = false;
    for (int at = 0; at < AP_H * AP_W; ++at) {
#pragma HLS UNROLL
      const AP_S value = window.val[at / AP_W][at % AP_W];
      if (element.val[at / AP_W][at % AP_W] != 0) {
        if (!any || (AP_LARGEST ? value > found : value < found)) found = value;
        any = true;
      }
    }
    return found;
  }
};
template <int AP_SHAPE, int AP_TIMES, int AP_S, int AP_D, int AP_ROWS, int AP_COLS, class AP_K, int AP_H, int AP_W>
void Erode(Mat<AP_ROWS, AP_COLS, AP_S>& source, Mat<AP_ROWS, AP_COLS, AP_D>& target, Window<AP_H, AP_W, AP_K>& element) {
#pragma HLS ARRAY_PARTITION variable=element complete dim=0
  static_assert(AP_TIMES == 1, "one time; call it again with a Mat between for the next");
  Neighbourhood<BORDER_REPLICATE, AP_H, AP_W>(source, target, ExtremeBelow<false, AP_H, AP_W, AP_K>(element));
}
template <int AP_SHAPE, int AP_TIMES, int AP_S, int AP_D, int AP_ROWS, int AP_COLS, class AP_K, int AP_H, int AP_W>
void Dilate(Mat<AP_ROWS, AP_COLS, AP_S>& source, Mat<AP_ROWS, AP_COLS, AP_D>& target, Window<AP_H, AP_W, AP_K>& element) {
#pragma HLS ARRAY_PARTITION variable=element complete dim=0
  static_assert(AP_TIMES == 1, "one time; call it again with a Mat between for the next");
  Neighbourhood<BORDER_REPLICATE, AP_H, AP_W>(source, target, ExtremeBelow<true, AP_H, AP_W, AP_K>(element));
}
PYNQ_TORCH_PICTURES void Erode(Mat<AP_ROWS, AP_COLS, AP_S>& source, Mat<AP_ROWS, AP_COLS, AP_D>& target) {
  Neighbourhood<BORDER_REPLICATE, 3, 3>(source, target, Extreme<false>());
}
PYNQ_TORCH_PICTURES void Dilate(Mat<AP_ROWS, AP_COLS, AP_S>& source, Mat<AP_ROWS, AP_COLS, AP_D>& target) {
  Neighbourhood<BORDER_REPLICATE, 3, 3>(source, target, Extreme<true>());
}

// ---- Corners --------------------------------------------------------------------------------------

// A pixel is a corner if nine pixels in a row of the sixteen on a circle around it are all brighter
// than it by more than a threshold, or all darker (FAST, Rosten and Drummond 2006). Its score is the
// greatest threshold for which it still is one, plus 1; 0 for none.
template <class AP_T> int FastScore(const AP_T seen[7][7], int threshold) {
#pragma HLS INLINE
  const int x[16] = {3, 4, 5, 6, 6, 6, 5, 4, 3, 2, 1, 0, 0, 0, 1, 2};
  const int y[16] = {0, 0, 1, 2, 3, 4, 5, 6, 6, 6, 5, 4, 3, 2, 1, 0};
  int most[2] = {0, 0};
  for (int sign = 0; sign < 2; ++sign) {
#pragma HLS UNROLL
    int least[16], one[16];
#pragma HLS ARRAY_PARTITION variable=least complete
#pragma HLS ARRAY_PARTITION variable=one complete
    for (int k = 0; k < 16; ++k) {
      const int difference = int(seen[y[k]][x[k]]) - int(seen[3][3]);
      one[k] = least[k] = sign ? difference : -difference;
    }
    for (int step = 1; step < 8; step *= 2) {  // the least of 2, 4 and 8 in a row
      int longer[16];
      for (int k = 0; k < 16; ++k) longer[k] = least[k] < least[(k + step) % 16] ? least[k] : least[(k + step) % 16];
      for (int k = 0; k < 16; ++k) least[k] = longer[k];
    }
    for (int k = 0; k < 16; ++k) {
      const int nine = least[k] < one[(k + 8) % 16] ? least[k] : one[(k + 8) % 16];
      if (nine > most[sign]) most[sign] = nine;
    }
  }
  const int score = most[0] > most[1] ? most[0] : most[1];
  return score > threshold ? score : 0;
}
// 255 in `mask` at each corner that is three pixels from the edges at least, else 0; with `alone`
// only where no neighbour's score is as great.
template <int AP_S, int AP_ROWS, int AP_COLS>
void FASTX(Mat<AP_ROWS, AP_COLS, AP_S>& source, Mat<AP_ROWS, AP_COLS, HLS_8UC1>& mask, int threshold, bool alone) {
  typedef typename Mat<AP_ROWS, AP_COLS, AP_S>::pixel Pixel;
  Pixel lines[6][AP_COLS], seen[7][7];
#pragma HLS ARRAY_PARTITION variable=lines complete dim=1
#pragma HLS ARRAY_PARTITION variable=seen complete dim=0
  unsigned short above[2][AP_COLS], scores[3][3];
#pragma HLS ARRAY_PARTITION variable=above complete dim=1
#pragma HLS ARRAY_PARTITION variable=scores complete dim=0
  const int rows = source.rows, cols = source.cols;
  assert(rows <= AP_ROWS && cols <= AP_COLS);
loop_height:
  for (int i = 0; i < rows + 4; ++i) {
  loop_width:
    for (int j = 0; j < cols + 4; ++j) {
#pragma HLS LOOP_FLATTEN off
#pragma HLS DEPENDENCE variable=lines inter false
#pragma HLS DEPENDENCE variable=above inter false
#pragma HLS PIPELINE II=1
      typename Mat<AP_ROWS, AP_COLS, AP_S>::Value from = typename Mat<AP_ROWS, AP_COLS, AP_S>::Value();
      if (i < rows && j < cols) source >> from;
      for (int r = 0; r < 7; ++r)
        for (int c = 0; c < 6; ++c) seen[r][c] = seen[r][c + 1];
      for (int r = 0; r < 3; ++r)
        for (int c = 0; c < 2; ++c) scores[r][c] = scores[r][c + 1];
      if (j < cols) {
        for (int r = 0; r < 6; ++r) seen[r][6] = lines[r][j];
        seen[6][6] = from.val[0];
        for (int r = 0; r < 6; ++r) lines[r][j] = seen[r + 1][6];
      }
      // What is at (i - 3, j - 3) is a corner or none; its neighbours' scores tell a step later.
      const int y = i - 3, x = j - 3;
      const bool within = y >= 3 && y < rows - 3 && x >= 3 && x < cols - 3;
      const int score = within ? FastScore(seen, threshold) : 0;
      scores[2][2] = score;
      if (x >= 0 && x < cols) {
        scores[0][2] = y > 0 ? int(above[0][x]) : 0;
        scores[1][2] = y > 0 ? int(above[1][x]) : 0;
        above[0][x] = scores[1][2];
        above[1][x] = score;
      } else {
        scores[0][2] = scores[1][2] = 0;
      }
      if (i >= 4 && j >= 4) {
        bool corner = scores[1][1] != 0;
        for (int other = 0; other < 9; ++other)
          if (alone && other != 4 && scores[other / 3][other % 3] >= scores[1][1]) corner = false;
        Scalar<1, unsigned char> to;
        to.val[0] = corner ? 255 : 0;
        mask << to;
      }
    }
  }
}
// The picture, in one colour where the mask is not 0.
template <int AP_S, int AP_M, int AP_ROWS, int AP_COLS, class AP_T, int AP_N>
void PaintMask(Mat<AP_ROWS, AP_COLS, AP_S>& source, Mat<AP_ROWS, AP_COLS, AP_M>& mask, Mat<AP_ROWS, AP_COLS, AP_S>& target, Scalar<AP_N, AP_T> colour) {
  typedef Mat<AP_ROWS, AP_COLS, AP_S> Picture;
  EachPixel(source, [&](int, int) {
    typename Picture::Value from;
    typename Mat<AP_ROWS, AP_COLS, AP_M>::Value painted;
    source >> from;
    mask >> painted;
    for (int k = 0; k < Picture::channels; ++k) {
#pragma HLS UNROLL
      if (painted.val[0] != 0) from.val[k] = saturate_cast<typename Picture::pixel>(colour.val[k]);
    }
    target << from;
  });
}

// The least and the greatest pixel of a picture, and where each is first.
template <int AP_ROWS, int AP_COLS, int AP_S, class AP_T>
void MinMaxLoc(Mat<AP_ROWS, AP_COLS, AP_S>& source, AP_T* least, AP_T* greatest, Point_<int>& least_at, Point_<int>& greatest_at) {
  typedef typename Mat<AP_ROWS, AP_COLS, AP_S>::pixel Pixel;
  Pixel low = 0, high = 0;
  Point_<int> low_at(0, 0), high_at(0, 0);
  EachPixel(source, [&](int row, int column) {
    typename Mat<AP_ROWS, AP_COLS, AP_S>::Value from;
    source >> from;
    const bool first = row == 0 && column == 0;
    if (first || from.val[0] < low) low = from.val[0], low_at = Point_<int>(column, row);
    if (first || from.val[0] > high) high = from.val[0], high_at = Point_<int>(column, row);
  });
  *least = low, *greatest = high;
  least_at = low_at, greatest_at = high_at;
}
#undef PYNQ_TORCH_PICTURES
#undef PYNQ_TORCH_TWO_PICTURES
#undef PYNQ_TORCH_WITH_CONSTANT
}  // namespace hls
