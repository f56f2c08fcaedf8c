create_ip -name floating_point -version 7.1 -vendor xilinx.com -library ip -module_name ramp_sum_fadd_32ns_32ns_32_5_full_dsp_1_ip
set_property -dict [list CONFIG.operation_type Add_Subtract CONFIG.add_sub_value Add \
                         CONFIG.c_latency 3] -objects [get_ips ramp_sum_fadd_32ns_32ns_32_5_full_dsp_1_ip]
