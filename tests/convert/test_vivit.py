# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import runpy
import sys
from pathlib import Path

import pytest
import torch

from mmvidattn.convert import convert
from mmvidattn.utils.checkpoint import load_state_dict_file

ROOT = Path(__file__).resolve().parents[2]


def _scenic_block(prefix, attentions):
    tree = {}
    for attention in attentions:
        for part in 'query', 'key', 'value':
            tree[f'{prefix}/{attention}/{part}/kernel'] = torch.randn(4, 2, 2)
            tree[f'{prefix}/{attention}/{part}/bias'] = torch.randn(2, 2)
        tree[f'{prefix}/{attention}/out/kernel'] = torch.randn(2, 2, 4)
        tree[f'{prefix}/{attention}/out/bias'] = torch.randn(4)
    return tree


def test_attention_equals_flax():
    prefix = 'Transformer/encoderblock_3'
    path = f'{prefix}/MultiHeadDotProductAttention_0'
    tree = _scenic_block(prefix, ['MultiHeadDotProductAttention_0'])
    out = convert('vivit_scenic', tree)
    x, name = torch.randn(5, 4), 'backbone.encoder.blocks.3.attn'
    assert out.keys() == {
        f'{name}.{part}.{kind}' for part in ('qkv', 'proj')
        for kind in ('weight', 'bias')}
    qkv = x @ out[f'{name}.qkv.weight'].T + out[f'{name}.qkv.bias']
    for got, part in zip(qkv.unflatten(-1, (3, 2, 2)).unbind(1),
                         ('query', 'key', 'value')):
        want = torch.einsum(
            'nc,cgd->ngd', x,
            tree[f'{path}/{part}/kernel']) + tree[f'{path}/{part}/bias']
        assert torch.allclose(got, want, atol=1e-6)
    y = torch.randn(5, 2, 2)
    want = torch.einsum('ngd,gdc->nc', y, tree[f'{path}/out/kernel'])
    got = y.flatten(1) @ out[f'{name}.proj.weight'].T
    assert torch.allclose(got, want, atol=1e-6)


@pytest.mark.parametrize('root, state', [
    ('optimizer/target/', 'optimizer/state/step'), ('params/', 'opt_state/0')])
def test_finds_parameters_next_to_optimizer_state(root, state):
    tree = {'Transformer/encoder_norm/scale': torch.randn(4)}
    out = convert('vivit_scenic', {
        **{f'{root}{path}': value for path, value in tree.items()},
        state: torch.zeros(()), 'global_step': torch.zeros(())})
    assert out.keys() == {'backbone.encoder.norm.weight'}


def test_maps_arrays_of_flax():
    block = 'Transformer/encoderblock_0'
    attentions = [f'MultiHeadDotProductAttention_{axis}'
                  for axis in ('space', 'time')]
    tree = {
        'embedding/kernel': torch.randn(2, 3, 5, 1, 4),
        'embedding/bias': torch.randn(4),
        f'{block}/LayerNorm_time/scale': torch.randn(4),
        f'{block}/LayerNorm_space/scale': torch.randn(4),
        f'{block}/LayerNorm_mlp/bias': torch.randn(4),
        f'{block}/MlpBlock/Dense_0/kernel': torch.randn(4, 6),
        f'{block}/MlpBlock/Dense_1/bias': torch.randn(4),
        'Transformer/encoder_norm/scale': torch.randn(4),
        'output_projection/kernel': torch.randn(4, 7),
        **_scenic_block(block, attentions)
    }
    out = convert('vivit_scenic', tree)
    to = 'backbone.encoder.blocks.0'
    for old, new in ((f'{block}/LayerNorm_time/scale',
                      f'{to}.temporal_attn_norm.weight'),
                     (f'{block}/LayerNorm_space/scale',
                      f'{to}.attn_norm.weight'),
                     (f'{block}/LayerNorm_mlp/bias', f'{to}.mlp_norm.bias'),
                     (f'{block}/MlpBlock/Dense_1/bias', f'{to}.mlp.fc2.bias'),
                     ('Transformer/encoder_norm/scale',
                      'backbone.encoder.norm.weight'),
                     (f'{block}/{attentions[1]}/out/bias',
                      f'{to}.temporal_attn.proj.bias'),
                     (f'{block}/{attentions[0]}/out/bias',
                      f'{to}.attn.proj.bias')):
        assert torch.equal(out[new], tree[old]), new
    assert torch.equal(out[f'{to}.mlp.fc1.weight'],
                       tree[f'{block}/MlpBlock/Dense_0/kernel'].T)
    assert torch.equal(out['cls_head.fc_cls.weight'],
                       tree['output_projection/kernel'].T)
    assert torch.equal(
        out['backbone.patch_embed.projection.weight'],
        torch.einsum('tyxcd->dctyx', tree['embedding/kernel']))


@pytest.mark.parametrize('path, cls, to', [
    ('Transformer', 'cls', 'encoder'),
    ('SpatialTransformer', 'cls_SpatialTransformer', 'encoder'),
    ('TemporalTransformer', 'cls_TemporalTransformer', 'encoder.temporal')])
def test_class_token_includes_its_position(path, cls, to):
    table, token = torch.randn(1, 5, 3), torch.randn(1, 1, 3)
    path = f'{path}/posembed_input/pos_embedding'
    out = convert('vivit_scenic', {cls: token, path: table})
    assert torch.equal(out[f'backbone.{to}.cls_token'],
                       (token + table[:, :1])[:, None, None])
    assert torch.equal(out[f'backbone.{to}.pos_embed'], table[:, 1:])
    # Models 3 and 4 do not use a class token.
    out = convert('vivit_scenic', {path: table})
    assert torch.equal(out[f'backbone.{to}.pos_embed'], table)


def _packed(tree):
    """Serialize a tree of float32 tensors like flax."""

    def text(value):
        return b'\xd9' + bytes([len(value)]) + value.encode()

    if isinstance(tree, dict):
        return b'\xde' + len(tree).to_bytes(2, 'big') + b''.join(
            text(key) + _packed(value) for key, value in tree.items())
    data = tree.contiguous().numpy().tobytes()
    body = b'\x93' + bytes([0x90 + tree.dim(), *tree.shape]) + text(
        'float32') + b'\xc6' + len(data).to_bytes(4, 'big') + data
    return b'\xc9' + len(body).to_bytes(4, 'big') + b'\x01' + body


def test_command_reads_flax_files(tmp_path, monkeypatch):
    scale = torch.randn(4)
    tree = dict(Transformer=dict(encoder_norm=dict(scale=scale)))
    src, dst = tmp_path / 'checkpoint', tmp_path / 'vivit.pth'
    src.write_bytes(_packed(dict(optimizer=dict(target=tree))))
    monkeypatch.setattr(
        sys, 'argv', ['convert.py', 'vivit_scenic', str(src), str(dst)])
    monkeypatch.setattr(sys, 'path', [*sys.path])
    runpy.run_path(str(ROOT / 'tools/convert.py'), run_name='__main__')
    result = load_state_dict_file(dst)
    assert result.keys() == {'backbone.encoder.norm.weight'}
    assert torch.equal(*result.values(), scale)
