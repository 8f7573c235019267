# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import math

import torch
import torch.nn.functional as F
import torch.utils.checkpoint as cp
from mmengine.logging import print_log
from mmengine.model import BaseModule
from torch import Tensor, nn

from ..layers import PatchEmbed
from ..utils.initialise import initialise
from ..utils.positions import resize_positions
from ..utils.pretrained import load_matching, read_pretrained


class BaseBackbone(BaseModule):
    """What all backbones share: their start and the fitting of checkpoints.

    A subclass may override ``_fit_checkpoint``, which changes a state dict of
    another clip length, resolution or dimension to this model's.

    Args:
        init_std: Standard deviation of the linear layers' initialisation.
        init_cfg: ``dict(type='Pretrained', checkpoint=FILE)`` or None.
    """

    def __init__(self, init_std: float, init_cfg: dict | None) -> None:
        super().__init__(init_cfg=init_cfg)
        self.init_std = init_std
        self._register_load_state_dict_pre_hook(self._fit_checkpoint)

    def init_weights(self) -> None:
        """Initialise afresh, then from ``init_cfg``."""
        self._init_parameters()
        if self.init_cfg is None:
            return
        state_dict, path = read_pretrained(self)
        self._fit_checkpoint(state_dict, '')
        print_log(load_matching(self, state_dict, path), 'current')

    def _init_parameters(self) -> None:
        """As the released code does, the layers by :func:`initialise`."""
        self._init_tables()
        initialise(self, self.init_std)

    def _init_tables(self) -> None:
        pass

    def _fit_checkpoint(self, state_dict: dict, prefix: str, *args) -> None:
        pass


def run_blocks(blocks: nn.ModuleList, x: Tensor, with_cp: bool) -> Tensor:
    """Blocks in turn; with ``with_cp`` each is recomputed in backward."""
    for block in blocks:
        if with_cp and x.requires_grad:
            x = cp.checkpoint(block, x, use_reentrant=False)
        else:
            x = block(x)
    return x


class BaseVideoTransformer(BaseBackbone):
    """What the video transformers share: patches, tables, a row of blocks.

    A subclass fills ``blocks`` and defines ``forward`` of :meth:`embed` and
    :meth:`run_blocks`.

    Args:
        patch_embed: The patch embedding.
        num_frames: Frames T of a clip.
        img_size: Height and width of a frame, or one number for both.
        embed_dims: Channels D of a token.
        with_pos_embed: Add a learned table of positions in the frame.
        with_cp: Recompute each block in the backward pass, to save memory.
        init_std: Standard deviation of the linear layers' initialisation.
        embed_init_std: Likewise of the temporal and the position table.
        init_cfg: ``dict(type='Pretrained', checkpoint=FILE)`` or None.
    """

    def __init__(self, patch_embed: PatchEmbed, num_frames: int,
                 img_size: int | tuple[int, int], embed_dims: int,
                 with_pos_embed: bool, with_cp: bool, init_std: float,
                 embed_init_std: float, init_cfg: dict | None) -> None:
        super().__init__(init_std, init_cfg)
        self.num_frames = num_frames
        self.with_cp = with_cp
        self.embed_init_std = embed_init_std
        self.patch_embed = patch_embed
        self.grid_shape = (num_frames, *patch_embed.grid_of(img_size))
        self.temporal_embed = nn.Parameter(
            torch.zeros(1, num_frames, 1, 1, embed_dims))
        self.pos_embed = None
        if with_pos_embed:
            self.pos_embed = nn.Parameter(
                torch.zeros(1, 1, *self.grid_shape[1:], embed_dims))
        self.blocks = nn.ModuleList()
        self.norm = nn.LayerNorm(embed_dims, eps=1e-6)

    def embed(self, x: Tensor) -> Tensor:
        """Clips [B, C, T, H, W] to tokens [B, T, H', W', D].

        Raises:
            ValueError: If the clips have not ``num_frames`` frames, or the
                grid of patches is not that of the position table.
        """
        if x.shape[2] != self.num_frames:
            raise ValueError(
                f'{type(self).__name__} was built for num_frames='
                f'{self.num_frames}, got clips of {x.shape[2]} frames '
                f'{tuple(x.shape)}; set clip_len in the pipeline or '
                'num_frames in the config (a checkpoint is resized on load)')
        x = self.patch_embed(x) + self.temporal_embed
        if self.pos_embed is not None:
            if x.shape[2:4] != self.pos_embed.shape[2:4]:
                raise ValueError(
                    f'the frames give {tuple(x.shape[2:4])} patches, but the '
                    f'position table has {tuple(self.pos_embed.shape[2:4])}; '
                    'set img_size (a checkpoint is resized on load)')
            x = x + self.pos_embed
        return x

    def run_blocks(self, x: Tensor) -> Tensor:
        """[B, T, H, W, D] to the same shape."""
        return run_blocks(self.blocks, x, self.with_cp)

    def get_layer_depth(self, name: str, prefix: str = '') -> tuple[int, int]:
        """Depth of a parameter and number of depths, for layer-wise rates."""
        name = name.removeprefix(prefix)
        num_depths = len(self.blocks) + 2
        if name.startswith('blocks.'):
            return int(name.split('.')[1]) + 1, num_depths
        return (num_depths - 1 if name.startswith('norm.') else 0), num_depths

    def _init_tables(self) -> None:
        for table in (self.temporal_embed, self.pos_embed):
            if table is not None:
                nn.init.normal_(table, std=self.embed_init_std)

    def _fit_checkpoint(self, state_dict: dict, prefix: str, *args) -> None:
        """Fit a checkpoint to this model's clip length, grid and patches."""
        # The released table is read cyclically, so more frames repeat it.
        cyclic = state_dict.pop(f'{prefix}cyclic_temporal_embed', None)
        key = f'{prefix}temporal_embed'
        if cyclic is not None:
            repeats = math.ceil(self.num_frames / cyclic.shape[1])
            state_dict[key] = cyclic.repeat(1, repeats, 1, 1,
                                            1)[:, :self.num_frames]
        table = state_dict.get(key)
        if table is not None and table.shape[1] != self.num_frames:
            state_dict[key] = resize_positions(table,
                                               (self.num_frames, 1, 1))
        # The patches of an image model become the middle frame of ours.
        key = f'{prefix}patch_embed.projection.weight'
        kernel = state_dict.get(key)
        projection = self.patch_embed.projection
        if kernel is not None and kernel.dim() == 4 and isinstance(
                projection, nn.Conv3d):
            around = projection.kernel_size[0] // 2
            state_dict[key] = F.pad(
                kernel.unsqueeze(2), (0, 0, 0, 0, around, around))
        key = f'{prefix}pos_embed'
        table = state_dict.get(key)
        if table is not None and self.pos_embed is not None and \
                table.shape != self.pos_embed.shape and \
                table.shape[-1] == self.pos_embed.shape[-1]:
            state_dict[key] = resize_positions(
                table, (1, *self.pos_embed.shape[2:4]))
