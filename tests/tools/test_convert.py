# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import hashlib
import json

import pytest
import torch
from safetensors.torch import save_file

from mmvidattn.apis import get_model, load_config
from mmvidattn.apis.models import (
    MODEL_OPTIONS,
    check_model_options,
    model_options,
)
from mmvidattn.convert import SOURCES

VIT = {
    'patch_embed.proj.weight': torch.ones(4, 3, 2, 2),
    'patch_embed.proj.bias': torch.zeros(4),
    'blocks.0.norm2.bias': torch.zeros(4),
}
NAMES = {'backbone.patch_embed.projection.weight',
         'backbone.patch_embed.projection.bias',
         'backbone.blocks.0.mlp_norm.bias'}


def test_converts_a_file(run_main, capsys, tmp_path, monkeypatch):
    torch.save(dict(epoch=3, model={f'module.{k}': v for k, v in VIT.items()}),
               tmp_path / 'src.pth')
    monkeypatch.chdir(tmp_path)
    run_main('convert.py', 'vit_timm', 'src.pth', 'new/dst.pth')
    dst = tmp_path / 'new/dst.pth'
    digest = {p: hashlib.sha256(p.read_bytes()).hexdigest()
              for p in (dst, tmp_path / 'src.pth')}
    assert capsys.readouterr().out == (
        f'new/dst.pth: 3 tensors, 56 parameters, sha256 {digest[dst]}\n')
    written = torch.load(dst, weights_only=True)
    assert set(written['state_dict']) == NAMES
    assert written['meta']['source'] == 'vit_timm'
    assert written['meta']['source_sha256'] == digest[tmp_path / 'src.pth']
    assert [p.name for p in dst.parent.iterdir()] == ['dst.pth']


def test_reads_a_model_of_the_hub(run_main, tmp_path, monkeypatch):
    save_file(VIT, tmp_path / 'src.safetensors')
    asked = []
    monkeypatch.setattr(
        'mmvidattn.utils.remote_files.hub_file',
        lambda name: asked.append(name) or tmp_path / 'src.safetensors')
    name = f'hf://owner/model@{"0" * 40}'
    run_main('convert.py', 'vit_timm', name, tmp_path / 'dst.pth')
    assert asked == [name]
    meta = torch.load(tmp_path / 'dst.pth', weights_only=True)['meta']
    assert meta['source_file'] == name
    assert meta['source_sha256'] == hashlib.sha256(
        (tmp_path / 'src.safetensors').read_bytes()).hexdigest()


def test_keeps_the_old_file_when_writing_fails(run_main, tmp_path,
                                               monkeypatch):
    src, dst = tmp_path / 'src.pth', tmp_path / 'dst.pth'
    torch.save(VIT, src)
    dst.write_text('mine')

    def save(obj, path):
        path.write_text('half')
        raise OSError('the disk is full')

    monkeypatch.setattr(torch, 'save', save)
    with pytest.raises(SystemExit, match='the disk is full'):
        run_main('convert.py', 'vit_timm', src, dst, '--force')
    assert dst.read_text() == 'mine'
    assert sorted(p.name for p in tmp_path.iterdir()) == ['dst.pth', 'src.pth']


def test_config_with_other_options_rejects_the_checkpoint(
        run_main, small_config, small_checkpoint, tmp_path, monkeypatch):
    monkeypatch.setitem(SOURCES, 'same', dict)
    converted = tmp_path / 'dst.pth'
    run_main('convert.py', 'same', small_checkpoint, converted, '--config',
             small_config)
    get_model(small_config, converted)
    # Options that do not change the result, or equal their default.
    get_model(small_config, converted, cfg_options={
        'model.backbone.drop_path_rate': 0.2,
        'model.backbone.shift_placement': 'both'})
    expected = ("different options.*: shift_placement is 'both' there "
                "and 'complementary' here. It was converted for .*small.py")
    with pytest.raises(ValueError, match=expected):
        get_model(small_config, converted, cfg_options={
            'model.backbone.shift_placement': 'complementary'})
    with pytest.raises(SystemExit, match=expected):
        run_main('test.py', small_config, converted, '--work-dir', tmp_path,
                 '--cfg-options',
                 'model.backbone.shift_placement=complementary')


@pytest.mark.parametrize('name, other, new', [
    ('laps_visformer_b_v1_k400', 'laps_visformer_b_k400', None),
    ('laps_visformer_h_k400', 'laps_visformer_l_v1_k400', None),
    ('testra_thumos14', 'testra_box_thumos14', None),
    # Before there was this option, its default was used.
    ('dualformer_tiny_k400', 'dualformer_paper_tiny_k400', 'patch_merging')])
def test_released_variants_are_distinguished(name, other, new):
    options = model_options(load_config(name).model)
    assert new is None or options.pop(new) == 'conv'
    meta = {MODEL_OPTIONS: options}
    check_model_options(load_config(name).model, meta, 'x.pth')
    with pytest.raises(ValueError, match='different options'):
        check_model_options(load_config(other).model, meta, 'x.pth')
    # The metadata has plain types only.
    assert json.loads(json.dumps(meta)) == meta
