# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Something-Something v2."""
import argparse

from ..formats.video_lists import read_ssv2
from ..formats.video_segment import Fault
from . import video_set
from .sources import find_one
from .video_set import VideoFiles

SOURCES = 'labels'
NEEDS = """\
Something-Something v2 needs train.json, validation.json and labels.json (or
something-something-v2-train.json and so on) of
https://www.qualcomm.com/developer/software/something-something-v-2-dataset,
and the videos, <id>.webm, in OUT/videos."""
OFFICIAL = 'something-something-v2-'
add_arguments = video_set.add_arguments


def prepare(args: argparse.Namespace, fault: Fault) -> None:
    """Write the data root."""
    labels, train, val = (
        find_one(args.sources, f'{name}.json', f'{OFFICIAL}{name}.json')
        for name in ('labels', 'train', 'validation'))
    files = {
        name: VideoFiles(f'sthv2_{name}_list_videos.txt', 'videos',
                         read_ssv2(path, labels), '.webm')
        for name, path in dict(train=train, val=val).items()
    }
    video_set.prepare_lists(args, '', files, [train, val, labels], (174, ))
