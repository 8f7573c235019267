# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Draw attention matrices, and attention over the frames of a video."""
import argparse
import json
import logging
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from mmengine.logging import MMLogger
from torch import Tensor, nn

from ..apis import get_model
from ..apis.runner import one_line_errors
from ..layers import VideoSelfAttention
from ..utils.printable import echo
from ..version import __version__
from ..visualization.attention_map import (
    Overlay,
    draw_matrices,
    draw_overlays,
)
from ..visualization.attention_rows import (
    CapturedAttention,
    capture_attention,
    row_entropy,
)
from .clips import named_model, read_clip

# Config options of the four models in Fig. 2 of the feature fixation paper.
VARIANTS = dict(
    linear={'model.backbone.fixation': None},
    separate={'model.backbone.fixation': dict(
        _delete_=True, mode='separate')},
    cooperative={'model.backbone.fixation': dict(
        _delete_=True, mode='cooperative', inputs='qkv', shared=True)},
    softmax={'model.backbone.fixation': None,
             'model.backbone.attention': dict(
                 _delete_=True, type='SoftmaxAttention')})
PAPER_LAYER = 11

MAX_COLUMNS = 1024
TOP_KEYS = 5
Token = tuple[int, int, int]


class Source(NamedTuple):
    """Model to draw."""
    name: str
    config: str
    checkpoint: str | None
    options: dict[str, Any]


def find_sources(args: argparse.Namespace) -> list[Source]:
    sources = []
    variants = args.variants or ([] if args.config else VARIANTS)
    for text in variants:
        name, checkpoint = named_model(text)
        if name not in VARIANTS:
            raise ValueError(
                f'--variants must be in {", ".join(VARIANTS)}, got {name!r}')
        sources.append(
            Source(name, args.base, checkpoint, VARIANTS[name]))
    for text in args.config:
        config, checkpoint = named_model(text)
        sources.append(Source(Path(config).stem, config, checkpoint, {}))
    return sources


def find_attention(model: nn.Module, pattern: str,
                   layer: int | None) -> tuple[VideoSelfAttention, int]:
    """Return the attention of a layer, and the number of the layer."""
    attentions = [
        m for m in model.backbone.modules()
        if isinstance(m, VideoSelfAttention)
    ]
    layers = [m for m in attentions if m.pattern == pattern]
    if not layers:
        patterns = sorted({m.pattern for m in attentions})
        raise ValueError(
            '--pattern must be a pattern of the backbone '
            f'({", ".join(patterns) or "none"}), got {pattern}')
    layer = min(PAPER_LAYER, len(layers)) if layer is None else layer
    if not 1 <= layer <= len(layers):
        raise ValueError(f'--layer must be from 1 to {len(layers)}, '
                         f'got {layer}')
    return layers[layer - 1], layer


def pick_head(rows: Tensor, head: str) -> Tensor:
    """Select a head, or average the heads: [R, G, M] to [R, M]."""
    if head == 'mean':
        return rows.mean(1)
    if not (head.isdigit() and int(head) < rows.shape[1]):
        raise ValueError(f"--head must be 'mean' or from 0 to "
                         f'{rows.shape[1] - 1}, got {head!r}')
    return rows[:, int(head)]


def patch_extent(model: nn.Module,
                 frames: np.ndarray) -> tuple[float, float, float, float]:
    """Return the ``extent`` of an :class:`Overlay`."""
    patch_embed = model.backbone.patch_embed
    projection = patch_embed.projection
    edges = []
    for axis, patches in zip((-1, -2),
                             patch_embed.grid_of(frames.shape[1:3])[::-1]):
        first = projection.kernel_size[axis] / 2 - projection.padding[axis]
        stride = projection.stride[axis]
        start = first - stride / 2
        edges += [start, start + stride * patches]
    return tuple(edges)


class Patches:
    """Patches among the captured tokens, which may include class tokens.

    Args:
        captured: Attention over a grid [T, h, w] of patches or, with a class
            token per frame, over a column [T, 1 + h w, 1].
        shape: Rows and columns (h, w) of the patches.
    """

    def __init__(self, captured: CapturedAttention,
                 shape: tuple[int, int]) -> None:
        T, rows, columns = captured.grid_shape
        self.captured = captured
        self.shape = (T, *shape)
        self.num_extra = rows * columns - shape[0] * shape[1]

    def locate(self, token: Token) -> tuple[int, int]:
        """Return the indices of a patch's sequence and of its query."""
        if any(not 0 <= i < n for i, n in zip(token, self.shape)):
            raise ValueError('--tokens must be inside of the clip, (T, Y, X) '
                             f'= {self.shape}, got {token}')
        t, y, x = token
        if self.num_extra:
            y, x = self.num_extra + y * self.shape[2] + x, 0
        return self.captured.locate((t, y, x))

    def volume(self, sequence: int, row: Tensor) -> np.ndarray:
        """Place the weights of a row [M] at their patches, [T, h, w]."""
        volume = self.captured.volume(sequence, row).flatten(1)
        return volume[:, self.num_extra:].reshape(self.shape).cpu().numpy()


def mean_of(values: Tensor) -> float | None:
    """Return the mean of all values that are not nan."""
    mean = values.nanmean().item()
    return mean if np.isfinite(mean) else None


