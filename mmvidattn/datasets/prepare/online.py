# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Recipes of THUMOS'14 and TVSeries, for online detection."""
import argparse

from ..annotations.published import (
    THUMOS14,
    THUMOS14_SPLITS,
    TVSERIES,
    TVSERIES_VIDEOS,
    read_data_info,
    read_thumos14,
    read_tvseries,
)
from ..annotations.video_segment import Fault, videos_of
from .feature_set import (
    Part,
    compare,
    feature_options,
    has_features,
    prepare_parts,
    prepare_segments,
)
from .feature_targets import BACKGROUND, known_classes, named_targets
from .files import Recipe, find_any, join_lines

FOLDERS = dict(rgb='rgb_kinetics_resnet50', flow='flow_kinetics_bninception')
# Number of videos in the protocol of online detection.
THUMOS14_VIDEOS = dict(val=200, test=213)
# The released protocol also trains on the authors' validation videos.
TVSERIES_LISTS = dict(train=('train', 'val'), test=('test', ))


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
            print(f'{split}: {len(videos)} videos; the released protocol has '
                  f'{THUMOS14_VIDEOS[split]}')
        parts.append(Part(segments, split))
    classes = [BACKGROUND, *THUMOS14]
    if not has_features(args, FOLDERS):
        # Models that read pixels need only the segments of each split.
        prepare_segments(args, {
            f'{part.list_name}.csv': (join_lines([
                'video,start,end,label',
                *(f'{one.video},{one.start:g},{one.end:g},{one.label}'
                  for one in part.segments)]), part.segments)
            for part in parts}, classes, 'classes.txt')
        return
    prepare_parts(args, parts, named_targets(classes), FOLDERS, fault,
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
    prepare_parts(args, parts, named_targets(classes), FOLDERS, fault,
                  classes=classes,
                  order=TVSERIES_VIDEOS['train'] + TVSERIES_VIDEOS['test'])


THUMOS14_RECIPE = Recipe('annotation', """\
THUMOS'14 needs
- the temporal annotation of the validation and test sets: the folders with
  BaseballPitch_val.txt and so on, of TH14_Temporal_annotations_validation.zip
  and TH14_Temporal_annotations_test.zip
  (https://www.crcv.ucf.edu/THUMOS14/).
- features at 4 steps per second, <video>.npy (without features, it writes the
  lists for models that read videos). For the features of LSTR and
  TeSTra, see https://github.com/zhaoyue-zephyrus/TeSTra#data-preparation.""",
                         _thumos14, feature_options(FOLDERS) | {
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
                         _tvseries, feature_options(FOLDERS))
