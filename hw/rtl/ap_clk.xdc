# The clock of a kernel that is placed and routed on its own, out of context: 100 MHz on ap_clk. In a design
# the processing system makes it, and Vivado takes it from there.
create_clock -name ap_clk -period 10.000 [get_ports ap_clk]
set_property HD.CLK_SRC BUFGCTRL_X0Y0 [get_ports ap_clk]
