# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Report the registers and shared memory of every Triton launch.

    python tools/analysis/kernel_resources.py --out docs/kernel_resources.md

Kernels are compiled without a GPU. The table has the registers per thread, the
spilled bytes per thread, and the shared memory per program. Exits with 1 if a
launch spills too much or does not fit into shared memory.
"""
import argparse
import itertools
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import torch
import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

from mmvidattn.ops.triton import video_linear_attention_kernels as kernels
from mmvidattn.ops.triton.available import MOST_SPILLED, why_not_fits
from mmvidattn.ops.triton.video_linear_attention import (
    ARITHMETIC,
    Blocks,
    accumulates,
    blocks,
    in_one_launch,
)

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from tools.analysis.pages import table

PAGE = """# Registers and shared memory of kernels

This page lists the resources that each Triton kernel of linear attention needs
on a GPU. It is written by `python tools/analysis/kernel_resources.py --out
docs/kernel_resources.md` with Triton {version}, which compiles without a GPU.
The feature map is ReLU, channels are shifted, and gates with several inputs
have three. The columns are:

* heads: number of channels of each head.
* gate: how Q and K are gated: by the same gate (shared) or by a gate each
  (unshared), computed from all inputs; or by a gate each, computed from Q or K
  alone (separate).
* phase: the part of the computation that this launch does, on long sequences.
* rows: number of tokens in a tile.
* sm: compute capability of the GPU, times 10.
* registers, spilled: per thread; spilled bytes are in slower memory.
* shared: shared memory per program of 8 warps.

