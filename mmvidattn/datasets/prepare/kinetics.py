# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Kinetics-400, -600 and -700."""
import argparse

from ..formats.video_lists import read_kinetics
from ..formats.video_segment import Fault
from . import video_set
from .sources import find_one
from .video_set import VideoFiles

SOURCES = 'train.csv val.csv'
NEEDS = """\
Kinetics needs the lists to train and to validate on, train.csv and
validate.csv (or val.csv), which
https://github.com/cvdfoundation/kinetics-dataset has with the videos,
<id>_<start>_<end>.mp4: these in OUT/videos_train and OUT/videos_val, in a
folder a class or not."""
SIZES = 400, 600, 700


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of this data set."""
    parser.add_argument('--size', type=int, choices=SIZES,
                        help='which Kinetics it is (default: the number of '
                        'classes)')


def prepare(args: argparse.Namespace, fault: Fault) -> None:
    """Write the data root."""
    train, val = (
        find_one(args.sources, *(f'{prefix}{name}.csv' for prefix in (
            '', 'kinetics_', *(f'kinetics{size}_' for size in SIZES))
            for name in names))
        for names in (('train', ), ('validate', 'val')))
    training = read_kinetics(train)
    size = args.size or len(training.classes)
    if size not in SIZES:
        raise ValueError(f'{train} has {size} classes: say --size 400, 600 or '
                         '700')
    files = {
        name: VideoFiles(f'kinetics{size}_{name}_list_videos.txt',
                         f'videos_{name}', content, '.mp4')
        for name, content in dict(
            train=training,
            val=read_kinetics(val, training.classes)).items()
    }
    video_set.prepare_lists(args, str(size), files, [train, val], (size, ))
