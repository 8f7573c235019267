# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Streams of TeSTra and LSTR, by the recorded outputs of the released code."""
import pytest
import torch
from helpers import relative

from mmvidattn.online import StreamSession
from tools.benchmark.references.testra_stream import TranscribedStream


def _pushed(case, **kwargs):
    G, model = case
    c = G['config']
    session = StreamSession(model, c['long_rate'], c['work_rate'], **kwargs)
    return session.push(
        dict(rgb=G['stream']['visual'], flow=G['stream']['motion']))


def _expected(case, windows):
    """Of each frame, the rows of its window, and from when there are all."""
    c, L = case[0]['config'], case[0]['config']['work_n']
    reach = (L - 1) * c['work_rate']
    rows = []
    for t in range(reach + len(windows)):
        if t < reach:
            rows.append(windows[t % c['work_rate']][t // c['work_rate']][None])
        else:
            rows.append(windows[t - reach][L - 1:])
    return rows


def _agrees(got, want):
    for t, row in enumerate(want):
        difference = got[t, :len(row)] - row
        if difference.norm() / row.norm() > 1e-5:
            return t
    return None


@pytest.mark.parametrize('kernel, recorded', [
    ('window', 'windowed'), ('smoothing', 'exact')])
def test_stream_is_exact_from_the_first_frame(case, kernel, recorded):
    if recorded not in case[0]['stream']:
        pytest.skip('with positions there is no such stream')
    out = _pushed(case, kernel=kernel)
    for name, windows in case[0]['stream'][recorded].items():
        assert _agrees(out[name], _expected(case, windows)) is None, name
    assert not out['bad_frame'].any()


def _transcribed(case, **kwargs):
    """The windows of the benchmark's reference, from the first full one on."""
    G, model = case
    c, stream = G['config'], G['stream']
    reference = TranscribedStream(model, c['long_rate'], c['work_rate'],
                                  **kwargs)
    windows = [reference.push(dict(rgb=rgb, flow=flow))
               for rgb, flow in zip(stream['visual'], stream['motion'])]
    return torch.stack([y for y in windows if y is not None])


def test_released_stream_is_the_benchmarks_reference(case):
    got, want = _transcribed(case), case[0]['stream']['released']
    assert len(got) >= len(want) > 100
    for a, b in zip(got, want):
        assert relative(a, b) < 1e-5
    # It is not the windowed one.
    assert relative(case[0]['stream']['windowed']['action'], want) > 1e-3


def test_reference_is_exact_without_what_the_release_adds(case):
    if 'exact' not in case[0]['stream']:
        pytest.skip('with positions there is no such stream')
    got = _transcribed(case, as_released=False)
    for a, b in zip(got, case[0]['stream']['exact']['action']):
        assert relative(a, b) < 1e-5
