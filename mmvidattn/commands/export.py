# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Export a model to torch.export or ONNX."""
import argparse

from ..apis import get_model
from ..apis.models import find_config
from ..apis.runner import one_line_errors
from ..export import choose_format, export_program, program_of
from ..utils.printable import echo
from .complexity import shape_of


def run(args: argparse.Namespace) -> None:
    with one_line_errors():
        choose_format(args.out)
        if args.out.exists() and not args.force:
            raise FileExistsError(
                f'{args.out} exists; replace it with --force')
        model = get_model(args.config, args.checkpoint, args.device,
                          args.cfg_options)
        program = program_of(
            model, args.shape or shape_of(model.cfg)[0], args.output,
            args.normalize, args.dynamic, args.kernel)
        report = export_program(
            program, args.out, dict(config=find_config(args.config).stem))
    for name, value in report.differences.items():
        if not name.startswith('new_state'):
            echo(f'{name}: differs by {value:.1e} of its largest value')
    echo(f'largest difference: {max(report.differences.values()):.1e}')
    echo(f'{args.out}: {report.format}, {report.num_bytes / 1e6:.1f} MB, '
         f'{", ".join(program.input_names)} -> '
         f'{", ".join(program.output_names)}')
