# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Checks of ``mmvidattn doctor`` that run ops and models.

Each check compares results with known values: backends with the plain PyTorch
code in float64, a small model of each family with recorded outputs, and
decoded frames with the frames that were encoded. ``mmvidattn/cli/doctor.py``
runs the checks in a separate process, because a fault may crash it.
"""
import math
import statistics
import tempfile
import time
import timeit
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import torch
from mmaction.registry import MODELS
from mmengine.registry import init_default_scope
from torch import Tensor, nn

from ..online import StreamSession
from ..ops import dispatch
from ..ops.examples import compare, make_examples, relative_difference
from ..ops.processor import (
    capability,
    has_bfloat16_units,
    is_emulated,
    processor_name,
)
from .compiling import why_not_compile
from .models import load_config
from .tune import check_choice_by_time, logits_of

# Relative tolerances in float32 on a CPU, in float32 on other devices (which
# may multiply in TF32), and in float64.
CPU_TOLERANCE, DEVICE_TOLERANCE = 1e-3, 2e-2
EXACT_TOLERANCE = 1e-4


class Finding(NamedTuple):
    """Result of a check, as arguments of ``finding`` in ``cli/doctor.py``."""
    level: str
    topic: str
    text: str
    remedy: str = ''


class Family(NamedTuple):
    """Small model of a family.

    Attributes:
        config: Name of the config.
        shape: Shape (T, H, W) of a clip, or (T, ) of a window of features.
        logits: First recorded outputs of the plain code in float64, with
            weights of :func:`fill_model` and inputs of :func:`make_inputs`.
        options: Config options that make the model smaller.
    """
    config: str
    shape: tuple[int, ...]
    logits: tuple[float, ...]
    options: dict[str, Any] = {}


FAMILIES = dict(
    linear_ff=Family('linear_ff_tiny_motion', (8, 64, 64), (
        -0.454706, -0.160421, -0.535954, 2.05993)),
    xvit=Family('xvit_ssv2', (4, 64, 64), (
        -1.01795, 0.595078, 0.634001, 0.25443), {
        'model.backbone.num_frames': 4,
        'model.backbone.img_size': 64,
        'model.backbone.embed_dims': 96,
        'model.backbone.num_layers': 2,
        'model.backbone.num_heads': 4,
        'model.cls_head.in_channels': 96,
        'model.cls_head.hidden_dims': 96,
        'model.cls_head.num_heads': 4,
        'model.cls_head.num_classes': 8}),
    vivit=Family('vivit_tiny_motion', (8, 64, 64), (
        0.40605, 0.283836, 0.42359, -1.25006)),
    laps=Family('laps_tiny_motion', (8, 64, 64), (
        -2.16988, -15.6499, 3.3867, 33.2325)),
    dualformer=Family('dualformer_tiny_motion', (8, 64, 64), (
        -1.76769, -0.973877, -0.39018, 0.481913)),
    testra=Family('testra_tiny_synthetic', (160, ), (
        -0.581203, -0.210292, 1.03057, 0.192743)))


def spread(shape: torch.Size, number: int = 0) -> Tensor:
    """Return values between -1 and 1 without a random number generator.

    They are equal on every machine and with every version of torch.
    """
    i = torch.arange(shape.numel())
    # The fractional parts of sqrt(2) * (0, 1, 3, 6, ...) are evenly
    # distributed.
    values = (i * (i + 1) // 2).double() * math.sqrt(2)
    return (2 * (values + number * math.sqrt(3)).frac() - 1).view(shape)


@torch.no_grad()
def fill_model(model: nn.Module) -> None:
    """Set all weights and running statistics to reproducible values."""
    for number, (name, x) in enumerate(model.state_dict().items()):
        if not x.is_floating_point():
            continue
        if name.endswith('running_var'):
            x.fill_(1)
            continue
        std = x[0].numel()**-0.5 if x.dim() > 1 else 0.3
        x.copy_(math.sqrt(3) * std * spread(x.shape, number))
        # Scales of norms are about 1.
        x += x.dim() == 1 and name.endswith('weight')


def build(family: Family) -> nn.Module:
    """Build a family's model with :func:`fill_model`, in eval mode."""
    cfg = load_config(family.config, family.options)
    init_default_scope('mmaction')
    model = MODELS.build(cfg.model).eval()
    fill_model(model)
    return model


def make_inputs(family: Family,
                model: nn.Module) -> Tensor | dict[str, Tensor]:
    """Return a clip [1, 1, 3, T, H, W], or features [1, T, C] by name."""
    if len(family.shape) == 1:
        return {
            name: spread(torch.Size((1, *family.shape, channels)), number)
            for number, (name, channels) in enumerate(
                model.backbone.in_channels.items())
        }
    return spread(torch.Size((1, 1, 3, *family.shape)))


