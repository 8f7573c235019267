# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import threading
from collections import deque


class FairLock:
    """Lock that threads acquire in the order of their requests.

    With a ``threading.Lock``, a thread that releases the lock and requests it
    again at once can starve other threads. This happens with a source that
    never waits.
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
            # The previous holder releases `turn`, and passes on the lock.
            turn.acquire()
        except BaseException:
            # After Ctrl-C, pass the lock on.
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
