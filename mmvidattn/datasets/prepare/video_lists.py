# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Recipes for data sets of short videos."""
import argparse
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from ..annotations.published.video_lists import (
    BLANK,
    VideoList,
    read_diving48,
    read_diving48_classes,
    read_hmdb51,
    read_kinetics,
    read_mit,
    read_ssv2,
    read_ucf101,
)
from ..annotations.video_segment import Fault
from .output import Output, join_lines
from .sources import find_files, find_one

KINETICS = 400, 600, 700


class VideoFiles(NamedTuple):
    """List of videos to write into a data root.

    Attributes:
        ann_file: Name of the list.
        folder: Folder of the videos below the data root.
        content: Videos and classes.
        suffix: Suffix to append, if the official list has names without a
            suffix.
    """
    ann_file: str
    folder: str
    content: VideoList
    suffix: str = ''


class Lists(NamedTuple):
    """Lists to write for a data set.

    Attributes:
        files: Training and validation list, by name.
        sources: Files that were read.
        num_classes: Published numbers of classes, one for each version.
        part: Name of this run, unique in the data root, such as the version
            or split; empty if there is only one.
    """
    files: Mapping[str, VideoFiles]
    sources: list[Path]
    num_classes: tuple[int, ...]
    part: str = ''


class VideoListRecipe(NamedTuple):
    """Recipe with help texts, and the function that reads official lists."""
    SOURCES: str
    NEEDS: str
    read: Callable[[argparse.Namespace], Lists]
    # An integer option: name, choices, default and help.
    option: tuple | None = None

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Add the options of this data set."""
        if self.option is not None:
            name, choices, default, text = self.option
            parser.add_argument(name, type=int, choices=choices,
                                default=default, help=text)

    def prepare(self, args: argparse.Namespace, fault: Fault) -> None:
        """Write the data root."""
        prepare_lists(args, self.read(args))


def _train_and_val(ann_file: str, folder: str, contents: Iterable[VideoList],
                   suffix: str = '') -> dict[str, VideoFiles]:
    """Name the training and the validation list; {} stands for the name."""
    return {name: VideoFiles(ann_file.format(name), folder.format(name),
                             content, suffix)
            for name, content in zip(('train', 'val'), contents)}


def _ssv2(args: argparse.Namespace) -> Lists:
    labels, *paths = (
        find_one(args.sources, f'{name}.json',
                 f'something-something-v2-{name}.json')
        for name in ('labels', 'train', 'validation'))
    return Lists(
        _train_and_val('sthv2_{}_list_videos.txt', 'videos',
                       (read_ssv2(path, labels) for path in paths), '.webm'),
        [*paths, labels], (174, ))


def _kinetics(args: argparse.Namespace) -> Lists:
    train, val = (
        find_one(args.sources, *(f'{prefix}{name}.csv' for prefix in (
            '', 'kinetics_', *(f'kinetics{size}_' for size in KINETICS))
            for name in names))
        for names in (('train', ), ('validate', 'val')))
    training = read_kinetics(train)
    size = args.size or len(training.classes)
    if size not in KINETICS:
        raise ValueError(f'{train} has {size} classes: pass --size 400, 600 '
                         'or 700')
    contents = training, read_kinetics(val, training.classes)
    return Lists(
        _train_and_val(f'kinetics{size}_{{}}_list_videos.txt', 'videos_{}',
                       contents, '.mp4'),
        [train, val], (size, ), str(size))


def _ucf101(args: argparse.Namespace) -> Lists:
    classes = find_one(args.sources, 'classInd.txt')
    paths = [find_one(args.sources, f'{name}list{args.split:02}.txt')
             for name in ('train', 'test')]
    return Lists(
        _train_and_val(f'ucf101_{{}}_split_{args.split}_videos.txt', 'videos',
                       (read_ucf101(path, classes) for path in paths)),
        [*paths, classes], (101, ), f'split {args.split}')


def _hmdb51(args: argparse.Namespace) -> Lists:
    folder = args.sources[0]
    return Lists(
        _train_and_val(f'hmdb51_{{}}_split_{args.split}_videos.txt', 'videos',
                       read_hmdb51(folder, args.split).values()),
        [folder], (51, ), f'split {args.split}')


def _diving48(args: argparse.Namespace) -> Lists:
    paths = [find_one(args.sources, f'Diving48_V2_{name}.json')
             for name in ('train', 'test')]
    vocabulary = [*find_files(args.sources, ['Diving48_vocab.json']).values()]
    classes = read_diving48_classes(vocabulary[0]) if vocabulary else []
    contents = [read_diving48(path)._replace(classes=classes)
                for path in paths]
    return Lists(
        _train_and_val('diving48_{}_list_videos.txt', 'videos', contents,
                       '.mp4'), paths + vocabulary, (48, ))


def _mit(args: argparse.Namespace) -> Lists:
    classes = find_one(args.sources, 'moments_categories.txt')
    folders = dict(train='training', val='validation')
    paths = [find_one(args.sources, f'{folder}Set.csv')
             for folder in folders.values()]
    return Lists({
        name: VideoFiles(f'mit_{name}_list_videos.txt', f'videos/{folder}',
                         read_mit(path, classes))
        for (name, folder), path in zip(folders.items(), paths)
    }, [*paths, classes], (339, 305))


SPLIT = '--split', (1, 2, 3), 1, 'split (default: 1)'
VIDEO_LISTS = dict(
    ssv2=VideoListRecipe(
        'labels', """\
