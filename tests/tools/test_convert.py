# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import hashlib
import json
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from mmvidattn.apis import get_model, load_config, models
from mmvidattn.convert import SOURCES

VIT = {
    'patch_embed.proj.weight': torch.ones(4, 3, 2, 2),
    'patch_embed.proj.bias': torch.zeros(4),
    'blocks.0.norm2.bias': torch.zeros(4),
}
NAMES = {'backbone.patch_embed.projection.weight',
         'backbone.patch_embed.projection.bias',
         'backbone.blocks.0.mlp_norm.bias'}


@pytest.mark.parametrize('name', ['src.pth', f'hf://owner/model@{"0" * 40}'])
def test_converts_a_file_or_a_model_of_the_hub(
        run_main, capsys, monkeypatch, name):
    source = Path('src.pth' if name == 'src.pth' else 'src.safetensors')
    if name == 'src.pth':
        torch.save(dict(epoch=3, model={
            f'module.{k}': v for k, v in VIT.items()}), source)
    else:
        save_file(VIT, source)
        monkeypatch.setattr('mmvidattn.utils.remote_files.hub_file',
                            dict({name: source}).__getitem__)
    run_main('convert.py', 'vit_timm', name, 'new/dst.pth')
    dst = Path('new/dst.pth')
    digests = [hashlib.sha256(path.read_bytes()).hexdigest()
               for path in (dst, source)]
    assert capsys.readouterr().out == (
        f'new/dst.pth: 3 tensors, 56 parameters, sha256 {digests[0]}\n')
    written = torch.load(dst, weights_only=True)
    assert set(written['state_dict']) == NAMES
    meta = written['meta']
    assert (meta['source'], meta['source_file'], meta['source_sha256']) == (
        'vit_timm', name, digests[1])
    assert [path.name for path in dst.parent.iterdir()] == ['dst.pth']


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
    ('laps_visformer_h_k400', 'laps_visformer_l_v1_k400', None),
    ('testra_thumos14', 'testra_box_thumos14', None),
    # Before there was this option, its default was used.
    ('dualformer_tiny_k400', 'dualformer_paper_tiny_k400', 'patch_merging')])
def test_released_variants_are_distinguished(name, other, new):
    options = models.model_options(load_config(name).model)
    assert new is None or options.pop(new) == 'conv'
    meta = {models.MODEL_OPTIONS: options}
    models.check_model_options(load_config(name).model, meta, 'x.pth')
    with pytest.raises(ValueError, match='different options'):
        models.check_model_options(load_config(other).model, meta, 'x.pth')
    # The metadata has plain types only.
    assert json.loads(json.dumps(meta)) == meta
