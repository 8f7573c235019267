# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Export a model to torch.export or ONNX."""
import argparse
import json

from ..apis import get_model
from ..apis.models import find_config
from ..apis.runner import one_line_errors
from ..export import (
    choose_format,
    copy_script,
    export_program,
    program_of,
    script_settings,
)
from ..utils.printable import echo
from .complexity import shape_of
from .model_argument import split_model


def run(args: argparse.Namespace) -> None:
    with one_line_errors():
        choose_format(args.out)
        if args.out.exists() and not args.force:
            raise FileExistsError(
                f'{args.out} exists; replace it with --force')
        leading, config, checkpoint = split_model(args.model)
        if leading:
            raise ValueError('expected BUNDLE, or CONFIG CHECKPOINT, before '
                             f'{args.out}, got {" ".join(args.model)}')
        model = get_model(config, checkpoint, args.device, args.cfg_options)
        program = program_of(
            model, args.shape or shape_of(model.cfg)[0], args.output,
            args.normalize, args.dynamic, args.kernel)
        metadata = dict(config=find_config(config).stem)
        try:
            metadata['script'] = json.dumps(script_settings(program))
        except ValueError as error:
            echo(f'no script is written: {error}')
        report = export_program(program, args.out, metadata)
    for name, value in report.differences.items():
        if not name.startswith('new_state'):
            echo(f'{name}: differs by {value:.1e} of its largest value')
    echo(f'largest difference: {max(report.differences.values()):.1e}')
    echo(f'{args.out}: {report.format}, {report.num_bytes / 1e6:.1f} MB, '
         f'{", ".join(program.input_names)} -> '
         f'{", ".join(program.output_names)}')
    if 'script' in metadata:
        echo(f'{copy_script(args.out)}: classifies videos with this file, '
             'without mmvidattn')
