// The PL process: reads what the overlay consists of, and gives it a clock.
//
// The board starts it with one argument, the descriptor of a text of lines, fields separated by
// tabs (pynq_torch/board/rtl/process.py writes it). Everything else is in shared memory: see
// layout.hpp.
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <new>
#include <pthread.h>
#include <string>
#include <sys/mman.h>
#include <sys/stat.h>
#include <ucontext.h>
#include <vector>

#include "../children.hpp"
#include "pl.hpp"

namespace {

using namespace pynq_torch;
using namespace pynq_torch::rtl;

Pl g_pl;
// Row of the table of ports -> its name, and whose it is.
struct PortRow {
    std::string name;
    size_t unit;
};
std::vector<PortRow> g_ports;

[[noreturn]] void die(const std::string& text) {
    std::fprintf(stderr, "PL: %s\n", text.c_str());
    _exit(71);
}

// What the page says of the fault is complete.
void say_fault(PlPage& page) {
    page.state.store(kPlFault, std::memory_order_release);
    for (const Slot& slot : g_pl.slots) {
        Pl::ring(slot.done_fd);
        Pl::ring(slot.answer_fd);
    }
}

[[noreturn]] void fail(FaultKind kind, size_t unit, const std::string& port, const std::string& text) {
    PlPage& page = *g_pl.page;
    page.fault_kind = kind;
    page.fault_unit = uint32_t(unit);
    page.fault_cycle = g_pl.cycle;
    std::snprintf(page.fault_port, sizeof page.fault_port, "%s", port.c_str());
    std::snprintf(page.message, sizeof page.message, "%s", text.c_str());
    page.cycle.store(g_pl.cycle);
    for (const Slot& slot : g_pl.slots)
        if (slot.unit) slot.unit->cut(g_pl.cycle);
    say_fault(page);
    g_pl.close();
    std::fflush(nullptr);
    end_with_children(70);
}

// A model that crashes: nothing but plain stores from here.
void on_signal(int signal, siginfo_t* info, void*) {
    PlPage& page = *g_pl.page;
    page.fault_kind = kCrash;
    page.fault_signal = uint32_t(signal);
    page.fault_unit = uint32_t(g_pl.at);
    page.fault_cycle = g_pl.cycle;
    page.fault_address = uint64_t(reinterpret_cast<uintptr_t>(info->si_addr));
    say_fault(page);
    end_with_children(70);
}

void install_handlers() {
    constexpr size_t bytes = 64 * 1024;
    stack_t alternate{};
    alternate.ss_sp = std::malloc(bytes);
    alternate.ss_size = bytes;
    sigaltstack(&alternate, nullptr);
    struct sigaction action {};
    action.sa_sigaction = on_signal;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESETHAND;
    for (const int s : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT}) sigaction(s, &action, nullptr);
}

// The board may die without a word (kill -9): the read end then reports end of file.
void watch_life(int fd) {
    pthread_t watcher;
    pthread_create(&watcher, nullptr, [](void* at) -> void* {
        char byte;
        while (read(int(reinterpret_cast<intptr_t>(at)), &byte, 1) < 0 && errno == EINTR) {}
        end_with_children(0);
    }, reinterpret_cast<void*>(intptr_t(fd)));
    pthread_detach(watcher);
}

void* map_shared(int fd, uint64_t bytes) {
    void* p = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (p == MAP_FAILED) die("cannot map shared memory");
    return p;
}
void* map_whole(int fd) {
    struct stat st {};
    if (fstat(fd, &st) != 0) die("cannot stat shared memory");
    return map_shared(fd, uint64_t(st.st_size));
}

using Fields = std::vector<std::string>;

std::vector<Fields> read_setup(int fd) {
    std::string text;
    char part[4096];
    for (ssize_t n; (n = pread(fd, part, sizeof part, off_t(text.size()))) > 0;) text.append(part, size_t(n));
    std::vector<Fields> lines;
    for (size_t begin = 0, end; (end = text.find('\n', begin)) != std::string::npos; begin = end + 1) {
        Fields fields;
        for (size_t from = begin; from <= end;) {
            const size_t to = std::min(text.find('\t', from), end);
            fields.push_back(text.substr(from, to - from));
            from = to + 1;
        }
        lines.push_back(fields);
    }
    return lines;
}

