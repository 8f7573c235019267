# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""UCF-101."""
import argparse

from ..formats.video_lists import read_ucf101
from ..formats.video_segment import Fault
from . import video_set
from .sources import find_one
from .video_set import VideoFiles

SOURCES = 'ucfTrainTestlist'
NEEDS = """\
UCF-101 needs classInd.txt, trainlist01.txt and testlist01.txt
(UCF101TrainTestSplits-RecognitionTask.zip of
https://www.crcv.ucf.edu/data/UCF101.php), and the videos, <class>/<video>.avi,
in OUT/videos."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of this data set."""
    parser.add_argument('--split', type=int, choices=(1, 2, 3), default=1,
                        help='which of the three (default: 1)')


def prepare(args: argparse.Namespace, fault: Fault) -> None:
    """Write the data root."""
    classes, train, val = (
        find_one(args.sources, name)
        for name in ('classInd.txt', f'trainlist{args.split:02}.txt',
                     f'testlist{args.split:02}.txt'))
    files = {
        name: VideoFiles(f'ucf101_{name}_split_{args.split}_videos.txt',
                         'videos', read_ucf101(path, classes))
        for name, path in dict(train=train, val=val).items()
    }
    video_set.prepare_lists(args, f'split {args.split}', files,
                            [train, val, classes], (101, ))
