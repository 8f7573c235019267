# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""What the recipes of data sets of videos share."""
import argparse
from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from ..formats.video_lists import BLANK, VideoList
from .output import Output


class VideoFiles(NamedTuple):
    """One list of a data root, as its config reads it."""
    ann_file: str
    # Where its videos are, below the root.
    folder: str
    content: VideoList
    # That of published videos, where the official list has none.
    suffix: str = ''


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of data sets of videos: there are none for all."""


def prepare_lists(args: argparse.Namespace, part: str,
                  files: Mapping[str, VideoFiles], sources: list[Path],
                  num_classes: tuple[int, ...]) -> None:
    """Write mmaction2's lists, ``path label``, and ``label_map.txt``.

    Where a folder of videos is there, those that it lacks are left out, and
    paths have the suffix that the files have.

    Args:
        args: The command line.
        part: What tells this run from others into the same root.
        files: Training and validation.
        sources: Files that were read.
        num_classes: What is published, of each version.
    """
    options = {name: value for name, value in vars(args).items()
               if isinstance(value, (int, str)) and name not in (
                   'dataset', 'force')}
    with Output(args.out, f'prepare {args.dataset}', part, options, sources,
                args.force) as output:
        lists, counts = {}, {}
        for name, one in files.items():
            lines, missing = list_lines(args.out / one.folder, one)
            lists[args.out / one.ann_file] = ''.join(
                f'{line}\n' for line in lines).encode()
            counts[name], counts[f'{name}_missing'] = len(lines), len(missing)
            if not lines:
                raise ValueError(f'none of the {len(missing)} videos is in '
                                 f'{args.out / one.folder}, such as '
                                 f'{missing[0]}')
            print(f'{args.out / one.ann_file}: {len(lines)} videos, '
                  f'{len({line.rpartition(" ")[2] for line in lines})} classes'
                  + (f'; {len(missing)} are not in {args.out / one.folder} '
                     f'and left out, such as {missing[0]}' if missing else ''))
        # Videos may be added later.
        output.begin(lists)
        classes = next(iter(files.values())).content.classes
        if classes:
            if len(classes) not in num_classes:
                print(f'{len(classes)} classes, and '
                      f'{" or ".join(map(str, num_classes))} are published')
            output.write(args.out / 'label_map.txt', ''.join(
                f'{name}\n' for name in classes).encode())
        for path, content in lists.items():
            output.write(path, content)
        output.finish(counts)


def list_lines(folder: Path, files: VideoFiles) -> tuple[list[str], list[str]]:
    """The lines of a list, and the videos that are not there."""
    if not folder.is_dir():
        return [f'{video}{files.suffix} {label}'
                for video, label in files.content.videos], []
    present: dict[str, str] = {}
    for path in sorted(folder.rglob('*')):
        if path.is_file():
            name = path.relative_to(folder)
            stem = name.with_suffix('').as_posix().translate(BLANK)
            # With the folder of its class or without one.
            present.setdefault(path.stem, name.as_posix())
            present[stem] = name.as_posix()
    lines, missing = [], []
    for video, label in files.content.videos:
        stem = video
        if not files.suffix:
            stem = PurePosixPath(video).with_suffix('').as_posix()
        stem = stem.translate(BLANK)
        found = present.get(stem, present.get(stem.rpartition('/')[2]))
        if found is None:
            missing.append(video + files.suffix)
        else:
            lines.append(f'{found} {label}')
    return lines, missing