// What the lines say that comes before the units.
struct Setup {
    std::map<std::string, std::string> values;
    std::vector<void*> rings;
    TraceRing* trace = nullptr;

    const std::string& operator[](const std::string& key) const {
        const auto found = values.find(key);
        if (found == values.end()) die("the setup has no " + key);
        return found->second;
    }
    bool has(const std::string& key) const { return values.count(key) != 0; }
    uint64_t number(const std::string& key) const { return std::strtoull((*this)[key].c_str(), nullptr, 10); }
    double real(const std::string& key) const { return std::strtod((*this)[key].c_str(), nullptr); }
};

uint64_t number(const Fields& f, size_t i) { return std::strtoull(f.at(i).c_str(), nullptr, 10); }
int integer(const Fields& f, size_t i) { return int(std::strtol(f.at(i).c_str(), nullptr, 10)); }

void make_memory(const Setup& setup, const std::vector<Fields>& lines) {
    g_pl.map = std::make_unique<MemoryMap>(setup.number("guard") != 0, setup.number("silicon") != 0);
    for (const Fields& f : lines)
        if (f[0] == "window") g_pl.map->add_window(number(f, 1), number(f, 2), integer(f, 4), number(f, 3));
    g_pl.map->use_grants(map_whole(int(setup.number("grants"))));
    const Preset* model = preset(setup["memory"]);
    if (!model) die("there is no memory model " + setup["memory"]);
    g_pl.memory = std::make_unique<Memory>(*g_pl.map, *model, setup.real("clock_hz"), setup.real("stalls"),
                                           setup.number("seed"));
}

// Notes a port of the last unit, and returns its row: they come in the order of the table.
uint16_t row(const std::string& port) {
    g_ports.push_back({g_pl.slots.back().unit->name() + "." + port, g_pl.slots.size() - 1});
    return uint16_t(g_ports.size() - 1);
}

void make_stream(const Setup& setup, Unit& unit, const Fields& f) {
    const bool out = f.at(2) == "out", local = integer(f, 4) != 0;
    const int hp = integer(f, 5), peer_fd = integer(f, 6);
    const uint16_t index = row(f[1]);
    const std::string& name = g_ports[index].name;
    void* ring = setup.rings.at(number(f, 3));
    const Chance stalls(setup.number("seed") * 1024 + 512 + index, setup.real("stalls"));
    std::unique_ptr<DmaFlow> flow;
    if (hp >= 0) flow = std::make_unique<DmaFlow>(*g_pl.memory, hp, !out);
    const StreamMeter meter(g_pl.counters, setup.trace, index, !out);
    const void* peer = peer_fd >= 0 ? map_whole(peer_fd) : nullptr;
    const int number_of = int(unit.streams().size());
    std::unique_ptr<StreamPort> port;
    if (out)
        port = std::make_unique<StreamSink>(unit.pins(), f[1], name, number_of, local, ring, stalls,
                                           std::move(flow), meter);
    else
        port = std::make_unique<StreamSource>(unit.pins(), f[1], name, number_of, local, ring, stalls,
                                          std::move(flow), meter);
    port->watch(peer);
    unit.add(std::move(port), f[1]);
}

