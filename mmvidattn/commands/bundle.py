# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Write a trained model as a bundle."""
import argparse

from ..apis import load_bundle, read_labels, save_bundle
from ..apis.bundle import THRESHOLDS
from ..apis.runner import one_line_errors
from ..utils.printable import echo


def run(args: argparse.Namespace) -> None:
    thresholds = {name: getattr(args, name) for name in THRESHOLDS}
    with one_line_errors():
        bundle = load_bundle(save_bundle(
            args.out, args.config, args.checkpoint,
            read_labels(args.labels) if args.labels else None,
            {k: v for k, v in thresholds.items() if v is not None},
            args.seconds, args.stride, args.force))
    echo(f'{bundle.path}: {bundle.name}, sha256 of the weights '
         f'{bundle.sha256}')
    if bundle.labels:
        echo(f'{len(bundle.labels)} classes: '
             + ', '.join(bundle.labels[:5])
             + (', ...' if len(bundle.labels) > 5 else ''))
    else:
        echo('note: neither the checkpoint nor the config names the classes; '
             'add them with --labels FILE')
