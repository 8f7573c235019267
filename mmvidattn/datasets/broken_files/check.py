# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Check many video files in worker processes, which a decoder may crash."""
from collections.abc import Callable, Iterator
from functools import partial

from ...utils.worker_pool import WorkerPool
from .find_fault import find_fault


def check_file(path: str, every_frame: bool) -> None:
    """Raise the error of :func:`find_fault`, if any."""
    fault = find_fault(path, every_frame)
    if fault is not None:
        raise fault


def check_files(paths: list[str], num_workers: int, timeout: float,
                every_frame: bool = True,
                tick: Callable[[], object] = lambda: None
                ) -> Iterator[tuple[str, str]]:
    """Yield each bad file and its fault, in the order of completion.

    Args:
        paths: Video files.
        num_workers: Number of processes.
        timeout: Maximum seconds per file.
        every_frame: Decode every frame instead of only the last one.
        tick: Called after each file.
    """
    # Each worker process calls the outer partial to get its function.
    with WorkerPool(partial(partial, check_file, every_frame=every_frame),
                    num_workers, timeout=timeout, silent=True) as pool:
        for done in filter(None, pool.run(paths)):
            tick()
            if done.fault:
                yield done.item, done.fault
