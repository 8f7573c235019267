# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Draw attention matrices, and attention over the frames of a video.

    python tools/analysis/attention_map.py VIDEO --model CONFIG:CHECKPOINT \\
        --model OTHER_CONFIG:CHECKPOINT

The image has a row for each model, like Fig. 2 of the feature fixation paper:
the attention matrix of the sequence that contains the token, and the weights
of the token's keys in the frames, with a box around the token. The program
prints the mean entropy of the matrix's rows, in nats and divided by the
logarithm of the number of keys (1: uniform). Without a checkpoint, a model has
random weights, and its attention is meaningless.
"""
import math
import sys
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from torch import Tensor, nn

from mmvidattn.layers import VideoSelfAttention
from mmvidattn.utils.exits import one_line_errors

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from tools.analysis import clips

# Maximum number of drawn rows, and number of drawn frames.
MAX_ROWS, FRAMES = 512, 5
# Quantile of the weights that gets the brightest color.
BRIGHTEST = 0.995
INCHES = 2.4
Token = tuple[int, int, int]


class Captured(NamedTuple):
    """Inputs of the attention in a :class:`VideoSelfAttention`."""
    module: nn.Module
    # Shape (T, H, W) of its tokens, and (h, w) of the patches among them.
    grid: Token
    patches: tuple[int, int]
    # q, k and v [S, N, G, D] of the S sequences of the first clip.
    inputs: tuple[Tensor, Tensor, Tensor]
    # Axes of N and of M if the attention needs them, else empty.
    shapes: tuple[tuple[int, ...], ...]


def capture(model: nn.Module, module: nn.Module, inputs: Tensor) -> Captured:
    """Run the model, and keep the inputs of one of its attentions."""
    if module.pattern == 'causal':
        raise ValueError('--layer must not be a causal attention')
    grids, calls = [], []

    def keep_call(_, args: tuple) -> None:
        # With one sequence per clip, the axis of sequences is missing.
        first = slice(0, 1) if args[0].dim() == 4 else 0
        calls.append((tuple(x[first] for x in args[:3]), args[3:]))

    module.register_forward_pre_hook(
        lambda _, args: grids.append(tuple(args[0].shape[1:4])))
    module.attention.register_forward_pre_hook(keep_call)
    with torch.no_grad():
        model(inputs, mode='tensor', stage='backbone')
    _, H, W = grids[0]
    if W == 1:
        # A column that may begin with class tokens.
        rows = int((H * inputs.shape[-2] / inputs.shape[-1])**.5)
        return Captured(module, grids[0], (rows, H // rows), *calls[0])
    return Captured(module, grids[0], (H, W), *calls[0])


def attention_rows(captured: Captured, sequence: int,
                   queries: Tensor) -> Tensor:
    """Compute the rows [R, G, M] of R queries in an attention ``y = A v``.

    If an attention is linear in its values (softmax, factorized, landmarks),
    the row of a query is the gradient of the query's output with respect to
    the values. One backward pass computes D rows, because it uses each of the
    D channels for a different query.
    """
    q, k, v = (x[sequence:sequence + 1].detach() for x in captured.inputs)
    v.requires_grad_()
    attention, rows = captured.module.attention, []
    with torch.enable_grad():
        y = attention(q, k, v, *captured.shapes)
    for block in queries.to(y.device).split(y.shape[-1]):
        channels = torch.arange(len(block), device=y.device)
        grad_y = torch.zeros_like(y)
        grad_y[0, block, :, channels] = 1
        grad, = torch.autograd.grad(y, v, grad_y, retain_graph=True)
        rows.append(grad[0, ..., :len(block)].movedim(-1, 0).mT)
        got = torch.einsum('rgm,mgd->rgd', rows[-1], v[0].detach())
        want = y[0, block].detach()
        if (got - want).norm() > torch.finfo(y.dtype).eps**.5 * want.norm():
            raise ValueError(f'{type(attention).__name__} does not compute an '
                             'attention matrix times the values')
    return torch.cat(rows)


def locate(captured: Captured, token: Token) -> tuple[int, int]:
    """Return the indices of a patch's sequence and of its query."""
    (T, H, W), (h, w), (t, y, x) = captured.grid, captured.patches, token
    if not (0 <= t < T and 0 <= y < h and 0 <= x < w):
        raise ValueError('--token must be inside of the clip, (T, Y, X) = '
                         f'{(T, h, w)}, got {token}')
    # Class tokens come first.
    place = H * W - h * w + y * w + x
    return {'time': (place, t), 'joint': (0, t * H * W + place)}.get(
        captured.module.pattern, (t, place))


