# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Streaming evaluation of entire videos."""
import time
from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from .stream_session import StreamSession


def stream_videos(session: StreamSession,
                  videos: Sequence[Mapping[str, Tensor]],
                  steps: Sequence[Sequence[int]]
                  ) -> tuple[list[dict[str, Tensor]], float]:
    """Run videos as a batch of streams, each from its first to its last step.

    Args:
        session: Session from which the streams are spawned.
        videos: ``{modality: features}`` of each video, [T, channels].
        steps: For each video, the n steps whose logits to return.

    Returns:
        For each video, the logits of these steps in this order (``action``
        [n, 1 + A, K] and so on, see :meth:`StreamSession.push`); and the
        seconds that all steps of all videos took.
    """
    names = list(session.step.model.backbone.in_channels)
    rows = [list(zip(*(video[name] for name in names))) for video in videos]
    # Sort by length, so that the remaining streams stay a batch.
    order = sorted(range(len(rows)), key=lambda i: -len(rows[i]))
    sessions = [session.spawn() for _ in rows]
    steps_to_keep = [set(each) for each in steps]
    logits: list[dict[int, dict[str, Tensor]]] = [{} for _ in rows]
    start = time.perf_counter()
    for step in range(len(rows[order[0]])):
        while len(rows[order[-1]]) <= step:
            order.pop()
        results = StreamSession.push_many(
            [sessions[i] for i in order],
            [dict(zip(names, rows[i][step])) for i in order])
        for i, result in zip(order, results):
            if step in steps_to_keep[i]:
                # A copy, because a view keeps the entire batch.
                logits[i][step] = {
                    name: y.clone() for name, y in result.items()
                    if name != 'bad_frame'
                }
    seconds = time.perf_counter() - start
    return [{
        name: torch.stack([scores[step][name] for step in each])
        for name in next(iter(scores.values()), {})
    } for scores, each in zip(logits, steps)], seconds
