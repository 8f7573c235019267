# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Recipes for data sets of short videos: read the official lists.

Class numbers count from 0, in the order of the official class list.
"""
import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from ...utils.printable import count
from ..annotations.formats.base import Entry
from ..annotations.video_segment import (
    Fault,
    read_columns,
    read_json,
    read_lines,
    read_rows,
)
from .files import Output, Recipe, find_files, find_one, join_lines

# Like mmaction2's rename_classnames.sh, which renames the class folders of
# Kinetics.
BLANK = str.maketrans(' ', '_', '"')
KINETICS = 400, 600, 700


class VideoList(NamedTuple):
    """List of videos to write into a data root.

    Attributes:
        ann_file: Name of the list.
        folder: Folder of the videos below the data root.
        videos: Name and class number of each video.
        suffix: Suffix to append, if the official list has names without a
            suffix.
    """
    ann_file: str
    folder: str
    videos: list[tuple[str, int]]
    suffix: str = ''

    @property
    def lines(self) -> list[str]:
        """Lines of the complete list."""
        return [f'{video}{self.suffix} {label}'
                for video, label in self.videos]


def _ssv2(args: argparse.Namespace, fault: Fault) -> None:
    labels, *paths = (
        find_one(args.sources, f'{name}.json',
                 f'something-something-v2-{name}.json')
        for name in ('labels', 'train', 'validation'))
    # Maps each template without brackets to its class number.
    numbers = {name: int(number.number())
               for name, number in Entry.of_file(labels).items()}
    files = []
    for split, path in zip(('train', 'val'), paths):
        videos = []
        for item in Entry.of_file(path):
            template = item['template'].text().translate({91: None, 93: None})
            if template not in numbers:
                item['template'].fail(f'a template of {labels.name}')
            videos.append((item['id'].text(), numbers[template]))
        files.append(VideoList(f'sthv2_{split}_list_videos.txt', 'videos',
                               videos, '.webm'))
    prepare_lists(args, files, in_order(numbers, labels), 174)


def _kinetics(args: argparse.Namespace, fault: Fault) -> None:
    paths = [
        find_one(args.sources, *(f'{prefix}{name}.csv' for prefix in (
            '', 'kinetics_', *(f'kinetics{size}_' for size in KINETICS))
            for name in names))
        for names in (('train', ), ('validate', 'val'))]
    rows = [list(read_columns(
        path, ('label', 'youtube_id', 'time_start', 'time_end')))
        for path in paths]
    # Sorted by name, as in mmaction2.
    classes = sorted({row['label'].translate(BLANK) for row, _ in rows[0]})
    numbers = {name: i for i, name in enumerate(classes)}
    size = args.size or len(classes)
    if size not in KINETICS:
        raise ValueError(f'{paths[0]} has {size} classes: pass --size 400, '
                         '600 or 700')
    files = []
    for split, part in zip(('train', 'val'), rows):
        videos = []
        for row, where in part:
            label = row['label'].translate(BLANK)
            if label not in numbers:
                raise ValueError(
                    f'{where}: label must be a training class ({len(classes)} '
                    f'classes), got {row["label"]!r}')
            try:
                start, end = (int(float(row[f'time_{side}']))
                              for side in ('start', 'end'))
            except ValueError:
                raise ValueError(f'{where}: time_start and time_end must be '
                                 f'numbers, got {row}') from None
            videos.append((
                f'{label}/{row["youtube_id"]}_{start:06d}_{end:06d}',
                numbers[label]))
        files.append(VideoList(f'kinetics{size}_{split}_list_videos.txt',
                               f'videos_{split}', videos, '.mp4'))
    prepare_lists(args, files, classes, size)


def _ucf101(args: argparse.Namespace, fault: Fault) -> None:
    path = find_one(args.sources, 'classInd.txt')
    numbers: dict[str, int] = {}
    for line, where in read_lines(path):
        number, _, name = line.strip().partition(' ')
        if not number.isdecimal() or not name:
            raise ValueError(f'{where}: expected a number and a class, got '
                             f'{line!r}')
        numbers[name] = int(number) - 1
    files = []
    for split, name in dict(train='train', val='test').items():
        # The lines of training lists end with a number.
        lines = read_lines(find_one(args.sources,
                                    f'{name}list{args.split:02}.txt'))
        files.append(VideoList(
            f'ucf101_{split}_split_{args.split}_videos.txt', 'videos',
            [(line.split()[0], _folder_class(line.split()[0], numbers, where))
             for line, where in lines]))
    prepare_lists(args, files, in_order(numbers, path), 101)


def _hmdb51(args: argparse.Namespace, fault: Fault) -> None:
    tail = f'_test_split{args.split}.txt'
    paths = sorted(args.sources[0].glob(f'*{tail}'))
    if not paths:
        raise ValueError(f'no files <class>{tail} in {args.sources[0]}')
    classes = [path.name.removesuffix(tail) for path in paths]
    # By the number at the end of a line; 0 is in neither list.
    videos: dict[str, list] = {'0': [], '1': [], '2': []}
    for number, path in enumerate(paths):
        for line, where in read_lines(path):
            video, _, use = line.strip().rpartition(' ')
            if use not in videos or not video:
                raise ValueError(f'{where}: expected a video and 0, 1 or 2, '
                                 f'got {line!r}')
            videos[use].append((f'{classes[number]}/{video.strip()}', number))
    prepare_lists(args, [
        VideoList(f'hmdb51_{split}_split_{args.split}_videos.txt', 'videos',
                  videos[use])
        for split, use in dict(train='1', val='2').items()], classes, 51)


def _diving48(args: argparse.Namespace, fault: Fault) -> None:
    vocabulary = find_files(args.sources, ['Diving48_vocab.json'])
    # Lists of four words.
    classes = [' '.join(one) if isinstance(one, list) else str(one)
               for path in vocabulary.values() for one in read_json(path)]
    files = []
    for split, name in dict(train='train', val='test').items():
        path = find_one(args.sources, f'Diving48_V2_{name}.json')
        files.append(VideoList(
            f'diving48_{split}_list_videos.txt', 'videos',
            [(item['vid_name'].text(), int(item['label'].number()))
             for item in Entry.of_file(path)], '.mp4'))
    prepare_lists(args, files, classes, 48)


def _mit(args: argparse.Namespace, fault: Fault) -> None:
    path = find_one(args.sources, 'moments_categories.txt')
    numbers = {}
    for row, where in read_rows(path):
        if len(row) != 2 or not row[1].isdecimal():
            raise ValueError(f'{where}: expected a class and its number, got '
                             f'{", ".join(row)}')
        numbers[row[0]] = int(row[1])
    files = []
    for split, name in dict(train='training', val='validation').items():
        # Lines of <class>/<video>.mp4,<class>,...
        rows = read_rows(find_one(args.sources, f'{name}Set.csv'))
        files.append(VideoList(
            f'mit_{split}_list_videos.txt', f'videos/{name}',
            [(row[0], _folder_class(row[0], numbers, where))
             for row, where in rows]))
    prepare_lists(args, files, in_order(numbers, path), 339, 305)


def _folder_class(video: str, numbers: Mapping[str, int], where: str) -> int:
    label = video.rpartition('/')[0]
    if label not in numbers:
        raise ValueError(f'{where}: expected <class>/<video> with one of the '
                         f'{len(numbers)} classes, got {video!r}')
    return numbers[label]


def in_order(numbers: Mapping[str, int], path: Path) -> list[str]:
    """Return the names of classes in the order of their numbers."""
    names = sorted(numbers, key=numbers.get)
    if [numbers[name] for name in names] != [*range(len(names))]:
        raise ValueError(f'{path} must number its classes without gaps')
    return names


SPLIT = {'--split': dict(type=int, choices=(1, 2, 3), default=1,
                         help='split (default: 1)')}
VIDEO_LISTS = dict(
    ssv2=Recipe(
        'labels', """\
