# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import pytest
import torch
import torch.nn.functional as F

from mmvidattn.layers.linear import Linear
from mmvidattn.ops import linear


@pytest.mark.parametrize('shape', [
    (7, ), (1, 7), (5, 7), (2, 3, 7), (2, 0, 7), (64, 7), (65, 7)], ids=str)
@pytest.mark.parametrize('with_bias', [True, False])
@pytest.mark.parametrize('dtype', [torch.float32, torch.float64])
def test_is_torchs(shape, with_bias, dtype):
    torch.manual_seed(0)
    weight, x = torch.randn(11, 7, dtype=dtype), torch.randn(shape,
                                                             dtype=dtype)
    bias = torch.randn(11, dtype=dtype) if with_bias else None
    want = F.linear(x, weight, bias)
    for context in torch.no_grad, torch.enable_grad:
        with context():
            got = linear(x, weight, bias)
        assert got.shape == want.shape and got.dtype == dtype
        torch.testing.assert_close(got, want)
    # Of tokens that are not side by side, too.
    if len(shape) == 3:
        x = x.transpose(0, 1)
        with torch.no_grad():
            torch.testing.assert_close(
                linear(x, weight, bias), want.transpose(0, 1))


def test_learns_and_is_lowered_by_autocast():
    layer, x = Linear(7, 11), torch.randn(5, 7)
    layer(x).sum().backward()
    assert layer.weight.grad.abs().min() > 0
    with torch.no_grad(), torch.autocast('cpu', torch.bfloat16):
        assert layer(x).dtype == torch.bfloat16


def test_compiled_code_keeps_the_product_and_exported_code_does_not():
    """A stream's step is compiled; an exported batch may be any size."""
    layer, x, graphs = Linear(7, 11), torch.randn(5, 7), []

    def backend(module, inputs):
        graphs.append(module.graph)
        return module

    with torch.no_grad():
        got = torch.compile(layer, backend=backend, fullgraph=True)(x)
        torch.testing.assert_close(got, F.linear(
            x, layer.weight, layer.bias))
        program = torch.export.export(
            layer, (x, ), dynamic_shapes=({0: torch.export.Dim('rows')}, ))
    graph, = graphs
    assert torch.addmm in [node.target for node in graph.nodes]
    assert program.module()(x[:3]).shape == (3, 11)
    assert program.module()(x.repeat(20, 1)).shape == (100, 11)
