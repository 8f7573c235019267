# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
from collections.abc import Mapping

from mmaction.registry import MODELS
from torch import Tensor, nn

from ..utils.arguments import Count, Fraction, check_arguments
from .causal_network import CausalNetwork


@MODELS.register_module()
@check_arguments
class MiniROAD(CausalNetwork):
    """Recurrent network for online action detection.

    `MiniROAD: Minimal RNN Framework for Online Action Detection
    <https://openaccess.thecvf.com/content/ICCV2023/html/An_MiniROAD_Minimal_RNN_Framework_for_Online_Action_Detection_ICCV_2023_paper.html>`_,
    as released: a GRU on projected frames, with a ReLU on its outputs. In
    training, each window starts with a state of zeros, and the loss uses only
    the last frame of the window (``OnlineActionHead(num_loss_steps=1)``).

    Args:
        in_channels: Channels of each modality, which are concatenated in this
            order.
        embed_dims: Channels C of the GRU. Defaults to 1024.
        proj_dims: Channels R of a projected frame. Defaults to 2048.
        num_layers: Number of GRU layers. Defaults to 1.
        work_memory_length: Frames L in a window. Defaults to 128.
        drop_rate: Dropout rate of the GRU's input. Defaults to 0.2.
        init_cfg: ``init_cfg`` of ``BaseModule``.
    """

    def __init__(self,
                 in_channels: Mapping[str, Count],
                 embed_dims: Count = 1024,
                 proj_dims: Count = 2048,
                 num_layers: Count = 1,
                 work_memory_length: Count = 128,
                 drop_rate: Fraction = 0.2,
                 init_cfg: dict | None = None) -> None:
        super().__init__(in_channels, embed_dims, proj_dims,
                         work_memory_length, drop_rate, init_cfg)
        self.gru = nn.GRU(proj_dims, embed_dims, num_layers, batch_first=True)

    def mix(self, rows: Tensor) -> Tensor:
        return self.gru(rows)[0].relu()
