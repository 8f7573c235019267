# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Profile of a stream's step.

The case runs steps of one stream, and of many streams in one call, with
torch's profiler. It groups the operators as

* products: linear layers and other matrix products;
* attention: torch's softmax attention;
* norms: LayerNorm;
* copies: rows that are gathered from buffers, concatenated and written;
* rest: all other operators and their callers. This is the remainder of a
  step's time, which is measured without the profiler.

The floor is the shortest possible time on this machine, measured in the same
run: the time to read the weights once, or the time of the products at the
speed of one large product, whichever is longer.
"""
import argparse
import copy
import statistics
from collections.abc import Callable

import torch
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

from mmvidattn.online import StreamSession
from mmvidattn.ops import linear
from tools.benchmark.cases.stream import Frames, check, in_int8, many
from tools.benchmark.measure import (
    add_online_model,
    online_model,
    settings_of,
    times_of,
    title,
)

PARTS = dict(
    products=('mkldnn::_linear_pointwise', 'aten::addmm', 'aten::mm',
              'aten::bmm', 'aten::addmv', 'quantized::linear_dynamic'),
    attention=('aten::_scaled_dot_product_flash_attention_for_cpu',
               'aten::_scaled_dot_product_flash_attention',
               'aten::_scaled_dot_product_efficient_attention'),
    norms=('aten::native_layer_norm', ),
    copies=('aten::cat', 'aten::index_select', 'aten::index_copy_',
            'aten::index', 'aten::copy_', 'aten::where', 'aten::gather'))
# Trials of which the fastest gives the limits of the machine.
TRIALS = 20


@torch.no_grad()
def limits(device: torch.device, dtype: torch.dtype) -> dict[str, float]:
    """Measure the machine's bytes read and product operations per second."""
    x = torch.randn(512, 1024, device=device).to(dtype)
    weight = torch.randn(1024, 1024, device=device).to(dtype)
    # Larger than the processor's caches.
    memory = torch.zeros(2**26, device=device)
    return dict(
        bytes=memory.nbytes / min(times_of(memory.sum, TRIALS, device)),
        flops=2 * len(x) * weight.numel() / min(times_of(
            lambda: linear(x, weight), TRIALS, device)))


def weights_read(step: Callable, session: StreamSession) -> int:
    """Count the weights of linear layers, once for each call in a step."""
    called = []

    def note(module: nn.Module, *args) -> None:
        called.append(module.in_features * module.out_features)

    hooks = [module.register_forward_hook(note)
             for module in session.step.modules()
             if hasattr(module, 'in_features')]
    step()
    for hook in hooks:
        hook.remove()
    return sum(called)


def profile(step: Callable, repeats: int, device: torch.device) -> dict:
    """Measure the seconds of each part of a step, and count its operations."""
    seconds = statistics.median(times_of(step, repeats, device))
    with torch.profiler.profile() as profiler:
        for _ in range(repeats):
            step()
    with FlopCounterMode(display=False) as counter:
        step()
    averages, parts = profiler.key_averages(), {}
    for part, names in PARTS.items():
        parts[part] = sum(
            max(event.self_cpu_time_total, event.self_device_time_total)
            for event in averages if event.key in names) / 1e6 / repeats
    parts['rest'] = seconds - sum(parts.values())
    return dict(seconds=seconds, parts=parts,
                flops=counter.get_total_flops())


def run(args: argparse.Namespace) -> dict:
    torch.manual_seed(0)
    device = torch.device(args.device)
    model, rate = online_model(args)
    frames = Frames(model, device)
    warm = model.backbone.work_memory_length + 2 * rate
    agreement = check(model, frames, rate, warm + 4)
    rows = {}
    for name in args.weights:
        dtype = torch.bfloat16 if name == 'bfloat16' else torch.float32
        other = in_int8(model) if name == 'int8' else copy.deepcopy(
            model).to(dtype)
        session = StreamSession(other, rate, kernel='smoothing')
        limit = limits(device, dtype)
        size = dict(float32=4, bfloat16=2, int8=1)[name]
        # A step of one stream calls each layer; a step of many streams reads
        # some weights without calling their layer.
        weights = size * weights_read(
            many(session, frames, 1, 1, False), session)
        for n in args.streams:
            row = profile(
                many(session, frames, n, 1, False), args.repeats, device)
            floors = dict(reading=weights / limit['bytes'])
            # torch does not count the products of int8 layers.
            if name != 'int8':
                floors['products'] = row['flops'] / limit['flops']
            rows[f'{name}, {n}'] = dict(
                row, weight_bytes=weights, limits=limit, floors=floors)
    return settings_of(
        args, config=str(args.config), agreement=agreement, rows=rows)


def report(result: dict) -> str:
    lines = [title(result, result['config'], 'milliseconds of one step'),
             f'{"weights, streams":18}{"step":>9}' + ''.join(
                 f'{part:>10}' for part in [*PARTS, 'rest'])
             + '   MB of weights   GFLOP   floor: reading, products']
    for name, row in result['rows'].items():
        lines.append(
            f'{name:18}{1e3 * row["seconds"]:9.1f}' + ''.join(
                f'{1e3 * s:10.1f}' for s in row['parts'].values())
            + f'{row["weight_bytes"] / 1e6:16.0f}{row["flops"] / 1e9:8.2f}'
            + '   ' + ', '.join(f'{1e3 * s:.1f}'
                                for s in row['floors'].values())
            + f'   ({row["limits"]["bytes"] / 1e9:.0f} GB/s, '
            f'{row["limits"]["flops"] / 1e9:.0f} GFLOP/s)')
    return '\n'.join(lines)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument('--streams', type=int, nargs='+', default=[1, 64])
    parser.add_argument('--weights', nargs='+', default=['float32'],
                        choices=('float32', 'bfloat16', 'int8'))
    add_online_model(parser)
