"""RTL behind the registers: finding it, building it with Verilator, running it."""
