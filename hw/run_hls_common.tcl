# What Vitis HLS does with every kernel; run_hls.tcl of a kernel sets `kernel` and sources this.
#
# | environment   | default      | meaning                                        |
# |---------------|--------------|------------------------------------------------|
# | HLS_BUILD     | hw/build/hls | where projects, reports and packaged IP go     |
# | HLS_PART      | of PYNQ-Z2   | the part                                       |
# | HLS_PERIOD_NS | 10           | the clock period                               |
# | HLS_COSIM     | 0            | 1 runs the testbench on the RTL as well        |

proc setting {name default} {
    return [expr {[info exists ::env($name)] ? $::env($name) : $default}]
}

set hw [file dirname [file normalize [info script]]]
set folder [file join $hw kernels $kernel]
set build [file normalize [setting HLS_BUILD [file join $hw build hls]]]
file mkdir $build
cd $build

open_project -reset $kernel
set_top $kernel
# C++17, as on the PC: the kernels use if constexpr and [[maybe_unused]].
add_files -cflags -std=c++17 [file join $folder $kernel.cpp]
add_files -tb -cflags -std=c++17 [file join $folder ${kernel}_tb.cpp]
open_solution -reset solution -flow_target vivado
set_part [setting HLS_PART xc7z020clg400-1]
create_clock -period [setting HLS_PERIOD_NS 10]

csim_design
csynth_design
if {[setting HLS_COSIM 0]} {
    cosim_design
}
# The IP repository that the overlays' Tcl reads: one folder a kernel.
file mkdir [file join $build ip]
export_design -format ip_catalog -output [file join $build ip $kernel.zip]
file delete -force [file join $build ip $kernel]
file copy -force [file join $build $kernel solution impl ip] [file join $build ip $kernel]
exit
