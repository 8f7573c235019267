# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Recipe for EGTEA Gaze+: raw videos, features or trimmed clips."""
import argparse

from ..annotations.published.egtea import read_egtea_actions, read_egtea_clips
from ..annotations.published.rulstm import (
    EGTEA_CLASSES,
    FPS,
    read_rulstm,
    read_rulstm_actions,
)
from ..annotations.published.video_lists import VideoList
from ..annotations.video_segment import Fault
from . import feature_set
from .feature_targets import BACKGROUND, numbered_targets
from .segment_set import SegmentFile, has_features, prepare_segments
from .sources import find_files, find_one
from .video_lists import VideoFiles, prepare_lists

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
    elif has_features(args, FOLDERS):
        prepare_features(args, fault)
    else:
        prepare_videos(args, fault)


def prepare_videos(args: argparse.Namespace, fault: Fault) -> None:
    """Write lists of segments of the raw videos."""
    paths = {name: find_one(args.sources, f'{stem}{args.split}.csv')
             for name, stem in LISTS.items()}
    class_files = find_files(args.sources, ['actions.csv'])
    classes = [action for path in class_files.values()
               for action, _, _ in read_rulstm_actions(path)]
    files = {
        name: SegmentFile(path, read_rulstm(
            path, num_classes=EGTEA_CLASSES, fault=fault))
        for name, path in paths.items()
    }
    prepare_segments(args, f'videos, split {args.split}', files, classes,
                     [*class_files.values()])


def prepare_clips(args: argparse.Namespace) -> None:
    """Write the lists of trimmed clips."""
    paths = {name: find_one(args.sources, f'{stem}_split{args.split}.txt')
             for name, stem in dict(train='train', val='test').items()}
    sources = [*paths.values()]
    names = find_files(args.sources, ['action_idx.txt']).get('action_idx.txt')
    classes = []
    if names:
        classes = read_egtea_actions(names)
        sources.append(names)
    files = {
        name: VideoFiles(f'egtea_{name}_split{args.split}.txt',
                         'cropped_clips',
                         VideoList(read_egtea_clips(path), classes))
        for name, path in paths.items()
    }
    prepare_lists(args, f'split {args.split}', files, sources,
                  (EGTEA_CLASSES['action'], ))


def prepare_features(args: argparse.Namespace, fault: Fault) -> None:
    """Write lists and targets for features."""
    paths = {name: find_one(args.sources, f'{stem}{args.split}.csv')
             for name, stem in LISTS.items()}
    class_files = find_files(args.sources, ['actions.csv'])
    classes, class_contents = None, {}
    for name, path in class_files.items():
        classes = [BACKGROUND, *(
            action for action, _, _ in read_rulstm_actions(path))]
        class_contents[name] = path.read_bytes()
    parts = [
        feature_set.Part(
            f'{name} split {args.split}',
            read_rulstm(path, num_classes=EGTEA_CLASSES, fault=fault),
            [path, *class_files.values()], f'{name}_split{args.split}',
            {path.name: path.read_bytes(), **class_contents})
        for name, path in paths.items()
    ]
    feature_set.prepare_parts(args, parts, numbered_targets(EGTEA_CLASSES),
                              FOLDERS, fault, fps=FPS, classes=classes)
