# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Test a checkpoint on the test set of its config.

    mmvidattn test configs/linear_ff_tiny_motion.py CHECKPOINT
"""
import argparse
from pathlib import Path

from ..utils.exits import end_program, one_line_errors, one_line_stop
from ._options import add_config, add_runner_arguments


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_config(parser)
    parser.add_argument(
        '--dump', metavar='FILE.pkl',
        help='write the predictions to this file, as mmaction2 does')
    add_runner_arguments(parser)


def run(args: argparse.Namespace) -> None:
    from mmengine.device import get_device

    from ..apis.build_runner import (
        build_loops,
        build_runner,
        explained_errors,
        load_runner_config,
    )
    from ..apis.config import located_errors
    from ..apis.models import find_weights
    from ..utils.half_precision import amp

    with one_line_stop():
        # Do not lock the work directory: a test writes to a separate folder,
        # and users test checkpoints while training continues.
        with one_line_errors():
            if args.dump:
                out = Path(args.dump)
                if out.suffix not in ('.pkl', '.pickle') or out.is_dir():
                    raise ValueError('--dump must be a file that ends with '
                                     f'.pkl or .pickle, got {out}')
                out.parent.mkdir(parents=True, exist_ok=True)
            cfg = load_runner_config(args)
            cfg.load_from = str(find_weights(args.config, args.checkpoint))
            cfg.resume = False
            if args.amp:
                # Otherwise, mmengine's loop turns autocast off.
                cfg.test_cfg.fp16 = True
            if args.dump:
                evaluators = cfg.test_evaluator
                if not isinstance(evaluators, list):
                    evaluators = [evaluators]
                cfg.test_evaluator = [*evaluators, dict(
                    type='DumpResults', out_file_path=args.dump)]
            with located_errors(cfg):
                runner = build_runner(cfg, strict=True, compile=args.compile)
                build_loops(runner, 'test')
        with explained_errors(runner), amp(
                get_device(), args.amp and cfg.test_cfg.fp16):
            runner.test()
    end_program()