void make_units(const Setup& setup, const std::vector<Fields>& lines) {
    auto* boxes = reinterpret_cast<UnitBox*>(g_pl.page + 1);
    for (const Fields& f : lines) {
        const std::string& what = f[0];
        if (what == "unit") {
            g_pl.slots.emplace_back();
            Slot& slot = g_pl.slots.back();
            slot.done_fd = integer(f, 3);
            slot.answer_fd = integer(f, 4);
            slot.unit = std::make_unique<Unit>(f.at(1), f.at(2), boxes + (g_pl.slots.size() - 1),
                                               uint32_t(setup.number("seed")), uint32_t(setup.number("fill")),
                                               uint32_t(setup.number("history")), setup.number("timeout_cycles"));
            slot.unit->follow(&g_pl.waiting_since);
            continue;
        }
        if (g_pl.slots.empty()) continue;
        Unit& unit = *g_pl.slots.back().unit;
        if (what == "clock") unit.set_clock(f.at(1));
        if (what == "reset") unit.add_reset(f.at(1), integer(f, 2) != 0);
        if (what == "alias") unit.add_alias(f.at(1), f.at(2));
        if (what == "constant") unit.set_constant(f.at(1), number(f, 2));
        if (what == "interrupt") unit.set_interrupt(f.at(1));
        if (what == "control") unit.set_control(number(f, 1));
        if (what == "lite") {
            const uint16_t index = row(f.at(1));
            unit.add(std::make_unique<LiteManager>(unit.pins(), f[1], g_ports[index].name, index, setup.trace),
                     f[1]);
        }
        if (what == "axi") {
            const uint16_t index = row(f.at(1));
            unit.add(std::make_unique<AxiPort>(unit.pins(), f[1], *g_pl.memory, integer(f, 2), index,
                                               g_ports[index].name, g_pl.counters, setup.trace),
                     f[1]);
        }
        if (what == "stream") make_stream(setup, unit, f);
    }
}

[[noreturn]] void stray() {
    const AccessFault& access = g_pl.memory->fault;
    PlPage& page = *g_pl.page;
    page.fault_address = access.address;
    page.fault_access = access.write ? 2 : 1;
    page.fault_physical = 1;
    page.fault_response = 3;
    const PortRow& port = g_ports.at(access.port);
    fail(kAccess, port.unit, port.name, access.kind == AccessFault::outside ? "outside" : "guard");
}

void read_ahead() {
    AccessFault& access = g_pl.memory->read_ahead;
    g_pl.slots[g_ports.at(access.port).unit].unit->box().read_ahead.store(access.address);
    access = {};
}

}  // namespace

int main(int argc, char** argv) {
    if (argc != 2) die("the PL is started by the board, not by hand");
    const auto lines = read_setup(std::atoi(argv[1]));
    Setup setup;
    for (const Fields& f : lines) {
        if (f.size() == 2) setup.values.emplace(f[0], f[1]);
        if (f[0] == "ring") setup.rings.push_back(map_whole(integer(f, 1)));
    }
    char* shared = static_cast<char*>(map_whole(int(setup.number("page"))));
    g_pl.page = reinterpret_cast<PlPage*>(shared);
    if (g_pl.page->magic != kPlMagic || g_pl.page->version != kPlVersion) die("the page has another layout");
    g_pl.bell_fd = int(setup.number("bell"));
    adopt_orphans();
    watch_life(int(setup.number("life")));
    install_handlers();
    char* const counters = shared + g_pl.page->counters_at;
    char* const trace = shared + g_pl.page->trace_at;
    if (setup.has("cycle")) {  // it takes the place of another process, and counts on from there
        g_pl.cycle = setup.number("cycle");
        g_pl.counters = reinterpret_cast<CounterTable*>(counters);
        setup.trace = reinterpret_cast<TraceRing*>(trace);
    } else {
        g_pl.counters = new (counters) CounterTable(uint32_t(setup.number("ports")));
        setup.trace = new (trace) TraceRing(uint32_t(setup.number("trace")));
    }
    try {
        make_memory(setup, lines);
        make_units(setup, lines);
        if (setup.number("check")) {
            for (g_pl.at = 0; g_pl.at < g_pl.slots.size(); ++g_pl.at) g_pl.slots[g_pl.at].unit->check_reset();
        }
    } catch (const ProtocolError& error) {
        fail(kProtocol, g_pl.at, error.port, error.text);
    } catch (const std::exception& error) {
        fail(kSetup, g_pl.slots.empty() ? ~size_t(0) : g_pl.slots.size() - 1, "", error.what());
    }
    g_pl.on_stray = stray;
    g_pl.on_read_ahead = read_ahead;
    try {
        g_pl.run();
    } catch (const ProtocolError& error) {
        fail(kProtocol, g_pl.at, error.port, error.text);
    } catch (const RunTimeout& error) {
        fail(kTimeout, g_pl.at, "", error.what());
    } catch (const std::exception& error) {
        fail(kModel, g_pl.at, "", error.what());
    }
}
