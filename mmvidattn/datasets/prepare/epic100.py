# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Recipe for EPIC-Kitchens-100."""
import argparse

from ..annotations.published import (
    EK100_CLASSES,
    FPS,
    read_epic_kitchens,
    read_rulstm,
    read_rulstm_actions,
)
from ..annotations.video_segment import Fault
from . import feature_set
from .feature_set import has_features, prepare_segments
from .feature_targets import BACKGROUND, numbered_targets
from .files import find_any, find_files

SOURCES = 'training.csv validation.csv actions.csv'
NEEDS = """\
EPIC-Kitchens-100, to anticipate actions, needs
- the folder RULSTM/data/ek100 of https://github.com/fpv-iplab/rulstm, with
  training.csv, validation.csv, actions.csv and validation_*_ids.csv.
- features: RULSTM's LMDB of all frames (its
  scripts/download_data_ek100_full.sh), or <video>.npy at 4 steps per second,
  see https://github.com/zhaoyue-zephyrus/TeSTra#data-preparation.
To recognize actions, it needs only the official EPIC_100_train.csv and
EPIC_100_validation.csv, of
https://github.com/epic-kitchens/epic-kitchens-100-annotations, and the long
videos in OUT, such as P01/videos/P01_01.MP4, as the official script downloads
them."""
FOLDERS = dict(rgb='rgb_kinetics_bninception',
               flow='flow_kinetics_bninception')
# RULSTM's file of each list.
LISTS = dict(train='training.csv', val='validation.csv')
OFFICIAL = 'EPIC_100_train.csv', 'EPIC_100_validation.csv'
# Ids of the segments of each evaluation subset.
SUBSETS = [f'validation_{name}_ids.csv' for name in (
    'unseen_participants', 'tail_verbs', 'tail_nouns', 'tail_actions')]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of this data set."""
    feature_set.add_arguments(parser, FOLDERS)


def prepare(args: argparse.Namespace, fault: Fault) -> None:
    """Write the data root."""
    official = find_files(args.sources, OFFICIAL)
    if official and not has_features(args, FOLDERS):
        prepare_segments(args, {
            name: (path.read_bytes(), read_epic_kitchens(
                path, num_classes=EK100_CLASSES, fault=fault))
            for name, path in official.items()})
        return
    present = find_any(args.sources, LISTS.values())
    more = find_files(args.sources, ['actions.csv', *SUBSETS])
    classes = None
    if 'actions.csv' in more:
        classes = [BACKGROUND, *(name for name, _, _ in read_rulstm_actions(
            more['actions.csv']))]
    parts = []
    for split, name in LISTS.items():
        if name in present:
            copied = [present[name], *(
                path for path in more.values()
                if split == 'val' or path.name not in SUBSETS)]
            parts.append(feature_set.Part(
                read_rulstm(present[name], num_classes=EK100_CLASSES,
                            fault=fault), split,
                {path.name: path.read_bytes() for path in copied}))
    feature_set.prepare_parts(args, parts, numbered_targets(EK100_CLASSES),
                              FOLDERS, fault, fps=FPS, classes=classes)
