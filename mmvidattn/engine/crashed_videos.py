# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Reports about videos whose decoding crashes a data loader worker."""
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ..datasets.broken_files.read_notes import ReadNotes
from ..utils.lines import read_lines

CRASHED = 'crashed_videos.txt'
# Start of torch's error about a dead worker.
DEAD_WORKER = re.compile(r'DataLoader worker \(pid(?:\(s\))? ([\d, ]+)\)')
# Signals of a crash; a worker may also be killed for other reasons.
FAULT = re.compile(r'killed by signal: (Segmentation fault|Aborted|Illegal '
                   r'instruction|Floating point exception)')


def read_crashed_videos(work_dir: str) -> list[str]:
    """Return the videos that crashed earlier runs in a work directory."""
    path = Path(work_dir, CRASHED)
    return read_lines(path) if path.is_file() else []


@contextmanager
def crashes_named(notes: list[ReadNotes], work_dir: str) -> Iterator[None]:
    """Name the video in the error about a data loader worker that died.

    If the worker died of a fault such as a segmentation fault, the video that
    it was reading is also added to ``crashed_videos.txt``.

    Args:
        notes: List with a record for each data loader: the file that each of
            its workers reads. Records may be added inside the context.
        work_dir: Folder of ``crashed_videos.txt``.
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
    # One of these two errors names the signal and the process.
    text = f'{error} {error.__context__}'
    pids = ', '.join(DEAD_WORKER.findall(text))
    names = sorted({note.read(int(pid)) for note in notes
                    for pid in re.findall(r'\d+', pids)} - {''})
    if not names:
        return None
    files = ', '.join(names)
    fault = FAULT.search(text)
    if fault is None:
        return f'a data loader worker ended while reading {files}: {error}'
    path = Path(work_dir, CRASHED)
    with path.open('a', encoding='utf-8') as file:
        file.writelines(f'{name}\n' for name in names)
    return (f'{files} crashed the decoder ({fault[1]}) and a data loader '
            f'worker. {path} lists it; --resume continues without it')
