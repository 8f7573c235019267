# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import copy

import torch
from torch import nn

from mmvidattn.layers.packed_linear import PackedLinear, pack_linears


def _model():
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Linear(256, 512), nn.Sequential(nn.ReLU(), nn.Linear(512, 256)),
        nn.Linear(256, 4), nn.Linear(256, 256, dtype=torch.float64)).eval()


def _forward(model, x):
    hidden = model[1](model[0](x))
    return torch.cat([model[2](hidden), model[3](hidden.double())], dim=-1)


@torch.no_grad()
def test_equals_the_plain_layers_for_any_number_of_rows():
    model = _model()
    packed = pack_linears(model)
    assert [type(x) for x in packed.modules() if isinstance(x, nn.Linear)
            ] == [PackedLinear, PackedLinear, nn.Linear, nn.Linear]
    assert type(model[0]) is nn.Linear
    for shape in (256, ), (1, 256), (2, 3, 256), (100, 256):
        x = torch.randn(shape)
        for other in packed, copy.deepcopy(packed):
            torch.testing.assert_close(
                _forward(other, x), _forward(model, x), rtol=1e-5, atol=1e-5)


def test_uses_the_plain_weight_where_the_packed_one_does_not_fit():
    model, x = _model(), torch.randn(3, 256, requires_grad=True)
    packed = pack_linears(model)
    packed[0](x).sum().backward()
    torch.testing.assert_close(
        x.grad, model[0].weight.sum(dim=0).expand(3, 256))
    with torch.no_grad():
        with torch.autocast('cpu', dtype=torch.bfloat16):
            assert packed[0](x).dtype == torch.bfloat16
        compiled = torch.compile(packed[0], backend='eager', fullgraph=True)
        torch.testing.assert_close(compiled(x), model[0](x))
    assert packed.state_dict().keys() == model.state_dict().keys()
    assert packed[0].weight is model[0].weight
