# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Operators of torch that launch the kernels of linear attention."""
import functools
import warnings
from collections.abc import Sequence
from typing import NamedTuple

import torch
import triton
import triton.language as tl
from torch import Tensor
from torch.utils.flop_counter import register_flop_formula

from ..feature_fixation import Gate
from ..shift import Fold
from ..video_linear_attention import Options, video_linear_attention
from . import video_linear_attention_kernels as kernels
from .available import capability

NUM_PARTS = 3
# Programs per multiprocessor in kernels whose programs sum over several items.
PROGRAMS_A_PROCESSOR = 2
# Programs per multiprocessor that fill a device. If there are fewer, long
# sequences are split.
FULL_A_PROCESSOR = 2


class Arithmetic(NamedTuple):
    """Arithmetic of matrix products for a dtype of tokens.

    Attributes:
        dtype: Dtype of the factors; sums are float32.
        precision: Triton's precision of float32 products: three TF32
            products for float32 tokens (24 bits), one for float16 tokens
            (11 bits), whose sums would exceed the range of float16.
    """
    dtype: tl.dtype
    precision: str


ARITHMETIC = {
    torch.float32: Arithmetic(tl.float32, 'tf32x3'),
    torch.bfloat16: Arithmetic(tl.bfloat16, 'ieee'),
    torch.float16: Arithmetic(tl.float32, 'tf32'),
}


class Blocks(NamedTuple):
    """Launch options of a kernel.

    Attributes:
        rows: Tokens of a tile.
        num_warps: Warps of a program.
        num_stages: Pipeline stages.
        maxnreg: Register limit of a thread. Without it, ptxas may spill
            registers to fit a second program on the multiprocessor.
    """
    rows: int
    num_warps: int
    num_stages: int
    maxnreg: int | None


def blocks(kernel: str, head_dims: int, dtype: torch.dtype,
           gate: str) -> Blocks:
    """Return block sizes with almost no register spilling.

    Candidates were 16 to 128 tokens and 4 to 16 warps.
    """
    backward = 'backward' in kernel
    if (dtype != torch.bfloat16 or head_dims > 64
            or backward and (head_dims <= 32 or gate == 'unshared')):
        return Blocks(16, 8, 1, None if dtype == torch.float32 else 255)
    return Blocks(32, 8, 1, 255)


def in_one_launch(dtype: torch.dtype, capability: int) -> bool:
    """Return True if one program can sum a long sequence and apply the sums.

    In float32, and on devices without products of warp groups, it would spill
    registers.
    """
    return dtype != torch.float32 and capability >= 90


def accumulates(gate: str, inputs: int, head_dims: int,
                dtype: torch.dtype) -> bool:
    """Return True if the backward kernels sum the gradients of the gate.

    With more or wider gates, they would run out of registers.
    """
    return (gate == 'shared' and inputs > 1 and head_dims <= 64
            and dtype == torch.bfloat16)


class Sequences(NamedTuple):
    """Positions of the tokens of sequences among the B T H W tokens.

    Token ``j`` of sequence ``s`` is token ``s // inner * outer_stride +
    s % inner + j * token_stride``.
    """
    number: int
    length: int
    inner: int
    outer_stride: int
    token_stride: int


def sequences(pattern: str, B: int, T: int, H: int, W: int) -> Sequences:
    S = H * W
    if pattern == 'time':
        return Sequences(B * S, T, S, T * S, S)
    if pattern == 'space':
        return Sequences(B * T, S, 1, S, 1)
    return Sequences(B, T * S, 1, T * S, 1)


class Layout(NamedTuple):
    """Sizes of a launch.

    ``short`` is True if whole sequences fit a tile, ``shifts`` if there are
    folds; ``frames``, ``height`` and ``width`` are the sizes of a segment.
    """
    sequences: Sequences
    num_heads: int
    head_dims: int
    short: bool
    shifts: bool
    frames: int
    height: int
    width: int


def _layout(qkv: Tensor, num_heads: int, pattern: str, gate: str,
            folds: Sequence[int], frames: int) -> Layout:
    B, T, H, W, width = qkv.shape
    D = width // (NUM_PARTS * num_heads)
    seq = sequences(pattern, B, T, H, W)
    short = seq.length <= blocks('short_backward', D, qkv.dtype, gate).rows
    return Layout(seq, num_heads, D, short, len(folds) > 0, frames, H, W)


