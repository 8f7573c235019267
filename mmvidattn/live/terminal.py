# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Lines about runs."""
from typing import Any

from .run import StreamRun

NUM_CLASSES = 6


def describe_event(event: dict) -> str:
    """Describe an event in one line."""
    if event['event'] == 'start':
        return f'{event["class"]} started at {event["start"]:.2f} s'
    return (f'{event["class"]} from {event["start"]:.2f} to '
            f'{event["end"]:.2f} s, peak score {event["peak"]:.2f}')


def describe_report(report: dict[str, Any]) -> str:
    """Describe counts and latency of :meth:`StreamRun.report` in one line."""
    stages = ', '.join(f'{stage} {ms["median"]:.1f}'
                       for stage, ms in report['latency'].items())
    lost = ''.join(f', {number} items lost by {name}'
                   for name, number in report['lost'].items())
    duration = f'step of {1000 / report["rate"]:g} ms'
    timing = (f'median ms of a {duration}: {stages}' if stages else
              f'no complete {duration}')
    return (f'{report["steps"]} steps, {report["dropped"]} dropped, '
            f'{report["missing"]} missing{lost}; {timing}')


def describe_peaks(run: StreamRun) -> str:
    """Describe the highest score of each class, and its threshold."""
    thresholds = run.thresholds()
    changed = {**thresholds['tuned'], **thresholds['changed']}
    initial = thresholds['on'],
    scores = ', '.join(
        f'{name} {score:.2f} of {changed.get(name, initial)[0]:.2f}'
        for name, score in run.top_actions(run.peaks, NUM_CLASSES).items())
    return ('no events. Highest score of each class, of the score at which '
            f'its actions start (--on): {scores}. An action must also last '
            'for --min-duration')
