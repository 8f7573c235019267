# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""MiniROAD against a naive reference."""
import torch
import torch.nn.functional as F
from helpers import relative
from online.networks import small_detector, video_of


def naive_miniroad(weights, video):
    """Compute one frame, layer and gate at a time."""
    def parts(module, *names):
        return [weights[f'{module}.{name}'] for name in names]

    rows = torch.cat([video['rgb'], video['flow']], dim=1)
    rows = F.linear(rows, *parts('projection.projection', 'weight', 'bias'))
    rows = F.layer_norm(rows, rows.shape[1:],
                        *parts('projection.norm', 'weight', 'bias')).relu()
    for layer in range(2):
        w, u, b, c = (x.chunk(3) for x in parts(
            'gru', f'weight_ih_l{layer}', f'weight_hh_l{layer}',
            f'bias_ih_l{layer}', f'bias_hh_l{layer}'))
        h, outputs = rows.new_zeros(len(c[0])), []
        for x in rows:
            r = torch.sigmoid(w[0] @ x + b[0] + u[0] @ h + c[0])
            z = torch.sigmoid(w[1] @ x + b[1] + u[1] @ h + c[1])
            n = torch.tanh(w[2] @ x + b[2] + r * (u[2] @ h + c[2]))
            h = (1 - z) * n + z * h
            outputs.append(h)
        rows = torch.stack(outputs)
    return rows.relu()


@torch.no_grad()
def test_matches_naive():
    model = small_detector('MiniROAD', num_layers=2, proj_dims=12)
    # Longer than a window.
    video = video_of(model, 14)
    want = naive_miniroad(dict(model.backbone.named_parameters()), video)
    got = model.backbone({name: x[None] for name, x in video.items()})[0]
    assert relative(got, want) < 1e-12
