# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import json
import runpy
import sys
from pathlib import Path

import pytest
import torch
from mmaction.registry import MODELS
from mmengine.registry import init_default_scope

from mmvidattn.convert import convert
from mmvidattn.utils.checkpoint import load_state_dict_file

ROOT = Path(__file__).resolve().parents[2]
QKV = 'Transformer/encoderblock_0/MultiHeadDotProductAttention_0'
SCENIC = dict(
    spacetime='joint',
    factorized_encoder='fact_encoder',
    factorized_self_attention_block='fact_attention',
    factorized_dot_product_attention='fact_dot')


def _meta_model(name):
    init_default_scope('mmaction')
    with torch.device('meta'):
        return MODELS.build(
            dict(
                type='Recognizer3D',
                backbone=dict(type='ViViT', model=name),
                cls_head=dict(type='ViViTHead', num_classes=400)))


def _on_meta(shapes):
    return {
        key: torch.empty(shape, device='meta')
        for key, shape in shapes.items()
    }


@pytest.mark.parametrize('name', SCENIC)
@pytest.mark.parametrize('root', ['', 'optimizer/target/', 'params/'])
def test_every_released_array_has_its_place(shared_dir, name, root):
    keys = json.loads((
        shared_dir / f'keys/vivit/keys_scenic_{name}_B16x2.json').read_text())
    tree = _on_meta({f'{root}{key}': shape for key, shape in keys.items()})
    if root:
        tree['global_step'] = torch.empty((), device='meta')
    _meta_model(SCENIC[name]).load_state_dict(
        convert('vivit_scenic', tree), strict=True, assign=True)


@pytest.mark.parametrize('names', ['hub_4x', 'transformers_5x'])
def test_every_hugging_face_tensor_has_its_place(shared_dir, names):
    keys = json.loads(
        (shared_dir / 'keys/vivit/keys_hf_vivit_b16x2.json').read_text())
    _meta_model('joint').load_state_dict(
        convert('vivit_hf', _on_meta(keys[names])), strict=True, assign=True)


def _scenic_block(prefix, attentions):
    tree = {}
    for attention in attentions:
        for part in 'query', 'key', 'value':
            tree[f'{prefix}/{attention}/{part}/kernel'] = torch.randn(4, 2, 2)
            tree[f'{prefix}/{attention}/{part}/bias'] = torch.randn(2, 2)
        tree[f'{prefix}/{attention}/out/kernel'] = torch.randn(2, 2, 4)
        tree[f'{prefix}/{attention}/out/bias'] = torch.randn(4)
    return tree


def test_attention_of_flax_is_that_of_torch():
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
def test_parameters_are_found_beside_the_state_of_training(root, state):
    tree = {'Transformer/encoder_norm/scale': torch.randn(4)}
    out = convert('vivit_scenic', {
        **{f'{root}{path}': value for path, value in tree.items()},
        state: torch.zeros(()), 'global_step': torch.zeros(())})
    assert out.keys() == {'backbone.encoder.norm.weight'}


def test_arrays_of_flax_are_mapped():
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
def test_class_token_takes_in_its_position(path, cls, to):
    table, token = torch.randn(1, 5, 3), torch.randn(1, 1, 3)
    path = f'{path}/posembed_input/pos_embedding'
    out = convert('vivit_scenic', {cls: token, path: table})
    assert torch.equal(out[f'backbone.{to}.cls_token'],
                       (token + table[:, :1])[:, None, None])
    assert torch.equal(out[f'backbone.{to}.pos_embed'], table[:, 1:])
    # Models 3 and 4 have no class token.
    out = convert('vivit_scenic', {path: table})
    assert torch.equal(out[f'backbone.{to}.pos_embed'], table)


def _hf(old):
    """A block and more in the names of the files, or of transformers 5."""
    block = 'encoder.layer.1' if old else 'layers.1'
    q, k, v, out, fc1, fc2 = (
        'attention.attention.query', 'attention.attention.key',
        'attention.attention.value', 'attention.output.dense',
        'intermediate.dense', 'output.dense') if old else (
            'attention.q_proj', 'attention.k_proj', 'attention.v_proj',
            'attention.o_proj', 'mlp.fc1', 'mlp.fc2')
    torch.manual_seed(0)
    return {
        'embeddings.cls_token': torch.randn(1, 1, 2),
        'embeddings.position_embeddings': torch.randn(1, 5, 2),
        'embeddings.patch_embeddings.projection.weight':
        torch.randn(2, 3, 4, 4),
        **{f'{block}.{part}.weight': torch.randn(2, 2)
           for part in (k, q, v, out, fc1, fc2)},
        f'{block}.layernorm_before.weight': torch.randn(2),
        f'{block}.layernorm_after.bias': torch.randn(2),
        'layernorm.bias': torch.randn(2),
        'pooler.dense.weight': torch.randn(2, 2),
    }