def outputs_of(model: nn.Module,
               inputs: Tensor | dict[str, Tensor]) -> tuple[Tensor, Tensor]:
    """Return logits and the gradients of their squared sum."""
    logits = logits_of(model, inputs)
    parameters = [p for p in model.parameters() if p.requires_grad]
    gradients = torch.autograd.grad(
        logits.square().sum(), parameters, materialize_grads=True)
    return logits.detach(), torch.cat([x.flatten() for x in gradients])


def moved(inputs: Tensor | dict[str, Tensor],
          *args) -> Tensor | dict[str, Tensor]:
    if isinstance(inputs, dict):
        return {name: x.to(*args) for name, x in inputs.items()}
    return inputs.to(*args)


def check_family(name: str, devices: list[str]) -> Iterator[Finding]:
    """Compare a family's outputs and gradients; measure the speed."""
    family = FAMILIES[name]
    model = build(family).double()
    inputs = make_inputs(family, model)
    with dispatch.use_backends(False):
        logits, gradients = outputs_of(model, inputs)
    known = torch.tensor(family.logits, dtype=torch.float64)
    error = relative_difference(logits.flatten()[:len(known)], known)
    if not error < EXACT_TOLERANCE:
        yield Finding(
            'problem', f'{name} on cpu',
            f'the plain code in float64 differs by {error:.1e} from the '
            'recorded outputs', report(name))
    model.float()
    for device in devices:
        topic = f'{name} on {device}'
        model.to(device)
        here = moved(inputs, device, torch.float32)
        got = outputs_of(model, here)
        errors = [relative_difference(x.cpu(), y)
                  for x, y in zip(got, (logits, gradients))]
        limit = CPU_TOLERANCE if device == 'cpu' else DEVICE_TOLERANCE
        # The comparison is False for nan.
        if all(error < limit for error in errors):
            yield Finding('ok', topic, speed_of(model, here, errors))
        else:
            yield Finding(
                'problem', topic,
                'logits and gradients are {:.1e} and {:.1e} off float64'
                .format(*errors), report(name))


def speed_of(model: nn.Module, inputs: Tensor | dict[str, Tensor],
             errors: list[float]) -> str:
    unit, number = 'clips', 1
    with torch.inference_mode():
        if isinstance(inputs, dict):
            session = StreamSession(model, long_memory_sample_rate=1)
            frames = {key: x[0, :16] for key, x in inputs.items()}
            unit, number = 'frames of a stream', 16
            seconds = median_seconds(lambda: session.push(frames))
        else:
            seconds = median_seconds(lambda: logits_of(model, inputs))
    return (f'{number / seconds:.1f} {unit}/s with the tiny model; logits and '
            'gradients within {:.0e} and {:.0e}'.format(*errors))


def median_seconds(function: Callable, budget: float = 0.5) -> float:
    """Measure the median time of a call, after a warm-up call."""

    def call() -> float:
        start = time.perf_counter()
        function()
        if torch.cuda.is_available():
            torch.cuda.synchronize()
        return time.perf_counter() - start

    call()
    times = [call()]
    while sum(times) < budget and len(times) < 20:
        times.append(call())
    return statistics.median(times)


def check_backends(device: str, run: bool) -> Iterator[Finding]:
    """Report each op's backend, and why other backends are rejected.

    Args:
        device: Device to check.
        run: Whether to compare the backend with the plain code.
    """
    limit = CPU_TOLERANCE if device == 'cpu' else DEVICE_TOLERANCE
    for example in make_examples(device):
        reports, is_right = [], True
        topic = f'{example.op.__name__} on {device}'
        for mode in ('inference', 'training')[:1 + example.is_trained]:
            training = mode == 'training'
            if run:
                chosen, reasons, error = compare(example, training)
            else:
                tensors = [x.clone().requires_grad_(
                    training and x.is_floating_point())
                    for x in example.tensors]
                with torch.set_grad_enabled(training):
                    chosen, reasons = dispatch.explain(
                        example.op, *tensors, **example.options)
                error = 0.
            rejected = '; '.join(f'{name}: {reason}'
                                 for name, reason in reasons.items())
            used = f'{mode} with {chosen or "the plain code"}'
            reports.append(used + (f' (not {rejected})' if rejected else ''))
            if not error < limit:
                is_right = False
                yield Finding(
                    'problem', topic,
                    f'{used} differs by {error:.1e} from the plain code in '
                    'float64',
                    'set MMVIDATTN_DISPATCH=0 to disable backends, and '
                    + report(example.op.__name__))
        if is_right:
            yield Finding('ok', topic, ', '.join(reports))


