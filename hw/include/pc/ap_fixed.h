// ap_fixed.h for g++: its warnings about ap_private.h stay out, those about kernels and testbenches come through.
//
// Every constructor of ap_private.h reads the member that its body then sets, which g++ reports wherever it is
// inlined. A switch on the command line would silence our code as well.
#pragma once
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#include_next <ap_fixed.h>
#pragma GCC diagnostic pop
