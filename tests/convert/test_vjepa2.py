# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Compare VJEPA2 with transformers, and with names of the authors' files."""
import pytest
import torch
import torch.nn.functional as F
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


def published(kind, **options):
    """Build a network of transformers with random weights."""
    transformers = pytest.importorskip('transformers')
    torch.manual_seed(0)
    source = getattr(transformers, f'VJEPA2{kind}')(transformers.VJEPA2Config(
        **{'pred_num_attention_heads': 2, **options})).eval()
    with torch.no_grad():
        for p in source.parameters():
            p.normal_(std=.5 if p.dim() == 1 else p[0].numel()**-.5)
    return source


def check_equal(ours, theirs):
    assert (ours - theirs).abs().max() < 1e-5 * max(1, theirs.abs().max())


@pytest.mark.parametrize('num_frames', [4, 10])
@pytest.mark.parametrize('size', SIZES, ids=str)
def test_equals_transformers(size, num_frames):
    width, heads, layers, side, classes, pooler = size
    source = published(
        'ForVideoClassification', hidden_size=width, mlp_ratio=2,
        num_attention_heads=heads, num_hidden_layers=layers, crop_size=side,
        num_labels=classes, num_pooler_layers=pooler,
        frames_per_clip=num_frames, pred_hidden_size=24,
        pred_num_hidden_layers=1)
    model = build(width, heads, layers, classes, pooler)
    model.load_state_dict(convert('vjepa2', source.state_dict()))
    clips = torch.randn(2, 3, num_frames, side, side)
    with torch.no_grad():
        features = source.vjepa2.get_vision_features(clips.transpose(1, 2))
        got = model.backbone(clips)
        check_equal(got.flatten(2).mT, features)
        check_equal(model.cls_head.pool(got)[:, 0], source.pooler(features))
        check_equal(model.cls_head(got), source(clips.transpose(1, 2)).logits)


@pytest.mark.parametrize('width, heads, side, num_frames', [
    (24, 2, 32, 4), (48, 3, 48, 10)])
def test_predictor_equals_transformers(width, heads, side, num_frames):
    """Each sample has its own number of skipped tubelets."""
    source = published(
        'Model', hidden_size=48, num_attention_heads=2, num_hidden_layers=1,
        crop_size=side, frames_per_clip=num_frames, pred_hidden_size=width,
        pred_num_attention_heads=heads, pred_num_hidden_layers=2)
    model = MODELS.build(dict(
        type='VJEPA2Predictor', in_channels=48, embed_dims=width,
        num_layers=2, num_heads=heads))
    load_predictor(model, source.state_dict())
    time, grid = num_frames // 2, side // 16
    x = torch.randn(3, 48, time, grid, grid)
    frame = torch.arange(grid**2)
    context = torch.arange(time * grid**2).expand(3, -1)
    # 1 second, the default, and 0.3, 1.74 and 0.
    for samples, skipped in ((None, (4, 4, 4)), (
            [dict(seconds_ahead=s) for s in (.3, 1.74, 0)], (1, 6, 0))):
        targets = torch.stack([(time + n) * grid**2 + frame for n in skipped])
        want = source.predictor(
            x.flatten(2).mT, [context], [targets]).last_hidden_state
        got, losses = model(x, samples)
        assert losses == {} and torch.equal(got[:, :, :-1], x)
        check_equal(got[:, :, -1].flatten(2).mT, want)


def load_predictor(model, state_dict):
    model.load_state_dict({
        name.removeprefix('neck.'): value for name, value in
        convert('vjepa2_predictor', state_dict).items()})


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


# The same for the predictor.
PREDICTOR = (
    ('^embed', 'predictor_embed'), ('^norm', 'predictor_norm'),
    ('^proj', 'predictor_proj'), (r'\.qkv', '.attn.qkv'),
    (r'\.proj', '.attn.proj'), ('^blocks', 'predictor_blocks'),
    ('attn_norm', 'norm1'), ('mlp_norm', 'norm2'),
    ('^mask_token$', 'mask_tokens.1'))


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
    predictor = MODELS.build(dict(
        type='VJEPA2Predictor', in_channels=48, embed_dims=24, num_layers=2,
        num_heads=2))
    torch.nn.init.normal_(predictor.mask_token)
    named = {f'module.backbone.{rename(name, PREDICTOR)}': value
             for name, value in predictor.state_dict().items()}
    tokens = {f'module.backbone.mask_tokens.{i}': torch.zeros(1, 1, 24)
              for i in range(11)}
    tokens['module.backbone.mask_tokens.1'] = predictor.mask_token[None, None]
    named |= tokens
    named['module.backbone.predictor_pos_embed'] = torch.zeros(1, 4, 24)
    torch.save(dict(encoder=other, predictor=named, target_encoder=encoder,
                    epoch=3), tmp_path / 'vitl.pt')
    torch.save(dict(classifiers=[head, other], epoch=3), tmp_path / 'probe.pt')
    got = {}
    for name in 'vitl.pt', 'probe.pt':
        got |= convert('vjepa2', load_state_dict_file(tmp_path / name))
    want = model.state_dict()
    assert got.keys() == want.keys()
    assert all(torch.equal(got[name], want[name]) for name in want)
    want = {name: value.clone() for name, value in
            predictor.state_dict().items()}
    torch.nn.init.zeros_(predictor.mask_token)
    load_predictor(predictor, load_state_dict_file(tmp_path / 'vitl.pt'))
    assert all(torch.equal(value, want[name]) for name, value in
               predictor.state_dict().items())
    for name, text in (('probe.pt', 'no predictor'), (
            'vitl.pt', 'predictor_embed.0.weight is not a tensor')):
        state = load_state_dict_file(tmp_path / name)
        # The predictor of V-JEPA 2.1 has more layers.
        state = {name.replace('predictor_embed.', 'predictor_embed.0.'): value
                 for name, value in state.items()}
        with pytest.raises(ValueError, match=text):
            convert('vjepa2_predictor', state)


