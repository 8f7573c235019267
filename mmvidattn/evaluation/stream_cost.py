# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Time and memory of the streams that were scored."""
from collections.abc import Iterable


def stream_cost(costs: Iterable[dict | None]) -> dict[str, float]:
    """Sum up what streams took; of other evaluations nothing.

    Args:
        costs: ``stream_cost`` of each data sample, as
            :class:`mmvidattn.recognizers.OnlineActionDetector` sets it.

    Returns:
        ``stream_steps_per_second``, of all streams that run together, and
        ``stream_state_bytes``, the largest state of a single one.
    """
    costs = [cost for cost in costs if cost is not None]
    if not costs:
        return {}
    steps, seconds = (
        sum(cost[key] for cost in costs) for key in ('steps', 'seconds'))
    return dict(
        stream_steps_per_second=steps / seconds,
        stream_state_bytes=max(cost['state_bytes'] for cost in costs))
