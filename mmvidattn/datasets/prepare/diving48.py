# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Diving-48, version 2."""
import argparse

from ..formats.video_lists import read_diving48, read_diving48_classes
from ..formats.video_segment import Fault
from . import video_set
from .sources import find_files, find_one
from .video_set import VideoFiles

VOCABULARY = 'Diving48_vocab.json'
SOURCES = 'FOLDER'
NEEDS = f"""\
Diving-48 needs Diving48_V2_train.json, Diving48_V2_test.json and, for the
names of classes, {VOCABULARY}, of
http://www.svcl.ucsd.edu/projects/resound/dataset.html, and the videos,
<name>.mp4, in OUT/videos."""
add_arguments = video_set.add_arguments


def prepare(args: argparse.Namespace, fault: Fault) -> None:
    """Write the data root."""
    train, val = (find_one(args.sources, f'Diving48_V2_{name}.json')
                  for name in ('train', 'test'))
    sources = [train, val]
    vocabulary = find_files(args.sources, [VOCABULARY]).get(VOCABULARY)
    classes = []
    if vocabulary:
        classes = read_diving48_classes(vocabulary)
        sources.append(vocabulary)
    files = {
        name: VideoFiles(
            f'diving48_{name}_list_videos.txt', 'videos',
            read_diving48(path)._replace(classes=classes), '.mp4')
        for name, path in dict(train=train, val=val).items()
    }
    video_set.prepare_lists(args, '', files, sources, (48, ))
