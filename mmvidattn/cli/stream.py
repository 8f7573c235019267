# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Detect actions live in videos, cameras or network streams.

    mmvidattn stream SOURCE [SOURCE ...] BUNDLE
    mmvidattn stream SOURCE [SOURCE ...] CONFIG CHECKPOINT \\
        --rgb RECOGNIZER WEIGHTS
    mmvidattn stream SOURCE [SOURCE ...] RECOGNIZER CHECKPOINT --seconds 2

The model is an online detector, which reads the features of an extractor, or a
clip model, which runs on a sliding window.

A source is a video file, a folder of frames, the number of a camera, or a URL
such as rtsp://... . Ctrl-C stops the program; its output files are kept.
"""
import argparse
import os
from collections.abc import Sequence
from pathlib import Path

from ._shared import (
    FLOWS,
    add_cfg_options,
    add_device,
    add_model,
    parser_of,
)


def parse_args(argv: Sequence[str] | None = None) -> argparse.Namespace:
    parser = parser_of(__doc__)
    parser.add_argument(
        'sources', nargs='+', metavar='SOURCE',
        help='video file, folder of frames, number of a camera, or URL')
    add_model(parser)
    parser.add_argument(
        '--rgb', nargs=2, metavar=('CONFIG', 'CHECKPOINT'),
        help="network that computes the features 'rgb' (see "
        "extract-features) and its checkpoint, or '-' for the network's "
        "default weights (default: the config's online.extractors.rgb)")
    parser.add_argument(
        '--flow', nargs=2, metavar=('CONFIG', 'CHECKPOINT'),
        help="network of optical flow that computes the features 'flow', with "
        "its checkpoint (default: the config's online.extractors.flow)")
    parser.add_argument(
        '--seconds', type=float,
        help='length of the sliding window of a clip model (default: the '
        "config's online.seconds, or else the span of a clip in its test "
        'pipeline)')
    parser.add_argument(
        '--stride', type=float,
        help='seconds between windows of a clip model (default: the '
        "config's online.stride, or else the distance between frames or "
        'tubelets that it encodes independently)')
    parser.add_argument(
        '--flow-method', choices=FLOWS,
        help="method to compute flow (default: the config's, or else dis)")
    parser.add_argument(
        '--events', type=Path, metavar='FILE',
        help='write the start and end of each action to this file '
        'immediately, as JSON Lines')
    parser.add_argument(
        '--out', type=Path, metavar='FILE',
        help='write the video with its scores to this .mp4 file')
    parser.add_argument(
        '--plot', type=Path, metavar='FILE',
        help='write an image of the scores over time (the last hour) to this '
        '.png file')
    parser.add_argument(
        '--truth', type=Path, metavar='FILE',
        help='.npy file (steps, classes) with the ground truth for the plot, '
        'like the files in target_perframe')
    for name, meaning, default in (
            ('on', 'score at which an action starts', '0.5'),
            ('off', 'score below which an action ends',
             '0.3; both are scaled with a lower --on'),
            ('min-duration', 'minimum seconds of an action', '0.5')):
        parser.add_argument(
            f'--{name}', type=float,
            help=f"{meaning} (default: the config's, or else {default})")
    parser.add_argument(
        '--thresholds', type=Path, metavar='FILE',
        help='thresholds of each class, from mmvidattn tune-thresholds, '
        'instead of --on, --off and --min-duration')
    parser.add_argument(
        '--scores', type=Path, metavar='FOLDER',
        help='write the scores of all steps to this folder, for mmvidattn '
        'tune-thresholds and mmvidattn score')
    parser.add_argument(
        '--realtime', action='store_true',
        help='play files at their frame rate, and drop steps if the machine '
        'is too slow, like with a camera')
    parser.add_argument(
        '--fps', type=float, help='frame rate of a folder (default: 25) or '
        'camera (default: the rate that it reports)')
    parser.add_argument(
        '--queue', type=int, default=4, help='maximum number of waiting steps '
        'before the oldest one is dropped (default: %(default)s)')
    parser.add_argument(
        '--compile', action='store_true',
        help="compile the online detector's step first, which takes a minute "
        'and makes it faster')
    parser.add_argument(
        '--duration', type=float, metavar='SECONDS',
        help='stop after this many seconds of the source')
    parser.add_argument(
        '--state', type=Path, metavar='FILE',
        help='save the state to this file; if the program was stopped or '
        'killed, the same command resumes from the file, and appends to the '
        'file of events')
    parser.add_argument(
        '--state-seconds', type=float, default=10., metavar='SECONDS',
        help='seconds between saves of the state (default: %(default)s)')
    parser.add_argument(
        '--segments', type=Path, metavar='FOLDER',
        help='write a clip of each action to this folder, named by the number '
        'of its start event')
    parser.add_argument(
        '--segment-margin', type=float, nargs=2, default=(2., 2.),
        metavar=('BEFORE', 'AFTER'),
        help='seconds before and after the action in its clip (default: 2 2)')
    parser.add_argument(
        '--segment-mb', type=float, default=64., metavar='MB',
        help='memory for the frames of clips per source (default: '
        '%(default)s)')
    parser.add_argument(
        '--webhook', metavar='URL',
        help='post each event to this http(s) URL as JSON; with --events and '
        '--state at least once, even if the program is killed')
    parser.add_argument(
        '--mqtt', metavar='URL',
        help='publish each event with MQTT, with the same guarantee: '
        'mqtt://USER:PASSWORD@HOST:PORT/TOPIC')
    parser.add_argument(
        '--serve', action='store_true',
        help='serve a web page until Ctrl-C; files play at their frame rate')
    parser.add_argument(
        '--host', default='127.0.0.1',
        help='address that the page listens on (default: %(default)s, which '
        'only this machine can reach)')
    parser.add_argument(
        '--port', type=int, default=8000,
        help='port of the page, or 0 for any free port (default: %(default)s)')
    parser.add_argument(
        '--token', default=os.environ.get('MMVIDATTN_TOKEN'),
        help='access token of the page (default: $MMVIDATTN_TOKEN, or else a '
        'random token if other machines can reach the host)')
    parser.add_argument(
        '--max-clients', type=int, default=8,
        help='maximum number of connections (default: %(default)s)')
    parser.add_argument(
        '--read-only', action='store_true',
        help='do not let users of the page change thresholds')
    add_device(parser)
    add_cfg_options(parser)
    return parser.parse_intermixed_args(argv)


def main(argv: Sequence[str] | None = None) -> None:
    args = parse_args(argv)
    from ..commands import stream
    stream.run(args)
