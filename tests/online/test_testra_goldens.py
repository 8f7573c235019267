# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""TeSTra and LSTR, and their streams, against outputs of the released code."""
import pytest
import torch
from helpers import relative

from mmvidattn.online import StreamSession, dense_features
from tools.benchmark.references.testra_stream import TranscribedStream


def _inputs(x):
    mask = x['memory_key_padding_mask']
    return dict(rgb=x['visual_inputs'], flow=x['motion_inputs'],
                padding_mask=mask == -torch.inf)


def test_windows_match_the_released_code(case):
    G, model = case
    with torch.no_grad():
        out = model(_inputs(G['inputs']))
    assert out.keys() == G['outputs'].keys()
    for name, want in G['outputs'].items():
        assert relative(out[name], want) < 1e-5


def _stream(G):
    """Return the recorded stream and the frames of its windows."""
    c, stream = G['config'], G['stream']
    long = stream['windowed_long_indices']
    work = torch.arange(len(long))[:, None] + torch.arange(
        0, c['work_n'] * c['work_rate'], c['work_rate'])
    video = dict(rgb=stream['visual'], flow=stream['motion'])
    return video, long, work, stream['windowed_mask'] == -torch.inf


def test_dense_features_match_the_released_code(case):
    G, model = case
    video, long, work, mask = _stream(G)
    features = dense_features(model.backbone, video, long, work, mask)
    with torch.no_grad():
        out = model.cls_head(features)
    for name, want in G['stream']['windowed'].items():
        want = want[:, work.shape[1] - 1:]
        assert relative(out[name], want) < 1e-5


def _pushed(case, **kwargs):
    G, model = case
    c = G['config']
    session = StreamSession(model, c['long_rate'], c['work_rate'], **kwargs)
    return session.push(
        dict(rgb=G['stream']['visual'], flow=G['stream']['motion']))


def _expected(case, windows):
    """Return the recorded scores of each frame.

    Before the first full window there is only the score of the frame itself.
    """
    c, L = case[0]['config'], case[0]['config']['work_n']
    reach = (L - 1) * c['work_rate']
    rows = []
    for t in range(reach + len(windows)):
        if t < reach:
            rows.append(windows[t % c['work_rate']][t // c['work_rate']][None])
        else:
            rows.append(windows[t - reach][L - 1:])
    return rows


def _first_difference(got, want):
    for t, row in enumerate(want):
        difference = got[t, :len(row)] - row
        if difference.norm() / row.norm() > 1e-5:
            return t
    return None


@pytest.mark.parametrize('kernel, recorded', [
    ('window', 'windowed'), ('smoothing', 'exact')])
def test_stream_is_exact_from_the_first_frame(case, kernel, recorded):
    if recorded not in case[0]['stream']:
        pytest.skip('not supported with positions')
    out = _pushed(case, kernel=kernel)
    for name, windows in case[0]['stream'][recorded].items():
        want = _expected(case, windows)
        assert _first_difference(out[name], want) is None, name
    assert not out['bad_frame'].any()


def _transcribed(case, **kwargs):
    """Return the scores of the benchmark's reference for full windows."""
    G, model = case
    c, stream = G['config'], G['stream']
    reference = TranscribedStream(model, c['long_rate'], c['work_rate'],
                                  **kwargs)
    windows = [reference.push(dict(rgb=rgb, flow=flow))
               for rgb, flow in zip(stream['visual'], stream['motion'])]
    return torch.stack([y for y in windows if y is not None])


def test_benchmark_reference_matches_the_released_stream(case):
    got, want = _transcribed(case), case[0]['stream']['released']
    assert len(got) >= len(want) > 100
    for a, b in zip(got, want):
        assert relative(a, b) < 1e-5
    # The released stream differs from the windows.
    assert relative(case[0]['stream']['windowed']['action'], want) > 1e-3
