// half for the estimator: the compiler's own 16-bit float.
#pragma once
typedef _Float16 half;
