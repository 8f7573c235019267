# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Models of all families, eager and compiled, in float32 and bfloat16.

The case measures a forward pass and a training step of recognizers (backbone
and head, some with fewer layers), and steps of TeSTra's stream. With
``--against CHECKOUT`` it compares them with another checkout of this
repository, with the same weights and with processes that run in turns. With
``--amp`` it runs float32 and bfloat16 in turns, and reports their ratios.
With ``--choices`` it runs the plain code, the default choice of backends and
the choice of ``mmvidattn tune`` in turns.

A model is only measured if all variants have the same outputs: within 1e-4 in
float32, 5e-2 in bfloat16 (autocast), and 2e-2 between float32 and bfloat16
(``--amp``).
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import torch

from tools.benchmark.measure import (
    DTYPES,
    RUN,
    TASKS,
    TOLERANCE,
    relative,
    require_agreement,
    settings_of,
    synchronize,
    title,
)

MODELS = dict(
    linear_ff=('linear_ff_ssv2', dict(num_layers=4), (16, 224, 224)),
    vivit=('vivit_b16x2_joint_k400', dict(num_layers=3), (32, 224, 224)),
    laps=('laps_visformer_k400', {}, (8, 224, 224)),
    dualformer=('dualformer_tiny_k400', {}, (32, 224, 224)),
    testra=('testra_thumos14', {}, None))
STREAM_STEPS = 16
# Import mmvidattn from a checkout, then run the program of this checkout.
START = '''
import runpy, sys
del sys.argv[0]
sys.path[0] = sys.argv.pop(0)
import mmvidattn
runpy.run_path(sys.argv[0], run_name='__main__')
'''
BFLOAT16_TOLERANCE = 5e-2
# Values of MMVIDATTN_DISPATCH.
CHOICES = dict(plain='0', default='default', tuned='1')
AMP_TOLERANCE = 2e-2


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        '--models', nargs='+', choices=MODELS, default=list(MODELS))
    parser.add_argument(
        '--tasks', nargs='+', choices=TASKS, default=list(TASKS))
    parser.add_argument(
        '--dtypes', nargs='+', choices=('float32', 'bfloat16'),
        default=['float32', 'bfloat16'])
    parser.add_argument(
        '--modes', nargs='+', choices=('eager', 'compiled'),
        default=['eager', 'compiled'])
    parser.add_argument(
        '--against', type=Path, metavar='CHECKOUT',
        help='another checkout of this repository to compare with (eager '
        'only, with the same Python)')
    parser.add_argument(
        '--amp', action='store_true',
        help='run float32 and bfloat16 in turns, and report their ratios')
    parser.add_argument(
        '--choices', action='store_true',
        help='run the plain code, the default and the tuned choice of '
        'backends in turns, and report their ratios')
    parser.add_argument('--scale', type=int, default=1, help=argparse.SUPPRESS)


def run(args: argparse.Namespace) -> dict:
    if args.amp and args.against:
        raise SystemExit('--amp compares dtypes of this checkout; omit '
                         f'--against {args.against}')
    if args.choices and (args.amp or args.against):
        raise SystemExit('--choices compares backends of this checkout; omit '
                         '--amp and --against')
    result = settings_of(args, agreement={}, seconds={}, ratio={})
    for name in args.models:
        # A stream is not trained.
        tasks = ['forward'] if MODELS[name][2] is None else args.tasks
        for task in tasks:
            for key, dtypes, modes in runs(args, f'{name}, {task}'):
                agreement, seconds = compare(args, name, task, dtypes, modes)
                base = next(iter(seconds.values()))
                result['agreement'][key] = agreement
                result['seconds'][key] = seconds
                result['ratio'][key] = {
                    variant: s / base for variant, s in seconds.items()}
                print(row(key, seconds), file=sys.stderr, flush=True)
    return result


def runs(args: argparse.Namespace,
         key: str) -> list[tuple[str, list[str], list[str]]]:
    """Return the name, dtypes and modes of each comparison."""
    if args.amp:
        return [(f'{key}, {mode}', ['float32', 'bfloat16'], [mode])
                for mode in args.modes]
    if args.choices:
        return [(f'{key}, {dtype}, {mode}', [dtype], [mode])
                for dtype in args.dtypes for mode in args.modes]
    return [(f'{key}, {dtype}', [dtype], args.modes)
            for dtype in args.dtypes]


def row(key: str, seconds: dict[str, float]) -> str:
    base = next(iter(seconds.values()))
    return f'{key:38}' + ''.join(
        f'{variant:>16}{s:9.4f} s{s / base:6.2f}'
        for variant, s in seconds.items())


def report(result: dict) -> str:
    return '\n'.join([
        title(result, 'ratios to the first column'),
        *(row(key, seconds) for key, seconds in result['seconds'].items())])


class Worker:
    """Process that runs one variant of a model when it is called.

    Args:
        checkout: Repository to import mmvidattn from.
        choice: Key of :data:`CHOICES`. Defaults to the setting of the
            environment variable ``MMVIDATTN_DISPATCH``.
        task: Arguments of :func:`work`, the main function of the process.
    """

    def __init__(self, checkout: Path, choice: str | None = None,
                 **task) -> None:
        self.task = task
        env = dict(os.environ)
        if choice is not None:
            env['MMVIDATTN_DISPATCH'] = CHOICES[choice]
        self.process = subprocess.Popen(
            [sys.executable, '-c', START, checkout, RUN, 'models', '--task',
             json.dumps(dict(name='work', arguments=task))],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            env=env)
        self.wait()

    def wait(self) -> float:
        for line in self.process.stdout:
            if line.startswith('seconds '):
                return float(line.split()[1])
        raise SystemExit(f'no timing: {json.dumps(self.task)} failed')

    def __call__(self) -> float:
        self.process.stdin.write('go\n')
        self.process.stdin.flush()
        return self.wait()

    def close(self) -> None:
        self.process.stdin.close()
        self.process.wait()


