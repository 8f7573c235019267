# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Forward pass and training step beside the authors' equations.

    python tools/benchmark/models.py
    python tools/benchmark/models.py --models linear_ff --compile --batch 1 4
    python tools/benchmark/models.py --against OTHER_CHECKOUT --tasks step
    python tools/benchmark/models.py --device cuda --dtype bfloat16 --batch 1 8

The linear video transformer and ViViT run beside a transcription of the
paper's equations, with the same weights, in processes that run in turns
(TeSTra's is in ``streams.py``). Large networks have fewer layers. No times are
printed unless outputs and gradients agree to 1e-6 in float64, and outputs in
the measured precision to 1e-3 (float32) or 5e-2 (bfloat16; LAPS 0.2). Peak
memory is what a call adds to the process (CPU), or all allocated memory
(CUDA).
"""
import argparse
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import mmvidattn  # noqa: I001  isort: skip

import torch
from torch import Tensor, nn

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from tools.benchmark import common
from tools.benchmark.common import DTYPES

# Config, options of its backbone, and frames, height and width of a clip.
MODELS = dict(
    linear_ff=('linear_ff_ssv2', dict(num_layers=4), (16, 224, 224)),
    vivit=('vivit_b16x2_joint_k400', dict(num_layers=3), (32, 224, 224)),
    laps=('laps_visformer_k400', {}, (8, 224, 224)),
    dualformer=('dualformer_tiny_k400', {}, (32, 224, 224)),
    testra=('testra_thumos14', {}, None))
TINY = dict(
    linear_ff=(dict(num_layers=1, num_frames=4, img_size=64), (4, 64, 64)),
    vivit=(dict(num_layers=1, num_frames=4, img_size=32), (4, 32, 32)),
    laps=(dict(img_size=64), (8, 64, 64)),
    dualformer=({}, (16, 224, 224)),
    testra=(dict(long_memory_length=32, work_memory_length=8), None))
TASKS = dict(forward='forward', step='training step')
DOUBLE_TOLERANCE = 1e-6
TOLERANCES = dict(float32=1e-3, bfloat16=5e-2)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        '--models', nargs='+', choices=MODELS, default=list(MODELS))
    parser.add_argument(
        '--tasks', nargs='+', choices=TASKS, default=list(TASKS))
    parser.add_argument('--dtype', choices=DTYPES, default='float32',
                        help='bfloat16 is measured with autocast')
    parser.add_argument('--batch', nargs='+', type=int, default=[1])
    parser.add_argument('--compile', action='store_true',
                        help='measure compiled networks, too')
    parser.add_argument('--checkpointing', action='store_true',
                        help='measure with_cp=True, too')
    parser.add_argument('--tiny', action='store_true',
                        help='use tiny sizes, to try the program')


def benchmarks(args: argparse.Namespace
               ) -> Iterator[tuple[str, dict, dict[str, float]]]:
    for name in args.models:
        tolerances = dict.fromkeys(
            ('float64 output', 'float64 gradient of the input',
             'float64 norm of gradients'), DOUBLE_TOLERANCE)
        # In LAPS, random weights amplify rounding: outputs in bfloat16 differ
        # from float32 by 0.14, eager or compiled.
        tolerances['output'] = TOLERANCES[args.dtype] * (
            4 if name == 'laps' and args.dtype == 'bfloat16' else 1)
        for task in args.tasks:
            for batch in args.batch:
                common_options = dict(name=name, task=task, batch=batch,
                                      dtype=args.dtype, tiny=args.tiny)
                variants = {'ours': {}}
                if args.against:
                    variants['before'] = {}
                if name in TRANSCRIBE:
                    variants['transcription'] = dict(transcribed=True)
                if args.checkpointing and name in ('linear_ff', 'vivit') \
                        and task == 'step':
                    variants['ours, with_cp=True'] = dict(with_cp=True)
                if args.compile:
                    variants.update({
                        f'{key}, compiled': dict(variants[key], compiled=True)
                        for key in ('ours', 'transcription')
                        if key in variants})
                yield (f'{name}, {TASKS[task]}, batch {batch}, {args.dtype}',
                       {key: {**common_options, **options}
                        for key, options in variants.items()}, tolerances)


def prepare(name: str, task: str, batch: int, dtype: str, tiny: bool,
            device: str, weights: str, transcribed: bool = False,
            with_cp: bool = False, compiled: bool = False) -> common.Prepared:
    """Build a network, compute what is compared, and return the task."""
    config, options, shape = MODELS[name]
    if tiny:
        options, shape = TINY[name]
    if with_cp:
        options = dict(options, with_cp=True)
    torch.manual_seed(0)
    model = mmvidattn.get_model(config, cfg_options={
        f'model.backbone.{key}': value for key, value in options.items()})
    if Path(weights).exists():
        model.load_state_dict(torch.load(weights, weights_only=True))
    else:
        # Parameters that start at zero would hide their effect. Noise on all
        # would let activations grow in networks with batch norms.
        for p in model.parameters():
            if p.min() == p.max():
                p.data += 0.02 * torch.randn_like(p)
        torch.save(model.state_dict(), weights)
    for module in model.modules():
        # Random drops would make all results different.
        for rate in 'p', 'rate', 'drop_prob':
            if isinstance(getattr(module, rate, None), float):
                setattr(module, rate, 0.)
    network = TRANSCRIBE[name](model, shape) if transcribed else (
        model if name == 'testra' else model.backbone)
    network.to(device).eval()
    torch.manual_seed(1)
    inputs = inputs_of(model, shape, batch)
    results = {} if compiled or with_cp else check(
        name, network, [x[:1].to(device) for x in inputs])
    inputs = [x.to(device) for x in inputs]
    if compiled:
        network.compile()
    forward = task_of('forward', name, network, inputs, DTYPES[dtype])
    results['output'] = forward().float()
    if task == 'forward':
        return forward, results
    network.train()
    return task_of('step', name, network, inputs, DTYPES[dtype]), results


def inputs_of(model: nn.Module, shape: tuple[int, int, int] | None,
              batch: int) -> list[Tensor]:
    """Draw a clip [B, 3, T, H, W], or windows of features [B, N, C]."""
    if shape is not None:
        return [torch.randn(batch, 3, *shape)]
    length = (model.backbone.long_memory_length
              + model.backbone.work_memory_length)
    return [torch.randn(batch, length, channels)
            for channels in model.backbone.in_channels.values()]


def call(name: str, network: nn.Module, inputs: list[Tensor]) -> Tensor:
    """Return the features of a clip, or the logits of windows."""
    if name != 'testra':
        return network(*inputs)
    return network(dict(zip(('rgb', 'flow'), inputs)))['action']


def check(name: str, network: nn.Module,
          inputs: list[Tensor]) -> dict[str, Tensor]:
    """Compute an output and gradients in float64.

    The norm of all parameters' gradients does not depend on their order, nor
    on whether projections share a tensor.
    """
    dtype = next(network.parameters()).dtype
    network.double()
    inputs = [x.double().requires_grad_() for x in inputs]
    y = call(name, network, inputs)
    generator = torch.Generator().manual_seed(2)
    y.backward(torch.randn(y.shape, generator=generator,
                           dtype=y.dtype).to(y.device))
    norm = torch.stack([p.grad.norm() for p in network.parameters()
                        if p.grad is not None]).norm()
    network.zero_grad(set_to_none=True)
    network.to(dtype)
    return {'float64 output': y,
            'float64 gradient of the input': torch.cat(
                [x.grad.flatten() for x in inputs]),
            'float64 norm of gradients': norm}


def task_of(task: str, name: str, network: nn.Module, inputs: list[Tensor],
            dtype: torch.dtype) -> Callable[[], Tensor | None]:
    """Return a function that runs a forward pass or a training step."""

    def output() -> Tensor:
        with torch.autocast(inputs[0].device.type, dtype,
                            enabled=dtype != torch.float32):
            return call(name, network, inputs)

    def step() -> None:
        output().float().square().mean().backward()
        network.zero_grad(set_to_none=True)

    return torch.no_grad()(output) if task == 'forward' else step


def transcribe_vivit(model: nn.Module, shape: tuple[int, int, int]
                     ) -> nn.Module:
    from tools.benchmark.references.vivit import TranscribedViViT
    network = TranscribedViViT(
        *shape[:2], len(model.backbone.encoder.blocks))
    network.load_state_dict(model.backbone.state_dict())
    return network


def transcribe_linear_ff(model: nn.Module, shape: tuple[int, int, int]
                         ) -> nn.Module:
    from tools.benchmark.references.linear_ff import transcribe
    return transcribe(model.backbone, num_frames=shape[0],
                      num_layers=len(model.backbone.blocks))


TRANSCRIBE = dict(linear_ff=transcribe_linear_ff, vivit=transcribe_vivit)


if __name__ == '__main__':
    common.run(__file__, __doc__, prepare, add_arguments, benchmarks)
