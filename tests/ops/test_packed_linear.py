# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import copy
import pickle
import sys

import pytest
import torch
import torch.nn.functional as F
from helpers import relative
from torch import nn

from mmvidattn.layers.linear import Linear
from mmvidattn.layers.packed_linear import PackedLinear, with_packed_layers
from mmvidattn.ops.dispatch import explain, use_backends
from mmvidattn.ops.packed_linear import pack_weight, packed_linear


@pytest.fixture(autouse=True)
def onednn(monkeypatch):
    """Pack weights on any processor, small weights too."""
    module = sys.modules['mmvidattn.ops.packed_linear']
    if not module.CAN_PACK:
        pytest.skip('this torch packs no weights')
    monkeypatch.setattr(module, 'LEAST_PRODUCTS_OF_ROW', 0)
    with use_backends(True, unmeasured=True):
        yield


@pytest.mark.parametrize('shape', [(7, ), (1, 7), (2, 3, 7), (65, 7)], ids=str)
@pytest.mark.parametrize('dtype, tolerance', [
    (torch.float32, 1e-6), (torch.bfloat16, 1e-2)], ids=str)
@torch.no_grad()
def test_matches_float64(shape, dtype, tolerance):
    gen = torch.Generator().manual_seed(0)
    x, weight, bias = (torch.randn(s, generator=gen).to(dtype)
                       for s in (shape, (11, 7), (11, )))
    packed = pack_weight(weight)
    if packed is None:
        pytest.skip('no bfloat16 here')
    assert explain(packed_linear, x, weight, bias, packed)[0] == 'oneDNN'
    got = packed_linear(x, weight, bias, packed)
    want = F.linear(x.double(), weight.double(), bias.double())
    assert got.dtype == dtype and relative(got, want) < tolerance


def test_uses_plain_code_for_unsupported_arguments():
    x, weight = torch.randn(5, 7), torch.randn(11, 7)
    packed = pack_weight(weight)
    assert pack_weight(weight.double()) is None
    with use_backends(False):
        assert pack_weight(weight) is None
    with torch.no_grad():
        for other in x.double(), x.to('meta'):
            assert explain(packed_linear, other, weight, None, packed)[0] \
                is None
        with torch.autocast('cpu', torch.bfloat16):
            assert explain(packed_linear, x, weight, None, packed)[0] is None
    # The weight needs gradients.
    assert explain(packed_linear, x, weight, None, packed)[0] is None


@torch.no_grad()
def test_packed_module_shares_its_tensors_and_does_not_change():
    torch.manual_seed(0)
    shared = Linear(7, 7)
    model = nn.ModuleDict(dict(
        a=nn.Sequential(Linear(7, 7), nn.ReLU()), b=shared, c=nn.Linear(7, 7)))
    model.d = None
    x = torch.randn(3, 7)
    packed = with_packed_layers(model)
    assert type(packed['a'][0]) is PackedLinear and packed['a'][0].packed \
        is not None
    assert type(model['a'][0]) is Linear and type(packed['c']) is nn.Linear
    for (name, p), (other, q) in zip(
            model.named_parameters(), packed.named_parameters()):
        assert name == other and p is q
    for other in (packed, copy.deepcopy(packed),
                  pickle.loads(pickle.dumps(packed))):
        assert other['a'][0].packed is not None
        torch.testing.assert_close(other['a'](x), model['a'](x))
    # Adding a layer to one copy does not change the second copy.
    packed['a'].append(nn.Identity())
    assert len(model['a']) == 2


@pytest.mark.parametrize('strict', [True, False])
@torch.no_grad()
def test_compiled_and_exported_code_reads_the_weight_itself(strict):
    layer, x, graphs = Linear(7, 11), torch.randn(5, 7), []
    packed = with_packed_layers(layer)
    assert packed.packed is not None

    def backend(module, inputs):
        graphs.append(module.graph)
        return module

    torch._dynamo.reset()
    got = torch.compile(packed, backend=backend, fullgraph=True)(x)
    torch.testing.assert_close(got, layer(x))
    assert len(graphs) == 1
    program = torch.export.export(
        packed, (x, ), dynamic_shapes=({0: torch.export.Dim('rows')}, ),
        strict=strict)
    torch.testing.assert_close(
        program.module()(x.repeat(3, 1)), layer(x.repeat(3, 1)))
    assert program.state_dict.keys() == {'weight', 'bias'}
