# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Export a model to torch.export or ONNX."""
import argparse

from ..apis import get_model
from ..apis.models import find_config
from ..apis.runner import one_line_errors
from ..export import (
    choose_format,
    export_program,
    make_script,
    program_of,
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
        report = export_program(
            program, args.out, dict(config=find_config(config).stem))
    for name, value in report.differences.items():
        if not name.startswith('new_state'):
            echo(f'{name}: differs by {value:.1e} of its largest value')
    echo(f'largest difference: {max(report.differences.values()):.1e}')
    echo(f'{args.out}: {report.format}, {report.num_bytes / 1e6:.1f} MB, '
         f'{", ".join(program.input_names)} -> '
         f'{", ".join(program.output_names)}')
    try:
        script, text = make_script(program, args.out)
    except ValueError as error:
        echo(f'no script is written: {error}')
    else:
        script.write_text(text, 'utf-8')
        echo(f'{script}: classifies videos with this file, without mmvidattn')
