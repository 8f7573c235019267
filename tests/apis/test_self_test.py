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


@pytest.fixture
def measured(monkeypatch):
    """Set the result of a quick measurement, without measuring."""
    monkeypatch.setattr(dispatch, '_enabled', True)
    monkeypatch.setattr(dispatch, '_unmeasured', False)

    def set_findings(*found):
        monkeypatch.setattr(self_test, 'check_choice_by_time',
                            lambda device: iter(found))

    return set_findings


def test_wrong_choice_of_backends_is_noted(measured):
    measured((True, 'a by b: 2.00; runs'), (False, 'c by d: 0.50; runs'))
    item, = self_test.check_choice('cpu')
    assert (item.level, item.topic) == ('note', 'backends on cpu')
    assert 'c by d: 0.50' in item.text and 'a by b' not in item.text
    assert item.remedy == 'mmvidattn tune'


def test_right_choice_of_backends_names_the_machine(measured):
    measured((True, 'a by b: 2.00; runs'))
    item, = self_test.check_choice('cpu')
    assert item.level == 'ok' and '1 quick' in item.text
    assert self_test.capability('cpu') in item.text


def test_overridden_choice_is_not_measured(measured):
    with dispatch.use_backends(False):
        item, = self_test.check_choice('cpu')
    assert item.level == 'ok' and 'MMVIDATTN_DISPATCH=0' in item.text


def test_choice_is_checked_in_the_full_self_test_only():
    assert 'backends on cpu' in self_test.list_checks()
    assert 'backends on cpu' not in self_test.list_checks(quick=True)


@pytest.mark.parametrize('has_units, bfloat16, level, words', [
    (True, 0.5, 'ok', 'compute in bfloat16'),
    (True, 2., 'note', 'leave out --amp'),
    (False, 30., 'ok', 'compute in float32'),
    (False, 0.5, 'note', 'MMVIDATTN_BFLOAT16=force')])
def test_speed_of_both_precisions_is_reported(
        monkeypatch, has_units, bfloat16, level, words):
    seconds = iter([1e-3, bfloat16 * 1e-3])
    monkeypatch.setattr(self_test.timeit, 'repeat',
                        lambda *_, **__: [next(seconds), 9.])
    monkeypatch.setattr(self_test, 'has_bfloat16_units', lambda: has_units)
    item, = self_test.check_half_precision()
    assert item.level == level
    assert words in item.text + item.remedy
    assert 'float32 33.6 GFLOP/s' in item.text
    assert f'bfloat16 {33.554432 / bfloat16:.3g} GFLOP/s' in item.text
    assert 'half precision on cpu' in self_test.list_checks()
