# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Recipe for EGTEA Gaze+: raw videos, features or trimmed clips."""
import argparse

from ..annotations.published.rulstm import (
    EGTEA_CLASSES,
    FPS,
    read_rulstm,
    read_rulstm_actions,
)
from ..annotations.published.video_lists import (
    VideoList,
    read_egtea_actions,
    read_egtea_clips,
)
from ..annotations.video_segment import Fault
from . import feature_set
from .feature_set import SegmentFile, has_features, prepare_segments
from .feature_targets import BACKGROUND, numbered_targets
from .sources import find_files, find_one
from .video_lists import Lists, VideoFiles, prepare_lists

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
        files = {name: SegmentFile(path.name, path.read_bytes(),
                                   segments[name])
                 for name, path in paths.items()}
        prepare_segments(args, f'videos, split {args.split}', files,
                         [*paths.values(), *class_files], classes)
        return
    parts = [feature_set.Part(
        f'{name} split {args.split}', segments[name], [path, *class_files],
        f'{name}_split{args.split}',
        {file.name: file.read_bytes() for file in (path, *class_files)})
        for name, path in paths.items()]
    feature_set.prepare_parts(
        args, parts, numbered_targets(EGTEA_CLASSES), FOLDERS, fault, fps=FPS,
        classes=[BACKGROUND, *classes] if class_files else None)


def prepare_clips(args: argparse.Namespace) -> None:
    """Write the lists of trimmed clips."""
    paths = {name: find_one(args.sources, f'{stem}_split{args.split}.txt')
             for name, stem in dict(train='train', val='test').items()}
    class_files = [*find_files(args.sources, ['action_idx.txt']).values()]
    classes = read_egtea_actions(class_files[0]) if class_files else []
    files = {
        name: VideoFiles(f'egtea_{name}_split{args.split}.txt',
                         'cropped_clips',
                         VideoList(read_egtea_clips(path), classes))
        for name, path in paths.items()}
    prepare_lists(args, Lists(files, [*paths.values(), *class_files],
                              (EGTEA_CLASSES['action'], ),
                              f'split {args.split}'))
