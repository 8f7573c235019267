# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Draw the regions that a prediction depends on, with Grad-CAM."""
import argparse
import json
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

from ..apis import find_config, get_model
from ..apis.labels import find_labels, label_of
from ..apis.runner import one_line_errors
from ..layers import VideoTransformerBlock
from ..utils.printable import echo
from ..visualization.annotate import write_sheet
from .clips import named_model, read_clip

# Maximum number of class tokens of a frame or a clip.
MAX_CLASS_TOKENS = 2


class Classifier(nn.Module):
    """Wrapper that maps clips [B, C, T, H, W] to logits [B, K]."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, x: Tensor) -> Tensor:
        return self.model(x[:, None], mode='tensor', stage='head')


def find_layer(model: nn.Module, name: str | None) -> tuple[str, nn.Module]:
    """Find a layer by its name in the backbone, or the default layer.

    Raises:
        ValueError: If the layer does not exist.
    """
    layers = dict(model.backbone.named_modules())
    if name is not None:
        if name not in layers:
            raise ValueError('--layer must be a layer of the backbone '
                             f'({", ".join(list(layers)[1:6])}, ...), got '
                             f'{name!r}')
        return name, layers[name]
    blocks = [n for n, m in layers.items()
              if isinstance(m, VideoTransformerBlock)]
    if not blocks:
        raise ValueError(f'{type(model.backbone).__name__} needs --layer, '
                         'because it lacks a VideoTransformerBlock')
    block = layers[blocks[-1]]
    attention = [branch for branch in block.branches if branch != 'mlp'][-1]
    name = f'{blocks[-1]}.{attention}_norm'
    return name, layers[name]


def grid_of(num_tokens: int, height: int,
            width: int) -> tuple[int, int] | None:
    """Return the rows and columns of a frame's patches, or None."""
    for rows in range(1, num_tokens + 1):
        if num_tokens % rows == 0 and \
                rows * width == num_tokens // rows * height:
            return rows, num_tokens // rows
    return None


def as_volume(x: Tensor, clip: Tensor) -> Tensor:
    """Reshape the activations of tokens to [B, C, T', h, w].

    Args:
        x: One of three: a grid of tokens, [B, T', h, w, C]; a sequence of
            tokens for each frame or for the clip, [B, T', N, 1, C], [B, N, C]
            or [B T, N, C], which may begin with class tokens; feature maps of
            each frame, [B T, C, h, w].
        clip: The clip, [B, C, T, H, W].

    Raises:
        ValueError: If the activations have another shape.
    """
    B, _, T, H, W = clip.shape
    if x.dim() == 4 and len(x) == B * T:
        return x.unflatten(0, (B, T)).transpose(1, 2)
    if x.dim() == 5 and x.shape[3] > 1:
        return x.movedim(-1, 1)
    shape = tuple(x.shape)
    if x.dim() == 5:
        x = x.squeeze(3)
    elif x.dim() == 3:
        x = x.unflatten(0, (B, -1))
    for extra in range(MAX_CLASS_TOKENS + 1):
        # There is a sequence for each frame, or one for all frames.
        for frames in sorted({1, *range(2, T + 1)}) if x.shape[1] == 1 \
                else (1, ):
            tokens, rest = divmod(x.shape[2] - extra, frames)
            grid = None if rest or tokens < 1 else grid_of(tokens, H, W)
            if grid and (x.shape[1] > 1 or frames > 1 or T == 1):
                x = x[:, :, extra:].unflatten(2, (frames, *grid))
                return x.flatten(1, 2).movedim(-1, 1)
    raise ValueError(f'activations of shape {shape} do not fit a clip of '
                     f'{T} x {H} x {W}; choose another --layer')


def cam_of(model: nn.Module, layer: nn.Module, clip: Tensor, index: int,
           method: str) -> np.ndarray:
    """Compute the heat map [T, H, W], 0 to 1, of a clip [1, C, T, H, W]."""
    try:
        import pytorch_grad_cam
        from pytorch_grad_cam.utils.model_targets import ClassifierOutputTarget
    except ImportError as error:
        raise ValueError('Grad-CAM needs the package grad-cam: pip install '
                         f'"mmvidattn[cam]" ({error})') from error
    kind = getattr(pytorch_grad_cam, method)
    with kind(Classifier(model), [layer],
              reshape_transform=lambda x: as_volume(x, clip)) as cam:
        heat = cam(clip.requires_grad_(), [ClassifierOutputTarget(index)])
    return heat[0]


def overlay(frames: np.ndarray, heat: np.ndarray) -> np.ndarray:
    """Blend frames [T, H, W, 3], uint8, with a heat map [T, H, W]."""
    from pytorch_grad_cam.utils.image import show_cam_on_image
    return np.stack([
        show_cam_on_image(frame.astype(np.float32) / 255, of_frame,
                          use_rgb=True)
        for frame, of_frame in zip(frames, heat)])


def analyze(text: str, args: argparse.Namespace) -> list[dict]:
    """Write the images of a model, and return the data of each."""
    config, checkpoint = named_model(text)
    torch.manual_seed(0)
    model = get_model(config, checkpoint, args.device, args.cfg_options)
    name, layer = find_layer(model, args.layer)
    frames, data = read_clip(model, args.video)
    clip = model.data_preprocessor(data)['inputs'][:, 0]
    with torch.no_grad():
        scores = Classifier(model)(clip)[0].softmax(-1)
    labels = find_labels(model)
    classes = args.classes or [scores.argmax().item()]
    figures = []
    for index in classes:
        if not 0 <= index < len(scores):
            raise ValueError(f'--classes must be from 0 to {len(scores) - 1}, '
                             f'got {index}')
        heat = cam_of(model, layer, clip.clone(), index, args.method)
        label = label_of(labels, index)
        path = args.out / f'{Path(config).stem}_{index}.png'
        score = scores[index].item()
        write_sheet(path, overlay(frames, heat),
                    [Path(config).stem, f'{label}: {score:.3f}'])
        hottest = np.unravel_index(heat.argmax(), heat.shape)
        figures.append(dict(
            config=config, checkpoint=checkpoint, layer=name,
            method=args.method, index=index, label=label, score=score,
            hottest_t_y_x=[int(i) for i in hottest],
            mean_heat_of_frames=heat.mean((1, 2)).tolist(),
            picture=path.name))
        echo(f'{path}: {label} {score:.3f}')
    return figures


def run(args: argparse.Namespace) -> None:
    with one_line_errors():
        for text in args.config:
            find_config(named_model(text)[0])
        figures = [figure for text in args.config
                   for figure in analyze(text, args)]
        args.out.mkdir(parents=True, exist_ok=True)
        (args.out / 'grad_cam.json').write_text(json.dumps(figures, indent=2))
