# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Review detected events of video files on a page, and mark them."""
import argparse
import signal
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ..apis.runner import one_line_errors
from ..datasets.annotations.formats import (
    VideoInfo,
    read_annotations,
)
from ..datasets.annotations.video_segment import VideoSegment, checked
from ..live.marks import EventMarks
from ..utils.interrupts import CTRL_C, Stopped
from ..utils.printable import echo
from .stream import page_options, stop_service

if TYPE_CHECKING:
    from ..live.review import ReviewRun


def read_events(path: Path, videos: Path
                ) -> tuple[list[VideoSegment], dict[str, VideoInfo]]:
    """Read events with a class, and the facts of their videos.

    Raises:
        ValueError: If a video is missing, or an event lacks an end or a class.
    """
    found = read_annotations(path, videos=videos)
    if found.missing:
        raise ValueError(f'{videos} lacks {len(found.missing)} videos of '
                         f'{path}, such as {found.missing[0]}')
    for one in found.segments:
        if 'action' not in one.labels:
            raise ValueError(f'{one.where}: the event needs a label')
    return checked(found.segments), found.videos


def make_runs(args: argparse.Namespace) -> list['ReviewRun']:
    """Read the events, and return a run for each video."""
    from ..live.review import ReviewRun
    detected, infos = read_events(args.predictions, args.videos)
    annotated: list[VideoSegment] = []
    if args.annotations is not None:
        annotated, more = read_events(args.annotations, args.videos)
        infos = {**more, **infos}
    if not infos:
        raise ValueError(f'{args.predictions} has no videos')
    classes = sorted({one.labels['action'] for one in detected + annotated})

    def of(video: str, events: Sequence[VideoSegment]) -> list[VideoSegment]:
        return [one for one in events if one.video == video]

    return [ReviewRun(args.videos / video, info.duration, of(video, detected),
                      of(video, annotated), classes)
            for video, info in sorted(infos.items())]


def run(args: argparse.Namespace) -> None:
    signal.signal(signal.SIGTERM, stop_service)
    with one_line_errors():
        try:
            from ..live.review import ReviewPage
        except ImportError as error:
            raise ValueError(error) from error
        runs = make_runs(args)
        marks = args.marks or args.predictions.with_name('marks.csv')
        page = ReviewPage(runs, **page_options(args),
                          marks=EventMarks(marks, runs))
        with page:
            echo(f'page: {page.url} (until Ctrl-C)', flush=True)
            try:
                threading.Event().wait()
            except (KeyboardInterrupt, Stopped) as stop:
                echo(f'stopped; the marks are in {marks}')
                raise SystemExit(getattr(stop, 'code', CTRL_C)) from None
