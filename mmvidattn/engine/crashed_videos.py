# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Videos that crash their decoder, and with it a process that loads data."""
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ..datasets.broken_files.read_notes import ReadNotes
from ..utils.lines import read_lines

CRASHED = 'crashed_videos.txt'
# How torch tells of a dead worker, and the signals of its own fault.
DEAD_WORKER = re.compile(r'DataLoader worker \(pid(?:\(s\))? ([\d, ]+)\)')
FAULT = re.compile(r'killed by signal: (Segmentation fault|Aborted|Illegal '
                   r'instruction|Floating point exception)')


def read_crashed_videos(work_dir: str) -> list[str]:
    """Read the videos that crashed earlier runs in a work directory."""
    path = Path(work_dir, CRASHED)
    return read_lines(path) if path.is_file() else []


@contextmanager
def crashes_named(notes: list[ReadNotes], work_dir: str) -> Iterator[None]:
    """Name the file in the error of a worker that died as it read it.

    If the fault was the worker's own, the file is listed in
    ``crashed_videos.txt`` as well.

    Args:
        notes: Notes of the workers of each loader, when the error comes.
        work_dir: Folder of the list.
    """
    try:
        yield
    except RuntimeError as error:
        message = _explain(error, notes, work_dir)
        if message is None:
            raise
        raise RuntimeError(message) from error


def _explain(error: RuntimeError, notes: list[ReadNotes],
             work_dir: str) -> str | None:
    # torch tells the signal and the process in either of two errors.
    said = f'{error} {error.__context__}'
    pids = ', '.join(DEAD_WORKER.findall(said))
    names = sorted({note.read(int(pid)) for note in notes
                    for pid in re.findall(r'\d+', pids)} - {''})
    if not names:
        return None
    told = ', '.join(names)
    fault = FAULT.search(said)
    if fault is None:
        return (f'a process that loads data ended while it read {told}: '
                f'{error}')
    path = Path(work_dir, CRASHED)
    with path.open('a', encoding='utf-8') as file:
        file.writelines(f'{name}\n' for name in names)
    return (f'{told} crashed its decoder ({fault[1]}), and with it a '
            f'process that loads data. It is listed in {path}; --resume '
            'goes on without it')
