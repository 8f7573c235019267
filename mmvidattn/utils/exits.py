# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Ends of a command: invalid input, Ctrl-C, and signals of a scheduler."""
import atexit
import logging
import multiprocessing
import os
import select
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from .printable import LAYOUT, describe_error, printable

CTRL_C = 128 + signal.SIGINT


def program_name() -> str:
    """Return the program's name: ``train.py`` or ``mmvidattn train``."""
    return Path(sys.argv[0]).name


@contextmanager
def one_line_errors() -> Iterator[None]:
    """Convert errors about invalid input to one line, and exit.

    If the reader of the output has closed it, as ``head`` does, exit without a
    message and with the status of a program that SIGPIPE ends.
    """
    try:
        yield
    except (ValueError, TypeError, LookupError, OSError,
            ImportError) as error:
        if isinstance(error, BrokenPipeError) and _stdout_is_closed():
            # Python writes the rest of the output when it exits.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise SystemExit(128 + 13) from None
        message = f'{program_name()}: error: {describe_error(error)}'
        raise SystemExit(printable(message, LAYOUT)) from error


def _stdout_is_closed() -> bool:
    """Return True if stdout is a pipe whose reader has closed it."""
    poll = select.poll()
    poll.register(sys.stdout.fileno(), 0)
    return any(event & select.POLLERR for _, event in poll.poll(0))


class Stopped(SystemExit):
    """Exit of a run that a signal stopped, with a reason for the user."""

    def __init__(self, code: int, reason: str, saved: bool = True) -> None:
        super().__init__(code)
        self.reason = reason
        self.saved = saved


@contextmanager
def one_line_stop(hint: str | Callable[[], str] = '', quick: bool = False
                  ) -> Iterator[None]:
    """End the command with one line and code 130 on Ctrl-C.

    Also ends the workers of the process, and prints the reason of
    :class:`Stopped`.

    Args:
        hint: Text after 'stopped', such as '; the same command continues', or
            a function that returns it. Defaults to none.
        quick: Exit without Python's shutdown, which takes seconds. A job that
            has received SIGTERM may be killed before. Defaults to False.
    """
    try:
        yield
        return
    except KeyboardInterrupt:
        code, reason = CTRL_C, 'stopped'
    except SyntaxError as error:
        # mmengine gives Ctrl-C this type while it formats a config.
        if not isinstance(error.__context__, KeyboardInterrupt):
            raise
        code, reason = CTRL_C, 'stopped'
    except Stopped as stop:
        code, reason = stop.code, stop.reason
        hint = hint if stop.saved else ''
    children = multiprocessing.active_children()
    for child in children:
        child.terminate()
    for child in children:
        # A forked worker may have inherited a signal handler.
        child.join(1)
        child.kill()
    text = hint() if callable(hint) else hint
    print(f'\n{program_name()}: {reason}{text}', file=sys.stderr)
    if quick:
        atexit._run_exitfuncs()
        _exit_now(code)
    raise SystemExit(code)


def _exit_now(code: int) -> None:
    """Exit without Python's shutdown."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def end_program(error: str = '') -> None:
    """Exit a finished program; if distributed, without Python's shutdown.

    During the shutdown, gloo's threads sometimes abort a process (``terminate
    called without an active exception``), and the launcher then reports a
    failed run.

    Args:
        error: Message. If it is not empty, print it as the last line and exit
            with 1, also if the program is not distributed. Defaults to ''.
    """
    if error:
        error = printable(f'{program_name()}: error: {error}', LAYOUT)
    import torch.distributed as dist
    if dist.is_available() and dist.is_initialized():
        is_first = dist.get_rank() == 0
        dist.destroy_process_group()
        logging.shutdown()
        if error and is_first:
            print(error, file=sys.stderr)
        _exit_now(bool(error))
    if error:
        raise SystemExit(error)
