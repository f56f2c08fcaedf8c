"""Reports: notebooks executed without a browser, the numbers they record, runs compared.

A notebook needs `record` and nothing else of this package:

>>> from pynq_torch import report
>>> report.record("vadd/cycles", 1234, "cycles", "model")
recorded vadd/cycles = 1234 cycles (model)
"""

from __future__ import annotations

from .records import Record, ReportError, record, record_run, records_of

__all__ = ["Record", "ReportError", "record", "record_run", "records_of"]
