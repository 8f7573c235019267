# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Write the targets of each step of a feature stream from annotations.

    mmvidattn targets csv mine.csv data/mine \\
        --features data/mine/rgb

A step has the class of each segment that it overlaps: from floor(start * rate)
to ceil(end * rate), that last one excluded. A step without a class is of the
background, class 0. As many steps are written as the features have.
"""
import argparse
import csv
import difflib
import json
import math
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from ..apis.runner import one_line_errors, program_name
from ..datasets.feature_streams import open_array

THUMOS14 = (
    'BaseballPitch', 'BasketballDunk', 'Billiards', 'CleanAndJerk',
    'CliffDiving', 'CricketBowling', 'CricketShot', 'Diving', 'FrisbeeCatch',
    'GolfSwing', 'HammerThrow', 'HighJump', 'JavelinThrow', 'LongJump',
    'PoleVault', 'Shotput', 'SoccerPenalty', 'TennisSwing', 'ThrowDiscus',
    'VolleyballSpiking', 'Ambiguous')
FORMATS = ('csv', 'json', 'thumos14', 'tvseries', 'ek100')
BACKGROUND = 'background'
EK100_FPS = 30
# Numbers of actions, verbs and nouns of EPIC-Kitchens-100.
EK100_CLASSES = dict(action=3806, verb=97, noun=300)
EK100_FOLDERS = dict(verb='verb_perframe', noun='noun_perframe',
                     action='target_perframe')


class Segment(NamedTuple):
    """An annotated action; times are in seconds."""
    video: str
    start: float
    end: float
    label: str
    where: str
    subset: str = 'all'


def read_csv(path: Path) -> list[Segment]:
    """Lines of a CSV file with columns video, start, end, label[, subset]."""
    with open(path, newline='', encoding='utf-8') as file:
        rows = csv.DictReader(file)
        names = rows.fieldnames or []
        missing = {'video', 'start', 'end', 'label'} - {*names}
        if missing:
            raise ValueError(
                f'{path} must have columns video, start, end and label, got '
                f'{", ".join(names) or "nothing"}')
        return [
            Segment(row['video'], seconds(row['start'], f'{path}, line {i}'),
                    seconds(row['end'], f'{path}, line {i}'), row['label'],
                    f'{path}, line {i}', row.get('subset') or 'all')
            for i, row in enumerate(rows, 2)
        ]


def read_json(path: Path) -> list[Segment]:
    """ActivityNet's JSON, with or without its key ``database``.

    ``{video: {"subset": ..., "annotations": [{"segment": [start, end],
    "label": ...}]}}``.
    """
    content = json.loads(path.read_text(encoding='utf-8'))
    try:
        return [
            Segment(video, *(seconds(t, f'{path}, {video}, annotation {i}')
                             for t in one['segment']), str(one['label']),
                    f'{path}, {video}, annotation {i}',
                    str(info.get('subset', 'all')))
            for video, info in content.get('database', content).items()
            for i, one in enumerate(info['annotations'])
        ]
    except (AttributeError, KeyError, TypeError) as error:
        raise ValueError(
            f'{path} must be {{video: {{"annotations": [{{"segment": [start, '
            f'end], "label": ...}}]}}}}: {error!r}') from None


def read_thumos14(folder: Path, split: str) -> list[Segment]:
    """The files ``<class>_<split>.txt`` of THUMOS'14."""
    if split not in ('val', 'test'):
        raise ValueError(f"--split of thumos14 must be val or test, got "
                         f'{split!r}')
    segments = []
    for label in THUMOS14:
        path = folder / f'{label}_{split}.txt'
        if not path.is_file():
            raise ValueError(f'there is no file {path}')
        for i, line in enumerate(path.read_text().splitlines(), 1):
            if not line.strip():
                continue
            where = f'{path}, line {i}'
            words = line.split()
            if len(words) != 3:
                raise ValueError(f'{where}: expected video, start and end, '
                                 f'got {line!r}')
            segments.append(
                Segment(words[0], seconds(words[1], where),
                        seconds(words[2], where), label, where, split))
    return segments


def read_tvseries(path: Path, split: str) -> list[Segment]:
    """Lines ``video, class, start, end, ...``, separated by tabs."""
    segments = []
    for i, line in enumerate(path.read_text('utf-8').splitlines(), 1):
        if not line.strip():
            continue
        where = f'{path}, line {i}'
        words = line.split('\t')
        if len(words) < 4:
            raise ValueError(f'{where}: expected video, class, start and end '
                             f'with tabs between, got {line!r}')
        segments.append(
            Segment(words[0], seconds(words[2], where),
                    seconds(words[3], where), words[1].strip(), where,
                    split or 'all'))
    return segments


