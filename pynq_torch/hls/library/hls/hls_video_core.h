// Windows, line buffers, and pictures as streams of pixels, of the video library of Vivado HLS.
// UG902, "HLS Video Library". The codes of pixels are our own; programs use their names.
#pragma once
#include <ap_fixed.h>
#include <ap_int.h>
#include <cassert>
#include <hls_math.h>
#include <hls_stream.h>

#define HLS_8U 0
#define HLS_8S 1
#define HLS_16U 2
#define HLS_16S 3
#define HLS_32S 4
#define HLS_32F 5
#define HLS_64F 6
#define HLS_10U 7
#define HLS_12U 8
#define HLS_MAKETYPE(depth, channels) ((depth) + (((channels) - 1) << 8))
#define HLS_MAKE_TYPE(depth, channels) HLS_MAKETYPE(depth, channels)
#define HLS_MAT_DEPTH(type) ((type) & 255)
#define HLS_MAT_CN(type) (((type) >> 8) + 1)
#define HLS_TNAME(type) typename hls::Type<HLS_MAT_DEPTH(type)>::name
#define HLS_TBITDEPTH(type) (hls::Type<HLS_MAT_DEPTH(type)>::bitdepth)
#define HLS_8UC1 HLS_MAKETYPE(HLS_8U, 1)
#define HLS_8UC2 HLS_MAKETYPE(HLS_8U, 2)
#define HLS_8UC3 HLS_MAKETYPE(HLS_8U, 3)
#define HLS_8UC4 HLS_MAKETYPE(HLS_8U, 4)
#define HLS_8SC1 HLS_MAKETYPE(HLS_8S, 1)
#define HLS_8SC3 HLS_MAKETYPE(HLS_8S, 3)
#define HLS_10UC1 HLS_MAKETYPE(HLS_10U, 1)
#define HLS_10UC3 HLS_MAKETYPE(HLS_10U, 3)
#define HLS_12UC1 HLS_MAKETYPE(HLS_12U, 1)
#define HLS_12UC3 HLS_MAKETYPE(HLS_12U, 3)
#define HLS_16UC1 HLS_MAKETYPE(HLS_16U, 1)
#define HLS_16UC2 HLS_MAKETYPE(HLS_16U, 2)
#define HLS_16UC3 HLS_MAKETYPE(HLS_16U, 3)
#define HLS_16UC4 HLS_MAKETYPE(HLS_16U, 4)
#define HLS_16SC1 HLS_MAKETYPE(HLS_16S, 1)
#define HLS_16SC2 HLS_MAKETYPE(HLS_16S, 2)
#define HLS_16SC3 HLS_MAKETYPE(HLS_16S, 3)
#define HLS_16SC4 HLS_MAKETYPE(HLS_16S, 4)
#define HLS_32SC1 HLS_MAKETYPE(HLS_32S, 1)
#define HLS_32SC3 HLS_MAKETYPE(HLS_32S, 3)
#define HLS_32FC1 HLS_MAKETYPE(HLS_32F, 1)
#define HLS_32FC3 HLS_MAKETYPE(HLS_32F, 3)
#define HLS_64FC1 HLS_MAKETYPE(HLS_64F, 1)

typedef ap_uint<16> HLS_SIZE_T;
typedef ap_uint<4> HLS_CHANNEL_T;

