# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""DualFormer, compared with explicit softmax and permuted copies.

* ours: ``DualFormer``;
* transcription: the paper's equations, written literally.

T must be a multiple of 16, and H and W multiples of 224.
"""
import argparse

from torch import nn

from mmvidattn.backbones import DualFormer
from tools.benchmark.measure import ModelCase
from tools.benchmark.references.dualformer import ARCHS, TranscribedDualFormer


def share_weights(models: dict[str, nn.Module]) -> None:
    models['transcription'].load_state_dict(models['ours'].state_dict())


CASE = ModelCase({
    'ours': lambda args: DualFormer(args.arch),
    'transcription': lambda args: TranscribedDualFormer(args.arch),
}, share_weights, options=('arch', ))
run, report, IN_PROCESS = CASE.run, CASE.report, dict(peak=CASE.peak)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    CASE.add_arguments(parser, (32, 224, 224))
    parser.add_argument('--arch', choices=ARCHS, default='tiny')
