# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Draw the regions that a prediction depends on, with Grad-CAM.

    python tools/analysis/grad_cam.py VIDEO --model CONFIG:CHECKPOINT

The image shows frames of the video for each model, like Fig. 6 of DualFormer.
It supports every backbone whose tokens keep their positions. The default layer
is the input of the last attention, because models that classify a class token
have no gradients at the patches of later layers.
"""
import sys
from pathlib import Path

import cv2
import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from mmvidattn.apis.labels import find_labels, label_of
from mmvidattn.layers import VideoTransformerBlock
from mmvidattn.utils.exits import one_line_errors
from mmvidattn.visualization.annotate import sheet_indices
from mmvidattn.visualization.report_images import draw_clip_rows

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from tools.analysis import clips

# Maximum number of class tokens of a frame or a clip.
MAX_CLASS_TOKENS = 2


def find_layer(model: nn.Module, name: str | None) -> nn.Module:
    """Return a layer by its name, or else the norm before the last attention.
    """
    if name is not None:
        return clips.find_layer(model, name, nn.Module)
    block = clips.find_layer(model, None, VideoTransformerBlock)
    branch = [name for name in block.branches if name != 'mlp'][-1]
    return getattr(block, f'{branch}_norm')


def grid_of(num_tokens: int, height: int, width: int) -> tuple[int, int]:
    """Return the rows and columns of a frame's patches, or (0, 0)."""
    rows = round((num_tokens * height / width)**.5)
    columns = round(rows * width / height)
    return (rows, columns) if rows * columns == num_tokens else (0, 0)


def as_volume(x: Tensor, clip: Tensor) -> Tensor:
    """Reshape the activations of a clip [B, C, T, H, W] to [B, C, T', h, w].

    They are a grid of tokens [B, T', h, w, C], feature maps of each frame
    [B T, C, h, w], or a sequence of tokens for each frame or for the clip,
    [B, T', N, 1, C], [B, N, C] or [B T, N, C], which may begin with class
    tokens.
    """
    B, _, T, H, W = clip.shape
    if x.dim() == 4 and len(x) == B * T:
        return x.unflatten(0, (B, T)).transpose(1, 2)
    if x.dim() == 5 and x.shape[3] > 1:
        return x.movedim(-1, 1)
    shape = tuple(x.shape)
    x = x.squeeze(3) if x.dim() == 5 else x.unflatten(0, (B, -1))
    for extra in range(MAX_CLASS_TOKENS + 1):
        # There is a sequence for each frame, or one for all frames.
        for frames in range(1, T + 1) if x.shape[1] == 1 else (1, ):
            tokens, rest = divmod(x.shape[2] - extra, frames)
            grid = (0, 0) if rest else grid_of(max(0, tokens), H, W)
            if grid[0] and (x.shape[1] > 1 or frames > 1 or T == 1):
                x = x[:, :, extra:].unflatten(2, (frames, *grid))
                return x.flatten(1, 2).movedim(-1, 1)
    raise ValueError(f'activations of shape {shape} do not fit a clip of '
                     f'{T} x {H} x {W}; choose another --layer')


def grad_cam(model: nn.Module, layer: nn.Module, inputs: Tensor,
             label: str | None, labels: list[str]
             ) -> tuple[Tensor, int, float]:
    """Weight the activations of a layer with the gradients of a class.

    Returns:
        Heat map [T, H, W] from 0 to 1, index and probability of the class.
    """
    seen: list[Tensor] = []
    handle = layer.register_forward_hook(lambda *args: seen.append(args[-1]))
    # The clip needs a gradient in case all weights are frozen.
    logits, = model(inputs.detach().requires_grad_(), mode='tensor',
                    stage='head')
    handle.remove()
    index, clip = clips.class_of(label, logits, labels), inputs[:, 0]
    grad, = torch.autograd.grad(logits[index], seen[-1])
    values, grad = (as_volume(x.detach(), clip) for x in (seen[-1], grad))
    heat = (values * grad.mean((2, 3, 4), keepdim=True)).sum(1).relu()
    heat = F.interpolate(heat[None], clip.shape[2:], mode='trilinear')[0, 0]
    return (heat / heat.max().clamp(min=1e-12), index,
            logits.softmax(-1)[index].item())


def main() -> None:
    parser = clips.make_parser(__doc__, 'grad_cam.png')
    parser.add_argument('--label', help='name or number of the class '
                        "(default: each model's prediction)")
    parser.add_argument('--layer', help='name of a layer in the backbone '
                        '(default: the input of the last attention)')
    args = parser.parse_args()
    rows, titles = [], []
    with one_line_errors():
        for text in args.model:
            name, model = clips.load_model(text, args)
            layer = find_layer(model, args.layer)
            labels = find_labels(model)
            frames, inputs = clips.read_clip(model, args.video)
            heat, index, score = grad_cam(model, layer, inputs, args.label,
                                          labels)
            rows.append(np.stack([frames[t] // 2 + cv2.applyColorMap(
                np.uint8(255 * heat[t].cpu().numpy()), cv2.COLORMAP_JET
            )[..., ::-1] // 2 for t in sheet_indices(len(frames))]))
            titles.append(f'{name}: {label_of(labels, index)} {score:.3f}')
            print(titles[-1])
        draw_clip_rows(args.out, rows, titles, args.video.name)


if __name__ == '__main__':
    main()
