# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Parameters and operations of the published models."""
import pytest
import torch
import torch.nn.functional as F
from mmaction.models.heads import I3DHead
from torch import nn
from torch.overrides import TorchFunctionMode

from mmvidattn.apis.complexity import count_complexity
from mmvidattn.backbones import (
    DualFormer,
    LinearVideoTransformer,
    ResT,
    Visformer,
    VisionTransformerLAPS,
    ViViT,
    XViT,
)
from mmvidattn.heads import (
    LAPSHead,
    LinearVideoTransformerHead,
    ViViTHead,
    XViTHead,
)

HEADS = {
    DualFormer: I3DHead, LinearVideoTransformer: LinearVideoTransformerHead,
    ViViT: ViViTHead, XViT: XViTHead}
FRAMES = dict(attention='2d', shift='none')
TOKEN = dict(attention='2d', shift='token')
# Model, options, parameters (millions) and operations (billions) in the
# papers, and the relative tolerance of the operations.
CASES = {
    'linear_ff': (LinearVideoTransformer, {}, 52.009, None, 0),
    'linear_ff-no-fixation':
    (LinearVideoTransformer, dict(fixation=None), 51.712, None, 0),
    'xvit': (XViT, {}, 93.75, 281.43, 2e-5),
    **{f'vivit-{arch}-{model}':
       (ViViT, dict(arch=arch, model=model), mparams, gmacs, 0.01)
       for arch, model, mparams, gmacs in (
           ('B', 'joint', 88.95, 451.5), ('B', 'fact_encoder', 115.06, 283.3),
           ('B', 'fact_attention', 117.32, 371.1),
           ('B', 'fact_dot', 88.95, 276.2), ('L', 'joint', 307.5, 1436))},
    'dualformer-tiny': (DualFormer, {}, 21.77, 60.09, 1e-4),
    'dualformer-small': (DualFormer, dict(arch='small'), 48.91, 158.69, 1e-4),
    'dualformer-base': (DualFormer, dict(arch='base'), 86.84, 267.97, 1e-4),
    'visformer-2d': (Visformer, FRAMES, 39.758, 39.074, 3e-4),
    'visformer-3d': (Visformer, dict(FRAMES, attention='3d'), 39.758, 46.509,
                     3e-4),
    'visformer-laps': (Visformer, {}, 39.758, 40.136, 3e-4),
    'visformer-e': (Visformer, dict(img_size=360, num_frames=32), 40.162,
                    434.02, 3e-4),
    'rest-s-2d': (ResT, FRAMES, 13.372, 16.855, 3e-4),
    'rest-s': (ResT, {}, 13.372, 17.628, 3e-4),
    'rest-b': (ResT, dict(arch='base'), 29.866, 38.31, 3e-4),
    'rest-l': (ResT, dict(arch='large', num_frames=32, side=320), 51.215,
               595.40, 3e-4),
    'vit-2d': (VisionTransformerLAPS, FRAMES, 86.106, 140.66, 3e-4),
    'vit-laps': (VisionTransformerLAPS, {}, 86.106, 146.38, 3e-4),
    'tokshift-l': (VisionTransformerLAPS, dict(
        TOKEN, arch='large', img_size=384, num_frames=12), 304.1, 2294.5,
        3e-4),
}
# Parameters and operations that only the released code has: tables of 8
# temporal embeddings, unused layers, the position of the class token, and the
# last norm of all tokens.
EXTRA = {
    LinearVideoTransformer: (-8 * 512 + 513 * 174, 0),
    XViT: (-8 * 768 + 768 + 769 * 174, 5 * 16 * 196 * 768)}


class _CountNorms(TorchFunctionMode):
    """Count norms like fvcore, which the papers used."""
    costs = {F.layer_norm: 5, F.batch_norm: 2, F.instance_norm: 4}
    total = 0

    def __torch_function__(self, function, types, args=(), kwargs=None):
        if function in self.costs:
            self.total += self.costs[function] * args[0].numel()
        return function(*args, **(kwargs or {}))


# One model per family; the others are slow tests.
QUICK = ('linear_ff', 'linear_ff-no-fixation', 'xvit', 'vivit-B-joint',
         'vivit-B-fact_encoder', 'vivit-B-fact_attention', 'vivit-B-fact_dot',
         'dualformer-tiny', 'visformer-laps', 'rest-s', 'vit-laps')


@pytest.mark.parametrize('case', [
    case if case in QUICK else pytest.param(case, marks=pytest.mark.slow)
    for case in CASES])
def test_parameters_and_operations_match_the_paper(case):
    backbone, kwargs, mparams, gmacs, rel = CASES[case]
    kwargs = dict(kwargs)
    side = kwargs.pop('side', kwargs.get('img_size', 224))
    with torch.device('meta'):
        model = backbone(**kwargs).eval()
        norm = model.encoder.norm if backbone is ViViT else model.norm
        head = HEADS.get(backbone, LAPSHead)(
            174 if backbone in EXTRA else 400, norm.weight.numel())
        counted = (model, ) if backbone is DualFormer else (model, head)
        params = sum(p.numel() for m in counted for p in m.parameters())
        extra_params, operations = EXTRA.get(backbone, (0, 0))
        digits = len(str(mparams).split('.')[1])
        assert round((params + extra_params) / 1e6, digits) == mparams
        if gmacs is None:
            return
        clips, outputs = torch.empty(1, 3, model.num_frames, side, side), []
        model.register_forward_hook(lambda *args: outputs.append(args[-1]))
        with _CountNorms() as norms:
            count = count_complexity(nn.Sequential(model, head), clips)
        y, = outputs
    operations += count.macs + norms.total
    if isinstance(head, LAPSHead) and y.dim() == 5:
        # Average pooling of a frame.
        operations += y.numel()
    assert operations / 1e9 == pytest.approx(gmacs, rel=rel)
