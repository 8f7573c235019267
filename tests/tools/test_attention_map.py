# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""tools/analysis/attention_map.py"""

import cv2
import pytest
import torch
from torch import nn

from mmvidattn.layers import BaseAttention, VideoSelfAttention
from tools.analysis import attention_map as tool

TOOL = 'analysis/attention_map.py'
TINY = 'linear_ff_tiny_motion'
GRID = (4, 3, 5)
ATTENTIONS = [x for x in BaseAttention.__subclasses__()
              if x.__module__.startswith('mmvidattn.')]
# They multiply their result by a gate, or keep a state instead of rows.
WITHOUT_ROWS = 'GatedDeltaAttention', 'PolaFormerAttention', 'RALAAttention'


class Model(nn.Module):

    def __init__(self, **kwargs):
        super().__init__()
        torch.manual_seed(0)
        self.attn = VideoSelfAttention(12, 3, grid_shape=GRID, **kwargs)

    def forward(self, x, mode, stage):
        return self.attn(x)


def captured(attention, num_queries=7, num_keys=23):
    torch.manual_seed(0)
    q, k, v = (torch.randn(2, n, 3, 4, dtype=torch.float64)
               for n in (num_queries, num_keys, num_keys))
    module = nn.Module()
    module.attention = attention
    takes_shapes = getattr(attention, 'takes_shapes', False)
    return tool.Captured(module, GRID, GRID[1:], (q, k, v),
                         ((3, 5), (3, 5)) if takes_shapes else ())


@pytest.mark.parametrize('attention', ATTENTIONS,
                         ids=lambda attention: attention.__name__)
def test_rows_match_probing_with_single_keys(attention):
    """If only one key has a value, the output is the weight of that key."""
    attention = attention(4, 3, (3, 5)).double().eval()
    forward = attention.forward

    def seeded(*args):
        torch.manual_seed(1)
        return forward(*args)

    attention.forward = seeded
    given = captured(attention, 15, 15)
    q, k, v = given.inputs
    q, k = attention.feature_map(q), attention.key_map(k, (1, ))
    given = given._replace(inputs=(q, k, v))
    if type(attention).__name__ in WITHOUT_ROWS:
        with pytest.raises(ValueError, match='not compute an attention mat'):
            tool.attention_rows(given, 1, torch.tensor([3, 14]))
        return
    rows = tool.attention_rows(given, 1, torch.tensor([3, 14]))
    want = []
    for j in range(15):
        one = torch.zeros_like(v[1:])
        one[:, j] = 1
        with torch.no_grad():
            want.append(attention(q[1:], k[1:], one, *given.shapes)
                        [0, [3, 14], :, 0])
    assert torch.allclose(rows, torch.stack(want, -1), atol=1e-10)


@pytest.mark.parametrize('token', [(0, 0, 0), (2, 1, 4)])
@pytest.mark.parametrize('pattern, window', [('time', None), ('space', None),
                                             ('joint', None), ('window', 3)])
@pytest.mark.parametrize('kind', ['linear', 'softmax'])
def test_rows_match_the_definition(kind, pattern, window, token):
    """Softmax or normalized products of the projections, at the keys."""
    options = dict(
        linear=dict(attention=dict(type='LinearAttention', offset='auto'),
                    fixation={}),
        softmax=dict(attention=dict(type='SoftmaxAttention')))[kind]
    model = Model(pattern=pattern, window_frames=window,
                  shifts=[dict(mode='tsm', divisor=4)], **options).double()
    x = torch.randn(2, *GRID, 12, dtype=torch.float64)
    given = tool.capture(model, model.attn, x)
    sequence, query = tool.locate(given, token)
    row, = tool.attention_rows(given, sequence, torch.tensor([query]))
    keys = torch.zeros(GRID, dtype=torch.bool)
    first = min(max(token[0] - 1, 0), GRID[0] - 3)
    keys[dict(time=(slice(None), *token[1:]), space=token[:1], joint=...,
              window=slice(first, first + 3))[pattern]] = True
    with torch.no_grad():
        q, k, v = (y.unflatten(-1, (3, 4))
                   for y in model.attn.qkv(x[:1]).chunk(3, -1))
        k, v = (model.attn.shifts(y.flatten(-2)).unflatten(-1, (3, 4))
                for y in (k, v))
        if kind == 'linear':
            q, k = (y.relu() + 4**-0.5 for y in (q, k))
            q, k = model.attn.fixation(q, k, v)
        scores = torch.einsum('gd,mgd->gm', q[0][token], k[0][keys])
        want = scores / (scores.sum(-1, keepdim=True) + 1e-6) if (
            kind == 'linear') else (scores / 2).softmax(-1)
    for head in range(3):
        volume = tool.volume(given, sequence, row[head])
        assert torch.allclose(volume[keys], want[head], atol=1e-12)
        assert volume[~keys].isnan().all()


def test_class_tokens_are_not_patches():
    """They come first in a column of tokens."""
    module = nn.Module()
    module.pattern = 'space'
    given = tool.Captured(module, (2, 17, 1), (4, 4), (), ())
    assert tool.locate(given, (1, 3, 2)) == (1, 1 + 3 * 4 + 2)
    volume = tool.volume(given, 1, torch.arange(17.))
    assert volume.shape == (2, 4, 4) and volume[0].isnan().all()
    assert volume[1].flatten().tolist() == [*range(1, 17)]


def test_draws_a_row_for_each_model(run_main, capsys, motion_dir, tmp_path):
    out = tmp_path / 'map.png'
    run_main(TOOL, motion_dir / 'val/000000.mp4', '--model',
             'linear_ff_tiny_motion:default', '--model', 'vivit_tiny_motion',
             '--device', 'cpu', '--out', out)
    assert cv2.imread(str(out)).std() > 5
    lines = capsys.readouterr().out.splitlines()[-2:]
    assert [line.split(':')[0] for line in lines] == [
        'linear_ff_tiny_motion, default', 'vivit_tiny_motion']
    assert all('nats' in line for line in lines)


@pytest.mark.parametrize('name, options, error', [
    ('attention_map', ['--layer', 'head'], '--layer must be a VideoSelf'),
    ('attention_map', ['--token', 8, 0, 0], r'--token .*got \(8, 0, 0\)'),
    ('attention_map', ['--out', 'map.jpg'], '--out must be a .png'),
    ('grad_cam', ['--layer', 'blocks.9'], '--layer .*got blocks.9'),
    ('grad_cam', ['--label', 8], "--label must be .*below 8, got '8'"),
    ('grad_cam', ['--model', 'x_none'], "no model 'x_none'"),
    ('frame_scores', [], 'head .*got LinearVideo')],
    ids=str)
def test_tools_name_the_fault(run_main, motion_dir, tmp_path, name, options,
                              error):
    with pytest.raises(SystemExit, match=f'^{name}.py: error: .*{error}'):
        run_main(f'analysis/{name}.py', motion_dir / 'val/000000.mp4',
                 '--model', TINY, '--device', 'cpu', '--out',
                 tmp_path / 'out.png', *options)
    assert not list(tmp_path.iterdir())
