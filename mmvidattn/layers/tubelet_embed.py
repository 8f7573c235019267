# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
from typing import Literal

import torch
from torch import Tensor, nn

from ..utils.arguments import check_arguments, to_pair
from .patch_conv import PatchConv3d

Inflation = Literal['central', 'average']


@check_arguments
def inflate_kernel(kernel: Tensor, num_frames: int, mode: Inflation) -> Tensor:
    """Inflate the patch kernel of an image model to a tubelet kernel.

    Args:
        kernel: [D, C, P, P].
        num_frames: Frames t of a tubelet.
        mode: 'central' copies the kernel to frame ``t // 2`` and fills the
            other frames with zeros, so that training starts from single
            frames; 'average' copies ``kernel / t`` to each (filter inflation).

    Returns:
        [D, C, t, P, P].
    """
    out = kernel.unsqueeze(2).repeat(1, 1, num_frames, 1, 1)
    if mode == 'average':
        return out / num_frames
    central = torch.arange(num_frames, device=out.device) == num_frames // 2
    return out * central.view(-1, 1, 1).to(out)


class TubeletEmbed(nn.Module):
    """Tubelet embedding of clips by a convolution without overlap.

    Implements both embeddings of ViViT (Sec. 3.2): tubelets of
    ``tubelet_frames`` frames, or, with ``sampled_frames``, patches of evenly
    spaced frames.

    Args:
        in_channels: Channels of a frame.
        embed_dims: Channels D of a token.
        tubelet_frames: Frames t of a tubelet.
        patch_size: Height and width of a tubelet.
        sampled_frames: Number n of sampled frames, those nearest to
            ``i T / (n + 1)``, i = 1 ... n. Defaults to None: tubelets of all
            frames.
    """

    def __init__(self, in_channels: int, embed_dims: int, tubelet_frames: int,
                 patch_size: int, sampled_frames: int | None = None) -> None:
        super().__init__()
        if sampled_frames is not None and tubelet_frames != 1:
            raise ValueError('sampled_frames needs tubelet_frames=1, got '
                             f'{sampled_frames} with {tubelet_frames}')
        self.sampled_frames = sampled_frames
        size = tubelet_frames, patch_size, patch_size
        self.projection = PatchConv3d(
            in_channels, embed_dims, size, keep_rest=False)

    def grid_of(self, num_frames: int,
                img_size: int | tuple[int, int]) -> tuple[int, int, int]:
        """Return the size (T', H', W') of the grid of tokens of a clip.

        Raises:
            ValueError: If the clip is not a multiple of the tubelet, or
                ``sampled_frames`` exceeds ``num_frames``.
        """
        frames, *patch = self.projection.kernel_size
        sides = to_pair(img_size)
        if any(side < patch[0] or side % patch[0] for side in sides):
            raise ValueError(f'img_size must be a multiple of patch_size='
                             f'{patch[0]}, got {img_size}')
        if num_frames < frames or num_frames % frames:
            raise ValueError(f'num_frames must be a multiple of tubelet_frames'
                             f'={frames}, got {num_frames}')
        sampled = self.sampled_frames
        if sampled is not None and not 1 <= sampled <= num_frames:
            raise ValueError(f'sampled_frames must be 1 to num_frames='
                             f'{num_frames}, got {sampled}')
        return (sampled or num_frames // frames,
                *(side // patch[0] for side in sides))

    def frame_groups(self, num_frames: int) -> list[tuple[int, ...]]:
        """Return the frames of each tubelet of a clip."""
        n, T = self.sampled_frames, num_frames
        if n is None or n >= T:
            t = self.projection.kernel_size[0]
            return [tuple(range(i, i + t)) for i in range(0, T - t + 1, t)]
        # Round halves to even, as the released code does.
        return [(round(i * T / (n + 1)), ) for i in range(1, n + 1)]

    def forward(self, x: Tensor) -> Tensor:
        """Embed clips [B, C, T, H, W] as tokens [B, T', H', W', D]."""
        n, T = self.sampled_frames, x.shape[2]
        if n is not None and n < T:
            x = x[:, :, [i for i, in self.frame_groups(T)]]
        return self.projection(x.movedim(1, -1)).contiguous()