def volume(captured: Captured, sequence: int, row: Tensor) -> Tensor:
    """Place a row [M] at its patches in [T, h, w]; NaN elsewhere."""
    (T, H, W), (h, w) = captured.grid, captured.patches
    result = row.new_full((T, H * W), torch.nan)
    pattern = captured.module.pattern
    if pattern == 'time':
        result[:, sequence] = row
    elif pattern == 'joint':
        result[:] = row.view(T, -1)
    elif pattern == 'space':
        result[sequence] = row
    else:
        frames = captured.module._window(T, row.device)[sequence]
        result[frames] = row.view(-1, H * W)
    return result[:, -h * w:].view(T, h, w)


def entropy_of(rows: Tensor) -> Tensor:
    """Return the entropy of rows [*, M] in nats, [*], by magnitudes."""
    share = rows.float().abs()
    return torch.special.entr(share / share.sum(-1, keepdim=True)).sum(-1)


def draw_row(axes, title: str, matrix: np.ndarray, frames: np.ndarray,
             weights: np.ndarray, token: Token) -> None:
    """Draw a matrix [R, M], and weights [T, h, w] over the frames."""
    axes[0].imshow(matrix, aspect='auto', vmin=min(0, matrix.min()),
                   vmax=np.quantile(matrix, BRIGHTEST))
    axes[0].set_title(title, fontsize=8, parse_math=False)
    known = np.flatnonzero(np.isfinite(weights).any((1, 2)))
    shown = {token[0], *known[np.linspace(0, len(known) - 1, FRAMES - 1
                                          ).round().astype(int)]}
    height, width = frames.shape[1:3]
    rows, columns = height / weights.shape[1], width / weights.shape[2]
    for axis, t in zip(axes[1:], sorted(shown)):
        # A tubelet covers several frames.
        axis.imshow(frames[t * len(frames) // len(weights)])
        axis.imshow(np.ma.masked_invalid(weights[t]), cmap='inferno',
                    alpha=.65, vmin=0, vmax=np.nanmax(weights),
                    extent=(0, width, height, 0))
        axis.set_title(f't = {t}', fontsize=8)
        if t == token[0]:
            axis.add_patch(Rectangle(
                (token[2] * columns, token[1] * rows), columns, rows,
                fill=False, edgecolor='cyan'))
        axis.set_axis_off()
    for axis in axes[1 + len(shown):]:
        axis.set_visible(False)


def main() -> None:
    parser = clips.make_parser(__doc__, 'attention_map.png')
    parser.add_argument('--layer', help='name of an attention in the backbone '
                        '(default: the last one)')
    parser.add_argument('--token', type=int, nargs=3, metavar=('T', 'Y', 'X'),
                        help='frame, row and column of the query (default: '
                        'the center of the clip)')
    args = parser.parse_args()
    figure = Figure(figsize=(INCHES * (FRAMES + 1), INCHES * len(args.model)),
                    layout='constrained')
    grid = figure.subplots(len(args.model), FRAMES + 1, squeeze=False)
    with one_line_errors():
        for axes, text in zip(grid, args.model):
            name, model = clips.load_model(text, args)
            attention = clips.find_layer(model, args.layer, VideoSelfAttention)
            frames, inputs = clips.read_clip(model, args.video)
            captured = capture(model, attention, inputs)
            shape = captured.grid[0], *captured.patches
            token = tuple(args.token or (n // 2 for n in shape))
            # Means of the heads.
            sequence, query = locate(captured, token)
            N = captured.inputs[0].shape[1]
            queries = torch.linspace(0, N - 1, min(N, MAX_ROWS)).round().long()
            *rows, row = attention_rows(captured, sequence, torch.cat(
                [queries, torch.tensor([query])])).mean(1)
            rows = torch.stack(rows)
            entropy = entropy_of(rows).nanmean().item()
            share = entropy / max(math.log(rows.shape[1]), 1e-12)
            title = f'{name}: entropy {entropy:.3f} nats, {share:.3f} of log M'
            print(title)
            draw_row(axes, title.replace(': ', '\n'), rows.cpu().numpy(),
                     frames, volume(captured, sequence, row).cpu().numpy(),
                     token)
        args.out.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(args.out, dpi=100, bbox_inches='tight')


if __name__ == '__main__':
    main()
