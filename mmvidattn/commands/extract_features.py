# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Extract feature streams from videos with any network.

    mmvidattn extract-features VIDEOS data/mine/rgb CONFIG \\
        --checkpoint CHECKPOINT --rate 4

CONFIG is an mmaction2 recognizer, `MODULE:CALLABLE`, or a network of
transformers, `hf://OWNER/MODEL@REVISION`. Writes `<video>.npy`
`(steps, width)` for each video, with a step for each 1 / rate seconds. The
features are the input of a recognizer's classifier, or the output of another
network. They are causal: a step depends only on frames up to its end. The same
command resumes an interrupted run.

    mmvidattn extract-features videos.csv features CONFIG \\
        --engine ray --processes 8

shares a long list among processes of a Ray cluster.
"""
import argparse
import hashlib
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..utils.exits import one_line_errors, program_name
from ..utils.printable import echo
from ._options import (
    DictAction,
    add_cfg_options,
    add_compute,
    add_engine,
    at_least,
    check_engine,
    positive,
)

if TYPE_CHECKING:
    from ..live.features import VideoFeatures

# Options that do not change the features.
IRRELEVANT = 'batch_size', 'device', 'threads'
# Arguments that do not belong to the extractor.
OF_COMMAND = 'videos', 'out', 'processes', 'engine', 'run'
# Options and extractor of this process.
_loaded: 'tuple[dict[str, Any], VideoFeatures] | None' = None


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add('videos', nargs='+', metavar='VIDEO', help='video file, folder of '
        'videos, or list of videos (.txt or .csv)')
    add('out', type=Path, help='folder to write to')
    add('config', help='config of a recognizer, MODULE:CALLABLE, or '
        'hf://OWNER/MODEL@REVISION for a network of transformers')
    add('--checkpoint', help='checkpoint of the network, or the name of '
        'published weights (default: random weights)')
    steps = parser.add_mutually_exclusive_group()
    steps.add_argument('--rate', type=positive, default=4.,
                       help='steps per second (default: 4)')
    steps.add_argument('--every', type=at_least(1), metavar='N',
                       help='one step every N frames, instead of --rate')
    add('--sample-fps', type=positive, metavar='FPS', help='resample videos '
        'to this frame rate (default: keep the rate of each video)')
    add('--input', nargs='+', action=DictAction, metavar='KEY=VALUE',
        help='input of a network that is not a recognizer: takes=frames or '
        'clips, mean, std, value_range=1 or 255, resize, crop, '
        'interpolation, color=RGB or BGR')
    add('--flow', metavar='METHOD', help='optical flow for a recognizer of '
        'flow: dis, tvl1 or farneback')
    add('--flow-side', type=at_least(1), default=180, help='short side of the '
        'frames that flow is computed from (default: 180)')
    add('--bound', type=positive, default=20.,
        help='flow in pixels that maps to 0 and 255 (default: 20)')
    add('--clip-len', type=at_least(1), help='number of frames, or flow '
        "fields, in the clip of a step (default: the config's)")
    add('--frame-interval', type=at_least(1), default=1,
        help='interval between frames of a clip (default: 1)')
    add('--layer', help='layer whose input is the features (default: '
        'cls_head.fc_cls of a recognizer, or else the output of the network)')
    add('--threads', type=at_least(1), default=1,
        help='threads per process (default: 1)')
    add('--batch-size', type=at_least(1), default=16,
        help='number of steps per batch (default: 16)')
    add_compute(parser)
    add_cfg_options(parser)
    add_engine(parser)


def options_of(args: argparse.Namespace) -> dict[str, Any]:
    """Return the options of the extractor."""
    return {name: value for name, value in vars(args).items()
            if name not in OF_COMMAND}


def load_extractor(options: dict[str, Any]) -> 'VideoFeatures':
    """Build the extractor of this process, unless it has it."""
    global _loaded
    if _loaded is not None and _loaded[0] == options:
        return _loaded[1]
    import cv2
    import torch

    from ..live.features import FeatureExtractor, VideoFeatures

    rest = dict(options)
    del rest['amp']
    threads = rest.pop('threads')
    torch.set_num_threads(threads)
    cv2.setNumThreads(threads)
    torch.manual_seed(0)
    steps = {name: rest.pop(name) for name in ('rate', 'every', 'batch_size')}
    extractor = VideoFeatures(FeatureExtractor(**rest), **steps)
    _loaded = options, extractor
    return extractor


def write_features(options: dict[str, Any], out: Path, source: str,
                   name: str) -> None:
    """Write the features of a video, with the extractor of this process."""
    import numpy as np

    from ..utils.files import replacing
    from ..utils.half_precision import amp
    from ..utils.remote_files import local_path

    with amp(options['device'], options['amp']):
        rows = load_extractor(options)(local_path(source))
    # Another program may write the same file.
    with replacing(out / f'{name}.npy', shared=True) as part, part.open(
            'wb') as file:
        np.save(file, rows)


def settings_of(options: dict[str, Any]) -> dict[str, Any]:
    """Return the options that determine the features."""
    from ..apis import load_config
    from ..live.features import CLASSIFIER
    from ..live.networks import is_network

    kept = {key: value for key, value in options.items()
            if key not in IRRELEVANT}
    # Do not add keys which earlier versions lack.
    if not kept['amp']:
        del kept['amp']
    if not is_network(options['config']):
        kept['layer'] = options['layer'] or CLASSIFIER
        kept['config'] = hashlib.sha256(
            str(load_config(options['config'],
                            options['cfg_options']).to_dict()).encode()
        ).hexdigest()
    return kept


def run(args: argparse.Namespace) -> None:
    from mmengine.registry import init_default_scope

    from ..apis.many_videos import open_folder, plan_videos, process_videos

    with one_line_errors():
        check_engine(args)
        options = options_of(args)
        videos = plan_videos(args.videos)
        if args.checkpoint is None and not args.config.startswith('hf://'):
            echo(f'{program_name()}: warning: without --checkpoint the '
                 'weights are random', file=sys.stderr)
        # Build the network here first, to report errors once.
        init_default_scope('mmaction')
        extractor = load_extractor(options)
        echo(f'{extractor.recognizer.width} features per step')
        open_folder(args.out, 'features.json', settings_of(options),
                    'extract-features')
        process_videos(
            'Extracting', videos, args.out, '.npy',
            partial(write_features, options, args.out.absolute()),
            engine=args.engine, processes=args.processes, device=args.device)
