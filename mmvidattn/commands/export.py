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
import json
from pathlib import Path

from ..utils.exits import one_line_errors
from ..utils.printable import echo
from ._options import add_cfg_options, add_device, add_model


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_model(parser)
    add = parser.add_argument
    add('out', type=Path, help='file to write: .pt2 or .onnx')
    add('--output', default='logits', metavar='NAME', help='output of the '
        'program: logits or probabilities (default: logits)')
    add('--normalize', metavar='DTYPE', nargs='?', const='uint8',
        help='normalize clips with values 0 to 255 inside the program, in the '
        'color order of the config: uint8 (default) or float32')
    add('--dynamic', metavar='SIZE', nargs='+', default=(),
        help='support other lengths (frames), other heights and widths '
        '(size), or both; the batch size is always dynamic')
    add('--shape', nargs=3, type=int, metavar=('T', 'H', 'W'), help='frames, '
        "height and width of a clip (default: the test pipeline's)")
    add('--kernel', metavar='NAME', help="kernel of a stream's long memory: "
        'window or smoothing (default: window)')
    add_device(parser, 'cpu', 'cpu; .pt2 files run on this device')
    add('--force', action='store_true', help='replace an existing file')
    add_cfg_options(parser)


def run(args: argparse.Namespace) -> None:
    from .. import export
    from ..apis import get_model
    from ..apis.config import find_config
    from ..apis.view_shape import shape_of
    from ._model_argument import split_model

    with one_line_errors():
        export.choose_format(args.out)
        if args.out.exists() and not args.force:
            raise FileExistsError(
                f'{args.out} exists; replace it with --force')
        _, config, checkpoint = split_model(args.model, with_sources=False)
        model = get_model(config, checkpoint, args.device, args.cfg_options)
        program = export.program_of(
            model, args.shape or shape_of(model.cfg)[0], args.output,
            args.normalize, args.dynamic, args.kernel)
        metadata = dict(config=find_config(config).stem)
        try:
            metadata['script'] = json.dumps(export.script_settings(program))
        except ValueError as error:
            echo(f'no script is written: {error}')
        differences = export.export_program(program, args.out, metadata)
        script = export.copy_script(args.out) if 'script' in metadata else None
    for name, value in differences.items():
        if not name.startswith('new_state'):
            echo(f'{name}: differs by {value:.1e} of its largest value')
    echo(f'largest difference: {max(differences.values()):.1e}')
    echo(f'{args.out}: {args.out.stat().st_size / 1e6:.1f} MB, '
         f'{", ".join(program.input_names)} -> '
         f'{", ".join(program.output_names)}')
    if script is not None:
        echo(f'{script}: classifies videos with this file, without mmvidattn')
