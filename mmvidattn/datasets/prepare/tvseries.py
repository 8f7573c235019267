# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Recipe for TVSeries, for online detection."""
import argparse

from ..annotations.published.tvseries import CLASSES, VIDEOS, read_tvseries
from ..annotations.video_segment import Fault, videos_of
from . import feature_set
from .feature_targets import BACKGROUND, known_classes, named_targets
from .sources import find_any

SOURCES = 'GT-train.txt GT-val.txt GT-test.txt'
NEEDS = """\
TVSeries needs
- its lists GT-train.txt, GT-val.txt and GT-test.txt, in one run or several
  (https://homes.esat.kuleuven.be/psi-archive/rdegeest/TVSeries.html).
- features at 4 steps per second, <video>.npy. The videos are not public:
  extract features from your own copies (mmvidattn extract-features)."""
FOLDERS = dict(rgb='rgb_kinetics_resnet50', flow='flow_kinetics_bninception')
# The released protocol also trains on the authors' validation videos.
LISTS = dict(train='train', val='train', test='test')


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of this data set."""
    feature_set.add_arguments(parser, FOLDERS)


def prepare(args: argparse.Namespace, fault: Fault) -> None:
    """Write the data root."""
    files = find_any(args.sources, [f'GT-{split}.txt' for split in LISTS])
    parts = []
    for split, name in LISTS.items():
        path = files.get(f'GT-{split}.txt')
        if path is None:
            continue
        segments = known_classes(
            read_tvseries(path, name, fault=fault), CLASSES, fault)
        unknown = {*videos_of(segments)} - {*VIDEOS[name]}
        if unknown:
            feature_set.compare([*VIDEOS[name], *unknown], VIDEOS[name],
                                f'{split}, list {name}.txt')
        parts.append(feature_set.Part(split, segments, [path], name))
    classes = [BACKGROUND, *CLASSES]
    feature_set.prepare_parts(
        args, parts, named_targets(classes), FOLDERS, fault, classes=classes,
        order=VIDEOS['train'] + VIDEOS['test'])
