# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Counts of runs in the format of Prometheus."""
from collections.abc import Iterator, Sequence

from .latency import BOUNDS
from .run import Run

COUNTERS = dict(
    steps='Steps that were scored.',
    dropped='Steps that were dropped, as the machine was too slow.',
    missing='Steps of which the source had no frames.',
    bad_frames='Empty frames, and steps whose features were not finite.')
PREFIX = 'mmvidattn_'


def render_metrics(runs: Sequence[Run], names: Sequence[str]) -> bytes:
    """The metrics of runs, each with the number and name of its source.

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
            f'{PREFIX}source_up', 'Whether the source gives frames, or has '
            'ended.', labels=labels)
        counters = {
            key: CounterMetricFamily(PREFIX + key, text, labels=labels)
            for key, text in COUNTERS.items()}
        events = CounterMetricFamily(
            f'{PREFIX}events', 'Actions that started or ended.',
            labels=(*labels, 'event', 'class'))
        sinks = CounterMetricFamily(
            f'{PREFIX}sink_lost', 'What a sink dropped or failed to take.',
            labels=(*labels, 'sink'))
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
