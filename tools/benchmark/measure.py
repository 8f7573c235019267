# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Checks, timing and reports that the benchmark cases share."""
import argparse
import json
import math
import random
import re
import resource
import shlex
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import mmvidattn  # noqa: I001  isort: skip

import torch
from mmengine.config import DictAction
from torch import Tensor, nn

from mmvidattn.apis import get_model, load_config
from mmvidattn.utils.files import write_atomically
from tools.harness import machine

RUN = Path(__file__).with_name('run.py')
TOLERANCE = 1e-4
TASKS = 'forward', 'training step'
DTYPES = dict(
    float32=torch.float32, bfloat16=torch.bfloat16, float16=torch.float16)


def relative(a: Tensor, b: Tensor) -> float:
    """Return the norm of the difference, relative to the norm of ``b``."""
    return ((a - b).norm() / b.norm()).item()


def require_agreement(differences: dict[str, float],
                      tolerance: float = TOLERANCE) -> None:
    """Exit with an error unless all differences are within the tolerance."""
    # NaN and a check without comparisons are errors too.
    if not differences or not all(
            value <= tolerance for value in differences.values()):
        raise SystemExit(f'no timing: ours and the reference differ by '
                         f'{differences or "an unknown amount"}')


def probability_difference(a: Tensor, b: Tensor) -> float:
    """Return the largest difference of the probabilities of logits [*, K]."""
    return (a.float().softmax(-1) - b.float().softmax(-1)).abs().max().item()


def check_outputs(ours: nn.Module, reference: nn.Module, x: Tensor) -> dict:
    """Return the relative difference of outputs in inference, or exit."""
    with torch.no_grad():
        result = dict(output=relative(ours(x), reference(x)))
    require_agreement(result)
    return result


def check_agreement(ours: nn.Module, reference: nn.Module, x: Tensor) -> dict:
    """Return the relative difference of outputs and gradients, or exit."""
    weight = torch.randn_like(ours(x).detach())
    outputs, grads = [], []
    for model in (ours, reference):
        y = model(x)
        (y * weight).sum().backward()
        outputs.append(y.detach())
        grads.append(
            torch.cat([p.grad.flatten() for p in model.parameters()]))
        model.zero_grad(set_to_none=True)
    # Both models have their parameters in the same order.
    result = dict(output=relative(*outputs), gradient=relative(*grads))
    require_agreement(result)
    return result


def synchronize(device: torch.device) -> None:
    if device.type == 'cuda':
        torch.cuda.synchronize()


def measure(functions: dict[str, Callable], repeats: int,
            device: torch.device,
            take: Callable = statistics.median) -> dict[str, float]:
    """Measure the seconds of functions, called in turns after one warm-up.

    The order is random, because each call inherits the memory that the
    previous call left.

    Args:
        functions: Functions by name.
        repeats: Number of calls of each function.
        device: Device to synchronize.
        take: Statistic of the times. Defaults to the median.
    """
    times = {name: [] for name in functions}
    turns, rng = list(functions.items()), random.Random(0)
    for repeat in range(repeats + 1):
        rng.shuffle(turns)
        for name, function in turns:
            synchronize(device)
            start = time.perf_counter()
            function()
            synchronize(device)
            if repeat:
                times[name].append(time.perf_counter() - start)
    return {name: take(t) for name, t in times.items()}


def times_of(function: Callable, repeats: int, device: torch.device,
             limit: float = math.inf) -> list[float]:
    """Return the seconds of each call, after one warm-up call.

    Stop after `repeats` calls, or after `limit` seconds.
    """
    times: list[float] = []
    function()
    while len(times) < repeats and (not times or sum(times) < limit):
        synchronize(device)
        start = time.perf_counter()
        function()
        synchronize(device)
        times.append(time.perf_counter() - start)
    return times


def peak_memory(device: torch.device) -> tuple[float, str]:
    """Return the peak memory of this process in GiB, and the memory's kind."""
    if device.type == 'cuda':
        return torch.cuda.max_memory_allocated() / 2**30, 'allocated'
    kind = 'resident, Python and torch included'
    status = Path('/proc/self/status')
    if status.exists():
        # A process inherits the maximum of getrusage from its parent.
        peak = re.search(r'VmHWM:\s+(\d+) kB', status.read_text())
        return int(peak[1]) / 2**20, kind
    return resource.getrusage(
        resource.RUSAGE_SELF).ru_maxrss / 2**20, kind


