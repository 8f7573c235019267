# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import re
import sys
import time
import urllib.request
from types import SimpleNamespace
from urllib.error import HTTPError
from urllib.parse import parse_qs

import pytest
from live_fixtures import Script

from mmvidattn.live import FeatureStreamModel, StreamRun

pytest.importorskip('fastapi')
from mmvidattn.live import health  # noqa: E402
from mmvidattn.live.server import LivePage  # noqa: E402


@pytest.fixture(scope='module')
def model(files):
    return FeatureStreamModel(
        *files, events=dict(on=.26, off=.2, min_duration=.25))


def get(page, path, **headers):
    request = urllib.request.Request(
        f'http://{page.host}:{page.port}/{path}', headers=headers)
    try:
        with urllib.request.urlopen(request, timeout=10) as answer:
            return answer.status, answer.read().decode()
    except HTTPError as error:
        return error.code, error.read().decode()


def metrics_of(text):
    """Return values by name and labels in the text's format."""
    lines = [line for line in text.splitlines() if not line.startswith('#')]
    return {name: float(value) for name, value in (
        line.rsplit(maxsplit=1) for line in lines)}


def test_metrics(model, clip):
    pytest.importorskip('prometheus_client')
    runs = [StreamRun(model, clip),
            StreamRun(model, Script([*range(12), *range(30, 42)]))]
    with LivePage(runs, port=0) as page:
        before = metrics_of(get(page, 'metrics')[1])
        assert before['mmvidattn_steps_total'
                      '{name="clip.mp4",source="1"}'] == 0
        events = [event for run in runs for d in run for event in d.events]
        status, text = get(page, 'metrics')
    assert status == 200
    result = metrics_of(text)
    for name, values in dict(
            steps=(28, 8), missing=(0, 6), dropped=(0, 0),
            bad_frames=(0, 0)).items():
        assert f'# TYPE mmvidattn_{name}_total counter' in text
        for label, value in zip(('name="clip.mp4",source="1"',
                                 'name="script",source="2"'), values):
            assert result[f'mmvidattn_{name}_total{{{label}}}'] == value
    starts = sum(event['event'] == 'start' for event in events)
    assert starts and starts == sum(
        value for name, value in result.items()
        if name.startswith('mmvidattn_events_total{')
        and 'event="start"' in name)
    buckets = [value for name, value in result.items() if re.match(
        r'mmvidattn_latency_seconds_bucket.*source="1",stage="lag"', name)]
    assert buckets == sorted(buckets) and buckets[-1] == 28
    key = '{name="clip.mp4",source="1",stage="total"}'
    assert result[f'mmvidattn_latency_seconds_count{key}'] == 28
    assert result[f'mmvidattn_latency_seconds_sum{key}'] > 0


def test_metrics_need_the_token(model):
    pytest.importorskip('prometheus_client')
    with LivePage([StreamRun(model, Script(range(12)))], port=0,
                  token='sesam') as page:
        assert get(page, 'metrics')[0] == 401
        assert get(page, 'metrics', Authorization='Bearer other')[0] == 401
        assert get(page, 'metrics', Authorization='Bearer sesam')[0] == 200
        assert get(page, 'metrics', Authorization='Bearer sesam',
                   Host='evil.example')[0] == 403
        # Needs no token, and reveals nothing about the sources.
        assert get(page, 'healthz') == (200, 'ok\n')


@pytest.mark.parametrize('token', ['schlüssel', '鍵', 'a+b &%'])
def test_metrics_accept_any_token(model, token):
    """Clients such as Prometheus send UTF-8."""
    pytest.importorskip('prometheus_client')
    with LivePage([StreamRun(model, Script(range(12)))], port=0,
                  token=token) as page:
        for text, status in (token, 200), (token + 'x', 401):
            # urllib writes each character as a byte.
            header = f'Bearer {text}'.encode().decode('latin-1')
            assert get(page, 'metrics', Authorization=header)[0] == status
        # The page's script parses it as form data.
        fragment = page.url.partition('#')[2]
        assert parse_qs(fragment) == {'token': [token]}


def test_rejects_token_that_is_not_text(model):
    """An environment variable may contain any bytes."""
    with pytest.raises(ValueError, match='surrogates'):
        LivePage([StreamRun(model, Script(range(12)))], port=0, token='\udcff')


def test_metrics_without_the_library(model, monkeypatch):
    monkeypatch.setitem(sys.modules, 'prometheus_client', None)
    with LivePage([StreamRun(model, Script(range(12)))], port=0) as page:
        status, text = get(page, 'metrics')
    assert status == 501 and '"mmvidattn[metrics]"' in text


def test_health(model):
    one = StreamRun(model, Script(range(24)))
    two = StreamRun(model, Script(range(24), error=ValueError('it broke')))
    with LivePage([one, two], port=0) as page:
        assert get(page, 'healthz') == (200, 'ok\n')
        # No step has been scored yet.
        assert get(page, 'readyz') == (503, '2 of 2 sources are not ok\n')
        steps = iter(one)
        next(steps)
        assert get(page, 'readyz') == (503, '1 of 2 sources are not ok\n')
        one.source.status = 'lost, reconnecting'
        assert get(page, 'readyz') == (503, '2 of 2 sources are not ok\n')
        assert get(page, 'healthz')[0] == 200
        list(steps)
        assert get(page, 'readyz') == (503, '1 of 2 sources are not ok\n')
        with pytest.raises(ValueError, match='it broke'):
            list(two)
        assert get(page, 'healthz') == (503, '1 of 2 sources are not ok\n')
        assert get(page, 'readyz') == (503, '1 of 2 sources are not ok\n')


def test_a_step_that_hangs_is_unhealthy(model, monkeypatch):
    monkeypatch.setattr(health, 'STUCK_SECONDS', 0.1)
    run = StreamRun(model, Script(range(24)))
    results = []
    score = run._scorer.scores

    def slow(step):
        assert run.health.problem == ''
        time.sleep(0.2)
        results.append(run.health.problem)
        return score(step)

    run._scorer = SimpleNamespace(
        scores=slow, max_skip=0, num_bad=0)
    next(iter(run))
    assert results[0] == 'a step has taken longer than 0.1 s'
    assert run.health.problem == ''
