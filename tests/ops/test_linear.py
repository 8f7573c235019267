# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import sys

import pytest
import torch
import torch.nn.functional as F
from helpers import relative, with_gradients
from torch.autograd import forward_ad
from torch.utils.flop_counter import FlopCounterMode

from mmvidattn.layers.linear import Linear
from mmvidattn.ops import linear
from mmvidattn.ops.dispatch import use_backends


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
    # Tokens that are not contiguous give the same results.
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


@pytest.fixture
def onednn(monkeypatch):
    """Use oneDNN on any processor, and also for small products."""
    module = sys.modules['mmvidattn.ops.linear']
    if not hasattr(torch.ops.mkldnn, '_linear_pointwise') or \
            not torch.backends.mkldnn.is_available():
        pytest.skip('this torch has no oneDNN')
    monkeypatch.setattr(module, 'LEAST_PRODUCTS', 0)
    with use_backends(True, unmeasured=True):
        yield


def _called(function, *args):
    with torch.profiler.profile() as profile:
        function(*args)
    return 'mmvidattn::onednn_linear' in {
        event.key for event in profile.key_averages()}


# With this many rows, the weight's gradient uses a second code path.
@pytest.mark.parametrize('shape, width', [
    ((5, 7), 11), ((2, 3, 4, 33), 17), ((600, 3), 5), ((2, 7), 1)], ids=str)
@pytest.mark.parametrize('with_bias', [True, False])
def test_onednn_matches_float64(onednn, shape, width, with_bias):
    torch.manual_seed(0)
    tensors = [torch.randn(shape), torch.randn(width, shape[-1])]
    tensors += [torch.randn(width)] * with_bias
    assert _called(linear, *tensors)
    for inputs in (tensors, [x.mT.contiguous().mT for x in tensors[:2]]
                   + tensors[2:]):
        got = with_gradients(linear, inputs)
        want = with_gradients(F.linear, [x.double() for x in inputs])
        for a, b in zip(got, want):
            assert a.shape == b.shape and a.dtype == torch.float32
            assert relative(a, b) < 1e-6


def test_onednn_gives_the_gradients_that_are_asked_for(onednn):
    x, weight = torch.randn(5, 7), torch.randn(11, 7, requires_grad=True)
    linear(x, weight).sum().backward()
    torch.testing.assert_close(weight.grad, x.sum(0).expand(11, 7))
    assert x.grad is None
    # The gradient of the gradient.
    x.requires_grad_()
    grad, = torch.autograd.grad(
        linear(x, weight).square().sum(), x, create_graph=True)
    grad.sum().backward()
    torch.testing.assert_close(
        x.grad, (2 * weight.sum(1) @ weight).detach().expand(5, 7))


def test_onednn_is_a_sound_operator(onednn):
    x, weight, bias = (torch.randn(*shape, requires_grad=True)
                       for shape in [(5, 7), (11, 7), (11, )])
    for tokens in x, torch.randn(2, 3, 4, 7, requires_grad=True):
        torch.library.opcheck(
            torch.ops.mmvidattn.onednn_linear.default, (tokens, weight, bias))
    torch.library.opcheck(
        torch.ops.mmvidattn.onednn_sum_of_products.default,
        (x, torch.randn(5, 3, requires_grad=True)))
    with FlopCounterMode(display=False) as counter:
        linear(x, weight, bias).sum().backward()
    # Products of the forward pass, and of both gradients.
    assert counter.get_total_flops() == 3 * 2 * 5 * 7 * 11


@torch.no_grad()
def test_compiled_code_calls_onednn_and_exported_code_does_not(onednn):
    """A stream's step is compiled; an exported batch may have any size."""
    layer, x, graphs = Linear(7, 11), torch.randn(5, 7), []

    def backend(module, inputs):
        graphs.append(module.graph)
        return module

    torch.compiler.reset()
    got = torch.compile(layer, backend=backend, fullgraph=True)(x)
    torch.testing.assert_close(got, F.linear(x, layer.weight, layer.bias))
    program = torch.export.export(
        layer, (x, ), dynamic_shapes=({0: torch.export.Dim('rows')}, ))
    graph, = graphs
    names = [[str(node.target) for node in result.nodes]
             for result in (graph, program.graph)]
    assert ['mmvidattn' in ' '.join(result) for result in names] == [
        True, False]
    for rows in x[:3], x.repeat(20, 1):
        assert program.module()(rows).shape == (len(rows), 11)


def test_onednn_runs_compiled(onednn):
    layer, x = Linear(7, 11), torch.randn(5, 7)
    torch._dynamo.reset()
    got = torch.compile(layer, backend='aot_eager', fullgraph=True)(x)
    assert _called(layer, x)
    torch.testing.assert_close(got, F.linear(x, layer.weight, layer.bias))
    got.sum().backward()
    torch.testing.assert_close(layer.weight.grad, x.sum(0).expand(11, 7))


@pytest.mark.parametrize('case', [
    'little', 'float64', 'autocast', 'trace', 'vmap', 'jvp', 'off'])
def test_uses_plain_code_for_cases_without_onednn(onednn, monkeypatch, case):
    x, weight = torch.randn(5, 7), torch.randn(11, 7)
    want = F.linear(x, weight)
    assert _called(linear, x, weight)
    if case == 'little':
        module = sys.modules['mmvidattn.ops.linear']
        monkeypatch.setattr(module, 'LEAST_PRODUCTS', 5 * 77 + 1)
        assert not _called(linear, x, weight)
        # A single row repays the call at a smaller size.
        assert not _called(linear, x[:1], weight)
        monkeypatch.setattr(module, 'LEAST_PRODUCTS_OF_ROW', 77)
        assert _called(linear, x[:1], weight)
    elif case == 'float64':
        assert not _called(linear, x.double(), weight.double())
    elif case == 'autocast':
        with torch.autocast('cpu', torch.bfloat16):
            assert not _called(linear, x, weight)
    elif case == 'trace':
        graph = torch.jit.trace(lambda x: linear(x, weight), x).graph
        assert 'aten::linear' in str(graph)
    elif case == 'vmap':
        got = torch.vmap(lambda row: linear(row, weight))(x[:, None])
        torch.testing.assert_close(got[:, 0], want)
    elif case == 'jvp':
        with forward_ad.dual_level():
            y = linear(forward_ad.make_dual(x, x), weight)
            torch.testing.assert_close(
                forward_ad.unpack_dual(y).tangent, want)
    else:
        with use_backends(False):
            assert not _called(linear, x, weight)
