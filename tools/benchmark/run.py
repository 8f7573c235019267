# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Measure speed and memory, side by side in one run.

    python tools/benchmark/run.py CASE --help
    python tools/benchmark/run.py linear_ff --layers 3 --json results.json

A case first compares ours with a reference (references/), and times nothing
unless the two agree. What it compares is timed in turns, after a warm-up, and
the median is taken.
"""
import argparse
import importlib
import sys
from collections.abc import Sequence
from pathlib import Path

import torch
from harness import write_json

CASES = Path(__file__).with_name('cases')


def parse_args(argv: Sequence[str]) -> argparse.Namespace:
    names = sorted(path.stem for path in CASES.glob('*.py'))
    if not argv or argv[0] not in names:
        parser = argparse.ArgumentParser(
            prog='run.py', description=__doc__,
            formatter_class=argparse.RawDescriptionHelpFormatter)
        parser.add_argument('case', choices=names)
        parser.parse_args(argv[:1])
    case = importlib.import_module(f'cases.{argv[0]}')
    parser = argparse.ArgumentParser(
        prog=f'run.py {argv[0]}', description=case.__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        '--repeats', type=int, default=5,
        help='runs of which the median is taken, after one to warm up '
        '(default: %(default)s)')
    parser.add_argument(
        '--device', default='cuda' if torch.cuda.is_available() else 'cpu')
    parser.add_argument(
        '--json', type=Path, help='write the figures to this file')
    case.add_arguments(parser)
    args = parser.parse_args(argv[1:])
    if args.repeats < 1:
        parser.error(f'--repeats must be at least 1, got {args.repeats}')
    args.case, args.argv = case, list(argv)
    return args


def main(argv: Sequence[str] | None = None) -> None:
    args = parse_args(sys.argv[1:] if argv is None else argv)
    result = args.case.run(args)
    if result is None:
        return
    print(args.case.report(result))
    write_json(args.json, result)


if __name__ == '__main__':
    main()
