# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Recipe for EPIC-Kitchens-100."""
import argparse
from collections.abc import Sequence
from pathlib import Path

from ..annotations.published.rulstm import (
    EK100_CLASSES,
    FPS,
    read_epic_kitchens,
    read_rulstm,
    read_rulstm_actions,
)
from ..annotations.video_segment import Fault, VideoSegment, read_rows
from . import feature_set
from .feature_set import SegmentFile, has_features, prepare_segments
from .feature_targets import BACKGROUND, numbered_targets
from .output import join_lines
from .sources import find_files

SOURCES = 'training.csv validation.csv actions.csv'
NEEDS = """\
EPIC-Kitchens-100, to anticipate actions, needs
- the folder RULSTM/data/ek100 of https://github.com/fpv-iplab/rulstm, with
  training.csv, validation.csv, actions.csv and validation_*_ids.csv. Except
  for actions.csv, these can be replaced by the official EPIC_100_train.csv,
  EPIC_100_validation.csv, EPIC_100_tail_{verbs,nouns}.csv and
  EPIC_100_unseen_participant_ids_validation.csv, of
  https://github.com/epic-kitchens/epic-kitchens-100-annotations.
- features: RULSTM's LMDB of all frames (its
  scripts/download_data_ek100_full.sh), or <video>.npy at 4 steps per second,
  see https://github.com/zhaoyue-zephyrus/TeSTra#data-preparation.
To recognize actions, it needs only the official EPIC_100_train.csv and
EPIC_100_validation.csv, and the long videos in OUT, such as
P01/videos/P01_01.MP4, as the official script downloads them."""
FOLDERS = dict(rgb='rgb_kinetics_bninception',
               flow='flow_kinetics_bninception')
# RULSTM's file and the official file of each list.
FILES = dict(train=('training.csv', 'EPIC_100_train.csv'),
             val=('validation.csv', 'EPIC_100_validation.csv'))
UNSEEN = 'validation_unseen_participants_ids.csv'
TAILS = dict(verb='validation_tail_verbs_ids.csv',
             noun='validation_tail_nouns_ids.csv',
             action='validation_tail_actions_ids.csv')
OFFICIAL_UNSEEN = 'EPIC_100_unseen_participant_ids_validation.csv'
OFFICIAL_TAILS = dict(verb='EPIC_100_tail_verbs.csv',
                      noun='EPIC_100_tail_nouns.csv')


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of this data set."""
    feature_set.add_arguments(parser, FOLDERS)


def prepare(args: argparse.Namespace, fault: Fault) -> None:
    """Write the data root."""
    names = {name for pair in FILES.values() for name in pair}
    present = find_files(args.sources, {
        'actions.csv', UNSEEN, *TAILS.values(), OFFICIAL_UNSEEN,
        *OFFICIAL_TAILS.values(), *names})
    actions = None
    if 'actions.csv' in present:
        actions = read_rulstm_actions(present['actions.csv'])
    lists = {name: present[official] for name, (_, official) in FILES.items()
             if official in present}
    if lists and not has_features(args, FOLDERS):
        prepare_segments(args, 'videos, ' + ' and '.join(lists), {
            name: SegmentFile(path.name, path.read_bytes(), read_epic_kitchens(
                path, num_classes=EK100_CLASSES, fault=fault))
            for name, path in lists.items()}, [*lists.values()])
        return
    if not names & {*present}:
        raise ValueError(f'no {", ".join(sorted(names))} among '
                         + ', '.join(map(str, args.sources)))
    parts = []
    for split, (ours, official) in FILES.items():
        if ours in present:
            path = present[ours]
            segments = read_rulstm(path, num_classes=EK100_CLASSES,
                                   fault=fault)
            files = {ours: path.read_bytes()}
        elif official in present:
            path = present[official]
            if actions is None:
                raise ValueError(f'{path} lacks action numbers: also pass '
                                 "RULSTM's actions.csv")
            segments = as_rulstm(read_epic_kitchens(
                path, num_classes=EK100_CLASSES, fault=fault), actions)
            files = {ours: rulstm_lines(segments)}
        else:
            continue
        sources = [path]
        if split == 'val':
            subsets, more = subset_files(present, segments)
            files.update(subsets)
            sources += more
        if actions is not None:
            sources.append(present['actions.csv'])
            files['actions.csv'] = present['actions.csv'].read_bytes()
        parts.append(feature_set.Part(split, segments, sources, split, files))
    classes = None
    if actions is not None:
        classes = [BACKGROUND, *(name for name, _, _ in actions)]
    feature_set.prepare_parts(args, parts, numbered_targets(EK100_CLASSES),
                              FOLDERS, fault, fps=FPS, classes=classes)


def as_rulstm(segments: Sequence[VideoSegment],
              actions: Sequence[tuple[str, int, int]]) -> list[VideoSegment]:
    """Convert official segments to RULSTM's frames and action numbers.

    The frames are computed from the time stamps, at 30 fps, counted from 1.
    They equal RULSTM's frames for the whole validation set.
    """
    numbers = {(verb, noun): i for i, (_, verb, noun) in enumerate(actions)}
    converted = []
    for one in segments:
        pair = one.labels['verb'], one.labels['noun']
        if pair not in numbers:
            raise ValueError(
                f'{one.where}: actions.csv lacks an action with verb '
                f'{pair[0]} and noun {pair[1]}')
        frames = [max(1, int(time * FPS)) for time in (one.start, one.end)]
        # A segment has at least one frame.
        frames = frames[0], max(frames[0] + 1, frames[1])
        converted.append(one._replace(
            start=frames[0] / FPS, end=frames[1] / FPS, frames=frames,
            labels=dict(one.labels, action=numbers[pair])))
    return converted


def rulstm_lines(segments: Sequence[VideoSegment]) -> bytes:
    """Return segments as the content of a list in RULSTM's format."""
    return join_lines(
        ','.join(map(str, (one.id, one.video, *one.frames, one.labels['verb'],
                           one.labels['noun'], one.labels['action'])))
        for one in segments)


def subset_files(present: dict[str, Path], segments: Sequence[VideoSegment]
                 ) -> tuple[dict[str, bytes], list[Path]]:
    """Return lists of segment ids per evaluation subset, and their sources.

    RULSTM's lists of ids are copied. Lists that are missing are computed from
    the official lists of participants, verbs and nouns. An action belongs to
    the tail classes if its verb or noun does.
    """
    ids = {}
    if OFFICIAL_UNSEEN in present:
        unseen = first_column(present[OFFICIAL_UNSEEN])
        ids[UNSEEN] = [one.id for one in segments
                       if one.video.partition('_')[0] in unseen]
    for part, official in OFFICIAL_TAILS.items():
        if official in present:
            tail = first_column(present[official])
            ids[TAILS[part]] = [one.id for one in segments
                                if str(one.labels[part]) in tail]
    if {TAILS['verb'], TAILS['noun']} <= {*ids}:
        tail = {*ids[TAILS['verb']], *ids[TAILS['noun']]}
        ids[TAILS['action']] = [one.id for one in segments if one.id in tail]
    files = {name: join_lines(each) for name, each in ids.items()}
    sources = [present[name] for name in (OFFICIAL_UNSEEN,
                                          *OFFICIAL_TAILS.values())
               if name in present]
    for name in (UNSEEN, *TAILS.values()):
        if name in present:
            files[name] = present[name].read_bytes()
            sources.append(present[name])
    return files, sources


def first_column(path: Path) -> set[str]:
    """Return the first field of each row of a CSV file."""
    return {row[0] for row, _ in read_rows(path)}