def compare(args: argparse.Namespace, name: str, task: str,
            dtypes: list[str], modes: list[str]) -> tuple[dict, dict]:
    """Measure the variants of a model in turns, after checking their outputs.

    The variants are several modes in one dtype, one mode in two dtypes, or
    with ``--choices`` the choices of backends in one mode and dtype.

    Returns:
        Relative differences from the first variant, and median seconds.
    """
    here = RUN.parents[2]
    variants = {}
    if args.against:
        variants['before, eager'] = (
            args.against.resolve(), 'eager', dtypes[0], {})
    for mode in modes:
        for dtype in dtypes:
            variant = mode if len(dtypes) == 1 else dtype
            variants[variant] = here, mode, dtype, {}
    if args.choices:
        (mode, ), (dtype, ) = modes, dtypes
        variants = {choice: (here, mode, dtype, dict(choice=choice))
                    for choice in CHOICES}
    with tempfile.TemporaryDirectory() as folder:
        workers = {
            variant: Worker(
                checkout, name=name, task=task, dtype=dtype, mode=mode,
                weights=f'{folder}/weights.pt', device=args.device,
                out=f'{folder}/{variant}.pt', scale=args.scale, **choice)
            for variant, (checkout, mode, dtype, choice)
            in variants.items()}
        outputs = {variant: torch.load(f'{folder}/{variant}.pt')
                   for variant in variants}
        first = next(iter(outputs.values()))
        agreement = {
            variant: relative(y, first) for variant, y in outputs.items()}
        tolerance = AMP_TOLERANCE if len(dtypes) > 1 else (
            TOLERANCE if dtypes == ['float32'] else BFLOAT16_TOLERANCE)
        require_agreement(agreement, tolerance)
        times = {variant: [] for variant in variants}
        for _ in range(args.repeats):
            for variant, worker in workers.items():
                times[variant].append(worker())
        for worker in workers.values():
            worker.close()
    return agreement, {v: statistics.median(t) for v, t in times.items()}


def work(name: str, task: str, dtype: str, mode: str, weights: str, out: str,
         device: str, scale: int) -> None:
    """Write an output, then measure the task once for each line of input."""
    # Standard output is reserved for times; models print to standard error.
    out_stream, sys.stdout = sys.stdout, sys.stderr
    function, output = prepare(name, task, DTYPES[dtype], mode, Path(weights),
                               torch.device(device), scale)
    torch.save(output.float().cpu(), out)
    function()
    print('seconds 0', file=out_stream, flush=True)
    for _ in sys.stdin:
        # Warm up memory and caches after the other workers' turns.
        function()
        synchronize(torch.device(device))
        start = time.perf_counter()
        function()
        synchronize(torch.device(device))
        print('seconds', time.perf_counter() - start, file=out_stream,
              flush=True)


IN_PROCESS = dict(work=work)


def prepare(name: str, task: str, dtype: torch.dtype, mode: str,
            weights: Path, device: torch.device,
            scale: int) -> tuple[Callable[[], object], torch.Tensor]:
    """Return the task as a function, and the model's output."""
    import mmvidattn
    config, options, shape = MODELS[name]
    torch.manual_seed(0)
    model = mmvidattn.get_model(config, device=device, cfg_options={
        f'model.backbone.{key}': value for key, value in options.items()})
    if weights.exists():
        model.load_state_dict(torch.load(weights))
    else:
        for p in model.parameters():
            if p.dim() == 1:
                p.data += 0.02 * torch.randn_like(p)
        torch.save(model.state_dict(), weights)

    # Initialization may draw more numbers in one checkout than in the other.
    torch.manual_seed(1)

    def autocast() -> torch.autocast:
        return torch.autocast(
            device.type, dtype, enabled=dtype != torch.float32)

    if shape is None:
        return stream(model, mode, autocast)
    # Dropout would make every output different.
    for module in model.modules():
        if isinstance(module, torch.nn.Dropout):
            module.p = 0.
    frames, height, width = shape
    x = torch.randn(1, 1, 3, frames, height // scale, width // scale,
                    device=device)
    if mode == 'compiled':
        model.backbone.compile()

    def infer() -> torch.Tensor:
        with torch.no_grad(), autocast():
            return model(x, mode='tensor', stage='head')

    def train() -> None:
        with autocast():
            loss = model(x, mode='tensor',
                         stage='head').float().square().mean()
        loss.backward()
        model.zero_grad(set_to_none=True)

    output = infer()
    return (infer if task == 'forward' else train), output


def stream(model: torch.nn.Module, mode: str,
           autocast: Callable) -> tuple[Callable, torch.Tensor]:
    """Return a function that runs steps of a stream, and its first outputs."""
    from mmvidattn.online import StreamSession
    session = StreamSession(model, 4, kernel='smoothing')
    if mode == 'compiled':
        session.step.compile()
    length = 48
    frames = {name: torch.randn(length, channels)
              for name, channels in model.backbone.in_channels.items()}

    def push(start: int, stop: int) -> torch.Tensor:
        with autocast():
            return torch.stack([
                session.push({n: x[t] for n, x in frames.items()})['action']
                for t in range(start, stop)])

    output = push(0, length)
    return (lambda: push(0, STREAM_STEPS)), output
