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
state, and the largest relative error of the scores since the previous point. A
frame whose queries match few keys amplifies rounding errors in its own scores,
but not in the state. The soak exits with 1 if the state exceeds an error of
1e-5, the scores exceed 1e-4, or the memory of the process grows.
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
# Largest errors of the state and of the scores.
DRIFT, ERROR = 1e-5, 1e-4


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
    """Run a stream.

    Yields:
        At each check: number of ``steps``; relative error of the state,
        ``drift``; largest relative ``error`` of the scores since the previous
        check; number of ``bad_frames``; and ``resident`` memory in bytes.
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
    error = 0.
    for step, frame in zip(range(1, steps + 1), frames_of(seed, size)):
        got, want = (x.push(frame)['action'] for x in (ours, exact))
        error = max(error, relative(got.double(), want))
        if step in marks:
            yield dict(steps=step, drift=drift_of(ours, exact), error=error,
                       bad_frames=ours.num_bad_frames, resident=resident())
            error = 0.


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
                for name, limit in (('drift', DRIFT), ('error', ERROR))
                if not x[name] <= limit]
    growth = results[-1]['resident'] - results[0]['resident']
    if growth > GROWTH:
        failures.append(f'the memory grew by {growth / 2**20:.0f} MiB')
    return failures


if __name__ == '__main__':
    main()
