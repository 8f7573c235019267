# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Run a long, difficult stream, and compare it with float64.

    python tools/soak/stream.py --kernel window --steps 1000000
    python tools/soak/stream.py --kernel smoothing --steps 1000000
    python tools/soak/stream.py --kernel smoothing --decay 1
    python tools/soak/stream.py --kernel smoothing --decay 0.999 --silence 0.1
    python tools/soak/stream.py --dtype bfloat16 --steps 100000

The model is a small TeSTra with random weights and biases. Without
``--decay``, 'window' uses the box kernel and 'smoothing' the Laplace kernel.
The scores of the long memory drift by 120 from the first step to the last.
Some frames are silence, some raise a score by up to 1e4, some are not finite,
and the squares of some overflow float32. With ``--silence 0.1`` all frames
after a tenth of the stream are zero.

At ``--checks`` points of the stream, the attention to the long memory is
recomputed in float64 in two ways: from its definition and the entire history
("error"), and from the scores and values that the stream has stored, which
are rounded in half precision ("from stored samples"). The soak exits with 1
if a relative error exceeds 1e-3 (window) or 1e-4 (smoothing), where "error"
counts only in float32; if a score is not finite; or if the memory of the
process grows.
"""
import math
import os
import sys
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import mmvidattn  # noqa: F401  isort: skip
import torch
from mmaction.registry import MODELS
from mmengine.registry import init_default_scope
from torch import Tensor, nn

from mmvidattn.online import StreamSession
from mmvidattn.ops.temporal_smoothing import read_rows, window_smoothing

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from tools.harness import append_json, count, finish, parser_of

CHANNELS, LENGTH, WORK, RATE = 8, 32, 4, 4
DRIFT, SPIKE = 120., 1e4
# Finite in float32, while its square is not.
LOUD = 1e22
# Frames per block.
BLOCK = 1000
GROWTH = 16 * 2**20
TOLERANCES = dict(window=1e-3, smoothing=1e-4)


def build(kernel: str, seed: int = 0,
          decay: float | None = None) -> nn.Module:
    """Build a detector whose feature 0 only adds to long-memory scores."""
    if decay is None:
        decay = 1. if kernel == 'window' else 0.97
    torch.manual_seed(seed)
    init_default_scope('mmaction')
    model = MODELS.build(dict(
        type='OnlineActionDetector',
        backbone=dict(
            type='TeSTra', in_channels=dict(rgb=CHANNELS), embed_dims=16,
            num_heads=2, ffn_dims=16, long_memory_length=LENGTH,
            work_memory_length=WORK, num_layers=1,
            decay=decay,
            encoder=[dict(num_queries=4, num_layers=1)]),
        cls_head=dict(type='OnlineActionHead', num_classes=5, in_channels=16)))
    model.eval()
    backbone = model.backbone
    attention = backbone.encoder.stages[0].blocks[0].memory_attn
    width = 16 // attention.num_heads
    with torch.no_grad():
        for p in model.parameters():
            if p.dim() == 1:
                p.add_(0.1 * torch.randn_like(p))
        backbone.work_projection.projection.weight[:, 0] = 0
        long = backbone.long_projection.projection
        long.weight[0], long.weight[:, 0], long.bias[0] = 0, 0, 0
        long.weight[0, 0] = 1
        # Key 0 of each head is feature 0, and query 0 turns it into a score.
        attention.kv.weight[:, 0] = 0
        attention.kv.weight[:16:width], attention.kv.bias[:16:width] = 0, 0
        attention.kv.weight[:16:width, 0] = 1
        attention.q.weight[::width] = 0
        attention.q.bias[::width] = width**0.5
    return model


def block_of(number: int, steps: int, kernel: str, seed: int,
             silence_from: float = 1.) -> Tensor:
    """Return block `number` of the stream, [BLOCK, CHANNELS].

    The block depends only on the arguments.
    """
    if number * BLOCK >= silence_from * steps:
        return torch.zeros(BLOCK, CHANNELS)
    gen = torch.Generator().manual_seed(seed * 1_000_003 + number)
    x = torch.randn(BLOCK, CHANNELS, generator=gen)
    now = number * BLOCK + torch.arange(BLOCK)
    x[:, 0] = x[:, 0].abs() + DRIFT * now / steps
    kind = torch.rand(BLOCK, generator=gen)
    x[kind < 0.001] = torch.nan
    x[kind > 0.9999] = LOUD
    silence = torch.rand(3, generator=gen)
    if silence[0] < 0.05:
        first = int(silence[1] * BLOCK)
        x[first:first + int(silence[2] * 200)] = 0
    # Spikes are rare, because a decaying memory keeps them for long, and few
    # are high.
    rate = 1e-3 if kernel == 'window' else 1e-4
    spikes = torch.rand(BLOCK, generator=gen) < rate
    x[:, 0] += spikes * SPIKE * torch.rand(BLOCK, generator=gen)**30
    return x


class Reference:
    """Attention to the long memory, from its definition."""

    def __init__(self, kernel: str, steps: int, seed: int,
                 decay: float | None = None, silence: float = 1.) -> None:
        self.kernel, self.steps, self.seed = kernel, steps, seed
        self.silence = silence
        self.backbone = build(kernel, seed, decay).double().backbone

    @torch.no_grad()
    def __call__(self, step: int) -> Tensor:
        """Return the result [N, G, D] after frame ``step``, from 0."""
        encoder = self.backbone.encoder
        heads = encoder.stages[0].blocks[0].memory_attn.heads
        _, q = next(encoder.prefix())
        q = heads(q[0])
        newest = step - WORK + 1 - RATE
        oldest = newest % RATE
        if self.kernel == 'window':
            oldest = max(oldest, newest - RATE * (LENGTH - 1))
        total, weight, largest = 0., 0., torch.tensor(-torch.inf)
        last = torch.zeros(CHANNELS)
        for number in range(max(0, oldest // BLOCK - 1), newest // BLOCK + 1):
            x = block_of(number, self.steps, self.kernel, self.seed,
                         self.silence)
            good = (x.abs() < LOUD / 2).all(dim=-1)
            before = torch.where(good, torch.arange(BLOCK), -1).cummax(0)[0]
            x = x[before.clamp(min=0)].where((before >= 0)[:, None], last)
            last = x[-1]
            t = number * BLOCK + torch.arange(BLOCK)
            used = (t >= oldest) & (t <= newest) & (t % RATE == newest % RATE)
            if self.kernel == 'smoothing':
                # Each phase starts with frame 0.
                used |= t == 0
            if not used.any():
                continue
            x, t = x[used].double(), t[used].double()
            rows = encoder.project(
                self.backbone.long_projection(dict(rgb=x)))
            k, v = map(heads, rows.chunk(2, dim=-1))
            age = ((newest - t) / RATE).ceil()
            scores = torch.einsum('ngd,mgd->ngm', q, k) * q.shape[-1]**-0.5
            scores = scores + age * math.log(encoder.decay)
            higher = scores.amax(dim=-1, keepdim=True).maximum(largest)
            old, new = (largest - higher).exp(), (scores - higher).exp()
            total = old * total + torch.einsum('ngm,mgd->ngd', new, v)
            weight = old * weight + new.sum(dim=-1, keepdim=True)
            largest = higher
        return total / weight


class StoredSamples:
    """Attention in float64 to the samples that a stream has stored."""

    def __init__(self, session: StreamSession) -> None:
        self.session = session
        self.log_decay = math.log(
            session.step.model.backbone.encoder.decay)
        # Per phase: largest score, sum of weights, and sum of values.
        self.sums: list[tuple[Tensor, Tensor, Tensor] | None] = [None] * RATE

    def add(self, step: int) -> None:
        """Add the sample of frame ``step``, which has been pushed."""
        start = max(0, step - WORK + 1)
        phase, frame = start % RATE, max(0, start - RATE)
        before = self.sums[phase]
        # Each phase starts with frame 0.
        if self.session.step.kernel == 'window' or before and not frame:
            return
        scores, v = (x[0] for x in self._read(torch.tensor([frame])))
        if before is None:
            before = scores - math.inf, 0., 0.
        aged = before[0] + self.log_decay
        largest = torch.maximum(aged, scores)
        old, new = (aged - largest).exp(), (scores - largest).exp()
        self.sums[phase] = (
            largest, old * before[1] + new,
            old[..., None] * before[2] + new[..., None] * v)

    def __call__(self, step: int) -> Tensor:
        """Return the result [N, G, D] after frame ``step``."""
        start = max(0, step - WORK + 1)
        if self.session.step.kernel == 'smoothing':
            _, weight, total = self.sums[start % RATE]
            return total / weight[..., None]
        frames = start - RATE * torch.arange(LENGTH, 0, -1)
        scores, v = self._read(frames[frames > -RATE].clamp(min=0))
        return torch.einsum('mng,mgd->ngd', scores.softmax(dim=0), v)

    def _read(self, frames: Tensor) -> tuple[Tensor, Tensor]:
        """Return scores [M, N, G] and values [M, G, D] of these frames."""
        state = self.session._state
        rows = frames % state['scores'].shape[1]
        return state['scores'][0, rows].double(), \
            state['values'][0, rows].double()


def resident() -> int:
    """Return the resident memory of this process in bytes."""
    lines = Path('/proc/self/status').read_text().splitlines()
    line = next(line for line in lines if line.startswith('VmRSS:'))
    return int(line.split()[1]) * 1024


def soak(kernel: str, steps: int, dtype: torch.dtype = torch.float32,
         checks: int = 20, seed: int = 0,
         compiled: bool = False, decay: float | None = None,
         silence: float = 1.) -> Iterator[dict[str, Any]]:
    """Run a stream, and compare its attention with float64.

    Yields:
        For each check, a dictionary with the number of ``steps``; the
        relative error of the attention to the long memory, compared with its
        definition (``error``) and with float64 attention to the stored
        samples (``stored_error``); the number of scores that were
        ``not_finite``; the number of ``bad_frames``; and the ``resident``
        memory in bytes.
    """
    model = build(kernel, seed, decay).to(dtype)
    session = StreamSession(model, RATE, kernel=kernel)
    if compiled:
        session.step.compile()
    reference, wrong = Reference(kernel, steps, seed, decay, silence), 0
    stored = StoredSamples(session)
    marks = {(i + 1) * steps // checks for i in range(checks)}
    for number in range(-(-steps // BLOCK)):
        frames = block_of(number, steps, kernel, seed, silence)
        for t in range(number * BLOCK, min(steps, (number + 1) * BLOCK)):
            out = session.push(dict(rgb=frames[t % BLOCK]))
            wrong += not out['action'].isfinite().all()
            stored.add(t)
            if t + 1 in marks:
                got = attention_of(session)
                yield dict(
                    steps=t + 1,
                    error=relative(got, reference(t)),
                    stored_error=relative(got, stored(t)),
                    not_finite=wrong,
                    bad_frames=session.num_bad_frames,
                    resident=resident())


def relative(got: Tensor, want: Tensor) -> float:
    return ((got - want).norm() / want.norm()).item()


def attention_of(session: StreamSession) -> Tensor:
    """Return the attention result of the last step, [N, G, D] in float64."""
    state = session.state_dict()['state']
    start = state['count'] - WORK
    if session.step.kernel == 'smoothing':
        phase = int(start) % RATE
        return (state['total'] / state['weight'][..., None])[0, phase].double()
    steps = start[:, None] - RATE * torch.arange(LENGTH, 0, -1)
    return window_smoothing(*(
        read_rows(state[name], steps) for name in ('scores', 'values')
    ))[0].double()


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument('--steps', type=count, default=1_000_000)
    parser.add_argument('--kernel', choices=TOLERANCES, default='window')
    parser.add_argument(
        '--dtype', choices=['float32', 'float16', 'bfloat16'],
        default='float32')
    parser.add_argument(
        '--decay', type=float, help='decay of the long memory (default: 1 '
        'with window, 0.97 with smoothing)')
    parser.add_argument(
        '--silence', type=float, default=1., help='share of the stream after '
        'which all frames are zero (default: %(default)s)')
    parser.add_argument('--checks', type=count, default=20)
    parser.add_argument('--seed', type=int, default=0)
    parser.add_argument(
        '--compile', action='store_true',
        help='compile the step with torch.compile')
    parser.add_argument(
        '--out', type=Path, help='write a line of JSON for each check here')
    args = parser.parse_args()
    # Compute in bfloat16 also on processors where we would use float32.
    os.environ['MMVIDATTN_BFLOAT16'] = 'force'
    # Bad frames are intended.
    warnings.filterwarnings('ignore', 'frame .* of a stream')
    began, results = time.monotonic(), []
    for result in soak(args.kernel, args.steps, getattr(torch, args.dtype),
                       args.checks, args.seed, args.compile, args.decay,
                       args.silence):
        results.append(result)
        print(f'{result["steps"]:9,d} steps: error {result["error"]:.1e} '
              f'(from stored samples {result["stored_error"]:.1e}), '
              f'{result["not_finite"]} scores not finite, '
              f'{result["bad_frames"]} bad frames, '
              f'{result["resident"] / 2**20:.0f} MiB', flush=True)
        append_json(args.out, result)
    failures = failures_of(results, args.kernel, args.dtype)
    print(f'{time.monotonic() - began:.0f} s')
    finish(failures)


def failures_of(results: list[dict[str, Any]], kernel: str,
                dtype: str) -> list[str]:
    """Return a line for each failure."""
    failures = []
    for key in ['stored_error'] + ['error'] * (dtype == 'float32'):
        large = [result[key] for result in results
                 if not result[key] <= TOLERANCES[kernel]]
        if large:
            failures.append(f'{key} reached {max(large):.1e}')
    if results[-1]['not_finite']:
        failures.append(f'{results[-1]["not_finite"]} scores not finite')
    # The first check has already allocated the memory of a reference.
    growth = results[-1]['resident'] - results[0]['resident']
    if growth > GROWTH:
        failures.append(f'memory grew by {growth / 2**20:.0f} MiB')
    return failures


if __name__ == '__main__':
    main()
