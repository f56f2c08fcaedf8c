"""Which class models which Xilinx IP, by the third field of the VLNV."""

from __future__ import annotations

from .bus import IpModel
from .ip.axi_bram import AxiBram
from .ip.axi_dma import AxiDma
from .ip.axi_gpio import AxiGpio
from .ip.axi_intc import AxiIntc
from .ip.axi_timer import AxiTimer

MODELS: dict[str, type[IpModel]] = {
    name: model
    for model in (AxiBram, AxiDma, AxiGpio, AxiIntc, AxiTimer)
    for name in model.vlnv_names
}
