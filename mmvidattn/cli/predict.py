# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Classify videos, or time windows of long videos.

    mmvidattn predict VIDEO [VIDEO ...] BUNDLE
    mmvidattn predict VIDEO [VIDEO ...] CONFIG CHECKPOINT
    mmvidattn predict LONG_VIDEO BUNDLE --windows 10 --stride 5
    mmvidattn predict LONG_VIDEO BUNDLE --segments tasks.json --to label-studio
    mmvidattn predict videos.csv BUNDLE --json predictions
"""
import argparse
from collections.abc import Sequence
from pathlib import Path

from ._shared import (
    ANNOTATION_FORMATS,
    add_device,
    add_engine,
    add_model,
    check_engine,
    parser_of,
)

# Options that predictions in a folder do not support.
FILE_ONLY = ('out', 'json_lines', 'windows', 'stride', 'segments', 'to',
             'thresholds', 'fps', 'batch_size', 'compile')


def to_folder(args: argparse.Namespace) -> bool:
    """Return True if --json is a folder."""
    path = args.json
    # /dev/stdout has no suffix either.
    return path is not None and (path.is_dir() or not (
        path.suffix or path.exists()))


def parse_args(argv: Sequence[str] | None = None) -> argparse.Namespace:
    parser = parser_of(__doc__)
    parser.add_argument(
        'videos', nargs='+', metavar='VIDEO',
        help='video file or its URL, folder of videos, or folder of frames '
        '(without any video); with --json FOLDER also a list of videos (.txt '
        'or .csv), with --windows also the number of a camera, or the URL of '
        'a stream')
    add_model(parser)
    parser.add_argument(
        '--labels', help='file with one class name per line (default: the '
        "names in the checkpoint, or else the config's)")
    parser.add_argument(
        '--out', type=Path, metavar='FILE_OR_FOLDER',
        help='write the captioned video to an .mp4 file, or some captioned '
        'frames to a .png or .jpg file, or an .mp4 file per video to a '
        'folder')
    parser.add_argument(
        '--json', type=Path, metavar='FILE_OR_FOLDER',
        help='write the predictions to a file, or a .json file per video to a '
        'folder (a path without a suffix), where the same command continues')
    parser.add_argument(
        '--json-lines', type=Path, metavar='FILE',
        help='write each prediction to this file immediately, one per line')
    parser.add_argument(
        '--windows', type=float, metavar='SECONDS',
        help='classify time windows of this length; --out then shows in each '
        'frame the prediction of the latest window that contains it')
    parser.add_argument(
        '--stride', type=float, metavar='SECONDS',
        help='seconds between the starts of consecutive windows (default: '
        'their length)')
    parser.add_argument(
        '--segments', type=Path, metavar='OUT',
        help='find the actions in long videos and write them with their '
        'scores as annotations, to be corrected in an annotation program. '
        'Clip models use windows (default: as in mmvidattn stream)')
    parser.add_argument(
        '--to', metavar='FORMAT',
        help=f'format of --segments, one of {", ".join(ANNOTATION_FORMATS)} '
        '(default: by the suffix of OUT)')
    parser.add_argument(
        '--thresholds', type=Path, metavar='FILE',
        help='thresholds of each class for --segments, from mmvidattn '
        "tune-thresholds (default: the model's)")
    parser.add_argument(
        '--fps', type=float,
        help='frame rate of folders of frames and of live sources')
    parser.add_argument(
        '--batch-size', type=int, default=1,
        help='number of videos or windows per batch (default: %(default)s)')
    parser.add_argument(
        '--compile', action='store_true',
        help='compile the model first, which pays off for many videos')
    add_device(parser)
    add_engine(parser)
    args = parser.parse_intermixed_args(argv)
    check_engine(parser, args)
    if to_folder(args):
        for name in FILE_ONLY:
            if getattr(args, name) != parser.get_default(name):
                parser.error('--json FOLDER does not support '
                             f'--{name.replace("_", "-")}')
        return args
    if args.engine is not None:
        parser.error('--engine needs --json FOLDER')
    if args.segments is None:
        for name in 'to', 'thresholds':
            if getattr(args, name):
                parser.error(f'--{name} needs --segments')
    else:
        for name in ('labels', 'out', 'json', 'json_lines', 'compile'):
            if getattr(args, name):
                parser.error(f'--segments does not support '
                             f'--{name.replace("_", "-")}')
        if args.batch_size != 1:
            parser.error('--segments does not support --batch-size')
        return args
    if args.windows is None and args.stride is not None:
        parser.error('--stride needs --windows or --segments')
    if args.windows is not None and args.json:
        parser.error('--windows supports --json-lines, but not --json, which '
                     'needs all predictions in memory')
    return args


def main(argv: Sequence[str] | None = None) -> None:
    args = parse_args(argv)
    if args.segments is None:
        from ..commands import predict
        (predict.run_folder if to_folder(args) else predict.run)(args)
    else:
        from ..commands import predict_segments
        predict_segments.run(args)
