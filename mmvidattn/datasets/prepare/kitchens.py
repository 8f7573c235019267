# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Recipes of EPIC-Kitchens-100 and EGTEA Gaze+."""
import argparse
from pathlib import Path

from ..annotations.published import (
    EGTEA_CLASSES,
    EK100_CLASSES,
    FPS,
    read_epic_kitchens,
    read_rulstm,
    read_rulstm_actions,
)
from ..annotations.video_segment import Fault, read_lines
from .feature_set import (
    Part,
    feature_options,
    has_features,
    prepare_parts,
    prepare_segments,
)
from .feature_targets import BACKGROUND, numbered_targets
from .files import Recipe, find_any, find_files, find_one
from .video_lists import SPLIT, VideoList, in_order, prepare_lists

EK100_FOLDERS = dict(rgb='rgb_kinetics_bninception',
                     flow='flow_kinetics_bninception')
EGTEA_FOLDERS = dict(rgb='rgb', flow='flow')
# RULSTM's file of each list, and the official files.
EK100_LISTS = dict(train='training.csv', val='validation.csv')
OFFICIAL = 'EPIC_100_train.csv', 'EPIC_100_validation.csv'
# Ids of the segments of each evaluation subset.
SUBSETS = [f'validation_{name}_ids.csv' for name in (
    'unseen_participants', 'tail_verbs', 'tail_nouns', 'tail_actions')]
# The name of a clip ends with four fields: start and end in ms, and first and
# last frame.
TAIL_FIELDS = 4


def _epic100(args: argparse.Namespace, fault: Fault) -> None:
    official = find_files(args.sources, OFFICIAL)
    if official and not has_features(args, EK100_FOLDERS):
        prepare_segments(args, {
            name: (path.read_bytes(), read_epic_kitchens(
                path, num_classes=EK100_CLASSES, fault=fault))
            for name, path in official.items()})
        return
    present = find_any(args.sources, EK100_LISTS.values())
    more = find_files(args.sources, ['actions.csv', *SUBSETS])
    classes = None
    if 'actions.csv' in more:
        classes = [BACKGROUND, *(name for name, _, _ in read_rulstm_actions(
            more['actions.csv']))]
    parts = []
    for split, name in EK100_LISTS.items():
        if name in present:
            copied = [present[name], *(
                path for path in more.values()
                if split == 'val' or path.name not in SUBSETS)]
            parts.append(Part(
                read_rulstm(present[name], num_classes=EK100_CLASSES,
                            fault=fault), split,
                {path.name: path.read_bytes() for path in copied}))
    prepare_parts(args, parts, numbered_targets(EK100_CLASSES), EK100_FOLDERS,
                  fault, fps=FPS, classes=classes)


def _egtea(args: argparse.Namespace, fault: Fault) -> None:
    if find_files(args.sources, [f'train_split{args.split}.txt']):
        _egtea_clips(args)
        return
    paths = {name: find_one(args.sources, f'{name}{args.split}.csv')
             for name in ('training', 'validation')}
    segments = {name: read_rulstm(path, num_classes=EGTEA_CLASSES, fault=fault)
                for name, path in paths.items()}
    class_files = [*find_files(args.sources, ['actions.csv']).values()]
    classes = [action for path in class_files
               for action, _, _ in read_rulstm_actions(path)]
    if not has_features(args, EGTEA_FOLDERS):
        prepare_segments(args, {
            path.name: (path.read_bytes(), segments[name])
            for name, path in paths.items()}, classes)
        return
    parts = [Part(
        segments[name], f'{split}_split{args.split}',
        {file.name: file.read_bytes() for file in (path, *class_files)})
        for split, (name, path) in zip(('train', 'val'), paths.items())]
    prepare_parts(
        args, parts, numbered_targets(EGTEA_CLASSES), EGTEA_FOLDERS, fault,
        fps=FPS, classes=[BACKGROUND, *classes] if class_files else None)


def _egtea_clips(args: argparse.Namespace) -> None:
    """Write the lists of trimmed clips."""
    classes: list[str] = []
    for path in find_files(args.sources, ['action_idx.txt']).values():
        words = [line.strip().rpartition(' ') for line, _ in read_lines(path)]
        classes = in_order({
            name.strip(): int(number) - 1 for name, _, number in words
            if name and number.isdecimal()}, path)
    prepare_lists(args, [VideoList(
        f'egtea_{split}_split{args.split}.txt', 'cropped_clips', read_clips(
            find_one(args.sources, f'{name}_split{args.split}.txt')))
        for split, name in dict(train='train', val='test').items()],
        classes, EGTEA_CLASSES['action'])


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


EPIC100_RECIPE = Recipe('training.csv validation.csv actions.csv', """\
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
them.""", _epic100, feature_options(EK100_FOLDERS))
EGTEA_RECIPE = Recipe('RULSTM/data/egtea', """\
EGTEA Gaze+ needs RULSTM's training1.csv, validation1.csv and actions.csv
(RULSTM/data/egtea of https://github.com/fpv-iplab/rulstm).
- To recognize actions: the raw videos of https://cbs.ic.gatech.edu/fpv/,
  <session>.mp4, in OUT/videos.
- To anticipate actions: the features of that split, as RULSTM's LMDBs or as
  <video>.npy at 4 steps per second.
- For the trimmed clips of https://cbs.ic.gatech.edu/fpv/,
  <session>/<clip>.mp4 in OUT/cropped_clips: instead of RULSTM's lists,
  train_split1.txt, test_split1.txt and action_idx.txt of
  action_annotation.zip.""", _egtea, SPLIT | feature_options(EGTEA_FOLDERS))
