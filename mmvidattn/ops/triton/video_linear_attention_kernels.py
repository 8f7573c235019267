# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Kernels of linear attention with feature fixation and shifted tokens.

The forward pass of one sequence and head, for tokens i, with mapped queries
``q' = map(q)``, mapped keys ``k' = map(k)`` and values ``v``; k and v are
shifted::

    gamma = sigmoid([q'; k'; v] W^T + b)     a_i = gamma q'   c_i = gamma k'
    y_i = a_i S / (a_i z + eps)              S = sum_j c_j^T v_j, z = sum_j c_j

Its backward pass, given ``dy``, with ``n_i = dy_i / (a_i z + eps)``::

    dden_i = -(n_i S^T) a_i / (a_i z + eps)
    da_i = n_i S^T + dden_i z                dS = sum_i a_i^T n_i
    dc_j = v_j dS^T + dz                     dz = sum_i dden_i a_i
    dv_j = c_j dS

followed by the derivatives of gate, map and shift.

Short sequences, of at most ``ROWS`` tokens, are packed into tiles and attend
within them, ``(a c^T) v`` under a mask. Long sequences use S and z: one
program reads a sequence twice, or, if there are too few sequences to fill the
device, several programs read it in each of two launches, and their partial
sums are added in a fixed order.

The rows of a tile are tokens p = (b T + t) H W + s, the columns are the
channels of a head. ``GATE`` is a name from
:func:`mmvidattn.ops.feature_fixation.gate_kind`.
"""
import triton
import triton.language as tl

# Triton's interpreter truncates float32 to bfloat16, where a device rounds,
# and multiplies bfloat16 as integers.
INTERPRETED = tl.constexpr(triton.knobs.runtime.interpret)


@triton.jit
def _to(x, DTYPE: tl.constexpr):
    """Round float32 ``x`` to ``DTYPE``."""
    if INTERPRETED and DTYPE == tl.bfloat16:
        bits = x.to(tl.int32, bitcast=True)
        bits = (bits + 0x7fff + ((bits >> 16) & 1)) & -0x10000
        x = tl.where(x == x, bits.to(tl.float32, bitcast=True), x)
    return x.to(DTYPE)


@triton.jit
def _mapped(x, offset, MAP: tl.constexpr):
    if MAP == 'relu':
        x = tl.maximum(x, 0., propagate_nan=tl.PropagateNan.ALL)
    elif MAP == 'elu+1':
        x = tl.where(x > 0, x + 1, tl.exp(tl.minimum(
            x, 0., propagate_nan=tl.PropagateNan.ALL)))
    elif MAP == 'sigmoid':
        x = tl.sigmoid(x)
    return x + offset


@triton.jit
def _slope(x, MAP: tl.constexpr):
    """Derivative of the map at ``x``."""
    if MAP == 'relu':
        slope = tl.where(x > 0, 1., 0.)
    elif MAP == 'elu+1':
        slope = tl.where(x > 0, 1., tl.exp(tl.minimum(
            x, 0., propagate_nan=tl.PropagateNan.ALL)))
    elif MAP == 'sigmoid':
        y = tl.sigmoid(x)
        slope = y * (1 - y)
    else:
        slope = tl.full(x.shape, 1., tl.float32)
    return slope


@triton.jit
def _source(p, rows, segment, clip, SIGN: tl.constexpr):
    """Find the token at ``SIGN`` times a segment's offset from each token p.

    Returns:
        The token, or p itself where that is outside of the clip; and whether
        it is inside.
    """
    segments_ptr, _, frames, height, width = clip
    t = p // (height * width) % frames
    s = p % (height * width)
    dt = SIGN * tl.load(segments_ptr + 6 * segment + 2)
    dy = SIGN * tl.load(segments_ptr + 6 * segment + 3)
    dx = SIGN * tl.load(segments_ptr + 6 * segment + 4)
    ft = t + dt
    fy = s // width + dy
    fx = s % width + dx
    inside = (rows & (ft >= 0) & (ft < frames) & (fy >= 0) & (fy < height)
              & (fx >= 0) & (fx < width))
    step = (dt * height + dy) * width + dx
    return p + tl.where(inside, step, 0), inside


@triton.jit
def _segment(segment, clip, ALIGN: tl.constexpr):
    """Load a segment: channels [start, stop) of a head with one offset.

    Returns:
        start, stop, whether the offset is not zero, and whether tokens read
        themselves where the source is outside of the clip.
    """
    at = clip[0] + 6 * segment
    start = tl.multiple_of(tl.load(at), ALIGN)
    stop = tl.multiple_of(tl.load(at + 1), ALIGN)
    moved = (tl.load(at + 2) != 0) | (tl.load(at + 3) != 0) | (
        tl.load(at + 4) != 0)
    return start, stop, moved, tl.load(at + 5) != 0


@triton.jit
def _read(ptr, p, valid, channels, stride):
    """Load channels of tokens in float32, [ROWS, BD]; zero if not valid."""
    at = p.to(tl.int64)[:, None] * stride + channels[None, :]
    return tl.load(ptr + at, mask=valid, other=0.).to(tl.float32)


@triton.jit
def _read_shifted(ptr, p, rows, head, d, D, stride, clip,
                  ALIGN: tl.constexpr):
    """Load channels like :func:`_read`, at the offsets of the segments."""
    first = tl.load(clip[1] + head)
    last = tl.load(clip[1] + head + 1)
    x = tl.zeros([p.shape[0], d.shape[0]], tl.float32)
    for segment in range(first, last):
        start, stop, _, keeps = _segment(segment, clip, ALIGN)
        source, inside = _source(p, rows, segment, clip, 1)
        valid = (rows & (inside | keeps))[:, None] & (
            (d >= start) & (d < stop))[None, :]
        x += _read(ptr, source, valid, head * D + d, stride)
    return x


@triton.jit
def _write(ptr, p, valid, channels, stride, x):
    at = p.to(tl.int64)[:, None] * stride + channels[None, :]
    tl.store(ptr + at, _to(x, ptr.dtype.element_ty), mask=valid)


@triton.jit
def _dot(x, y, DOT: tl.constexpr, PRECISION: tl.constexpr):
    if x.dtype != DOT:
        x = _to(x, DOT)
    if y.dtype != DOT:
        y = _to(y, DOT)
    if INTERPRETED:
        x, y = x.to(tl.float32), y.to(tl.float32)
    return tl.dot(x, y, input_precision=PRECISION, out_dtype=tl.float32)


@triton.jit
def _part(weight_ptr, index, D, d, columns):
    """Load the weight [D, D] of a gate and an input from all weights.

    Returns:
        [input channel, output channel].
    """
    at = index * D * D + d[:, None] * D + d[None, :]
    return tl.load(weight_ptr + at, mask=columns[:, None] & columns[None, :],
                   other=0.)


@triton.jit
def _logits(q, k, v, gate, NUMBER: tl.constexpr, D, d, columns,
            INPUTS: tl.constexpr, DOT: tl.constexpr, PRECISION: tl.constexpr):
    """Compute the logits of gate ``NUMBER`` (0 or 1) from 1 to 3 inputs."""
    weight_ptr, bias_ptr = gate
    x = _dot(q, _part(weight_ptr, NUMBER * INPUTS, D, d, columns), DOT,
             PRECISION)
    if INPUTS > 1:
        x += _dot(k, _part(weight_ptr, NUMBER * INPUTS + 1, D, d, columns),
                  DOT, PRECISION)
    if INPUTS > 2:
        x += _dot(v, _part(weight_ptr, NUMBER * INPUTS + 2, D, d, columns),
                  DOT, PRECISION)
    bias = tl.load(bias_ptr + NUMBER * D + d, mask=columns, other=0.)
    return x + bias[None, :]


@triton.jit
def _tokens(p, rows, head, d, columns, D, qkv, stride, clip, gate, offset,
            MAP: tl.constexpr, GATE: tl.constexpr, INPUTS: tl.constexpr,
            SHIFT: tl.constexpr, ALIGN: tl.constexpr, DOT: tl.constexpr,
            PRECISION: tl.constexpr):
    """Load tokens and compute their logits.

    Returns:
        Mapped queries, mapped keys, values, logits of the ratios of queries
        and logits of the ratios of keys, [ROWS, BD] each.
    """
    q_ptr, k_ptr, v_ptr = qkv
    channels = head * D + d
    valid = rows[:, None] & columns[None, :]
    q = _read(q_ptr, p, valid, channels, stride)
    if SHIFT:
        k = _read_shifted(k_ptr, p, rows, head, d, D, stride, clip, ALIGN)
        v = _read_shifted(v_ptr, p, rows, head, d, D, stride, clip, ALIGN)
    else:
        k = _read(k_ptr, p, valid, channels, stride)
        v = _read(v_ptr, p, valid, channels, stride)
    q = tl.where(valid, _mapped(q, offset, MAP), 0.)
    k = tl.where(valid, _mapped(k, offset, MAP), 0.)
    if GATE == 'none':
        of_q, of_k = q, k
    elif GATE == 'separate':
        of_q = _logits(q, q, q, gate, 0, D, d, columns, 1, DOT, PRECISION)
        of_k = _logits(k, k, k, gate, 1, D, d, columns, 1, DOT, PRECISION)
    else:
        of_q = _logits(q, k, v, gate, 0, D, d, columns, INPUTS, DOT,
                       PRECISION)
        of_k = of_q
        if GATE == 'unshared':
            of_k = _logits(q, k, v, gate, 1, D, d, columns, INPUTS, DOT,
                           PRECISION)
    return q, k, v, of_q, of_k


@triton.jit
def _gated(x, logits, GATE: tl.constexpr):
    if GATE != 'none':
        x *= tl.sigmoid(logits)
    return x


@triton.jit
def _rounded(x, DOT: tl.constexpr):
    """Round ``x`` as a product in DOT does; return it in float32."""
    return _to(x, DOT).to(tl.float32)


@triton.jit
def _packed(item, i, num_sequences, length, G, layout, ROWS: tl.constexpr):
    """Locate the rows of a tile of whole sequences.

    Returns:
        The head; for each row the sequence, the token, and whether the row
        holds a token.
    """
    inner, outer_stride, token_stride = layout
    head = item % G
    tile = item // G
    per_tile = ROWS // length
    sequence = tile * per_tile + i // length
    rows = (i < per_tile * length) & (sequence < num_sequences)
    p = sequence // inner * outer_stride + sequence % inner \
        + i % length * token_stride
    return head, sequence, tl.where(rows, p, 0), rows


@triton.jit
def short_forward(q_ptr, k_ptr, v_ptr, y_ptr, weight_ptr, bias_ptr,
                  segments_ptr, heads_ptr, stride, num_items, num_sequences,
                  length, inner, outer_stride, token_stride, frames, height,
                  width, G, D, offset, eps, MAP: tl.constexpr,
                  GATE: tl.constexpr, INPUTS: tl.constexpr,
                  SHIFT: tl.constexpr, ALIGN: tl.constexpr, ROWS: tl.constexpr,
                  BD: tl.constexpr, DOT: tl.constexpr,
                  PRECISION: tl.constexpr):
    """Write ``y = (a c^T) v / (a z + eps)`` of tiles of whole sequences."""
    i = tl.arange(0, ROWS)
    d = tl.arange(0, BD)
    columns = d < D
    C = G * D
    clip = (segments_ptr, heads_ptr, frames, height, width)
    gate = (weight_ptr, bias_ptr)
    layout = (inner, outer_stride, token_stride)
    for item in range(tl.program_id(0), num_items, tl.num_programs(0)):
        head, sequence, p, rows = _packed(item, i, num_sequences, length, G,
                                          layout, ROWS)
        q, k, v, of_q, of_k = _tokens(
            p, rows, head, d, columns, D, (q_ptr, k_ptr, v_ptr), stride, clip,
            gate, offset, MAP, GATE, INPUTS, SHIFT, ALIGN, DOT, PRECISION)
        scores = _dot(_gated(q, of_q, GATE),
                      tl.trans(_gated(k, of_k, GATE)), DOT, PRECISION)
        scores = tl.where(sequence[:, None] == sequence[None, :], scores, 0.)
        scores = _rounded(scores, DOT)
        y = _dot(scores, v, DOT, PRECISION)
        y /= (tl.sum(scores, 1) + eps)[:, None]
        _write(y_ptr, p, rows[:, None] & columns[None, :], head * D + d, C, y)


@triton.jit
def long_forward(q_ptr, k_ptr, v_ptr, y_ptr, state_ptr, weight_ptr, bias_ptr,
                 segments_ptr, heads_ptr, stride, num_items, num_sequences,
                 length, inner, outer_stride, token_stride, frames, height,
                 width, G, D, offset, eps, span, MAP: tl.constexpr,
                 GATE: tl.constexpr, INPUTS: tl.constexpr, SHIFT: tl.constexpr,
                 ALIGN: tl.constexpr, SUM: tl.constexpr, APPLY: tl.constexpr,
                 ROWS: tl.constexpr, BD: tl.constexpr, DOT: tl.constexpr,
                 PRECISION: tl.constexpr):
    """Sum S and z over spans of tokens (``SUM``), and apply them (``APPLY``).

    An item is a span of a sequence and head; items are ordered by span, then
    sequence, then head. ``SUM`` writes S and z to ``state`` [spans, L, G,
    D + 1, D], S first. Without ``SUM`` they are read from ``state``
    [L, G, D + 1, D].
    """
    i = tl.arange(0, ROWS)
    d = tl.arange(0, BD)
    columns = d < D
    square = columns[:, None] & columns[None, :]
    C = G * D
    clip = (segments_ptr, heads_ptr, frames, height, width)
    gate = (weight_ptr, bias_ptr)
    for item in range(tl.program_id(0), num_items, tl.num_programs(0)):
        head = item % G
        sequence = item // G % num_sequences
        start = item // (G * num_sequences) * span
        stop = tl.minimum(start + span, length)
        first = sequence // inner * outer_stride + sequence % inner
        if SUM:
            state = state_ptr + item * tl.full([], D + 1, tl.int64) * D
            S = tl.zeros([BD, BD], tl.float32)
            z = tl.zeros([BD], tl.float32)
            for at in range(start, stop, ROWS):
                rows = at + i < stop
                p = tl.where(rows, first + (at + i) * token_stride, 0)
                q, k, v, of_q, of_k = _tokens(
                    p, rows, head, d, columns, D, (q_ptr, k_ptr, v_ptr),
                    stride, clip, gate, offset, MAP, GATE, INPUTS, SHIFT,
                    ALIGN, DOT, PRECISION)
                c = _rounded(_gated(k, of_k, GATE), DOT)
                S += _dot(tl.trans(c), v, DOT, PRECISION)
                z += tl.sum(c, 0)
            tl.store(state + d[:, None] * D + d[None, :], S, mask=square)
            tl.store(state + D * D + d, z, mask=columns)
        else:
            state = state_ptr + (item % (G * num_sequences)) * tl.full(
                [], D + 1, tl.int64) * D
            S = tl.load(state + d[:, None] * D + d[None, :], mask=square,
                        other=0.)
            z = tl.load(state + D * D + d, mask=columns, other=0.)
        if APPLY:
            for at in range(start, stop, ROWS):
                rows = at + i < stop
                p = tl.where(rows, first + (at + i) * token_stride, 0)
                q, k, v, of_q, of_k = _tokens(
                    p, rows, head, d, columns, D, (q_ptr, k_ptr, v_ptr),
                    stride, clip, gate, offset, MAP, GATE, INPUTS, SHIFT,
                    ALIGN, DOT, PRECISION)
                a = _rounded(_gated(q, of_q, GATE), DOT)
                denominator = tl.sum(a * z[None, :], 1) + eps
                y = _dot(a, S, DOT, PRECISION) / denominator[:, None]
                _write(y_ptr, p, rows[:, None] & columns[None, :],
                       head * D + d, C, y)


@triton.jit
def _of_logits(q, k, of_q, of_k, da, dc, GATE: tl.constexpr):
    """Return the gradients of the logits of both gates."""
    if GATE == 'none':
        q_logits, k_logits = da, dc
    else:
        q_logits = da * q * (tl.sigmoid(of_q) * tl.sigmoid(-of_q))
        k_logits = dc * k * (tl.sigmoid(of_k) * tl.sigmoid(-of_k))
        if GATE == 'shared':
            q_logits += k_logits
    return q_logits, k_logits


@triton.jit
def _through_gate(x, PART: tl.constexpr, q_logits, k_logits, gate, D, d,
                  columns, GATE: tl.constexpr, INPUTS: tl.constexpr,
                  DOT: tl.constexpr, PRECISION: tl.constexpr):
    """Add the gradient through the gates to the one of q, k or v (0, 1, 2)."""
    weight_ptr, _ = gate
    if GATE == 'separate':
        if PART < 2:
            x += _dot(k_logits if PART else q_logits, tl.trans(_part(
                weight_ptr, PART, D, d, columns)), DOT, PRECISION)
    elif GATE != 'none' and PART < INPUTS:
        x += _dot(q_logits, tl.trans(_part(
            weight_ptr, PART, D, d, columns)), DOT, PRECISION)
        if GATE == 'unshared':
            x += _dot(k_logits, tl.trans(_part(
                weight_ptr, INPUTS + PART, D, d, columns)), DOT, PRECISION)
    return x


@triton.jit
def _write_shifted(ptr, buffer_ptr, p, rows, head, d, D, C, stride, clip, x,
                   ALIGN: tl.constexpr):
    """Write gradients; those for other tokens go to a buffer."""
    first = tl.load(clip[1] + head)
    last = tl.load(clip[1] + head + 1)
    for segment in range(first, last):
        start, stop, moved, _ = _segment(segment, clip, ALIGN)
        valid = rows[:, None] & ((d >= start) & (d < stop))[None, :]
        if moved:
            _write(buffer_ptr, p, valid, head * D + d, 2 * C, x)
        else:
            _write(ptr, p, valid, head * D + d, stride, x)


@triton.jit
def _write_gradients(da, dc, dv, of_q, of_k, q_logits, k_logits, p, rows,
                     head, d, columns, D, C, qkv, outputs, stride, clip, gate,
                     MAP: tl.constexpr, GATE: tl.constexpr,
                     INPUTS: tl.constexpr, SHIFT: tl.constexpr,
                     ALIGN: tl.constexpr, ACCUMULATE: tl.constexpr,
                     DOT: tl.constexpr, PRECISION: tl.constexpr):
    """Write the gradients of queries, keys, values and logits.

    Reads queries and keys again instead of keeping them in registers.
    """
    q_ptr, k_ptr, _ = qkv
    dq_ptr, dk_ptr, dv_ptr, shifted_ptr, logits_ptr = outputs
    channels = head * D + d
    valid = rows[:, None] & columns[None, :]
    dv = _through_gate(dv, 2, q_logits, k_logits, gate, D, d, columns, GATE,
                       INPUTS, DOT, PRECISION)
    if SHIFT:
        _write_shifted(dv_ptr, shifted_ptr + C, p, rows, head, d, D, C,
                       stride, clip, dv, ALIGN)
    else:
        _write(dv_ptr, p, valid, channels, stride, dv)
    dk = _through_gate(_gated(dc, of_k, GATE), 1, q_logits, k_logits, gate, D,
                       d, columns, GATE, INPUTS, DOT, PRECISION)
    if SHIFT:
        k = _read_shifted(k_ptr, p, rows, head, d, D, stride, clip, ALIGN)
        _write_shifted(dk_ptr, shifted_ptr, p, rows, head, d, D, C, stride,
                       clip, dk * _slope(k, MAP), ALIGN)
    else:
        k = _read(k_ptr, p, valid, channels, stride)
        _write(dk_ptr, p, valid, channels, stride, dk * _slope(k, MAP))
    dq = _through_gate(_gated(da, of_q, GATE), 0, q_logits, k_logits, gate, D,
                       d, columns, GATE, INPUTS, DOT, PRECISION)
    q = _read(q_ptr, p, valid, channels, stride)
    _write(dq_ptr, p, valid, channels, stride, dq * _slope(q, MAP))
    if GATE == 'shared' and not ACCUMULATE:
        _write(logits_ptr, p, valid, channels, C, q_logits)
    elif GATE != 'none' and not ACCUMULATE:
        _write(logits_ptr, p, valid, channels, 2 * C, q_logits)
        _write(logits_ptr + C, p, valid, channels, 2 * C, k_logits)


@triton.jit
def short_backward(q_ptr, k_ptr, v_ptr, dy_ptr, dq_ptr, dk_ptr, dv_ptr,
                   shifted_ptr, logits_ptr, weights_ptr, weight_ptr, bias_ptr,
                   segments_ptr, heads_ptr, stride, num_items, num_sequences,
                   length, inner, outer_stride, token_stride, frames, height,
                   width, G, D, offset, eps, MAP: tl.constexpr,
                   GATE: tl.constexpr, INPUTS: tl.constexpr,
                   SHIFT: tl.constexpr, ALIGN: tl.constexpr,
                   ACCUMULATE: tl.constexpr, ROWS: tl.constexpr,
                   BD: tl.constexpr, DOT: tl.constexpr,
                   PRECISION: tl.constexpr):
    """Write the gradients of :func:`short_forward`.

    ``ACCUMULATE`` writes the gradients of the gate's weight and bias, one sum
    for each program, [programs, INPUTS D + 1, D]; otherwise the gradients of
    the logits are written. The products that these gradients are computed from
    have at least the precision of TF32, because their terms cancel.
    """
    SUMS: tl.constexpr = 'tf32' if PRECISION == 'ieee' else PRECISION
    i = tl.arange(0, ROWS)
    d = tl.arange(0, BD)
    columns = d < D
    C = G * D
    clip = (segments_ptr, heads_ptr, frames, height, width)
    gate = (weight_ptr, bias_ptr)
    outputs = (dq_ptr, dk_ptr, dv_ptr, shifted_ptr, logits_ptr)
    layout = (inner, outer_stride, token_stride)
    if ACCUMULATE:
        of_weight_q = tl.zeros([BD, BD], tl.float32)
        of_weight_k = tl.zeros([BD, BD], tl.float32)
        of_weight_v = tl.zeros([BD, BD], tl.float32)
        of_bias = tl.zeros([BD], tl.float32)
    for item in range(tl.program_id(0), num_items, tl.num_programs(0)):
        head, sequence, p, rows = _packed(item, i, num_sequences, length, G,
                                          layout, ROWS)
        q, k, v, of_q, of_k = _tokens(
            p, rows, head, d, columns, D, (q_ptr, k_ptr, v_ptr), stride, clip,
            gate, offset, MAP, GATE, INPUTS, SHIFT, ALIGN, DOT, PRECISION)
        valid = rows[:, None] & columns[None, :]
        dy = _read(dy_ptr, p, valid,
                   head * D + d, C)
        same = sequence[:, None] == sequence[None, :]
        scores = _dot(_gated(q, of_q, GATE),
                      tl.trans(_gated(k, of_k, GATE)), DOT, PRECISION)
        scores = tl.where(same, scores, 0.)
        denominator = tl.sum(scores, 1) + eps
        of_scores = _dot(dy, tl.trans(v), DOT, PRECISION) \
            / denominator[:, None]
        scores /= denominator[:, None]
        of_scores -= tl.sum(scores * of_scores, 1)[:, None]
        of_scores = tl.where(same, of_scores, 0.)
        dv = _dot(tl.trans(scores), dy, DOT, PRECISION)
        da = _dot(of_scores, _gated(k, of_k, GATE), tl.float32, SUMS)
        dc = _dot(tl.trans(of_scores), _gated(q, of_q, GATE), tl.float32,
                  SUMS)
        q_logits, k_logits = _of_logits(q, k, of_q, of_k, da, dc, GATE)
        if ACCUMULATE:
            of_weight_q += _dot(tl.trans(q), q_logits, DOT, PRECISION)
            of_weight_k += _dot(tl.trans(k), q_logits, DOT, PRECISION)
            if INPUTS > 2:
                of_weight_v += _dot(tl.trans(v), q_logits, DOT, PRECISION)
            of_bias += tl.sum(q_logits, 0)
        _write_gradients(
            da, dc, dv, of_q, of_k, q_logits, k_logits, p, rows, head, d,
            columns, D, C, (q_ptr, k_ptr, v_ptr), outputs, stride, clip,
            gate, MAP, GATE, INPUTS, SHIFT, ALIGN, ACCUMULATE, DOT,
            PRECISION)
    if ACCUMULATE:
        _write_sums(weights_ptr, of_weight_q, of_weight_k, of_weight_v,
                    of_bias, d, columns, D, INPUTS)


@triton.jit
def long_backward(q_ptr, k_ptr, v_ptr, state_ptr, dy_ptr, dq_ptr, dk_ptr,
                  dv_ptr, dstate_ptr, shifted_ptr, logits_ptr, weights_ptr,
                  weight_ptr, bias_ptr, segments_ptr, heads_ptr, stride,
                  num_items, num_sequences, length, inner, outer_stride,
                  token_stride, frames, height, width, G, D, offset, eps, span,
                  MAP: tl.constexpr, GATE: tl.constexpr, INPUTS: tl.constexpr,
                  SHIFT: tl.constexpr, ALIGN: tl.constexpr, SUM: tl.constexpr,
                  APPLY: tl.constexpr, ACCUMULATE: tl.constexpr,
                  ROWS: tl.constexpr, BD: tl.constexpr, DOT: tl.constexpr,
                  PRECISION: tl.constexpr):
    """Write the gradients of :func:`long_forward`.

    ``state`` is [L, G, D + 1, D]. Items, ``SUM`` and ``APPLY`` mean the same
    as in :func:`long_forward`, for dS and dz in ``dstate``. ``ACCUMULATE`` and
    TF32 are described in :func:`short_backward`.
    """
    SUMS: tl.constexpr = 'tf32' if PRECISION == 'ieee' else PRECISION
    i = tl.arange(0, ROWS)
    d = tl.arange(0, BD)
    columns = d < D
    square = columns[:, None] & columns[None, :]
    C = G * D
    clip = (segments_ptr, heads_ptr, frames, height, width)
    gate = (weight_ptr, bias_ptr)
    outputs = (dq_ptr, dk_ptr, dv_ptr, shifted_ptr, logits_ptr)
    if ACCUMULATE:
        of_weight_q = tl.zeros([BD, BD], tl.float32)
        of_weight_k = tl.zeros([BD, BD], tl.float32)
        of_weight_v = tl.zeros([BD, BD], tl.float32)
        of_bias = tl.zeros([BD], tl.float32)
    for item in range(tl.program_id(0), num_items, tl.num_programs(0)):
        head = item % G
        sequence = item // G % num_sequences
        start = item // (G * num_sequences) * span
        stop = tl.minimum(start + span, length)
        first = sequence // inner * outer_stride + sequence % inner
        at_state = item % (G * num_sequences) * tl.full(
            [], D + 1, tl.int64) * D
        state = state_ptr + at_state
        S = tl.load(state + d[:, None] * D + d[None, :], mask=square,
                    other=0.)
        z = tl.load(state + D * D + d, mask=columns, other=0.)
        if SUM:
            dstate = dstate_ptr + item * tl.full([], D + 1, tl.int64) * D
            dS = tl.zeros([BD, BD], tl.float32)
            dz = tl.zeros([BD], tl.float32)
            for at in range(start, stop, ROWS):
                rows = at + i < stop
                p = tl.where(rows, first + (at + i) * token_stride, 0)
                q, k, v, of_q, of_k = _tokens(
                    p, rows, head, d, columns, D, (q_ptr, k_ptr, v_ptr),
                    stride, clip, gate, offset, MAP, GATE, INPUTS, SHIFT,
                    ALIGN, DOT, PRECISION)
                a, dy, denominator, _, d_denominator = _of_queries(
                    dy_ptr, p, rows, head, d, columns, D, C,
                    _gated(q, of_q, GATE), S, z, eps, DOT, SUMS)
                dS += _dot(tl.trans(a / denominator[:, None]), dy,
                           tl.float32, SUMS)
                dz += tl.sum(d_denominator[:, None] * a, 0)
            if not APPLY:
                tl.store(dstate + d[:, None] * D + d[None, :], dS,
                         mask=square)
                tl.store(dstate + D * D + d, dz, mask=columns)
        else:
            dstate = dstate_ptr + at_state
            dS = tl.load(dstate + d[:, None] * D + d[None, :], mask=square,
                         other=0.)
            dz = tl.load(dstate + D * D + d, mask=columns, other=0.)
        if APPLY:
            for at in range(start, stop, ROWS):
                rows = at + i < stop
                p = tl.where(rows, first + (at + i) * token_stride, 0)
                q, k, v, of_q, of_k = _tokens(
                    p, rows, head, d, columns, D, (q_ptr, k_ptr, v_ptr),
                    stride, clip, gate, offset, MAP, GATE, INPUTS, SHIFT,
                    ALIGN, DOT, PRECISION)
                _, _, _, of_a, d_denominator = _of_queries(
                    dy_ptr, p, rows, head, d, columns, D, C,
                    _gated(q, of_q, GATE), S, z, eps, DOT, SUMS)
                da = of_a + d_denominator[:, None] * z[None, :]
                dc = _dot(v, tl.trans(dS), tl.float32, SUMS) + dz[None, :]
                dv = _dot(_gated(k, of_k, GATE), dS, DOT, PRECISION)
                q_logits, k_logits = _of_logits(q, k, of_q, of_k, da, dc, GATE)
                if ACCUMULATE:
                    of_weight_q += _dot(tl.trans(q), q_logits, DOT, PRECISION)
                    of_weight_k += _dot(tl.trans(k), q_logits, DOT, PRECISION)
                    if INPUTS > 2:
                        of_weight_v += _dot(tl.trans(v), q_logits, DOT,
                                            PRECISION)
                    of_bias += tl.sum(q_logits, 0)
                _write_gradients(
                    da, dc, dv, of_q, of_k, q_logits, k_logits, p, rows, head,
                    d, columns, D, C, (q_ptr, k_ptr, v_ptr), outputs, stride,
                    clip, gate, MAP, GATE, INPUTS, SHIFT, ALIGN, ACCUMULATE,
                    DOT, PRECISION)
    if ACCUMULATE:
        _write_sums(weights_ptr, of_weight_q, of_weight_k, of_weight_v,
                    of_bias, d, columns, D, INPUTS)


@triton.jit
def _of_queries(dy_ptr, p, rows, head, d, columns, D, C, a, S, z, eps,
                DOT: tl.constexpr, SUMS: tl.constexpr):
    """Compute the terms of the backward pass that belong to queries.

    It multiplies by ``dy``, which the dtype DOT represents exactly, and
    divides afterwards; the quotient ``n`` would be rounded.

    Returns:
        Rounded ``a``, ``dy``, the denominator, ``n S^T`` and the gradient of
        the denominator.
    """
    dy = _read(dy_ptr, p, rows[:, None] & columns[None, :], head * D + d, C)
    a = _rounded(a, DOT)
    denominator = tl.sum(a * z[None, :], 1) + eps
    of_a = _dot(dy, tl.trans(S), tl.float32, SUMS) / denominator[:, None]
    return a, dy, denominator, of_a, -tl.sum(of_a * a, 1) / denominator


@triton.jit
def _write_sums(ptr, of_weight_q, of_weight_k, of_weight_v, of_bias, d,
                columns, D, INPUTS: tl.constexpr):
    square = columns[:, None] & columns[None, :]
    ptr += tl.program_id(0).to(tl.int64) * (INPUTS * D + 1) * D
    at = d[:, None] * D + d[None, :]
    tl.store(ptr + at, of_weight_q, mask=square)
    tl.store(ptr + D * D + at, of_weight_k, mask=square)
    if INPUTS > 2:
        tl.store(ptr + 2 * D * D + at, of_weight_v, mask=square)
    tl.store(ptr + INPUTS * D * D + d, of_bias, mask=columns)


@triton.jit
def gate_gradient(x_ptr, logits_ptr, sums_ptr, segments_ptr, heads_ptr,
                  stride, logits_stride, num_tokens, frames, height, width, G,
                  D, offset, MAP: tl.constexpr, SHIFT: tl.constexpr,
                  ALIGN: tl.constexpr, ROWS: tl.constexpr, BD: tl.constexpr,
                  DOT: tl.constexpr, PRECISION: tl.constexpr):
    """Sum the gradients of a gate's weight for one input, and of its bias.

    Reads the gradients of the logits, and writes one sum for each program,
    [programs, D + 1, D].
    """
    i = tl.arange(0, ROWS)
    d = tl.arange(0, BD)
    columns = d < D
    clip = (segments_ptr, heads_ptr, frames, height, width)
    of_weight = tl.zeros([BD, BD], tl.float32)
    of_bias = tl.zeros([BD], tl.float32)
    num_items = tl.cdiv(num_tokens, ROWS) * G
    for item in range(tl.program_id(0), num_items, tl.num_programs(0)):
        head = item % G
        p = item // G * ROWS + i
        rows = p < num_tokens
        p = tl.where(rows, p, 0)
        valid = rows[:, None] & columns[None, :]
        if SHIFT:
            x = _read_shifted(x_ptr, p, rows, head, d, D, stride, clip, ALIGN)
        else:
            x = _read(x_ptr, p, valid, head * D + d, stride)
        x = tl.where(valid, _mapped(x, offset, MAP), 0.)
        d_logits = _read(logits_ptr, p, valid, head * D + d, logits_stride)
        of_weight += _dot(tl.trans(x), d_logits, DOT, PRECISION)
        of_bias += tl.sum(d_logits, 0)
    sums_ptr += tl.program_id(0).to(tl.int64) * (D + 1) * D
    tl.store(sums_ptr + d[:, None] * D + d[None, :], of_weight,
             mask=columns[:, None] & columns[None, :])
    tl.store(sums_ptr + D * D + d, of_bias, mask=columns)


@triton.jit
def unshift(shifted_ptr, dk_ptr, dv_ptr, segments_ptr, heads_ptr, stride,
            num_tokens, frames, height, width, G, D, ALIGN: tl.constexpr,
            ROWS: tl.constexpr, BD: tl.constexpr):
    """Move the gradients of shifted keys and values to their source tokens.

    The gradients are [tokens, 2, C].
    """
    C = G * D
    head = tl.program_id(0) % G
    p = tl.program_id(0) // G * ROWS + tl.arange(0, ROWS)
    d = tl.arange(0, BD)
    rows = p < num_tokens
    clip = (segments_ptr, heads_ptr, frames, height, width)
    first = tl.load(heads_ptr + head)
    last = tl.load(heads_ptr + head + 1)
    for segment in range(first, last):
        start, stop, moved, keeps = _segment(segment, clip, ALIGN)
        if moved:
            columns = ((d >= start) & (d < stop))[None, :]
            reader, is_read = _source(p, rows, segment, clip, -1)
            _, reads = _source(p, rows, segment, clip, 1)
            is_read = is_read[:, None] & columns
            reads_itself = (rows & keeps & (reads == 0))[:, None] & columns
            channels = head * D + d
            for part in tl.static_range(2):
                ptr = shifted_ptr + part * C
                x = _read(ptr, reader, is_read, channels, 2 * C)
                x += _read(ptr, p, reads_itself, channels, 2 * C)
                _write(dk_ptr if part == 0 else dv_ptr, p,
                       rows[:, None] & columns, channels, stride, x)
