# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Measure backends on this machine, and store which to use."""
import datetime
import json
import random
import statistics
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from ..online import StreamSession
from ..ops import dispatch
from ..ops.choice import (
    LEAST_GAIN,
    Choice,
    Condition,
    cache_folder,
    cache_path,
    describe_machine,
    key_of,
    read_choice,
)
from ..ops.depthwise_conv import depthwise_conv
from ..ops.examples import make_examples, relative_difference
from ..ops.linear import linear
from ..ops.packed_linear import pack_weight, packed_linear
from ..ops.patch_conv import patch_conv
from ..ops.processor import has_bfloat16_units, is_emulated
from ..ops.torch_private import without_compile_caches
from ..utils.files import write_atomically
from .compiling import why_not_compile
from .memory import nested_tensors

# Maximum relative difference between a backend and the plain code, by dtype.
# On a GPU, float32 products may use TF32.
TOLERANCES = dict(float32=1e-4, float16=1e-2, bfloat16=3e-2)
CUDA_FLOAT32_TOLERANCE = 5e-3
# Measure only the slowest calls of an op, up to this share of its time and
# this number.
SHARE, MOST_CALLS = 0.9, 6
# Number of frames of a stream to record.
STREAM_STEPS = 8
COMPILERS = 'eager', 'compiled'


class Call(NamedTuple):
    """Recorded calls of an op with equal shapes, strides and dtypes.

    Attributes:
        op: Dispatched op.
        args: Positional arguments of the first call.
        kwargs: Keyword arguments of the first call.
        condition: Condition of the dispatch in eager mode (training or
            inference, dtype).
        count: Number of such calls.
        backends: Backends that support the call.
    """
    op: Callable
    args: tuple
    kwargs: dict[str, Any]
    condition: Condition
    count: int
    backends: tuple[dispatch.Backend, ...]

    @property
    def shapes(self) -> str:
        """Shapes of the tensor arguments, such as '64x512 256x512 256'."""
        return ' '.join(
            'x'.join(map(str, x.shape)) for x in self.tensors)

    @property
    def tensors(self) -> list[Tensor]:
        """Tensor arguments, including those in tuples, such as a gate's."""
        return nested_tensors((*self.args, *self.kwargs.values()))


class Result(NamedTuple):
    """Measurement of a backend under a condition.

    Attributes:
        op: Name of the op.
        backend: Name of the backend.
        condition: Condition in eager mode.
        shapes: Shapes of each measured call.
        num_shapes: Number of different calls that were recorded.
        seconds: Time of the plain code and of the backend, summed over all
            measured calls, by 'eager' and 'compiled'.
        errors: Reason why the backend must not run, by 'eager' and 'compiled'.
    """
    op: str
    backend: str
    condition: Condition
    shapes: tuple[str, ...]
    num_shapes: int
    seconds: dict[str, tuple[float, float]]
    errors: dict[str, str]

    @property
    def gains(self) -> dict[str, float]:
        """Speedup over the plain code by key; 0 for a backend that fails."""
        gains = dict.fromkeys(self.errors, 0.)
        for name, (plain, fast) in self.seconds.items():
            gains[name] = plain / fast
        return {key_of(self.op, self.backend, self.condition._replace(
            compiled=name == 'compiled')): round(gain, 3)
            for name, gain in gains.items()}


def record(function: Callable[[], Any]) -> list[Call]:
    """Run a function, and record op calls that a backend supports.

    Recorded tensors are detached copies, except parameters, whose memory is
    shared.
    """
    calls: dict[Any, Call] = {}

    def recorder(op: Callable, args: tuple, kwargs: dict[str, Any]) -> None:
        backends = tuple(
            backend for backend in dispatch._backends[op.__name__]
            if backend.why_not(*args, **kwargs) is None)
        if not backends:
            return
        _, training, dtype, _ = dispatch.condition_of(args, kwargs)
        condition = Condition(
            training, str(dtype).removeprefix('torch.'), False)
        key = (op.__name__, condition, tuple(map(_signature, args)),
               tuple((name, _signature(x)) for name, x in kwargs.items()))
        if key in calls:
            calls[key] = calls[key]._replace(count=calls[key].count + 1)
            return
        calls[key] = Call(
            op, tuple(map(_copy, args)),
            {name: _copy(x) for name, x in kwargs.items()}, condition, 1,
            backends)

    with dispatch.recording(recorder):
        function()
    return [*calls.values()]


