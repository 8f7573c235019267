# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import logging
import runpy
from pathlib import Path

import pytest
import torch

from mmvidattn.ops import dispatch
from mmvidattn.ops.dispatch import (
    dispatched,
    register_backend,
    table,
    use_backends,
)

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def op(monkeypatch):
    """Adds one, or two where its backend takes it: matrices."""
    monkeypatch.setattr(dispatch, '_backends', {})

    @dispatched
    def add(x, much=1):
        if much < 0:
            raise ValueError('much must not be negative')
        return x + much

    register_backend(
        add, 'matrices', lambda x, much=1: x + 2 * much,
        lambda x, much=1: None if x.dim() == 2 and much >= 0 else 'no matrix',
        where='matrices', gain='2')
    return add


def test_the_first_backend_that_fits_runs(op):
    x, matrix = torch.zeros(3), torch.zeros(2, 3)
    assert (op(x) == 1).all() and (op(matrix) == 2).all()
    assert (op(matrix, much=3) == 6).all()
    assert (op.plain(matrix) == 1).all()
    register_backend(
        op, 'other', lambda x, much=1: x + 9, lambda x, much=1: None,
        where='all else', gain='3')
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
    ('all', True, True)])
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
                     lambda x, much=1: None, where='all else', gain=None)
    assert (op(x) == 1).all()
    chosen, reasons = dispatch.explain(op, x)
    assert chosen is None and 'MMVIDATTN_DISPATCH=all' in reasons['new']
    with use_backends(True, unmeasured=True):
        assert (op(x) == 5).all()
        with use_backends(False):
            assert (op(x) == 1).all()
        with use_backends(True):
            assert dispatch.explain(op, x)[0] == 'new'
    assert (op(x) == 1).all()
    assert 'only on request' in table()


def test_a_rejection_is_logged_once(op, caplog):
    dispatch._log_once.cache_clear()
    with caplog.at_level(logging.DEBUG, logger=dispatch.logger.name):
        op(torch.zeros(3))
        op(torch.zeros(4))
    assert [r.getMessage() for r in caplog.records] == [
        'add: not the backend matrices: no matrix']


def test_compiles_and_exports_without_a_break(op):
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


def test_rejects_what_cannot_be_registered(op):
    with pytest.raises(ValueError, match='already'):
        register_backend(op, 'matrices', op, op, where='', gain='')
    with pytest.raises(ValueError, match=r"not a dispatched op.*\['add'\]"):
        register_backend(torch.add, 'x', op, op, where='', gain='')


def test_lists_backends(op):
    assert table().splitlines()[2:] == ['| `add` | matrices | matrices | 2 |']


def test_readme_has_the_table():
    """``python -m mmvidattn.ops`` prints it."""
    assert table() in (ROOT / 'mmvidattn/ops/README.md').read_text('utf-8')
