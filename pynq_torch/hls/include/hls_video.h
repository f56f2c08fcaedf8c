// Windows and line buffers of the video library of Vivado HLS. UG902, "HLS Video Library". Its
// functions on whole pictures (hls::Sobel and the like) are not here: their loops are the tool's.
#pragma once
#include <ap_axi_sdata.h>
#include <ap_int.h>
#include <hls_math.h>
#include <hls_stream.h>

namespace hls {
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
  // As older releases name them: rows are counted from the bottom there.
  void shift_up(int col) { shift_pixels_down(col); }
  void shift_down(int col) { shift_pixels_up(col); }
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

template <int AP_W, class AP_T> void AXIGetBitFields(ap_uint<AP_W>& pixel, int start, int width, AP_T& value) {
  value = (AP_T)pixel.range(start + width - 1, start).to_uint64();
}
template <int AP_W, class AP_T> void AXIGetBitFields(const ap_axiu<AP_W, 1, 1, 1>& axi, int start, int width, AP_T& value) {
  value = (AP_T)axi.data.range(start + width - 1, start).to_uint64();
}
template <int AP_W, class AP_T> void AXISetBitFields(ap_uint<AP_W>& pixel, int start, int width, AP_T value) {
  pixel.range(start + width - 1, start) = value;
}
template <int AP_W, class AP_T> void AXISetBitFields(ap_axiu<AP_W, 1, 1, 1>& axi, int start, int width, AP_T value) {
  axi.data.range(start + width - 1, start) = value;
}
}  // namespace hls
