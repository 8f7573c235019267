# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Extract feature streams from videos with any network."""
import argparse
import copy
import hashlib
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import torch
from mmengine.registry import init_default_scope

from ..apis import load_config
from ..apis.many_videos import open_folder, plan_videos, process_videos
from ..apis.runner import one_line_errors, program_name
from ..live.features import CLASSIFIER, FeatureExtractor, VideoFeatures
from ..live.named_networks import is_network
from ..utils.files import replacing
from ..utils.hub import SCHEME
from ..utils.printable import echo
from ..utils.remote_files import local_path


class Extractor(VideoFeatures):
    """Extractor of the features of each step of a video.

    Args:
        options: Options of the command line.
    """

    def __init__(self, options: dict[str, Any]) -> None:
        self.options = options
        options = dict(options)
        threads = options.pop('threads')
        torch.set_num_threads(threads)
        cv2.setNumThreads(threads)
        torch.manual_seed(0)
        steps = dict(rate=options.pop('rate'),
                     every=options.pop('every', None),
                     batch_size=options.pop('batch_size'))
        super().__init__(FeatureExtractor(**options), **steps)


_extractor: Extractor | None = None
# Options that do not change the features.
IRRELEVANT = 'batch_size', 'device', 'threads'


def make_extract(options: dict[str, Any], out: Path
                 ) -> Callable[[str, str], None]:
    """Return the function of a video and its name, for this process."""
    global _extractor
    if _extractor is None or _extractor.options != options:
        _extractor = Extractor(options)
    extractor = _extractor

    def extract(source: str, name: str) -> None:
        rows = extractor(local_path(source))
        # Another program may write the same file.
        with replacing(out / f'{name}.npy', to_disk=False,
                       shared=True) as part, part.open('wb') as file:
            np.save(file, rows)

    return extract


def settings_of(options: dict[str, Any]) -> dict[str, Any]:
    """Return the options that determine the features."""
    kept = {key: value for key, value in options.items()
            if key not in IRRELEVANT}
    # For recognizers, do not add these keys, which earlier versions lack.
    if not is_network(options['config']):
        kept['layer'] = options['layer'] or CLASSIFIER
        kept['config'] = hashlib.sha256(
            str(load_config(options['config'],
                            options['cfg_options']).to_dict()).encode()
        ).hexdigest()
    return kept


def run(args: argparse.Namespace) -> None:
    with one_line_errors():
        options = copy.deepcopy(vars(args))
        for name in 'videos', 'out', 'processes', 'engine':
            del options[name]
        videos = plan_videos(args.videos)
        if args.checkpoint is None and not args.config.startswith(SCHEME):
            echo(f'{program_name()}: warning: without --checkpoint the '
                 'weights are random', file=sys.stderr)
        # Build the network here first, to report errors once.
        init_default_scope('mmaction')
        make = partial(make_extract, options, args.out.absolute())
        make()
        echo(f'{_extractor.recognizer.width} features per step')
        open_folder(args.out, 'features.json', settings_of(options),
                    'extract-features')
        process_videos(
            'Extracting', videos, args.out, '.npy', make,
            engine=args.engine, processes=args.processes, device=args.device)