@functools.lru_cache(maxsize=256)
def _segments(folds: tuple[int, ...], num_heads: int, head_dims: int,
              device: torch.device) -> tuple[Tensor, Tensor, int]:
    """Split the channels of each head by the offset of their source token.

    Returns:
        A tuple of

        * segments, [n, 6]: channels [start, stop) of a head, offset in
          frames, rows and columns, and whether tokens read themselves
          outside of the clip;
        * the first segment of each head, [G + 1];
        * 8 if all starts and stops are multiples of 8, else 1.
    """
    rows: list[tuple[int, ...]] = []
    heads = [0]
    for head in range(num_heads):
        first, at = head * head_dims, 0
        for i in range(0, len(folds), 6):
            start = max(at, folds[i] - first)
            stop = min(head_dims, folds[i + 1] - first)
            if start < stop:
                if at < start:
                    rows.append((at, start, 0, 0, 0, 0))
                rows.append((start, stop, *folds[i + 2:i + 6]))
                at = stop
        if at < head_dims:
            rows.append((at, head_dims, 0, 0, 0, 0))
        heads.append(len(rows))
    aligned = all(n % 8 == 0 for row in rows for n in row[:2])
    segments, starts = (
        torch.tensor(x, dtype=torch.int32).to(device) for x in (rows, heads))
    return segments, starts, 8 if aligned else 1


def _num_processors(device: torch.device) -> int:
    if device.type == 'cuda':
        return torch.cuda.get_device_properties(device).multi_processor_count
    return 2


def _span(layout: Layout, rows: int, device: torch.device) -> int:
    """Return the tokens of a long sequence that one program sums."""
    programs = layout.sequences.number * layout.num_heads
    min_programs = FULL_A_PROCESSOR * _num_processors(device)
    spans = (1 if programs >= min_programs else
             triton.cdiv(2 * min_programs, programs))
    tiles = triton.cdiv(layout.sequences.length, rows)
    return triton.cdiv(tiles, min(spans, tiles)) * rows


def _parts(qkv: Tensor) -> tuple[Tensor, ...]:
    """Split into views of queries, keys and values.

    Kernels use only the address of their first element.
    """
    return qkv.chunk(NUM_PARTS, dim=-1)


class _Launch:
    """Arguments that several kernels of one call share."""

    def __init__(self, qkv: Tensor, q_weight: Tensor | None,
                 q_bias: Tensor | None, k_weight: Tensor | None,
                 k_bias: Tensor | None, num_heads: int, pattern: str,
                 gate: str, inputs: int, folds: Sequence[int], frames: int,
                 kernel: str, offset: float, eps: float) -> None:
        self.qkv = qkv
        self.layout = layout = _layout(qkv, num_heads, pattern, gate, folds,
                                       frames)
        self.offset = offset
        self.eps = eps
        self.gate = gate
        self.inputs = inputs
        self.map = kernel
        self.arithmetic = ARITHMETIC[qkv.dtype]
        self.weight, self.bias = self._packed(
            [x for x in (q_weight, q_bias, k_weight, k_bias) if x is not None])
        self.segments, self.heads, self.align = _segments(
            tuple(folds), layout.num_heads, layout.head_dims, qkv.device)
        self.num_tokens = qkv[..., 0].numel()

    def _packed(self, given: list[Tensor]) -> tuple[Tensor, Tensor]:
        """Stack the weights and biases of the gates.

        Returns:
            Weights, [gates, inputs, D (input channel), D], in the dtype of
            the products, and float32 biases, [gates, D].
        """
        if not given:
            return self.qkv, self.qkv
        D = self.layout.head_dims
        dtype = torch.bfloat16 if self.qkv.dtype == torch.bfloat16 \
            else torch.float32
        weight = torch.stack(given[::2]).to(dtype)
        return (weight.unflatten(2, (-1, D)).permute(0, 2, 3, 1).contiguous(),
                torch.stack(given[1::2]).float())

    def blocks(self, kernel: str) -> Blocks:
        return blocks(kernel, self.layout.head_dims, self.qkv.dtype,
                      self.gate)

    def clip(self) -> dict:
        layout = self.layout
        return dict(
            segments_ptr=self.segments,
            heads_ptr=self.heads,
            frames=layout.frames,
            height=layout.height,
            width=layout.width,
            G=layout.num_heads,
            D=layout.head_dims,
            ALIGN=self.align,
            BD=max(16, triton.next_power_of_2(layout.head_dims)))

    def products(self, kernel: str) -> dict:
        rows, num_warps, num_stages, maxnreg = self.blocks(kernel)
        return dict(
            ROWS=rows,
            DOT=self.arithmetic.dtype,
            PRECISION=self.arithmetic.precision,
            num_warps=num_warps,
            num_stages=num_stages,
            maxnreg=maxnreg)

    def attention(self, kernel: str, num_items: int) -> dict:
        seq = self.layout.sequences
        return dict(
            self.clip(),
            **self.products(kernel),
            weight_ptr=self.weight,
            bias_ptr=self.bias,
            stride=self.qkv.shape[-1],
            num_items=num_items,
            num_sequences=seq.number,
            length=seq.length,
            inner=seq.inner,
            outer_stride=seq.outer_stride,
            token_stride=seq.token_stride,
            offset=self.offset,
            eps=self.eps,
            MAP=self.map,
            GATE=self.gate,
            INPUTS=self.inputs,
            SHIFT=self.layout.shifts)

    def num_tiles(self, kernel: str) -> int:
        """Return the number of tiles of whole short sequences of one head."""
        seq = self.layout.sequences
        per_tile = self.blocks(kernel).rows // seq.length
        return triton.cdiv(seq.number, per_tile) * self.layout.num_heads

    def spans(self, kernel: str) -> tuple[int, int]:
        """Return the tokens of a span, and the number of spans of all long
        sequences and heads."""
        seq = self.layout.sequences
        span = _span(self.layout, self.blocks(kernel).rows, self.qkv.device)
        return span, (triton.cdiv(seq.length, span) * seq.number
                      * self.layout.num_heads)


