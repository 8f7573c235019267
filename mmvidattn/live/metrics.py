# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Metrics of runs in the Prometheus format."""
from collections.abc import Iterator, Sequence

from .latency import BOUNDS
from .run import Run

COUNTERS = dict(
    steps='Scored steps.',
    dropped='Steps dropped because the machine was too slow.',
    missing='Steps without a frame.',
    bad_frames='Empty frames, and steps with non-finite features.')
PREFIX = 'mmvidattn_'


def render_metrics(runs: Sequence[Run], names: Sequence[str]) -> bytes:
    """Render the metrics of runs, with the number and name of each source.

    Raises:
        ImportError: If prometheus_client is not installed.
    """
    try:
        from prometheus_client import CollectorRegistry, generate_latest
    except ImportError as error:
        raise ImportError('metrics need prometheus_client: pip install '
                          '"mmvidattn[metrics]"') from error
    registry = CollectorRegistry()
    registry.register(_Collector(runs, names))
    return generate_latest(registry)


class _Collector:

    def __init__(self, runs: Sequence[Run], names: Sequence[str]) -> None:
        self._runs = [((str(i), name), run)
                      for i, (run, name) in enumerate(zip(runs, names), 1)]

    def collect(self) -> Iterator:
        from prometheus_client.core import (
            CounterMetricFamily,
            GaugeMetricFamily,
            HistogramMetricFamily,
        )
        labels = 'source', 'name'
        up = GaugeMetricFamily(
            f'{PREFIX}source_up', '1 if the source gives frames or has ended.',
            labels=labels)
        counters = {
            key: CounterMetricFamily(PREFIX + key, text, labels=labels)
            for key, text in COUNTERS.items()}
        events = CounterMetricFamily(
            f'{PREFIX}events', 'Actions that started or ended.',
            labels=(*labels, 'event', 'class'))
        sinks = CounterMetricFamily(
            f'{PREFIX}sink_lost', 'Items that a sink dropped or failed to '
            'process.', labels=(*labels, 'sink'))
        latency = HistogramMetricFamily(
            f'{PREFIX}latency_seconds', 'Duration of each stage of a step; '
            'lag is from its last frame to its scores.',
            labels=(*labels, 'stage'))
        for values, run in self._runs:
            report = run.report()
            up.add_metric(values, run.health.is_up)
            for key, counter in counters.items():
                counter.add_metric(values, report[key])
            for key, count in list(run.event_counts.items()):
                events.add_metric((*values, *key), count)
            for sink, lost in run.sink_losses().items():
                sinks.add_metric((*values, sink), lost)
            for stage, counts in run.latency.counts.items():
                total, buckets = 0, []
                for bound, count in zip((*BOUNDS, '+Inf'), counts):
                    total += count
                    buckets.append((str(bound), total))
                latency.add_metric((*values, stage), buckets,
                                   run.latency.sums[stage])
        yield up
        yield from counters.values()
        yield from (events, sinks, latency)
