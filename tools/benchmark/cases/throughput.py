# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Videos per second at many clip sizes (the paper's Table 8).

Inference of entire models, backbone and head of ``configs/linear_ff_ssv2.py``,
on one view of one video:

* ours: as in the config;
* orthoformer: Orthoformer attention with 64 landmarks, no fixation;
* softmax: softmax attention through torch's fused kernels, no fixation.

As in the paper, only the attention is replaced, and fixation is part of our
attention: all three keep the backbone's neighborhood association.

For each clip size, in ascending cost, one process per model measures its peak
memory. Then one process runs the models that fit in turns. If a process runs
out of memory, the table shows OOM, and the run continues. Results are written
after each clip size, and an interrupted run resumes. Our model and softmax
must agree with transcriptions of the paper's equations. The table is Markdown
on standard output.
"""
import argparse
import functools
import json
import re
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.profiler import ProfilerActivity, profile

import mmvidattn
from mmvidattn.apis.runner import one_line_errors
from tools.benchmark.measure import (
    DTYPES,
    TOLERANCE,
    check_agreement,
    measure,
    peak_memory,
    relative,
    require_agreement,
    run_task,
    settings_of,
    synchronize,
    write_json,
)
from tools.benchmark.references.linear_ff import transcribe
from tools.harness import require_same, table

CONFIG = 'linear_ff_ssv2'
MODELS = dict(
    ours={},
    orthoformer={
        'model.backbone.fixation': None,
        'model.backbone.attention': dict(
            _delete_=True, type='OrthoformerAttention', num_landmarks=64)},
    softmax={
        'model.backbone.fixation': None,
        'model.backbone.attention': dict(
            _delete_=True, type='SoftmaxAttention')})
FRAMES = (16, 32, 64, 96)
SIDES = (224, 336, 448)
# The paper's Table 8: videos per second, by frames, then by side.
PAPER = dict(
    ours=(10.25, 8.57, 5.40, 8.38, 4.68, 3.22, 6.58, 3.75, 2.81, 4.48, 2.30,
          None),
    orthoformer=(1.79, 1.59, 1.41, 1.71, 1.56, 1.15, 1.53, 0.97, None, 1.25,
                 0.83, None),
    softmax=(8.23, 6.49, 4.57, 6.15, 4.57, 2.57, 5.27, 2.55, None, 4.27, None,
             None))
LOW_PRECISION_TOLERANCE = 0.05
# Messages of torch, Python, C++, the system, oneDNN and OpenMP.
OUT_OF_MEMORY = re.compile(
    r"can't allocate memory|out of memory|MemoryError|bad_alloc|"
    r'Cannot allocate memory|could not create a (memory|primitive)|'
    r'Thread creation failed')
PROFILE_ROWS = 25

Point = tuple[int, int]


def _point(text: str) -> Point:
    match = re.fullmatch(r'(\d+)x(\d+)', text)
    if not match or '0' in match.groups():
        raise argparse.ArgumentTypeError(
            f'{text!r} is not FRAMESxSIDE, such as 16x224')
    return int(match[1]), int(match[2])


def name_of(point: Point) -> str:
    return '{}x{}'.format(*point)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        '--points', nargs='+', type=_point, metavar='FRAMESxSIDE',
        default=[(frames, side) for frames in FRAMES for side in SIDES],
        help='clip sizes (default: the 12 of Table 8)')
    parser.add_argument(
        '--models', nargs='+', choices=MODELS, default=list(MODELS),
        help='models to compare (default: all)')
    parser.add_argument('--layers', type=int, default=12)
    parser.add_argument('--dtype', choices=DTYPES, default='float32')
    parser.add_argument(
        '--memory-limit-gib', type=float, metavar='GIB',
        help='memory limit of a process (default: none)')
    parser.add_argument(
        '--budget-seconds', type=float, metavar='SECONDS',
        help='stop before a clip size whose predicted time exceeds this '
        'budget; the first size always runs (default: no budget)')
    parser.add_argument(
        '--profile', type=_point, metavar='FRAMESxSIDE',
        help="print torch's profile of each model at this clip size instead")
    parser.set_defaults(repeats=10)


def build(model: str, point: Point, settings: dict) -> nn.Module:
    frames, side = point
    torch.manual_seed(0)
    return mmvidattn.get_model(CONFIG, device=settings['device'], cfg_options={
        'model.backbone.num_frames': frames,
        'model.backbone.img_size': side,
        'model.backbone.num_layers': settings['layers'],
        **MODELS[model]}).to(DTYPES[settings['dtype']])


def clip_of(point: Point, settings: dict) -> Tensor:
    """Return one view of one video, [1, 1, 3, T, H, W]."""
    frames, side = point
    torch.manual_seed(1)
    return torch.randn(
        1, 1, 3, frames, side, side, device=settings['device'],
        dtype=DTYPES[settings['dtype']])


def infer(model: nn.Module, clip: Tensor) -> None:
    with torch.no_grad():
        model(clip, mode='tensor', stage='head')


def check(point: Point, settings: dict) -> dict[str, float]:
    """Return relative differences from the transcriptions, or exit.

    The check covers outputs and gradients on a small clip, and inference on a
    clip of ``point``, but at most 16 x 224.
    """
    differences = {}
    in_full = dict(settings, dtype='float32')
    small = (4, 64)
    layers = settings['layers']
    ours = build('ours', small, in_full).backbone
    errors = check_agreement(
        ours, transcribe(ours, num_frames=small[0], num_layers=layers),
        clip_of(small, in_full)[0])
    differences.update((f'ours, training, {k}', v) for k, v in errors.items())
    point = min(point[0], FRAMES[0]), min(point[1], SIDES[0])
    clip = clip_of(point, in_full)[0]
    for name in ('ours', 'softmax'):
        model = build(name, point, in_full).backbone
        reference = transcribe(model, num_frames=point[0], num_layers=layers,
                               softmax=name == 'softmax')
        with torch.no_grad():
            want = reference(clip)
            errors = {f'{name}, inference': relative(model(clip), want)}
            require_agreement(errors, TOLERANCE)
            differences.update(errors)
            if settings['dtype'] != 'float32':
                dtype = DTYPES[settings['dtype']]
                y = model.to(dtype)(clip.to(dtype)).float()
                errors = {f'{name}, inference, {settings["dtype"]}':
                          relative(y, want)}
                require_agreement(errors, LOW_PRECISION_TOLERANCE)
                differences.update(errors)
    return differences


def peak_of(model: str, point: Point, settings: dict) -> dict:
    """Measure peak memory and seconds of the first inference."""
    device = torch.device(settings['device'])
    net, clip = build(model, point, settings), clip_of(point, settings)
    start = time.perf_counter()
    infer(net, clip)
    synchronize(device)
    seconds = time.perf_counter() - start
    peak, kind = peak_memory(device)
    return dict(peak_gib=peak, peak_is=kind, first_seconds=seconds)


def times_of(models: list[str], point: Point,
             settings: dict) -> dict[str, float]:
    """Return the median seconds of an inference of each model."""
    nets = {model: build(model, point, settings) for model in models}
    clip = clip_of(point, settings)
    return measure(
        {model: lambda net=net: infer(net, clip)
         for model, net in nets.items()}, settings['repeats'],
        torch.device(settings['device']))


def limited(function: Callable) -> Callable:
    """Make a task apply ``memory_limit_gib`` before it runs."""

    @functools.wraps(function)
    def run(*, settings: dict, **arguments) -> dict:
        gib = settings['memory_limit_gib']
        device = torch.device(settings['device'])
        if gib is not None and device.type == 'cuda':
            total = torch.cuda.get_device_properties(device).total_memory
            torch.cuda.set_per_process_memory_fraction(
                min(1., gib * 2**30 / total), device)
        elif gib is not None:
            limit = int(gib * 2**30)
            resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
        return function(settings=settings, **arguments)

    return run


# The check is not limited, because it needs more memory than the models.
IN_PROCESS = dict(check=check, peak=limited(peak_of), times=limited(times_of))


def task(name: str, **arguments) -> dict | None:
    """Run a task in a subprocess; return None if it is out of memory."""
    try:
        return run_task('throughput', name, **arguments)
    except subprocess.CalledProcessError as error:
        if error.returncode == -signal.SIGKILL or OUT_OF_MEMORY.search(
                error.stderr):
            return None
        raise SystemExit(f'run.py throughput: the task {name} failed:\n'
                         f'{error.stderr.strip()}') from None


def cost_of(point: Point) -> float:
    """Return the relative cost of softmax, which grows fastest."""
    frames, side = point
    places = (side // 14 + 1)**2
    # Projections and MLP of a token, and its attention in space and time.
    return frames * places * (16 * 512 + 2 * places + 2 * frames)


def runs_of(result: dict, settings: dict) -> dict[str, float]:
    """Return the total seconds of each model at a clip size."""
    return {
        model: r.get('seconds', r['first_seconds']) *
        (settings['repeats'] + 1) + r['first_seconds']
        for model, r in result['models'].items() if 'first_seconds' in r
    }


def predicted_seconds(point: Point, points: dict[str, dict],
                      settings: dict) -> float | None:
    """Predict the seconds of a clip size from the largest previous size."""
    runs, overhead = {}, None
    for name in sorted(points, key=lambda name: cost_of(_point(name))):
        growth = cost_of(point) / cost_of(_point(name))
        seconds = runs_of(points[name], settings)
        overhead = points[name]['wall_seconds'] - sum(seconds.values())
        runs.update((model, growth * s) for model, s in seconds.items())
    return None if overhead is None else max(overhead, 0) + sum(runs.values())


def measure_point(point: Point, settings: dict) -> dict:
    start = time.perf_counter()
    results = {
        model: task('peak', model=model, point=point, settings=settings)
        or dict(oom='in one inference') for model in settings['models']}
    fit = [model for model, r in results.items() if 'oom' not in r]
    seconds = fit and task(
        'times', models=fit, point=point, settings=settings)
    for model in fit:
        if seconds is None:
            results[model]['oom'] = 'beside the other models'
        else:
            results[model].update(
                seconds=seconds[model], videos_per_second=1 / seconds[model])
    return dict(models=results, wall_seconds=time.perf_counter() - start)


def describe(args: argparse.Namespace) -> tuple[dict, str]:
    """Return the settings that all results of a file share, and the command.
    """
    settings = settings_of(
        args, config=CONFIG, device=args.device, dtype=args.dtype,
        layers=args.layers, models=args.models,
        memory_limit_gib=args.memory_limit_gib)
    return settings, settings.pop('command')


def resume(path: Path | None, settings: dict) -> dict[str, dict]:
    """Read the clip sizes that a run with the same settings has measured."""
    if path is None or not path.exists():
        return {}
    before = json.loads(path.read_text())
    with one_line_errors():
        require_same(path, before['settings'], settings)
    return before['points']


def _cell(result: dict | None) -> str:
    if result is None:
        return 'not measured'
    if 'oom' in result:
        return 'OOM'
    return (f'{result["videos_per_second"]:.3g} '
            f'({result["peak_gib"]:.2f} GiB)')


def report(result: dict) -> str:
    settings, done = result['settings'], result['points']
    points = [_point(name) for name in result['asked']]
    models = settings['models']
    memory = 'OOM: out of memory'
    if settings['memory_limit_gib'] is not None:
        memory += f', limit {settings["memory_limit_gib"]:g} GiB'
    kinds = {r['peak_is'] for name in done
             for r in done[name]['models'].values() if 'peak_is' in r}
    lines = [
        f'`{result["command"]}`', '',
        f'{settings["machine"]}; {settings["dtype"]}; {settings["layers"]} '
        f'layers; batch 1; median of {settings["repeats"]}.', '',
        'Our model and softmax differ from their transcriptions by at most '
        f'{max(result["check"].values()):.1e} (relative).', '',
        'Videos per second with one view, and peak memory '
        f'({", ".join(sorted(kinds)) or "unknown"}); {memory}.', ''
    ]
    rows = [[
        name_of(point),
        *(_cell(done.get(name_of(point), {}).get('models', {}).get(model))
          for model in models)
    ] for point in points]
    lines += table(['frames x side', *models], rows)
    for name, reason in result['left_out'].items():
        lines += ['', f'{name} was left out: {reason}.']
    grid = [(frames, side) for frames in FRAMES for side in SIDES]
    shown = [point for point in points if point in grid]
    if shown:
        lines += [
            '', "The paper's Table 8: videos per second on an A100 with "
            '80 GB. The released code measures the test loop, including the '
            'reading of videos.', ''
        ]
        lines += table(['frames x side', *models], [[
            name_of(point),
            *('OOM' if value is None else f'{value:.2f}'
              for value in (PAPER[m][grid.index(point)] for m in models))
        ] for point in shown])
    return '\n'.join(lines)


def print_profiles(point: Point, settings: dict) -> None:
    device = torch.device(settings['device'])
    activities = [ProfilerActivity.CPU]
    if device.type == 'cuda':
        activities.append(ProfilerActivity.CUDA)
    clip = clip_of(point, settings)
    for name in settings['models']:
        model = build(name, point, settings)
        infer(model, clip)
        with profile(activities=activities) as profiled:
            infer(model, clip)
            synchronize(device)
        print(f'{name}, {name_of(point)}, {settings["dtype"]}, '
              f'{settings["machine"]}')
        print(profiled.key_averages().table(
            sort_by=f'self_{"device" if device.type == "cuda" else "cpu"}'
            '_time_total',
            row_limit=PROFILE_ROWS))


def run(args: argparse.Namespace) -> dict | None:
    start = time.perf_counter()
    settings, command = describe(args)
    points = sorted(set(args.points), key=cost_of)
    done = resume(args.json, settings)

    def log(text: str) -> None:
        print(text, file=sys.stderr, flush=True)

    differences = task(
        'check', point=args.profile or points[0], settings=settings)
    if differences is None:
        raise SystemExit('run.py throughput: no timing: the check against the '
                         'transcriptions ran out of memory')
    log(f'ours and the transcription agree: {differences}')
    if args.profile:
        print_profiles(args.profile, settings)
        return None
    result = dict(
        settings=settings, command=command, check=differences, points=done,
        asked=[name_of(point) for point in points], left_out={})
    for i, point in enumerate(points):
        if name_of(point) in done:
            log(f'{name_of(point)}: taken from {args.json}')
            continue
        spent = time.perf_counter() - start
        needed = predicted_seconds(point, done, settings)
        if args.budget_seconds is not None and needed is not None and \
                spent + needed > args.budget_seconds:
            reason = (f'it needs at least {needed:.0f} s, and '
                      f'{max(args.budget_seconds - spent, 0):.0f} s of the '
                      'budget are left')
            result['left_out'] = {name_of(p): reason for p in points[i:]
                                  if name_of(p) not in done}
            break
        done[name_of(point)] = measure_point(point, settings)
        write_json(args.json, result)
        log(f'{name_of(point)}: ' + ', '.join(
            f'{model} {_cell(r)}'
            for model, r in done[name_of(point)]['models'].items()))
    return result
