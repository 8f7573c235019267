# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Shared code of the recipes for features and segments of long videos."""
import argparse
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from ..annotations.video_segment import Fault, VideoSegment, videos_of
from .feature_targets import (
    Targets,
    feature_lengths,
    with_features,
    write_targets,
)
from .features import place_features
from .files import Output, join_lines


class Part(NamedTuple):
    """Content of a data root from one annotation file or split.

    Attributes:
        segments: Annotated segments.
        list_name: Name of the list that gets the videos.
        files: Other files of the data root, by name.
    """
    segments: list[VideoSegment]
    list_name: str
    files: Mapping[str, bytes] = {}


def feature_options(folders: Mapping[str, str]) -> dict[str, dict]:
    """Return the options of all feature data sets."""
    return {f'--{modality}': dict(
        type=Path, metavar='FOLDER', help='features: a folder with '
        "<video>.npy, which is linked, or with RULSTM's data.mdb (default: "
        f'OUT/{folder})') for modality, folder in folders.items()} | {
            '--rate': dict(type=float, default=4,
                           help='steps per second (default: 4)'),
            '--keep-targets': dict(
                action='store_true', help='keep existing targets, such as '
                'released ones, and only write lists, classes and counts'),
            '--lenient': dict(
                action='store_true', help='skip invalid segments and videos '
                'without features, with a warning')}


def prepare_parts(args: argparse.Namespace, parts: Iterable[Part],
                  kinds: Sequence[Targets], folders: Mapping[str, str],
                  fault: Fault, *, fps: float = 30,
                  classes: Sequence[str] | None = None,
                  order: Sequence[str] = ()) -> None:
    """Write each part, and print a summary."""
    if not args.rate > 0:
        raise ValueError(f'--rate must be above 0, got {args.rate}')
    given = {modality: getattr(args, modality) for modality in folders}
    for modality, folder in given.items():
        if folder is not None and not folder.is_dir():
            raise ValueError(f'--{modality}: folder not found: {folder}')
    for part in parts:
        if not part.segments:
            raise ValueError(f'the list {part.list_name} has no segments')
        output = Output(args.out, args.force)
        places = place_features(
            output, given, folders, videos_of(part.segments), args.rate, fps)
        lengths = feature_lengths(places)
        videos = with_features(part.segments, lengths, places[0], fault)
        print(part.list_name + ': ' + write_targets(
            output, part.segments, lengths, kinds, args.rate,
            lists={part.list_name: sorted(videos)}, classes=classes,
            files=part.files, order=order, keep_targets=args.keep_targets),
            flush=True)


def compare(videos: Collection[str], released: Collection[str],
            name: str) -> None:
    """Print how the videos of a list differ from the released protocol."""
    more = sorted({*videos} - {*released})
    less = sorted({*released} - {*videos})
    if more or less:
        changes = [f'lacks {", ".join(less)}'] * bool(less)
        changes += [f'has {", ".join(more)}'] * bool(more)
        print(f'{name}: unlike the released protocol, it '
              + ' and '.join(changes))


def has_features(args: argparse.Namespace, folders: Mapping[str, str]) -> bool:
    """Return True if the user gave features, or the data root has some."""
    return any(getattr(args, modality) or (args.out / folder).is_dir()
               for modality, folder in folders.items())


def prepare_segments(args: argparse.Namespace,
                     files: Mapping[str, tuple[bytes, list[VideoSegment]]],
                     classes: Sequence[str] = (),
                     class_file: str = 'label_map.txt') -> None:
    """Write lists of segments and the file of classes into the data root.

    Args:
        args: Command line.
        files: Content of each list and its segments, by name.
        classes: Class names, if known.
        class_file: Name of the file of classes.
    """
    output = Output(args.out, args.force)
    for name, (content, segments) in files.items():
        output.write(args.out / name, content)
        print(f'{args.out / name}: {len(segments)} segments of '
              f'{len(videos_of(segments))} videos')
    if classes:
        output.write(args.out / class_file, join_lines(classes))
