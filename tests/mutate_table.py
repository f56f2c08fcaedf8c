"""Which tests answer for which module, and which mutations change nothing: for `make mutate`."""

from __future__ import annotations

#: The end of a module's path, without its suffix and perhaps with a `*`, to its test files in
#: `tests/`, without `test_` and `.py`; the longest end counts. For a module that is not here the
#: files that carry its name: `test_ops_softmax.py` and `test_softmax.py` for `ops/softmax`.
AREAS: dict[str, str] = {
    "transfers": "lib_waits lib_transfers",
    "waits/__init__": "lib_waits lib_transfers lib_faults",
    "polling": "lib_waits",
    "causes": "lib_diagnosis",
    "facts": "lib_diagnosis",
    "diagnosis/__init__": "lib_diagnosis",
    "snapshot": "lib_waits lib_kernels ip_stream ip_dma_reset",
    "kernels/base": "lib_driver lib_raw lib_kernels",
    "kernels/control": "lib_driver lib_raw lib_kernels",
    "kernels/launch": "ops_launch ops_units lib_gemm",
    "kernels/registers": "lib_kernels lib_raw device_generic",
    "ops/conv": "ops_conv nn",
    "board/bus": "board_bus board_faults board_field linux",
    "board/memory": "board_memory lib_buffers board_faults",
    "board/hls_ip": "board_models board_kernels board_faults lib_kernels",
    "board/engine": "board_models board_kernels board_faults board_processes",
    "board/streams": "ip_registers board_streams ip_stream",
    "board/ip/axi_dma": "ip_dma ip_dma_reset ip_stream",
    "board/ip/dma_*": "ip_registers ip_dma ip_dma_reset",
    "board/ip/axi_gpio": "ip_gpio",
    "board/ip/axi_timer": "ip_timer",
    "board/ip/axi_intc": "ip_gpio ip_timer linux",
    "board/engines/engine": "board_kernels board_faults board_streams",
    "board/engines/stream": "board_streams ip_stream board_kernels",
    "board/engines/rtl/*": "rtl_board rtl_memory rtl_checker rtl_faults",
    "board/slcr": "ip_registers design_board",
    "board/handoff*": "board_handoff board_match design_hwh",
    "board/vain_polls": "ip_registers board_faults",
    "board/mappings": "board_memory",
    "board/hls_match": "board_match",
    "board/hls_binding": "board_match board_models board_kernels",
    "board/sysfs": "linux",
    "board/uio": "linux",
    "board/linux": "linux",
    "board/device": "board_models board_handoff board_faults board_field",
    "board/rtl/*": "rtl_board rtl_build rtl_ports rtl_sources rtl_faults",
}

#: Mutations that no test can kill: (module, the line as it is, the line as mutated, the reason).
EQUIVALENT: tuple[tuple[str, str, str, str], ...] = (
    (
        "ops/conv",
        "memory.note_write(buffer)",
        "pass",
        "The buffer is the function's own, and nothing is kept for it that a count could make old.",
    ),
    (
        "ops/conv",
        "missing=True,",
        "missing=False,",
        "The offer is asked only where a unit of KERNELS is loaded, and then it is not missing.",
    ),
    (
        "board/bus",
        'word = bytearray(bus.read(address & ~3).to_bytes(4, "little"))',
        'word = bytearray(bus.read(address & ~3).to_bytes(5, "little"))',
        "A fifth byte of 0 above the word changes no number that is made of it.",
    ),
    (
        "board/engine",
        "self.done_fd = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)",
        "self.done_fd = os.eventfd(1, os.EFD_CLOEXEC | os.EFD_NONBLOCK)",
        "spawn() empties it before anything reads it.",
    ),
    (
        "board/device",
        "with ThreadPoolExecutor(os.cpu_count() or 1) as pool:",
        "with ThreadPoolExecutor((os.cpu_count() and 1)) as pool:",
        "One thread builds what several do, one after the other.",
    ),
    (
        "board/handoff",
        'sinks.setdefault(net, []).append((name, "intc", 0))',
        'sinks.setdefault(net, []).append((name, "intc", 1))',
        "Only of a concat block the number counts.",
    ),
    (
        "board/ip/axi_gpio",
        "if offset < 0x10:",
        "if (offset <= 16):",
        "Offset 0x10 would be that of a third channel: it reads as zero, as holes do.",
    ),
    (
        "board/ip/axi_timer",
        "seconds = max((min(waits) - self._cycle() + 1) / self.clock_hz, 0.0)",
        "seconds = max((min(waits) - self._cycle() + 0) / self.clock_hz, 0.0)",
        "An alarm that comes a cycle early finds no rollover and is set again.",
    ),
    (
        "board/mappings",
        "_libc = ctypes.CDLL(None, use_errno=True)",
        "_libc = ctypes.CDLL(None, use_errno=False)",
        "Nothing reads the error number.",
    ),
    (
        "board/ip/axi_timer",
        "(r if c & _UDT else top - r) + 2 for c, r in zip(self._tcsr, self._tlr, strict=True)",
        "(r if c & _UDT else top - r) + 2 for c, r in zip(self._tcsr, self._tlr, strict=False)",
        "Both lists have two registers.",
    ),
    (
        "board/vain_polls",
        "self._accesses = self._thread = self._count = 0",
        "self._accesses = self._thread = self._count = 1",
        "No thread has the number 0 or 1: the first poll begins a count of its own.",
    ),
    (
        "board/vain_polls",
        "self._began = self._last = 0.0",
        "pass",
        "The first poll, of no known thread, sets both before they are read.",
    ),
    (
        "board/handoff_ranges",
        "if reaching is None or _end(before[0]) > _end(reaching[0]):",
        "if reaching is None or (_end(before[0]) >= _end(reaching[0])):",
        "Of two ranges with one end, which is an error unless they are of one interface.",
    ),
)
