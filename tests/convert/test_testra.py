# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import pytest
import torch
from mmaction.registry import MODELS

from mmvidattn.apis import load_config
from mmvidattn.convert import convert
from mmvidattn.utils.checkpoint import load_state_dict_file

# Config and number of parameters of each released model.
RELEASED = dict(
    thumos_testra_decay=('testra_thumos14', 58_882_070),
    thumos_testra_box=('testra_box_thumos14', 58_882_070),
    thumos_testra_lite=('testra_lite_thumos14', 58_882_070),
    thumos_testra_decay_anti=('testra_anticipation_thumos14', 58_890_262),
    thumos_lstr=('lstr_thumos14', 58_882_070),
    tvseries_lstr=('lstr_tvseries', 58_891_295),
    ek100_testra_decay=('testra_ek100', 226_971_758),
    ek100_testra_box=('testra_box_ek100', 226_971_758))


def _model(name):
    with torch.device('meta'):
        return MODELS.build(load_config(name).model)


@pytest.mark.parametrize('released', RELEASED)
def test_has_as_many_parameters_as_the_released_model(released):
    name, params = RELEASED[released]
    assert sum(p.numel() for p in _model(name).parameters()) == params


def test_splits_packed_projections():
    weight, bias = torch.arange(24.).view(12, 2), torch.arange(12.)
    out = convert('testra', {
        'dec_modules.layers.1.self_attn.in_proj_weight': weight,
        'dec_modules.layers.1.self_attn.in_proj_bias': bias
    })
    where = 'backbone.decoder.transformer.blocks.1.self_attn'
    assert list(out) == [f'{where}.q.weight', f'{where}.kv.weight',
                         f'{where}.q.bias', f'{where}.kv.bias']
    assert torch.equal(out[f'{where}.q.weight'], weight[:4])
    assert torch.equal(out[f'{where}.kv.weight'], weight[4:])
    assert torch.equal(out[f'{where}.kv.bias'], bias[4:])


def test_second_norm_is_the_last_one_without_memory():
    zero = torch.zeros(1)
    layer, block = 'dec_modules.layers.0', (
        'backbone.decoder.transformer.blocks.0')
    norms = {f'{layer}.norm{i}.bias': zero for i in (1, 2, 3)}
    assert list(convert('testra', norms)) == [
        f'{block}.{name}_norm.bias' for name in ('self', 'memory', 'ffn')]
    norms.pop(f'{layer}.norm3.bias')
    assert list(convert('testra', norms)) == [
        f'{block}.{name}_norm.bias' for name in ('self', 'ffn')]


def test_leaves_out_sinusoids():
    assert convert('testra', {'pos_encoding.pe': torch.zeros(1)}) == {}


def test_reads_the_released_files(tmp_path):
    path = tmp_path / 'epoch-25.pth'
    torch.save(dict(epoch=25, model_state_dict=dict(x=torch.ones(2)),
                    optimizer_state_dict=dict(state={}, param_groups=[])),
               path)
    assert torch.equal(load_state_dict_file(path)['x'], torch.ones(2))
