# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Find the actions in long videos, and write them as annotations."""
import argparse
import logging
import sys
from pathlib import Path

import numpy as np
from mmengine.logging import MMLogger

from ..apis.runner import one_line_errors, program_name
from ..apis.sliding import SlidingClassifier
from ..datasets.annotations.formats import (
    VideoInfo,
    choose_format,
    write_annotations,
)
from ..datasets.annotations.video_segment import VideoSegment
from ..live import EventDetector, StreamRun, load_live_model
from ..online.event_thresholds import read_thresholds
from ..utils.printable import echo, printable
from .model_argument import split_model
from .predict import name_videos


def score_steps(run: StreamRun) -> np.ndarray:
    """Return the scores of a video's steps, [T, K].

    A step without frames has the scores of the step before. The scores of a
    clip model belong to the middle of its window.
    """
    scores: list[np.ndarray] = []
    for detection in run:
        scores += [detection.scores] * (detection.step + 1 - len(scores))
    if not scores:
        return np.zeros((0, len(run.classes)), np.float32)
    steps = np.arange(len(scores))
    session = run.session
    if isinstance(session, SlidingClassifier):
        # The window of a step ends with it; use the one around it instead.
        later = round((session.window_frames / session.stride_frames - 1) / 2)
        steps = np.minimum(steps + later, len(scores) - 1)
    return np.stack(scores)[steps]


def find_segments(run: StreamRun, detector: EventDetector,
                  name: str) -> list[VideoSegment]:
    """Return the actions of a video; the score is the highest one.

    Args:
        run: Run of a model on the video.
        detector: New event detector of the model.
        name: Name of the video.
    """
    scores = score_steps(run)
    events = []
    for t, row in enumerate(scores):
        events += detector.update(t / run.rate, (t + 1) / run.rate, row)
    events += detector.finish(len(scores) / run.rate)
    return [
        VideoSegment(f'event_{name}_{event["id"]}', name, event['start'],
                     event['end'], dict(action=event['class']),
                     f'events of {name}', score=event['peak'])
        for event in events if event['event'] == 'end']


def unique_names(videos: dict[str, Path]) -> dict[str, str]:
    """Return short names of videos, or their paths if names repeat."""
    names = {video: name.as_posix() for video, name in videos.items()}
    if len({*names.values()}) < len(names):
        return {video: Path(video).as_posix() for video in videos}
    return names


def run(args: argparse.Namespace) -> None:
    # Silence mmengine's warnings about its own deprecated calls.
    MMLogger.get_current_instance().setLevel(logging.ERROR)
    segments: list[VideoSegment] = []
    infos: dict[str, VideoInfo] = {}
    failed = []
    with one_line_errors():
        sources, config, checkpoint = split_model([*args.videos, *args.model])
        names = unique_names(name_videos(sources))
        # Fail before the computation.
        choose_format(args.segments, args.to, len(names))
        events = {}
        if args.thresholds is not None:
            events['thresholds'] = read_thresholds(args.thresholds).classes
        try:
            model = load_live_model(
                config, checkpoint, events=events, device=args.device,
                seconds=args.windows, stride=args.stride)
        except ValueError as error:
            if 'seconds must be set' in str(error):
                raise ValueError(f'--windows must be given: {error}') from None
            raise
        for video, name in names.items():
            try:
                run = StreamRun(model, video, fps=args.fps)
                found = find_segments(
                    run, model.new_event_detector(), name)
            except (ValueError, OSError) as error:
                failed.append(video)
                echo(f'{program_name()}: error: {error}', file=sys.stderr)
                continue
            segments += found
            infos[name] = VideoInfo(run.source.fps)
            echo(f'{video}: {len(found)} segments')
        if infos:
            for loss in write_annotations(segments, args.segments, args.to,
                                          videos=infos):
                echo(f'note: {loss}')
            echo(f'written: {args.segments}')
    if failed:
        raise SystemExit(
            f'{program_name()}: {len(failed)} of {len(names)} videos failed: '
            + printable(', '.join(failed)))
