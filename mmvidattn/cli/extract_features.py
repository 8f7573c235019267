# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Extract feature streams from videos with any network.

    mmvidattn extract-features VIDEOS data/mine/rgb CONFIG \\
        --checkpoint CHECKPOINT --rate 4

CONFIG is an mmaction2 recognizer, or `timm://NAME`,
`hf://OWNER/MODEL@REVISION` or `MODULE:CALLABLE`. Writes `<video>.npy`
`(steps, width)` for each video, with a step for each 1 / rate seconds. The
features are the input of a recognizer's classifier, or the output of another
network. They are causal: a step depends only on frames up to its end. The same
command resumes an interrupted run.

    mmvidattn extract-features videos.csv features CONFIG \\
        --engine ray --processes 8

shares a long list among processes of a Ray cluster.
"""
from collections.abc import Sequence
from pathlib import Path

from ._shared import (
    FLOWS,
    DictAction,
    add_cfg_options,
    add_device,
    add_engine,
    at_least,
    check_engine,
    parser_of,
    positive,
)


def main(argv: Sequence[str] | None = None) -> None:
    parser = parser_of(__doc__)
    parser.add_argument('videos', nargs='+', metavar='VIDEO',
                        help='video file, folder of videos, or list of videos '
                        '(.txt or .csv)')
    parser.add_argument('out', type=Path, help='folder to write to')
    parser.add_argument('config', help='config file or name of a recognizer, '
                        'or timm://NAME, hf://OWNER/MODEL@REVISION or '
                        'MODULE:CALLABLE')
    parser.add_argument('--checkpoint',
                        help='checkpoint of the network (default: the weights '
                        'of hf://, or else random weights); "pretrained" '
                        'downloads the weights of timm://')
    steps = parser.add_mutually_exclusive_group()
    steps.add_argument('--rate', type=positive, default=4.,
                       help='steps per second (default: 4)')
    steps.add_argument('--every', type=at_least(1), metavar='N',
                       help='one step every N frames, instead of --rate')
    parser.add_argument('--sample-fps', type=positive, metavar='FPS',
                        help='resample videos to this frame rate (default: '
                        'keep the rate of each video)')
    parser.add_argument('--input', nargs='+', action=DictAction,
                        metavar='KEY=VALUE', help='input of a network that is '
                        'not a recognizer: takes=frames or clips, mean, std, '
                        'value_range=1 or 255, resize, crop, interpolation, '
                        'color=RGB or BGR (default: the settings of timm or '
                        'the Hub)')
    parser.add_argument('--flow', choices=FLOWS,
                        help='method to compute optical flow, for recognizers '
                        'of flow')
    parser.add_argument('--flow-side', type=at_least(1), default=180,
                        help='short side of the frames that flow is computed '
                        'from (default: 180)')
    parser.add_argument('--bound', type=positive, default=20.,
                        help='flow in pixels that maps to 0 and 255 (default: '
                        '20)')
    parser.add_argument('--clip-len', type=at_least(1),
                        help="number of frames, or flow fields, in the clip "
                        "of a step (default: the config's)")
    parser.add_argument('--frame-interval', type=at_least(1), default=1,
                        help='interval between frames of a clip (default: 1)')
    parser.add_argument('--layer',
                        help='layer whose input is the features (default: '
                        'cls_head.fc_cls of a recognizer, or else the output '
                        'of the network)')
    parser.add_argument('--threads', type=at_least(1), default=1,
                        help='threads per process (default: 1)')
    parser.add_argument('--batch-size', type=at_least(1), default=16,
                        help='number of steps per batch (default: 16)')
    add_device(parser)
    add_cfg_options(parser)
    add_engine(parser)
    args = parser.parse_args(argv)
    check_engine(parser, args)
    from ..commands import extract_features
    extract_features.run(args)
