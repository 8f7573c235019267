# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Compare VJEPA2 with transformers, and with names of the authors' files."""
import pytest
import torch
from mmaction.registry import MODELS

from mmvidattn.apis import load_config
from mmvidattn.convert import convert
from mmvidattn.convert.rename import rename
from mmvidattn.utils.checkpoint import load_state_dict_file

# Width, heads, layers, side of a frame, classes, layers of the pooler.
SIZES = [(48, 2, 2, 32, 5, 3), (96, 4, 3, 48, 7, 1), (132, 6, 1, 64, 3, 0)]


def build(width, heads, layers, classes, pooler, **options):
    return MODELS.build(dict(
        type='Recognizer3D',
        backbone=dict(type='VJEPA2', arch=dict(
            embed_dims=width, num_heads=heads, num_layers=layers,
            mlp_dims=2 * width), **options),
        cls_head=dict(
            type='AttentiveHead', num_classes=classes, in_channels=width,
            num_heads=heads, num_layers=1 + pooler, norm_eps=1e-6))).eval()


@pytest.mark.parametrize('num_frames', [4, 10])
@pytest.mark.parametrize('size', SIZES, ids=str)
def test_equals_transformers(size, num_frames):
    transformers = pytest.importorskip('transformers')
    width, heads, layers, side, classes, pooler = size
    torch.manual_seed(0)
    source = transformers.VJEPA2ForVideoClassification(
        transformers.VJEPA2Config(
            hidden_size=width, num_attention_heads=heads, mlp_ratio=2,
            num_hidden_layers=layers, crop_size=side, num_labels=classes,
            num_pooler_layers=pooler, frames_per_clip=num_frames,
            pred_hidden_size=24, pred_num_attention_heads=2,
            pred_num_hidden_layers=1)).eval()
    with torch.no_grad():
        for p in source.parameters():
            p.normal_(std=.5 if p.dim() == 1 else p[0].numel()**-.5)
    model = build(width, heads, layers, classes, pooler)
    model.load_state_dict(convert('vjepa2', source.state_dict()))
    clips = torch.randn(2, 3, num_frames, side, side)
    with torch.no_grad():
        features = source.vjepa2.get_vision_features(clips.transpose(1, 2))
        got = model.backbone(clips)
        pairs = [(got.flatten(2).mT, features),
                 (model.cls_head.pool(got)[:, 0], source.pooler(features)),
                 (model.cls_head(got),
                  source(clips.transpose(1, 2)).logits)]
    for ours, theirs in pairs:
        assert (ours - theirs).abs().max() < 1e-5 * max(
            1, theirs.abs().max())


# Our names and the authors', for the tests of their files.
AUTHORS = (
    ('backbone.', 'module.backbone.'), ('embed.projection', 'embed.proj'),
    ('cls_head.blocks', 'module.pooler.blocks'),
    ('cls_head.query_tokens', 'module.pooler.query_tokens'),
    ('cls_head.fc_cls', 'module.linear'),
    ('cls_head.fc_noun', 'module.noun_classifier'),
    ('cls_head.fc_verb', 'module.verb_classifier'),
    ('cls_head.query', 'module.pooler.cross_attention_block.xattn.q'),
    ('cls_head.key_value', 'module.pooler.cross_attention_block.xattn.kv'),
    ('cls_head.cross_norm', 'module.pooler.cross_attention_block.norm1'),
    ('cls_head.mlp', 'module.pooler.cross_attention_block.mlp'),
    ('block.mlp_norm', 'block.norm2'), ('attn_norm', 'norm1'),
    ('mlp_norm', 'norm2'))


def authors_names(state):
    return {rename(name, AUTHORS): value for name, value in state.items()}


