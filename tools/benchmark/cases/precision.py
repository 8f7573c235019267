# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Reduced precision on a CPU: float32, bfloat16 and int8, in turns.

* float32: the unchanged model;
* bfloat16: autocast in clip models, bfloat16 weights in a stream;
* int8 ENGINE: linear layers with int8 weights, which quantize their inputs in
  each call (``torch.ao.quantization.quantize_dynamic``). Attentions that read
  the weights of their layers, instead of calling the layers, keep float32.

Clip models score one clip, and a stream the frames of 16 steps. The error is
the largest difference of a class probability from float32, with random weights
and inputs. Eager mode only: quantized layers do not compile.
"""
import argparse
import copy
from collections.abc import Callable

import torch
from torch import nn

from mmvidattn.apis import get_model
from mmvidattn.online import StreamSession
from tools.benchmark.cases.models import MODELS, STREAM_STEPS
from tools.benchmark.cases.stream import Frames, in_int8, with_plain_layers
from tools.benchmark.measure import measure, settings_of, title

RATE = 4


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        '--models', nargs='+', choices=MODELS, default=list(MODELS))
    parser.add_argument(
        '--engines', nargs='+', default=['fbgemm', 'onednn'],
        choices=torch.backends.quantized.supported_engines,
        help='engines of int8 (default: fbgemm onednn)')
    parser.add_argument(
        '--no-bfloat16', action='store_true',
        help='omit bfloat16, which takes minutes without bfloat16 units')


def called_layers(model: nn.Module, score: Callable) -> set[str]:
    """Return the names of the linear layers that a model calls."""
    names = {id(module): name for name, module in model.named_modules()}
    called, forward = set(), nn.Linear.forward

    def record(self: nn.Linear, x: torch.Tensor) -> torch.Tensor:
        called.add(names.get(id(self)))
        return forward(self, x)

    nn.Linear.forward = record
    try:
        score()
    finally:
        nn.Linear.forward = forward
    return called - {None}


def clip_runner(name: str, model: nn.Module, x: torch.Tensor) -> Callable:
    """Return a function that scores a clip."""

    def run() -> torch.Tensor:
        with torch.inference_mode(), torch.autocast(
                'cpu', torch.bfloat16, enabled=name == 'bfloat16'):
            return model(x, mode='tensor', stage='head').float()

    return run


def stream_runner(name: str, model: nn.Module, frames: Frames) -> Callable:
    """Return a function that scores some steps of a stream."""
    if name == 'bfloat16':
        model = copy.deepcopy(model).bfloat16()
    session = StreamSession(model, RATE, kernel='smoothing')

    def run() -> torch.Tensor:
        with torch.inference_mode():
            return torch.stack([
                session.push(frames[t])['action'].float()
                for t in range(STREAM_STEPS)])

    return run


def run(args: argparse.Namespace) -> dict:
    torch.manual_seed(0)
    result = settings_of(args, seconds={}, error={}, layers={})
    for name in args.models:
        config, options, size = MODELS[name]
        model = with_plain_layers(get_model(config, cfg_options={
            f'model.backbone.{key}': value for key, value in options.items()}))
        # Fresh biases are zero.
        for p in model.parameters():
            if p.dim() == 1:
                nn.init.normal_(p, std=0.02)
        x = Frames(model, torch.device('cpu')) if size is None else (
            torch.randn(1, 1, 3, *size))
        runner = stream_runner if size is None else clip_runner
        runners = dict(float32=runner('float32', model, x))
        if not args.no_bfloat16:
            runners['bfloat16'] = runner('bfloat16', model, x)
        layers = called_layers(model, runners['float32'])
        result['layers'][name] = len(layers)
        for engine in args.engines:
            torch.backends.quantized.engine = engine
            key = f'int8 {engine}'
            runners[key] = runner(key, in_int8(model, layers), x)
        scores = {key: one().softmax(dim=-1) for key, one in runners.items()}
        result['error'][name] = {
            key: float((y - scores['float32']).abs().max())
            for key, y in scores.items()}
        result['seconds'][name] = measure(
            runners, args.repeats, torch.device('cpu'))
    return result


def report(result: dict) -> str:
    lines = [title(result)]
    for name, seconds in result['seconds'].items():
        lines += [
            f'{name:12}{key:16}{s:9.4f} s, {seconds["float32"] / s:5.2f} '
            'times as fast, probabilities within '
            f'{result["error"][name][key]:.1e}'
            for key, s in seconds.items()]
    return '\n'.join(lines)
