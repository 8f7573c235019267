# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Compare VJEPA2 with transformers, and with names of the authors' files."""
import pytest
import torch
from mmaction.registry import MODELS

from mmvidattn.convert import convert

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
        features = source.get_vision_features(clips.transpose(1, 2)) \
            if hasattr(source, 'get_vision_features') else \
            source.vjepa2.get_vision_features(clips.transpose(1, 2))
        got = model.backbone(clips)
        pairs = [(got.flatten(2).mT, features),
                 (model.cls_head.pool(got)[:, 0], source.pooler(features)),
                 (model.cls_head(got),
                  source(clips.transpose(1, 2)).logits)]
    for ours, theirs in pairs:
        assert (ours - theirs).abs().max() < 1e-5 * max(
            1, theirs.abs().max())
