# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Test a checkpoint on the test set of its config."""
import argparse

from ..apis.models import find_weights
from ..apis.runner import (
    build_runner,
    leave,
    load_runner_config,
    one_line_errors,
)
from ..apis.show_predictions_hook import ShowPredictionsHook
from ..datasets import FeatureStreamDataset
from ..datasets.prepare import describe_root
from ..utils.interrupts import one_line_stop


def run(args: argparse.Namespace) -> None:
    with one_line_stop():
        _test(args)
    leave()


def _test(args: argparse.Namespace) -> None:
    # Do not lock the work directory: a test writes to a separate folder, and
    # users test checkpoints while training continues.
    with one_line_errors():
        cfg = load_runner_config(args)
        cfg.load_from = str(find_weights(args.config, args.checkpoint))
        cfg.resume = False
        if args.dump:
            evaluators = cfg.test_evaluator
            if not isinstance(evaluators, list):
                evaluators = [evaluators]
            cfg.test_evaluator = [
                *evaluators,
                dict(type='DumpResults', out_file_path=args.dump)
            ]
        runner = build_runner(cfg, True, args.compile)
        # Build the test set now, to find errors in it.
        dataset = runner.test_loop.dataloader.dataset
        if isinstance(dataset, FeatureStreamDataset):
            # Log the origin of the targets, because the score depends on it.
            runner.logger.info(describe_root(dataset.data_root))
    if args.show_dir or args.show:
        runner.register_hook(
            ShowPredictionsHook(
                out_dir=args.show_dir,
                show=args.show,
                interval=args.interval,
                wait_time=args.wait_time))
    runner.test()
