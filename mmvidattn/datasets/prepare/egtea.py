# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Recipe for EGTEA Gaze+: raw videos, features or trimmed clips."""
import argparse
from pathlib import Path

from ..annotations.published import (
    EGTEA_CLASSES,
    FPS,
    read_rulstm,
    read_rulstm_actions,
)
from ..annotations.video_segment import Fault, read_lines
from . import feature_set
from .feature_set import has_features, prepare_segments
from .feature_targets import BACKGROUND, numbered_targets
from .files import find_files, find_one
from .video_lists import Lists, VideoList, prepare_lists

SOURCES = 'RULSTM/data/egtea'
NEEDS = """\
EGTEA Gaze+ needs RULSTM's training1.csv, validation1.csv and actions.csv
(RULSTM/data/egtea of https://github.com/fpv-iplab/rulstm).
- To recognize actions: the raw videos of https://cbs.ic.gatech.edu/fpv/,
  <session>.mp4, in OUT/videos.
- To anticipate actions: the features of that split, as RULSTM's LMDBs or as
  <video>.npy at 4 steps per second.
- For the trimmed clips of https://cbs.ic.gatech.edu/fpv/,
  <session>/<clip>.mp4 in OUT/cropped_clips: instead of RULSTM's lists,
  train_split1.txt, test_split1.txt and action_idx.txt of
  action_annotation.zip."""
FOLDERS = dict(rgb='rgb', flow='flow')
LISTS = dict(train='training', val='validation')
# The name of a clip ends with four fields: start and end in ms, and first and
# last frame.
TAIL_FIELDS = 4


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of this data set."""
    feature_set.add_arguments(parser, FOLDERS)
    parser.add_argument('--split', type=int, choices=(1, 2, 3), default=1,
                        help='split (default: 1)')


def prepare(args: argparse.Namespace, fault: Fault) -> None:
    """Write the data root."""
    if find_files(args.sources, [f'train_split{args.split}.txt']):
        prepare_clips(args)
        return
    paths = {name: find_one(args.sources, f'{stem}{args.split}.csv')
             for name, stem in LISTS.items()}
    segments = {name: read_rulstm(path, num_classes=EGTEA_CLASSES, fault=fault)
                for name, path in paths.items()}
    class_files = [*find_files(args.sources, ['actions.csv']).values()]
    classes = [action for path in class_files
               for action, _, _ in read_rulstm_actions(path)]
    if not has_features(args, FOLDERS):
        prepare_segments(args, {
            path.name: (path.read_bytes(), segments[name])
            for name, path in paths.items()}, classes)
        return
    parts = [feature_set.Part(
        segments[name], f'{name}_split{args.split}',
        {file.name: file.read_bytes() for file in (path, *class_files)})
        for name, path in paths.items()]
    feature_set.prepare_parts(
        args, parts, numbered_targets(EGTEA_CLASSES), FOLDERS, fault, fps=FPS,
        classes=[BACKGROUND, *classes] if class_files else None)


def prepare_clips(args: argparse.Namespace) -> None:
    """Write the lists of trimmed clips."""
    classes: dict[int, str] = {}
    for path in find_files(args.sources, ['action_idx.txt']).values():
        for line, _ in read_lines(path):
            name, _, number = line.strip().rpartition(' ')
            if name and number.isdecimal():
                classes[int(number)] = name.strip()
        if sorted(classes) != [*range(1, len(classes) + 1)]:
            raise ValueError(f'{path}: expected a name and its number on each '
                             'line, numbered from 1')
    files = [VideoList(
        f'egtea_{split}_split{args.split}.txt', 'cropped_clips', read_clips(
            find_one(args.sources, f'{name}_split{args.split}.txt')))
        for split, name in dict(train='train', val='test').items()]
    prepare_lists(args, Lists(files, [classes[i] for i in sorted(classes)],
                              (EGTEA_CLASSES['action'], )))


def read_clips(path: Path) -> list[tuple[str, int]]:
    """Read clips and their classes from ``{train,test}_split<n>.txt``.

    Each line has the name of a clip, its action (counted from 1), its verb and
    its nouns. Clips are in a folder for each session, such as
    OP01-R01-PastaSalad of the clip
    OP01-R01-PastaSalad-1002316-1004005-F024051-F024101.
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
