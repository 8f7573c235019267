# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import torch
from torch import Tensor, nn

from ..utils.arguments import to_pair
from ..utils.modules import State


class PatchEmbed(nn.Module):
    """Patch embedding of frames: strided convolution, optional LayerNorm.

    Args:
        in_channels: Channels of a frame.
        embed_dims: Channels D of a token.
        patch_frames: Frames of a patch, odd. Each frame has its own patches;
            patches of several frames overlap in time.
        patch_size: Side of a patch.
        stride: Distance of neighboring patches.
        padding: Zero padding around the frame.
        with_norm: Add a LayerNorm after the convolution.
        causal: Patches of several frames end at their own frame, instead of
            being centered on it. Defaults to False.
    """

    def __init__(self, in_channels: int, embed_dims: int, patch_frames: int,
                 patch_size: int, stride: int, padding: int,
                 with_norm: bool, causal: bool = False) -> None:
        super().__init__()
        self.is_causal = causal
        if patch_frames % 2 == 0:
            raise ValueError(
                f'patch_frames must be an odd number, got {patch_frames}')
        if patch_frames == 1:
            self.projection = nn.Conv2d(in_channels, embed_dims, patch_size,
                                        stride, padding)
        else:
            self.projection = nn.Conv3d(
                in_channels,
                embed_dims, (patch_frames, patch_size, patch_size),
                (1, stride, stride),
                (0 if causal else patch_frames // 2, padding, padding))
        self.norm = nn.LayerNorm(embed_dims) if with_norm else None

    def grid_of(self, img_size: int | tuple[int, int]) -> tuple[int, int]:
        """Return rows and columns of the patches of a frame."""
        conv = self.projection
        return tuple(
            (side + 2 * conv.padding[-1] - conv.kernel_size[-1]) //
            conv.stride[-1] + 1 for side in to_pair(img_size))

    def forward(self, x: Tensor) -> Tensor:
        """Embed clips [B, C, T, H, W] as tokens [B, T, H', W', D]."""
        if self.is_causal:
            return self.forward_causal(x, self.initial_state(x))[0]
        return self._embed(x)

    def forward_causal(self, x: Tensor,
                       state: State) -> tuple[Tensor, State]:
        """Embed the next frames [B, C, T, H, W] as tokens [B, T, H', W', D].

        The state is that of :meth:`initial_state` or of the previous call.
        """
        if state:
            x = torch.cat([state['frames'].to(x.dtype), x], dim=2)
            state = dict(frames=x[:, :, -state['frames'].shape[2]:].to(
                state['frames'].dtype))
        return self._embed(x), state

    def initial_state(self, x: Tensor) -> State:
        """Return the state for frames [B, C, T, H, W] of any T.

        It has ``frames``, zeros [B, C, P, H, W], the previous frames of a
        patch, or is empty if a patch has one frame.
        """
        if not isinstance(self.projection, nn.Conv3d):
            return {}
        past = self.projection.kernel_size[0] - 1
        return dict(frames=x.new_zeros(*x.shape[:2], past, *x.shape[3:]))

    def _embed(self, x: Tensor) -> Tensor:
        if isinstance(self.projection, nn.Conv3d):
            x = self.projection(x).movedim(1, -1)
        else:
            B, _, T = x.shape[:3]
            x = self.projection(x.transpose(1, 2).flatten(0, 1))
            x = x.permute(0, 2, 3, 1).unflatten(0, (B, T))
        return x.contiguous() if self.norm is None else self.norm(x)
