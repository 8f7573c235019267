# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""The released TeSTra and LSTR, by their recorded outputs."""
import torch
from helpers import relative

from mmvidattn.online import dense_features


def _inputs(x):
    mask = x['memory_key_padding_mask']
    return dict(rgb=x['visual_inputs'], flow=x['motion_inputs'],
                padding_mask=mask == -torch.inf)


def test_outputs(case):
    G, model = case
    with torch.no_grad():
        out = model(_inputs(G['inputs']))
    assert out.keys() == G['outputs'].keys()
    for name, want in G['outputs'].items():
        assert relative(out[name], want) < 1e-5


def test_intermediates(case):
    G, model = case
    got = {}
    hooks = {
        'enc_modules.0': model.backbone.encoder.stages[0],
        'enc_modules.1': model.backbone.encoder.stages[1],
        'dec_modules': model.backbone.decoder,
    }
    assert set(hooks) == set(G['intermediates'])
    handles = [
        module.register_forward_hook(
            lambda m, args, out, name=name: got.update({name: out}))
        for name, module in hooks.items()
    ]
    with torch.no_grad():
        model(_inputs(G['inputs']))
    for handle in handles:
        handle.remove()
    for name, want in G['intermediates'].items():
        # Recorded with the batch second.
        assert relative(got[name], want.transpose(0, 1)) < 1e-5


def _stream(G):
    """The recorded stream, and the frames of its windows."""
    c, stream = G['config'], G['stream']
    long = stream['windowed_long_indices']
    work = torch.arange(len(long))[:, None] + torch.arange(
        0, c['work_n'] * c['work_rate'], c['work_rate'])
    video = dict(rgb=stream['visual'], flow=stream['motion'])
    return video, long, work, stream['windowed_mask'] == -torch.inf


def test_windows_of_a_stream(case):
    G, model = case
    video, long, work, mask = _stream(G)
    windows = {
        name: torch.cat([x[long], x[work]], dim=1)
        for name, x in video.items()
    }
    with torch.no_grad():
        out = model(dict(windows, padding_mask=mask))
    for name, want in G['stream']['windowed'].items():
        assert relative(out[name], want) < 1e-5


def test_windows_of_a_stream_densely(case):
    G, model = case
    video, long, work, mask = _stream(G)
    features = dense_features(model.backbone, video, long, work, mask)
    with torch.no_grad():
        out = model.cls_head(features)
    for name, want in G['stream']['windowed'].items():
        want = want[:, work.shape[1] - 1:]
        assert relative(out[name], want) < 1e-5