def read_ek100(path: Path) -> list[dict]:
    """RULSTM's lists: id, video, start and end frame, verb, noun, action."""
    rows = []
    with open(path, newline='', encoding='utf-8') as file:
        for i, row in enumerate(csv.reader(file), 1):
            where = f'{path}, line {i}'
            row = [word.strip() for word in row]
            if i == 1 and row and not row[0].isdigit():
                continue
            try:
                _, video, *rest = row
                start, end, verb, noun, action = map(int, rest)
            except ValueError:
                raise ValueError(
                    f'{where}: expected id, video, start_frame, end_frame, '
                    f'verb, noun, action, got {row}') from None
            rows.append(
                dict(video=video, start=start / EK100_FPS,
                     end=end / EK100_FPS, where=where, verb=verb, noun=noun,
                     action=action))
    return rows


def seconds(word: str, where: str) -> float:
    """A time, which must be a number."""
    try:
        value = float(word)
    except (TypeError, ValueError):
        value = math.nan
    if not math.isfinite(value):
        raise ValueError(f'{where}: {word!r} must be a number of seconds')
    return value


def steps_of(start: float, end: float, rate: float) -> tuple[int, int]:
    """First step, and first step after, of a segment in seconds."""
    # A hair less than a whole number, of 29.999999 for frame 30, is one.
    return (math.floor(round(start * rate, 6)),
            math.ceil(round(end * rate, 6)))


class Faults:
    """Report faulty segments: raise, or warn and go on."""

    def __init__(self, lenient: bool) -> None:
        self.lenient = lenient

    def __call__(self, message: str) -> None:
        if not self.lenient:
            raise ValueError(f'{message} (--lenient goes on without)')
        print(f'{program_name()}: warning: {message}', file=sys.stderr)


def class_numbers(segments: Sequence[Segment], classes: Sequence[str],
                  fault: Faults) -> dict[str, int]:
    """The number of each class, the background being 0."""
    numbers = {name: i for i, name in enumerate(classes)}
    for segment in segments:
        if segment.label in numbers:
            continue
        close = difflib.get_close_matches(segment.label, classes, n=1)
        hint = f'; did you mean {close[0]!r}?' if close else ''
        fault(f'{segment.where}: {segment.label!r} is none of the '
              f'{len(classes)} classes{hint}')
    return numbers


def mark(targets: np.ndarray, segments: Iterable[tuple], rate: float,
         video: str, fault: Callable[[str], None],
         may_overlap: bool) -> np.ndarray:
    """Write segments into the targets of a video.

    Args:
        targets: Zeros, ``(T, K)``.
        segments: Of each start and end in seconds, class, and where it is
            from.
        rate: Steps a second.
        video: Its name.
        fault: What is called with each fault.
        may_overlap: Whether segments of one class may overlap.

    Returns:
        How many segments of each class were written, ``(K,)``.
    """
    counts = np.zeros(targets.shape[1], np.int64)
    done: dict[int, list] = {}
    for start, end, label, where in segments:
        if start < 0 or end <= start:
            fault(f'{where}: a segment must have 0 <= start < end, got '
                  f'{start:g} to {end:g} s')
            continue
        first, last = steps_of(start, end, rate)
        if first >= len(targets):
            fault(f'{where}: begins at {start:g} s, but the features of '
                  f'{video} end at {len(targets) / rate:g} s')
            continue
        for other_start, other_end, other in done.get(label, ()):
            if start < other_end and other_start < end and not may_overlap:
                fault(f'{where}: {start:g} to {end:g} s overlaps the segment '
                      f'of the same class in {other}')
                break
        done.setdefault(label, []).append((start, end, where))
        targets[first:last, label] = 1
        counts[label] += 1
    return counts


def feature_lengths(folder: Path) -> dict[str, int]:
    """Steps of each video, from the heads of its features."""
    if not folder.is_dir():
        raise ValueError(f'--features: there is no folder {folder}')
    lengths = {path.stem: len(open_array(path))
               for path in sorted(folder.glob('*.npy'))}
    if not lengths:
        raise ValueError(f'--features: there are no .npy files in {folder}')
    return lengths


