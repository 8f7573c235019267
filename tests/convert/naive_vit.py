# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Blocks of a vision transformer, from tensors by role and block number."""
import torch.nn.functional as F

D, HEADS, LAYERS = 12, 3, 2


def layer_norm(net, name, x, eps):
    return F.layer_norm(x, (D, ), net[f'{name}.weight'], net[f'{name}.bias'],
                        eps)


def run_blocks(net, x, gelu, eps):
    """Apply all blocks to tokens [N, n, D].

    A block i has the layers norm1, qkv or q, k and v, proj, norm2, fc1 and
    fc2, such as ``proj0.weight``, and optionally LayerScales ``scale10``.
    """

    def linear(x, name):
        return F.linear(x, net[f'{name}.weight'], net.get(f'{name}.bias'))

    for i in range(LAYERS):
        y = layer_norm(net, f'norm1{i}', x, eps)
        if f'qkv{i}.weight' in net:
            q, k, v = linear(y, f'qkv{i}').chunk(3, -1)
        else:
            q, k, v = (linear(y, f'{part}{i}') for part in 'qkv')
        q, k, v = (z.unflatten(-1, (HEADS, -1)).transpose(1, 2)
                   for z in (q, k, v))
        y = (q @ k.mT / (D // HEADS)**0.5).softmax(-1) @ v
        y = linear(y.transpose(1, 2).flatten(2), f'proj{i}')
        x = x + y * net.get(f'scale1{i}', 1)
        y = linear(layer_norm(net, f'norm2{i}', x, eps), f'fc1{i}')
        x = x + linear(gelu(y), f'fc2{i}') * net.get(f'scale2{i}', 1)
    return x
