# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import logging
import runpy
from pathlib import Path

import pytest
import torch

from mmvidattn.ops import dispatch, examples  # noqa: F401
from mmvidattn.ops.choice import Choice, Condition, key_of
from mmvidattn.ops.dispatch import (
    dispatched,
    register_backend,
    set_choice,
    summary,
    table,
    use_backends,
    use_choice,
)

ROOT = Path(__file__).resolve().parents[2]


def gains_of(backend, gain=2., training=(False, True),
             dtypes=('float32', ), compiled=(False, True)):
    """Gains of a backend of ``add`` under each condition."""
    return {key_of('add', backend, Condition(a, b, c)): gain
            for a in training for b in dtypes for c in compiled}


@pytest.fixture
def op(monkeypatch):
    """Add one; its backend, which accepts matrices only, adds two."""
    monkeypatch.setattr(dispatch, '_backends', {})
    monkeypatch.setattr(dispatch, '_ops', {})
    monkeypatch.setattr(dispatch, '_switch', '1')
    monkeypatch.setattr(dispatch, '_enabled', True)
    monkeypatch.setattr(dispatch, '_unmeasured', False)

    @dispatched
    def add(x, much=1):
        if much < 0:
            raise ValueError('much must not be negative')
        return x + much

    register_backend(
        add, 'matrices', lambda x, much=1: x + 2 * much,
        lambda x, much=1: None if x.dim() == 2 and much >= 0 else 'no matrix',
        where='matrices')
    with use_choice('cpu', Choice(
            gains_of('matrices') | gains_of('other'), 'this test')):
        yield add


def test_the_first_backend_that_fits_runs(op):
    x, matrix = torch.zeros(3), torch.zeros(2, 3)
    assert (op(x) == 1).all() and (op(matrix) == 2).all()
    assert (op(matrix, much=3) == 6).all()
    assert (op.plain(matrix) == 1).all()
    register_backend(
        op, 'other', lambda x, much=1: x + 9, lambda x, much=1: None,
        where='all else')
    assert (op(x) == 9).all() and (op(matrix) == 2).all()
    with pytest.raises(ValueError, match='negative'):
        with use_backends(False):
            op(matrix, -1)


def test_the_switch_leaves_the_plain_code(op):
    matrix = torch.zeros(2, 3)
    with use_backends(False):
        assert (op(matrix) == 1).all()
        with use_backends(True):
            assert (op(matrix) == 2).all()
        assert (op(matrix) == 1).all()
    with pytest.raises(KeyError), use_backends(False):
        raise KeyError
    assert (op(matrix) == 2).all()


@pytest.mark.parametrize('value, enabled, unmeasured', [
    ('0', False, False), ('1', True, False), (None, True, False),
    ('default', True, False), ('all', True, True)])
def test_the_environment_is_a_switch(monkeypatch, value, enabled, unmeasured):
    monkeypatch.delenv('MMVIDATTN_DISPATCH', raising=False)
    if value is not None:
        monkeypatch.setenv('MMVIDATTN_DISPATCH', value)
    fresh = runpy.run_module('mmvidattn.ops.dispatch')
    assert fresh['_enabled'] is enabled
    assert fresh['_unmeasured'] is unmeasured


def test_the_environment_names_a_choice(monkeypatch):
    monkeypatch.setenv('MMVIDATTN_DISPATCH', 'yes')
    with pytest.raises(ValueError, match="MMVIDATTN_DISPATCH.*'yes'"):
        runpy.run_module('mmvidattn.ops.dispatch')


def test_an_unmeasured_backend_runs_only_on_request(op):
    x = torch.zeros(3)
    register_backend(op, 'new', lambda x, much=1: x + 5,
                     lambda x, much=1: None, where='all else')
    assert (op(x) == 1).all()
    chosen, reasons = dispatch.explain(op, x)
    assert chosen is None and 'MMVIDATTN_DISPATCH=all' in reasons['new']
    assert reasons['matrices'] == 'no matrix'
    with use_backends(True, unmeasured=True):
        assert (op(x) == 5).all()
        with use_backends(False):
            assert (op(x) == 1).all()
        with use_backends(True):
            assert dispatch.explain(op, x)[0] == 'new'
    assert (op(x) == 1).all()


@pytest.mark.parametrize('gain, runs', [
    (0., False), (1.09, False), (1.1, True), (3., True)])
def test_a_backend_runs_where_it_was_measured_to_be_faster(op, gain, runs):
    matrix = torch.zeros(2, 3)
    with use_choice('cpu', Choice(gains_of('matrices', gain), 'x')):
        assert (op(matrix) == (2 if runs else 1)).all()
        chosen, reasons = dispatch.explain(op, matrix)
    assert chosen == ('matrices' if runs else None)
    assert runs or f'{gain:.2f} times as fast' in reasons['matrices']


CONDITIONS = {
    'inference': dict(training=[False]), 'training': dict(training=[True]),
    'eager': dict(compiled=[False]), 'compiled': dict(compiled=[True]),
    'float32': dict(dtypes=['float32']),
    'bfloat16': dict(dtypes=['bfloat16'])}


