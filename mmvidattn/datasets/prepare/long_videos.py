# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Recipes of long videos: THUMOS'14, TVSeries, EPIC-Kitchens-100, EGTEA."""
import argparse
import re
from pathlib import Path

from ...utils.printable import count
from ..annotations.published import (
    EGTEA_CLASSES,
    EK100_CLASSES,
    THUMOS14,
    THUMOS14_SPLITS,
    TVSERIES,
    TVSERIES_VIDEOS,
    read_data_info,
    read_epic_kitchens,
    read_rulstm,
    read_rulstm_actions,
    read_thumos14,
    read_tvseries,
)
from ..annotations.video_segment import Fault, read_lines, videos_of
from .feature_set import (
    Part,
    compare,
    feature_options,
    has_features,
    prepare_parts,
    prepare_segments,
)
from .feature_targets import (
    BACKGROUND,
    known_classes,
    named_targets,
    numbered_targets,
)
from .files import Recipe, find_any, find_files, find_one, join_lines
from .video_lists import SPLIT, VideoList, in_order, prepare_lists

ONLINE_FOLDERS = dict(rgb='rgb_kinetics_resnet50',
                      flow='flow_kinetics_bninception')
# Number of videos in the protocol of online detection.
THUMOS14_VIDEOS = dict(val=200, test=213)
# The released protocol also trains on the authors' validation videos.
TVSERIES_LISTS = dict(train=('train', 'val'), test=('test', ))
EK100_FOLDERS = dict(rgb='rgb_kinetics_bninception',
                     flow='flow_kinetics_bninception')
EGTEA_FOLDERS = dict(rgb='rgb', flow='flow')
# RULSTM's file of each list, and the official files.
EK100_LISTS = dict(train='training.csv', val='validation.csv')
OFFICIAL = 'EPIC_100_train.csv', 'EPIC_100_validation.csv'
# Ids of the segments of each evaluation subset.
SUBSETS = [f'validation_{name}_ids.csv' for name in (
    'unseen_participants', 'tail_verbs', 'tail_nouns', 'tail_actions')]
# Clip, its session and its action. The name of a clip ends with its start and
# end in ms, and its first and last frame.
CLIP = re.compile(r'((\S+)(?:-\w+){3}-F\w+)\s+([1-9]\d*)(?:\s|$)')


def _thumos14(args: argparse.Namespace, fault: Fault) -> None:
    names = {split: f'{THUMOS14[0]}_{split}.txt' for split in THUMOS14_SPLITS
             if args.split in (None, split)}
    files = find_any(args.sources, names.values())
    order, released = [], {}
    if args.data_info:
        known, train, test = read_data_info(args.data_info, 'THUMOS')
        order, released = train + test, dict(val=train, test=test)
        if tuple(known[1:]) != THUMOS14:
            raise ValueError(f'{args.data_info} must have the known classes '
                             f'of THUMOS, got {", ".join(known)}')
    parts = []
    for split in names:
        if names[split] not in files:
            continue
        segments = read_thumos14(files[names[split]].parent, split,
                                 fault=fault)
        videos = videos_of(segments)
        if released:
            compare(videos, released[split], split)
        elif len(videos) != THUMOS14_VIDEOS[split]:
            print(f'{split}: {count(videos, "video")}; the released protocol '
                  f'has {THUMOS14_VIDEOS[split]}')
        parts.append(Part(segments, split))
    classes = [BACKGROUND, *THUMOS14]
    if not has_features(args, ONLINE_FOLDERS):
        # Models that read pixels need only the segments of each split.
        prepare_segments(args, {
            f'{part.list_name}.csv': (join_lines([
                'video,start,end,label',
                *(f'{one.video},{one.start:g},{one.end:g},{one.label}'
                  for one in part.segments)]), part.segments)
            for part in parts}, classes, 'classes.txt')
        return
    prepare_parts(args, parts, named_targets(classes), ONLINE_FOLDERS, fault,
                  classes=classes, order=order)


def _tvseries(args: argparse.Namespace, fault: Fault) -> None:
    names = {list_name: [f'GT-{split}.txt' for split in splits]
             for list_name, splits in TVSERIES_LISTS.items()}
    files = find_any(args.sources, sum(names.values(), []))
    parts = []
    for list_name, expected in names.items():
        segments = [
            one for name in expected if name in files for one in known_classes(
                read_tvseries(files[name], list_name, fault=fault), TVSERIES,
                fault)]
        released = TVSERIES_VIDEOS[list_name]
        compare([*released, *videos_of(segments)], released,
                f'{list_name}.txt')
        if segments:
            parts.append(Part(segments, list_name))
    classes = [BACKGROUND, *TVSERIES]
    prepare_parts(args, parts, named_targets(classes), ONLINE_FOLDERS, fault,
                  classes=classes,
                  order=TVSERIES_VIDEOS['train'] + TVSERIES_VIDEOS['test'])


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
                  fault, classes=classes)


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
        classes=[BACKGROUND, *classes] if class_files else None)


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
        match = CLIP.match(line.strip())
        if match is None:
            raise ValueError(f'{where}: expected a clip SESSION-START-END-'
                             'FRAME-FRAME and its action (from 1), got '
                             f'{line!r}')
        clips.append((f'{match[2]}/{match[1]}.mp4', int(match[3]) - 1))
    return clips


THUMOS14_RECIPE = Recipe('annotation', """\
THUMOS'14 needs
- the temporal annotation of the validation and test sets: the folders with
  BaseballPitch_val.txt and so on, of TH14_Temporal_annotations_validation.zip
  and TH14_Temporal_annotations_test.zip
  (https://www.crcv.ucf.edu/THUMOS14/).
- features at 4 steps per second, <video>.npy (without features, it writes the
  lists for models that read videos). For the features of LSTR and
  TeSTra, see https://github.com/zhaoyue-zephyrus/TeSTra#data-preparation.""",
                         _thumos14, feature_options(ONLINE_FOLDERS) | {
    '--split': dict(choices=THUMOS14_SPLITS,
                    help='split (default: all available splits)'),
    '--data-info': dict(
        metavar='FILE', help="TeSTra's or LSTR's data_info.json: use the "
        'order of its lists, and compare the videos with them')})
TVSERIES_RECIPE = Recipe('GT-train.txt GT-val.txt GT-test.txt', """\
TVSeries needs
- its lists GT-train.txt, GT-val.txt and GT-test.txt
  (https://homes.esat.kuleuven.be/psi-archive/rdegeest/TVSeries.html).
- features at 4 steps per second, <video>.npy. The videos are not public:
  extract features from your own copies (mmvidattn extract-features).""",
                         _tvseries, feature_options(ONLINE_FOLDERS))
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

LONG_VIDEOS = dict(thumos14=THUMOS14_RECIPE, tvseries=TVSERIES_RECIPE,
                   epic100=EPIC100_RECIPE, egtea=EGTEA_RECIPE)
