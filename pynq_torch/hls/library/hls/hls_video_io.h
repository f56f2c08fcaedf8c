// Pictures from and to AXI4-Streams of the video protocol: TUSER marks the first pixel of a frame,
// TLAST the last one of a line (UG902, "HLS Video Library"; UG934).
#pragma once
#include "hls_axi_io.h"
#include "hls_video_core.h"

#define HLS_ERROR_IO_EOL_EARLY 1
#define HLS_ERROR_IO_EOL_LATE 2
#define HLS_ERROR_IO_SOF_EARLY 4

namespace hls {
// What comes before the start of a frame is dropped, as is what a line has too much; a line that
// ends early gives its last pixel again. Returns which of these happened.
template <int AP_W, int AP_ROWS, int AP_COLS, int AP_T>
int AXIvideo2Mat(hls::stream<ap_axiu<AP_W, 1, 1, 1> >& video, Mat<AP_ROWS, AP_COLS, AP_T>& picture) {
  typedef Mat<AP_ROWS, AP_COLS, AP_T> Picture;
  const int width = Type<HLS_MAT_DEPTH(AP_T)>::bitdepth;
  ap_axiu<AP_W, 1, 1, 1> beat;
  typename Picture::Value value;
  int wrong = 0;
  const int rows = picture.rows, cols = picture.cols;
  assert(rows <= AP_ROWS && cols <= AP_COLS);
  bool start = false;
loop_wait_for_start:
  while (!start) {
#pragma HLS PIPELINE II=1
#pragma HLS LOOP_TRIPCOUNT avg=0 max=0
    video >> beat;
    start = beat.user.to_int() & 1;
  }
loop_height:
  for (int i = 0; i < rows; ++i) {
    bool last = false;
  loop_width:
    for (int j = 0; j < cols; ++j) {
#pragma HLS LOOP_FLATTEN off
#pragma HLS PIPELINE II=1
      if (start || last) {
        start = false;
      } else {
        video >> beat;
        if (beat.user.to_int() & 1) wrong |= HLS_ERROR_IO_SOF_EARLY;
      }
      last = beat.last.to_int();
      if (last && j < cols - 1) wrong |= HLS_ERROR_IO_EOL_EARLY;
      for (int k = 0; k < Picture::channels; ++k) AXIGetBitFields(beat, k * width, width, value.val[k]);
      picture << value;
    }
  loop_wait_for_eol:
    while (!last) {
#pragma HLS PIPELINE II=1
#pragma HLS LOOP_TRIPCOUNT avg=0 max=0
      video >> beat;
      last = beat.last.to_int();
      wrong |= HLS_ERROR_IO_EOL_LATE;
    }
  }
  return wrong;
}

template <int AP_W, int AP_ROWS, int AP_COLS, int AP_T>
int Mat2AXIvideo(Mat<AP_ROWS, AP_COLS, AP_T>& picture, hls::stream<ap_axiu<AP_W, 1, 1, 1> >& video) {
  typedef Mat<AP_ROWS, AP_COLS, AP_T> Picture;
  const int width = Type<HLS_MAT_DEPTH(AP_T)>::bitdepth;
  EachPixel(picture, [&](int i, int j) {
    ap_axiu<AP_W, 1, 1, 1> beat;
    typename Picture::Value value;
    picture >> value;
    beat.data = 0;
    for (int k = 0; k < Picture::channels; ++k) {
#pragma HLS UNROLL
      AXISetBitFields(beat, k * width, width, value.val[k]);
    }
    beat.user = i == 0 && j == 0;
    beat.last = j == picture.cols - 1;
    beat.keep = -1;
    beat.strb = -1;
    beat.id = 0;
    beat.dest = 0;
    video << beat;
  });
  return 0;
}
}  // namespace hls
