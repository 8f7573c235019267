# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
from functools import partialmethod

import pytest
import torch
from torch import nn

import mmvidattn
from mmvidattn.apis import compiling

SMALL = {'model.backbone.num_layers': 1, 'model.backbone.embed_dims': 24,
         'model.cls_head.in_channels': 24}


@pytest.fixture
def no_compiler(monkeypatch):
    """Simulate a machine without a C++ compiler."""
    from torch._inductor import config
    compiling.why_not_compile.cache_clear()
    with config.patch({'cpp.cxx': ('/nonexistent/c++', )}):
        yield
    compiling.why_not_compile.cache_clear()


def build(**kwargs):
    torch.manual_seed(0)
    return mmvidattn.get_model('linear_ff_tiny_motion', cfg_options=SMALL,
                               **kwargs)


@pytest.mark.parametrize('backend, batches', [
    ('aot_eager', (2, )),
    pytest.param('inductor', (2, 3, 5), marks=pytest.mark.slow)])
def test_compiled_model_equals_eager(backend, batches, monkeypatch):
    if backend != 'inductor':
        # Without generated code, the test is fast and needs no compiler.
        monkeypatch.setattr(compiling, 'why_not_compile', lambda _: None)
    elif compiling.why_not_compile():
        pytest.skip('no compiler')
    monkeypatch.setattr(nn.Module, 'compile', partialmethod(
        nn.Module.compile, backend=backend))
    eager, compiled = build(), build(compile=True)
    assert compiled.state_dict().keys() == eager.state_dict().keys()
    torch._dynamo.reset()
    torch._dynamo.utils.counters.clear()
    with torch.no_grad():
        for batch in batches:
            clips = torch.randn(batch, 1, 3, 8, 64, 64)
            torch.testing.assert_close(
                compiled(clips, mode='tensor', stage='head'),
                eager(clips, mode='tensor', stage='head'),
                rtol=1e-5, atol=1e-5)
    counters = torch._dynamo.utils.counters
    assert not counters['graph_break']
    # One graph is for the first batch, and one for all other batch sizes.
    assert counters['stats']['unique_graphs'] == min(2, len(batches))


def test_runs_eagerly_without_a_compiler(no_compiler, capsys):
    layer = nn.Linear(2, 3)
    assert not compiling.compile_in_place(layer)
    error = capsys.readouterr().err
    assert error.startswith('Linear runs eagerly, ')
    assert error.count('\n') == 1 and '/nonexistent/c++' in error
    assert layer(torch.zeros(1, 2)).shape == (1, 3)
    # The second call uses the cached reason.
    assert not compiling.compile_in_place(layer)
