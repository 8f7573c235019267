# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Find the minutes of unlabeled videos that are most useful to label."""
import argparse
import csv
import io
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from ..apis.runner import one_line_errors
from ..datasets.annotations.formats import VideoInfo, write_annotations
from ..datasets.annotations.video_segment import VideoSegment
from ..datasets.video_facts import VIDEO_SUFFIXES
from ..evaluation.events.useful_minutes import Minute, useful_minutes
from ..live import Run, load_live_model, open_source
from ..online.frame_scores import FrameScores
from ..utils.files import replacing, write_atomically
from ..utils.printable import echo
from ..visualization.mp4 import open_mp4
from .model_argument import split_model


def find_videos(sources: Sequence[str]) -> list[Path]:
    """Return the video files of files and folders.

    Raises:
        ValueError: If a source is not a file or a folder, or there is no
            video.
    """
    found = []
    for source in map(Path, sources):
        if source.is_dir():
            found += sorted(path for path in source.rglob('*')
                            if path.suffix.lower() in VIDEO_SUFFIXES)
        elif source.is_file():
            found.append(source)
        else:
            raise ValueError(f'{source} must be a video file or a folder of '
                             'video files')
    if not found:
        raise ValueError('no videos in ' + ', '.join(sources))
    return list(dict.fromkeys(found))


def score(run: Run) -> tuple[FrameScores, list[dict]]:
    """Return the scores of a video's steps, and the ends of its events."""
    scores, events = [], []
    for detection in run:
        # A step without frames gets the scores of the next one.
        scores += [detection.scores] * (detection.step + 1 - len(scores))
        events += detection.events
    ends = [event for event in run.events.recent if event['event'] == 'end']
    events += [event for event in ends if event not in events]
    return (FrameScores(run.rate, np.array(scores)),
            [event for event in events if event['event'] == 'end'])


def cut(source: Path, minute: Minute, path: Path) -> VideoInfo:
    """Write a minute of a video to an .mp4 file; return its facts."""
    video = open_source(source)
    first, last = (round(t * video.fps) for t in (minute.start, minute.end))
    video.start_at(first)
    writer, count = None, 0
    with replacing(path) as part:
        try:
            for frame in video:
                if frame.index >= last:
                    break
                if writer is None:
                    height, width = frame.image.shape[:2]
                    writer = open_mp4(part, video.fps, (width, height))
                writer.write(frame.image)
                count += 1
        finally:
            if writer is not None:
                writer.close()
    return VideoInfo(video.fps, count / video.fps, width, height)


def events_in(minute: Minute, events: Sequence[dict],
              name: str) -> Iterator[VideoSegment]:
    """Yield the events of a minute, with times from its start."""
    for event in events:
        start = max(event['start'], minute.start) - minute.start
        end = min(event['end'], minute.end) - minute.start
        if start < end:
            where = f'event {event["id"]} of {minute.video}'
            yield VideoSegment(
                f'{name} {event["id"]}', name, start, end,
                dict(action=event['class']), where, score=event['peak'])


def format_minutes(minutes: Sequence[Minute], names: Sequence[str]) -> str:
    """Format the table of minutes as a CSV file."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator='\n')
    writer.writerow(['minute', *Minute._fields])
    for name, minute in zip(names, minutes):
        writer.writerow([name, *minute[:3],
                         *(round(value, 4) for value in minute[3:])])
    return text.getvalue()


def run(args: argparse.Namespace) -> None:
    with one_line_errors():
        if args.out.exists() and any(args.out.iterdir()):
            raise ValueError(f'{args.out} must be a new or empty folder')
        sources, config, checkpoint = split_model([*args.sources, *args.model])
        paths = find_videos(sources)
        # 1. Score the videos.
        model = load_live_model(
            config, checkpoint, device=args.device,
            cfg_options=args.cfg_options, seconds=args.seconds,
            stride=args.stride)
        videos, events = {}, {}
        for number, path in enumerate(paths, 1):
            echo(f'{number} of {len(paths)}: {path}')
            try:
                name = str(path)
                videos[name], events[name] = score(Run(model, path))
            except ValueError as error:
                echo(f'left out: {error}', file=sys.stderr)
        if not videos:
            raise ValueError('no video could be read')
        # 2. Choose the minutes.
        minutes = useful_minutes(videos, args.number, model.ignore,
                                 per_video=args.per_video)
        # 3. Write them, with the detected events as annotations to correct.
        segments, infos = [], {}
        for number, minute in enumerate(minutes, 1):
            name = f'{number:02d}_{Path(minute.video).stem}.mp4'
            infos[name] = cut(Path(minute.video), minute,
                              args.out / 'videos' / name)
            segments += events_in(minute, events[minute.video], name)
        write_atomically(args.out / 'minutes.csv',
                         format_minutes(minutes, list(infos)))
        for name in 'tasks.json', 'tasks.csv':
            for remark in write_annotations(
                    segments, args.out / name,
                    'label-studio' if name == 'tasks.json' else 'csv',
                    videos=infos):
                if name == 'tasks.json':
                    echo(f'note: {remark}')
    for name, minute in zip(infos, minutes):
        echo(f'{name}: {minute.start:.0f} to {minute.end:.0f} s of '
             f'{minute.video}, uncertainty {minute.uncertainty:.2f}, '
             f'disagreement {minute.disagreement:.2f}')
    echo(f'{args.out}: videos, minutes.csv, tasks.json (Label Studio), '
         'tasks.csv')
