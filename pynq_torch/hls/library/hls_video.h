// The video library of Vivado HLS (UG902, "HLS Video Library"): windows and line buffers here,
// pictures as streams and the functions on them in the headers below.
#pragma once
#include <hls/hls_video_core.h>
#include <hls/hls_video_io.h>
#include <hls/hls_video_imgproc.h>
