# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""LAPS, compared with 2D and 3D attention.

* LAPS: ``Visformer`` with leap attention and periodic shift, as in
  ``configs/laps_visformer_k400.py``;
* 2D: the same network with attention within each frame;
* 3D: the same network with attention among the tokens of all frames;
* transcription: the paper's equations, written literally with gathers, an
  explicit softmax and copied shifts.

The check uses float64, because gradients of random weights magnify rounding
errors.
"""
import argparse

from torch import nn

from mmvidattn.backbones import Visformer
from tools.benchmark.measure import ModelCase
from tools.benchmark.references.laps import transcribe


def visformer(args: argparse.Namespace, **kwargs) -> Visformer:
    frames, *size = args.shape
    return Visformer(args.arch, frames, tuple(size), **kwargs)


def share_weights(models: dict[str, nn.Module]) -> None:
    for model in models.values():
        model.load_state_dict(models['LAPS'].state_dict())


CASE = ModelCase({
    'LAPS': visformer,
    '2D': lambda args: visformer(args, attention='2d', shift='none'),
    '3D': lambda args: visformer(args, attention='3d', shift='none'),
    'transcription': lambda args: transcribe(visformer(args)),
}, share_weights, ours='LAPS', baseline='2D', double=True, options=('arch', ))
run, report, IN_PROCESS = CASE.run, CASE.report, dict(peak=CASE.peak)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    CASE.add_arguments(parser, (8, 224, 224))
    parser.add_argument('--arch', choices=('tiny', 'small'), default='small')
    parser.set_defaults(repeats=9)
