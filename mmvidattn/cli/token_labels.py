# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Write a teacher's token labels for the training clips.

    mmvidattn token-labels dualformer_tiny_tl_stored_k400

CONFIG must have a TokenLabelRecognizer3D with a teacher, and FixedViews in its
training pipeline, which limits each video to a few augmented views. The
teacher runs once on each view. Its highest logits for each token of the
student are stored in the folder ``label_store`` of the config, where training
reads them. The same command resumes an interrupted run.
"""
import argparse
from collections.abc import Sequence

from ._shared import add_cfg_options, add_config, add_device, parser_of


def parse_args(argv: Sequence[str] | None = None) -> argparse.Namespace:
    parser = parser_of(__doc__)
    add_config(parser, checkpoint=False)
    parser.add_argument(
        '--batch-size', type=int, default=8,
        help='number of clips per batch (default: %(default)s)')
    parser.add_argument(
        '--workers', type=int, default=4,
        help='number of processes that load videos (default: %(default)s)')
    add_cfg_options(parser)
    add_device(parser)
    return parser.parse_args(argv)


def main(argv: Sequence[str] | None = None) -> None:
    args = parse_args(argv)
    from ..commands import token_labels
    token_labels.run(args)
