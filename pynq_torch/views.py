"""How data is shown to a person: which room draws it, and whether controls are of use.

papermill, nbclient, nbval and nbconvert execute a notebook to keep it. Controls would stay in their
file as dead ones, and nbclient can wait for ever at the messages of an ``Output`` widget. None of
them says what it is, and the variables that a Jupyter server sets are inherited by a papermill that
is started from a cell. So the request itself is looked at, which only its sender writes.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Mapping
from importlib import import_module
from importlib.util import find_spec
from typing import Any

__all__ = ["STATIC", "VIEWS", "draw", "interactive", "sent_by_page", "static"]

#: ``1`` makes every view static, ``0`` gives every Jupyter kernel controls.
STATIC = "PYNQ_TORCH_STATIC"
#: A page that lets its server execute a cell names the cell with one of these.
_CELL_NAMES = ("cellId", "cell_id")
#: The ids that Python's jupyter_client gives its messages: SESSION_PROCESS_NUMBER, in early
#: versions SESSION_NUMBER. A browser and VS Code give a UUID.
_OF_A_PROGRAM = re.compile(r".+_\d+")


def interactive() -> bool:
    """Whether somebody could use a control now: a page asked for this cell, and has widgets."""
    if "ipykernel" not in sys.modules or find_spec("ipywidgets") is None:
        return False
    asked = static()
    return sent_by_page(_request()) if asked is None else not asked


def static() -> bool | None:
    """Whether `STATIC` asks for views, and output, that never change; None where it is not set."""
    chosen = os.environ.get(STATIC, "")
    return chosen != "0" if chosen else None


def sent_by_page(request: Mapping[str, Any]) -> bool:
    """Whether a request to a Jupyter kernel comes from a page, not from a program.

    Parameters
    ----------
    request : mapping
        The message as Jupyter's protocol has it, with ``header`` and ``metadata``; empty where
        the kernel runs something by itself.

    Returns
    -------
    bool
        True for JupyterLab, the classic Notebook, VS Code and other pages; False for whatever
        executes notebooks through Python's ``jupyter_client``, and for a console.
    """
    if any(name in request.get("metadata", {}) for name in _CELL_NAMES):
        return True
    name = str(request.get("header", {}).get("msg_id", ""))
    return bool(name) and _OF_A_PROGRAM.fullmatch(name) is None


def _request() -> Mapping[str, Any]:
    """Return the request that this Jupyter kernel is answering; empty outside of one."""
    from IPython.core.getipython import get_ipython

    kernel = getattr(get_ipython(), "kernel", None)
    return (kernel.get_parent() or {}) if kernel is not None else {}


#: View -> the function that draws it, imported at the first use; a program may put in its own.
VIEWS = {
    "bus": "pynq_torch.plot.bus:bus_timeline",
    "waves": "pynq_torch.widgets.wave_view:show",
}


def draw(view: str, data: Any, *args: Any, **options: Any) -> Any:
    """Draw data with a view.

    Parameters
    ----------
    view : str
        A key of `VIEWS`.
    data : object
        What the view draws.
    *args, **options
        Of the view's function.
    """
    module, _, function = VIEWS[view].partition(":")
    return getattr(import_module(module), function)(data, *args, **options)
