# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""THUMOS'14 for online detection."""
import argparse

from ..annotations.published.data_info import read_data_info
from ..annotations.published.thumos14 import CLASSES, SPLITS, read_thumos14
from ..annotations.video_segment import Fault, videos_of
from . import feature_set
from .feature_targets import BACKGROUND, named_targets
from .sources import find_files

TITLE = __doc__
SOURCES = 'annotation'
NEEDS = """\
THUMOS'14 needs the temporal annotation of the validation and the test set
(TH14_Temporal_annotations_validation.zip and
TH14_Temporal_annotations_test.zip of https://www.crcv.ucf.edu/THUMOS14/): say
the folders with BaseballPitch_val.txt and so on. And features at 4 steps a
second, <video>.npy: those of LSTR and TeSTra are linked from
https://github.com/zhaoyue-zephyrus/TeSTra#data-preparation."""
FOLDERS = dict(rgb='rgb_kinetics_resnet50', flow='flow_kinetics_bninception')
# Of the protocol of online detection.
VIDEOS = dict(val=200, test=213)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of this data set."""
    feature_set.add_arguments(parser, FOLDERS)
    parser.add_argument('--split', choices=SPLITS,
                        help='one of the two (default: those there are)')
    parser.add_argument(
        '--data-info', metavar='FILE',
        help="TeSTra's or LSTR's data_info.json, for the order of its lists "
        'and to compare with them')


def prepare(args: argparse.Namespace, fault: Fault) -> None:
    """Write the data root."""
    names = {split: f'{CLASSES[0]}_{split}.txt' for split in SPLITS
             if args.split in (None, split)}
    found = find_files(args.sources, names.values())
    if not found:
        raise ValueError(f'there is no {" or ".join(names.values())} in '
                         + ', '.join(map(str, args.sources)))
    order, released = [], {}
    if args.data_info:
        info = read_data_info(args.data_info, 'THUMOS')
        released = dict(val=info.train_videos, test=info.test_videos)
        order = info.train_videos + info.test_videos
        if tuple(info.classes[1:]) != CLASSES:
            raise ValueError(f'{args.data_info} has other classes of THUMOS: '
                             + ', '.join(info.classes))
    parts = []
    for split, name in names.items():
        if name not in found:
            continue
        folder = found[name].parent
        segments = read_thumos14(folder, split, fault=fault)
        videos = videos_of(segments)
        if split in released:
            feature_set.compare(videos, released[split], split)
        elif len(videos) != VIDEOS[split]:
            print(f'{split}: {len(videos)} videos, and {VIDEOS[split]} in '
                  'the released protocol')
        # Of the annotation of a split; both may be in one folder.
        sources = [folder / f'{label}_{split}.txt' for label in CLASSES]
        parts.append(feature_set.Part(split, segments, sources, split))
    classes = [BACKGROUND, *CLASSES]
    feature_set.prepare_parts(args, parts, named_targets(classes), FOLDERS,
                              fault, classes=classes, order=order)
