# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Export a model to torch.export or ONNX.

    mmvidattn export BUNDLE OUT.onnx
    mmvidattn export CONFIG CHECKPOINT OUT.onnx

The suffix of OUT selects the format: .pt2 (torch.export) or .onnx. The command
compares the outputs of the file and of the model, for batches of 1 and of 5,
and keeps the file only if they agree. See configs/export.md for examples and
supported models.
"""
import argparse
from collections.abc import Sequence
from pathlib import Path

from ._shared import add_cfg_options, add_model, parser_of


def parse_args(argv: Sequence[str] | None = None) -> argparse.Namespace:
    parser = parser_of(__doc__)
    add_model(parser)
    parser.add_argument('out', type=Path, help='file to write: .pt2 or .onnx')
    parser.add_argument(
        '--output', choices=('logits', 'probabilities'), default='logits',
        help='output of the program (default: logits)')
    parser.add_argument(
        '--normalize', choices=('uint8', 'float32'), nargs='?', const='uint8',
        help='normalize clips of this type with values 0 to 255 inside the '
        'program, in the color order of the config (without a type: uint8)')
    parser.add_argument(
        '--dynamic', choices=('frames', 'size'), nargs='+', default=(),
        help='support other lengths (frames), other heights and widths '
        '(size), or both; the batch size is always dynamic')
    parser.add_argument(
        '--shape', nargs=3, type=int, metavar=('T', 'H', 'W'),
        help="frames, height and width of a clip (default: the test "
        "pipeline's)")
    parser.add_argument(
        '--kernel', choices=('window', 'smoothing'),
        help="kernel of a stream's long memory (default: window)")
    parser.add_argument('--device', default='cpu',
                        help='device that .pt2 files run on (default: cpu)')
    parser.add_argument('--force', action='store_true',
                        help='replace an existing file')
    add_cfg_options(parser)
    return parser.parse_intermixed_args(argv)


def main(argv: Sequence[str] | None = None) -> None:
    args = parse_args(argv)
    from ..commands import export
    export.run(args)