@pytest.mark.parametrize('old', [True, False], ids=['files', 'version 5'])
@pytest.mark.parametrize('prefix', ['', 'vit.'])
def test_image_vit_of_transformers_is_that_of_timm(old, prefix):
    source = {f'{prefix}{k}': v for k, v in _hf(old).items()}
    source['classifier.weight'] = torch.randn(10, 2)
    values = list(_hf(old).values())
    timm = {
        'cls_token': values[0],
        'pos_embed': values[1],
        'patch_embed.proj.weight': values[2],
        'blocks.1.attn.qkv.weight':
        torch.cat([values[4], values[3], values[5]]),
        'blocks.1.attn.proj.weight': values[6],
        'blocks.1.mlp.fc1.weight': values[7],
        'blocks.1.mlp.fc2.weight': values[8],
        'blocks.1.norm1.weight': values[9],
        'blocks.1.norm2.bias': values[10],
        'norm.bias': values[11],
        'head.weight': torch.randn(10, 2),
    }
    for hf_name, timm_name in (('vivit_image', 'vivit_image'),
                               ('vit_hf', 'vit_timm')):
        got, want = convert(hf_name, source), convert(timm_name, timm)
        assert got.keys() == want.keys()
        assert all(torch.equal(got[name], want[name]) for name in want)


def test_image_vit_gives_all_but_its_classifier():
    values = list(_hf(True).values())
    out = convert('vivit_image', _hf(True))
    block = 'backbone.encoder.blocks.1'
    zeros = {'backbone.patch_embed.projection.bias',
             *(f'{block}.{layer}.bias' for layer in (
                 'attn.qkv', 'attn.proj', 'mlp.fc1', 'mlp.fc2'))}
    assert not any(out.pop(name).any() for name in zeros)
    assert out.keys() == {
        'backbone.patch_embed.projection.weight', f'{block}.attn.qkv.weight',
        f'{block}.attn.proj.weight', f'{block}.attn_norm.weight',
        f'{block}.mlp_norm.bias', f'{block}.mlp.fc1.weight',
        f'{block}.mlp.fc2.weight', 'backbone.encoder.norm.bias',
        'backbone.encoder.cls_token', 'backbone.encoder.pos_embed'
    }
    assert torch.equal(out['backbone.encoder.pos_embed'],
                       values[1][:, 1:].view(1, 1, 2, 2, 2))


@pytest.mark.parametrize('source, state_dict, message', [
    ('vivit_scenic', {'Transformer/other/kernel': torch.zeros(1, 1)},
     'Transformer/other/kernel is no array of'),
    ('vivit_scenic', {f'{QKV}/query/kernel': torch.zeros(2, 1, 2)},
     r'there is \S+attn.query.weight, but no \S+attn.key.weight'),
    ('vivit_hf', {'a.weight': torch.zeros(1)}, 'no ViT of transformers'),
    ('vivit_hf', {
        'embeddings.patch_embeddings.projection.weight': torch.zeros(1),
        'layers.0.attention.v_proj.bias': torch.zeros(1)},
     r'there is \S+attn.value.bias, but no \S+attn.query.bias'),
    ('vivit_image', {'a.weight': torch.zeros(1)},
     'no ViT of timm or transformers'),
    ('vivit_image', {'patch_embed.proj.weight': torch.zeros(1),
                     'stem': torch.zeros(1)}, 'stem is no tensor of a ViT'),
    ('vivit_image', {'patch_embed.proj.weight': torch.zeros(1),
                     'cls_token': torch.zeros(1, 1, 2),
                     'pos_embed': torch.zeros(1, 6, 2)},
     'pos_embed has 6 positions: no square')],
    ids=['scenic', 'scenic-part', 'hf', 'hf-part', 'image', 'stranger',
         'positions'])
def test_names_what_is_wrong(source, state_dict, message):
    with pytest.raises(ValueError, match=message):
        convert(source, state_dict)


def _packed(tree):
    """A tree of float32 tensors as flax writes it."""

    def text(value):
        return b'\xd9' + bytes([len(value)]) + value.encode()

    if isinstance(tree, dict):
        return b'\xde' + len(tree).to_bytes(2, 'big') + b''.join(
            text(key) + _packed(value) for key, value in tree.items())
    data = tree.contiguous().numpy().tobytes()
    body = b'\x93' + bytes([0x90 + tree.dim(), *tree.shape]) + text(
        'float32') + b'\xc6' + len(data).to_bytes(4, 'big') + data
    return b'\xc9' + len(body).to_bytes(4, 'big') + b'\x01' + body


def test_the_tool_reads_the_file_of_flax(tmp_path, monkeypatch):
    flat = _scenic_block('Transformer/encoderblock_0',
                         ['MultiHeadDotProductAttention_0'])
    flat['embedding/kernel'] = torch.randn(2, 3, 5, 1, 4)
    tree = {}
    for path, value in flat.items():
        node = tree
        *folders, leaf = path.split('/')
        for folder in folders:
            node = node.setdefault(folder, {})
        node[leaf] = value
    src, dst = tmp_path / 'checkpoint', tmp_path / 'vivit.pth'
    src.write_bytes(_packed(dict(optimizer=dict(target=tree))))
    monkeypatch.setattr(
        sys, 'argv', ['convert.py', 'vivit_scenic', str(src), str(dst)])
    monkeypatch.setattr(sys, 'path', [*sys.path])
    runpy.run_path(str(ROOT / 'tools/convert.py'), run_name='__main__')
    found, want = load_state_dict_file(dst), convert('vivit_scenic', flat)
    assert found.keys() == want.keys()
    assert all(torch.equal(found[name], want[name]) for name in want)
