# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""What the programs that train and test have in common."""
import argparse
import logging
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import torch.distributed as dist
from mmaction.registry import RUNNERS
from mmengine.config import Config, DictAction
from mmengine.model import is_model_wrapper
from mmengine.runner import Runner, find_latest_checkpoint

from ..utils.checkpoint import load_checkpoint, require_overlap
from .models import find_config, load_config


def add_runner_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options that training and testing share."""
    parser.add_argument(
        '--work-dir',
        help="folder for logs, checkpoints and metrics (default: the config's,"
        ' else work_dirs/<name of the config>)')
    parser.add_argument(
        '--cfg-options',
        nargs='+',
        action=DictAction,
        metavar='KEY=VALUE',
        help='change the config: dotted keys, and values such as 3, text, '
        'a,b or "[(1,2),(3,4)]" without blanks')
    parser.add_argument(
        '--launcher',
        choices=['none', 'pytorch', 'slurm', 'mpi'],
        default='none',
        help='what started the processes (default: none, there is one)')
    parser.add_argument(
        '--local_rank', '--local-rank', type=int, default=0,
        help='given by some launchers')


def load_runner_config(args: argparse.Namespace) -> Config:
    """The config of ``args.config``, with the shared options applied."""
    os.environ.setdefault('LOCAL_RANK', str(args.local_rank))
    cfg = load_config(args.config, args.cfg_options)
    cfg.launcher = args.launcher
    if args.work_dir is not None:
        cfg.work_dir = args.work_dir
    elif cfg.get('work_dir') is None:
        cfg.work_dir = str(Path('work_dirs', find_config(args.config).stem))
    return cfg


def build_runner(cfg: Config, strict: bool) -> Runner:
    """Build the runner, and check the checkpoint that it will load.

    mmengine loads whatever names and shapes agree, and goes on.

    Args:
        cfg: The config.
        strict: Whether ``load_from`` must be a checkpoint of exactly this
            model, and not just one to start from. To resume it always must.
    """
    if 'runner_type' in cfg:
        runner = RUNNERS.build(cfg)
    else:
        runner = Runner.from_cfg(cfg)
    model = runner.model.module if is_model_wrapper(
        runner.model) else runner.model
    checkpoint = cfg.get('load_from')
    if cfg.get('resume'):
        checkpoint = checkpoint or find_latest_checkpoint(runner.work_dir)
        strict = True
    if checkpoint:
        check = load_checkpoint if strict else require_overlap
        check(model, checkpoint)
    return runner


@contextmanager
def one_line_errors(prog: str) -> Iterator[None]:
    """End the program with one line for what is wrong with its input."""
    try:
        yield
    except (ValueError, TypeError, LookupError, OSError) as error:
        message = error.args[0] if isinstance(error, KeyError) else error
        raise SystemExit(f'{prog}: error: {message}') from error


def leave() -> None:
    """End a program that has done its work, when it is one of several.

    gloo's threads now and then abort a process while Python shuts down
    (``terminate called without an active exception``), and the launcher then
    takes the whole run for failed. So leave without that.
    """
    if dist.is_available() and dist.is_initialized():
        dist.destroy_process_group()
        logging.shutdown()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(0)
