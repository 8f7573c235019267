# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Check many video files in worker processes, which a decoder may crash."""
import multiprocessing as mp
import os
import time
from collections.abc import Callable, Iterator
from multiprocessing.connection import Connection, wait

from ...utils.printable import brief
from .find_fault import find_fault


def serve(tasks: Connection, every_frame: bool) -> None:
    """Run a worker: reply to each path with its fault, or an empty string."""
    # Silence decoders, which print to stderr.
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    while True:
        try:
            path = tasks.recv()
        except EOFError:
            return
        fault = find_fault(path, every_frame)
        tasks.send('' if fault is None else brief(fault))


class Worker:
    """Worker process that checks one file at a time."""

    def __init__(self, every_frame: bool) -> None:
        self.pipe, child_end = mp.Pipe()
        self.process = mp.Process(
            target=serve, args=(child_end, every_frame), daemon=True)
        self.process.start()
        child_end.close()

    def begin(self, path: str) -> None:
        self.path, self.began = path, time.monotonic()
        self.pipe.send(path)

    def stop(self) -> None:
        self.process.kill()
        self.process.join()
        self.pipe.close()


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
    pending = list(reversed(paths))
    workers = [Worker(every_frame) for _ in range(min(num_workers,
                                                      len(paths)))]
    for worker in workers:
        worker.begin(pending.pop())
    try:
        while workers:
            ready = wait([w.pipe for w in workers], timeout=0.2)
            for worker in list(workers):
                fault = None
                if worker.pipe in ready:
                    try:
                        fault = worker.pipe.recv()
                    except (EOFError, ConnectionError):
                        worker.process.join()
                        fault = ('it crashed the decoder (exit status '
                                 f'{worker.process.exitcode})')
                elif time.monotonic() - worker.began > timeout:
                    fault = f'TimeoutError: it took more than {timeout:g} s'
                    worker.process.kill()
                if fault is None:
                    continue
                tick()
                if fault:
                    yield worker.path, fault
                if not pending:
                    workers.remove(worker)
                    worker.stop()
                    continue
                if not worker.process.is_alive() or worker.pipe not in ready:
                    worker.stop()
                    workers.remove(worker)
                    worker = Worker(every_frame)
                    workers.append(worker)
                worker.begin(pending.pop())
    finally:
        for worker in workers:
            worker.stop()
