# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Compare models on your own videos, over several seeds.

    mmvidattn compare FOLDER linear_ff_tiny_motion my_attention.py --out OUT
    mmvidattn compare FOLDER vivit.py=vit.pth xvit.py=vit.pth --out OUT -- \\
        --epochs 20 --lora 8

Each config is trained with each seed by `mmvidattn finetune`, with the options
after `--`. All configs start from random weights, or each one from the weights
after its `=`: a file, `default` (the weights in the package) or `none`. All
configs use the same split for the same seed. The first config is the baseline.
The report contains the mean and the spread of the accuracies. It also has a
verdict on each difference from the baseline, by a paired test after 4, 8 and
12 seeds; at most 5 % of the comparisons get a wrong verdict. A config is not
trained further after its verdict. Finished runs are kept: the same command
resumes, also with a larger `--seeds`.
"""
import argparse
from collections.abc import Sequence
from pathlib import Path

from ._shared import at_least


def parse_args(argv: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        'source', type=Path, metavar='FOLDER',
        help='videos, as for `mmvidattn finetune`')
    parser.add_argument(
        'models', nargs='+', metavar='CONFIG[=WEIGHTS]',
        help='config file or name of a model; with the weights that it starts '
        'from (a file, default or none), if every config has them')
    parser.add_argument(
        '--seeds', type=at_least(1), default=4, metavar='N',
        help='largest number of seeds; fewer than 4 give no verdict, and more '
        'than 12 are not used (default: 4)')
    parser.add_argument(
        '--jobs', type=at_least(1), default=1, metavar='N',
        help='parallel runs (default: 1)')
    parser.add_argument(
        '--out', type=Path, required=True, metavar='FOLDER',
        help='folder for report.md, report.json, scores.png and the runs')
    return parser.parse_args(argv)


def main(argv: Sequence[str] | None = None) -> None:
    import sys
    argv = [*(sys.argv[1:] if argv is None else argv)]
    # argparse would add words after `--` to the models.
    end = argv.index('--') if '--' in argv else len(argv)
    args = parse_args(argv[:end])
    from ..commands import compare
    compare.run(args, argv[end + 1:])