def transcribed_2_1(state, clips, num_heads, levels):
    """Compute the features of V-JEPA 2.1 after several blocks, [B, N, C].

    This follows the authors' app/vjepa_2_1, with rotations as complex numbers.

    Args:
        state: Tensors by the authors' names.
        clips: [B, 3, T, H, W].
        num_heads: Number of heads.
        levels: Blocks that have norms.
    """
    def norm(x, name):
        return F.layer_norm(x, x.shape[-1:], state[f'{name}.weight'],
                            state[f'{name}.bias'], 1e-6)

    def linear(x, name):
        return F.linear(x, state[f'{name}.weight'], state[f'{name}.bias'])

    x = F.conv3d(clips, state['patch_embed.proj.weight'],
                 state['patch_embed.proj.bias'], (2, 16, 16))
    _, channels, _, rows, columns = x.shape
    x = x.flatten(2).mT + state['video_mod_embed']
    token = torch.arange(x.shape[1]).double()
    # Rows and columns are those of 16 x 16 patches.
    places = (token // (rows * columns),
              token // columns % rows * 15 / (rows - 1),
              token % columns * 15 / (columns - 1))
    pairs = channels // num_heads // 3 // 2
    angles = torch.cat([place[:, None] * 1e4**-(
        torch.arange(pairs).double() / pairs) for place in places], dim=1)

    def rotate(x):
        turned = x[..., :6 * pairs].unflatten(-1, (-1, 2)).contiguous()
        turned = torch.view_as_complex(turned) * torch.polar(
            torch.ones_like(angles), angles)
        return torch.cat([torch.view_as_real(turned).flatten(-2),
                          x[..., 6 * pairs:]], dim=-1)

    outputs = []
    for i in range(1 + levels[-1]):
        q, k, v = linear(norm(x, f'blocks.{i}.norm1'), f'blocks.{i}.attn.qkv'
                         ).unflatten(-1, (3, num_heads, -1)).permute(
                             2, 0, 3, 1, 4)
        weights = rotate(q) @ rotate(k).mT / q.shape[-1]**.5
        y = (weights.softmax(-1) @ v).transpose(1, 2).flatten(2)
        x = x + linear(y, f'blocks.{i}.attn.proj')
        y = linear(norm(x, f'blocks.{i}.norm2'), f'blocks.{i}.mlp.fc1')
        x = x + linear(F.gelu(y), f'blocks.{i}.mlp.fc2')
        if i in levels:
            outputs.append(norm(x, f'norms_block.{levels.index(i)}'))
    return outputs


def test_v_jepa_2_1_equals_its_transcription():
    levels = 2, 5, 8, 11
    torch.manual_seed(0)
    models = [build(40, 2, 12, 5, 1, version='2.1', **options).backbone
              for options in ({}, dict(out_layers=levels))]
    state = authors_names({f'backbone.{name}': value for name, value in
                           models[0].state_dict().items()})
    state = {name.removeprefix('module.backbone.'): value
             for name, value in state.items()}
    del state['norm.weight'], state['norm.bias']
    state |= {f'norms_block.{i}.{name}': torch.zeros(40)
              for i in range(4) for name in ('weight', 'bias')}
    state['video_mod_embed'] = torch.zeros(1, 1, 40)
    for name, value in state.items():
        state[name] = torch.randn_like(value).double() * (
            .5 if name.endswith('bias') or value.dim() != 2 else .2)
    clips = torch.randn(2, 3, 4, 32, 48).double()
    want = transcribed_2_1(state, clips, 2, levels)
    # Of images.
    state |= {'img_mod_embed': torch.zeros(1, 1, 40),
              'patch_embed_img.proj.bias': torch.zeros(40)}
    converted = convert('vjepa2', {f'module.backbone.{name}': value
                                   for name, value in state.items()})
    for model, outputs in zip(models, (want[-1:], want)):
        model.double().load_state_dict({
            name.removeprefix('backbone.'): value
            for name, value in converted.items()})
        with torch.no_grad():
            got = model(clips).flatten(2).mT
        assert (got - torch.cat(outputs, dim=1)).abs().max() < 1e-10


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
