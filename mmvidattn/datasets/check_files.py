# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Checks of video files for damage."""
import os
import os.path as osp
import signal
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool

from ..utils.printable import brief
from ..utils.remote_files import RemoteError, local_path
from ..utils.video_reader import VideoReader, check_end

# Windows has no such timer; there, a blocked decoder blocks the check.
HAS_TIMER = hasattr(signal, 'setitimer')


def check_video(filename: str, every_frame: bool = False) -> None:
    """Open a video and decode its last frame, which raises any error.

    Args:
        filename: Video; ``.mp4`` is appended if the suffix is missing.
        every_frame: Decode every frame instead of only the last one, and check
            that the file is not cut off.
    """
    # mmaction2's readers append .mp4 to a name without a suffix.
    path = filename if osp.splitext(filename)[1] else f'{filename}.mp4'
    reader = VideoReader(path)
    if every_frame:
        deque(reader.frames(), maxlen=0)
        check_end(str(local_path(path)))
    reader[len(reader) - 1]


def check_files(paths: Sequence[str], num_workers: int, timeout: float,
                every_frame: bool = True,
                tick: Callable[[], object] = lambda: None
                ) -> Iterator[tuple[str, str]]:
    """Yield each bad file and its fault, in the order of completion.

    The files are checked in worker processes, which a decoder may crash.

    Args:
        paths: Video files.
        num_workers: Number of processes.
        timeout: Maximum seconds per file.
        every_frame: Decode every frame instead of only the last one.
        tick: Called after each file.

    Raises:
        RemoteError: If the server of a remote video cannot be reached.
    """
    left = dict.fromkeys(paths)

    def one_round() -> Iterator[tuple[str, str | None]]:
        yield from _run(list(left), num_workers, timeout, every_frame)
        # If a file ends its process, the pool ends. The file is one of the
        # first that are left: each process has one, and the queue one more
        # than that.
        for path in list(left)[:2 * num_workers + 1]:
            (_, fault), = _run([path], 1, timeout, every_frame)
            yield path, ('it crashed the process that read it, or took more '
                         f'than {timeout:g} s') if fault is None else fault

    while left:
        for path, fault in one_round():
            if fault is not None:
                del left[path]
                tick()
                if fault:
                    yield path, fault


def _run(paths: list[str], num_workers: int, timeout: float,
         every_frame: bool) -> Iterator[tuple[str, str | None]]:
    """Yield each file and its fault, '' for none, None if the pool ended."""
    pool = ProcessPoolExecutor(num_workers, initializer=_start_worker)
    try:
        futures = {pool.submit(_check, path, timeout, every_frame): path
                   for path in paths}
        for future in as_completed(futures):
            try:
                fault = future.result()
            except BrokenProcessPool:
                fault = None
            yield futures[future], fault
    finally:
        pool.shutdown(cancel_futures=True)


def _start_worker() -> None:
    # Discard what decoders print.
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    if HAS_TIMER:
        signal.signal(signal.SIGALRM, signal.SIG_DFL)


def _check(path: str, timeout: float, every_frame: bool) -> str:
    # Python cannot interrupt a decoder in native code: the alarm ends the
    # process.
    if HAS_TIMER:
        signal.setitimer(signal.ITIMER_REAL, timeout)
    try:
        check_video(path, every_frame)
    except RemoteError:
        raise
    except Exception as error:
        return brief(error)
    finally:
        if HAS_TIMER:
            signal.setitimer(signal.ITIMER_REAL, 0)
    return ''
