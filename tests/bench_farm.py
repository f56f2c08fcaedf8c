"""What a farm of boards costs a job: empty jobs on processes of this PC, for ``make bench``."""

from __future__ import annotations

import os
import time

from pynq_torch.remote import farm

JOBS = 200


def nothing(item: int) -> int:
    """Return the item."""
    return item


def overhead(workers: int) -> float:
    """Return the seconds an empty job takes, with so many workers, a new board a job included."""
    from distributed import Client, LocalCluster

    resources = {farm.BOARD: 1}
    with (
        LocalCluster(
            n_workers=workers, threads_per_worker=1, resources=resources, dashboard_address=None
        ) as cluster,
        Client(cluster) as client,
    ):
        client.wait_for_workers(workers, timeout=300)
        list(farm.results(client, nothing, range(2 * workers)))  # imports, in each of them
        begin = time.perf_counter()
        list(farm.results(client, nothing, range(JOBS)))
        return (time.perf_counter() - begin) / JOBS


def results() -> list[tuple[int, float]]:
    """Return ``(workers, seconds a job)``."""
    os.environ.pop("PYNQ_TORCH_BOARD", None)
    return [(workers, overhead(workers)) for workers in (1, 8, 32)]
