# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import logging
import os
import subprocess
import sys
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


@pytest.mark.parametrize('value, enabled', [('0', 'False'), ('1', 'True'),
                                            (None, 'True')])
def test_the_environment_is_a_switch(value, enabled):
    env = {k: v for k, v in os.environ.items() if k != 'MMVIDATTN_DISPATCH'}
    if value is not None:
        env['MMVIDATTN_DISPATCH'] = value
    code = ('import runpy; print(runpy.run_path("mmvidattn/ops/dispatch.py")'
            '["_enabled"])')
    out = subprocess.run([sys.executable, '-c', code], cwd=ROOT, env=env,
                         capture_output=True, text=True, check=True).stdout
    assert out.strip() == enabled


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
