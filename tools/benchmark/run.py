# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Measure speed and memory, side by side in one run.

    python tools/benchmark/run.py CASE --help
    python tools/benchmark/run.py linear_ff --layers 3 --json results.json

A case first compares our model with a reference (references/), and measures
nothing unless the two agree. The compared models run in turns after a warm-up,
and the result is the median.
"""
import argparse
import importlib
import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from tools.benchmark.measure import write_json
from tools.harness import count, parser_of

CASES = Path(__file__).with_name('cases')


def parse_args(argv: Sequence[str]) -> argparse.Namespace:
    names = sorted(path.stem for path in CASES.glob('*.py'))
    if not argv or argv[0] not in names:
        parser = parser_of(__doc__, prog='run.py')
        parser.add_argument('case', choices=names)
        parser.parse_args(argv[:1])
    case = importlib.import_module(f'tools.benchmark.cases.{argv[0]}')
    parser = parser_of(case.__doc__, prog=f'run.py {argv[0]}')
    parser.add_argument(
        '--repeats', type=count, default=5,
        help='runs of which the median is taken, after one warm-up run '
        '(default: %(default)s)')
    parser.add_argument(
        '--device', default='cuda' if torch.cuda.is_available() else 'cpu')
    parser.add_argument(
        '--json', type=Path, help='write the results to this file')
    # Function of the case that a subprocess runs.
    parser.add_argument('--task', help=argparse.SUPPRESS)
    case.add_arguments(parser)
    args = parser.parse_args(argv[1:])
    args.case, args.argv = case, list(argv)
    # Cases measure bfloat16 also where it is slower than float32.
    os.environ['MMVIDATTN_BFLOAT16'] = 'force'
    return args


def main(argv: Sequence[str] | None = None) -> None:
    args = parse_args(sys.argv[1:] if argv is None else argv)
    if args.task is not None:
        task = json.loads(args.task)
        measured = args.case.IN_PROCESS[task['name']](**task['arguments'])
        if measured is not None:
            print(json.dumps(measured))
        return
    result = args.case.run(args)
    if result is None:
        return
    print(args.case.report(result))
    write_json(args.json, result)


if __name__ == '__main__':
    main()