def matrix_of(captured: CapturedAttention, sequence: int, head: str,
              max_rows: int) -> tuple[np.ndarray, dict]:
    """Compute rows to draw, [R, at most MAX_COLUMNS], and statistics."""
    N = captured.q.shape[1]
    queries = torch.linspace(0, N - 1, min(N, max_rows)).round().long()
    drawn, entropies, of_heads = [], [], []
    negative, total = 0., 0.
    for rows in captured.iter_rows(sequence, queries):
        of_heads.append(row_entropy(rows)[0])
        rows = pick_head(rows, head)
        entropies.append(torch.stack(row_entropy(rows)))
        negative += rows.clamp(max=0).abs().sum().item()
        total += rows.abs().sum().item()
        columns = min(rows.shape[-1], MAX_COLUMNS)
        drawn.append(F.adaptive_avg_pool1d(rows, columns).cpu())
    entropy, normalized = torch.cat(entropies, 1)
    figures = dict(
        sequence=sequence, rows=len(queries), queries=N,
        keys=captured.k.shape[1], entropy_nats=mean_of(entropy),
        entropy_normalised=mean_of(normalized),
        entropy_nats_of_heads=[mean_of(x) for x in torch.cat(of_heads).T],
        rows_without_weight=int(entropy.isnan().sum()),
        negative_share=negative / total if total else None)
    return torch.cat(drawn).numpy(), figures


def token_row(patches: Patches, token: Token,
              head: str) -> tuple[np.ndarray, dict]:
    """Compute the weights [T, h, w] of a token's keys, and statistics."""
    sequence, query = patches.locate(token)
    rows, = patches.captured.iter_rows(sequence, torch.tensor([query]))
    row = pick_head(rows, head)[0]
    volume = patches.volume(sequence, row)
    entropy, normalized = map(mean_of, row_entropy(row))
    top = np.where(np.isnan(volume), -np.inf, volume).ravel().argsort()[::-1]
    keys = [
        dict(token=[int(i) for i in np.unravel_index(at, volume.shape)],
             weight=float(volume.flat[at]))
        for at in top[:min(TOP_KEYS, np.isfinite(volume).sum())]]
    return volume, dict(token=token, entropy_nats=entropy,
                        entropy_normalised=normalized, top_keys=keys)


def analyze(source: Source, args: argparse.Namespace
            ) -> tuple[dict, np.ndarray, list[Overlay]]:
    """Return statistics, matrix and overlays of a model."""
    torch.manual_seed(0)
    model = get_model(
        source.config, source.checkpoint, args.device,
        {**source.options, **(args.cfg_options or {})})
    attention, layer = find_attention(model, args.pattern, args.layer)
    frames, data = read_clip(model, args.video)
    inputs = model.data_preprocessor(data)['inputs']
    captured = capture_attention(
        model, attention, inputs, mode='tensor', stage='backbone')
    patches = Patches(captured,
                      model.backbone.patch_embed.grid_of(frames.shape[1:3]))
    tokens = args.tokens or [tuple(n // 2 for n in patches.shape)]
    sequence, _ = patches.locate(tokens[0])
    matrix, figures = matrix_of(captured, sequence, args.head, args.max_rows)
    extent = patch_extent(model, frames)
    overlays, of_tokens = [], []
    for token in tokens:
        volume, of_token = token_row(patches, token, args.head)
        of_tokens.append(of_token)
        overlays.append(Overlay(source.name, frames, volume, token, extent))
    result = dict(
        name=source.name, config=str(source.config),
        checkpoint=source.checkpoint,
        attention=type(attention.attention).__name__,
        fixation=attention.fixation and attention.fixation.mode, layer=layer,
        grid_shape=patches.shape, matrix=figures, tokens=of_tokens)
    return result, matrix, overlays


def describe(figures: dict) -> str:
    if figures['entropy_nats'] is None:
        return 'no weights'
    return (f'entropy {figures["entropy_nats"]:.3f} nats, '
            f'{figures["entropy_normalised"]:.3f} of log M')


def run(args: argparse.Namespace) -> None:
    # Silence mmengine's warnings about its own deprecated calls.
    MMLogger.get_current_instance().setLevel(logging.ERROR)
    with one_line_errors():
        results, matrices, overlays = zip(*(
            analyze(source, args) for source in find_sources(args)))
    # 1. Draw the matrices.
    head = 'mean of heads' if args.head == 'mean' else f'head {args.head}'
    caption = f'{args.video.name}, attention in {args.pattern}, {head}'
    titles = []
    for result in results:
        weights = '' if result['checkpoint'] else ', random weights'
        title = f'{result["name"]}, layer {result["layer"]}{weights}'
        echo(f'{title}: {describe(result["matrix"])}')
        titles.append(f'{title}\n{describe(result["matrix"])}')
    files = [args.out / 'matrices.png']
    draw_matrices(files[0], matrices, titles, caption)
    # 2. Draw the overlays of each token.
    for token_overlays in zip(*overlays):
        token = token_overlays[0].token
        files.append(args.out / f'overlay_{"_".join(map(str, token))}.png')
        draw_overlays(files[-1], token_overlays,
                      f'{caption}, token (t, y, x) = {token}')
    # 3. Write the statistics.
    files.append(args.out / 'attention.json')
    text = json.dumps(dict(
        version=__version__, video=str(args.video), pattern=args.pattern,
        head=args.head, models=results,
        files=[file.name for file in files[:-1]]), indent=2)
    files[-1].write_text(text + '\n')
    echo('written: ' + ', '.join(map(str, files)))
