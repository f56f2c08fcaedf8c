"""``MMIO.array`` on the virtual board behaves as the array over /dev/mem does."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

from pynq_torch.board.bus import Bus, IpModel
from pynq_torch.board.handoff import IpInstance
from pynq_torch.board.register_array import RegisterArray
from pynq_torch.errors import BoardError, BusError


class Recorder(IpModel):
    """Registers that read back, with a log of the accesses."""

    def __init__(self):
        super().__init__(None, IpInstance("ip", "x:y:z:1.0"))
        self.words = {}
        self.log = []

    def read(self, offset, slave=""):
        self.log.append(("r", offset))
        return self.words.get(offset, 0)

    def write(self, offset, value, slave=""):
        self.log.append(("w", offset, value))
        self.words[offset] = value


@pytest.fixture
def ip():
    return Recorder()


@pytest.fixture
def array(ip):
    bus = Bus()
    bus.attach(0x4000_0000, 0x1000, ip, "", "ip")
    return RegisterArray.over(bus, 0x4000_0000, 0x100, None)


def test_one_access_is_one_bus_access(array, ip):
    array[4] = 7
    assert array[4] == 7 and isinstance(array[4], np.uint32)
    assert ip.log[:2] == [("w", 16, 7), ("r", 16)]


def test_methods_of_numpy_read_registers_too(array, ip):
    ip.words[12] = 103
    assert array.item(3) == array.reshape(8, 8).item(0, 3) == array.flat[3] == 103
    assert int(array[3:4]) == array[3:4].item() == array.flatten()[3] == array.take([3])[0] == 103
    assert array[3:4] and array.argmax() == 3 and copy.deepcopy(array)[3] == 103
    assert pickle.loads(pickle.dumps(array))[3] == 103
    ip.log.clear()
    array.item(3)
    assert ip.log == [("r", 12)]


@pytest.mark.parametrize(
    "write",
    [
        lambda a: np.asarray(a).__setitem__(1, 9), lambda a: a.itemset(1, 9),
        lambda a: a.put([1], 9), lambda a: np.place(a, a == 0, 9),
        lambda a: np.add.at(a, 1, 9), lambda a: np.clip(a, 9, 9, out=a),
    ],
)  # fmt: skip
def test_what_cannot_write_a_register_is_an_error(array, ip, write):
    with pytest.raises((ValueError, TypeError), match="read-only|NotImplemented"):
        write(array)
    assert not ip.words
    array[:2].fill(9)
    assert ip.words == {0: 9, 4: 9}


def test_negative_index_and_bounds(array, ip):
    array[-1] = 3
    assert ip.words == {0xFC: 3}
    with pytest.raises(IndexError, match="index 64 is out of bounds for axis 0 with size 64"):
        array[64]
    array[-64] = 5
    array.view(np.int32)[-64] += 1
    assert ip.words[0] == 6 and array[-64] == 6
    array[np.int64(0)] = 8
    assert array[np.int64(0)] == 8 and list(ip.words) == [0xFC, 0]
    rows = array.reshape(8, 8)
    rows[1] = 4
    rows[2, 1] = 5
    assert rows[1].tolist() == [4] * 8 and rows[2, 1] == ip.words[4 * 17] == 5
    for index in (-65, 64):
        with pytest.raises(IndexError, match=f"index {index} is out of bounds"):
            array[index] = 1


def test_slices_write_in_order_and_read_nothing(array, ip):
    array[2:5] = [1, 2, 3]
    assert ip.log == [("w", 8, 1), ("w", 12, 2), ("w", 16, 3)]
    ip.log.clear()
    part = array[2:5]
    assert ip.log == []  # a slice is a view: the registers are read when its elements are
    assert part[1] == 2 and part.tolist() == [1, 2, 3]
    assert (part + 1).tolist() == [2, 3, 4]
    array[0:8:4] = 9
    assert ip.words[0] == ip.words[16] == 9


def test_a_slice_of_words_goes_in_one_piece_and_in_order(array, ip):
    array[2:5] = np.array([1, 2, 0xFFFFFFFF], np.uint32)
    assert ip.log == [("w", 8, 1), ("w", 12, 2), ("w", 16, 0xFFFFFFFF)]
    ip.log.clear()
    array[-2:] = np.array([[7, 8], [9, 10]], np.uint32)[:, 1]  # not side by side in memory
    array[6:6] = np.zeros(0, np.uint32)
    assert ip.log == [("w", 0xF8, 8), ("w", 0xFC, 10)]
    with pytest.raises(ValueError, match="broadcast"):
        array[2:5] = np.zeros(2, np.uint32)
    ip.log.clear()
    array[2:8:3] = np.array([3, 4], np.uint32)
    assert ip.log == [("w", 8, 3), ("w", 20, 4)]
    with pytest.raises(ValueError, match="broadcast"):
        array[2:4:2] = np.zeros(2, np.uint32)  # one register, two words


def test_a_register_has_32_bits(array, ip):
    array[0] = -1  # as programs write "all ones"
    array[1] = 0x1_2345_6789
    assert ip.words == {0: 0xFFFF_FFFF, 4: 0x2345_6789}


def test_a_slice_into_the_next_ip_goes_to_both():
    first, second = Recorder(), Recorder()
    bus = Bus()
    bus.attach(0x4000_0000, 0x1000, first, "", "first")
    bus.attach(0x4000_1000, 0x1000, second, "", "second")
    pieces = []
    for ip in (first, second):  # as an IP that takes blocks at once sees them
        ip.write_block = lambda offset, words, slave="": pieces.append((offset, list(words)))
    array = RegisterArray.over(bus, 0x4000_0FF0, 0x20, None)
    array[2:6] = np.arange(1, 5, dtype=np.uint32)
    assert first.words == {0xFF8: 1, 0xFFC: 2} and second.words == {0: 3, 4: 4}
    array[:4] = np.arange(5, 9, dtype=np.uint32)  # up to the last register, and in one piece
    assert pieces == [(0xFF0, [5, 6, 7, 8])]


def test_a_slice_beyond_the_ip_is_an_error(ip):
    bus = Bus()
    bus.attach(0x4000_0000, 0x1000, ip, "", "ip")
    array = RegisterArray.over(bus, 0x4000_0FF8, 0x10, None)
    with pytest.raises(BusError, match="no IP answers at physical address 0x40001000"):
        array[:] = np.arange(4, dtype=np.uint32)
    assert ip.log == [("w", 0xFF8, 0), ("w", 0xFFC, 1)]


def test_views_of_another_dtype(array, ip):
    array[0] = np.float32(1.5).view(np.uint32)
    assert array.view(np.float32)[0] == 1.5
    array.view(np.float32)[1] = -2.0
    assert ip.words[4] == int(np.float32(-2.0).view(np.uint32))
    array.view(np.uint64)[1] = 0x1122334455667788
    assert (ip.words[8], ip.words[12]) == (0x55667788, 0x11223344)
    assert array.view(np.uint64)[1] == 0x1122334455667788
    array.view(np.uint8)[5] = 0xAB
    assert ip.words[4] == 0xC000AB00  # the other lanes stay
    assert array.view(np.uint16)[2] == ip.words[4] & 0xFFFF
    assert array.view(np.uint16)[3] == ip.words[4] >> 16
    assert array.view(np.uint8)[5] == 0xAB


def test_numpy_functions_go_over_the_bus(array, ip):
    np.copyto(array[0:3], np.array([4, 5, 6], np.uint32))
    assert [ip.words[i] for i in (0, 4, 8)] == [4, 5, 6]
    assert np.array_equal(array[0:3], [4, 5, 6])
    assert np.concatenate([array[0:2], array[2:3]]).tolist() == [4, 5, 6]
    assert list(array[0:3]) == [4, 5, 6]
    assert array[0:3].astype(float).sum() == 15
    array[0:3] += 1
    assert array[[0, 2]].tolist() == [5, 7]


def test_small_ranges_in_one_page_each_answer_for_themselves():
    models, bus = [Recorder() for _ in range(3)], Bus()
    for i, model in enumerate(models):
        bus.attach(0x4000_0000 + 0x10 * i, 0x10, model, f"s{i}", f"ip{i}")
    for i in range(3):
        bus.write(0x4000_000C + 0x10 * i, i + 1)
        assert bus.read(0x4000_000C + 0x10 * i) == i + 1
        assert bus.find(0x4000_000F + 0x10 * i).slave == f"s{i}"
    assert [model.words for model in models] == [{12: 1}, {12: 2}, {12: 3}]
    assert bus.accesses == 6
    with pytest.raises(BusError, match="ip2 0x40000020-0x4000002f"):
        bus.read(0x4000_0030)


def test_what_is_kept_of_an_overlay(array, ip):
    bus, other = array._bus, Recorder()
    bus.attach(0x4000_1000, 0x1001, other, "", "other")
    assert bus.find(0x4000_2000).model is other
    bus.clear(keep=[ip])
    bus.write(0x4000_0004, 5)
    assert ip.words == {4: 5}
    for address in (0x4000_1000, 0x4000_2000):
        with pytest.raises(BusError, match="The address map has: ip 0x40000000-0x40000fff.$"):
            bus.read(address)
    bus.clear()
    with pytest.raises(BusError, match="The address map has: nothing.$"):
        bus.read(0x4000_0004)
    bus.gone = "belongs to a board that was closed"
    with pytest.raises(BoardError, match="0x40000004 belongs to a board that was closed; call"):
        bus.read(0x4000_0004)


def test_a_copy_of_the_memory_is_off_the_bus(array, ip):
    apart = np.ndarray.copy(array)
    apart[0:2] = 5
    apart[3] = 6
    assert apart[:4].tolist() == [5, 5, 0, 6]
    assert ip.log == []


def test_nothing_answers(array):
    with pytest.raises(
        BusError, match=r"no IP answers at physical address 0x50000000.*ip 0x40000000-0x40000fff"
    ):
        array._bus.read(0x5000_0000)


def test_all_elements_are_read_where_an_ordinary_array_is_asked_for(array):
    part = array[:4]
    part[:] = [1, 2, 3, 4]
    same = np.array([1, 2, 3, 4], np.uint32)
    assert list(part) == part.tolist() == [1, 2, 3, 4]
    for found in (part.copy(), part.astype("u4")):
        assert type(found) is np.ndarray and np.array_equal(found, same)
    assert part.tobytes() == same.tobytes()
    assert (repr(part), str(part)) == (repr(same), str(same))


def test_a_model_takes_the_place_of_the_one_with_its_range(ip):
    bus, other = Bus(), Recorder()
    bus.attach(0x4000_0000, 0x1000, ip, "", "ip")
    bus.attach(0x4000_1000, 0x800, ip, "", "beside")  # two in one page
    bus.attach(0x4000_1800, 0x800, ip, "", "behind")
    for base, nbytes in ((0x4000_0000, 0x1000), (0x4000_1000, 0x800)):
        bus.attach(base, nbytes, other, "", "other")
        bus.write(base + 8, 9)
        assert other.log.pop() == ("w", 8, 9)
        assert [r.model for r in bus.regions if r.base == base] == [other]
    bus.write(0x4000_1808, 5)
    assert ip.log == [("w", 8, 5)] and len(bus.regions) == 3
    assert repr(ip) == "<Recorder ip>"
    with pytest.raises(NotImplementedError, match="ip takes no interrupts"):
        ip.set_input(0, True)
