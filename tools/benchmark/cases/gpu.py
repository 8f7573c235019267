# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""All tables of a GPU, in one command: a JSON file and a page.

    python tools/benchmark/run.py gpu --json gpu.json --page gpu.md

* clips: Table 8's clip sizes, ours, Orthoformer, softmax (torch's fused
  kernels) and XViT, an inference and a training step of one view;
* ops: as dispatched, plain, plain and compiled, and other libraries' where
  they are installed;
* models: as dispatched, plain, and compiled;
* streams: steps of TeSTra, of 1 to 512 streams at once.

Ours must have the outputs, and of a training step the gradients, of the plain
code, in the same run and on the same inputs; of a table in which it has not,
no figure is printed. The networks of ``clips`` are compared with themselves in
float64 on the CPU first, and another library's op with what it documents to
compute: if that differs, its own figure is left out. What runs out of memory
is marked so, and what the budget leaves no time for. The share of bandwidth is
of a copy's, which is measured first.
"""
import argparse
import gc
import importlib.util
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor

import mmvidattn
from mmvidattn.ops import linear_attention, neighbor_shift, softmax_attention
from mmvidattn.ops.depthwise_conv import depthwise_conv
from mmvidattn.ops.dispatch import use_backends
from mmvidattn.ops.feature_fixation import Gate
from mmvidattn.ops.patch_conv import patch_conv
from mmvidattn.ops.shift import Fold, shift_plan
from mmvidattn.ops.video_linear_attention import (
    Options,
    video_linear_attention,
)
from tools.benchmark.cases import throughput
from tools.benchmark.measure import (
    DTYPES,
    TASKS,
    relative,
    require_agreement,
    settings_of,
    synchronize,
)
from tools.harness import table

# Relative, of outputs in the dtype and their plain ones; gradients of whole
# models pass through many roundings.
TOLERANCES = dict(float32=1e-3, bfloat16=3e-2, float16=1e-2)
OF_GRADIENTS = 3
MODELS = dict(
    linear_ff_ssv2=(16, 224, 224), dualformer_tiny_k400=(32, 224, 224),
    laps_visformer_k400=(8, 224, 224), vivit_b16x2_joint_k400=(32, 224, 224))
TINY_MODELS = dict(
    linear_ff_tiny_motion=(8, 64, 64), dualformer_tiny_motion=(8, 64, 64),
    laps_tiny_motion=(8, 64, 64), vivit_tiny_motion=(8, 64, 64))
OUT_OF_MEMORY = 'OOM'
NO_TIME = 'no time'


class Variant(NamedTuple):
    """One column of a row.

    Attributes:
        build: Makes the function that is timed; it returns what is compared.
        plain: Run without backends.
        alike: It computes the same as the others that are.
        want: Builds what its output must be, if it is not ours to mend.
    """
    build: Callable[[], Callable[[], Tensor]]
    plain: bool = False
    alike: bool = True
    want: Callable[[], Callable[[], Tensor]] | None = None


class Row(NamedTuple):
    """What is timed side by side.

    Attributes:
        name: Of the row.
        variants: By name. Those that are alike are compared with the first.
        work: What one call does, of ``unit``.
        unit: Of the work a second.
        size: Bytes that a call must move at least, if a share is wanted.
    """
    name: str
    variants: dict[str, Variant]
    work: float
    unit: str
    size: int = 0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument('--dtype', choices=DTYPES, default='bfloat16')
    parser.add_argument(
        '--budget', type=float, default=25, metavar='MINUTES',
        help='after which nothing more is begun (default: %(default)s)')
    parser.add_argument(
        '--page', type=Path, help='write the page to this file')
    parser.add_argument(
        '--tables', nargs='+', choices=TABLES, default=list(TABLES))
    parser.add_argument(
        '--tiny', action='store_true',
        help='toy sizes, to try the program, on a CPU too')
    parser.set_defaults(device='cuda', repeats=10)


def run(args: argparse.Namespace) -> dict:
    device = torch.device(args.device)
    if device.type == 'cuda' and not torch.cuda.is_available():
        raise SystemExit('run.py gpu: there is no CUDA device here; '
                         '--device cpu --tiny tries the program without one')
    started = time.perf_counter()
    copy = copy_bandwidth(device, 2**20 if args.tiny else 2**30)
    result = settings_of(
        args, dtype=args.dtype, tiny=args.tiny, budget_minutes=args.budget,
        copy_gb_a_second=copy / 1e9, tables={})
    share = 60 * args.budget / len(args.tables)
    for number, name in enumerate(args.tables, 1):
        # What a table does not use, those after it may.
        result['tables'][name] = measure_table(
            TABLES[name](args, device), args, device, copy,
            until=started + number * share)
    result['minutes'] = (time.perf_counter() - started) / 60
    if args.page:
        args.page.parent.mkdir(parents=True, exist_ok=True)
        args.page.write_text(report(result) + '\n')
    return result


def copy_bandwidth(device: torch.device, size: int) -> float:
    """Bytes read and written a second by a copy of so many."""
    x = torch.zeros(size, dtype=torch.uint8, device=device)
    y = torch.empty_like(x)
    seconds = time_of(lambda: y.copy_(x), 10, device, 10.)
    return 2 * size / seconds


def time_of(function: Callable, repeats: int, device: torch.device,
            limit: float) -> float:
    """Median seconds of at most so many runs, or of so many seconds."""
    times: list[float] = []
    function()
    while len(times) < repeats and (not times or sum(times) < limit):
        synchronize(device)
        start = time.perf_counter()
        function()
        synchronize(device)
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def measure_table(rows: Iterator[Row], args: argparse.Namespace,
                  device: torch.device, copy: float, until: float) -> dict:
    """The rows of a table, and whether all that is alike agrees."""
    table = dict(rows={}, differences={}, wrong=[])
    for row in rows:
        found, reference = {}, None
        for name, variant in row.variants.items():
            if time.perf_counter() > until:
                found[name] = NO_TIME
                continue
            cell, output = measure_cell(row, variant, args, device, copy)
            found[name] = cell
            limit = TOLERANCES[args.dtype] * (
                OF_GRADIENTS if row.name.endswith(TASKS[1]) else 1)
            if output is not None and variant.want:
                with use_backends(False):
                    difference = relative(
                        output, variant.want()().detach().float().cpu())
                if not difference <= limit:
                    found[name] = f'differs by {difference:.1e}'
            if output is None or not variant.alike:
                continue
            if reference is None:
                reference = output
                continue
            difference = relative(output, reference)
            table['differences'][f'{row.name}, {name}'] = difference
            if not difference <= limit:
                table['wrong'].append(f'{row.name}, {name}: {difference:.1e}')
        table['rows'][row.name] = found
        print(f'{row.name}: {found}', file=sys.stderr, flush=True)
    return table


def measure_cell(row: Row, variant: Variant, args: argparse.Namespace,
                 device: torch.device,
                 copy: float) -> tuple[dict | str, Tensor | None]:
    """Figures, or what happened instead, and the output."""
    # What the one before has left is not its.
    gc.collect()
    on_gpu = device.type == 'cuda'
    if on_gpu:
        torch.cuda.empty_cache()
    try:
        # Kernels without a measured gain run only on request.
        with use_backends(not variant.plain, unmeasured=True):
            function = variant.build()
            output = function().detach().float().cpu()
            if on_gpu:
                torch.cuda.reset_peak_memory_stats(device)
            seconds = time_of(function, args.repeats, device, 5.)
            peak = torch.cuda.max_memory_allocated(device) if on_gpu else None
    except (MemoryError, RuntimeError) as error:
        if not throughput.OUT_OF_MEMORY.search(repr(error)):
            raise
        return OUT_OF_MEMORY, None
    cell = dict(seconds=seconds, rate=row.work / seconds, unit=row.unit)
    if peak is not None:
        cell['peak_gib'] = peak / 2**30
    if row.size:
        cell['share'] = row.size / seconds / copy
    return cell, output


def task_of(task: str, function: Callable[[], Tensor],
            parameters: list[Tensor], dtype: torch.dtype,
            device: torch.device) -> Callable[[], Tensor]:
    """A forward pass, or one and its gradients, under autocast.

    It returns the output; of a training step the first call all gradients.
    """
    training, is_first = task != 'forward', True

    def run() -> Tensor:
        nonlocal is_first
        with torch.set_grad_enabled(training):
            with torch.autocast(
                    device.type, dtype, enabled=dtype.itemsize < 4):
                y = function()
            if training:
                y.float().square().mean().backward()
                if is_first:
                    y = torch.cat([x.grad.flatten().float()
                                   for x in parameters if x.grad is not None])
                for x in parameters:
                    x.grad = None
        is_first = False
        return y

    return run


def clips(args: argparse.Namespace, device: torch.device) -> Iterator[Row]:
    """Table 8 of the linear video transformer's paper."""
    points = [(2, 32), (4, 32)] if args.tiny else sorted(
        ((frames, side) for frames in throughput.FRAMES
         for side in throughput.SIDES), key=throughput.cost_of)
    layers = dict(num_layers=1) if args.tiny else {}
    # Ours and softmax beside the paper's equations; it ends the program.
    throughput.check(points[0], dict(
        device=args.device, dtype='float32', layers=1))
    configs = {name: (throughput.CONFIG, options)
               for name, options in throughput.MODELS.items()}
    configs['xvit'] = 'xvit_ssv2', {}
    for name, (config, options) in configs.items():
        check_in_float64(name, config, options, points[0], args, device)
    for frames, side in points:
        for task in TASKS:
            variants = {}
            for name, (config, options) in configs.items():
                build = builder(
                    config, of_size(options, frames, side, **layers),
                    (frames, side, side), task, DTYPES[args.dtype], device)
                if name == 'ours':
                    variants['ours, plain'] = Variant(build, plain=True)
                variants[name] = Variant(build, alike=name == 'ours')
            yield Row(f'{frames}x{side}, {task}', variants, 1, 'videos/s')


