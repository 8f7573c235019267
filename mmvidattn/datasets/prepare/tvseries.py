# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Recipe for TVSeries, for online detection."""
import argparse

from ..annotations.published import (
    TVSERIES,
    TVSERIES_VIDEOS,
    read_tvseries,
)
from ..annotations.video_segment import Fault, videos_of
from . import feature_set
from .feature_targets import BACKGROUND, known_classes, named_targets
from .files import find_any

SOURCES = 'GT-train.txt GT-val.txt GT-test.txt'
NEEDS = """\
TVSeries needs
- its lists GT-train.txt, GT-val.txt and GT-test.txt
  (https://homes.esat.kuleuven.be/psi-archive/rdegeest/TVSeries.html).
- features at 4 steps per second, <video>.npy. The videos are not public:
  extract features from your own copies (mmvidattn extract-features)."""
FOLDERS = dict(rgb='rgb_kinetics_resnet50', flow='flow_kinetics_bninception')
# The released protocol also trains on the authors' validation videos.
LISTS = dict(train=('train', 'val'), test=('test', ))


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of this data set."""
    feature_set.add_arguments(parser, FOLDERS)


def prepare(args: argparse.Namespace, fault: Fault) -> None:
    """Write the data root."""
    names = {list_name: [f'GT-{split}.txt' for split in splits]
             for list_name, splits in LISTS.items()}
    files = find_any(args.sources, sum(names.values(), []))
    parts = []
    for list_name, expected in names.items():
        segments = [
            one for name in expected if name in files for one in known_classes(
                read_tvseries(files[name], list_name, fault=fault), TVSERIES,
                fault)]
        unknown = {*videos_of(segments)} - {*TVSERIES_VIDEOS[list_name]}
        if unknown:
            feature_set.compare([*TVSERIES_VIDEOS[list_name], *unknown],
                                TVSERIES_VIDEOS[list_name], f'{list_name}.txt')
        if segments:
            parts.append(feature_set.Part(segments, list_name))
    classes = [BACKGROUND, *TVSERIES]
    feature_set.prepare_parts(
        args, parts, named_targets(classes), FOLDERS, fault, classes=classes,
        order=TVSERIES_VIDEOS['train'] + TVSERIES_VIDEOS['test'])
