# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Check every video of a list: which cannot be read, and why.

    mmvidattn check-videos data/ssv2/train.txt --root data/ssv2

Decodes each video from its first to its last frame, in processes of their
own, so that a file that crashes or stops a decoder does neither to the check.
Ends with 1 if any file is bad.
"""
import argparse
import multiprocessing as mp
import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from multiprocessing.connection import Connection, wait
from pathlib import Path

from mmengine.utils import ProgressBar

from ..apis.runner import one_line_errors
from ..datasets.annotations import read_video_list
from ..datasets.broken_files.find_fault import find_fault
from ..datasets.broken_files.guard import brief
from ..utils.video_readers import (
    default_video_backend,
    require_video_backend,
)


def parse_args(argv: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('ann_file', help='list of videos and labels')
    parser.add_argument(
        '--root', default='', help="what the list's paths are relative to")
    parser.add_argument('--delimiter', default=' ')
    parser.add_argument(
        '--multi-class', action='store_true', help='a video has many labels')
    parser.add_argument(
        '--num-classes', type=int, help='labels must be below it')
    parser.add_argument(
        '--workers', type=int, default=os.cpu_count(),
        help='processes (default: one for each processor)')
    parser.add_argument(
        '--timeout', type=float, default=60,
        help='seconds that a video may take (default: 60)')
    parser.add_argument(
        '--quick', action='store_true', help='decode the last frame only')
    parser.add_argument(
        '--out', type=Path, help='write bad files here: path, tab, why')
    parser.add_argument(
        '--good', type=Path, help='write a list without the bad files here')
    args = parser.parse_args(argv)
    for name in 'workers', 'timeout':
        if not getattr(args, name) > 0:
            parser.error(f'--{name} must be positive')
    return args


def serve(tasks: Connection, every_frame: bool) -> None:
    """Answer each path with what is wrong with it, or an empty string."""
    # decoders complain on their own.
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    while True:
        try:
            path = tasks.recv()
        except EOFError:
            return
        fault = find_fault(path, every_frame)
        tasks.send('' if fault is None else brief(fault))


class Worker:
    """A process that checks one file at a time."""

    def __init__(self, every_frame: bool) -> None:
        self.pipe, theirs = mp.Pipe()
        self.process = mp.Process(
            target=serve, args=(theirs, every_frame), daemon=True)
        self.process.start()
        theirs.close()

    def begin(self, path: str) -> None:
        self.path, self.began = path, time.monotonic()
        self.pipe.send(path)

    def stop(self) -> None:
        self.process.kill()
        self.process.join()
        self.pipe.close()


def check(paths: list[str], num_workers: int, timeout: float,
          every_frame: bool = True,
          tick: Callable[[], object] = lambda: None
          ) -> Iterator[tuple[str, str]]:
    """Yield each bad file, and why, in the order in which they are done.

    Args:
        paths: The files.
        num_workers: How many processes.
        timeout: Seconds that a file may take.
        every_frame: Whether to decode all of it.
        tick: Called when a file is done.
    """
    left = list(reversed(paths))
    workers = [Worker(every_frame) for _ in range(min(num_workers,
                                                      len(paths)))]
    for worker in workers:
        worker.begin(left.pop())
    try:
        while workers:
            ready = wait([w.pipe for w in workers], timeout=0.2)
            for worker in list(workers):
                fault = None
                if worker.pipe in ready:
                    try:
                        fault = worker.pipe.recv()
                    except (EOFError, ConnectionError):
                        worker.process.join()
                        fault = ('it crashed the decoder (exit status '
                                 f'{worker.process.exitcode})')
                elif time.monotonic() - worker.began > timeout:
                    fault = f'TimeoutError: it took more than {timeout:g} s'
                    worker.process.kill()
                if fault is None:
                    continue
                tick()
                if fault:
                    yield worker.path, fault
                if not left:
                    workers.remove(worker)
                    worker.stop()
                    continue
                if not worker.process.is_alive() or worker.pipe not in ready:
                    worker.stop()
                    workers.remove(worker)
                    worker = Worker(every_frame)
                    workers.append(worker)
                worker.begin(left.pop())
    finally:
        for worker in workers:
            worker.stop()


def main(argv: Sequence[str] | None = None) -> None:
    args = parse_args(argv)
    with one_line_errors():
        rows = read_video_list(
            args.ann_file, delimiter=args.delimiter,
            multi_class=args.multi_class, num_classes=args.num_classes)
        require_video_backend(default_video_backend())
    names = {os.path.join(args.root, name): name for name, _ in rows}
    bar = ProgressBar(len(names), file=sys.stderr)
    bad = dict(check(list(names), args.workers, args.timeout, not args.quick,
                     bar.update))
    print(file=sys.stderr)
    for path, fault in sorted(bad.items()):
        print(f'{path}\t{fault}')
    print(f'{len(bad)} of {len(names)} videos are bad')
    if args.out:
        args.out.write_text(''.join(
            f'{path}\t{fault}\n' for path, fault in sorted(bad.items())))
    if args.good:
        args.good.write_text(''.join(
            args.delimiter.join(
                [name, *map(str, label if args.multi_class else [label])])
            + '\n' for name, label in rows
            if os.path.join(args.root, name) not in bad))
    raise SystemExit(bool(bad))
