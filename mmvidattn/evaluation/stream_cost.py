# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Speed and memory of streaming evaluation."""
from collections.abc import Iterable


def stream_cost(costs: Iterable[dict | None]) -> dict[str, float]:
    """Summarize the cost of streams.

    Args:
        costs: ``stream_cost`` of each data sample, as set by
            :class:`mmvidattn.recognizers.OnlineActionDetector`; None if the
            sample was not evaluated as a stream.

    Returns:
        ``stream_steps_per_second``, steps divided by seconds over all streams,
        and ``stream_state_bytes``, the size of the largest state. Empty if no
        sample was evaluated as a stream.
    """
    costs = [cost for cost in costs if cost is not None]
    if not costs:
        return {}
    steps, seconds = (
        sum(cost[key] for cost in costs) for key in ('steps', 'seconds'))
    return dict(
        stream_steps_per_second=steps / seconds,
        stream_state_bytes=max(cost['state_bytes'] for cost in costs))
