"""What a program does with pynq's own remote client, unmodified: run with the server's port."""

from __future__ import annotations

import os
import sys

os.environ["PYNQ_REMOTE_DEVICES"] = "127.0.0.1"

import numpy as np
import pynq
from pynq.pl_server.remote_device import RemoteDevice

device = RemoteDevice(0, "127.0.0.1", int(sys.argv[2]))
pynq.Device.active_device = device


def add(overlay: str, count: str) -> None:
    loaded = pynq.Overlay(overlay)
    a, b, c = (pynq.allocate((int(count),), "f4") for _ in range(3))
    a[:], b[:] = np.arange(int(count)), 0.5
    a.flush()
    b.flush()
    registers = loaded.vadd_0.register_map
    registers.a_1, registers.b_1 = a.device_address, b.device_address
    registers.c_1, registers.n = c.device_address, int(count)
    registers.CTRL.AP_START = 1
    while not registers.CTRL.AP_DONE:
        pass
    c.invalidate()
    print(device.name, device.arch, c.tolist() == [i + 0.5 for i in range(int(count))])


def stream(overlay: str) -> None:
    dma = pynq.Overlay(overlay).axi_dma_0
    kernel = pynq.Overlay(overlay, download=False).packetize_0
    sent, received = (pynq.allocate((8,), "u4") for _ in range(2))
    sent[:] = range(8)
    kernel.write(0x10, 8)
    kernel.write(0x18, 8)
    kernel.write(0x0, 1)
    dma.recvchannel.transfer(received)
    dma.sendchannel.transfer(sent)
    while not dma.recvchannel.idle:
        pass
    received.invalidate()
    print(received.tolist())


def hold() -> None:
    kept = [pynq.allocate((1 << 20,), "u1") for _ in range(3)]
    print(len(kept), flush=True)
    while True:
        for one in kept:
            one.flush()


{"add": add, "stream": stream, "hold": hold}[sys.argv[1]](*sys.argv[3:])
