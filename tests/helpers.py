# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Functions for tests of several folders."""
import copy
import json
import os
import resource
import runpy
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest
import torch
from mmaction.registry import MODELS
from torch import Tensor, nn

ROOT = Path(__file__).resolve().parent.parent


def relative(a: Tensor, b: Tensor) -> float:
    """Return RMS(a - b) / RMS(b), in float64."""
    a, b = a.detach().double(), b.detach().double()
    return ((a - b).norm() / b.norm()).item()


def with_gradients(function: Callable[..., Tensor],
                   tensors: Sequence[Tensor]) -> tuple[Tensor, ...]:
    """Return the output, and the gradient of its squared sum per tensor."""
    tensors = [x.detach().requires_grad_() for x in tensors]
    y = function(*tensors)
    return y, *torch.autograd.grad(
        y.double().square().sum(), tensors, materialize_grads=True)


def build_model(cfg: dict, seed: int = 0) -> nn.Module:
    """Build a model with initial weights, without a log of all of them."""
    torch.manual_seed(seed)
    model = MODELS.build(copy.deepcopy(cfg))
    model._dump_init_info = lambda *args: None
    model.init_weights()
    del model._dump_init_info
    return model


def read_scalars(work_dir: Path) -> list[dict]:
    """Return the logged values of all runs in a folder."""
    return [json.loads(line)
            for path in sorted(work_dir.glob('**/vis_data/scalars.json'))
            for line in path.read_text().splitlines()]


def run_program(name: str, *args: object) -> None:
    """Run a command, or a program of the checkout, in this process."""
    # compat_symptoms.py uses this file without mmvidattn.
    from mmvidattn.commands import main
    words, on_sigterm = [name, *map(str, args)], signal.getsignal(
        signal.SIGTERM)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, 'argv', words)
        # Python does this for each program.
        patch.setattr(sys, 'path', [str((ROOT / name).parent), *sys.path])
        patch.setenv('LOCAL_RANK', '0')
        try:
            if name.endswith('.py'):
                runpy.run_path(str(ROOT / name), run_name='__main__')
            else:
                main(words)
        finally:
            # A forked worker would raise the exception of this handler.
            signal.signal(signal.SIGTERM, on_sigterm)


@contextmanager
def small_disk(size: int) -> Iterator[None]:
    """Limit the size of files in bytes, which fails like a full disk."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@contextmanager
def sigterm(ready: Callable[[], object]) -> Iterator[None]:
    """Send SIGTERM to this process as soon as a condition holds."""
    has_ended = threading.Event()

    def send():
        while not has_ended.wait(0.02):
            if ready():
                os.kill(os.getpid(), signal.SIGTERM)
                return

    before = signal.getsignal(signal.SIGTERM)
    thread = threading.Thread(target=send)
    thread.start()
    try:
        yield
    finally:
        has_ended.set()
        thread.join()
        signal.signal(signal.SIGTERM, before)