@functools.cache
def _is_right_on(device: torch.device) -> bool:
    """Return True if the kernels agree with the plain code on a device.

    It runs a small case, once per process. If the results differ or a kernel
    fails, a warning is shown, and the plain code is used instead.
    """
    try:
        error = difference_from_plain(device)
    except Exception as e:
        problem = f'they fail: {type(e).__name__}: {e}'
    else:
        if error < 1e-2:
            return True
        problem = (f'they differ by {error:.1e} from the plain code in a '
                   'small case, expected less than 1e-2')
    warnings.warn('the Triton kernels of linear attention are not used on '
                  f'{torch.cuda.get_device_name(device)}: {problem}')
    return False


def difference_from_plain(device: torch.device) -> float:
    """Compare the kernels with the plain code in float64.

    Runs a case with short and one with long sequences, in bfloat16.

    Returns:
        Largest RMS difference of results and gradients, relative to the RMS
        of the plain code.
    """
    generator = torch.Generator().manual_seed(0)
    G, D = 2, 64
    folds = [0, 32, 1, 0, 0, 0, 32, 64, -1, 0, 0, 0]
    worst = 0.
    for pattern, shape in ('time', (1, 5, 3, 3)), ('space', (1, 2, 9, 5)):
        qkv, dy, weight, bias = (
            torch.randn(*size, generator=generator)
            for size in ((*shape, 3 * G * D), (*shape, G * D), (D, 3 * D),
                         (D, )))
        tensors = qkv, weight / 16, bias, None, None
        options = (G, pattern, 'shared', 3, folds, shape[1], 'relu', 0.1,
                   1e-6)
        tensors = [None if x is None else x.to(device, torch.bfloat16)
                   for x in tensors]
        dy = dy.to(device, torch.bfloat16)
        y, state = _launch_forward(*tensors, *options)
        results = y, *_launch_backward(dy, tensors[0], state, *tensors[1:],
                                       *options)[:3]
        expected = _plain_gradients(
            dy.double(), *(x if x is None else x.double() for x in tensors),
            *options)[:4]
        for x, reference in zip(results, expected):
            error = (x.double() - reference).norm() / reference.norm()
            # Treat NaN as infinite.
            worst = max(worst, error.item()) if error == error else torch.inf
    return worst