def settings_of(args: argparse.Namespace, **more) -> dict:
    """Return the first entries of a result: version, command, machine."""
    return dict(
        version=mmvidattn.__version__,
        command=shlex.join(['python', f'tools/benchmark/{RUN.name}',
                            *args.argv]),
        machine=machine(args.device),
        repeats=args.repeats,
        **more)


def title(result: dict, *settings: str) -> str:
    """Format :func:`settings_of` as a line."""
    return '; '.join([
        result['machine'], *settings,
        f'{"fastest" if result.get("fastest") else "median"} of '
        f'{result["repeats"]}'
    ])


def agreement_line(agreement: Mapping[str, float]) -> str:
    return 'ours and the reference agree: ' + ', '.join(
        f'{name} {value:.1e}' for name, value in agreement.items()
    ) + ' (relative)'


def add_online_model(parser: argparse.ArgumentParser) -> None:
    """Add the options of :func:`online_model`."""
    parser.add_argument('--config', default='testra_thumos14')
    parser.add_argument('--cfg-options', nargs='+', action=DictAction)


def online_model(args: argparse.Namespace) -> tuple[nn.Module, int]:
    """Build the model of an online-detection config, with random weights.

    Returns:
        The model, and the sampling stride of its long memory in steps.
    """
    config = load_config(args.config, args.cfg_options)
    model = get_model(
        args.config, device=args.device, cfg_options=args.cfg_options)
    return model, config.test_dataloader.dataset.get('long_rate', 4)