Something-Something v2 needs
- train.json, validation.json and labels.json (or
  something-something-v2-train.json and so on) of
  https://www.qualcomm.com/developer/software/something-something-v-2-dataset.
- the videos, <id>.webm, in OUT/videos.""", _ssv2),
    kinetics=Recipe(
        'train.csv val.csv', """\
Kinetics needs, of https://github.com/cvdfoundation/kinetics-dataset,
- train.csv and validate.csv (or val.csv).
- the videos, <id>_<start>_<end>.mp4, in OUT/videos_train and OUT/videos_val,
  with or without a folder for each class.""", _kinetics,
        {'--size': dict(
            type=int, choices=KINETICS,
            help='version of Kinetics (default: the number of classes)')}),
    ucf101=Recipe(
        'ucfTrainTestlist', """\
UCF-101 needs
- classInd.txt, trainlist01.txt and testlist01.txt
  (UCF101TrainTestSplits-RecognitionTask.zip of
  https://www.crcv.ucf.edu/data/UCF101.php).
- the videos, <class>/<video>.avi, in OUT/videos.""", _ucf101, SPLIT),
    hmdb51=Recipe(
        'testTrainMulti_7030_splits', """\
HMDB-51 needs
- the folder testTrainMulti_7030_splits with <class>_test_split1.txt and so on
  (test_train_splits.rar of
  https://serre-lab.clps.brown.edu/resource/hmdb-a-large-human-motion-database/).
- the videos, <class>/<video>.avi, in OUT/videos.""", _hmdb51, SPLIT),
    diving48=Recipe(
        'FOLDER', """\
Diving-48 needs, of http://www.svcl.ucsd.edu/projects/resound/dataset.html,
- Diving48_V2_train.json, Diving48_V2_test.json and, for class names,
  Diving48_vocab.json.
- the videos, <name>.mp4, in OUT/videos.""", _diving48),
    mit=Recipe(
        'Moments_in_Time_Raw', """\
Moments in Time needs
- moments_categories.txt, trainingSet.csv and validationSet.csv
  (Moments_in_Time_Raw.zip, on request at http://moments.csail.mit.edu).
- the videos, <class>/<video>.mp4, in OUT/videos/training and
  OUT/videos/validation.""", _mit))


def prepare_lists(args: argparse.Namespace, files: Sequence[VideoList],
                  classes: Sequence[str], *num_classes: int) -> None:
    """Write lists in mmaction2's format, and ``label_map.txt``.

    Each line of a list is ``<path> <label>``. If the folder of videos exists,
    missing videos are left out, and paths have the suffixes of the files
    found. ``classes`` are empty if unknown; ``num_classes`` are the published
    numbers of classes, one for each version.
    """
    output = Output(args.out, args.force)
    for one in files:
        lines, missing = list_lines(args.out / one.folder, one)
        if not lines:
            raise ValueError(f'all {len(missing)} videos are missing in '
                             f'{args.out / one.folder}, such as {missing[0]}')
        print(f'{args.out / one.ann_file}: {count(lines, "video")}, '
              + count({line.rpartition(' ')[2] for line in lines}, 'class')
              + (f'; {len(missing)} are missing in {args.out / one.folder} '
                 f'and left out, such as {missing[0]}' if missing else ''))
        # An earlier run may have found no folder of videos.
        output.write(args.out / one.ann_file, join_lines(lines),
                     join_lines(one.lines))
    if classes:
        if len(classes) not in num_classes:
            print(f'{count(classes, "class")}; the published data set has '
                  + ' or '.join(map(str, num_classes)))
        output.write(args.out / 'label_map.txt', join_lines(classes))


def list_lines(folder: Path, content: VideoList
               ) -> tuple[list[str], list[str]]:
    """Return the lines of a list, and the names of missing videos."""
    if not folder.is_dir():
        return content.lines, []
    present: dict[str, str] = {}
    for path in sorted(folder.rglob('*')):
        if path.is_file():
            name = path.relative_to(folder)
            stem = name.with_suffix('').as_posix().translate(BLANK)
            # Videos may be in a folder of their class or not.
            present.setdefault(path.stem, name.as_posix())
            present[stem] = name.as_posix()
    lines, missing = [], []
    for video, label in content.videos:
        stem = video
        if not content.suffix:
            stem = PurePosixPath(video).with_suffix('').as_posix()
        stem = stem.translate(BLANK)
        match = present.get(stem, present.get(stem.rpartition('/')[2]))
        if match is None:
            missing.append(video + content.suffix)
        else:
            lines.append(f'{match} {label}')
    return lines, missing
