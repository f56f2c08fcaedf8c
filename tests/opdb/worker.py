"""A process that checks operators: requests on stdin, one JSON line a check on stdout.

An argument names an overlay to load first.
"""

from __future__ import annotations

import faulthandler
import json
import os
import sys
import time
import traceback
import warnings
from typing import Any, TextIO


def _case(op: Any, column: str) -> dict[str, Any]:
    """Run one check, and again as its exclusion allows where it has one."""
    from .compare import Values
    from .exclusions import Allowed, exclusion_of

    began = time.perf_counter()
    entry = exclusion_of(op.full_name, column)
    allowed = entry.allowed if entry else None
    outcome = _outcome(op, column, Values.EXACT)
    case: dict[str, Any] = {"samples": outcome.samples, "raised": outcome.raised, "allowed": ""}
    failures = outcome.failures
    if allowed is Allowed.ANY_VALUES:
        failures = _outcome(op, column, Values.IGNORED).failures
        if not op.has_nondeterministic_output:
            failures.append("PyTorch's table does not call it undetermined: take the entry out")
    elif allowed in (Allowed.VARIATION, Allowed.ROUNDING):
        # Another CPU's instructions may round both formulas alike: that is no defect of the table.
        failures = _outcome(op, column, Values.CLOSE).failures
    elif allowed is Allowed.FAILURE:
        rotten = not failures and outcome.samples
        failures = ["passes in full: take it out of the exclusions"] if rotten else []
    if allowed and outcome.samples:
        case["allowed"] = allowed.value
    case |= {"failed": len(failures), "failures": failures[:3]}
    return case | {"seconds": time.perf_counter() - began}


def _outcome(op: Any, column: str, values: Any) -> Any:
    from .checks import CHECKS, Outcome, applies

    try:
        return CHECKS[column](op, values) if applies(op, column) else Outcome()
    except Exception:  # noqa: BLE001  a defect of the check itself is reported with its case
        return Outcome(failures=["the check itself: " + traceback.format_exc()[-1500:]])


def _serve(requests: TextIO, answers: TextIO, overlay: str) -> None:
    import torch

    torch.set_num_threads(1)
    # Results may depend on the number of threads, and time on their switching.
    warnings.simplefilter("ignore")
    from torch.testing._internal.common_methods_invocations import op_db

    if overlay:
        import pynq_torch

        pynq_torch.use_board("csim")
        pynq_torch.load(overlay)
    by_name = {op.full_name: op for op in op_db}
    print(json.dumps({"operators": list(by_name)}), file=answers, flush=True)
    for line in requests:
        request = json.loads(line)
        for column in request["columns"]:
            case = _case(by_name[request["operator"]], column)
            print(json.dumps({"column": column, **case}), file=answers, flush=True)


if __name__ == "__main__":
    faulthandler.enable()
    # What an operator prints must not look like an answer.
    channel = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    _serve(sys.stdin, channel, "".join(sys.argv[1:]))
