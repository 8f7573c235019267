# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Shared code of the recipes for segments of long videos."""
import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from ..annotations.video_segment import VideoSegment, videos_of
from .output import Output, join_lines


class SegmentFile(NamedTuple):
    """List of segments to write into the data root.

    Attributes:
        name: Name of the file.
        content: Its content.
        segments: Its segments.
    """
    name: str
    content: bytes
    segments: list[VideoSegment]


def has_features(args: argparse.Namespace, folders: Mapping[str, str]) -> bool:
    """Return True if the user gave features, or the data root has some."""
    return any(getattr(args, modality) or (args.out / folder).is_dir()
               for modality, folder in folders.items())


def prepare_segments(args: argparse.Namespace, part: str,
                     files: Mapping[str, SegmentFile],
                     sources: Sequence[Path], classes: Sequence[str] = (),
                     class_file: str = 'label_map.txt') -> None:
    """Write lists of segments and the file of classes into the data root.

    Args:
        args: Command line.
        part: Name of this run, unique in the data root.
        files: List of each subset, such as ``train``.
        sources: Files that were read.
        classes: Class names, if known.
        class_file: Name of the file of classes.
    """
    with Output(args.out, f'prepare {args.dataset}', part, {}, sources,
                args.force) as output:
        output.begin()
        for one in files.values():
            output.write(args.out / one.name, one.content)
            print(f'{args.out / one.name}: {len(one.segments)} segments of '
                  f'{len(videos_of(one.segments))} videos')
        if classes:
            output.write(args.out / class_file, join_lines(classes))
        output.finish({name: len(one.segments) for name, one in files.items()})
