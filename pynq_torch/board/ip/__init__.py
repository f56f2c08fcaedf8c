"""Models of the Xilinx IP that small PYNQ-Z2 designs use, register by register."""
