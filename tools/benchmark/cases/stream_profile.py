# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Where the time of a stream's step goes.

Steps of one stream, and of many in one call, under torch's profiler. Its
operators are put together as

* products: linear layers and other products of matrices;
* attention: torch's softmax attention;
* norms: LayerNorm;
* copies: rows gathered from rings, put side by side, and written;
* the rest: all other operators, and what calls them. It is what is left of
  the time of a step, which is measured without the profiler.

The floor is what the machine takes at least, measured in the same run: to read
the weights once, or to multiply at the speed of one large product, whichever
takes longer.
"""
import argparse
import copy
import statistics
from collections.abc import Callable

import torch
from mmengine.config import DictAction
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

from mmvidattn.online import StreamSession
from mmvidattn.ops import linear
from tools.benchmark.cases.stream import Frames, check, in_int8, many
from tools.benchmark.measure import online_model, settings_of, times_of, title

PARTS = dict(
    products=('mkldnn::_linear_pointwise', 'aten::addmm', 'aten::mm',
              'aten::bmm', 'aten::addmv', 'quantized::linear_dynamic'),
    attention=('aten::_scaled_dot_product_flash_attention_for_cpu',
               'aten::_scaled_dot_product_flash_attention',
               'aten::_scaled_dot_product_efficient_attention'),
    norms=('aten::native_layer_norm', ),
    copies=('aten::cat', 'aten::index_select', 'aten::index_copy_',
            'aten::index', 'aten::copy_', 'aten::where', 'aten::gather'))

# Of what the machine can do at best.
TRIALS = 20


@torch.no_grad()
def limits(device: torch.device, dtype: torch.dtype) -> dict[str, float]:
    """Bytes that are read, and operations of products, a second, at best."""
    x = torch.randn(512, 1024, device=device).to(dtype)
    weight = torch.randn(1024, 1024, device=device).to(dtype)
    # More than the caches hold.
    memory = torch.zeros(2**26, device=device)
    return dict(
        bytes=memory.nbytes / min(times_of(memory.sum, TRIALS, device)),
        flops=2 * len(x) * weight.numel() / min(times_of(
            lambda: linear(x, weight), TRIALS, device)))


def weights_read(step: Callable, session: StreamSession) -> int:
    """Weights of the linear layers, once for each call in a step."""
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
    """Seconds of each part of a step, and what it does."""
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
        # Of one stream each layer is called; of many some weights are read
        # without.
        weights = size * weights_read(
            many(session, frames, 1, 1, False), session)
        for n in args.streams:
            row = profile(
                many(session, frames, n, 1, False), args.repeats, device)
            floors = dict(reading=weights / limit['bytes'])
            # The products of int8 layers are not counted.
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
    parser.add_argument('--config', default='testra_thumos14')
    parser.add_argument('--streams', type=int, nargs='+', default=[1, 64])
    parser.add_argument('--weights', nargs='+', default=['float32'],
                        choices=('float32', 'bfloat16', 'int8'))
    parser.add_argument('--cfg-options', nargs='+', action=DictAction)
