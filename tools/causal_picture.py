# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Draw the two recurrences of causal video networks.

    python tools/causal_picture.py docs/causal.png

Left: linear attention with decay, whose state consists of two sums. Right:
softmax attention to the latest frames, whose state consists of these frames.
The lower panels show the weight of each earlier frame in the result of each
frame, computed by the ops.
"""
import argparse
import sys
from pathlib import Path

import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from torch import Tensor

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from mmvidattn.layers import FrameDecay
from mmvidattn.ops import (
    frame_causal_linear_attention,
    frame_causal_softmax_attention,
)

FRAMES, WINDOW, HALF_LIFE = 16, 4, 4.


def frame_weights() -> tuple[Tensor, Tensor]:
    """Return the weights of frames for equal keys: linear and softmax.

    Returns:
        Two matrices [T, T]: row t has the weights for frame t.
    """
    # With one-hot values, the result of attention is its weights.
    v = torch.eye(FRAMES, dtype=torch.float64).view(1, FRAMES, 1, 1, FRAMES)
    k = torch.ones(1, FRAMES, 1, 1, 1, dtype=torch.float64)
    rate = FrameDecay(1, (HALF_LIFE, HALF_LIFE), learned=False)()
    linear, _ = frame_causal_linear_attention(k, k, v, rate)
    softmax, _ = frame_causal_softmax_attention(k, k, v, WINDOW)
    return linear.view(FRAMES, FRAMES), softmax.view(FRAMES, FRAMES)


def _box(axes: Axes, x: float, y: float, text: str, color: str) -> None:
    axes.text(x, y, text, ha='center', va='center', fontsize=10,
              bbox=dict(boxstyle='round,pad=0.35', facecolor=color,
                        edgecolor='0.3'))


def _arrow(axes: Axes, start: tuple[float, float], end: tuple[float, float],
           text: str = '', offset: tuple[float, float] = (0, 0),
           shrink: int = 16) -> None:
    axes.annotate('', end, start, arrowprops=dict(
        arrowstyle='->', color='0.3', shrinkA=shrink, shrinkB=shrink))
    axes.text((start[0] + end[0]) / 2 + offset[0],
              (start[1] + end[1]) / 2 + offset[1], text, ha='center',
              va='center', fontsize=9)


def _draw_sums(axes: Axes) -> None:
    """Draw the sums of three frames."""
    for i, time in enumerate(('t-2', 't-1', 't')):
        x = 1.3 * i
        _box(axes, x, 0, f'frame ${time}$', 'white')
        _box(axes, x, 1, f'$S_{{{time}}}, z_{{{time}}}$', '#cfe2f3')
        _box(axes, x, 2, f'$y_{{{time}}}$', '#d9ead3')
        _arrow(axes, (x, 0), (x, 1), r'$+\,\phi(k)^T v$' if i else '',
               (.34, -.06))
        _arrow(axes, (x, 1), (x, 2))
        if i:
            _arrow(axes, (x - 1.3, 1), (x, 1), r'$\times\,\lambda$',
                   (0, .2), shrink=36)
    axes.text(1.95, 1.55, r'$y = \phi(q)S\ /\ \phi(q)z$', fontsize=9,
              ha='center')


def _draw_window(axes: Axes) -> None:
    """Draw the frames of a window of four."""
    for i, time in enumerate(('t-3', 't-2', 't-1', 't')):
        x = .85 * i
        _box(axes, x, 0, f'${time}$', 'white')
        _box(axes, x, 1, f'$k, v_{{{time}}}$', '#fce5cd')
        _arrow(axes, (x, 0), (x, 1))
        _arrow(axes, (x, 1), (2.55, 2))
    _box(axes, 2.55, 2, '$y_t$', '#d9ead3')
    axes.text(.45, 1.75, 'softmax over\n$W$ frames', fontsize=9, ha='center',
              va='center')


def draw() -> Figure:
    """Draw the recurrences above the weights of frames."""
    figure = Figure(figsize=(9, 7), layout='constrained')
    panels = figure.subplots(2, 2, height_ratios=(3, 4))
    for axes, paint, title in zip(panels[0], (_draw_sums, _draw_window), (
            'Linear attention: the state are two sums',
            f'Softmax attention: the state are $W - 1$ frames ($W$ = {WINDOW})'
    )):
        paint(axes)
        axes.set_title(title, fontsize=11)
        axes.set_xlim(-.5, 3.2)
        axes.set_ylim(-.4, 2.5)
        axes.axis('off')
    for axes, weights, title in zip(panels[1], frame_weights(), (
            f'half-life {HALF_LIFE:g} frames', f'{WINDOW} frames')):
        shown = axes.imshow(weights.numpy(), cmap='Blues', vmin=0, vmax=.5)
        axes.set_title(f'Weight of each frame, {title}', fontsize=10)
        axes.set_xlabel('frame that is read')
        axes.set_ylabel('frame that reads')
    figure.colorbar(shown, ax=panels[1], shrink=.8, label='weight')
    return figure


def parse_args() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('out', type=Path, help='file of the picture')
    return parser.parse_args()


def main() -> None:
    draw().savefig(parse_args().out, dpi=100, metadata=dict(Software=None))


if __name__ == '__main__':
    main()
