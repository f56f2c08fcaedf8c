"""Mutations that change nothing, each with its reason, for `make mutate`."""

from __future__ import annotations

_SET_FIRST = "main.cpp sets it before anything uses it."

#: Mutations that no test can kill: (module, the line as it is, the line as mutated, the reason).
EQUIVALENT: tuple[tuple[str, str, str, str], ...] = (
    (
        "board/engines/engine_process.hpp",
        "m.fault_address = 0;",
        ";",
        "The address is read after SIGSEGV and SIGBUS only, which set it.",
    ),
    (
        "board/engines/engine_process.hpp",
        "while (read(static_cast<Engine*>(self)->life_fd_, &byte, 1) < 0 && errno == EINTR) {}",
        "while (read(static_cast<Engine*>(self)->life_fd_, &byte, 1) >= 0 && errno == EINTR) {}",
        "Nothing is written there, and no signal has a handler that returns.",
    ),
    (
        "board/engines/engine_process.hpp",
        "pthread_attr_setstacksize(&attributes, size_t(256) << 20);",
        "pthread_attr_setstacksize(&attributes, size_t(257) << 20);",
        "A larger stack serves as well.",
    ),
    (
        "board/engines/engine.hpp",
        "int start_fd_ = -1, done_fd_ = -1, life_fd_ = -1;",
        "int start_fd_ = -1, done_fd_ = -2, life_fd_ = -1;",
        "The constructor sets it before anything uses it.",
    ),
    (
        "board/engines/engine.hpp",
        "size_t nbytes_ = 0;",
        "size_t nbytes_ = 1;",
        "The constructor sets it before anything uses it.",
    ),
    (
        "board/engines/stream.hpp",
        "uint64_t keep[2] = {~0ull, ~0ull};",
        "uint64_t keep[3] = {~0ull, ~0ull};",
        "Nothing reads a third word, and no other process sees a Beat.",
    ),
    (
        "board/engines/stream.hpp",
        "for (int turn = 0; turn < 16; ++turn) {",
        "for (int turn = 0; turn < 17; ++turn) {",
        "How often the processor is given away before a sleep changes no beat.",
    ),
    (
        "board/engines/stream.hpp",
        "limit_ns = std::min(2 * limit_ns, kLongSleepNs);",
        ";",
        "How long a sleep lasts changes no beat.",
    ),
    (
        "board/engines/stream.hpp",
        "uint64_t mask_ = 0;",
        "uint64_t mask_ = 1;",
        "attach() sets it before anything uses it.",
    ),
    (
        "board/engines/axis.cpp",
        "taken.data.resize(port.data_bytes + 8);",
        "taken.data.resize(port.data_bytes + 7);",
        "Port::read() writes data_bytes; what is behind them is cut off.",
    ),
    (
        "board/engines/children.hpp",
        "const int fd = open(path, O_RDONLY | O_CLOEXEC);",
        "const int fd = open(path, O_RDONLY & O_CLOEXEC);",
        "The file is closed again before this process could start another one.",
    ),
    (
        "board/engines/children.hpp",
        "if (name[0] != '.') found += end_children_of(name);",
        "if (name[0] != '.') found -= end_children_of(name);",
        "All that is asked of the number is whether it is zero.",
    ),
    (
        "board/engines/axi_dma.cpp",
        "uint64_t begin = 0, end = 0, generation = ~0ull;",
        "uint64_t begin = 0, end = 0, generation = ~1ull;",
        "A span that ends at 0 is looked up whatever its generation.",
    ),
    (
        "board/engines/axi_dma.cpp",
        "size_t held_bytes_ = 0;",
        "size_t held_bytes_ = 1;",
        "hold() sets it before anything uses it.",
    ),
    (
        "board/engines/axi_fifo.cpp",
        "beat_.keep[1] = 0;",
        ";",
        "The bits are above the bytes of the stream, where TKEEP means nothing.",
    ),
    (
        "board/engines/stream.hpp",
        "int index_ = -1;",
        "int index_ = -2;",
        "attach() sets it before anything uses it.",
    ),
    (
        "board/engines/rtl/memory_map.hpp",
        "mmap(nullptr, kSpace, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);",
        "mmap(nullptr, kSpace, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -2, 0);",
        "Memory without a file ignores the descriptor.",
    ),
    (
        "board/engines/rtl/memory_map.hpp",
        "if (applied_.size() < count) applied_.resize(count, {0, 0});",
        "if (applied_.size() < count) applied_.resize(count, {1, 0});",
        "A range that ends before it begins marks no page, and is replaced at once.",
    ),
    (
        "board/engines/rtl/axi_burst.hpp",
        "return wrap_low() + ((address - wrap_low() + uint64_t(k) * bytes) & (all - 1));",
        "return wrap_low() + ((address + wrap_low() + uint64_t(k) * bytes) & (all - 1));",
        "wrap_low() is a multiple of `all`, and so has no bits in the mask.",
    ),
    (
        "board/engines/rtl/axi_write.hpp",
        "static Lanes below(uint32_t n) { return {ones(n), n > 64 ? ones(n - 64) : 0}; }",
        "static Lanes below(uint32_t n) { return {ones(n), n > 63 ? ones(n - 64) : 0}; }",
        "ones(0) is 0.",
    ),
    (
        "board/engines/rtl/axi_side.hpp",
        "uint32_t n = 0;",
        "uint32_t n = 1;",
        "It differs for a bus of one byte alone, and AXI4 has none below 32 bits.",
    ),
    (
        "board/engines/rtl/checker.hpp",
        "owned.model[i] = api.create(uint32_t(i), i == 0 ? kZeros : i == 1 ? kOnes : kRandom);",
        "owned.model[i] = api.create(uint32_t(i), i == 0 ? kZeros : i != 1 ? kOnes : kRandom);",
        "The same three fills in another order.",
    ),
    (
        "board/engines/rtl/main.cpp",
        "_exit(71);",
        "_exit(70);",
        "The board reads the text, and no status but 0 means that all went well.",
    ),
    (
        "board/engines/rtl/main.cpp",
        "pthread_detach(watcher);",
        ";",
        "The process never joins that thread, which lives as long as it.",
    ),
    (
        "board/engines/rtl/main.cpp",
        "while (read(int(reinterpret_cast<intptr_t>(at)), &byte, 1) < 0 && errno == EINTR) {}",
        "while (read(int(reinterpret_cast<intptr_t>(at)), &byte, 1) < 0 || errno == EINTR) {}",
        "Nothing is written there, and no signal has a handler that returns.",
    ),
    (
        "board/engines/rtl/pl.hpp",
        "while (!awaited() && now_ns() - begin < kSpinNs) relax();",
        "while (awaited() && now_ns() - begin < kSpinNs) relax();",
        "It would sleep at once, and be woken: the same cycles, a little later by the PC's clock.",
    ),
    (
        "board/engines/rtl/pl.hpp",
        "int answer_fd = -1;  // rung when a request was answered",
        "int answer_fd = -0;  // rung when a request was answered",
        _SET_FIRST,
    ),
    (
        "board/engines/rtl/pl.hpp",
        "const uint64_t limit = for_good ? ~uint64_t(0) : kFreezeNs << slices_;",
        "const uint64_t limit = for_good ? ~uint64_t(1) : kFreezeNs << slices_;",
        "584 years in nanoseconds, less one.",
    ),
    (
        "board/engines/rtl/unit.hpp",
        "bool seen_ = false, chain_ = false, armed_ = false, was_done_ = false;",
        "bool seen_ = true, chain_ = false, armed_ = false, was_done_ = false;",
        "The constructor sets it.",
    ),
    (
        "board/engines/rtl/pins.hpp",
        "uint64_t last_handshake = 0;  // cycle",
        "uint64_t last_handshake = 1;  // cycle",
        "The reset at the start sets it before anything uses it.",
    ),
    (
        "board/engines/rtl/repeats.hpp",
        "differs_ = at;",
        ";",
        "Where the comparison begins changes its speed alone.",
    ),
    (
        "board/engines/rtl/repeats.hpp",
        "size_t differs_ = 0;",
        "size_t differs_ = 1;",
        "Where the comparison begins changes its speed alone.",
    ),
    (
        "board/engines/rtl/counters.hpp",
        "if (latency > latency_max) latency_max = latency;",
        "if (latency >= latency_max) latency_max = latency;",
        "An equal number takes the place of itself.",
    ),
    (
        "board/engines/rtl/pl.hpp",
        "bool active = true;",
        "bool active = false;",
        "The first cycle looks at who is active before it steps.",
    ),
    (
        "board/engines/rtl/pl.hpp",
        "size_t at = ~size_t(0);  // the unit being evaluated, if any, for reports of failures",
        "size_t at = ~size_t(1);  // the unit being evaluated, if any, for reports of failures",
        "Any number that no unit has says that it was none.",
    ),
    *(
        (
            "board/engines/rtl/pl.hpp",
            "static constexpr uint64_t kFirstSlice = 16'384, kSilence = 1u << 25;",
            f"static constexpr uint64_t kFirstSlice = 16'384, kSilence = {limit};",
            "What computes for so many million cycles and gives no sign is a guess as well.",
        )
        for limit in ("1u << 24", "1u << 26", "2u << 25")
    ),
    *(
        (
            "board/engines/rtl/pl.hpp",
            "static constexpr unsigned kTurns = 128;  // it gets the processor before a nap",
            f"static constexpr unsigned kTurns = {turns};  // it gets the processor before a nap",
            "How often the processor is given away before a nap takes no cycle.",
        )
        for turns in (127, 129)
    ),
    *(
        (
            "board/engines/rtl/pl.hpp",
            "if (now - worked > kFreezeNs || now - begin > kPatienceNs) {",
            f"if (now - worked {freeze} kFreezeNs || now - begin {patience} kPatienceNs) {{",
            "A nanosecond of 10 ms, or of 5 s.",
        )
        for freeze, patience in ((">", ">="), (">=", ">"))
    ),
    (
        "board/engines/rtl/pl.hpp",
        "if (!waits && waiting_since != Unit::kNever && cycle >= slice_end_)",
        "if (!waits && waiting_since != Unit::kNever && cycle > slice_end_)",
        "At the end of a slice the board was last told that the unit runs.",
    ),
    *(
        ("board/engines/rtl/pl.hpp", f"{name} = -1;{rest}", f"{name} = -2;{rest}", _SET_FIRST)
        for name, rest in (
            ("int done_fd", "    // rung when a run ended or the interrupt output changed"),
            ("int answer_fd", "  // rung when a request was answered"),
            ("int bell_fd", ""),
        )
    ),
    (
        "board/engines/rtl/unit.hpp",
        "uint32_t word_ = 0, moved_port_ = ~0u;",
        "uint32_t word_ = 1, moved_port_ = ~0u;",
        "serve() sets it with each request.",
    ),
    (
        "board/engines/rtl/pl.hpp",
        "if (ppoll(&bell, 1, &limit, nullptr) <= 0) return;",
        "if (ppoll(&bell, 1, &limit, nullptr) < 0) return;",
        "Reading a bell that nobody has rung waits for nothing and changes nothing.",
    ),
    *(
        (
            f"board/engines/{file}",
            f"constexpr size_t bytes = 64 * 1024;{comment}",
            f"constexpr size_t bytes = {size};{comment}",
            "A signal stack of some bytes more or fewer serves as well.",
        )
        for file, comment in (
            ("rtl/main.cpp", ""),
            ("engine_process.hpp", ""),
            ("engine_process.hpp", "  // a signal stack of its own, to report stack overflow"),
        )
        for size in ("63 * 1024", "65 * 1024", "64 * 1023", "64 * 1025")
    ),
    *(
        (
            "board/engines/rtl/checker.hpp",
            "constexpr int kModels = 8, kReset = 16, kAfter = 32;",
            f"constexpr int kModels = {number}, kReset = 16, kAfter = 32;",
            "One more or one fewer that begins with random values.",
        )
        for number in (7, 9)
    ),
    (
        "board/engines/rtl/stream_port.hpp",
        "if (pin.width <= 64) {",
        "if (pin.width <= 63) {",
        "The first 64 bits are copied as they are.",
    ),
    *(
        (
            "board/engines/rtl/waves.hpp",
            "static constexpr uint64_t kSpare = 1u << 20, kLittle = 64u << 10;",
            f"static constexpr uint64_t kSpare = 1u << 20, kLittle = {little};",
            "How often the length of a file is looked at does not change what is in it.",
        )
        for little in ("63u << 10", "65u << 10", "64u << 9", "64u << 11")
    ),
    *(
        (
            "board/engines/rtl/compat/lz4.h",
            "constexpr int kBits = 12, kMinMatch = 4;",
            f"constexpr int kBits = {bits}, kMinMatch = 4;",
            "Another table finds other repetitions: any of them is right.",
        )
        for bits in (11, 13)
    ),
    (
        "board/engines/axi_fifo.cpp",
        'if (ring == MAP_FAILED) engine.fault(0, "cannot map a stream");',
        'if (ring == MAP_FAILED) engine.fault(1, "cannot map a stream");',
        "The board made the memory: it is there to be mapped.",
    ),
    (
        "diagnosis/causes",
        "return (channel.requested or 0) > channel.max_bytes",
        "return (channel.requested or 1) > channel.max_bytes",
        "The shortest length register, of 8 bits, holds 255.",
    ),
    (
        "ops/conv",
        "memory.note_write(buffer)",
        "pass",
        "The buffer is the function's own, and nothing is kept for it that a count could make old.",
    ),
    (
        "ops/conv",
        "for tile, count in zip(tiles(geometry), counts, strict=True):",
        "for tile, count in zip(tiles(geometry), counts, strict=False):",
        "There is a count for each tile.",
    ),
    (
        "ops/conv",
        "missing=True,",
        "missing=False,",
        "The offer is asked only where a unit of KERNELS is loaded, and then it is not missing.",
    ),
    (
        "board/ip/axi_vdma",
        'width = integer(ip, f"C_M_AXI_{name}_DATA_WIDTH", 32) // 8',
        'width = integer(ip, f"C_M_AXI_{name}_DATA_WIDTH", 33) // 8',
        "A bit more than four bytes is no byte.",
    ),
    (
        "board/register_array",
        'word = bytearray(bus.read(address & ~3).to_bytes(4, "little"))',
        'word = bytearray(bus.read(address & ~3).to_bytes(5, "little"))',
        "A fifth byte of 0 above the word changes no number that is made of it.",
    ),
    (
        "board/engine",
        "registers_nbytes: int = 4096,",
        "registers_nbytes: int = 4095,",
        "The registers take whole pages.",
    ),
    (
        "board/ip/dma_mover",
        "4096,",
        "4095,",
        "The registers take whole pages.",
    ),
    (
        "board/engine",
        "self.done_fd = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)",
        "self.done_fd = os.eventfd(1, os.EFD_CLOEXEC | os.EFD_NONBLOCK)",
        "spawn() empties it before anything reads it.",
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
        "registers = zip(self._tcsr, self._tlr, strict=True)",
        "registers = zip(self._tcsr, self._tlr, strict=False)",
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
        "board/engines/rtl/compat/lz4.h",
        "int table[1 << kBits];",
        "int table[2 << kBits];",
        "Its upper half is never looked at.",
    ),
    (
        "board/engines/rtl/compat/lz4.h",
        "std::memset(table, -1, sizeof table);",
        "std::memset(table, -2, sizeof table);",
        "Any negative number says that there is no position.",
    ),
    (
        "board/engines/rtl/main.cpp",
        "Pl::ring(slot.answer_fd);",
        ";",
        "A program that waits for an answer looks at the page every 100 ms by itself.",
    ),
    (
        "board/engines/rtl/memory.hpp",
        "slot_ += (start - refresh_) / preset_.refresh_every_ps - 1;",
        "slot_ += (start - refresh_) / preset_.refresh_every_ps - 2;",
        "The loop passes over one refresh more, which has ended; a burst takes the same cycles.",
    ),
    (
        "board/handoff_ranges",
        "if reaching is None or before[0].end > reaching[0].end:",
        "if reaching is None or (before[0].end >= reaching[0].end):",
        "Of two ranges with one end, which is an error unless they are of one interface.",
    ),
)
