# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Time limit for function calls."""
import os
import queue
import threading
import traceback
from collections.abc import Callable
from typing import Any

import torch


class TimeLimit:
    """Call functions in a thread, and wait at most ``timeout`` seconds.

    A thread is needed because a signal cannot interrupt a decoder that hangs
    in native code. A thread that misses the deadline is abandoned.

    Args:
        timeout: Seconds. With None, functions are called directly, without a
            limit.
    """

    def __init__(self, timeout: float | None) -> None:
        self.timeout = timeout
        self._inbox = None

    def __getstate__(self) -> dict:
        # Threads cannot be copied or sent to another process.
        return dict(timeout=self.timeout, _inbox=None)

    def __call__(self, function: Callable, *args: Any) -> Any:
        """Return the result of the function, or raise its error.

        Raises:
            TimeoutError: If the function does not finish in time.
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
        # A daemon thread, because Python waits for other threads at its exit.
        threading.Thread(
            target=_serve, daemon=True, name='guarded loading',
            args=(self._inbox, self._outbox, torch.get_num_threads())).start()


def _serve(inbox: queue.SimpleQueue, outbox: queue.SimpleQueue,
           num_threads: int) -> None:
    # A new thread has torch's default, not the number set in its process.
    torch.set_num_threads(num_threads)
    while (call := inbox.get()) is not None:
        function, args = call
        try:
            answer = function(*args), None
        except Exception as error:
            # Drop local variables here: the thread that opened a video reader
            # must free it.
            traceback.clear_frames(error.__traceback__)
            answer = None, error
        # Do not keep a sample alive while waiting.
        del call, function, args
        outbox.put(answer)
        del answer