def run_task(case: str, name: str, /, **arguments) -> dict:
    """Run a function of a case's ``IN_PROCESS`` in a subprocess.

    Raises:
        subprocess.CalledProcessError: If the subprocess fails.
    """
    words = json.dumps(dict(name=name, arguments=arguments))
    done = subprocess.run(
        [sys.executable, RUN, case, '--task', words], check=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    return json.loads(done.stdout.splitlines()[-1])


def write_json(path: Path | None, result: dict) -> None:
    if path is not None:
        write_atomically(path, json.dumps(result, indent=2) + '\n')


def task_of(name: str, model: nn.Module, x: Tensor,
            dtype: torch.dtype = torch.float32) -> Callable[[], None]:
    """Return a forward pass or a training step, with autocast to ``dtype``."""

    def autocast() -> torch.autocast:
        return torch.autocast(
            x.device.type, dtype, enabled=dtype != torch.float32)

    def forward() -> None:
        with torch.no_grad(), autocast():
            model(x)

    def step() -> None:
        with autocast():
            loss = model(x).float().square().mean()
        loss.backward()
        model.zero_grad(set_to_none=True)

    model.train(name != 'forward')
    return forward if name == 'forward' else step


@dataclass(frozen=True)
class ModelCase:
    """Case that compares a forward pass and a training step of backbones.

    Args:
        models: Functions that build the models from the arguments.
        share_weights: Function that copies the first model's weights to all
            models.
        ours: Name of our model in the check. Defaults to 'ours'.
        reference: Name of the model that it must agree with. Defaults to
            'transcription'.
        baseline: Name of the model that ratios refer to. Defaults to 'ours'.
        double: Check in float64, for models that magnify rounding errors.
            Defaults to False.
        options: Arguments that the title shows. Defaults to none.
    """
    models: Mapping[str, Callable[[argparse.Namespace], nn.Module]]
    share_weights: Callable[[dict[str, nn.Module]], None]
    ours: str = 'ours'
    reference: str = 'transcription'
    baseline: str = 'ours'
    double: bool = False
    options: tuple[str, ...] = ()

    def add_arguments(self, parser: argparse.ArgumentParser,
                      shape: tuple[int, int, int]) -> None:
        parser.add_argument(
            '--shape', nargs=3, type=int, default=shape,
            metavar=('T', 'H', 'W'),
            help=f'shape of a clip (default: {shape})')
        parser.add_argument(
            '--batch', '--batch-size', type=int, default=1, dest='batch')
        parser.add_argument(
            '--dtype', choices=('float32', 'bfloat16'), default='float32')
        parser.add_argument(
            '--compile', action='store_true',
            help='measure our model under torch.compile, too')
        parser.add_argument(
            '--memory', nargs='*', metavar='T H W',
            help='report peak memory instead, with one subprocess per model')

    def clips(self, args: argparse.Namespace) -> Tensor:
        torch.manual_seed(0)
        return torch.randn(args.batch, 3, *args.shape, device=args.device)

    def run(self, args: argparse.Namespace) -> dict:
        if args.memory is not None:
            return self._memory(args)
        device, dtype = torch.device(args.device), DTYPES[args.dtype]
        x = self.clips(args)
        models = {name: build(args).to(device)
                  for name, build in self.models.items()}
        next(iter(models.values())).init_weights()
        self.share_weights(models)
        if args.compile:
            compiled = self.models[self.ours](args).to(device)
            compiled.load_state_dict(models[self.ours].state_dict())
            compiled.compile()
            models[f'{self.ours}, compiled'] = compiled
        result = settings_of(
            args, dtype=args.dtype, shape=list(x.shape), agreement={},
            seconds={}, ratio={}, baseline=self.baseline,
            **{name: getattr(args, name) for name in self.options})
        for task in TASKS:
            # Check each task right before its measurement: with memory left
            # by a training step, inference would be too fast.
            result['agreement'].update(self._check(task, models, x))
            if args.compile:
                result['agreement'] |= {
                    f'compiled {key}': value for key, value in self._check(
                        task, models, x, f'{self.ours}, compiled').items()}
            seconds = measure(
                {name: task_of(task, model, x, dtype)
                 for name, model in models.items()}, args.repeats, device)
            result['seconds'][task] = seconds
            result['ratio'][task] = {
                name: s / seconds[self.baseline]
                for name, s in seconds.items()}
        return result

    def _check(self, task: str, models: dict[str, nn.Module], x: Tensor,
               ours: str | None = None) -> dict[str, float]:
        pair = [models[name].eval()
                for name in (ours or self.ours, self.reference)]
        dtype = torch.float64 if self.double else x.dtype
        check = check_outputs if task == 'forward' else check_agreement
        result = check(*(model.to(dtype) for model in pair), x.to(dtype))
        for model in pair:
            model.to(x.dtype)
        return result

    def peak(self, task: str, name: str, **args) -> dict:
        """Measure the peak memory of this process."""
        args = argparse.Namespace(**args)
        x = self.clips(args)
        task_of(task, self.models[name](args).to(x.device), x,
                DTYPES[args.dtype])()
        gib, kind = peak_memory(x.device)
        return dict(peak_gib=gib, kind=kind)

    def _memory(self, args: argparse.Namespace) -> dict:
        if len(args.memory) not in (0, 3):
            raise SystemExit('--memory must be T H W, or no numbers to use '
                             '--shape; '
                             f'got {" ".join(args.memory)}')
        shape = list(map(int, args.memory or args.shape))
        result = settings_of(args, shape=shape, peak_gib={})
        options = dict(vars(args), shape=shape)
        del options['case'], options['json'], options['task']
        for task in TASKS:
            result['peak_gib'][task] = {}
            for name in self.models:
                peak = run_task(args.argv[0], 'peak', **options,
                                task=task, name=name)
                result['peak_gib'][task][name] = peak['peak_gib']
                result['kind'] = peak['kind']
        return result

    def report(self, result: dict) -> str:
        if 'peak_gib' in result:
            rows, lines = result['peak_gib'], [
                f'{result["machine"]}; clip {result["shape"]}; peak GiB '
                f'{result["kind"]}']
        else:
            rows = result['seconds']
            lines = [
                title(result, result['dtype'],
                      *(f'{name} {result[name]}' for name in self.options),
                      f'clips {result["shape"]}'),
                agreement_line(result['agreement'])]
        ratio = result.get('ratio')
        unit, head = (' s', f'x {self.baseline}') if ratio else (' GiB', '')
        lines.append(f'{"":22}' + ''.join(
            f'{task + unit:>20}{head:>8}' for task in rows))
        for name in rows[TASKS[0]]:
            lines.append(f'{name:22}' + ''.join(
                f'{values[name]:20.4f}' + (
                    f'{ratio[task][name]:8.2f}' if ratio else f'{"":8}')
                for task, values in rows.items()))
        return '\n'.join(lines)