Something-Something v2 needs
- train.json, validation.json and labels.json (or
  something-something-v2-train.json and so on) of
  https://www.qualcomm.com/developer/software/something-something-v-2-dataset.
- the videos, <id>.webm, in OUT/videos.""", _ssv2),
    kinetics=VideoListRecipe(
        'train.csv val.csv', """\
Kinetics needs, of https://github.com/cvdfoundation/kinetics-dataset,
- train.csv and validate.csv (or val.csv).
- the videos, <id>_<start>_<end>.mp4, in OUT/videos_train and OUT/videos_val,
  with or without a folder for each class.""", _kinetics,
        ('--size', KINETICS, None,
         'version of Kinetics (default: the number of classes)')),
    ucf101=VideoListRecipe(
        'ucfTrainTestlist', """\
UCF-101 needs
- classInd.txt, trainlist01.txt and testlist01.txt
  (UCF101TrainTestSplits-RecognitionTask.zip of
  https://www.crcv.ucf.edu/data/UCF101.php).
- the videos, <class>/<video>.avi, in OUT/videos.""", _ucf101, SPLIT),
    hmdb51=VideoListRecipe(
        'testTrainMulti_7030_splits', """\
HMDB-51 needs
- the folder testTrainMulti_7030_splits with <class>_test_split1.txt and so on
  (test_train_splits.rar of
  https://serre-lab.clps.brown.edu/resource/hmdb-a-large-human-motion-database/).
- the videos, <class>/<video>.avi, in OUT/videos.""", _hmdb51, SPLIT),
    diving48=VideoListRecipe(
        'FOLDER', """\
Diving-48 needs, of http://www.svcl.ucsd.edu/projects/resound/dataset.html,
- Diving48_V2_train.json, Diving48_V2_test.json and, for class names,
  Diving48_vocab.json.
- the videos, <name>.mp4, in OUT/videos.""", _diving48),
    mit=VideoListRecipe(
        'Moments_in_Time_Raw', """\
Moments in Time needs
- moments_categories.txt, trainingSet.csv and validationSet.csv
  (Moments_in_Time_Raw.zip, on request at http://moments.csail.mit.edu).
- the videos, <class>/<video>.mp4, in OUT/videos/training and
  OUT/videos/validation.""", _mit))


def prepare_lists(args: argparse.Namespace, lists: Lists) -> None:
    """Write lists in mmaction2's format, and ``label_map.txt``.

    Each line of a list is ``<path> <label>``. If the folder of videos exists,
    missing videos are left out, and paths have the suffixes of the files
    found.
    """
    options = {name: value for name, value in vars(args).items()
               if isinstance(value, (int, str)) and name not in (
                   'dataset', 'force')}
    with Output(args.out, f'prepare {args.dataset}', lists.part, options,
                lists.sources, args.force) as output:
        contents, counts = {}, {}
        for name, one in lists.files.items():
            lines, missing = list_lines(args.out / one.folder, one)
            contents[args.out / one.ann_file] = join_lines(lines)
            counts[name], counts[f'{name}_missing'] = len(lines), len(missing)
            if not lines:
                raise ValueError(f'all {len(missing)} videos are missing in '
                                 f'{args.out / one.folder}, such as '
                                 f'{missing[0]}')
            print(f'{args.out / one.ann_file}: {len(lines)} videos, '
                  f'{len({line.rpartition(" ")[2] for line in lines})} classes'
                  + (f'; {len(missing)} are missing in '
                     f'{args.out / one.folder} and left out, such as '
                     f'{missing[0]}' if missing else ''))
        # A later run may find more videos.
        output.begin(contents)
        classes = lists.files['train'].content.classes
        if classes:
            if len(classes) not in lists.num_classes:
                print(f'{len(classes)} classes; the published data set has '
                      + ' or '.join(map(str, lists.num_classes)))
            output.write(args.out / 'label_map.txt', join_lines(classes))
        for path, content in contents.items():
            output.write(path, content)
        output.finish(counts)


def list_lines(folder: Path, files: VideoFiles) -> tuple[list[str], list[str]]:
    """Return the lines of a list, and the names of missing videos."""
    if not folder.is_dir():
        return [f'{video}{files.suffix} {label}'
                for video, label in files.content.videos], []
    present: dict[str, str] = {}
    for path in sorted(folder.rglob('*')):
        if path.is_file():
            name = path.relative_to(folder)
            stem = name.with_suffix('').as_posix().translate(BLANK)
            # Videos may be in a folder of their class or not.
            present.setdefault(path.stem, name.as_posix())
            present[stem] = name.as_posix()
    lines, missing = [], []
    for video, label in files.content.videos:
        stem = video
        if not files.suffix:
            stem = PurePosixPath(video).with_suffix('').as_posix()
        stem = stem.translate(BLANK)
        match = present.get(stem, present.get(stem.rpartition('/')[2]))
        if match is None:
            missing.append(video + files.suffix)
        else:
            lines.append(f'{match} {label}')
    return lines, missing
