# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Write a trained model as a bundle, which runs on other machines.

    mmvidattn bundle CONFIG CHECKPOINT OUT

OUT is a folder, or one file if it ends with .zip. It contains the weights, the
config without paths and inheritance, the class names, the thresholds of
events, and versions of packages. It replaces CONFIG CHECKPOINT in other
commands:

    mmvidattn predict VIDEO OUT
    mmvidattn stream SOURCE OUT
    mmvidattn export OUT model.onnx
"""
import argparse
from pathlib import Path

from ..utils.exits import one_line_errors
from ..utils.printable import count, echo, first_few
from ._options import add_config


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_config(parser)
    parser.add_argument('out', type=Path, metavar='OUT',
                        help='folder to write, or file that ends with .zip')
    parser.add_argument(
        '--labels', help='file with one class name per line (default: the '
        "names in the checkpoint, or else the config's)")
    for name, meaning in (('on', 'score at which an action starts'),
                          ('off', 'score below which an action ends'),
                          ('min-duration', 'minimum seconds of an action'),
                          ('seconds', 'length of the sliding window'),
                          ('stride', 'seconds between windows')):
        parser.add_argument(f'--{name}', type=float, help=(
            f"{meaning} in a stream (default: the config's)"))
    parser.add_argument('--force', action='store_true',
                        help='replace an existing bundle')


def run(args: argparse.Namespace) -> None:
    from ..apis import load_bundle, read_labels, save_bundle
    from ..apis.bundle import THRESHOLDS
    from ..apis.bundle_types.registry import LISTED
    from ..apis.config import leaves_of

    thresholds = {name: value for name in THRESHOLDS
                  if (value := getattr(args, name)) is not None}
    with one_line_errors():
        bundle = load_bundle(save_bundle(
            args.out, args.config, args.checkpoint,
            read_labels(args.labels) if args.labels else None,
            thresholds, args.seconds, args.stride, args.force))
    echo(f'{bundle.path}: {bundle.name}, sha256 of the weights '
         f'{bundle.sha256}')
    own = {value for key, value in leaves_of(bundle.config.to_dict())
           if key.endswith('.type')} - LISTED
    if own:
        echo('note: commands refuse this bundle, because '
             f'{first_few(sorted(own))} is neither in mmvidattn nor in '
             'mmaction2: give them the config and the checkpoint. Python '
             'reads it once the class is imported')
    if bundle.labels:
        echo(f'{count(bundle.labels, "class")}: {first_few(bundle.labels)}')
    else:
        echo('note: neither the checkpoint nor the config names the classes; '
             'add them with --labels FILE')
