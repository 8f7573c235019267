# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Pictures of tools/analysis, and the numbers in them."""

import cv2
import numpy as np
import pytest
import torch
from torch import nn

import mmvidattn
from mmvidattn.layers import VideoSelfAttention
from tools.analysis import attention_map, grad_cam

TINY = 'linear_ff_tiny_motion'
GRID = (4, 3, 5)


@pytest.mark.parametrize('token', [(0, 0, 0), (2, 1, 4)])
@pytest.mark.parametrize('pattern, window', [('time', None), ('space', None),
                                             ('joint', None), ('window', 3)])
def test_rows_match_the_definition(pattern, window, token):
    """Normalized products of the projections, at the keys."""
    torch.manual_seed(0)
    layer = VideoSelfAttention(
        12, 3, grid_shape=GRID, pattern=pattern, window_frames=window,
        shifts=[dict(mode='tsm', divisor=4)], fixation={},
        attention=dict(type='LinearAttention', offset='auto')).double()
    x = torch.randn(2, *GRID, 12, dtype=torch.float64)
    given = attention_map.capture(
        lambda clip, mode, stage: layer(clip), layer, x)
    sequence, query = attention_map.locate(given, token)
    row, = attention_map.attention_rows(given, sequence, torch.tensor([query]))
    keys = torch.zeros(GRID, dtype=torch.bool)
    first = min(max(token[0] - 1, 0), GRID[0] - 3)
    keys[dict(time=(slice(None), *token[1:]), space=token[:1], joint=...,
              window=slice(first, first + 3))[pattern]] = True
    with torch.no_grad():
        q, k, v = (y.unflatten(-1, (3, 4))
                   for y in layer.qkv(x[:1]).chunk(3, -1))
        k, v = (layer.shifts(y.flatten(-2)).unflatten(-1, (3, 4))
                for y in (k, v))
        q, k = (y.relu() + 4**-0.5 for y in (q, k))
        q, k = layer.fixation(q, k, v)
        scores = torch.einsum('gd,mgd->gm', q[0][token], k[0][keys])
        want = scores / (scores.sum(-1, keepdim=True) + 1e-6)
    for head in range(3):
        volume = attention_map.volume(given, sequence, row[head])
        assert torch.allclose(volume[keys], want[head], atol=1e-12)
        assert volume[~keys].isnan().all()


@pytest.mark.parametrize('extra', [0, 1, 2], ids='{} class tokens'.format)
@pytest.mark.parametrize('kind', ['grid', 'columns', 'joint', 'frames',
                                  'maps'])
def test_tokens_are_arranged_as_a_volume(kind, extra):
    volume = torch.arange(2 * 4 * 3 * 4.).view(2, 4, 3, 4, 1).expand(
        -1, -1, -1, -1, 5)
    if kind == 'grid':
        x = volume
    elif kind == 'maps':
        x = volume.flatten(0, 1).permute(0, 3, 1, 2)
    else:
        x = volume.flatten(1, 3) if kind == 'joint' else volume.flatten(2, 3)
        x = torch.cat([torch.full_like(x[..., :extra, :], -1), x], dim=-2)
        if kind == 'columns':
            x = x.unsqueeze(3)
        elif kind == 'frames':
            x = x.flatten(0, 1)
    got = grad_cam.as_volume(x, torch.empty(2, 3, 4, 48, 64))
    assert torch.equal(got, volume.movedim(-1, 1))


