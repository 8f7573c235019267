# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Measure all tables for a GPU, and write them to a JSON file and a page.

    python tools/benchmark/run.py gpu --json gpu.json --page gpu.md

* clips: inference and training step of one view at the clip sizes of Table 8,
  with our model, Orthoformer, softmax (torch's fused kernels) and XViT;
* ops: with dispatch, plain, plain and compiled, and with other libraries if
  they are installed;
* models: with dispatch, plain, and compiled;
* streams: steps of TeSTra with 1 to 512 streams.

Dispatched code must have the outputs, and in a training step the gradients, of
the plain code, in the same run and on the same inputs. A table with an error
is not printed. The networks of ``clips`` are first compared with themselves in
float64 on the CPU. A library's op is compared with its documented result; if
it differs, only the library's figure is left out. Cells that run out of
memory or exceed the time budget are marked. Shares of bandwidth refer to a
copy, which is measured first.
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
    times_of,
)
from tools.harness import table

# Accepted relative differences of outputs. Gradients of entire models are
# rounded more often.
TOLERANCES = dict(float32=1e-3, bfloat16=3e-2, float16=1e-2)
GRADIENT_FACTOR = 3
MODELS = dict(
    linear_ff_ssv2=(16, 224, 224), dualformer_tiny_k400=(32, 224, 224),
    laps_visformer_k400=(8, 224, 224), vivit_b16x2_joint_k400=(32, 224, 224))
TINY_MODELS = dict(
    linear_ff_tiny_motion=(8, 64, 64), dualformer_tiny_motion=(8, 64, 64),
    laps_tiny_motion=(8, 64, 64), vivit_tiny_motion=(8, 64, 64))
OUT_OF_MEMORY = 'OOM'
NO_TIME = 'no time'


class Variant(NamedTuple):
    """Implementation to measure, a cell of a table's row.

    Attributes:
        build: Function that builds the measured function, which returns its
            output.
        plain: True to measure without dispatched backends.
        alike: True if the output must equal the outputs of the row's other
            variants with this flag.
        want: Function that builds a reference with the documented output of a
            library's op. Defaults to None, for our code.
    """
    build: Callable[[], Callable[[], Tensor]]
    plain: bool = False
    alike: bool = True
    want: Callable[[], Callable[[], Tensor]] | None = None


class Row(NamedTuple):
    """Row of a table: implementations of the same computation.

    Attributes:
        name: Name of the row.
        variants: Implementations by name.
        work: Amount of work in a call.
        unit: Unit of the work per second.
        size: Bytes that a call must at least move, for the share of the copy
            bandwidth. Defaults to 0, which reports no share.
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
        help='time after which no measurement starts (default: %(default)s)')
    parser.add_argument(
        '--page', type=Path, help='write the page to this file')
    parser.add_argument(
        '--tables', nargs='+', choices=TABLES, default=list(TABLES))
    parser.add_argument(
        '--tiny', action='store_true',
        help='use tiny sizes to try the program, also on a CPU')
    parser.set_defaults(device='cuda', repeats=10)


def run(args: argparse.Namespace) -> dict:
    device = torch.device(args.device)
    if device.type == 'cuda' and not torch.cuda.is_available():
        raise SystemExit('run.py gpu: no CUDA device found; try the program '
                         'on a CPU with --device cpu --tiny')
    started = time.perf_counter()
    copy = copy_bandwidth(device, 2**20 if args.tiny else 2**30)
    result = settings_of(
        args, dtype=args.dtype, tiny=args.tiny, budget_minutes=args.budget,
        copy_gb_a_second=copy / 1e9, tables={})
    share = 60 * args.budget / len(args.tables)
    for number, name in enumerate(args.tables, 1):
        # Unused time of a table is available to the tables after it.
        result['tables'][name] = measure_table(
            TABLES[name](args, device), args, device, copy,
            until=started + number * share)
    result['minutes'] = (time.perf_counter() - started) / 60
    if args.page:
        args.page.parent.mkdir(parents=True, exist_ok=True)
        args.page.write_text(report(result) + '\n')
    return result


def copy_bandwidth(device: torch.device, size: int) -> float:
    """Measure the bytes per second that a copy of `size` bytes moves."""
    x = torch.zeros(size, dtype=torch.uint8, device=device)
    y = torch.empty_like(x)
    seconds = statistics.median(
        times_of(lambda: y.copy_(x), 10, device, limit=10.))
    return 2 * size / seconds


def measure_table(rows: Iterator[Row], args: argparse.Namespace,
                  device: torch.device, copy: float, until: float) -> dict:
    """Measure the rows of a table, and compare the variants' outputs."""
    table = dict(rows={}, differences={}, wrong=[])
    for row in rows:
        cells, reference = {}, None
        for name, variant in row.variants.items():
            if time.perf_counter() > until:
                cells[name] = NO_TIME
                continue
            cell, output = measure_cell(row, variant, args, device, copy)
            cells[name] = cell
            limit = TOLERANCES[args.dtype] * (
                GRADIENT_FACTOR if row.name.endswith(TASKS[1]) else 1)
            if output is not None and variant.want:
                with use_backends(False):
                    difference = relative(
                        output, variant.want()().detach().float().cpu())
                if not difference <= limit:
                    cells[name] = f'differs by {difference:.1e}'
            if output is None or not variant.alike:
                continue
            if reference is None:
                reference = output
                continue
            difference = relative(output, reference)
            table['differences'][f'{row.name}, {name}'] = difference
            if not difference <= limit:
                table['wrong'].append(f'{row.name}, {name}: {difference:.1e}')
        table['rows'][row.name] = cells
        print(f'{row.name}: {cells}', file=sys.stderr, flush=True)
    return table


