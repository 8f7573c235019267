# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
from collections.abc import Mapping

import torch
from mmaction.registry import MODELS
from mmengine.model import BaseModule
from torch import Tensor, nn

from ..utils.arguments import Natural, check_arguments


@MODELS.register_module()
@check_arguments
class OnlineVideoEncoder(BaseModule):
    """Causal video network from pixels to features of each frame.

    As the backbone of
    :class:`mmvidattn.recognizers.OnlineActionDetector` it replaces a feature
    extractor and a network of feature streams. The features of a frame are
    the mean of its tokens. They depend on this frame and all earlier ones,
    through a state of constant size.

    Args:
        encoder: Config of a causal backbone, such as
            ``dict(type='LinearVideoTransformer', pattern='causal')``.
        num_anticipation_tokens: Number of anticipated steps A. For each step,
            a learned token is added to the features of a frame, and an MLP
            processes the sum. Defaults to 0.
        init_cfg: ``init_cfg`` of ``BaseModule``.

    Raises:
        ValueError: If the encoder is not causal.
    """
    # Networks of feature streams store past frames; this one does not.
    long_memory_length = work_memory_length = 0

    def __init__(self,
                 encoder: dict,
                 num_anticipation_tokens: Natural = 0,
                 init_cfg: dict | None = None) -> None:
        super().__init__(init_cfg=init_cfg)
        self.encoder = MODELS.build(encoder)
        if not getattr(self.encoder, 'is_causal', False):
            raise ValueError(
                'encoder must be a causal network, such as '
                "LinearVideoTransformer with pattern='causal', got "
                f'{encoder}')
        self.embed_dims = self.encoder.embed_dims
        self.in_channels = dict(frames=encoder.get('in_channels', 3))
        self.num_anticipation_tokens = num_anticipation_tokens
        if num_anticipation_tokens:
            self.anticipation_tokens = nn.Parameter(
                torch.randn(num_anticipation_tokens, self.embed_dims))
            self.anticipation = nn.Sequential(
                nn.LayerNorm(self.embed_dims),
                nn.Linear(self.embed_dims, 4 * self.embed_dims), nn.GELU(),
                nn.Linear(4 * self.embed_dims, self.embed_dims))

    def forward(self, inputs: Mapping[str, Tensor]) -> Tensor:
        """Compute the features of clips and of the steps after them.

        Args:
            inputs: Inputs of :meth:`forward_causal`.

        Returns:
            Features of the T frames and the A anticipated steps,
            [B, T + A, D].
        """
        x, _ = self.forward_causal(inputs)
        return torch.cat([x, self.anticipate(x[:, -1])], dim=1)

    def forward_causal(
        self, inputs: Mapping[str, Tensor],
        state: dict[str, Tensor] | None = None
    ) -> tuple[Tensor, dict[str, Tensor]]:
        """Compute the features of frames that continue a stream.

        Args:
            inputs: ``frames``, normalized, [B, C, T, H, W] with any T >= 1;
                and optionally ``elapsed`` [B, T], the time since the previous
                frame in nominal intervals. Defaults to 1.
            state: State after the previous frames. Defaults to the start of a
                stream.

        Returns:
            Features of the frames, [B, T, D], and the state after them.

        Raises:
            ValueError: If the inputs have another shape.
        """
        frames, elapsed = inputs.get('frames'), inputs.get('elapsed')
        shape = () if frames is None else tuple(frames.shape)
        if len(shape) != 5 or shape[1] != self.in_channels['frames'] \
                or not shape[2]:
            raise ValueError(
                "inputs['frames'] must be [B, "
                f'{self.in_channels["frames"]}, T, H, W] with T >= 1, got '
                f'{shape or "nothing"}')
        if elapsed is not None and elapsed.shape != (shape[0], shape[2]):
            raise ValueError(
                f"inputs['elapsed'] must be [B, T] = {[shape[0], shape[2]]}, "
                f'got {list(elapsed.shape)}')
        x, state = self.encoder.forward_causal(frames, state, elapsed)
        return x.mean(dim=(3, 4)).transpose(1, 2), state

    def anticipate(self, x: Tensor) -> Tensor:
        """Map features of frames [*, D] to the next A steps [*, A, D]."""
        x = x.unsqueeze(-2)
        if not self.num_anticipation_tokens:
            return x[..., :0, :]
        return x + self.anticipation(x + self.anticipation_tokens)
