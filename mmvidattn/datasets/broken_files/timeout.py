# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Functions that may take so long and no longer."""
import os
import queue
import threading
import traceback
from collections.abc import Callable
from typing import Any

import torch


class TimeLimit:
    """Call functions in a thread, and wait for ``timeout`` seconds at most.

    A signal would not do: a decoder that hangs does not return to Python. The
    thread that is too late is left behind.

    Args:
        timeout: Seconds; with None functions are simply called.
    """

    def __init__(self, timeout: float | None) -> None:
        self.timeout = timeout
        self._inbox = None

    def __getstate__(self) -> dict:
        # A thread neither goes to another process nor is copied.
        return dict(timeout=self.timeout, _inbox=None)

    def __call__(self, function: Callable, *args: Any) -> Any:
        """Return the result of the function, or raise its error.

        Raises:
            TimeoutError: If it takes longer.
        """
        if self.timeout is None:
            return function(*args)
        if self._inbox is None or self._pid != os.getpid():
            self._start()
        inbox, outbox = self._inbox, self._outbox
        inbox.put((function, args))
        try:
            result, error = outbox.get(timeout=self.timeout)
        except queue.Empty:
            self._inbox = None
            inbox.put(None)
            raise TimeoutError(
                f'it took more than {self.timeout:g} s') from None
        if error is not None:
            raise error
        return result

    def _start(self) -> None:
        self._inbox = queue.SimpleQueue()
        self._outbox = queue.SimpleQueue()
        self._pid = os.getpid()
        # A daemon, as Python would wait for others before it ends.
        threading.Thread(
            target=_serve, daemon=True, name='guarded loading',
            args=(self._inbox, self._outbox, torch.get_num_threads())).start()


def _serve(inbox: queue.SimpleQueue, outbox: queue.SimpleQueue,
           num_threads: int) -> None:
    # A new thread has the default number, and a worker another one.
    torch.set_num_threads(num_threads)
    while (call := inbox.get()) is not None:
        function, args = call
        try:
            answer = function(*args), None
        except Exception as error:
            # So that a reader of videos goes in the thread that opened it.
            traceback.clear_frames(error.__traceback__)
            answer = None, error
        # So that this thread does not keep a sample alive while it waits.
        del call, function, args
        outbox.put(answer)
        del answer
