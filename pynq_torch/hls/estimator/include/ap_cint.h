// The C types of Vivado HLS (UG902, "C Arbitrary Precision Integer Types"), for the estimator.
#pragma once
#include <stdint.h>
#define AP_TYPES(N) \
  typedef unsigned _BitInt(N) uint##N; \
  typedef signed _BitInt(N) int##N;
// Those of C's own widths are promoted to int, as its types are; a _BitInt is not.
typedef uint8_t uint8;
typedef int8_t int8;
typedef uint16_t uint16;
typedef int16_t int16;
typedef uint32_t uint32;
typedef int32_t int32;
typedef uint64_t uint64;
typedef int64_t int64;
typedef unsigned _BitInt(1) uint1;
typedef signed _BitInt(2) int1;
AP_TYPES(2) AP_TYPES(3) AP_TYPES(4) AP_TYPES(5) AP_TYPES(6) AP_TYPES(7) AP_TYPES(9) AP_TYPES(10) AP_TYPES(11) AP_TYPES(12) AP_TYPES(13)
AP_TYPES(14) AP_TYPES(15) AP_TYPES(17) AP_TYPES(18) AP_TYPES(19) AP_TYPES(20) AP_TYPES(21) AP_TYPES(22) AP_TYPES(23) AP_TYPES(24) AP_TYPES(25)
AP_TYPES(26) AP_TYPES(27) AP_TYPES(28) AP_TYPES(29) AP_TYPES(30) AP_TYPES(31) AP_TYPES(33) AP_TYPES(34) AP_TYPES(35) AP_TYPES(36) AP_TYPES(37)
AP_TYPES(38) AP_TYPES(39) AP_TYPES(40) AP_TYPES(41) AP_TYPES(42) AP_TYPES(43) AP_TYPES(44) AP_TYPES(45) AP_TYPES(46) AP_TYPES(47) AP_TYPES(48) AP_TYPES(49)
AP_TYPES(50) AP_TYPES(51) AP_TYPES(52) AP_TYPES(53) AP_TYPES(54) AP_TYPES(55) AP_TYPES(56) AP_TYPES(57) AP_TYPES(58) AP_TYPES(59) AP_TYPES(60) AP_TYPES(61)
AP_TYPES(62) AP_TYPES(63) AP_TYPES(65) AP_TYPES(66) AP_TYPES(67) AP_TYPES(68) AP_TYPES(69) AP_TYPES(70) AP_TYPES(71) AP_TYPES(72) AP_TYPES(73)
AP_TYPES(74) AP_TYPES(75) AP_TYPES(76) AP_TYPES(77) AP_TYPES(78) AP_TYPES(79) AP_TYPES(80) AP_TYPES(81) AP_TYPES(82) AP_TYPES(83) AP_TYPES(84) AP_TYPES(85)
AP_TYPES(86) AP_TYPES(87) AP_TYPES(88) AP_TYPES(89) AP_TYPES(90) AP_TYPES(91) AP_TYPES(92) AP_TYPES(93) AP_TYPES(94) AP_TYPES(95) AP_TYPES(96) AP_TYPES(97)
AP_TYPES(98) AP_TYPES(99) AP_TYPES(100) AP_TYPES(101) AP_TYPES(102) AP_TYPES(103) AP_TYPES(104) AP_TYPES(105) AP_TYPES(106) AP_TYPES(107) AP_TYPES(108) AP_TYPES(109)
AP_TYPES(110) AP_TYPES(111) AP_TYPES(112) AP_TYPES(113) AP_TYPES(114) AP_TYPES(115) AP_TYPES(116) AP_TYPES(117) AP_TYPES(118) AP_TYPES(119) AP_TYPES(120) AP_TYPES(121)
AP_TYPES(122) AP_TYPES(123) AP_TYPES(124) AP_TYPES(125) AP_TYPES(126) AP_TYPES(127) AP_TYPES(128)
AP_TYPES(160) AP_TYPES(192) AP_TYPES(256) AP_TYPES(512) AP_TYPES(1024)
#undef AP_TYPES
// Bits of a value (UG902, "C Arbitrary Precision Bit-Level Operations"): each yields another value.
#define AP_MASK(V, HI, LO) ((((__typeof__(V))1 << ((HI) - (LO))) << 1) - 1)
#define apint_get_range(V, HI, LO) ((__typeof__(V))(((V) >> (LO)) & AP_MASK(V, HI, LO)))
#define apint_set_range(V, HI, LO, PART) \
  ((__typeof__(V))(((V) & ~(AP_MASK(V, HI, LO) << (LO))) | (((__typeof__(V))(PART) & AP_MASK(V, HI, LO)) << (LO))))
#define apint_get_bit(V, N) (((V) >> (N)) & 1)
#define apint_set_bit(V, N, BIT) apint_set_range(V, N, N, BIT)
#define apint_or_reduce(V) ((V) != 0)
#define apint_nor_reduce(V) ((V) == 0)
#define apint_and_reduce(V) ((__typeof__(V))~(V) == 0)
#define apint_nand_reduce(V) ((__typeof__(V))~(V) != 0)