def _signature(x: Any) -> Any:
    if isinstance(x, tuple):
        return type(x), *map(_signature, x)
    if not torch.is_tensor(x):
        return repr(x) if isinstance(x, (int, float, str)) else type(x)
    strides = x.stride() if x.layout == torch.strided else None
    return x.shape, strides, x.dtype, x.device, x.requires_grad


def _copy(x: Any) -> Any:
    if isinstance(x, tuple):
        values = map(_copy, x)
        return type(x)(*values) if hasattr(x, '_fields') else tuple(values)
    if not torch.is_tensor(x) or x.layout != torch.strided:
        return x
    copy = x.detach()
    if not isinstance(x, nn.Parameter):
        copy = copy.clone()
    return copy.requires_grad_(x.requires_grad)


def record_model(model: nn.Module, inputs: Tensor | dict[str, Tensor],
                 dtypes: Iterable[torch.dtype]) -> list[Call]:
    """Record a forward pass, a training step and a stream of a model.

    Args:
        model: Recognizer in eval mode.
        inputs: Clips [B, 1, 3, T, H, W], or features [B, T, C] by name.
        dtypes: Dtypes to compute in. Dtypes other than float32 use autocast.
    """
    device = next(model.parameters()).device
    calls = []
    for dtype in dtypes:
        def forward(dtype: torch.dtype = dtype) -> Tensor:
            with _autocast(device, dtype):
                return logits_of(model, inputs)

        def train() -> None:
            forward().float().square().mean().backward()
            model.zero_grad(set_to_none=True)

        with torch.no_grad():
            calls += record(forward)
        calls += record(train)
    if isinstance(inputs, dict):
        with torch.no_grad(), dispatch.use_backends(True, unmeasured=True):
            # A session packs weights only if a backend may use them.
            session = StreamSession(model)
            frames = {name: x[0, :STREAM_STEPS] for name, x in inputs.items()}
            calls += record(lambda: session.push(frames))
    return calls


def logits_of(model: nn.Module, inputs: Tensor | dict[str, Tensor]) -> Tensor:
    """Return the logits of clips, or of windows of features by name."""
    if isinstance(inputs, dict):
        return model.cls_head(model.backbone(inputs))['action']
    return model(inputs, mode='tensor', stage='head')


def _autocast(device: torch.device,
              dtype: torch.dtype) -> torch.autocast | nullcontext:
    if dtype == torch.float32:
        return nullcontext()
    return torch.autocast(device.type, dtype)


def half_dtypes(device: torch.device | str) -> list[torch.dtype]:
    """Return the dtypes besides float32 in which a device is fast."""
    fast = torch.device(device).type == 'cuda' or has_bfloat16_units()
    return [torch.bfloat16] if fast else []


def representative_calls(device: torch.device | str) -> list[Call]:
    """Record calls with the shapes of the models, for a CPU or a GPU.

    They cover linear layers of linear_ff and ViT, rows of TeSTra's streams,
    and the convolutions of DualFormer-T for 32x224x224.
    """
    device = torch.device(device)
    if device.type != 'cpu':
        return _small_calls(device)
    generator = torch.Generator().manual_seed(0)

    def random(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=generator)

    def linears() -> None:
        for rows, inputs, outputs in (
                (3136, 512, 1536), (2048, 512, 2048), (3137, 768, 768),
                (64, 1024, 1024)):
            linear(random(rows, inputs),
                   random(outputs, inputs).requires_grad_(),
                   random(outputs).requires_grad_())

    def rows() -> None:
        for number in 1, 16, 64:
            weight, bias = random(1024, 1024), random(1024)
            linear(random(number, 1024), weight, bias)
            for dtype in (torch.float32, *half_dtypes(device)):
                lowered = weight.to(dtype)
                packed_linear(random(number, 1024).to(dtype), lowered,
                              bias.to(dtype), pack_weight(lowered))

    def convolutions() -> None:
        for size, width in (56, 64), (14, 256):
            x = random(1, 16, size, size, width).requires_grad_()
            depthwise_conv(x, random(width, 1, 3, 3, 3).requires_grad_(),
                           random(width).requires_grad_())
            patch_conv(x, random(2 * width, width, 1, 2, 2).requires_grad_(),
                       random(2 * width).requires_grad_())
            patch_conv(x, random(width, 1, 1, 7, 7).requires_grad_(),
                       random(width).requires_grad_())

    def large_patches() -> None:
        # A view with the memory layout of clips, channels first.
        patch_conv(random(1, 3, 8, 224, 224).movedim(1, -1),
                   random(768, 3, 2, 16, 16), random(768))

    def run() -> None:
        with torch.no_grad():
            linears()
            rows()
            for dtype in half_dtypes(device):
                with _autocast(device, dtype):
                    large_patches()
        linears()
        for dtype in (torch.float32, *half_dtypes(device)):
            with _autocast(device, dtype):
                convolutions()

    with dispatch.use_backends(True, unmeasured=True):
        return record(run)