def measure_cell(row: Row, variant: Variant, args: argparse.Namespace,
                 device: torch.device,
                 copy: float) -> tuple[dict | str, Tensor | None]:
    """Measure a variant.

    Returns:
        Figures or a mark, and the output or None.
    """
    # Free the memory of the previous variant.
    gc.collect()
    on_gpu = device.type == 'cuda'
    if on_gpu:
        torch.cuda.empty_cache()
    try:
        # Request kernels without a measured gain, too.
        with use_backends(not variant.plain, unmeasured=True):
            function = variant.build()
            output = function().detach().float().cpu()
            if on_gpu:
                torch.cuda.reset_peak_memory_stats(device)
            seconds = statistics.median(
                times_of(function, args.repeats, device, limit=5.))
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
    """Return a forward pass or a training step under autocast.

    It returns the output; the first call of a training step returns all
    gradients.
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
    """Yield the rows of Table 8 of the linear video transformer's paper."""
    points = [(2, 32), (4, 32)] if args.tiny else sorted(
        ((frames, side) for frames in throughput.FRAMES
         for side in throughput.SIDES), key=throughput.cost_of)
    layers = dict(num_layers=1) if args.tiny else {}
    # Compare ours and softmax with the paper's equations, or exit.
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
    """Add the clip size to the options of a config."""
    more.update(num_frames=frames, img_size=side)
    return {**options, **{
        f'model.backbone.{key}': value for key, value in more.items()}}


def check_in_float64(name: str, config: str, options: dict,
                     point: throughput.Point, args: argparse.Namespace,
                     device: torch.device) -> None:
    """Exit unless one layer agrees with itself in float64 on the CPU."""
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
    """Return a function that builds a recognizer's task with fixed weights."""

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
            [q.relu(), k.relu(), v], size, references=libraries(args))
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

        # Forward: Q, K, V and the result. Training step: in addition their
        # gradients, and Q, K, V again.
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
    """Return the linear attention of each installed library.

    Returns:
        The library's function, and a function with its documented result, by
        name.
    """
    functions = {}
    if importlib.util.find_spec('fla') and not args.tiny:
        from fla.ops.linear_attn import chunk_linear_attn

        # fla's op is causal and does not divide by the sum of the weights.
        functions['fla, causal'] = (
            lambda q, k, v: chunk_linear_attn(
                q, k, v, scale=1., normalize=False)[0],
            causal_linear_attention)
    if importlib.util.find_spec('flash_bla') and not args.tiny:
        from flash_bla.ops.linear_attn.fused import linear_attention as fused

        # This op expects [B, G, N, D], and computes means instead of sums.
        functions['flash-bidirectional-linear-attention'] = (
            lambda q, k, v: fused(*(
                x.transpose(1, 2) for x in (q, k, v))).transpose(1, 2),
            lambda q, k, v: linear_attention(
                q, k, v, eps=1e-6 * k.shape[1]))
    return functions


def causal_linear_attention(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Compute ``tril(Q K^T) V`` of [B, N, G, D] per head in float32."""
    return torch.stack([
        (q_BND @ k_BND.transpose(1, 2)).tril() @ v_BND
        for q_BND, k_BND, v_BND in zip(
            *(x.float().unbind(2) for x in (q, k, v)))], dim=2)


def op_rows(name: str, op: Callable, inputs: list[Tensor], size: int,
            references: dict[str, tuple[Callable, Callable]] | None = None,
            step_size: int = 0) -> Iterator[Row]:
    """Yield the forward pass and the training step of an op.

    Args:
        name: Name of the op.
        op: Function of the inputs.
        inputs: Inputs, which all receive gradients.
        size: Bytes that a forward pass must move.
        references: Implementations of libraries, see :func:`libraries`.
            Defaults to none.
        step_size: Bytes that a training step must move. Defaults to 0, for no
            share of the bandwidth.
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
               for other, (function, want) in (references or {}).items()}
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
                # All streams have different ages.
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
        f'{result["repeats"]}; a copy reads and writes '
        f'{result["copy_gb_a_second"]:.4g} GB/s; {result["minutes"]:.1f} '
        'minutes in total.']
    for name, measured in result['tables'].items():
        lines += ['', f'## {name}', '']
        if measured['wrong'] or not measured['differences']:
            lines.append('Not printed, because outputs differ or nothing was '
                         f'compared: {"; ".join(measured["wrong"])}')
            continue
        lines += ['Outputs and gradients differ from the plain code by at '
                  f'most {max(measured["differences"].values()):.1e}.', '']
        columns = list(dict.fromkeys(
            column for row in measured['rows'].values() for column in row))
        lines += table(['', *columns], [
            [row, *(show(cells.get(column)) for column in columns)]
            for row, cells in measured['rows'].items()])
    return '\n'.join(lines)
