# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""TVSeries for online detection."""
import argparse

from ..annotations.published.tvseries import CLASSES, VIDEOS, read_tvseries
from ..annotations.video_segment import Fault, videos_of
from . import feature_set
from .feature_targets import BACKGROUND, known_classes, named_targets
from .sources import find_files

TITLE = __doc__
SOURCES = 'GT-train.txt GT-val.txt GT-test.txt'
NEEDS = """\
TVSeries needs its lists GT-train.txt, GT-val.txt and GT-test.txt, of
https://homes.esat.kuleuven.be/psi-archive/rdegeest/TVSeries.html, in any
number of runs, and features at 4 steps a second, <video>.npy. Its videos are
not public: extract features from your own copies
(mmvidattn extract-features)."""
FOLDERS = dict(rgb='rgb_kinetics_resnet50', flow='flow_kinetics_bninception')
# The released protocol trains on what the authors call validation, too.
LISTS = dict(train='train', val='train', test='test')


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of this data set."""
    feature_set.add_arguments(parser, FOLDERS)


def prepare(args: argparse.Namespace, fault: Fault) -> None:
    """Write the data root."""
    found = find_files(args.sources,
                       [f'GT-{split}.txt' for split in LISTS])
    if not found:
        raise ValueError('there is no GT-train.txt, GT-val.txt or GT-test.txt '
                         'among ' + ', '.join(map(str, args.sources)))
    parts = []
    for split, name in LISTS.items():
        path = found.get(f'GT-{split}.txt')
        if path is None:
            continue
        segments = known_classes(
            read_tvseries(path, name, fault=fault), CLASSES, fault)
        strange = {*videos_of(segments)} - {*VIDEOS[name]}
        if strange:
            feature_set.compare([*VIDEOS[name], *strange], VIDEOS[name],
                                f'{split}, list {name}.txt')
        parts.append(feature_set.Part(split, segments, [path], name))
    classes = [BACKGROUND, *CLASSES]
    feature_set.prepare_parts(
        args, parts, named_targets(classes), FOLDERS, fault, classes=classes,
        order=VIDEOS['train'] + VIDEOS['test'])