namespace hls {
template <int AP_DEPTH> struct Type;
template <> struct Type<HLS_8U> { typedef unsigned char name; static const int bitdepth = 8; };
template <> struct Type<HLS_8S> { typedef signed char name; static const int bitdepth = 8; };
template <> struct Type<HLS_10U> { typedef ap_uint<10> name; static const int bitdepth = 10; };
template <> struct Type<HLS_12U> { typedef ap_uint<12> name; static const int bitdepth = 12; };
template <> struct Type<HLS_16U> { typedef unsigned short name; static const int bitdepth = 16; };
template <> struct Type<HLS_16S> { typedef short name; static const int bitdepth = 16; };
template <> struct Type<HLS_32S> { typedef int name; static const int bitdepth = 32; };
template <> struct Type<HLS_32F> { typedef float name; static const int bitdepth = 32; };
template <> struct Type<HLS_64F> { typedef double name; static const int bitdepth = 64; };

template <int AP_ROWS, int AP_COLS, class AP_T> class Window {
 public:
  AP_T val[AP_ROWS][AP_COLS];
  void shift_pixels_left() {
    for (int i = 0; i < AP_ROWS; ++i)
      for (int j = 0; j < AP_COLS - 1; ++j) val[i][j] = val[i][j + 1];
  }
  void shift_pixels_right() {
    for (int i = 0; i < AP_ROWS; ++i)
      for (int j = AP_COLS - 1; j > 0; --j) val[i][j] = val[i][j - 1];
  }
  void shift_pixels_up() {
    for (int i = 0; i < AP_ROWS - 1; ++i)
      for (int j = 0; j < AP_COLS; ++j) val[i][j] = val[i + 1][j];
  }
  void shift_pixels_down() {
    for (int i = AP_ROWS - 1; i > 0; --i)
      for (int j = 0; j < AP_COLS; ++j) val[i][j] = val[i - 1][j];
  }
  void insert_pixel(const AP_T& value, int row, int col) { val[row][col] = value; }
  void insert_row(const AP_T (&value)[AP_COLS], int row) {
    for (int j = 0; j < AP_COLS; ++j) val[row][j] = value[j];
  }
  void insert_top_row(const AP_T (&value)[AP_COLS]) { insert_row(value, AP_ROWS - 1); }
  void insert_bottom_row(const AP_T (&value)[AP_COLS]) { insert_row(value, 0); }
  void insert_col(const AP_T (&value)[AP_ROWS], int col) {
    for (int i = 0; i < AP_ROWS; ++i) val[i][col] = value[i];
  }
  void insert_left_col(const AP_T (&value)[AP_ROWS]) { insert_col(value, 0); }
  void insert_right_col(const AP_T (&value)[AP_ROWS]) { insert_col(value, AP_COLS - 1); }
  AP_T& getval(int row, int col) { return val[row][col]; }
  AP_T& operator()(int row, int col) { return val[row][col]; }
  // As older releases name them.
  void shift_left() { shift_pixels_left(); }
  void shift_right() { shift_pixels_right(); }
  void shift_up() { shift_pixels_up(); }
  void shift_down() { shift_pixels_down(); }
  void insert(const AP_T& value, int row, int col) { insert_pixel(value, row, col); }
};

template <int AP_ROWS, int AP_COLS, class AP_T, int AP_RESHAPE = 0> class LineBuffer {
 public:
  AP_T val[AP_ROWS][AP_COLS];
  void shift_pixels_up(int col) {
    for (int i = 0; i < AP_ROWS - 1; ++i) val[i][col] = val[i + 1][col];
  }
  void shift_pixels_down(int col) {
    for (int i = AP_ROWS - 1; i > 0; --i) val[i][col] = val[i - 1][col];
  }
  void insert_bottom_row(const AP_T& value, int col) { val[AP_ROWS - 1][col] = value; }
  void insert_top_row(const AP_T& value, int col) { val[0][col] = value; }
  void get_col(AP_T (&value)[AP_ROWS], int col) {
    for (int i = 0; i < AP_ROWS; ++i) value[i] = val[i][col];
  }
  AP_T& getval(int row, int col) { return val[row][col]; }
  AP_T& operator()(int row, int col) { return val[row][col]; }
  // As older releases name them: their top is the last row.
  void shift_up(int col) { shift_pixels_up(col); }
  void shift_down(int col) { shift_pixels_down(col); }
  void insert_bottom(const AP_T& value, int col) { val[0][col] = value; }
  void insert_top(const AP_T& value, int col) { val[AP_ROWS - 1][col] = value; }
  void insert(const AP_T& value, int row, int col) { val[row][col] = value; }
};

template <int AP_N, class AP_T> class Scalar {
 public:
  AP_T val[AP_N];
  Scalar() = default;
  Scalar(AP_T v0) { val[0] = v0; }
  Scalar(AP_T v0, AP_T v1) { val[0] = v0, val[1] = v1; }
  Scalar(AP_T v0, AP_T v1, AP_T v2) { val[0] = v0, val[1] = v1, val[2] = v2; }
  Scalar(AP_T v0, AP_T v1, AP_T v2, AP_T v3) { val[0] = v0, val[1] = v1, val[2] = v2, val[3] = v3; }
};

template <class AP_T> struct Point_ {
  AP_T x, y;
  Point_() : x(-1), y(-1) {}
  Point_(AP_T column, AP_T row) : x(column), y(row) {}
};
typedef Point_<int> Point;
template <class AP_T> struct Size_ {
  AP_T width, height;
  Size_() : width(0), height(0) {}
  Size_(AP_T columns, AP_T rows) : width(columns), height(rows) {}
};
typedef Size_<int> Size;

// A picture: one stream a channel, rows from the top, each pixel written and read once.
template <int AP_ROWS, int AP_COLS, int AP_T> class Mat {
 public:
  static const int channels = HLS_MAT_CN(AP_T);
  typedef typename Type<HLS_MAT_DEPTH(AP_T)>::name pixel;
  typedef Scalar<channels, pixel> Value;
  int rows, cols;
  hls::stream<pixel> data_stream[channels];
  Mat() : rows(AP_ROWS), cols(AP_COLS) {}
  Mat(int height, int width) : rows(height), cols(width) {
    assert(height <= AP_ROWS && width <= AP_COLS);
  }
  int type() const { return AP_T; }
  int depth() const { return HLS_MAT_DEPTH(AP_T); }
  bool empty() {
    bool any = false;
    for (int k = 0; k < channels; ++k) any |= data_stream[k].empty();
    return any;
  }
  void read(Value& value) {
#pragma HLS INLINE
    for (int k = 0; k < channels; ++k) {
#pragma HLS UNROLL
      value.val[k] = data_stream[k].read();
    }
  }
  Value read() {
#pragma HLS INLINE
    Value value;
    read(value);
    return value;
  }
  void write(const Value& value) {
#pragma HLS INLINE
    for (int k = 0; k < channels; ++k) {
#pragma HLS UNROLL
      data_stream[k].write(value.val[k]);
    }
  }
  Mat& operator>>(Value& value) {
#pragma HLS INLINE
    read(value);
    return *this;
  }
  Mat& operator<<(const Value& value) {
#pragma HLS INLINE
    write(value);
    return *this;
  }
};

// Does something for each pixel of a picture, given its row and column.
template <int AP_ROWS, int AP_COLS, int AP_T, class AP_F> void EachPixel(const Mat<AP_ROWS, AP_COLS, AP_T>& picture, const AP_F& act) {
#pragma HLS INLINE
  const int rows = picture.rows, cols = picture.cols;
  assert(rows <= AP_ROWS && cols <= AP_COLS);
loop_height:
  for (int i = 0; i < rows; ++i) {
  loop_width:
    for (int j = 0; j < cols; ++j) {
#pragma HLS LOOP_FLATTEN off
#pragma HLS PIPELINE II=1
      act(i, j);
    }
  }
}

// The nearest value that the pixel's type has.
template <class AP_T> struct Saturated {
  template <class AP_V> static AP_T of(const AP_V& value) { return AP_T(value); }
};
template <int AP_BITS, bool AP_SIGNED, class AP_T> struct SaturatedInteger {
  template <class AP_V> static AP_T of(const AP_V& value) {
    const int low = AP_SIGNED ? -(1 << (AP_BITS - 1)) : 0;
    const int high = AP_SIGNED ? (1 << (AP_BITS - 1)) - 1 : (1 << AP_BITS) - 1;
    return value < AP_V(low) ? AP_T(low) : value > AP_V(high) ? AP_T(high) : AP_T(int(value));
  }
};
template <> struct Saturated<unsigned char> : SaturatedInteger<8, false, unsigned char> {};
template <> struct Saturated<signed char> : SaturatedInteger<8, true, signed char> {};
template <> struct Saturated<unsigned short> : SaturatedInteger<16, false, unsigned short> {};
template <> struct Saturated<short> : SaturatedInteger<16, true, short> {};
template <> struct Saturated<ap_uint<10>> : SaturatedInteger<10, false, ap_uint<10>> {};
template <> struct Saturated<ap_uint<12>> : SaturatedInteger<12, false, ap_uint<12>> {};
template <class AP_T> AP_T saturate_cast(const int& value) { return Saturated<AP_T>::of(value); }
template <class AP_T> AP_T saturate_cast(const double& value) {
  // to_int() cuts towards zero; a type without a fraction, downwards.
  return Saturated<AP_T>::of(ap_fixed<34, 34>(ap_fixed<36, 34>(value) + ap_fixed<3, 1>(0.5)).to_int());
}
template <> inline float saturate_cast<float>(const double& value) { return float(value); }
template <> inline double saturate_cast<double>(const double& value) { return value; }
template <class AP_T> AP_T saturate_cast(const float& value) { return saturate_cast<AP_T>(double(value)); }
}  // namespace hls
