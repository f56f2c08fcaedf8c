// A line of registers as the estimate reads it. Its words move on by themselves, in the SRLs of
// LUTs: one place is written in a cycle and one read, not each of them (UG1399, "AP_SHIFT_REG"). So
// four registers stand for all, which take no memory either.
#pragma once

template <class AP_T, unsigned AP_N = 32> class ap_shift_reg {
 public:
  ap_shift_reg() = default;
  ap_shift_reg(const char*) {}
  AP_T shift(AP_T value, unsigned at = AP_N - 1, bool enable = true) {
    AP_T last = line[at % 4];
    if (enable) line[0] = value;
    return last;
  }
  AP_T read(unsigned at = AP_N - 1) const { return line[at % 4]; }

 protected:
  AP_T line[4];
};
