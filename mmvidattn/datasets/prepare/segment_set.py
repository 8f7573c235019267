# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Shared code of the recipes for segments of long videos."""
import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from ..annotations.video_segment import VideoSegment, videos_of
from .output import Output, join_lines


class SegmentFile(NamedTuple):
    """Published list, which is copied to the data root, and its segments."""
    path: Path
    segments: list[VideoSegment]


def has_features(args: argparse.Namespace, folders: Mapping[str, str]) -> bool:
    """Return True if the user gave features, or the data root has some."""
    return any(getattr(args, modality) or (args.out / folder).is_dir()
               for modality, folder in folders.items())


def prepare_segments(args: argparse.Namespace, part: str,
                     files: Mapping[str, SegmentFile],
                     classes: Sequence[str] = (),
                     sources: Sequence[Path] = ()) -> None:
    """Write the lists and ``label_map.txt`` into the data root.

    Args:
        args: Command line.
        part: Name of this run, unique in the data root.
        files: List of each subset, such as ``train``.
        classes: Class names, if known.
        sources: Other files that were read.
    """
    with Output(args.out, f'prepare {args.dataset}', part, {},
                [*(one.path for one in files.values()), *sources],
                args.force) as output:
        output.begin()
        for one in files.values():
            output.write(args.out / one.path.name, one.path.read_bytes())
            print(f'{args.out / one.path.name}: {len(one.segments)} segments '
                  f'of {len(videos_of(one.segments))} videos')
        if classes:
            output.write(args.out / 'label_map.txt', join_lines(classes))
        output.finish({name: len(one.segments)
                       for name, one in files.items()})
