# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Text for terminals: control characters are escaped, tables are aligned."""
import logging
import os
import sys
from collections.abc import Collection, Iterable, Sequence
from typing import Any, TextIO

# Unprintable characters that are safe in a message.
LAYOUT = '\n\t'


def printable(text: str, keep: str = '') -> str:
    r"""Escape characters that are not printable, such as ``\x1b``.

    Names of classes and videos come from untrusted files. In a terminal, a
    control sequence in a name could hide or forge lines. Characters in
    ``keep`` stay unchanged.
    """
    if text.isprintable():
        return text
    return ''.join(
        c if c.isprintable() or c in keep
        else c.encode('unicode_escape').decode() for c in text)


def echo(*values: Any, sep: str = ' ', end: str = '\n',
         file: TextIO | None = None) -> None:
    """Print at once, also to a file, with unprintable characters escaped."""
    print(printable(sep.join(map(str, values)), LAYOUT), end=end,
          file=sys.stdout if file is None else file, flush=True)


def brief(error: BaseException) -> str:
    """Describe an error by its type and the start of its message.

    decord's stack trace and torch's advice on unsafe loading are left out.
    """
    if isinstance(error, OSError) and error.strerror:
        return describe_error(error)
    text = str(error).split('WeightsUnpickler error:')[-1]
    message = ' '.join(text.split('Stack trace')[0].split())
    return f'{type(error).__name__}: {message[:200]}'


def describe_error(error: BaseException) -> str:
    """Return the message of an error; without the number of a system's."""
    if isinstance(error, KeyError) and error.args:
        return str(error.args[0])
    if not isinstance(error, OSError) or not error.strerror:
        return str(error)
    name = error.filename2 or error.filename
    if name is None:
        return error.strerror
    if isinstance(error, IsADirectoryError):
        return f'{name} is a folder, where a file is expected'
    if isinstance(error, NotADirectoryError) or (
            isinstance(error, FileExistsError) and os.path.isfile(name)):
        return f'{name}: a file is in the place of a folder'
    return f'{name}: {error.strerror}'


def first_few(names: Iterable[str], separator: str = ', ',
              limit: int | None = 3) -> str:
    """Join the first names; append ``...`` if there are more.

    Args:
        names: The names.
        separator: Text between two names. Defaults to ', '.
        limit: Number of names to keep; None for all. Defaults to 3.
    """
    names = list(names)
    limit = len(names) if limit is None else limit
    return separator.join(names[:limit] + ['...'] * (len(names) > limit))


def count(things: Collection | int, noun: str) -> str:
    """Format a number of things: ``1 video``, ``3 videos``."""
    number = things if isinstance(things, int) else len(things)
    plural = f'{noun}es' if noun.endswith('s') else f'{noun}s'
    return f'{number} {noun if number == 1 else plural}'


def format_table(rows: Sequence[Sequence[Any]]) -> list[str]:
    """Format rows as lines, with the first column on the left."""
    cells = [[str(cell) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*cells)]
    return ['  '.join([row[0].ljust(widths[0]), *(
        cell.rjust(width) for cell, width in zip(row[1:], widths[1:]))])
        for row in cells]


class PrintableFilter(logging.Filter):
    """Logging filter that escapes unprintable characters."""

    def filter(self, record: logging.LogRecord) -> bool:
        record.msg = printable(record.getMessage(), LAYOUT)
        record.args = None
        return True