@pytest.mark.parametrize('name', CONDITIONS)
@pytest.mark.parametrize('training', [False, True])
@pytest.mark.parametrize('autocast', [False, True])
@pytest.mark.parametrize('compiled', [False, True])
def test_each_condition_has_its_own_gain(
        op, name, training, autocast, compiled):
    x = torch.zeros(2, 3, requires_grad=training)
    torch.compiler.reset()
    function = torch.compile(
        lambda x: op(x), fullgraph=True, backend='eager') if compiled else op
    chosen = gains_of('matrices', **{
        'dtypes': ('float32', 'bfloat16'), **CONDITIONS[name]})
    matches = name in ('training' if training else 'inference',
                       'compiled' if compiled else 'eager',
                       'bfloat16' if autocast else 'float32')
    with use_choice('cpu', Choice(chosen, 'x')), torch.autocast(
            'cpu', torch.bfloat16, enabled=autocast):
        assert (function(x) == (2 if matches else 1)).all()


def test_inference_does_not_count_as_training(op):
    x = torch.zeros(2, 3, requires_grad=True)
    with use_choice('cpu', Choice(
            gains_of('matrices', training=[False]), 'x')):
        assert (op(x) == 1).all()
        with torch.no_grad():
            assert (op(x) == 2).all()
        # Gradients of integers are not needed either.
        assert (op(torch.zeros(2, 3)) == 2).all()


def test_devices_without_a_table_run_the_plain_code(op):
    x = torch.zeros(2, 3, device='meta')
    chosen, reasons = dispatch.explain(op, x)
    assert chosen is None
    assert 'no defaults for meta' in reasons['matrices']


def test_a_rejection_is_logged_once(op, caplog):
    dispatch._log_once.cache_clear()
    with caplog.at_level(logging.DEBUG, logger=dispatch.logger.name):
        op(torch.zeros(3))
        op(torch.zeros(4))
    assert [r.getMessage() for r in caplog.records] == [
        'add: not the backend matrices: no matrix']


def test_compiles_and_exports_without_a_break(op):
    torch.compiler.reset()
    compiled = torch.compile(op, fullgraph=True, backend='eager')
    matrix = torch.zeros(2, 3)
    assert (compiled(matrix) == 2).all()
    assert (compiled(torch.zeros(3)) == 1).all()
    with use_backends(False):
        assert (compiled(matrix) == 1).all()
    assert (compiled(matrix) == 2).all()

    class Module(torch.nn.Module):

        def forward(self, x):
            return op(x)

    program = torch.export.export(Module(), (matrix, )).module()
    assert (program(matrix) == 2).all()


def test_compiled_code_follows_a_new_choice(op):
    torch.compiler.reset()
    compiled = torch.compile(op, fullgraph=True, backend='eager')
    matrix = torch.zeros(2, 3)
    assert (compiled(matrix) == 2).all()
    with use_choice('cpu', Choice({}, 'nothing')):
        assert (compiled(matrix) == 1).all()
    assert (compiled(matrix) == 2).all()


def test_a_choice_that_compiled_code_needs_first_is_read(
        op, monkeypatch):
    """The compiler reads it while it traces, without a graph break."""
    monkeypatch.setattr(dispatch, 'read_choice', lambda device: Choice(
        gains_of('matrices'), 'a file'))
    set_choice('cpu', None)
    torch.compiler.reset()
    compiled = torch.compile(op, fullgraph=True, backend='eager')
    assert (compiled(torch.zeros(2, 3)) == 2).all()
    assert dispatch.current_choice('cpu').origin == 'a file'


def test_records_outermost_ops(op):
    seen = []

    @dispatched
    def twice(x):
        return op(op(x))

    matrix = torch.zeros(2, 3)
    with dispatch.recording(lambda *call: seen.append(call)):
        assert (op(matrix, much=2) == 2).all()
        twice(matrix)
    twice(matrix)
    assert [(call[0].__name__, call[2]) for call in seen] == [
        ('add', dict(much=2)), ('twice', {})]


def test_rejects_operators_it_cannot_register(op):
    with pytest.raises(ValueError, match='already'):
        register_backend(op, 'matrices', op, op, where='')
    with pytest.raises(ValueError, match=r"not a dispatched op.*\['add'\]"):
        register_backend(torch.add, 'x', op, op, where='')


def test_lists_backends(op):
    assert table().splitlines()[2] == '| `add` | matrices | matrices |'


def test_readme_has_the_table():
    """Check that the README has the tables of ``python -m mmvidattn.ops``."""
    assert table() in (ROOT / 'mmvidattn/ops/README.md').read_text('utf-8')


def test_summary_names_the_code_that_runs(op):
    with use_choice('cpu', Choice(gains_of(
            'matrices', training=[True], compiled=[False]), 'this test')):
        assert summary() == ('backends: this test: add by matrices '
                             '(training float32 eager)')
    with use_choice('cpu', Choice({}, 'no defaults for X')):
        assert summary() == ('backends: no defaults for X: the plain code '
                             'only')
    with use_backends(False):
        assert 'MMVIDATTN_DISPATCH=0' in summary()
    with use_backends(True, unmeasured=True):
        assert 'MMVIDATTN_DISPATCH=all' in summary()
