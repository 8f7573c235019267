# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Functions that read text files line by line."""
from pathlib import Path

from .remote_files import local_path


def split_lines(text: str) -> list[str]:
    r"""Split text only at ``\n``, ``\r\n`` and ``\r``.

    ``str.splitlines`` also splits at characters that a name may contain, such
    as U+0085, U+2028 and form feeds. The last line may lack its end.
    """
    lines = text.replace('\r\n', '\n').replace('\r', '\n').split('\n')
    return lines if lines[-1] else lines[:-1]


def refuse_pickle(path: str | Path, instead: str) -> None:
    """Raise a ``ValueError`` for the name of a pickle.

    ``instead`` says what the user can write instead.
    """
    if str(path).endswith(('.pkl', '.pickle')):
        raise ValueError(f'{path} is a pickle, which can run code and is not '
                         f'read: load it with the program that wrote it, and '
                         f'write {instead}')


def read_lines(path: str | Path) -> list[str]:
    """Read the lines of a UTF-8 file, with or without a byte order mark.

    The file may be a URL. See :func:`split_lines`.
    """
    return split_lines(local_path(path, latest=True).read_text('utf-8-sig'))
