# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""TeSTra and LSTR, and their streams, against outputs of the released code."""
import pytest
import torch
from helpers import relative
from online.networks import detector_of

from mmvidattn.convert import convert
from mmvidattn.online import StreamSession, dense_features
from tools.benchmark.references.testra_stream import TranscribedStream

# Steps with a full window to compare.
STEPS = 48
GOLDENS = 'box', 'decay', 'decay_anti', 'ek100', 'lstr'


@pytest.fixture(scope='module', params=GOLDENS)
def case(request, golden):
    """Recorded outputs, and our model with the same weights."""
    G = golden(f'testra/golden_{request.param}.pt')
    c = G['config']
    options = dict(
        in_channels=(c['visual_dim'], c['motion_dim']),
        encoder=[stage[:2] for stage in c['enc_module']],
        num_layers=c['dec_module'][1], decay=c['decay'],
        fusion='compressed' if c['include_work'] else 'none',
        long=c['long_n'], work=c['work_n'], tokens=c['anti_n'],
        long_pos=c['long_use_pe'], work_pos=c['work_use_pe'],
        classes=c['num_classes'])
    if c['verb_noun']:
        options.update(verbs=98, nouns=301)
    model = detector_of(
        options, embed_dims=c['d_model'], num_heads=c['num_heads'],
        ffn_dims=c['dim_feedforward'], act=c['activation'])
    source = 'lstr' if request.param == 'lstr' else 'testra'
    model.load_state_dict(convert(source, G['state_dict']), strict=True)
    return G, model.eval()


def video_of(stream):
    return dict(rgb=stream['visual'], flow=stream['motion'])


@torch.no_grad()
def test_windows_match_the_released_code(case):
    (G, model), stream = case, case[0]['stream']
    x = G['inputs']
    out = model(dict(rgb=x['visual_inputs'], flow=x['motion_inputs'],
                     padding_mask=x['memory_key_padding_mask'] == -torch.inf))
    assert out.keys() == G['outputs'].keys()
    for name, want in G['outputs'].items():
        assert relative(out[name], want) < 1e-5
    c, long = G['config'], stream['windowed_long_indices']
    work = torch.arange(len(long))[:, None] + torch.arange(
        0, c['work_n'] * c['work_rate'], c['work_rate'])
    out = model.cls_head(dense_features(
        model.backbone, video_of(stream), long, work,
        stream['windowed_mask'] == -torch.inf))
    for name, want in stream['windowed'].items():
        assert relative(out[name], want[:, c['work_n'] - 1:]) < 1e-5


@pytest.mark.parametrize('kernel, recorded', [
    ('window', 'windowed'), ('smoothing', 'exact')])
def test_stream_is_exact_from_the_first_frame(case, kernel, recorded):
    (G, model), c = case, case[0]['config']
    if recorded not in G['stream']:
        pytest.skip('not supported with positions')
    session = StreamSession(
        model, c['long_rate'], c['work_rate'], kernel=kernel)
    L, rate = c['work_n'], c['work_rate']
    reach = (L - 1) * rate
    length = reach + STEPS
    out = session.push({name: x[:length]
                        for name, x in video_of(G['stream']).items()})
    for name, windows in G['stream'][recorded].items():
        for t in range(length):
            # Before the first full window, only the frame's own score.
            want = windows[t - reach][L - 1:] if t >= reach else (
                windows[t % rate][t // rate][None])
            assert relative(out[name][t, :len(want)], want) < 1e-5, (name, t)
    assert not out['bad_frame'].any()


@pytest.mark.parametrize('case', ['decay_anti', 'lstr'], indirect=True)
def test_benchmark_reference_matches_the_released_stream(case):
    (G, model), c = case, case[0]['config']
    stream = G['stream']
    reference = TranscribedStream(model, c['long_rate'], c['work_rate'])
    got = [reference.push(dict(rgb=rgb, flow=flow))
           for rgb, flow in zip(stream['visual'], stream['motion'])]
    got, want = [y for y in got if y is not None], stream['released']
    assert len(got) >= len(want) > 100
    for a, b in zip(got, want):
        assert relative(a, b) < 1e-5
    # The released stream differs from the windows.
    assert relative(stream['windowed']['action'], want) > 1e-3
