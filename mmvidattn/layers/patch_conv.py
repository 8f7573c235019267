# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
from torch import Tensor, nn

from ..ops.patch_conv import fit_patches, patch_conv

Size = tuple[int, int, int]


class PatchConv3d(nn.Conv3d):
    """Channels-last ``nn.Conv3d`` whose stride equals its kernel size.

    Args:
        in_channels: Channels C.
        out_channels: Channels K.
        kernel_size: Frames, rows and columns of a patch.
        by_channel: Use a depth-wise convolution; requires K = C. Defaults to
            False.
        keep_rest: See :func:`mmvidattn.ops.patch_conv.fit_patches`. Defaults
            to True.
    """

    def __init__(self, in_channels: int, out_channels: int, kernel_size: Size,
                 by_channel: bool = False, keep_rest: bool = True) -> None:
        super().__init__(
            in_channels, out_channels, kernel_size, stride=kernel_size,
            groups=in_channels if by_channel else 1)
        self.keep_rest = keep_rest

    def forward(self, x: Tensor) -> Tensor:
        """Convolve [B, T, H, W, C] to [B, T', H', W', K]."""
        x = fit_patches(x, self.kernel_size, self.keep_rest)
        return patch_conv(x, self.weight, self.bias)


class PatchEmbed3d(nn.Module):
    """Patch embedding with LayerNorm, of a clip or of an earlier stage.

    Args:
        in_channels: Channels C.
        embed_dims: Channels D of a token.
        patch_size: Frames, rows and columns of a patch. Patches do not
            overlap; incomplete patches are padded with zeros.
    """

    def __init__(self, in_channels: int, embed_dims: int,
                 patch_size: Size) -> None:
        super().__init__()
        self.projection = PatchConv3d(in_channels, embed_dims, patch_size)
        self.norm = nn.LayerNorm(embed_dims)

    def forward(self, x: Tensor) -> Tensor:
        """Embed [B, T, H, W, C] as tokens [B, T', H', W', D]."""
        return self.norm(self.projection(x))
