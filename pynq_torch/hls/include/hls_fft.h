// The FFT core: what a kernel writes around it. UG1399, "Fast Fourier Transform IP Library".
//
// What it computes, and in how many cycles, is the vendor's to say (PG109). A loop whose end is not
// known stands for it; a kernel with it cannot run here.
#pragma once

#include <hls_x_complex.h>

#include <ap_fixed.h>
#include <ap_int.h>
#include <hls_stream.h>

// Whether the core has more to do, which nobody knows.
extern "C" bool __hls_core_fft() noexcept
#if !defined(__SYNTHESIS__) && __has_attribute(error)
    __attribute__((error("the FFT core of hls_fft.h is the vendor's and cannot be simulated here")))
#endif
    ;

namespace hls {
namespace ip_fft {

enum type { fixed_point, floating_point };
enum scaling { scaled, unscaled, block_floating_point };
enum arch {
    automatically_select,
    pipelined_streaming_io,
    radix_4_burst_io,
    radix_2_burst_io,
    radix_2_lite_burst_io
};
enum ordering { bit_reversed_order, natural_order };
enum rounding { truncation, convergent_rounding };
enum mem { block_ram, distributed_ram };
enum opt { use_luts, use_mults_resources, use_mults_performance, use_xtremedsp_slices };

struct params_t {
    static const unsigned input_width = 16, output_width = 16;
    static const unsigned status_width = 8, config_width = 16;
    static const unsigned max_nfft = 10, channels = 1, phase_factor_width = 16;
    static const bool has_nfft = false, ovflo = true, mem_hybrid = false;
    static const bool cyclic_prefix_insertion = false, xk_index = false, use_native_float = false;
    static const unsigned arch_opt = pipelined_streaming_io, ordering_opt = bit_reversed_order;
    static const unsigned scaling_opt = scaled, rounding_opt = truncation;
    static const unsigned mem_data = block_ram, mem_phase_factors = block_ram;
    static const unsigned mem_reorder = block_ram;
    static const unsigned stages_block_ram = max_nfft < 10 ? 0 : max_nfft - 9;
    static const unsigned complex_mult_type = use_mults_resources, butterfly_type = use_luts;
};

// What a run is told: the length, the cyclic prefix, each channel's direction, and its scaling.
template <class Params> class config_t {
    static const unsigned length = Params::has_nfft ? 8 : 0;
    static const unsigned prefix =
        Params::cyclic_prefix_insertion ? (Params::max_nfft + 7) / 8 * 8 : 0;
    static const unsigned front = length + prefix;
    static const bool in_pairs = unsigned(Params::arch_opt) == pipelined_streaming_io ||
                                 unsigned(Params::arch_opt) == radix_4_burst_io;
    static const unsigned schedule =
        in_pairs ? (Params::max_nfft + 1) / 2 * 2 : Params::max_nfft * 2;
    unsigned scales(unsigned channel) const { return front + Params::channels + channel * schedule; }
    void put(unsigned low, unsigned bits, unsigned value) {
        const ap_uint<Params::config_width> mask = (1ULL << bits) - 1, given = value;
        data = (data & ~(mask << low)) | ((given & mask) << low);
    }

  public:
    ap_uint<Params::config_width> data;
    void setNfft(unsigned value) { put(0, 5, value); }
    unsigned getNfft() const { return ap_uint<5>(data); }
    void setCpLen(unsigned value) { put(length, Params::max_nfft, value); }
    unsigned getCpLen() const { return ap_uint<Params::max_nfft>(data >> length); }
    void setDir(bool value, unsigned channel = 0) { put(front + channel, 1, value); }
    unsigned getDir(unsigned channel = 0) const { return ap_uint<1>(data >> (front + channel)); }
    void setSch(unsigned value, unsigned channel = 0) { put(scales(channel), schedule, value); }
    unsigned getSch(unsigned channel = 0) const { return ap_uint<schedule>(data >> scales(channel)); }
};

// What a run tells: of each channel the block's exponent, or whether there was an overflow.
template <class Params> class status_t {
  public:
    ap_uint<Params::status_width> data;
    unsigned getBlkExp(unsigned channel = 0) const { return ap_uint<5>(data >> (channel * 8)); }
    bool getOvflo(unsigned channel = 0) const { return ap_uint<1>(data >> channel) != 0; }
};

// It reads every word of its input and writes every word of its output.
template <class In, class Out, class Status, class Config>
void run(const In* xn, Out* xk, Status* status, const Config* config) {
    for (int i = 0; __hls_core_fft(); ++i) {
        xk[i] = Out(xn[i].real(), xn[i].imag());
        status->data = config->data;
    }
}
template <class In, class Out, class Status, class Config>
void run(hls::stream<In>& xn, hls::stream<Out>& xk,
         hls::stream<Status>& status, hls::stream<Config>& config) {
    Status told;
    told.data = config.read().data;
    while (__hls_core_fft()) {
        In x = xn.read();
        xk.write(Out(x.real(), x.imag()));
    }
    status.write(told);
}

}  // namespace ip_fft

template <class Params, class In, class Out>
void fft(In* xn, Out* xk, ip_fft::status_t<Params>* status,
         ip_fft::config_t<Params>* config) {
    ip_fft::run(xn, xk, status, config);
}
// Of several channels.
template <class Params, class In, class Out, unsigned long N>
void fft(In (*xn)[N], Out (*xk)[N], ip_fft::status_t<Params>* status,
         ip_fft::config_t<Params>* config) {
    ip_fft::run(&xn[0][0], &xk[0][0], status, config);
}
template <class Params, class In, class Out>
void fft(hls::stream<In>& xn, hls::stream<Out>& xk,
         hls::stream<ip_fft::status_t<Params>>& status,
         hls::stream<ip_fft::config_t<Params>>& config) {
    ip_fft::run(xn, xk, status, config);
}

}  // namespace hls