def _plain(qkv: Tensor, q_weight: Tensor | None, q_bias: Tensor | None,
           k_weight: Tensor | None, k_bias: Tensor | None, num_heads: int,
           pattern: str, gate: str, inputs: int, folds: Sequence[int],
           frames: int, kernel: str, offset: float, eps: float) -> Tensor:
    return video_linear_attention.plain(qkv, Options(
        num_heads=num_heads,
        pattern=pattern,
        folds=tuple(
            Fold(*folds[i:i + 2], tuple(folds[i + 2:i + 5]),
                 'self' if folds[i + 5] else 'zero')
            for i in range(0, len(folds), 6)),
        segment_frames=frames,
        kernel=kernel,
        offset=offset,
        gate=None if q_weight is None else Gate(
            *(None if w is None else w.to(qkv.dtype)
              for w in (q_weight, q_bias, k_weight, k_bias)),
            mode='separate' if gate == 'separate' else 'cooperative',
            inputs='qkv'[:inputs]),
        eps=eps))


def _plain_gradients(dy: Tensor, *arguments) -> tuple[Tensor, ...]:
    """Return the result, and the gradients of the first five arguments."""
    tensors = arguments[:5]
    given = [x for x in tensors if x is not None]

    def function(*given: Tensor) -> Tensor:
        rest = iter(given)
        return _plain(*(x if x is None else next(rest) for x in tensors),
                      *arguments[5:])

    # torch.autograd.grad does not work inside of an operator.
    y, gradients_of = torch.func.vjp(function, *given)
    gradients = iter(gradients_of(dy))
    return y, *(dy.new_empty(0) if x is None else next(gradients)
                for x in tensors)


def _runs_plain(x: Tensor) -> bool:
    return x.is_cuda and not torch.cuda.is_current_stream_capturing() \
        and not _is_right_on(x.device)


def _fused(qkv: Tensor, *arguments) -> tuple[Tensor, Tensor]:
    """Compute ``y`` [B, T, H, W, C], and the state of long sequences."""
    if _runs_plain(qkv):
        return _plain(qkv, *arguments), qkv.new_zeros(
            _state_shape(qkv, *arguments[4:]), dtype=torch.float32)
    return _launch_forward(qkv, *arguments)


def _fused_backward(dy: Tensor, qkv: Tensor, state: Tensor,
                    *arguments) -> tuple[Tensor, ...]:
    """Compute the gradients of the five tensors; empty ones for None."""
    if _runs_plain(qkv):
        return _plain_gradients(dy, qkv, *arguments)[1:]
    return _launch_backward(dy, qkv, state, *arguments)


def _num_gates(gate: str) -> int:
    return dict(none=0, shared=1).get(gate, 2)


def _state_shape(qkv: Tensor, num_heads: int, pattern: str, gate: str,
                 inputs: int, folds: Sequence[int], frames: int,
                 *_) -> tuple[int, ...]:
    """Return the shape of S and z, [sequences, G, D + 1, D], or (0, )."""
    layout = _layout(qkv, num_heads, pattern, gate, folds, frames)
    D = layout.head_dims
    return (0, ) if layout.short else (layout.sequences.number, num_heads,
                                       D + 1, D)


