# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import json
import math
from pathlib import Path

import cv2
import numpy as np
import pytest
import torch

import mmvidattn
from mmvidattn.apis import predict_video
from mmvidattn.commands.attention_map import patch_extent

ROOT = Path(__file__).resolve().parents[2]
TOOL = 'attention-map'
NAMES = ['linear', 'separate', 'cooperative', 'softmax']


@pytest.fixture(scope='module')
def video(motion_dir):
    return motion_dir / 'val/000000.mp4'


def _read(folder):
    return json.loads((folder / 'attention.json').read_text())


def _input_of(model, module, video):
    """Return the input of a module for the first view of a video."""
    model.cfg.test_dataloader.dataset.pipeline = model.cfg.val_pipeline
    seen = []
    module.register_forward_pre_hook(lambda _, args: seen.append(args[0]))
    predict_video(model, video)
    return seen[0][:1]


def test_draws_the_four_models(run_main, capsys, video, small_config,
                               tmp_path):
    run_main(TOOL, video, '--base', small_config, '--out', tmp_path / 'maps',
             '--device', 'cpu', '--tokens', '2,1,3', '7,0,0')
    printed = capsys.readouterr().out
    result = _read(tmp_path / 'maps')
    assert result['files'] == [
        'matrices.png', 'overlay_2_1_3.png', 'overlay_7_0_0.png'
    ]
    for name in result['files']:
        assert cv2.imread(str(tmp_path / 'maps' / name)).std() > 5
    models = result['models']
    assert [m['name'] for m in models] == NAMES
    assert [m['attention'] for m in models] == 3 * ['LinearAttention'] + [
        'SoftmaxAttention']
    assert [m['fixation'] for m in models] == [
        None, 'separate', 'cooperative', None]
    T, H, W = models[0]['grid_shape']
    for model in models:
        matrix = model['matrix']
        # The frame of the first token.
        assert matrix['sequence'] == 2
        assert matrix['rows'] == matrix['keys'] == H * W
        assert 0 < matrix['entropy_nats'] <= math.log(H * W) + 1e-5
        assert matrix['entropy_normalised'] == pytest.approx(
            matrix['entropy_nats'] / math.log(H * W), rel=1e-5)
        assert len(matrix['entropy_nats_of_heads']) == 6
        # Averaging heads can only spread their attention out.
        assert matrix['entropy_nats'] >= sum(
            matrix['entropy_nats_of_heads']) / 6
        assert (f'{model["name"]}, layer 1, random weights: entropy '
                f'{matrix["entropy_nats"]:.3f} nats') in printed
        for of_token, t in zip(model['tokens'], (2, 7)):
            keys = of_token['top_keys']
            assert [key['token'][0] for key in keys] == 5 * [t]
            weights = [key['weight'] for key in keys]
            assert weights == sorted(weights, reverse=True)
            assert weights[0] > 1 / (H * W)


def test_figures_match_the_matrix_of_the_last_layer(
        run_main, video, small_config, small_checkpoint, tmp_path):
    """The checkpoint's model, computed through its own layers."""
    run_main(TOOL, video, '--config', f'{small_config}:{small_checkpoint}',
             '--out', tmp_path, '--device', 'cpu', '--head', 3, '--pattern',
             'time', '--tokens', '5,2,1')
    figures, = _read(tmp_path)['models']
    model = mmvidattn.get_model(small_config, small_checkpoint)
    module = model.backbone.blocks[0].temporal_attn
    x = _input_of(model, module, video)
    with torch.no_grad():
        q, k, v = module.qkv(x).chunk(3, -1)
        k, v = module.shifts(k), module.shifts(v)
        q, k, v = (x[0, :, 2, 1].unflatten(-1, (6, -1)) for x in (q, k, v))
        q, k = (x.relu() + q.shape[-1]**-0.5 for x in (q, k))
        ratio = torch.sigmoid(module.fixation.gate(torch.cat((q, k, v), -1)))
        scores = (q * ratio)[:, 3] @ (k * ratio)[:, 3].T
        matrix = scores / scores.sum(-1, keepdim=True)
    entropy = -(matrix * matrix.log()).sum(-1)
    assert figures['checkpoint'] == str(small_checkpoint)
    assert figures['matrix']['entropy_nats'] == pytest.approx(
        entropy.mean().item(), rel=1e-4)
    of_token, = figures['tokens']
    best = matrix[5].topk(5)
    assert [key['token'] for key in of_token['top_keys']] == [
        [t, 2, 1] for t in best.indices.tolist()]
    assert [key['weight'] for key in of_token['top_keys']
            ] == pytest.approx(best.values.tolist(), rel=1e-4)


