# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Readers of official lists of videos with one class per video.

They return video names (with a suffix if the official list has one), class
numbers counted from 0, and class names if the list has them.
"""
from pathlib import Path
from typing import NamedTuple

from ..video_segment import read_columns, read_json, read_lines, read_rows

# Like mmaction2's rename_classnames.sh, which renames the class folders of
# Kinetics.
BLANK = str.maketrans(' ', '_', '"')
# The name of a clip of EGTEA ends with four fields: start and end in ms, and
# first and last frame.
TAIL_FIELDS = 4


class VideoList(NamedTuple):
    """Videos with their class numbers, and the names of all classes."""
    videos: list[tuple[str, int]]
    # Empty if the official list has no names.
    classes: list[str]


def read_ssv2(path: str | Path, labels: str | Path) -> VideoList:
    """Read Something-Something v2's ``{train,validation}.json``.

    Args:
        path: JSON list of ``{"id", "template"}``.
        labels: ``labels.json``, which maps each template without brackets to
            its class number.
    """
    numbers = {name: int(number) for name, number in read_json(labels).items()}
    classes = _in_order(numbers, 0, labels)
    videos = []
    for i, item in enumerate(read_json(path)):
        try:
            template = item['template'].translate({91: None, 93: None})
            videos.append((str(item['id']), numbers[template]))
        except (KeyError, TypeError, AttributeError) as error:
            raise ValueError(
                f'{path}, item {i}: expected an id and a template of '
                f'{Path(labels).name}, got {item}: {error!r}') from None
    return VideoList(videos, classes)


def read_kinetics(path: str | Path, classes: list[str] | None = None
                  ) -> VideoList:
    """Read Kinetics' ``{train,val}.csv``.

    Columns are label, youtube_id, time_start, time_end, split. A video is
    named ``<class>/<id>_<start>_<end>``, with ``_`` instead of spaces in the
    class, and times of six digits. Classes are sorted by name, like in
    mmaction2.

    Args:
        path: File.
        classes: Classes of the training list. Defaults to the classes of
            this file.
    """
    rows = list(read_columns(
        path, ('label', 'youtube_id', 'time_start', 'time_end')))
    if classes is None:
        classes = sorted({row['label'].translate(BLANK) for row, _ in rows})
    numbers = {name: i for i, name in enumerate(classes)}
    videos = []
    for row, where in rows:
        label = row['label'].translate(BLANK)
        try:
            start, end = (int(float(row[f'time_{side}']))
                          for side in ('start', 'end'))
            number = numbers[label]
        except ValueError:
            raise ValueError(f'{where}: time_start and time_end must be '
                             f'numbers, got {row}') from None
        except KeyError:
            raise ValueError(
                f'{where}: label must be a training class ({len(classes)} '
                f'classes), got {row["label"]!r}') from None
        videos.append((f'{label}/{row["youtube_id"]}_{start:06d}_{end:06d}',
                       number))
    return VideoList(videos, classes)


def read_ucf101(path: str | Path, classes: str | Path) -> VideoList:
    """Read UCF-101's ``{train,test}list0<n>.txt``.

    Args:
        path: Lines of ``<class>/<video>.avi``, followed by a number in
            training lists.
        classes: ``classInd.txt``.
    """
    names: dict[str, int] = {}
    for line, where in read_lines(classes):
        number, _, name = line.strip().partition(' ')
        if not number.isdecimal() or not name:
            raise ValueError(f'{where}: expected a number and a class, got '
                             f'{line!r}')
        names[name] = int(number)
    ordered = _in_order(names, 1, classes)
    videos = []
    for line, where in read_lines(path):
        video = line.split()[0]
        label = video.rpartition('/')[0]
        if label not in names:
            raise ValueError(f'{where}: expected <class>/<video> with a class '
                             f'of {Path(classes).name}, got {line!r}')
        videos.append((video, names[label] - 1))
    return VideoList(videos, ordered)


def read_hmdb51(folder: str | Path, split: int) -> dict[str, VideoList]:
    """Read both lists of a split from ``<class>_test_split<n>.txt``.

    Lines are ``<video>.avi`` and 1 (training), 2 (test) or 0 (neither).
    """
    tail = f'_test_split{split}.txt'
    paths = sorted(Path(folder).glob(f'*{tail}'))
    if not paths:
        raise ValueError(f'no files <class>{tail} in {folder}')
    classes = [path.name.removesuffix(tail) for path in paths]
    lists = dict(train=VideoList([], classes), val=VideoList([], classes))
    for number, (name, path) in enumerate(zip(classes, paths)):
        for line, where in read_lines(path):
            video, _, use = line.strip().rpartition(' ')
            if use not in ('0', '1', '2') or not video:
                raise ValueError(f'{where}: expected a video and 0, 1 or 2, '
                                 f'got {line!r}')
            if use != '0':
                video_list = lists['train' if use == '1' else 'val']
                video_list.videos.append((f'{name}/{video.strip()}', number))
    return lists


def read_diving48(path: str | Path) -> VideoList:
    """Read ``Diving48_V2_{train,test}.json``."""
    videos = []
    for i, item in enumerate(read_json(path)):
        try:
            videos.append((str(item['vid_name']), int(item['label'])))
        except (KeyError, TypeError, ValueError):
            raise ValueError(f'{path}, item {i}: expected vid_name and label, '
                             f'got {item}') from None
    return VideoList(videos, [])


def read_diving48_classes(path: str | Path) -> list[str]:
    """Read class names from ``Diving48_vocab.json``, lists of four words."""
    return [' '.join(one) if isinstance(one, list) else str(one)
            for one in read_json(path)]


def read_mit(path: str | Path, classes: str | Path) -> VideoList:
    """Read Moments in Time's ``{training,validation}Set.csv``.

    Args:
        path: Lines of ``<class>/<video>.mp4,<class>,...``.
        classes: ``moments_categories.txt``, lines of ``<class>,<number>``.
    """
    numbers = {}
    for row, where in read_rows(classes):
        if len(row) != 2 or not row[1].isdecimal():
            raise ValueError(f'{where}: expected a class and its number, got '
                             f'{", ".join(row)}')
        numbers[row[0]] = int(row[1])
    ordered = _in_order(numbers, 0, classes)
    videos = []
    for row, where in read_rows(path):
        label = row[0].rpartition('/')[0]
        if label not in numbers:
            raise ValueError(f'{where}: expected <class>/<video> with a class '
                             f'of {Path(classes).name}, got {row[0]!r}')
        videos.append((row[0], numbers[label]))
    return VideoList(videos, ordered)


def read_egtea_clips(path: str | Path) -> list[tuple[str, int]]:
    """Read clips and their classes from ``{train,test}_split<n>.txt``.

    Each line has the name of a clip, its action (counted from 1), its verb and
    its nouns. Clips are in a folder for each session, such as
    OP01-R01-PastaSalad of the clip
    OP01-R01-PastaSalad-1002316-1004005-F024051-F024101.

    Returns:
        Path below ``cropped_clips`` and class (counted from 0) of each clip.

    Raises:
        ValueError: If the file is missing, or a line has another format.
    """
    clips = []
    for line, where in read_lines(path):
        fields = line.split()
        if len(fields) < 2 or not fields[1].isdecimal() or fields[1] == '0':
            raise ValueError(f'{where}: expected a clip and its action '
                             f'(from 1), got {line!r}')
        session, *tail = fields[0].rsplit('-', TAIL_FIELDS)
        if len(tail) != TAIL_FIELDS or not tail[-1].startswith('F'):
            raise ValueError(
                f'{where}: the name of a clip must be '
                f'SESSION-START-END-FRAME-FRAME, got {fields[0]!r}')
        clips.append((f'{session}/{fields[0]}.mp4', int(fields[1]) - 1))
    return clips


def read_egtea_actions(path: str | Path) -> list[str]:
    """Read class names from ``action_idx.txt``, lines of name and number."""
    names = {}
    for line, _ in read_lines(path):
        name, _, number = line.strip().rpartition(' ')
        if name and number.isdecimal():
            names[int(number)] = name.strip()
    if sorted(names) != list(range(1, len(names) + 1)):
        raise ValueError(f'{path}: expected a name and its number on each '
                         'line, numbered from 1')
    return [names[number] for number in sorted(names)]


def _in_order(numbers: dict[str, int], first: int,
              path: str | Path) -> list[str]:
    names = sorted(numbers, key=numbers.get)
    expected = range(first, first + len(names))
    if [numbers[name] for name in names] != [*expected]:
        raise ValueError(f'{path} must number its classes {first}, '
                         f'{first + 1}, ...')
    return names