def of_size(options: dict, frames: int, side: int, **more) -> dict:
    """A config's options, for clips of this size."""
    more.update(num_frames=frames, img_size=side)
    return {**options, **{
        f'model.backbone.{key}': value for key, value in more.items()}}


def check_in_float64(name: str, config: str, options: dict,
                     point: throughput.Point, args: argparse.Namespace,
                     device: torch.device) -> None:
    """End the program unless one layer is what it is in float64 on the CPU."""
    frames, side = point
    options = of_size(options, frames, side, num_layers=1)
    got, want = (
        builder(config, options, (frames, side, side), TASKS[0], dtype, where)
        for dtype, where in ((DTYPES[args.dtype], device),
                             (torch.float64, torch.device('cpu'))))
    got = got()().double().cpu()
    with use_backends(False):
        require_agreement({name: relative(got, want()())},
                          TOLERANCES[args.dtype])


def builder(config: str, options: dict, shape: tuple[int, int, int],
            task: str, dtype: torch.dtype, device: torch.device,
            compiled: bool = False) -> Callable:
    """Builds the task of a recognizer, always of the same weights."""

    def build() -> Callable[[], Tensor]:
        torch.manual_seed(0)
        model = mmvidattn.get_model(
            config, device=device, cfg_options=options)
        for module in model.modules():
            if isinstance(module, torch.nn.Dropout):
                module.p = 0.
        torch.manual_seed(1)
        x = torch.randn(1, 1, 3, *shape).to(device)
        if dtype == torch.float64:
            model, x = model.double(), x.double()
        if compiled:
            model.backbone.compile()
        return task_of(
            task, lambda: model(x, mode='tensor', stage='head'),
            list(model.parameters()), dtype, device)

    return build