def test_reads_the_files_of_the_authors(tmp_path):
    """An encoder file has two encoders, a probe file a list of probes."""
    model = build(48, 2, 2, 5, 1)
    state = authors_names(model.state_dict())
    head = {name: value for name, value in state.items()
            if name.startswith(('module.pooler', 'module.linear'))}
    encoder = {name: value for name, value in state.items()
               if name not in head}
    encoder['module.backbone.pos_embed'] = torch.zeros(1, 4, 48)
    other = {name: value + 1 for name, value in encoder.items()}
    torch.save(dict(encoder=other, predictor={'module.a': torch.zeros(1)},
                    target_encoder=encoder, epoch=3), tmp_path / 'vitl.pt')
    torch.save(dict(classifiers=[head, other], epoch=3), tmp_path / 'probe.pt')
    got = {}
    for name in 'vitl.pt', 'probe.pt':
        got |= convert('vjepa2', load_state_dict_file(tmp_path / name))
    want = model.state_dict()
    assert got.keys() == want.keys()
    assert all(torch.equal(got[name], want[name]) for name in want)


def test_folds_the_embedding_of_videos_of_2_1():
    model = build(48, 2, 2, 5, 1, version='2.1').backbone.double()
    state = authors_names({f'backbone.{name}': value for name, value in
                           model.state_dict().items()})
    state = {name.replace('backbone.norm.', 'backbone.norms_block.3.'): value
             for name, value in state.items()}
    video = torch.randn(1, 1, 48).double()
    more = {'video_mod_embed': video, 'img_mod_embed': video,
            'norms_block.0.weight': torch.zeros(48),
            'norms_block.0.bias': torch.zeros(48),
            'patch_embed_img.proj.bias': torch.zeros(48)}
    state |= {f'module.backbone.{name}': value for name, value in more.items()}
    converted = convert('vjepa2', state)
    clips = torch.randn(1, 3, 4, 32, 32).double()
    tokens = model.patch_embed(clips) + video[:, None, None]
    with torch.no_grad():
        want = model.forward_encoded(tokens)
        model.load_state_dict({name.removeprefix('backbone.'): value
                               for name, value in converted.items()})
        assert (model(clips) - want).abs().max() < 1e-12
    assert converted.keys() == {f'backbone.{name}' for name in
                                model.state_dict()}


def test_queries_of_parts_get_our_order():
    """The authors' order is verb, noun, action."""
    head = MODELS.build(dict(
        type='AttentiveHead', num_classes=9, in_channels=16, num_heads=2,
        num_layers=1, parts=dict(noun=4, verb=3, action=2)))
    state = {f'cls_head.{name}': value
             for name, value in head.state_dict().items()}
    named = authors_names(state)
    named = {name.replace('cls_head.fc_action', 'module.action_classifier'):
             value for name, value in named.items()}
    tokens = torch.arange(48.).view(1, 3, 16)
    named['module.pooler.query_tokens'] = tokens
    got = convert('vjepa2', named)
    assert got.keys() == state.keys()
    assert torch.equal(got['cls_head.query_tokens'], tokens[:, [1, 0, 2]])


@pytest.mark.parametrize('config, sizes', [
    ('vjepa2_l_ssv2', {}),
    ('vjepa2_l_diving48', dict(num_labels=48)),
    ('vjepa2_g_ssv2', dict(
        hidden_size=1408, num_attention_heads=22, num_hidden_layers=40,
        mlp_ratio=48 / 11, crop_size=384, frames_per_clip=64)),
    # Encoders.
    ('H', dict(hidden_size=1280, num_hidden_layers=32)),
    ('L', dict(hidden_size=1024, num_hidden_layers=24))])
def test_published_sizes_fit(config, sizes):
    transformers = pytest.importorskip('transformers')
    is_encoder = len(config) == 1
    kind = 'Model' if is_encoder else 'ForVideoClassification'
    with torch.device('meta'):
        source = getattr(transformers, f'VJEPA2{kind}')(
            transformers.VJEPA2Config(**{'num_labels': 174, **sizes}))
        model = MODELS.build(dict(type='VJEPA2', arch=config) if is_encoder
                             else load_config(config).model)
    converted = convert('vjepa2', source.state_dict())
    prefix = 'backbone.' if is_encoder else ''
    model.load_state_dict({name.removeprefix(prefix): value
                           for name, value in converted.items()}, assign=True)
