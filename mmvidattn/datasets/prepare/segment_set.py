# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""What the recipes of segments of long videos share."""
import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from ..annotations.video_segment import VideoSegment, videos_of
from .output import Output


class SegmentFile(NamedTuple):
    """A published list, which stays as it is."""
    path: Path
    segments: list[VideoSegment]


def has_features(args: argparse.Namespace, folders: Mapping[str, str]) -> bool:
    """Whether features are given, or lie in the root already."""
    return any(getattr(args, modality) or (args.out / folder).is_dir()
               for modality, folder in folders.items())


def prepare_segments(args: argparse.Namespace, part: str,
                     files: Mapping[str, SegmentFile],
                     classes: Sequence[str] = (),
                     sources: Sequence[Path] = ()) -> None:
    """Put the lists, and ``label_map.txt``, where the config reads them.

    Args:
        args: The command line.
        part: What tells this run from others into the same root.
        files: Of each subset, such as ``train``.
        classes: Names of the classes, if they are known.
        sources: Further files that were read.
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
            output.write(args.out / 'label_map.txt', ''.join(
                f'{name}\n' for name in classes).encode())
        output.finish({name: len(one.segments)
                       for name, one in files.items()})
