# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""The released TeSTra and LSTR, by their recorded outputs."""
import pytest
import torch
from mmaction.registry import MODELS
from mmengine.registry import init_default_scope

from mmvidattn.convert import convert
from mmvidattn.online import dense_features
from mmvidattn.ops.temporal_smoothing import (
    exponential_smoothing,
    smoothing_state,
    window_smoothing,
    window_state,
)

NAMES = ['box', 'decay', 'decay_anti', 'ek100', 'lstr']


@pytest.fixture(scope='module', params=NAMES)
def case(request, golden):
    """What was recorded, and our model of the same weights."""
    G = golden(f'testra/golden_{request.param}.pt')
    c = G['config']
    fusion = 'compressed' if c['include_work'] else 'none'
    init_default_scope('mmaction')
    model = MODELS.build(dict(
        type='OnlineActionDetector',
        backbone=dict(
            type='TeSTra',
            in_channels=dict(rgb=c['visual_dim'], flow=c['motion_dim']),
            embed_dims=c['d_model'], num_heads=c['num_heads'],
            ffn_dims=c['dim_feedforward'],
            long_memory_length=c['long_n'], work_memory_length=c['work_n'],
            num_anticipation_tokens=c['anti_n'],
            encoder=[dict(num_queries=stage[0], num_layers=stage[1])
                     for stage in c['enc_module']],
            num_layers=c['dec_module'][1],
            decay=c['decay'], fusion=fusion,
            long_memory_pos_embed=c['long_use_pe'],
            work_memory_pos_embed=c['work_use_pe'], act=c['activation']),
        cls_head=dict(
            type='OnlineActionHead', num_classes=c['num_classes'],
            in_channels=c['d_model'], cosine=c['fc_norm'], score='logit',
            **(dict(num_verbs=98, num_nouns=301) if c['verb_noun'] else {}))))
    source = 'lstr' if request.param == 'lstr' else 'testra'
    model.load_state_dict(convert(source, G['state_dict']), strict=True)
    return G, model.eval()


def _inputs(x):
    mask = x['memory_key_padding_mask']
    return dict(rgb=x['visual_inputs'], flow=x['motion_inputs'],
                padding_mask=mask == -torch.inf)


def _difference(a, b):
    return (a - b).norm() / b.norm()


def test_outputs(case):
    G, model = case
    with torch.no_grad():
        out = model(_inputs(G['inputs']))
    assert out.keys() == G['outputs'].keys()
    for name, want in G['outputs'].items():
        assert _difference(out[name], want) < 1e-5


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
        assert _difference(got[name], want.transpose(0, 1)) < 1e-5


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
        assert _difference(out[name], want) < 1e-5


def test_windows_of_a_stream_densely(case):
    G, model = case
    video, long, work, mask = _stream(G)
    features = dense_features(model.backbone, video, long, work, mask)
    with torch.no_grad():
        out = model.cls_head(features)
    for name, want in G['stream']['windowed'].items():
        want = want[:, work.shape[1] - 1:]
        assert _difference(out[name], want) < 1e-5


def _follow(model, G, op, begin):
    """Scores of each step, the long memory taken one sample at a time.

    Each phase of its sampling has a state, which begins with the first frame.
    """
    head, model = model.cls_head, model.backbone
    video, long, work, _ = _stream(G)
    rate, decay = G['config']['long_rate'], model.encoder.decay
    stage, rest = model.encoder.stages
    block, = stage.blocks
    x = model.encoder.queries[0][None]
    x = block.attend_self(x, block.project(x))
    attention = block.memory_attn
    q = attention.queries(x)
    k, v = attention.keys_values(model.long_projection(video))
    phases = [op(q, k[:1], v[:1], begin(q, v.shape[-1]), decay=decay)] * rate
    steps = []
    for step in range(len(long)):
        # The first frame is in the first phase's state already.
        if step > rate:
            new = slice(step - rate, step - rate + 1)
            phases[step % rate] = op(q, k[new], v[new],
                                     phases[step % rate][1], decay=decay)
        # Of all phases, but not all of their steps.
        if step % 5:
            continue
        y = attention.proj(phases[step % rate][0].flatten(-2))
        z = stage.norm(block.feed_forward(block.memory_norm(x + y)))
        z = rest(model.encoder.queries[1][None], rest.keys_values(z))
        tokens = model.work_tokens(model.work_projection({
            name: f[None, work[step]] for name, f in video.items()
        }))
        steps.append(head(model.decoder(tokens, z)))
    return {name: torch.cat([step[name] for step in steps])
            for name in steps[0]}


@pytest.mark.parametrize('kind', ['exact', 'windowed'])
def test_stream_ops_follow_the_stream(case, kind):
    G, model = case
    if kind not in G['stream'] or G['config']['long_use_pe']:
        pytest.skip('with positions there is no such stream')
    length = G['config']['long_n']
    op, begin = dict(
        exact=(exponential_smoothing, smoothing_state),
        windowed=(window_smoothing,
                  lambda q, width: window_state(q, width, length)))[kind]
    with torch.no_grad():
        out = _follow(model, G, op, begin)
    for name, want in G['stream'][kind].items():
        assert _difference(out[name], want[::5]) < 1e-5