def check_decoding() -> Iterator[Finding]:
    """Write a video of known grays with OpenCV, and read it with each
    installed backend."""
    import cv2
    import numpy as np

    from ..utils.video_readers import BACKENDS, open_video, why_no_backend

    grays = [40, 80, 120, 160, 200]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, 'gray.mp4')
        writer = cv2.VideoWriter(
            str(path), cv2.VideoWriter_fourcc(*'mp4v'), 5, (64, 48))
        for gray in grays:
            writer.write(np.full((48, 64, 3), gray, np.uint8))
        writer.release()
        installed = [name for name in BACKENDS if not why_no_backend(name)]
        is_right = True
        for name in installed:
            frames = open_video(path, name).get_batch(range(len(grays)))
            off = np.abs(frames.mean((1, 2, 3)) - grays).max()
            if off < 8:
                continue
            is_right = False
            yield Finding(
                'problem', 'decoding',
                f'frames decoded by {name} differ by up to {off:.0f} of 255 '
                'from the frames that OpenCV encoded',
                'pip install --force-reinstall '
                + ('decord==0.6.0' if name == 'decord' else BACKENDS[name][0])
                + ', or choose another video_backend')
    if is_right:
        yield Finding('ok', 'decoding', f'{", ".join(installed)} decode the '
                      'frames that OpenCV encoded')


def check_compiling(device: str) -> Iterator[Finding]:
    reason = why_not_compile(device)
    if reason is None:
        yield Finding('ok', f'torch.compile on {device}', 'it works')
    else:
        yield Finding(
            'note', f'torch.compile on {device}',
            f'it fails, so --compile falls back to eager: {reason}',
            'install a C++ compiler (apt-get install g++), and triton for a '
            'GPU')


def check_half_precision() -> Iterator[Finding]:
    """Compare the speed of bfloat16 and float32 on this CPU."""
    # Keep it small: without bfloat16 units, larger products take minutes.
    size, speed = 256, {}
    for dtype in torch.float32, torch.bfloat16:
        x = torch.ones(size, size, dtype=dtype)
        # Use the fastest call, which other programs disturbed least.
        seconds = min(timeit.repeat(lambda x=x: torch.mm(x, x), number=1,
                                    repeat=20))
        speed[str(dtype).removeprefix('torch.')] = 2e-9 * size**3 / seconds
    has_units = has_bfloat16_units()
    text = (f'products of size {size}: '
            + ', '.join(f'{name} {value:.3g} GFLOP/s'
                        for name, value in speed.items())
            + f'; --amp and bfloat16 streams compute in '
            f'{"bfloat16" if has_units else "float32"}')
    gain = speed['bfloat16'] / speed['float32']
    if has_units and gain < 0.8:
        yield Finding('note', 'half precision on cpu', text,
                      'leave out --amp on this processor')
    elif not has_units and gain > 1.25:
        yield Finding('note', 'half precision on cpu', text,
                      'set MMVIDATTN_BFLOAT16=force')
    else:
        yield Finding('ok', 'half precision on cpu', text)


def report(name: str) -> str:
    return f'report it, with the output of mmvidattn doctor --json ({name})'


def check_choice(device: str) -> Iterator[Finding]:
    """Compare the current choice of backends with a quick measurement."""
    topic = f'backends on {device}'
    emulated = ', emulated' * is_emulated()
    machine = f'{processor_name(device)}, {capability(device)}{emulated}'
    if dispatch.is_overridden():
        yield Finding('ok', topic, f'{machine}; {dispatch.summary(device)}')
        return
    wrong = []
    count = 0
    for is_right, text in check_choice_by_time(device):
        count += 1
        if not is_right:
            wrong.append(text)
    origin = dispatch.current_choice(device).origin
    for text in wrong:
        yield Finding('note', topic, f'{machine}; {text} ({origin})',
                      'mmvidattn tune')
    if not wrong:
        yield Finding('ok', topic, f'{machine}; {count} quick measurements '
                      f'agree with the choice ({origin})')


def list_checks(quick: bool = False
                ) -> dict[str, Callable[[], Iterator[Finding]]]:
    """Return all checks by topic.

    Args:
        quick: Skip the checks that run models. Defaults to False.
    """
    devices = [
        'cpu', *(f'cuda:{i}' for i in range(torch.cuda.device_count()))]
    checks = {f'ops on {device}': lambda d=device: check_backends(d, not quick)
              for device in devices}
    if quick:
        return checks
    for device in devices:
        checks[f'backends on {device}'] = lambda d=device: check_choice(d)
    checks['half precision on cpu'] = check_half_precision
    checks['decoding'] = check_decoding
    for name in FAMILIES:
        checks[name] = lambda n=name: check_family(n, devices)
    for device in {d.partition(':')[0] for d in devices}:
        checks[f'torch.compile on {device}'] = (
            lambda d=device: check_compiling(d))
    return checks
