# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""End of a command by Ctrl-C or by a scheduler."""
import multiprocessing
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

CTRL_C = 128 + signal.SIGINT


class Stopped(SystemExit):
    """Exit of a run that a signal stopped.

    Args:
        code: Exit code.
        reason: Text such as 'stopped after epoch 2'.
    """

    def __init__(self, code: int, reason: str) -> None:
        super().__init__(code)
        self.reason = reason


@contextmanager
def one_line_stop(hint: str | Callable[[], str] = '') -> Iterator[None]:
    """End the command with one line and code 130 on Ctrl-C.

    Also ends the workers of the process, and prints the reason of
    :class:`Stopped`.

    Args:
        hint: Text after 'stopped', such as '; the same command continues', or
            a function that returns it. Defaults to none.
    """
    try:
        yield
        return
    except KeyboardInterrupt:
        code, reason = CTRL_C, 'stopped'
    except Stopped as stop:
        code, reason = stop.code, stop.reason
    children = multiprocessing.active_children()
    for child in children:
        child.terminate()
    for child in children:
        # A forked worker may have inherited a signal handler.
        child.join(1)
        child.kill()
    text = hint() if callable(hint) else hint
    print(f'\n{Path(sys.argv[0]).name}: {reason}{text}', file=sys.stderr)
    raise SystemExit(code)
