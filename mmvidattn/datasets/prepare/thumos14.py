# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Recipe for THUMOS'14, for online detection."""
import argparse

from ..annotations.published import (
    THUMOS14,
    THUMOS14_SPLITS,
    read_data_info,
    read_thumos14,
)
from ..annotations.video_segment import Fault, videos_of
from . import feature_set
from .feature_set import has_features, prepare_segments
from .feature_targets import BACKGROUND, named_targets
from .files import find_any, join_lines

SOURCES = 'annotation'
NEEDS = """\
THUMOS'14 needs
- the temporal annotation of the validation and test sets: the folders with
  BaseballPitch_val.txt and so on, of TH14_Temporal_annotations_validation.zip
  and TH14_Temporal_annotations_test.zip
  (https://www.crcv.ucf.edu/THUMOS14/).
- features at 4 steps per second, <video>.npy (without features, it writes the
  lists for models that read videos). For the features of LSTR and
  TeSTra, see https://github.com/zhaoyue-zephyrus/TeSTra#data-preparation."""
FOLDERS = dict(rgb='rgb_kinetics_resnet50', flow='flow_kinetics_bninception')
# Number of videos in the protocol of online detection.
VIDEOS = dict(val=200, test=213)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of this data set."""
    feature_set.add_arguments(parser, FOLDERS)
    parser.add_argument('--split', choices=THUMOS14_SPLITS,
                        help='split (default: all available splits)')
    parser.add_argument(
        '--data-info', metavar='FILE',
        help="TeSTra's or LSTR's data_info.json: use the order of its lists, "
        'and compare the videos with them')


def prepare(args: argparse.Namespace, fault: Fault) -> None:
    """Write the data root."""
    names = {split: f'{THUMOS14[0]}_{split}.txt' for split in THUMOS14_SPLITS
             if args.split in (None, split)}
    files = find_any(args.sources, names.values())
    order, released = [], {}
    if args.data_info:
        info = read_data_info(args.data_info, 'THUMOS')
        released = dict(val=info.train_videos, test=info.test_videos)
        order = info.train_videos + info.test_videos
        if tuple(info.classes[1:]) != THUMOS14:
            raise ValueError(f'{args.data_info} must have the known classes '
                             f'of THUMOS, got {", ".join(info.classes)}')
    parts = []
    for split, name in names.items():
        if name not in files:
            continue
        folder = files[name].parent
        segments = read_thumos14(folder, split, fault=fault)
        videos = videos_of(segments)
        if split in released:
            feature_set.compare(videos, released[split], split)
        elif len(videos) != VIDEOS[split]:
            print(f'{split}: {len(videos)} videos; the released protocol has '
                  f'{VIDEOS[split]}')
        parts.append(feature_set.Part(segments, split))
    classes = [BACKGROUND, *THUMOS14]
    if args.rate > 0 and not has_features(args, FOLDERS):
        # Models that read pixels need only the segments of each split.
        prepare_segments(args, {
            f'{part.list_name}.csv': (join_lines([
                'video,start,end,label',
                *(f'{one.video},{one.start:g},{one.end:g},'
                  f'{one.labels["action"]}' for one in part.segments)]),
                part.segments) for part in parts}, classes, 'classes.txt')
        return
    feature_set.prepare_parts(args, parts, named_targets(classes), FOLDERS,
                              fault, classes=classes, order=order)
