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
from ..datasets.annotations.video_names import VideoNames
from ..datasets.annotations.video_segment import VideoSegment
from ..datasets.video_facts import VIDEO_SUFFIXES
from ..evaluation.events import detect_events
from ..evaluation.events.useful_minutes import Minute, useful_minutes
from ..live import Run, load_live_model, open_source
from ..online.frame_scores import (
    FrameScores,
    ScoredVideos,
    read_frame_scores,
)
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


def score(run: Run) -> tuple[FrameScores, list[VideoSegment]]:
    """Return the scores of a video's steps, and its events."""
    scores, events = [], []
    for detection in run:
        # A step without frames gets the scores of the next one.
        scores += [detection.scores] * (detection.step + 1 - len(scores))
        events += detection.events
    # The last events come after the last step.
    events += [event for event in run.events.recent if event not in events]
    video = run.source.name
    return FrameScores(run.rate, np.array(scores)), [
        VideoSegment(f'{event["id"]}', video, event['start'], event['end'],
                     dict(action=event['class']), f'events of {video}',
                     score=event['peak'])
        for event in events if event['event'] == 'end']


def score_videos(args: argparse.Namespace
                 ) -> tuple[ScoredVideos, dict[str, Path], list[VideoSegment]]:
    """Score the videos with the model.

    Returns:
        Scores, the file of each video, and the events.
    """
    sources, config, checkpoint = split_model([*args.sources, *args.model])
    paths = find_videos(sources)
    model = load_live_model(
        config, checkpoint, device=args.device, cfg_options=args.cfg_options,
        seconds=args.seconds, stride=args.stride)
    scored, events = ScoredVideos(model.classes, model.ignore), []
    for number, path in enumerate(paths, 1):
        echo(f'{number} of {len(paths)}: {path}')
        try:
            scored.videos[str(path)], found = score(Run(model, path))
            events += found
        except ValueError as error:
            echo(f'left out: {error}', file=sys.stderr)
    if not scored.videos:
        raise ValueError('no video could be read')
    return scored, dict(zip(map(str, paths), paths)), events


def read_scores(args: argparse.Namespace
                ) -> tuple[ScoredVideos, dict[str, Path], list[VideoSegment]]:
    """Read stored scores, and find the videos among the sources."""
    scored = read_frame_scores(args.scores)
    files = {}
    if args.sources:
        names = VideoNames(scored.videos)
        for path in find_videos(args.sources):
            name = names.find(str(path))
            if name is not None:
                files[name] = path
    return scored, files, detect_events(
        scored.videos, scored.classes, scored.ignore)


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


def events_in(minute: Minute, events: Sequence[VideoSegment],
              name: str) -> Iterator[VideoSegment]:
    """Yield the events of a minute, with times from its start."""
    for event in events:
        start = max(event.start, minute.start) - minute.start
        end = min(event.end, minute.end) - minute.start
        if event.video == minute.video and start < end:
            yield event._replace(id=f'{name} {event.id}', video=name,
                                 start=start, end=end)


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
        # 1. Score the videos.
        read = score_videos if args.scores is None else read_scores
        scored, files, events = read(args)
        # 2. Choose the minutes.
        minutes = useful_minutes(scored.videos, args.number, scored.ignore,
                                 per_video=args.per_video)
        # 3. Write them, with the detected events as annotations to correct.
        names, segments, infos = [], [], {}
        for number, minute in enumerate(minutes, 1):
            name = f'{number:02d}_{Path(minute.video).stem}.mp4'
            names.append(name * (minute.video in files))
            if minute.video in files:
                infos[name] = cut(files[minute.video], minute,
                                  args.out / 'videos' / name)
                segments += events_in(minute, events, name)
        write_atomically(args.out / 'minutes.csv',
                         format_minutes(minutes, names))
        if infos:
            write_annotations(segments, args.out / 'tasks.json',
                              'label-studio', videos=infos)
            write_annotations(segments, args.out / 'tasks.csv', 'csv')
    for name, minute in zip(names, minutes):
        echo(f'{name or "no video"}: {minute.start:.0f} to {minute.end:.0f} s '
             f'of {minute.video}, uncertainty {minute.uncertainty:.2f}, '
             f'disagreement {minute.disagreement:.2f}')
    echo(f'{args.out}: ' + ', '.join(
        sorted(path.name for path in args.out.iterdir())))
