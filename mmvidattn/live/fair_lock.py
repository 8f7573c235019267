# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import threading
from collections import deque


class FairLock:
    """A lock that threads get in the order in which they asked for it.

    With one of ``threading.Lock`` a thread that asks again at once, as that of
    a source which never waits does, may keep the others out for long.
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
            # Released by the one before, who leaves the lock taken.
            turn.acquire()
        except BaseException:
            # Ctrl-C: the turn is another one's.
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
