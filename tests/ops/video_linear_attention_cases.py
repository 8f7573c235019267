# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Reference of video linear attention, for the plain code and the kernels."""
import torch

from mmvidattn.ops.feature_fixation import Gate
from mmvidattn.ops.shift import naive_neighbor_shift


def ratio(inputs, weight, bias, aggregate='concat'):
    """Compute feature fixation by tanh, which never overflows."""
    x = torch.cat(inputs, dim=-1)
    if aggregate == 'add':
        weight = weight.repeat(1, len(inputs))
    elif aggregate == 'mul':
        x = torch.stack(inputs).prod(dim=0)
    return (1 + torch.tanh((x @ weight.T + bias) / 2)) / 2


def naive(qkv, *, num_heads, pattern, folds=(), segment_frames=None,
          kernel='relu', offset=0., gate=None, eps=1e-6):
    """Evaluate the formulas head by head, in the dtype of the tensors."""
    B, T, H, W, width = qkv.shape
    C = width // 3
    frames = segment_frames or T
    q, k, v = qkv.split(C, dim=-1)
    k, v = (naive_neighbor_shift(
        x.reshape(-1, frames, H, W, C), folds).reshape(B, T, H, W, C)
        for x in (k, v))
    maps = {
        'relu': lambda x: x * (x > 0),
        'elu+1': lambda x: torch.where(x > 0, x + 1, x.clamp(max=0).exp()),
        'sigmoid': lambda x: 1 / (1 + (-x).exp()),
        'identity': lambda x: x
    }
    axes = dict(time=(0, 2, 3, 1), space=(0, 1, 2, 3), joint=(0, 1, 2, 3))
    lengths = dict(time=T, space=H * W, joint=T * H * W)
    rows = []
    for head in range(num_heads):
        part = slice(head * C // num_heads, (head + 1) * C // num_heads)
        a, c, w = (x[..., part].permute(*axes[pattern], 4).reshape(
            -1, lengths[pattern], C // num_heads) for x in (q, k, v))
        a, c = maps[kernel](a) + offset, maps[kernel](c) + offset
        if gate is not None:
            if gate.mode == 'separate':
                a_ratio = ratio((a, ), *gate[:2])
                c_ratio = ratio((c, ), *gate[2:4])
            else:
                inputs = (a, c, w)[:len(gate.inputs)]
                a_ratio = c_ratio = ratio(inputs, *gate[:2], gate.aggregate)
                if gate.k_weight is not None:
                    c_ratio = ratio(inputs, *gate[2:4], gate.aggregate)
            a, c = a * a_ratio, c * c_ratio
        scores = torch.einsum('lid,ljd->lij', a, c)
        y = torch.einsum('lij,lje->lie', scores, w) / (
            scores.sum(-1, keepdim=True) + eps)
        if pattern == 'time':
            y = y.reshape(B, H, W, T, -1).permute(0, 3, 1, 2, 4)
        rows.append(y.reshape(B, T, H, W, -1))
    return torch.cat(rows, dim=-1)


def case(shape, num_heads, head_dims, gate=None, dtype=torch.float64, seed=0):
    """Return random tokens and a random gate."""
    generator = torch.Generator().manual_seed(seed)

    def new(*size):
        return torch.randn(*size, generator=generator, dtype=torch.float64)

    qkv = new(*shape, 3 * num_heads * head_dims)
    if gate is None:
        return qkv.to(dtype), None
    mode, inputs, aggregate, shared = dict(
        shared=('cooperative', 'qkv', 'concat', True),
        qk=('cooperative', 'qk', 'concat', True),
        unshared=('cooperative', 'qkv', 'concat', False),
        separate=('separate', 'qk', 'concat', False),
        add=('cooperative', 'qkv', 'add', True),
        mul=('cooperative', 'qkv', 'mul', True))[gate]
    num_inputs = len(inputs) if (mode, aggregate) == (
        'cooperative', 'concat') else 1
    maps = [x for _ in range(1 if shared else 2)
            for x in (new(head_dims, num_inputs * head_dims) / head_dims**.5,
                      new(head_dims) / 2)]
    maps += [None] * (4 - len(maps))
    return qkv.to(dtype), Gate(
        *(None if x is None else x.to(dtype) for x in maps), mode, inputs,
        aggregate)
