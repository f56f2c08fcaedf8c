// What the testbenches of the 3x3 filters share: images, the loop over all sizes, the verdict.
#pragma once
#include <cstdio>
#include <vector>

#include "lines3x3.hpp"

namespace lines3x3_tb {

using Filter = void(hls::stream<lines3x3::Beat>&, hls::stream<lines3x3::Beat>&, int, int);

struct Image {
    int width, height;
    std::vector<int> pixels;
    // Outside it is 0.
    int at(int row, int col) const {
        return row < 0 || row >= height || col < 0 || col >= width ? 0 : pixels[row * width + col];
    }
};

// style 0: noise; 1: all white; 2: a chessboard, the strongest edges
inline Image image(int width, int height, int style) {
    Image made{width, height, std::vector<int>(static_cast<size_t>(width) * height)};
    unsigned int noise = 12345u + width;
    for (int i = 0; i < width * height; ++i) {
        noise = noise * 1664525u + 1013904223u;
        const int chess = (i / width + i % width) % 2 ? 255 : 0;
        made.pixels[i] = style == 0 ? noise >> 24 : style == 1 ? 255 : chess;
    }
    return made;
}

inline int check(const char* name, Filter filter, int golden(const Image&, int, int), const Image& given) {
    hls::stream<lines3x3::Beat> pixels("pixels"), results("results");
    for (int value : given.pixels) pixels.write(lines3x3::beat_of(value, false));
    pixels.write(lines3x3::beat_of(77, true));  // the next image stays in the queue
    filter(pixels, results, given.width, given.height);
    const int count = given.width * given.height;
    int errors = (pixels.size() == 1 ? 0 : 1) + (static_cast<int>(results.size()) == count ? 0 : 1);
    for (int i = 0; i < count && !results.empty(); ++i) {
        const lines3x3::Beat beat = results.read();
        const int expected = golden(given, i / given.width, i % given.width);
        if (beat.data.to_int() != expected || beat.last != (i == count - 1) || beat.keep != 1 ||
            beat.strb != 1) {
            if (errors++ == 0) {
                std::printf("  first wrong pixel %d: %d, expected %d\n", i, beat.data.to_int(), expected);
            }
        }
    }
    std::printf("%s %dx%d %s\n", name, given.width, given.height, errors == 0 ? "PASS" : "FAIL");
    return errors;
}

// Sizes from one pixel to the widest row; the width 0 and one too many do nothing.
inline int check_all(const char* name, Filter filter, int golden(const Image&, int, int)) {
    int errors = 0;
    const int sizes[][2] = {{1, 1}, {1, 5}, {5, 1}, {2, 2}, {3, 3}, {17, 9}, {64, 48}, {lines3x3::MAX_WIDTH, 3}};
    for (const auto& size : sizes) {
        for (int style = 0; style < 3; ++style) {
            errors += check(name, filter, golden, image(size[0], size[1], style));
        }
    }
    hls::stream<lines3x3::Beat> pixels("untouched"), results("nothing");
    pixels.write(lines3x3::beat_of(77, true));
    for (int width : {0, -1, lines3x3::MAX_WIDTH + 1}) filter(pixels, results, width, 4);
    filter(pixels, results, 4, 0);
    return errors + (results.empty() && pixels.size() == 1 ? 0 : 1);
}

}  // namespace lines3x3_tb