"""
# Limits of shared memory per program in bytes, by compute capability.
TARGETS = {80: 166912, 90: 232448, 100: 232448}
DTYPES = {
    torch.float32: 'fp32', torch.bfloat16: 'bf16', torch.float16: 'fp16'}
COLUMNS = ('kernel', 'heads', 'dtype', 'gate', 'phase', 'rows', 'sm',
           'registers', 'spilled, B', 'shared, B')
HEADS = 32, 64, 128
GATES = 'shared', 'unshared', 'separate', 'none'
FLOAT_POINTERS = (
    'bias_ptr', 'state_ptr', 'dstate_ptr', 'weights_ptr', 'sums_ptr')
INT_POINTERS = 'segments_ptr', 'heads_ptr'


class Launch(NamedTuple):
    """Kernel with the constants of its compilation."""
    kernel: str
    head_dims: int
    dtype: torch.dtype
    gate: str
    phase: str

    def blocks(self) -> Blocks:
        return blocks(self.kernel, self.head_dims, self.dtype, self.gate)

    def constants(self) -> dict:
        arithmetic = ARITHMETIC[self.dtype]
        inputs = dict(none=0, separate=1).get(self.gate, 3)
        return dict(
            MAP='relu', GATE=self.gate, INPUTS=inputs, SHIFT=True, ALIGN=8,
            SUM='sum' in self.phase, APPLY='apply' in self.phase,
            ACCUMULATE='backward' in self.kernel
            and self.phase != 'sum' and accumulates(
                self.gate, inputs, self.head_dims, self.dtype),
            ROWS=self.blocks().rows, BD=self.head_dims, DOT=arithmetic.dtype,
            PRECISION=arithmetic.precision)


def launches(capability: int) -> Iterator[Launch]:
    """Yield all possible launches, for some head widths and one map."""
    for dtype, head_dims, gate in itertools.product(DTYPES, HEADS, GATES):
        for direction in 'forward', 'backward':
            if why_not_fits(dtype, head_dims, gate, direction == 'backward',
                            capability):
                continue
            yield Launch(f'short_{direction}', head_dims, dtype, gate, '')
            one = in_one_launch(dtype, capability)
            for phase in ('sum', 'apply', *(['sum and apply'] * one)):
                yield Launch(f'long_{direction}', head_dims, dtype, gate,
                             phase)
            if direction == 'forward':
                continue
            if gate != 'none' and not accumulates(gate, 3, head_dims, dtype):
                yield Launch('gate_gradient', head_dims, dtype, gate, '')
            if gate == 'none':
                yield Launch('unshift', head_dims, dtype, gate, '')


class Resources(NamedTuple):
    registers: int
    spilled: int
    shared: int


def compiled(launch: Launch, capability: int) -> Resources:
    """Compile a launch, and return its resources.

    Args:
        launch: Launch to compile.
        capability: Compute capability of the device, times 10.
    """
    function = getattr(kernels, launch.kernel)
    constants = launch.constants()
    dtype = DTYPES[launch.dtype]
    arithmetic = ARITHMETIC[launch.dtype]
    signature = {}
    for name in function.arg_names:
        if name in constants:
            signature[name] = 'constexpr'
        elif name in FLOAT_POINTERS:
            signature[name] = '*fp32'
        elif name == 'weight_ptr':
            signature[name] = f'*{arithmetic.dtype}'
        elif name in INT_POINTERS:
            signature[name] = '*i32'
        elif name.endswith('_ptr'):
            signature[name] = '*' + dtype
        else:
            signature[name] = 'fp32' if name in ('eps', 'offset') else 'i32'
    aligned = {(i, ): [['tt.divisibility', 16]]
               for i, name in enumerate(function.arg_names)
               if name.endswith('_ptr') or name in ('stride', 'D')}
    _, num_warps, num_stages, maxnreg = launch.blocks()
    source = ASTSource(
        function, signature,
        {k: v for k, v in constants.items() if k in signature}, aligned)
    program = triton.compile(
        source, target=GPUTarget('cuda', capability, 32),
        options=dict(num_warps=num_warps, num_stages=num_stages,
                     maxnreg=maxnreg))
    with tempfile.TemporaryDirectory() as folder:
        binary = Path(folder, 'kernel.cubin')
        binary.write_bytes(program.asm['cubin'])
        tool = Path(triton.__file__).parent / 'backends/nvidia/bin/cuobjdump'
        output = subprocess.run([tool, '-res-usage', binary], check=True,
                                capture_output=True, text=True).stdout
    usage = dict(
        word.split(':') for line in output.splitlines() if 'REG:' in line
        for word in line.split())
    return Resources(int(usage['REG']), int(usage['STACK']),
                     program.metadata.shared)


def measure(capabilities: list[int], only: str) -> tuple[str, int]:
    """Compile all launches.

    Returns:
        Markdown table, and the number of launches that spill too much or do
        not fit into shared memory.
    """
    rows, bad = [], 0
    for capability in capabilities:
        for launch in launches(capability):
            name = ' '.join(
                str(x) for x in launch).replace('torch.', '').strip()
            if only not in name:
                continue
            used = compiled(launch, capability)
            bad += (used.spilled > MOST_SPILLED
                    or used.shared > TARGETS[capability])
            rows.append([str(x) for x in (
                launch.kernel, launch.head_dims, DTYPES[launch.dtype],
                launch.gate, launch.phase, launch.blocks().rows, capability,
                *used)])
            print(*rows[-1], file=sys.stderr, flush=True)
    return '\n'.join(table(COLUMNS, rows)), bad


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--capability', type=int, nargs='+',
                        choices=list(TARGETS), default=list(TARGETS))
    parser.add_argument('--only', default='', help='launches whose "kernel '
                        'heads dtype gate phase" contains this text')
    parser.add_argument('--out', type=Path,
                        help='write a Markdown page here (default: print '
                        'the table)')
    args = parser.parse_args()
    if os.environ.get('TRITON_INTERPRET') == '1':
        parser.error('TRITON_INTERPRET=1 compiles nothing')
    text, bad = measure(args.capability, args.only)
    if args.out:
        args.out.write_text(
            PAGE.format(version=triton.__version__) + text + '\n', 'utf-8')
    else:
        print(text)
    return int(bad > 0)


if __name__ == '__main__':
    sys.exit(main())
