# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Parameters and operations of published models.

`tests/tools/test_complexity.py` has those of the other families.
"""
import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.overrides import TorchFunctionMode

from mmvidattn.apis.complexity import count_complexity
from mmvidattn.backbones import ResT, Visformer, VisionTransformerLAPS, ViViT
from mmvidattn.heads import LAPSHead, ViViTHead

# Model, options, parameters (millions) and operations (billions) in the
# papers, and the relative tolerance of the operations.
CASES = {
    **{f'vivit-{model}': (ViViT, dict(model=model), mparams, gmacs, 0.01)
       for model, mparams, gmacs in (
           ('joint', 88.95, 451.5), ('fact_encoder', 115.06, 283.3),
           ('fact_attention', 117.32, 371.1), ('fact_dot', 88.95, 276.2))},
    'visformer-laps': (Visformer, {}, 39.758, 40.136, 3e-4),
    'rest-s': (ResT, {}, 13.372, 17.628, 3e-4),
    'vit-laps': (VisionTransformerLAPS, {}, 86.106, 146.38, 3e-4)}


class _CountNorms(TorchFunctionMode):
    """Count norms like fvcore, which the papers used."""
    costs = {F.layer_norm: 5, F.batch_norm: 2, F.instance_norm: 4}
    total = 0

    def __torch_function__(self, function, types, args=(), kwargs=None):
        if function in self.costs:
            self.total += self.costs[function] * args[0].numel()
        return function(*args, **(kwargs or {}))


@pytest.mark.parametrize('backbone, options, mparams, gmacs, rel',
                         CASES.values(), ids=CASES)
def test_parameters_and_operations_match_the_paper(backbone, options, mparams,
                                                   gmacs, rel):
    with torch.device('meta'):
        model = backbone(**options).eval()
        norm = model.encoder.norm if backbone is ViViT else model.norm
        head = (ViViTHead if backbone is ViViT else LAPSHead)(
            400, norm.weight.numel())
        both = nn.Sequential(model, head)
        params = sum(p.numel() for p in both.parameters())
        digits = len(str(mparams).split('.')[1])
        assert round(params / 1e6, digits) == mparams
        clips, outputs = torch.empty(1, 3, model.num_frames, 224, 224), []
        model.register_forward_hook(lambda *args: outputs.append(args[-1]))
        with _CountNorms() as norms:
            operations = count_complexity(both, clips).macs + norms.total
    y, = outputs
    if y.dim() == 5:
        # Average pooling of a frame.
        operations += y.numel()
    assert operations / 1e9 == pytest.approx(gmacs, rel=rel)
