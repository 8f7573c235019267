# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import threading
from collections import deque


class FairLock:
    """A lock that threads acquire in the order in which they asked for it.

    A thread that releases a ``threading.Lock`` and asks again at once, such as
    the thread of a source that never waits, can starve the other threads.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._taken = False
        self._waiting: deque[threading.Lock] = deque()

    def __enter__(self) -> None:
        with self._lock:
            if not self._taken:
                self._taken = True
                return
            turn = threading.Lock()
            turn.acquire()
            self._waiting.append(turn)
        try:
            # The thread before releases `turn` and leaves the lock taken.
            turn.acquire()
        except BaseException:
            # After Ctrl-C, pass the turn on.
            with self._lock:
                if turn in self._waiting:
                    self._waiting.remove(turn)
                else:
                    self._pass_on()
            raise

    def __exit__(self, *args: object) -> None:
        with self._lock:
            self._pass_on()

    def _pass_on(self) -> None:
        if self._waiting:
            self._waiting.popleft().release()
        else:
            self._taken = False
