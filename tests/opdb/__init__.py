"""PyTorch's own operator table, ``op_db``, run on device "pynq" against the CPU.

``python tests/opdb/table.py --write`` runs it and writes ``docs/conformance.md``;
``tests/test_op_db.py`` runs it and compares with that page.

The modules of ``torch.testing._internal`` change settings of the process that imports them
(hypothesis' profile, torch's backend flags), and an operator may end its process: so only the
worker processes import them.
"""
