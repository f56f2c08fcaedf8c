"""Costs that are modelled, not measured: the PYNQ-Z2's timing, resources, latencies."""
