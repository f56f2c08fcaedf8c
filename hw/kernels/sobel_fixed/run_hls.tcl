# vitis-run --mode hls --tcl run_hls.tcl   (before 2023.2: vitis_hls -f run_hls.tcl)
set kernel sobel_fixed
source [file join [file dirname [file normalize [info script]]] .. .. run_hls_common.tcl]
