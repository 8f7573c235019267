# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Moments in Time."""
import argparse

from ..formats.video_lists import read_mit
from ..formats.video_segment import Fault
from . import video_set
from .sources import find_one
from .video_set import VideoFiles

SOURCES = 'Moments_in_Time_Raw'
NEEDS = """\
Moments in Time needs moments_categories.txt, trainingSet.csv and
validationSet.csv (Moments_in_Time_Raw.zip, on request at
http://moments.csail.mit.edu), and the videos, <class>/<video>.mp4, in
OUT/videos/training and OUT/videos/validation."""
add_arguments = video_set.add_arguments


def prepare(args: argparse.Namespace, fault: Fault) -> None:
    """Write the data root."""
    classes, train, val = (
        find_one(args.sources, name)
        for name in ('moments_categories.txt', 'trainingSet.csv',
                     'validationSet.csv'))
    folders = dict(train='training', val='validation')
    files = {
        name: VideoFiles(f'mit_{name}_list_videos.txt',
                         f'videos/{folders[name]}', read_mit(path, classes))
        for name, path in dict(train=train, val=val).items()
    }
    video_set.prepare_lists(args, '', files, [train, val, classes],
                            (339, 305))