@pytest.mark.parametrize('name, side, extent', [
    ('linear_ff_ssv2', 224, (-7, 231)),
    ('linear_ff_paper_ssv2', 224, (0, 224)),
    ('linear_ff_tiny_motion', 64, (-2, 58)),
])
def test_patches_lie_where_the_convolution_looks(name, side, extent):
    model = mmvidattn.get_model(
        name, cfg_options={'model.backbone.num_layers': 1})
    frames = np.zeros((1, side, side, 3))
    assert patch_extent(model, frames) == 2 * extent


@pytest.mark.parametrize('pattern, keys', [('joint', 8 * 36),
                                           ('window', 3 * 36)])
def test_draws_some_rows_of_other_patterns(run_main, video, small_config,
                                           tmp_path, pattern, keys):
    frames = 3 if pattern == 'window' else None
    backbone = 'windowed' if pattern == 'window' else pattern
    run_main(TOOL, video, '--base', small_config, '--variants', 'softmax',
             '--out', tmp_path, '--device', 'cpu', '--pattern', pattern,
             '--max-rows', 10, '--cfg-options',
             f'model.backbone.pattern={backbone}',
             f'model.backbone.window_frames={frames}')
    figures, = _read(tmp_path)['models']
    T, H, W = figures['grid_shape']
    assert figures['matrix']['rows'] == 10
    assert figures['matrix']['keys'] == keys // 36 * H * W
    assert figures['tokens'][0]['token'] == [T // 2, H // 2, W // 2]


def test_class_tokens_are_not_patches(run_main, video, small_config, tmp_path):
    config = tmp_path / 'xvit.py'
    config.write_text(f'''
_base_ = ['{small_config}']
model = dict(
    backbone=dict(
        _delete_=True, type='XViT', num_frames=8, img_size=64, embed_dims=96,
        num_layers=1, num_heads=6),
    cls_head=dict(type='XViTHead', _delete_=True, num_classes=8,
                  in_channels=96, num_heads=6))
''')
    run_main(TOOL, video, '--config', config, '--out', tmp_path / 'maps',
             '--device', 'cpu', '--tokens', '1,3,2')
    figures, = _read(tmp_path / 'maps')['models']
    assert figures['grid_shape'] == [8, 4, 4]
    assert figures['matrix']['keys'] == 17
    torch.manual_seed(0)
    model = mmvidattn.get_model(config)
    module = model.backbone.blocks[0].attn
    with torch.no_grad():
        q, k, v = module.qkv(_input_of(model, module, video)).chunk(3, -1)
        q, k = (x[0, 1, :, 0].unflatten(-1, (6, 16)).transpose(0, 1)
                for x in (q, module.shifts(k)))
        matrix = (q @ k.mT / 4).softmax(-1).mean(0)
    # The class token comes first, as query and as key.
    best = matrix[1 + 3 * 4 + 2, 1:].topk(5)
    keys = figures['tokens'][0]['top_keys']
    assert [key['token'] for key in keys] == [
        [1, i // 4, i % 4] for i in best.indices.tolist()]
    assert [key['weight'] for key in keys] == pytest.approx(
        best.values.tolist(), rel=1e-5)


@pytest.mark.parametrize('options, error', [
    (['--layer', 2], '--layer must be from 1 to 1, got 2'),
    (['--pattern', 'joint'], r'--pattern .*\(space, time\), got joint'),
    (['--head', 6], "--head must be 'mean' or from 0 to 5, got '6'"),
    (['--head', 'all'], "got 'all'"),
    (['--tokens', '8,0,0'], r'--tokens .*\(8, .*got \(8, 0, 0\)'),
    (['--variants', 'cubic'], "--variants must be in linear, .* got 'cubic'"),
    (['--config', 'linear_ff_none'], "no model 'linear_ff_none'"),
], ids=lambda x: x[0][2:] if isinstance(x, list) else '')
def test_error_names_the_fault(
        run_main, video, small_config, tmp_path, options, error):
    with pytest.raises(SystemExit,
                       match=f'^mmvidattn attention-map: error: .*{error}'):
        run_main(TOOL, video, '--base', small_config, '--out', tmp_path,
                 '--device', 'cpu', *options)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize('name, error', [('none.mp4', 'video .*none.mp4'),
                                         ('text.mp4', 'cannot read ')])
def test_names_a_bad_video(run_main, small_config, tmp_path, name, error):
    (tmp_path / 'text.mp4').write_text('no video')
    with pytest.raises(SystemExit, match=error):
        run_main(TOOL, tmp_path / name, '--base', small_config, '--device',
                 'cpu')
