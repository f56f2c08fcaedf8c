// tone_curve: a lookup table for the pixels of an image, mixed with the image itself.
//
// | parameter | value | why                                     |
// |-----------|-------|-----------------------------------------|
// | LANES     | 4     | pixels a beat: 8 bits each, 32 of TDATA |
// | BEATS     | 1024  | a start: a block of 4096 pixels         |
#pragma once
#include <ap_axi_sdata.h>
#include <ap_int.h>
#include <hls_stream.h>

namespace tone {

constexpr int PIXEL_BITS = 8;
constexpr int LANES = 4;
constexpr int BEATS = 1024;
constexpr int FULL_BITS = 8;  // a strength of 1 << FULL_BITS is the curve alone, 0 the image alone
using Beat = ap_axiu<LANES * PIXEL_BITS, 0, 0, 0>;  // TDATA, TKEEP, TSTRB, TLAST
using Strength = ap_uint<FULL_BITS + 1>;

// round(sqrt(255 * x)): shadows become brighter, black and white stay.
const unsigned char CURVE[1 << PIXEL_BITS] = {
    0, 16, 23, 28, 32, 36, 39, 42, 45, 48, 50, 53, 55, 58, 60, 62,
    64, 66, 68, 70, 71, 73, 75, 77, 78, 80, 81, 83, 84, 86, 87, 89,
    90, 92, 93, 94, 96, 97, 98, 100, 101, 102, 103, 105, 106, 107, 108, 109,
    111, 112, 113, 114, 115, 116, 117, 118, 119, 121, 122, 123, 124, 125, 126, 127,
    128, 129, 130, 131, 132, 133, 134, 135, 135, 136, 137, 138, 139, 140, 141, 142,
    143, 144, 145, 145, 146, 147, 148, 149, 150, 151, 151, 152, 153, 154, 155, 156,
    156, 157, 158, 159, 160, 160, 161, 162, 163, 164, 164, 165, 166, 167, 167, 168,
    169, 170, 170, 171, 172, 173, 173, 174, 175, 176, 176, 177, 178, 179, 179, 180,
    181, 181, 182, 183, 183, 184, 185, 186, 186, 187, 188, 188, 189, 190, 190, 191,
    192, 192, 193, 194, 194, 195, 196, 196, 197, 198, 198, 199, 199, 200, 201, 201,
    202, 203, 203, 204, 204, 205, 206, 206, 207, 208, 208, 209, 209, 210, 211, 211,
    212, 212, 213, 214, 214, 215, 215, 216, 217, 217, 218, 218, 219, 220, 220, 221,
    221, 222, 222, 223, 224, 224, 225, 225, 226, 226, 227, 228, 228, 229, 229, 230,
    230, 231, 231, 232, 233, 233, 234, 234, 235, 235, 236, 236, 237, 237, 238, 238,
    239, 240, 240, 241, 241, 242, 242, 243, 243, 244, 244, 245, 245, 246, 246, 247,
    247, 248, 248, 249, 249, 250, 250, 251, 251, 252, 252, 253, 253, 254, 254, 255,
};

}  // namespace tone

// One start takes BEATS beats and gives as many; TLAST goes through.
void tone_curve(hls::stream<tone::Beat>& pixels, hls::stream<tone::Beat>& toned, tone::Strength strength);
