# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Compile the kernels for GPUs without a GPU."""
import os
import subprocess
import sys
from pathlib import Path

import pytest

triton = pytest.importorskip('triton')
ROOT = Path(__file__).resolve().parents[3]
pytestmark = pytest.mark.skipif(
    os.environ.get('TRITON_INTERPRET') == '1',
    reason='the interpreter compiles nothing')


def _rows(table: str) -> list[list[str]]:
    return [[cell.strip() for cell in line.split('|')[1:-1]]
            for line in table.splitlines()[2:]]


def test_linear_ff_kernels_spill_no_registers(monkeypatch, capsys):
    """bfloat16 on an H100, for short and long sequences."""
    from tools.analysis import kernel_resources

    monkeypatch.setattr(sys, 'argv', [
        'kernel_resources.py', '--capability', '90', '--only',
        'backward 64 bfloat16 shared'])
    assert kernel_resources.main() == 0
    rows = _rows(capsys.readouterr().out)
    assert [row[:5] for row in rows] == [
        ['short_backward', '64', 'bf16', 'shared', ''],
        *(['long_backward', '64', 'bf16', 'shared', phase]
          for phase in ('sum', 'apply', 'sum and apply'))]
    assert all(row[8] == '0' for row in rows)


@pytest.mark.slow
@pytest.mark.parametrize('capability', ['80', '90', '100'])
def test_all_kernels_fit(capability):
    run = subprocess.run(
        [sys.executable, ROOT / 'tools/analysis/kernel_resources.py',
         '--capability', capability], capture_output=True, text=True)
    assert run.returncode == 0, run.stdout + run.stderr[-3000:]
    assert len(_rows(run.stdout)) > 70


@pytest.mark.parametrize('capability', [80, 90, 100])
def test_ring_kernel_compiles(capability):
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    from mmvidattn.ops.triton import rings_kernels as kernels

    source = ASTSource(
        kernels.push_row_kernel,
        dict(ring='*fp32', steps='*i64', rows='*fp32', keep='*i1',
             length='i32', width='i32', BLOCK='constexpr'),
        dict(BLOCK=kernels.BLOCK), {})
    program = triton.compile(source, target=GPUTarget('cuda', capability, 32))
    assert program.asm['cubin'] and program.metadata.shared == 0