def write_targets(args: argparse.Namespace) -> None:
    fault = Faults(args.lenient)
    if not args.rate > 0:
        raise ValueError(f'--rate must be above 0, got {args.rate}')
    if not args.annotations.exists():
        raise ValueError(f'there is no {args.annotations}')
    lengths = feature_lengths(args.features)
    if args.format == 'ek100':
        return write_ek100(args, lengths, fault)
    if args.format == 'thumos14':
        segments = read_thumos14(args.annotations, args.split)
        names = THUMOS14
    elif args.format == 'tvseries':
        segments = read_tvseries(args.annotations, args.split)
        names = sorted({segment.label for segment in segments})
    else:
        read = dict(csv=read_csv, json=read_json)
        segments = read[args.format](args.annotations)
        names = sorted({segment.label for segment in segments})
    if not segments:
        raise ValueError(f'{args.annotations} has no segments')
    if args.classes is not None:
        if not args.classes.is_file():
            raise ValueError(f'--classes: there is no file {args.classes}')
        names = args.classes.read_text('utf-8').splitlines()
    # Of the background there are no segments.
    names = [BACKGROUND] + [
        name for name in names if name and name != BACKGROUND
    ]
    path = args.out / 'classes.txt'
    if args.classes is None and path.is_file():
        found = path.read_text('utf-8').splitlines()
        if found != names:
            # Targets of two splits would not mean the same.
            raise ValueError(
                f'{path} has {len(found)} classes of an earlier run, and here '
                f'occur {len(names)}, not the same ones; say --classes {path} '
                'to keep these, or remove it')
    numbers = class_numbers(segments, names, fault)
    by_video: dict[str, list[Segment]] = {}
    for segment in segments:
        by_video.setdefault(segment.video, []).append(segment)
    lengths = choose_videos(lengths, by_video, args, fault)
    subsets: dict[str, list[str]] = {}
    counts: dict[str, np.ndarray] = {}
    folder = args.out / 'target_perframe'
    folder.mkdir(parents=True, exist_ok=True)
    for video, length in lengths.items():
        targets = np.zeros((length, len(names)), np.uint8)
        marked = mark(
            targets,
            ((s.start, s.end, numbers[s.label], s.where)
             for s in by_video.get(video, ()) if s.label in numbers),
            args.rate, video, fault, False)
        targets[:, 0] = ~targets.any(axis=1)
        np.save(folder / f'{video}.npy', targets)
        # A video without segments is in no subset.
        if video in by_video:
            subset = by_video[video][0].subset
            subsets.setdefault(subset, []).append(video)
            counts[subset] = counts.get(subset, 0) + marked
    for subset, videos in subsets.items():
        write_list(args.out, subset, videos, counts[subset])
    path.write_text('\n'.join(names) + '\n', 'utf-8')
    total = sum(counts.values())
    print(f'{folder}: {len(lengths)} videos, {np.sum(total)} segments of '
          f'{np.count_nonzero(total)} classes; lists: '
          + ', '.join(f'{name}.txt ({len(v)})' for name, v in subsets.items()))


def write_list(out: Path, name: str, videos: Iterable[str],
               counts: np.ndarray) -> None:
    """The names of the videos of a split, and its segments of each class."""
    (out / f'{name}.txt').write_text('\n'.join(videos) + '\n', 'utf-8')
    np.savetxt(out / f'{name}_class_counts.txt', counts, fmt='%d')


def choose_videos(lengths: dict[str, int], annotated: Iterable[str],
                  args: argparse.Namespace, fault: Faults) -> dict[str, int]:
    """Of the videos with features those to write targets of."""
    for video in annotated:
        if video not in lengths:
            fault(f'{args.annotations} has segments of {video}, but there is '
                  f'no {args.features / video}.npy')
    if args.format == 'thumos14':
        # The features of both splits are in one folder.
        return {v: n for v, n in lengths.items()
                if v in annotated or args.split in v.split('_')
                or (args.split, v[:16]) == ('val', 'video_validation')}
    return lengths


def write_ek100(args: argparse.Namespace, lengths: dict[str, int],
                fault: Faults) -> None:
    rows = read_ek100(args.annotations)
    by_video: dict[str, list[dict]] = {}
    for row in rows:
        by_video.setdefault(row['video'], []).append(row)
        for part, number in EK100_CLASSES.items():
            if not 0 <= row[part] < number:
                raise ValueError(f'{row["where"]}: {part} must be in 0 to '
                                 f'{number - 1}, got {row[part]}')
    choose_videos(lengths, by_video, args, fault)
    videos = [video for video in by_video if video in lengths]
    counts = np.zeros(EK100_CLASSES['action'] + 1, np.int64)
    for part, number in EK100_CLASSES.items():
        folder = args.out / EK100_FOLDERS[part]
        folder.mkdir(parents=True, exist_ok=True)
        for video in videos:
            targets = np.zeros((lengths[video], number + 1), np.uint8)
            marked = mark(
                targets, ((row['start'], row['end'], row[part] + 1,
                           row['where']) for row in by_video[video]),
                args.rate, video,
                # Once for all three.
                fault if part == 'action' else lambda message: None, True)
            targets[:, 0] = ~targets.any(axis=1)
            np.save(folder / f'{video}.npy', targets)
            if part == 'action':
                counts += marked
    name = args.split or args.annotations.stem
    write_list(args.out, name, videos, counts)
    print(f'{args.out}: {len(videos)} videos, {len(rows)} segments, list '
          f'{name}.txt')


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.split('\n')[0])
    parser.add_argument('format', choices=FORMATS, help='of the annotations')
    parser.add_argument('annotations', type=Path,
                        help="file, or THUMOS'14's folder")
    parser.add_argument('out', type=Path, help='folder to write to')
    parser.add_argument('--features', type=Path, required=True,
                        help='folder of features, which tell the lengths')
    parser.add_argument('--rate', type=float, default=4,
                        help='steps a second (default: 4)')
    parser.add_argument('--classes', type=Path,
                        help='names of the classes, one a line (default: '
                        'those that occur, sorted)')
    parser.add_argument('--split', default='',
                        help="val or test of THUMOS'14; name of the list of "
                        'videos for tvseries and ek100')
    parser.add_argument('--lenient', action='store_true',
                        help='warn of faulty segments and go on without them')
    args = parser.parse_args(argv)
    with one_line_errors():
        write_targets(args)
