# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Run a long stream of a causal video network, and compare it with float64.

    python tools/soak/causal_stream.py --steps 1000000
    python tools/soak/causal_stream.py --steps 1000000 --no-decay

The model is ``linear_ff_causal_tiny_synthetic`` with random weights, once in
float32 and once in float64. Both read the same frames of noise: some frames
are missing, some are not finite, and some arrive early or late. With
``--no-decay``, the sums of the attention grow with each frame. ``--compile``
compiles both steps, and is several times faster.

At ``--checks`` points of the stream, the soak prints the relative error of the
state, and the largest relative error of the scores since the previous point.
The soak exits with 1 if one of them exceeds 1e-5, or the memory of the process
grows.

A query whose only positive channel is close to 0 amplifies rounding errors in
the scores of its frame, but not in the state. So if scores exceed the limit,
the soak also changes the pixels of the frame by 1e-6. If the float64 scores
change as much, the frame is counted as ``amplified`` instead.
"""
import sys
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import mmvidattn  # noqa: F401  isort: skip
import torch
from torch import Tensor

from mmvidattn.apis import get_model
from mmvidattn.online import StreamSession
from mmvidattn.online.video_step import ENCODER

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from tools.harness import append_json, count, finish, machine, parser_of
from tools.soak.stream import GROWTH, relative, resident

CONFIG = 'linear_ff_causal_tiny_synthetic'
# Largest error of the state and of the scores.
LIMIT = 1e-5
# Relative change of pixels, like the rounding errors of a float32 network, and
# number of such changes to try.
CHANGE, TRIES = 1e-6, 16
# An error is amplified rounding if it is at most this many times the largest
# difference that a change of the pixels makes.
FACTOR = 10


def frames_of(seed: int, size: tuple[int, ...]
              ) -> Iterator[dict[str, Tensor] | None]:
    """Yield an endless stream of frames; None is a missing frame."""
    gen = torch.Generator().manual_seed(seed)
    while True:
        kind = torch.rand((), generator=gen)
        frame = 255 * torch.rand(size, generator=gen)
        if kind < 0.01:
            yield None
            continue
        if kind > 0.999:
            frame[0, 0, 0] = torch.nan
        elapsed = 2 * torch.rand((), generator=gen) if kind > 0.9 else (
            torch.ones(()))
        yield dict(frames=frame, elapsed=elapsed)


def soak(steps: int, checks: int = 20, seed: int = 0,
         decays: bool = True,
         compiled: bool = False) -> Iterator[dict[str, Any]]:
    """Run a stream in float32 and in float64, and compare the two.

    Yields:
        For each check, a dictionary with the number of ``steps``; the
        relative error of the state (``drift``); the largest relative
        ``error`` of the scores since the previous check; the number of frames
        with amplified rounding errors (``amplified``), which ``error`` leaves
        out, and their largest error (``largest``); the number of
        ``bad_frames``; and the ``resident`` memory in bytes.
    """
    options = {} if decays else {'model.backbone.encoder.decay': None}
    sessions = []
    for dtype in torch.float32, torch.float64:
        torch.manual_seed(seed)
        model = get_model(CONFIG, cfg_options=options)
        session = StreamSession(model.to(dtype))
        if compiled:
            session.step.compile()
        sessions.append(session)
    ours, exact = sessions
    size = ours.step.frame_shapes['frames']
    marks = {(i + 1) * steps // checks for i in range(checks)}
    error, amplified, largest = 0., 0, 0.
    for step, frame in zip(range(1, steps + 1), frames_of(seed, size)):
        before, bad_frames = exact.state_dict(), exact.num_bad_frames
        got, want = (x.push(frame)['action'] for x in (ours, exact))
        latest = relative(got.double(), want)
        if exact.num_bad_frames > bad_frames:
            # It repeats the scores of the frame before.
            latest = 0.
        if latest > LIMIT and (
                latest <= FACTOR * sensitivity(exact, before, frame, want)):
            amplified += 1
            largest = max(largest, latest)
        else:
            error = max(error, latest)
        if step in marks:
            yield dict(steps=step, drift=drift_of(ours, exact), error=error,
                       amplified=amplified, largest=largest,
                       bad_frames=ours.num_bad_frames, resident=resident())
            error = 0.


def sensitivity(session: StreamSession, before: dict[str, Any],
                frame: dict[str, Tensor], scores: Tensor) -> float:
    """Return the largest relative change of scores by tiny pixel changes.

    Args:
        session: Session in float64, whose state is restored at the end.
        before: State of the session before the frame.
        frame: The frame.
        scores: Scores of the unchanged frame.
    """
    after = session.state_dict()
    gen = torch.Generator().manual_seed(0)
    pixels = frame['frames'].double()
    result = 0.
    for _ in range(TRIES):
        change = 1 + CHANGE * torch.randn(
            pixels.shape, generator=gen, dtype=pixels.dtype)
        session.load_state_dict(before)
        changed = session.push(dict(frame, frames=pixels * change))['action']
        result = max(result, relative(changed, scores))
    session.load_state_dict(after)
    return result


def drift_of(ours: StreamSession, exact: StreamSession) -> float:
    """Return the largest relative error of the sums and shifted channels."""
    got, want = (each.state_dict()['state'] for each in (ours, exact))
    # A carry is the rounding error of a sum.
    return max(relative(got[name].double(), x) for name, x in want.items()
               if name.startswith(ENCODER) and not name.endswith('.carry'))


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument('--steps', type=count, default=1_000_000)
    parser.add_argument('--no-decay', action='store_true')
    parser.add_argument('--compile', action='store_true',
                        help='compile the steps with torch.compile')
    parser.add_argument('--checks', type=count, default=20)
    parser.add_argument('--seed', type=int, default=0)
    parser.add_argument('--out', type=Path,
                        help='append the results to this file, as JSON')
    args = parser.parse_args()
    torch.set_num_threads(1)
    warnings.filterwarnings('ignore', message='frame .* of a stream is')
    print(machine())
    start, results = time.monotonic(), []
    for result in soak(args.steps, args.checks, args.seed,
                       not args.no_decay, args.compile):
        result['seconds'] = round(time.monotonic() - start)
        results.append(result)
        print(f'{result["steps"]:9} steps in {result["seconds"]} s: drift '
              f'{result["drift"]:.1e}, error {result["error"]:.1e}, '
              f'{result["amplified"]} amplified up to '
              f'{result["largest"]:.1e}, '
              f'{result["bad_frames"]} bad frames, '
              f'{result["resident"] / 2**20:.0f} MiB', flush=True)
    append_json(args.out, dict(
        machine=machine(), seed=args.seed, decays=not args.no_decay,
        compiled=args.compile,
        results=results))
    finish(failures_of(results))


def failures_of(results: list[dict[str, Any]]) -> list[str]:
    """Return the failures of a soak."""
    failures = [f'{name} of {x[name]:.1e} at step {x["steps"]}'
                for x in results
                for name in ('drift', 'error') if not x[name] <= LIMIT]
    growth = results[-1]['resident'] - results[0]['resident']
    if growth > GROWTH:
        failures.append(f'the memory grew by {growth / 2**20:.0f} MiB')
    return failures


if __name__ == '__main__':
    main()
