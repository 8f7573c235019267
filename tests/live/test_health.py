# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import time
import urllib.request
from types import SimpleNamespace
from urllib.error import HTTPError

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


def get(page, path):
    address = f'http://{page.host}:{page.port}/{path}'
    try:
        with urllib.request.urlopen(address, timeout=10) as answer:
            return answer.status, answer.read().decode()
    except HTTPError as error:
        return error.code, error.read().decode()


def test_rejects_token_that_is_not_text(model):
    """An environment variable may contain any bytes."""
    with pytest.raises(ValueError, match='surrogates'):
        LivePage([StreamRun(model, Script(range(12)))], port=0, token='\udcff')


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

    def slow(step, has_next):
        assert run.health.problem == ''
        time.sleep(0.2)
        results.append(run.health.problem)
        return score(step, has_next)

    run._scorer = SimpleNamespace(
        scores=slow, max_skip=0, num_bad=0)
    next(iter(run))
    assert results[0] == 'a step has taken longer than 0.1 s'
    assert run.health.problem == ''
