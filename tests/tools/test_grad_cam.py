# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import cv2
import pytest
import torch

import mmvidattn
from tools.analysis import grad_cam as tool

TOOL = 'analysis/grad_cam.py'


@pytest.fixture(scope='module')
def video(motion_dir):
    line = (motion_dir / 'val.txt').read_text().splitlines()[0]
    return motion_dir / line.rsplit(' ', 1)[0]


CLIP = torch.empty(2, 3, 4, 48, 64)


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
    got = tool.as_volume(x, CLIP)
    assert torch.equal(got, volume.movedim(-1, 1))


def test_draws_a_row_for_each_model(run_main, video, tmp_path, capsys):
    out = tmp_path / 'cam.png'
    run_main(TOOL, video, '--model', 'linear_ff_tiny_motion:default',
             '--model', 'dualformer_tiny_motion', '--label', 3, '--out', out,
             '--device', 'cpu')
    assert cv2.imread(str(out)).std() > 5
    lines = capsys.readouterr().out.splitlines()[-2:]
    assert lines[0].startswith('linear_ff_tiny_motion, default: ')
    assert lines[1].startswith('dualformer_tiny_motion: class 3 ')


def test_heat_is_that_of_the_formula(video):
    """Channels weighted by their mean gradient, positive parts, 0 to 1."""
    torch.manual_seed(0)
    model = mmvidattn.get_model('dualformer_tiny_motion')
    layer = tool.find_layer(model, None)
    clip = torch.randn(1, 1, 3, 8, 64, 64)
    heat, index, score = tool.grad_cam(model, layer, clip, '2', [])
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
