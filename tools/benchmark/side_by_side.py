# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""What the programs that compare speeds share: check first, then measure."""
import platform
import random
import re
import resource
import statistics
import time
from collections.abc import Callable
from pathlib import Path

import torch
from torch import Tensor, nn
from transcription import TranscribedLinearVideoTransformer

TOLERANCE = 1e-4


def transcribed(model: nn.Module, **kwargs) -> nn.Module:
    """The transcription with the weights of our backbone."""
    state = {
        name.replace('_attn_norm.', '_norm.'): value
        for name, value in model.state_dict().items()
    }
    state['temporal_embed'] = state['temporal_embed'].squeeze(2)
    other = TranscribedLinearVideoTransformer(**kwargs)
    other.load_state_dict(state)
    return other.to(state['temporal_embed'].device)


def relative(a: Tensor, b: Tensor) -> float:
    return ((a - b).norm() / b.norm()).item()


def require_agreement(differences: dict[str, float],
                      tolerance: float = TOLERANCE) -> None:
    """End the program if ours and the transcription are not the same."""
    # Also where a difference is NaN.
    if not all(value <= tolerance for value in differences.values()):
        raise SystemExit(f'no timing: ours and the transcription differ by '
                         f'{differences}')


def check_outputs(ours: nn.Module, other: nn.Module, x: Tensor) -> dict:
    """Relative difference of outputs in inference, or an error."""
    with torch.no_grad():
        result = dict(output=relative(ours(x), other(x)))
    require_agreement(result)
    return result


def check_agreement(ours: nn.Module, other: nn.Module, x: Tensor) -> dict:
    """Relative difference of outputs and gradients, or an error."""
    weight = torch.randn_like(ours(x).detach())
    outputs, grads = [], []
    for model in (ours, other):
        y = model(x)
        (y * weight).sum().backward()
        outputs.append(y.detach())
        grads.append(
            torch.cat([p.grad.flatten() for p in model.parameters()]))
        model.zero_grad(set_to_none=True)
    # Both have their parameters in the same order.
    result = dict(output=relative(*outputs), gradient=relative(*grads))
    require_agreement(result)
    return result


def synchronize(device: torch.device) -> None:
    if device.type == 'cuda':
        torch.cuda.synchronize()


def measure(functions: dict[str, Callable], repeats: int,
            device: torch.device) -> dict[str, float]:
    """Median seconds of each, called in turns after one warm-up.

    The order changes, as each inherits the memory that the one before left.
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
    return {name: statistics.median(t) for name, t in times.items()}


def peak_memory(device: torch.device) -> tuple[float, str]:
    """Peak of this process so far in GiB, and what it is."""
    if device.type == 'cuda':
        return torch.cuda.max_memory_allocated() / 2**30, 'allocated'
    kind = 'resident, Python and torch included'
    status = Path('/proc/self/status')
    if status.exists():
        # What getrusage tells, a process inherits from the one that began it.
        peak = re.search(r'VmHWM:\s+(\d+) kB', status.read_text())
        return int(peak[1]) / 2**20, kind
    return resource.getrusage(
        resource.RUSAGE_SELF).ru_maxrss / 2**20, kind


def machine(device: torch.device) -> str:
    if device.type == 'cuda':
        return torch.cuda.get_device_name()
    name = platform.processor()
    cpuinfo = Path('/proc/cpuinfo')
    if cpuinfo.exists():
        name = next((line.split(':')[1].strip()
                     for line in cpuinfo.read_text().splitlines()
                     if line.startswith('model name')), name)
    return f'{name}, {torch.get_num_threads()} threads'
