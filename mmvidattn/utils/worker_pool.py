# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Pool of worker processes for videos that may crash or block a decoder."""
import multiprocessing
import os
import signal
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from multiprocessing.connection import Connection, wait
from typing import Any, NamedTuple

from .printable import brief
from .remote_files import RemoteError

# Longest wait in seconds before the caller gets control again.
PAUSE = 0.2
# Successive workers that end before they are ready.
MAX_FAILED_STARTS = 5
_NO_MORE = object()


def start_method_for(device: str, threads: int = 1) -> str:
    """Return the fastest safe start method for workers that run a network.

    CUDA and OpenMP threads do not survive a fork.

    Args:
        device: Device of the network.
        threads: Threads of torch in this process. Defaults to 1.
    """
    forks = 'fork' in multiprocessing.get_all_start_methods()
    return 'fork' if forks and device == 'cpu' and threads == 1 else 'spawn'


class Finished(NamedTuple):
    """A processed item, with its result, or else the fault as text."""
    item: Any
    result: Any = None
    fault: str = ''


class WorkerPool:
    """Pool of processes that each process one item at a time.

    An item whose process dies is retried once, in a new process, because
    another item may have damaged the state of the decoder.

    Args:
        make: Function without arguments that returns the function of items.
            Each process calls it once. If processes are not forked, it must be
            picklable.
        processes: Maximum number of processes. They start with the first item.
        start_method: ``'fork'`` or ``'spawn'``. Defaults to the default method
            of the system.
        timeout: Maximum seconds per item. Defaults to no limit.
        silent: Discard stderr, where decoders print. Defaults to False.
    """

    def __init__(self, make: Callable[[], Callable[[Any], Any]],
                 processes: int, *, start_method: str | None = None,
                 timeout: float | None = None, silent: bool = False) -> None:
        self.processes = processes
        self._make = make
        self._timeout = timeout
        self._silent = silent
        self._context = multiprocessing.get_context(start_method)
        self._workers: list[_Worker] = []
        self._failed_starts = 0

    def __enter__(self) -> 'WorkerPool':
        return self

    def __exit__(self, *args: object) -> None:
        for worker in self._workers:
            worker.stop()
        self._workers.clear()

    def run(self, items: Iterable[Any]) -> Iterator[Finished | None]:
        """Yield each item when it is finished; in between, yield None.

        Args:
            items: The items. An item None means that the next one is not
                available yet.

        Raises:
            RemoteError: If the server of a remote file does not answer.
            RuntimeError: If processes fail before the first item.
        """
        items, more = iter(items), True
        while True:
            while more and (len(self._workers) < self.processes or any(
                    worker.item is None for worker in self._workers)):
                item = next(items, _NO_MORE)
                if item is None:
                    break
                if item is _NO_MORE:
                    more = False
                else:
                    self._begin(item)
            busy = [w for w in self._workers if w.item is not None]
            if not busy and not more:
                return
            wait([worker.pipe for worker in busy], PAUSE)
            for worker in busy:
                finished = self._look_at(worker)
                if finished is not None:
                    yield finished
            yield None

    def _begin(self, item: Any, attempt: int = 1) -> None:
        for worker in self._workers:
            if worker.item is None:
                try:
                    worker.begin(item, attempt)
                    return
                except OSError:
                    # It was killed while it was idle.
                    self._remove(worker)
                    break
        worker = _Worker(self._context, self._make, self._silent,
                         [other.pipe for other in self._workers])
        self._workers.append(worker)
        # If it has already died, reading from its pipe fails, too.
        with suppress(OSError):
            worker.begin(item, attempt)

    def _look_at(self, worker: '_Worker') -> Finished | None:
        item = worker.item
        if not worker.pipe.poll():
            if self._timeout is None or not worker.ready or (
                    time.monotonic() - worker.began < self._timeout):
                return None
            self._remove(worker)
            return Finished(item, fault='TimeoutError: it took more than '
                            f'{self._timeout:g} s')
        try:
            kind, value = worker.pipe.recv()
        except (EOFError, OSError):
            return self._replace(worker)
        if kind == 'ready':
            worker.ready, worker.began = True, time.monotonic()
            self._failed_starts = 0
            return None
        if kind == 'not ready':
            raise RuntimeError(f'a worker process cannot start: {value}')
        if kind == 'server away':
            # All other items on this server would have the same fault.
            raise RemoteError(value)
        worker.item = None
        if kind == 'fault':
            return Finished(item, fault=value)
        return Finished(item, value)

    def _replace(self, worker: '_Worker') -> Finished | None:
        """Retry the item of a dead worker, or return the fault."""
        # A process that has closed its pipe is about to end.
        status = self._remove(worker, patience=1)
        if not worker.ready:
            self._failed_starts += 1
            if self._failed_starts == MAX_FAILED_STARTS:
                raise RuntimeError('worker processes cannot start: the last '
                                   f'one had the exit status {status}')
            self._begin(worker.item, worker.attempt)
        elif worker.attempt == 1:
            self._begin(worker.item, 2)
        else:
            return Finished(worker.item, fault='it crashed the process that '
                            f'read it (exit status {status})')
        return None

    def _remove(self, worker: '_Worker', patience: float = 0) -> int | None:
        self._workers.remove(worker)
        return worker.stop(patience)


class _Worker:
    """Process of the pool, with its current item."""

    def __init__(self, context: Any, make: Callable[[], Callable],
                 silent: bool, others: list[Connection]) -> None:
        self.item: Any = None
        self.ready = False
        self.pipe, child_end = context.Pipe()
        # A forked process inherits our ends of all pipes.
        inherited = [*others, self.pipe] if (
            context.get_start_method() == 'fork') else []
        self.process = context.Process(
            target=_serve, args=(child_end, make, silent, inherited),
            daemon=True)
        self.process.start()
        child_end.close()

    def begin(self, item: Any, attempt: int) -> None:
        self.item, self.attempt = item, attempt
        self.began = time.monotonic()
        self.pipe.send(item)

    def stop(self, patience: float = 0) -> int | None:
        """Kill the process after these seconds; return its exit status."""
        self.process.join(patience)
        self.process.kill()
        self.process.join()
        self.pipe.close()
        return self.process.exitcode


def _serve(pipe: Connection, make: Callable[[], Callable[[Any], Any]],
           silent: bool, inherited: list[Connection]) -> None:
    """Run a worker until the other end of its pipe is closed."""
    # The main process ends its workers on Ctrl-C.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # Otherwise, this process would not notice the end of its parent.
    for other in inherited:
        other.close()
    if silent:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    try:
        function = make()
    except Exception as error:
        pipe.send(('not ready', brief(error)))
        return
    pipe.send(('ready', None))
    while True:
        try:
            item = pipe.recv()
        except (EOFError, OSError):
            # The other end is closed, or its process was killed.
            return
        try:
            answer = 'result', function(item)
        except RemoteError as error:
            answer = 'server away', str(error)
        except Exception as error:
            answer = 'fault', brief(error)
        try:
            pipe.send(answer)
        except OSError:
            return
