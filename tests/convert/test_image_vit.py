# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Compare image ViTs of each publisher with our backbones.

The expected outputs are computed from tensors with the published names by a
short reference in this file, and by the publishers' packages if installed.
"""
import pytest
import torch
import torch.nn.functional as F
from helpers import relative

from mmvidattn.backbones import LinearVideoTransformer, ViViT, XViT
from mmvidattn.convert import convert

D, HEADS, LAYERS = 12, 3, 2
PATCH, SIDE = 4, 12
SIZES = dict(embed_dims=D, num_layers=LAYERS, num_heads=HEADS,
             patch_size=PATCH, img_size=SIDE)
# Published names; {} is the number of a block.
TIMM = dict(
    cls='cls_token', pos='pos_embed', patch='patch_embed.proj', last='norm',
    norm1='blocks.{}.norm1', qkv='blocks.{}.attn.qkv',
    proj='blocks.{}.attn.proj', norm2='blocks.{}.norm2',
    fc1='blocks.{}.mlp.fc1', fc2='blocks.{}.mlp.fc2')
SCALES = dict(scale1='blocks.{}.ls1.gamma', scale2='blocks.{}.ls2.gamma')
_HF = 'encoder.layer.{}.'
VIT_HF = dict(
    cls='embeddings.cls_token', pos='embeddings.position_embeddings',
    patch='embeddings.patch_embeddings.projection', last='layernorm',
    norm1=f'{_HF}layernorm_before', q=f'{_HF}attention.attention.query',
    k=f'{_HF}attention.attention.key', v=f'{_HF}attention.attention.value',
    proj=f'{_HF}attention.output.dense', norm2=f'{_HF}layernorm_after',
    fc1=f'{_HF}intermediate.dense', fc2=f'{_HF}output.dense')
# Names in transformers 5.
_HF5 = 'vit.layers.{}.'
_CLIP = 'vision_model.encoder.layers.{}.'
_OPEN = 'visual.transformer.resblocks.{}.'
PUBLISHED = dict(
    timm=TIMM,
    timm_no_bias={**TIMM, **SCALES, 'no_bias': ('qkv', 'patch')},
    timm_registers={**TIMM, **SCALES, 'apart': ('reg_token', )},
    dinov2={**TIMM, **SCALES, 'aside': ('mask_token', )},
    vit_hf={**VIT_HF, 'aside': ('pooler.dense.weight', )},
    vit_hf_5=dict(
        cls='vit.embeddings.cls_token',
        pos='vit.embeddings.position_embeddings',
        patch='vit.embeddings.patch_embeddings.projection',
        last='vit.layernorm', norm1=f'{_HF5}layernorm_before',
        q=f'{_HF5}attention.q_proj', k=f'{_HF5}attention.k_proj',
        v=f'{_HF5}attention.v_proj', proj=f'{_HF5}attention.o_proj',
        norm2=f'{_HF5}layernorm_after', fc1=f'{_HF5}mlp.fc1',
        fc2=f'{_HF5}mlp.fc2',
        aside=('vit.pooler.dense.weight', 'classifier.weight')),
    dinov2_hf={
        **VIT_HF, 'norm1': f'{_HF}norm1', 'norm2': f'{_HF}norm2',
        'fc1': f'{_HF}mlp.fc1', 'fc2': f'{_HF}mlp.fc2',
        'scale1': f'{_HF}layer_scale1.lambda1',
        'scale2': f'{_HF}layer_scale2.lambda1',
        'aside': ('embeddings.mask_token', 'embeddings.register_tokens')},
    clip_hf=dict(
        cls='vision_model.embeddings.class_embedding',
        pos='vision_model.embeddings.position_embedding.weight',
        patch='vision_model.embeddings.patch_embedding',
        pre='vision_model.pre_layrnorm', last='vision_model.post_layernorm',
        norm1=f'{_CLIP}layer_norm1', q=f'{_CLIP}self_attn.q_proj',
        k=f'{_CLIP}self_attn.k_proj', v=f'{_CLIP}self_attn.v_proj',
        proj=f'{_CLIP}self_attn.out_proj', norm2=f'{_CLIP}layer_norm2',
        fc1=f'{_CLIP}mlp.fc1', fc2=f'{_CLIP}mlp.fc2', no_bias=('patch', ),
        aside=('text_model.encoder.layers.0.mlp.fc1.weight', 'logit_scale',
               'visual_projection.weight', 'text_projection.weight')),
    open_clip=dict(
        cls='visual.class_embedding', pos='visual.positional_embedding',
        patch='visual.conv1', pre='visual.ln_pre', last='visual.ln_post',
        norm1=f'{_OPEN}ln_1', qkv=f'{_OPEN}attn.in_proj_',
        proj=f'{_OPEN}attn.out_proj', norm2=f'{_OPEN}ln_2',
        fc1=f'{_OPEN}mlp.c_fc', fc2=f'{_OPEN}mlp.c_proj', no_bias=('patch', ),
        aside=('transformer.resblocks.0.ln_1.weight', 'logit_scale',
               'visual.proj', 'positional_embedding', 'text_projection',
               'token_embedding.weight', 'ln_final.bias')),
)


def _published(kind, with_cls=True):
    """Return a state dict with published names, and its values by role."""
    names = PUBLISHED[kind]
    torch.manual_seed(0)
    shapes = dict(
        patch=(D, 3, PATCH, PATCH), pre=(D, ), last=(D, ), norm1=(D, ),
        norm2=(D, ), qkv=(3 * D, D), q=(D, D), k=(D, D), v=(D, D),
        proj=(D, D), fc1=(4 * D, D), fc2=(D, 4 * D))
    state, net = {}, {}

    def put(name, key, value):
        state[name], net[key] = value, value

    flat = 'clip' in kind
    if with_cls:
        put(names['cls'], 'cls', torch.randn((D, ) if flat else (1, 1, D)))
    table = torch.randn(with_cls + (SIDE // PATCH)**2, D)
    put(names['pos'], 'pos', table if flat else table[None])
    for part, shape in shapes.items():
        if part not in names:
            continue
        for i in range(LAYERS) if '{}' in names[part] else [0]:
            name = names[part].format(i)
            dot = '' if name.endswith('_') else '.'
            put(f'{name}{dot}weight', f'{part}{i}.weight',
                torch.randn(shape) * (1 if len(shape) == 1 else 0.3))
            if part not in names.get('no_bias', ()):
                put(f'{name}{dot}bias', f'{part}{i}.bias',
                    torch.randn(shape[0]))
    for part in 'scale1', 'scale2':
        for i in range(LAYERS) if part in names else ():
            put(names[part].format(i), f'{part}{i}', torch.randn(D))
    for name in (*names.get('aside', ()), *names.get('apart', ())):
        state[name] = torch.randn(1, 4, D)
    return state, net


def layer_norm(net, name, x, eps):
    return F.layer_norm(x, (D, ), net[f'{name}.weight'], net[f'{name}.bias'],
                        eps)


def run_blocks(net, x, gelu, eps):
    """Apply all blocks to tokens [N, n, D].

    A block i has the layers norm1, qkv or q, k and v, proj, norm2, fc1 and
    fc2, such as ``proj0.weight``, and optionally LayerScales ``scale10``.
    """

    def linear(x, name):
        return F.linear(x, net[f'{name}.weight'], net.get(f'{name}.bias'))

    for i in range(LAYERS):
        y = layer_norm(net, f'norm1{i}', x, eps)
        if f'qkv{i}.weight' in net:
            q, k, v = linear(y, f'qkv{i}').chunk(3, -1)
        else:
            q, k, v = (linear(y, f'{part}{i}') for part in 'qkv')
        q, k, v = (z.unflatten(-1, (HEADS, -1)).transpose(1, 2)
                   for z in (q, k, v))
        y = (q @ k.mT / (D // HEADS)**0.5).softmax(-1) @ v
        y = linear(y.transpose(1, 2).flatten(2), f'proj{i}')
        x = x + y * net.get(f'scale1{i}', 1)
        y = linear(layer_norm(net, f'norm2{i}', x, eps), f'fc1{i}')
        x = x + linear(gelu(y), f'fc2{i}') * net.get(f'scale2{i}', 1)
    return x


def _naive(net, images, gelu, eps, all_tokens=False):
    """Map images [N, 3, S, S] to class token [N, D] or tokens [N, n, D]."""
    x = F.conv2d(images, net['patch0.weight'], net.get('patch0.bias'),
                 stride=PATCH).flatten(2).mT
    if 'cls' in net:
        x = torch.cat([net['cls'].expand(len(x), 1, D), x], dim=1)
    x = x + net['pos']
    if 'pre0.weight' in net:
        x = layer_norm(net, 'pre0', x, eps)
    x = layer_norm(net, 'last0', run_blocks(net, x, gelu, eps), eps)
    return x if all_tokens else x[:, 0]


GELUS = dict(
    none=lambda x: x * 0.5 * (1 + torch.erf(x / 2**0.5)),
    tanh=lambda x: 0.5 * x * (1 + torch.tanh(
        (2 / torch.pi)**0.5 * (x + 0.044715 * x**3))),
    sigmoid=lambda x: x * torch.sigmoid(1.702 * x))


def _options(kind, gelu='none', eps=1e-6):
    return dict(SIZES, gelu_approximate=gelu, norm_eps=eps,
                pre_norm='clip' in kind)


def _xvit(state, clips, **options):
    # Without shifts, frames are independent images.
    model = XViT(num_frames=clips.shape[2], temporal_shift=None, **options)
    return _run(model, 'xvit_image', state, clips).transpose(1, 2)


def _joint(state, clips, **options):
    model = ViViT(num_frames=1, tubelet_frames=1, **options)
    return torch.stack([_run(model, 'vivit_image', state, frame)
                        for frame in clips.split(1, dim=2)], dim=1)


def _factorized(state, clips, **options):
    model = ViViT(num_frames=clips.shape[2], tubelet_frames=1,
                  model='fact_encoder', num_temporal_layers=0, **options)
    return _run(model, 'vivit_image', state, clips)


def _backbone(source, state):
    """Convert a state dict for a backbone."""
    return {name.removeprefix('backbone.'): value
            for name, value in convert(source, state).items()}


def _run(model, source, state, clips):
    model = model.to(clips).eval()
    model.init_weights()
    missing, unexpected = model.load_state_dict(
        _backbone(source, state), strict=False)
    assert not unexpected and set(missing) <= {'temporal_embed'}
    with torch.no_grad():
        return model(clips)


def _doubles(tensors):
    return {name: value.double() for name, value in tensors.items()}


@pytest.mark.parametrize('kind', PUBLISHED)
def test_backbones_equal_the_published_network(kind):
    state, net = (_doubles(x) for x in _published(kind))
    gelu, eps = ('sigmoid', 1e-5) if kind == 'clip_hf' else ('none', 1e-6)
    clips = torch.randn(2, 3, 2, SIDE, SIDE).double()
    images = clips.transpose(1, 2).flatten(0, 1)
    want = _naive(net, images, GELUS[gelu], eps).unflatten(0, (2, 2))
    options = _options(kind, gelu, eps)
    assert relative(_xvit(state, clips, **options), want) < 1e-10
    assert relative(_joint(state, clips, **options), want) < 1e-10
    got = _factorized(state, clips, **options)
    assert relative(got, want.mean(1)) < 1e-10
    # The options have an effect.
    other = dict(options, gelu_approximate='tanh')
    assert relative(_xvit(state, clips, **other), want) > 1e-6


def test_linear_video_transformer_starts_like_the_image_network():
    state, net = (_doubles(x) for x in _published('dinov2', with_cls=False))
    model = LinearVideoTransformer(
        num_frames=2, patch_stride=PATCH, patch_padding=0,
        with_patch_norm=False, with_dwconv=False, with_pos_embed=True,
        attention=dict(type='SoftmaxAttention'), fixation=None,
        temporal_shift=None, spatial_shift=None, **SIZES).double().eval()
    model.init_weights()
    missing, unexpected = model.load_state_dict(
        _backbone('linear_ff_image', state), strict=False)
    assert not unexpected and all('temporal' in name for name in missing)
    for block in model.blocks:
        torch.nn.init.zeros_(block.temporal_attn.proj.weight)
    clips = torch.randn(2, 3, 2, SIDE, SIDE).double()
    want = _naive(net, clips.transpose(1, 2).flatten(0, 1), GELUS['none'],
                  1e-6, all_tokens=True)
    with torch.no_grad():
        got = model(clips).permute(0, 2, 3, 4, 1).reshape(want.shape)
    assert relative(got, want) < 1e-10


def test_converts_vivit_of_transformers_completely():
    state, net = (_doubles(x) for x in _published('vit_hf'))
    del state['pooler.dense.weight']
    state = {f'vivit.{name}': value for name, value in state.items()}
    head = state['classifier.weight'] = torch.randn(5, D).double()
    got = _backbone('vivit_hf', state)
    assert torch.equal(got.pop('cls_head.fc_cls.weight'), head)
    model = ViViT(num_frames=1, tubelet_frames=1, **_options('vit')).double()
    model.load_state_dict(got)
    clips = torch.randn(2, 3, 1, SIDE, SIDE).double()
    want = _naive(net, clips[:, :, 0], GELUS['none'], 1e-6)
    assert relative(model.eval()(clips), want) < 1e-10


def test_class_token_without_position_is_unchanged():
    state, _ = _published('timm')
    # In timm's networks with registers, the class token has no position.
    state['pos_embed'] = state['pos_embed'][:, 1:]
    out = convert('xvit_image', state)
    assert torch.equal(out['backbone.cls_token'].flatten(),
                       state['cls_token'].flatten())
    assert torch.equal(out['backbone.pos_embed'].flatten(1, 3),
                       state['pos_embed'])


@pytest.mark.parametrize('model, source', [
    (XViT, 'xvit_image'), (ViViT, 'vivit_image')])
def test_backbone_without_a_first_norm_rejects_clip(model, source):
    state, _ = _published('open_clip')
    model = model(num_frames=2, **SIZES)
    with pytest.raises(ValueError, match='build .* with pre_norm=True'):
        model.load_state_dict(_backbone(source, state), strict=False)


_CLIP_OPTIONS = dict(intermediate_size=4 * D, hidden_act='quick_gelu')


@pytest.mark.parametrize('package, kind, options', [
    ('timm', '', {}), ('timm', '', dict(init_values=1e-5)),
    ('timm', '', dict(qkv_bias=False)),
    ('timm', 'CLIP', dict(pre_norm=True, act_layer='quick_gelu')),
    ('transformers', 'ViT', dict(intermediate_size=4 * D)),
    ('transformers', 'Dinov2', {}),
    ('transformers', 'CLIPVision', _CLIP_OPTIONS),
    ('transformers', 'CLIPVision', dict(_CLIP_OPTIONS, hidden_act='gelu'))],
    ids=str)
def test_equals_the_package(request, package, kind, options):
    """Compare with a package, if it is installed."""
    is_clip, eps = 'CLIP' in kind, 1e-6
    if package == 'timm':
        model = request.getfixturevalue('timm').models.VisionTransformer(
            img_size=SIDE, patch_size=PATCH, embed_dim=D, depth=LAYERS,
            num_heads=HEADS, num_classes=3, **options)
    else:
        transformers = pytest.importorskip('transformers')
        config = getattr(transformers, f'{kind}Config')(
            hidden_size=D, num_hidden_layers=LAYERS, image_size=SIDE,
            num_attention_heads=HEADS, patch_size=PATCH, **options)
        model = getattr(transformers, f'{kind}Model')(config)
        eps = config.layer_norm_eps

    def features(x):
        if package == 'timm':
            return model.forward_features(x)[:, 0]
        return model(x).pooler_output if is_clip else model(
            x).last_hidden_state[:, 0]

    torch.manual_seed(0)
    model.eval()
    with torch.no_grad():
        # Values with a noticeable effect.
        for p in model.parameters():
            p.normal_(std=1 if p.dim() == 1 else 0.2)
        clips = torch.randn(2, 3, 2, SIDE, SIDE)
        want = torch.stack([features(frame) for frame in clips.unbind(2)], 1)
    options = _options('clip' if is_clip else 'vit', 'sigmoid' if (
        'quick_gelu' in options.values()) else 'none', eps)
    for run, expected in ((_xvit, want), (_joint, want),
                          (_factorized, want.mean(1))):
        got = run(model.state_dict(), clips, **options)
        assert (got - expected).abs().max() < 1e-5 * expected.abs().max()