def models(args: argparse.Namespace, device: torch.device) -> Iterator[Row]:
    for config, shape in (TINY_MODELS if args.tiny else MODELS).items():
        for task in TASKS:
            def build(compiled: bool = False) -> Callable:
                return builder(config, {}, shape, task, DTYPES[args.dtype],
                               device, compiled)

            variants = {'plain': Variant(build(), plain=True),
                        'ours': Variant(build())}
            if not args.tiny:
                variants['plain, compiled'] = Variant(build(True), plain=True)
                variants['ours, compiled'] = Variant(build(True))
            yield Row(f'{config}, {task}', variants, 1, 'videos/s')


def ops(args: argparse.Namespace, device: torch.device) -> Iterator[Row]:
    dtype = DTYPES[args.dtype]
    batch = 1 if args.tiny else 8

    def random(*shape: int) -> Tensor:
        return torch.randn(*shape, device=device, dtype=dtype)

    torch.manual_seed(0)
    frames, side, heads, dims = (2, 4, 2, 16) if args.tiny else (16, 17, 8, 64)
    places = side**2
    for pattern, sequences, length in (
        ('space', frames, places), ('time', places, frames),
        ('joint', 1, frames * places)):
        q, k, v = (random(batch * sequences, length, heads, dims)
                   for _ in range(3))
        size = 4 * q.nbytes
        yield from op_rows(
            f'linear_attention, {pattern}', linear_attention,
            [q.relu(), k.relu(), v], size, others=libraries(args))
        if pattern != 'joint':
            yield from op_rows(f'softmax_attention, {pattern}',
                               softmax_attention, [q, k, v], size)
    channels = heads * dims
    qkv = random(batch, frames, side, side, 3 * channels)
    weight, bias = random(dims, 3 * dims) / dims**0.5, random(dims)
    for pattern, folds in (('space', shift_plan('tsm', channels, divisor=4)),
                           ('time', shift_plan('eight', channels)),
                           ('joint', ())):

        def attention(qkv: Tensor, weight: Tensor, bias: Tensor,
                      pattern: str = pattern,
                      folds: tuple[Fold, ...] = folds) -> Tensor:
            return video_linear_attention(qkv, Options(
                heads, pattern, folds, offset=dims**-0.5,
                gate=Gate(weight, bias)))

        # Q, K, V and the result; then their gradients, and Q, K, V again.
        size = qkv.nbytes // 3
        yield from op_rows(f'video_linear_attention, {pattern}', attention,
                           [qkv, weight, bias], 4 * size,
                           step_size=11 * size)
    x = random(batch, frames, side, side, channels)
    plan = shift_plan('cross', channels, divisor=8)
    yield from op_rows('neighbor_shift',
                       lambda x: neighbor_shift(x, plan), [x], 2 * x.nbytes)
    yield from op_rows('depthwise_conv', depthwise_conv,
                       [x, random(channels, 1, 3, 3, 3)], 2 * x.nbytes)
    x = random(batch, frames, side // 2 * 2, side // 2 * 2, channels)
    yield from op_rows('patch_conv', patch_conv,
                       [x, random(channels, channels, 1, 2, 2)],
                       x.nbytes * 5 // 4)


def libraries(
        args: argparse.Namespace) -> dict[str, tuple[Callable, Callable]]:
    """Linear attention of other libraries, and what it is to compute.

    Those that are installed.
    """
    found = {}
    if importlib.util.find_spec('fla') and not args.tiny:
        from fla.ops.linear_attn import chunk_linear_attn

        # Causal and without a denominator: more work, and another result.
        found['fla, causal'] = (
            lambda q, k, v: chunk_linear_attn(
                q, k, v, scale=1., normalize=False)[0],
            causal_linear_attention)
    if importlib.util.find_spec('flash_bla') and not args.tiny:
        from flash_bla.ops.linear_attn.fused import linear_attention as other

        # It takes [B, G, N, D], and means instead of sums.
        found['flash-bidirectional-linear-attention'] = (
            lambda q, k, v: other(*(
                x.transpose(1, 2) for x in (q, k, v))).transpose(1, 2),
            lambda q, k, v: linear_attention(
                q, k, v, eps=1e-6 * k.shape[1]))
    return found


def causal_linear_attention(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """``tril(Q K^T) V`` of [B, N, G, D], a head at a time, in float32."""
    return torch.stack([
        (q_BND @ k_BND.transpose(1, 2)).tril() @ v_BND
        for q_BND, k_BND, v_BND in zip(
            *(x.float().unbind(2) for x in (q, k, v)))], dim=2)


def op_rows(name: str, op: Callable, inputs: list[Tensor], size: int,
            others: dict[str, tuple[Callable, Callable]] | None = None,
            step_size: int = 0) -> Iterator[Row]:
    """Forward and, with gradients of all inputs, backward.

    ``size`` and ``step_size`` are the bytes that either must move; ``others``
    are other implementations, each with what it is to compute.
    """
    for task in TASKS:
        tensors = [x.detach().requires_grad_(task != 'forward')
                   for x in inputs]

        def build(function: Callable, compiled: bool = False) -> Callable:
            def made() -> Callable[[], Tensor]:
                called = torch.compile(function) if compiled else function
                return task_of(task, lambda: called(*tensors), tensors,
                               torch.float32, inputs[0].device)

            return made

        variants = {
            'plain': Variant(build(op), plain=True),
            'ours': Variant(build(op)),
            'plain, compiled': Variant(build(op, True), plain=True),
            **{other: Variant(build(function), alike=False, want=build(want))
               for other, (function, want) in (others or {}).items()}
        }
        yield Row(f'{name}, {task}', variants, 1, 'calls/s',
                  size if task == 'forward' else step_size)


def streams(args: argparse.Namespace, device: torch.device) -> Iterator[Row]:
    from mmvidattn.online import StreamSession
    torch.manual_seed(0)
    config = 'testra_tiny_synthetic' if args.tiny else 'testra_thumos14'
    model = mmvidattn.get_model(config, device=device)
    modes = ['plain', 'ours'] + ['graph'] * (device.type == 'cuda')
    for number in (1, 2) if args.tiny else (1, 8, 64, 512):
        def build(graph: bool) -> Callable[[], Callable[[], Tensor]]:
            def made() -> Callable[[], Tensor]:
                step = StreamSession(model, kernel='smoothing').step
                state = step.initial_state(number)
                # As many ages as streams.
                state['count'] += torch.arange(number, device=device)
                torch.manual_seed(1)
                frames = {
                    name: torch.randn(number, channels).to(device)
                    for name, channels in model.backbone.in_channels.items()}
                if graph:
                    from mmvidattn.online.cuda_graph import CUDAGraphStep
                    recorded = CUDAGraphStep(step, state)
                    return lambda: recorded(frames)['action']

                @torch.no_grad()
                def push() -> Tensor:
                    return step(frames, state)[0]['action']

                return push

            return made

        variants = {mode: Variant(build(mode == 'graph'), mode == 'plain')
                    for mode in modes}
        yield Row(f'{number} streams', variants, number, 'frames/s')


TABLES = dict(clips=clips, ops=ops, models=models, streams=streams)


def show(cell: dict | str | None) -> str:
    if cell is None or isinstance(cell, str):
        return cell or ''
    text = f'{cell["rate"]:.4g} {cell["unit"]}'
    more = []
    if 'peak_gib' in cell:
        more.append(f'{cell["peak_gib"]:.2f} GiB')
    if 'share' in cell:
        more.append(f'{100 * cell["share"]:.0f} % of a copy')
    return text + (f' ({", ".join(more)})' if more else '')


def report(result: dict) -> str:
    lines = [
        '# Measured on ' + result['machine'], '', f'`{result["command"]}`', '',
        f'{result["dtype"]}; medians of at most '
        f'{result["repeats"]}; a copy moves {result["copy_gb_a_second"]:.4g} '
        f'GB/s, read and written; {result["minutes"]:.1f} minutes in all.']
    for name, found in result['tables'].items():
        lines += ['', f'## {name}', '']
        if found['wrong'] or not found['differences']:
            lines.append('Not printed: outputs differ or nothing was '
                         f'compared; {"; ".join(found["wrong"])}')
            continue
        lines += ['Outputs and gradients differ from the plain code by '
                  f'{max(found["differences"].values()):.1e} at most.', '']
        columns = list(dict.fromkeys(
            column for row in found['rows'].values() for column in row))
        lines += table(['', *columns], [
            [row, *(show(cells.get(column)) for column in columns)]
            for row, cells in found['rows'].items()])
    return '\n'.join(lines)
