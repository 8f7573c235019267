# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""TeSTra and LSTR against outputs of the released code."""
import torch
from helpers import relative

from mmvidattn.online import dense_features


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
