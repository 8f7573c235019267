# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Options shared by several commands."""
import argparse
from collections.abc import Callable
from typing import Any


class DictAction(argparse.Action):
    """mmengine's ``DictAction``, imported only when the option is used."""

    def __call__(self, parser: argparse.ArgumentParser,
                 namespace: argparse.Namespace, values: Any,
                 option_string: str | None = None) -> None:
        if wrong := [value for value in values if '=' not in value]:
            parser.error(f'{option_string} must be KEY=VALUE, got {wrong[0]}')
        from mmengine.config import DictAction
        DictAction(self.option_strings, self.dest)(
            parser, namespace, values, option_string)


def add_config(parser: argparse.ArgumentParser,
               checkpoint: bool = True) -> None:
    """Add the arguments CONFIG and CHECKPOINT."""
    parser.add_argument('config', help='config file, or its name')
    if checkpoint:
        parser.add_argument('checkpoint', help='checkpoint file')


def add_model(parser: argparse.ArgumentParser) -> None:
    """Add BUNDLE, or CONFIG CHECKPOINT, after the sources of a command."""
    parser.add_argument(
        'model', nargs='*', default=[], metavar='MODEL',
        help='BUNDLE, a folder or zip file (see mmvidattn bundle), or CONFIG '
             'CHECKPOINT, two arguments, or a name with published weights, '
             'such as vjepa2_l_ssv2 (default: a small model in the package '
             'that recognizes eight motions of drawn shapes)')


def add_cfg_options(parser: argparse.ArgumentParser) -> None:
    """Add the option that changes a config."""
    parser.add_argument(
        '--cfg-options', nargs='+', action=DictAction, metavar='KEY=VALUE',
        help='change the config: dotted keys, and values such as 3, text, '
        'a,b or "[(1,2),(3,4)]" without blanks; data_root=FOLDER moves all '
        'files of the data set')


def add_compute(parser: argparse.ArgumentParser) -> None:
    """Add the options --amp and --device."""
    add_amp(parser)
    add_device(parser)


def add_device(parser: argparse.ArgumentParser, default: str = 'auto',
               meaning: str = 'auto, the best available one') -> None:
    """Add the option --device."""
    parser.add_argument(
        '--device', type=_device, default=default,
        help=f'device to compute on (default: {meaning})')


def _device(text: str) -> str:
    if text == 'auto':
        from mmengine.device import get_device
        return get_device()
    import torch
    try:
        torch.empty(0, device=text)
    except (RuntimeError, AssertionError) as error:
        raise argparse.ArgumentTypeError(
            f'{text} cannot be used: {str(error).splitlines()[0]}') from error
    return text


class ColumnsAction(argparse.Action):
    """Collect ``NAME=COLUMN`` in a dict."""

    def __call__(self, parser: argparse.ArgumentParser,
                 namespace: argparse.Namespace, values: Any,
                 option_string: str | None = None) -> None:
        pairs = [text.partition('=')[::2] for text in values]
        wrong = [name for name, column in pairs if not (name and column)]
        if wrong:
            parser.error(f'{option_string} must be NAME=COLUMN, got '
                         f'{wrong[0] or values[0]}')
        setattr(namespace, self.dest, dict(pairs))


def add_reading(parser: argparse.ArgumentParser) -> None:
    """Add the options that say how to read files of annotations."""
    parser.add_argument(
        '--columns', nargs='+', action=ColumnsAction, metavar='NAME=COLUMN',
        help='columns of a table (csv or tsv) of any program, such as video='
        "'Media file' start='Start (s)' end='Stop (s)' label=Behavior; with "
        '--fps, start and end are frame numbers')
    parser.add_argument(
        '--tier', nargs='+', dest='tiers', metavar='NAME',
        help='names of the tiers of ELAN to read (default: all)')
    parser.add_argument(
        '--fps', type=positive,
        help='frames per second, for files that count frames and state no '
        "rate (default: the videos' or the program's, 24 for Label Studio)")


def add_amp(parser: argparse.ArgumentParser) -> None:
    """Add the option --amp."""
    parser.add_argument(
        '--amp', action='store_true',
        help='compute in bfloat16 where it is faster: on a GPU, and on a CPU '
        'with bfloat16 units (MMVIDATTN_BFLOAT16=force: on any CPU)')


def add_engine(parser: argparse.ArgumentParser) -> None:
    """Add the options of commands that process long lists of videos."""
    parser.add_argument(
        '--engine', choices=['ray'],
        help='process the videos on a Ray cluster (default: one '
        'after another in this process)')
    parser.add_argument(
        '--processes', type=at_least(1), default=1,
        help='number of processes, with --engine (default: 1)')


def check_engine(args: argparse.Namespace) -> None:
    """Check the options of :func:`add_engine`."""
    if args.engine is None and args.processes != 1:
        raise ValueError('--processes needs --engine ray')


def add_runner_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options that training and testing share."""
    add = parser.add_argument
    add('--work-dir', help='folder for logs, checkpoints and metrics '
        "(default: the config's, else work_dirs/<name of the config>)")
    add_cfg_options(parser)
    add('--compile', action='store_true', help='compile the backbone with '
        'torch.compile: slower to start, then faster')
    add_amp(parser)
    add('--default-runtime', action='store_true',
        help='add the runner and hooks of configs/_base_/default_runtime.py '
        'to a config that does not inherit them, such as a config of '
        'mmaction2')
    add('--launcher', choices=['none', 'pytorch', 'slurm', 'mpi'],
        default='none', help='launcher of the processes (default: none, a '
        'single process)')
    add('--local_rank', '--local-rank', type=int, default=0,
        help='local rank of the process, set by some launchers')


def positive(text: str) -> float:
    """Parse a number above 0."""
    value = float(text)
    if not value > 0:
        raise argparse.ArgumentTypeError(f'must be positive, got {text}')
    return value


def at_least(least: int) -> Callable[[str], int]:
    """Return a parser of integers >= ``least``."""

    def parse(text: str) -> int:
        value = int(text)
        if value < least:
            raise argparse.ArgumentTypeError(
                f'must be at least {least}, got {text}')
        return value

    # argparse shows this name if the text is not a number.
    parse.__name__ = 'int'
    return parse