def _small_calls(device: torch.device) -> list[Call]:
    """Record the small examples of all ops, in both modes."""

    def run() -> None:
        for example in make_examples(device):
            for training in (False, True)[:1 + example.is_trained]:
                with torch.set_grad_enabled(training):
                    example.op(*(
                        x.clone().requires_grad_(
                            training and x.is_floating_point())
                        for x in example.tensors), **example.options)

    with dispatch.use_backends(True, unmeasured=True):
        return record(run)


def measure(calls: Sequence[Call], compilers: Sequence[str] = COMPILERS,
            budget: float = 0.5) -> Iterator[Result]:
    """Compare the results and then the time of backends and plain code.

    Ops that other ops call are measured first. The current choice applies to
    them, so the caller can use a yielded result before the next op is
    measured.

    Args:
        calls: Recorded calls.
        compilers: 'eager' and 'compiled', or one of the two.
        budget: Seconds to measure a call for. Defaults to 0.5.

    Yields:
        One result for each op, backend, mode and dtype.
    """
    groups: dict[tuple, list[Call]] = {}
    for call in calls:
        for backend in call.backends:
            key = call.op.__name__, backend.name, call.condition
            groups.setdefault(key, []).append(call)
    order = [*dispatch._backends]
    # Inner ops come first.
    for op, name, condition in sorted(
            groups, key=lambda key: order.index(key[0])):
        group = groups[op, name, condition]
        backend = next(x for x in group[0].backends if x.name == name)
        yield _measure_group(backend, group, compilers, budget)


def _measure_group(backend: dispatch.Backend, calls: list[Call],
                   compilers: Sequence[str], budget: float) -> Result:
    op, condition = calls[0].op.__name__, calls[0].condition
    slowest = select_slowest(
        calls, [seconds_of_call(call) for call in calls])
    result = Result(op, backend.name, condition,
                    tuple(call.shapes for call in slowest), len(calls), {}, {})
    for compiler in compilers:
        sums = [0., 0.]
        for call in slowest:
            plain, fast = (_runner(f, call, compiler)
                           for f in (call.op.plain, backend.function))
            # torch's cache key ignores limits on CPU instructions, so cached
            # code may be for another limit.
            with without_compile_caches():
                error = compare(plain, fast, call)
            if error:
                result.errors[compiler] = f'{call.shapes}: {error}'
                break
            for i, seconds in enumerate(interleave((plain, fast), budget)):
                sums[i] += call.count * seconds
        else:
            result.seconds[compiler] = tuple(sums)
    return result


def _runner(function: Callable, call: Call,
            compiler: str = 'eager') -> Callable[[], list[Tensor]]:
    """Return a function that runs a call and returns result and gradients."""
    device = dispatch.condition_of(call.args, call.kwargs)[0]
    dtype = getattr(torch, call.condition.dtype)
    tensors = call.tensors
    if all(x.dtype == dtype for x in tensors if x.is_floating_point()):
        # The call needs no autocast.
        dtype = torch.float32
    inputs = [x for x in tensors if x.requires_grad]

    def forward(*args: Any) -> Any:
        return function(*args, **call.kwargs)

    if compiler == 'compiled':
        torch.compiler.reset()
        forward = torch.compile(forward, dynamic=False, fullgraph=True)
    weights: list[Tensor] = []

    def run() -> list[Tensor]:
        with torch.set_grad_enabled(call.condition.training), _autocast(
                device, dtype):
            y = forward(*call.args)
        if y is None:
            # The op works in place on its first tensor.
            return [call.args[0]]
        if not call.condition.training:
            return [y]
        if not weights:
            generator = torch.Generator().manual_seed(0)
            weights.append(torch.randn(y.shape, generator=generator).to(y))
        return [y.detach(), *torch.autograd.grad(y, inputs, weights[0])]

    return run


