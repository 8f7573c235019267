# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Tests that the checks of ``mmvidattn doctor`` pass, and can fail."""
import pytest
import torch
from helpers import only_backends

from mmvidattn.apis import self_test
from mmvidattn.ops import dispatch

MEDIAN_SECONDS = self_test.median_seconds


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch):
    monkeypatch.setattr(
        self_test, 'median_seconds', lambda function: [function(), 1.][1])


@pytest.mark.parametrize('name', self_test.FAMILIES)
def test_family_matches_recorded_outputs(name):
    item, = self_test.check_family(name, ['cpu'])
    assert item.level == 'ok', item
    assert item.topic == f'{name} on cpu' and '/s with the' in item.text


def test_covers_all_families():
    assert {*self_test.FAMILIES} == {
        'linear_ff', 'xvit', 'vivit', 'laps', 'dualformer', 'testra'}


def test_fast_function_is_timed_twenty_times():
    calls = iter(range(21))
    assert 0 < MEDIAN_SECONDS(lambda: next(calls), budget=60.) < 60
    assert next(calls, None) is None


def test_slow_function_is_timed_within_the_budget(monkeypatch):
    """Fake a clock: the calls take 1, 0.3, 0.1 and 0.2 seconds."""
    times = iter([0., 1., 1., 1.3, 1.3, 1.4, 1.4, 1.6])
    monkeypatch.setattr(self_test.time, 'perf_counter', lambda: next(times))
    assert MEDIAN_SECONDS(lambda: None, budget=0.5) == pytest.approx(0.2)
    assert next(times, None) is None


def test_detects_wrong_plain_code(monkeypatch):
    softmax = torch.nn.functional.scaled_dot_product_attention
    monkeypatch.setattr(
        torch.nn.functional, 'scaled_dot_product_attention',
        lambda *args, **kwargs: 1.01 * softmax(*args, **kwargs))
    items = [*self_test.check_family('vivit', ['cpu'])]
    assert items[0].level == 'problem'
    assert 'recorded' in items[0].text and items[0].remedy


@pytest.mark.parametrize('factor', [1.01, torch.nan])
def test_detects_wrong_backend(factor):
    """Use a backend that is 1 % off, and one that returns nan."""
    wrong = dispatch.Backend(
        'wrong', lambda *args: factor * torch.nn.functional.linear(*args),
        lambda *args: None, '')
    with only_backends('linear', wrong):
        items = [item for item in self_test.check_backends('cpu', run=True)
                 if item.topic == 'linear on cpu']
        family, = self_test.check_family('linear_ff', ['cpu'])
    assert [item.level for item in items] == ['problem', 'problem']
    assert 'MMVIDATTN_DISPATCH=0' in items[0].remedy
    assert family.level == 'problem'


def test_detects_wrong_decoding(monkeypatch):
    import decord
    item, = self_test.check_decoding()
    assert item.level == 'ok'
    read = decord.VideoReader.get_batch
    monkeypatch.setattr(decord.VideoReader, 'get_batch',
                        lambda self, which: read(self, [*which][::-1]))
    item, = self_test.check_decoding()
    assert item.level == 'problem' and 'decord' in item.remedy


def test_values_are_spread_evenly():
    values = self_test.spread(torch.Size((100, 100)))
    assert abs(values.mean()) < 0.02
    assert abs(values.var() - 1 / 3) < 0.01
    assert abs(torch.corrcoef(values).triu(1)).max() < 0.6
