# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""HMDB-51."""
import argparse

from ..formats.video_lists import read_hmdb51
from ..formats.video_segment import Fault
from . import video_set
from .ucf101 import add_arguments as add_arguments
from .video_set import VideoFiles

SOURCES = 'testTrainMulti_7030_splits'
NEEDS = """\
HMDB-51 needs the folder testTrainMulti_7030_splits, with
<class>_test_split1.txt and so on (test_train_splits.rar of
https://serre-lab.clps.brown.edu/resource/hmdb-a-large-human-motion-database/),
and the videos, <class>/<video>.avi, in OUT/videos."""


def prepare(args: argparse.Namespace, fault: Fault) -> None:
    """Write the data root."""
    folder = args.sources[0]
    files = {
        name: VideoFiles(f'hmdb51_{name}_split_{args.split}_videos.txt',
                         'videos', content)
        for name, content in read_hmdb51(folder, args.split).items()
    }
    video_set.prepare_lists(args, f'split {args.split}', files, [folder],
                            (51, ))