def _launch_forward(qkv: Tensor, *arguments) -> tuple[Tensor, Tensor]:
    qkv = qkv.contiguous()
    launch = _Launch(qkv, *arguments)
    y = qkv.new_empty(*qkv.shape[:-1], qkv.shape[-1] // NUM_PARTS)
    q, k, v = _parts(qkv)
    if launch.layout.short:
        state = qkv.new_empty(0, dtype=torch.float32)
        num_items = launch.num_tiles('short_forward')
        kernels.short_forward[(num_items, )](
            q, k, v, y, **launch.attention('short_forward', num_items))
        return y, state
    span, num_items = launch.spans('long_forward')
    shape = _state_shape(qkv, *arguments[4:])
    splits = num_items // (shape[0] * shape[1])
    sums = qkv.new_empty(splits, *shape, dtype=torch.float32)
    arguments = dict(launch.attention('long_forward', num_items), span=span)

    def run(state: Tensor, sums: bool, apply: bool) -> None:
        kernels.long_forward[(num_items, )](
            q, k, v, y, state, SUM=sums, APPLY=apply, **arguments)

    if splits == 1 and in_one_launch(
            qkv.dtype, capability(qkv.device)):
        run(sums, True, True)
        return y, sums[0]
    run(sums, True, False)
    state = sums.sum(0)
    run(state, False, True)
    return y, state


def _launch_backward(dy: Tensor, qkv: Tensor, state: Tensor,
                     *arguments) -> tuple[Tensor, ...]:
    qkv, dy = qkv.contiguous(), dy.contiguous()
    launch = _Launch(qkv, *arguments)
    layout, gate, inputs = launch.layout, launch.gate, launch.inputs
    name = 'short_backward' if layout.short else 'long_backward'
    accumulate = accumulates(gate, inputs, layout.head_dims, qkv.dtype)
    C = layout.num_heads * layout.head_dims
    D = layout.head_dims
    d_qkv = torch.empty_like(qkv)
    parts, d_parts = _parts(qkv), _parts(d_qkv)
    # Kernels get any tensor for outputs that they do not write.
    shifted = logits = weights = d_qkv
    if layout.shifts:
        shifted = qkv.new_empty(*qkv.shape[:-1], 2 * C)
    num_gates = _num_gates(gate)
    if num_gates and not accumulate:
        logits = qkv.new_empty(*qkv.shape[:-1], num_gates * C)

    # 1. Gradients of queries, keys and values, and of the gates' logits.
    if layout.short:
        num_items = launch.num_tiles(name)
    else:
        span, num_items = launch.spans(name)
    programs = num_items
    if accumulate:
        programs = min(num_items, PROGRAMS_A_PROCESSOR
                       * _num_processors(qkv.device))
        weights = qkv.new_empty(programs, inputs * D + 1, D,
                                dtype=torch.float32)
    options = launch.attention(name, num_items)
    outputs = dict(
        zip(('dq_ptr', 'dk_ptr', 'dv_ptr'), d_parts), shifted_ptr=shifted,
        logits_ptr=logits, weights_ptr=weights)
    if layout.short:
        kernels.short_backward[(programs, )](
            *parts, dy, **outputs, **options, ACCUMULATE=accumulate)
    else:
        splits = num_items // (state.shape[0] * state.shape[1])
        sums = qkv.new_empty(splits, *state.shape, dtype=torch.float32)

        def run(grid: int, d_state: Tensor, sum_up: bool, apply: bool) -> None:
            kernels.long_backward[(grid, )](
                *parts, state, dy, dstate_ptr=d_state, SUM=sum_up,
                APPLY=apply, ACCUMULATE=accumulate and apply, span=span,
                **outputs, **options)

        if splits == 1 and in_one_launch(
            qkv.dtype, capability(qkv.device)):
            run(programs, sums, True, True)
        else:
            run(num_items, sums, True, False)
            run(programs, sums.sum(0), False, True)

    # 2. Move the gradients of shifted keys and values to their tokens.
    if layout.shifts:
        rows = launch.blocks('unshift').rows
        kernels.unshift[(triton.cdiv(launch.num_tokens, rows)
                         * layout.num_heads, )](
            shifted, *d_parts[1:], stride=qkv.shape[-1],
            num_tokens=launch.num_tokens, ROWS=rows, num_warps=4,
            **launch.clip())

    # 3. Gradients of the gates' weights and biases.
    if accumulate:
        total = weights.sum(0)
        gates = [(total[:-1], total[-1])]
    else:
        gates = [
            _gate_gradients(launch, logits, g, num_gates,
                            (g, ) if gate == 'separate' else range(inputs))
            for g in range(num_gates)
        ]
    results = []
    for (of_weight, of_bias), weight, bias in zip(
            gates, arguments[0:4:2], arguments[1:4:2]):
        of_weight = of_weight.unflatten(0, (-1, D)).permute(2, 0, 1)
        results += [of_weight.reshape(D, -1).to(weight.dtype).contiguous(),
                    of_bias.to(bias.dtype, copy=True)]
    results += [qkv.new_empty(0) for _ in range(4 - len(results))]
    return d_qkv, *results


def _gate_gradients(launch: _Launch, logits: Tensor, gate: int,
                    num_gates: int,
                    inputs: Sequence[int]) -> tuple[Tensor, Tensor]:
    """Compute the gradients of a gate's weight and bias.

    Returns:
        [I D (input channel), D] and [D].
    """
    layout = launch.layout
    D = layout.head_dims
    C = layout.num_heads * D
    products = launch.products('gate_gradient')
    items = triton.cdiv(launch.num_tokens, products['ROWS']) \
        * layout.num_heads
    programs = min(items, PROGRAMS_A_PROCESSOR
                   * _num_processors(logits.device))
    of_weight = []
    for part in inputs:
        sums = logits.new_empty(programs, D + 1, D, dtype=torch.float32)
        kernels.gate_gradient[(programs, )](
            _parts(launch.qkv)[part],
            logits[..., gate * C:],
            sums,
            stride=launch.qkv.shape[-1],
            logits_stride=num_gates * C,
            num_tokens=launch.num_tokens,
            offset=0. if part == 2 else launch.offset,
            MAP='identity' if part == 2 else launch.map,
            SHIFT=part > 0 and layout.shifts,
            **launch.clip(),
            **products)
        *weight, of_bias = sums.sum(0).split((D, 1))
        of_weight += weight
    return torch.cat(of_weight), of_bias[0]


OPTIONS = ('int num_heads, str pattern, str gate, int inputs, int[] folds, '
           'SymInt frames, str kernel, float offset, float eps')
WEIGHTS = ('Tensor? q_weight, Tensor? q_bias, Tensor? k_weight, '
           'Tensor? k_bias')

fused = torch.library.custom_op(
    'mmvidattn::video_linear_attention', _fused, mutates_args=(),
    schema=f'(Tensor qkv, {WEIGHTS}, {OPTIONS}) -> (Tensor, Tensor)')
fused_backward = torch.library.custom_op(
    'mmvidattn::video_linear_attention_backward', _fused_backward,
    mutates_args=(),
    schema=f'(Tensor dy, Tensor qkv, Tensor state, {WEIGHTS}, {OPTIONS}) -> '
    '(Tensor, Tensor, Tensor, Tensor, Tensor)')


@fused.register_fake
def _(qkv: Tensor, *arguments) -> tuple[Tensor, Tensor]:
    y = qkv.new_empty(*qkv.shape[:-1], qkv.shape[-1] // NUM_PARTS)
    return y, qkv.new_empty(_state_shape(qkv, *arguments[4:]),
                            dtype=torch.float32)


@fused_backward.register_fake
def _(dy: Tensor, qkv: Tensor, state: Tensor, *arguments):
    return torch.empty_like(qkv), *(
        qkv.new_empty(0) if x is None else torch.empty_like(x)
        for x in arguments[:4])


def _keep(ctx, inputs: tuple, output: tuple[Tensor, Tensor]) -> None:
    ctx.save_for_backward(inputs[0], output[1], *inputs[1:5])
    ctx.options = inputs[5:]
    ctx.mark_non_differentiable(output[1])


def _gradients(ctx, dy: Tensor, _) -> tuple[Tensor | None, ...]:
    tensors = ctx.saved_tensors
    gradients = fused_backward(dy, *tensors, *ctx.options)
    given = tensors[0], *tensors[2:]
    return *(None if x is None else g for x, g in zip(given, gradients)), \
        *(None for _ in ctx.options)


fused.register_autograd(_gradients, setup_context=_keep)


def _flops(qkv_shape: torch.Size, inputs: int, gate: str, num_heads: int,
           pattern: str) -> int:
    """Count the FLOPs of the products of the forward pass."""
    B, T, H, W, width = qkv_shape
    D = width // (NUM_PARTS * num_heads)
    tokens = B * T * H * W * num_heads
    num_gates = _num_gates(gate)
    length = sequences(pattern, B, T, H, W).length
    attention = 2 * min(length, D) * D
    return 2 * tokens * (num_gates * inputs * D * D + attention)


@register_flop_formula(torch.ops.mmvidattn.video_linear_attention)
def _forward_flops(qkv_shape: torch.Size, q_weight, q_bias, k_weight, k_bias,
                   num_heads: int, pattern: str, gate: str, inputs: int,
                   *args, out_shape=None, **kwargs) -> int:
    return _flops(qkv_shape, inputs, gate, num_heads, pattern)


@register_flop_formula(torch.ops.mmvidattn.video_linear_attention_backward)
def _backward_flops(dy_shape: torch.Size, qkv_shape: torch.Size, state_shape,
                    q_weight, q_bias, k_weight, k_bias, num_heads: int,
                    pattern: str, gate: str, inputs: int, *args,
                    out_shape=None, **kwargs) -> int:
    return 2 * _flops(qkv_shape, inputs, gate, num_heads, pattern)