def compare(plain: Callable[[], list[Tensor]],
            other: Callable[[], list[Tensor]], call: Call) -> str | None:
    """Return how a backend differs from the plain code, or None.

    A backend that raises an error differs.
    """
    is_cpu = call.args[0].device.type == 'cpu'
    limit = TOLERANCES.get(call.condition.dtype, TOLERANCES['float32'])
    if not is_cpu and call.condition.dtype == 'float32':
        limit = CUDA_FLOAT32_TOLERANCE
    before = call.args[0].detach().clone()

    def outputs(function: Callable[[], list[Tensor]]) -> list[Tensor]:
        with torch.no_grad():
            # Restore the input, because an op may work in place.
            call.args[0].copy_(before)
        return [x.detach().clone() for x in function()]

    results = []
    for name, function in dict(backend=other, plain=plain).items():
        try:
            results.append(outputs(function))
        except Exception as error:
            # A broken kernel must not stop the measurement of other kernels,
            # nor must plain code that this version of torch cannot compile.
            lines = str(error).splitlines() or ['']
            code = 'plain code: ' * (name == 'plain')
            return f'{code}{type(error).__name__}: {lines[0]}'
    got, expected = results
    if [x.shape for x in got] != [x.shape for x in expected]:
        return (f'shapes {[tuple(x.shape) for x in got]} instead of '
                f'{[tuple(x.shape) for x in expected]}')
    differences = [
        0. if torch.equal(a, b) else relative_difference(a, b)
        for a, b in zip(got, expected)]
    # torch's maximum keeps NaN, for which the comparison is False.
    worst = torch.tensor(differences).max().item()
    if worst <= limit:
        return None
    return f'differs by {worst:.1e} (relative), more than {limit:.0e}'


def select_slowest(calls: Sequence[Call],
                   seconds: Sequence[float]) -> list[Call]:
    """Return the slowest calls, limited by SHARE and MOST_CALLS."""
    pairs = sorted(zip(seconds, calls), key=lambda pair: -pair[0])
    total, done, chosen = sum(seconds), 0., []
    for spent, call in pairs[:MOST_CALLS]:
        chosen.append(call)
        done += spent
        if done >= SHARE * total:
            break
    return chosen


def seconds_of_call(call: Call) -> float:
    """Return the time of the plain code, multiplied by the count."""
    function = _runner(call.op.plain, call)
    function()
    return call.count * _seconds(function, call.args[0].device)


def interleave(functions: Sequence[Callable[[], Any]],
               budget: float) -> list[float]:
    """Return the median seconds of each function, run in random order.

    Each function runs 5 to 200 times; after 5 runs, it stops when ``budget``
    seconds have passed.
    """
    times: list[list[float]] = [[] for _ in functions]
    turns, rng = [*range(len(functions))], random.Random(0)
    device = torch.device('cuda' if torch.cuda.is_available() else 'cpu')
    for function in functions:
        function()
    spent = 0.
    while len(times[0]) < 5 or spent < budget and len(times[0]) < 200:
        rng.shuffle(turns)
        for i in turns:
            times[i].append(_seconds(functions[i], device))
            spent += times[i][-1]
    return [*map(statistics.median, times)]


def _seconds(function: Callable[[], Any], device: torch.device) -> float:
    if device.type == 'cuda':
        torch.cuda.synchronize()
    start = time.perf_counter()
    function()
    if device.type == 'cuda':
        torch.cuda.synchronize()
    return time.perf_counter() - start