def test_heat_is_that_of_the_formula():
    """Channels weighted by their mean gradient, positive parts, 0 to 1."""
    torch.manual_seed(0)
    model = mmvidattn.get_model('dualformer_tiny_motion')
    layer = grad_cam.find_layer(model, None)
    clip = torch.randn(1, 1, 3, 8, 64, 64)
    heat, index, score = grad_cam.grad_cam(model, layer, clip, '2', [])
    logits = model(clip, mode='tensor', stage='head')[0]
    assert index == 2 and score == pytest.approx(logits.softmax(0)[2].item())
    seen = []
    layer.register_forward_hook(lambda m, args, out: seen.append(out))
    score = model(clip, mode='tensor', stage='head')[0, 2]
    grad, = torch.autograd.grad(score, seen[0])
    coarse = (grad.mean((1, 2, 3)) * seen[0]).sum(-1).relu()[0]
    assert heat.shape == (8, 64, 64)
    assert 0 <= heat.min() and heat.max() == pytest.approx(1, abs=1e-3)
    hot = [int(i) for i in (coarse == coarse.max()).nonzero()[0]]
    sizes = [n // m for n, m in zip(heat.shape, coarse.shape)]
    cells = heat.unflatten(2, (-1, sizes[2])).unflatten(
        1, (-1, sizes[1])).unflatten(0, (-1, sizes[0])).mean((1, 3, 5))
    assert [int(i) for i in (cells == cells.max()).nonzero()[0]] == hot


@pytest.fixture
def draw(run_main, video, tmp_path, capsys):
    """Run a tool, check its picture, and return its two last lines."""
    def run(name, *options):
        out = tmp_path / 'out.png'
        run_main(f'analysis/{name}.py', video, '--device', 'cpu', '--out', out,
                 *options)
        assert cv2.imread(str(out)).std() > 5
        return capsys.readouterr().out.splitlines()[-2:]

    return run


@pytest.mark.parametrize('name, options, starts', [
    ('attention_map', ['--model', f'{TINY}:default', '--model',
                       'vivit_tiny_motion'],
     [f'{TINY}, default: ', 'vivit_tiny_motion: ']),
    ('grad_cam', ['--model', f'{TINY}:default', '--model',
                  'dualformer_tiny_motion', '--label', 3],
     [f'{TINY}, default: ', 'dualformer_tiny_motion: class 3 '])],
    ids=['attention_map', 'grad_cam'])
def test_draws_a_row_for_each_model(draw, name, options, starts):
    for line, start in zip(draw(name, *options), starts, strict=True):
        assert line.startswith(start)
        assert name == 'grad_cam' or 'nats' in line


def test_draws_the_scores_of_frames(draw, video, tmp_path):
    config, checkpoint = 'laps_tiny_motion', tmp_path / 'laps.pth'
    torch.manual_seed(0)
    model = mmvidattn.get_model(config)
    nn.init.normal_(model.cls_head.fc_cls.weight, std=3.)
    torch.save(dict(state_dict=model.state_dict()), checkpoint)
    lines = draw('frame_scores', '--model', config, '--model',
                 f'{config}:{checkpoint}')
    assert lines[0].startswith('laps_tiny_motion: ')
    for line in lines:
        scores = [float(x) for x in line.split('frames ')[1].split()]
        assert len(scores) == 8 and 0 <= min(scores) <= max(scores) <= 1
    # The score of the clip is its prediction, and frames differ.
    model.cfg.test_dataloader.dataset.pipeline = model.cfg.val_pipeline
    best = mmvidattn.VideoClassifier(model)(video).predictions[0]
    assert lines[1].startswith(
        f'laps_tiny_motion, laps: {best.label} {best.score:.3f}; frames ')
    assert np.std(scores) > 0


@pytest.mark.parametrize('name, options, error', [
    ('attention_map', ['--layer', 'head'], '--layer must be a VideoSelf'),
    ('attention_map', ['--token', 8, 0, 0], r'--token .*got \(8, 0, 0\)'),
    # It multiplies its result by a gate.
    ('attention_map', ['--model', 'linear_ff_motion_rala'],
     'RALAAttention does not compute an attention matrix'),
    ('grad_cam', ['--layer', 'blocks.9'], '--layer .*got blocks.9'),
    ('grad_cam', ['--label', 8], "--label must be .*below 8, got '8'"),
    ('frame_scores', [], 'head .*got LinearVideo')],
    ids=str)
def test_tools_name_the_fault(draw, tmp_path, name, options, error):
    with pytest.raises(SystemExit, match=f'^{name}.py: error: .*{error}'):
        draw(name, '--model', TINY, *options)
    assert not list(tmp_path.iterdir())
