# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""All backbones under torch.compile: one graph for any batch size."""
import pytest
import torch
from torch._dynamo.testing import CompileCounterWithBackend
from torch.utils._pytree import tree_iter

import mmvidattn.backbones as zoo

# torch selects another convolution for fewer than 16 images, so two clips need
# at least 16 frames; ResT halves their number.
T = 8
NUM_FRAMES = dict(rest=16)
SMALL = dict(embed_dims=32, num_layers=1, num_heads=2)
LINEAR_FF = dict(SMALL, img_size=28)
VIVIT = dict(SMALL, img_size=32)
MODELS = {
    'linear_ff': (zoo.LinearVideoTransformer, LINEAR_FF),
    'linear_ff-frames': (zoo.LinearVideoTransformer,
                         dict(LINEAR_FF, patch_frames=3, pattern='joint')),
    'linear_ff-window': (
        zoo.LinearVideoTransformer,
        dict(LINEAR_FF, pattern='windowed', window_frames=3,
             temporal_shift=dict(mode='tsm', divisor=4,
                                 boundary='self'))),
    **{f'vivit-{model}': (zoo.ViViT, dict(VIVIT, model=model))
       for model in ('joint', 'fact_attention', 'fact_dot')},
    'vivit-fact_encoder': (
        zoo.ViViT, dict(VIVIT, model='fact_encoder', num_temporal_layers=1)),
    'xvit': (zoo.XViT, VIVIT),
    'visformer': (zoo.Visformer, dict(
        arch=dict(stem_channels=8, embed_dims=32, depths=(1, 1, 1),
                  num_heads=2), img_size=32)),
    'rest': (zoo.ResT, dict(
        arch=dict(embed_dims=16, depths=(1, 1, 1, 1),
                  num_heads=(1, 2, 4, 8)))),
    'vit': (zoo.VisionTransformerLAPS, dict(arch=SMALL, img_size=32)),
    'dualformer': (zoo.DualFormer, dict(
        arch=dict(embed_dims=16, num_layers=(2, 1, 1, 1),
                  num_heads=(1, 2, 2, 4)), img_size=32,
        window_size=(3, 3, 5))),
    'inflated': (zoo.InflatedBackbone, dict(
        model='timm.deit_tiny_patch16_224',
        model_cfg=dict(img_size=32, depth=1))),
}
# Models with custom backward code.
TRAINED = 'linear_ff-frames', 'dualformer'
# The other models are slow tests.
QUICK = ('linear_ff', )


def _cases():
    for name, training in [*((name, False) for name in MODELS),
                           *((name, True) for name in TRAINED)]:
        is_slow = training or name not in QUICK
        yield pytest.param(name, training,
                           marks=[pytest.mark.slow] if is_slow else [])


@pytest.mark.parametrize('name, training', _cases())
def test_one_graph_for_any_batch_size(name, training):
    """Check that one clip and several clips take at most two compilations."""
    backbone, kwargs = MODELS[name]
    if backbone is zoo.InflatedBackbone:
        pytest.importorskip('timm')
    torch.manual_seed(0)
    frames = NUM_FRAMES.get(name, T)
    model = backbone(num_frames=frames, **kwargs).train(training)
    torch._dynamo.reset()
    counter = CompileCounterWithBackend('aot_eager' if training else 'eager')
    compiled = torch.compile(model, fullgraph=True, backend=counter)
    side = 28 if backbone is zoo.LinearVideoTransformer else 32
    with torch.set_grad_enabled(training):
        for batch in (1, 2, 5):
            clips = torch.randn(batch, 3, frames, side, side)
            y = compiled(clips)
            if training:
                sum(x.square().mean() for x in tree_iter(y)).backward()
            else:
                for got, want in zip(tree_iter(y), tree_iter(model(clips))):
                    assert torch.allclose(got, want, atol=1e-4)
    assert counter.frame_count <= 2