def tune(calls: Sequence[Call], device: torch.device | str,
         compilers: Sequence[str] | None = None,
         budget: float = 0.5) -> Iterator[Result]:
    """Measure calls, and let this process use the faster code.

    Args:
        calls: Recorded calls.
        device: Device of their tensors.
        compilers: See :func:`measure`. Defaults to those that work on this
            machine.
        budget: Seconds to measure a call for. Defaults to 0.5.

    Yields:
        Each result when it has been measured.
    """
    if compilers is None:
        failed = why_not_compile(torch.device(device).type)
        compilers = COMPILERS[:1] if failed else COMPILERS
    choice = dispatch.current_choice(device)
    for result in measure(calls, compilers, budget):
        choice = Choice({**choice.gains, **result.gains}, 'being measured')
        dispatch.set_choice(device, choice)
        yield result


def store(results: Iterable[Result], device: torch.device | str,
          config: str) -> Path:
    """Store gains in the user's cache, for later runs on this machine.

    Gains from earlier runs are kept, unless they were measured again.

    Returns:
        The path of the file.
    """
    path = cache_path(device)
    gains: dict[str, float] = {}
    if path.is_file():
        default = dispatch.default_choice(device).gains
        gains.update((key, gain) for key, gain in read_choice(
            device).gains.items() if default.get(key) != gain)
    for result in results:
        gains.update(result.gains)
    today = datetime.date.today().isoformat()
    emulated = ', emulated' if is_emulated() else ''
    write_atomically(path, json.dumps(dict(
        machine=describe_machine(device), gains=gains,
        origin=f'tuned on {today} with {config}{emulated}',
        threads=torch.get_num_threads()), indent=1) + '\n', shared=True)
    dispatch.set_choice(device, None)
    return path


def clear(device: torch.device | str | None = None) -> list[Path]:
    """Delete stored choices, and return the paths of the deleted files.

    Args:
        device: Device whose choice to delete. None deletes all choices,
            including those for other versions and machines. Defaults to None.
    """
    paths = [cache_path(device)] if device is not None else sorted(
        cache_folder().glob('*.json'))
    existing = [path for path in paths if path.is_file()]
    for path in existing:
        path.unlink()
    return existing


def table(results: Iterable[Result], choice: Choice) -> str:
    """Format results as a table, with the code that a choice selects."""
    rows = [('op', 'backend', 'mode', 'dtype', 'shapes', *(
        f'{name} {column}' for name in COMPILERS
        for column in ('plain ms', 'ms', 'gain', 'runs')))]
    for result in results:
        condition, cells = result.condition, []
        for name in COMPILERS:
            key = key_of(result.op, result.backend, condition._replace(
                compiled=name == 'compiled'))
            if name in result.seconds:
                plain, fast = result.seconds[name]
                cells += [f'{plain * 1e3:.3f}', f'{fast * 1e3:.3f}',
                          f'{plain / fast:.2f}']
            else:
                cells += ['-'] * 3
            cells.append('yes' if choice.runs(key) else 'no')
        rows.append((
            result.op, result.backend,
            'training' if condition.training else 'inference',
            condition.dtype, f'{len(result.shapes)} of {result.num_shapes}',
            *cells))
    widths = [max(map(len, column)) for column in zip(*rows)]
    lines = ['  '.join(
        cell.ljust(width) for cell, width in zip(row, widths)).rstrip()
        for row in rows]
    return '\n'.join(lines + [
        f'{result.op} by {result.backend} is not used ({compiler}): {error}'
        for result in results for compiler, error in result.errors.items()])


def check_choice_by_time(device: torch.device | str,
                         budget: float = 0.2) -> Iterator[tuple[bool, str]]:
    """Compare the current choice with a quick measurement in eager mode.

    Yields:
        For each op and backend, whether the choice is right, and a line of
        text.
    """
    choice = dispatch.current_choice(device)
    for result in measure(representative_calls(device), ['eager'], budget):
        (key, gain), = result.gains.items()
        mode = 'training' if result.condition.training else 'inference'
        text = (f'{result.op} by {result.backend}, {mode}, '
                f'{result.condition.dtype}: ')
        text += result.errors.get(
            'eager', f'{gain:.2f} times as fast as the plain code')
        runs = choice.runs(key)
        # Allow for a noise of a tenth in this quick measurement.
        is_right = (gain > LEAST_GAIN - 0.1 if runs
                    else gain < LEAST_GAIN + 0.1)
        yield is_right, f'{text}; {"runs" if runs else "does not run"}'
