# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Causal video networks: the network, its stream step, and state in training.
"""
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import torch
from mmaction.registry import MODELS
from mmengine.model import BaseModule
from torch import Tensor, nn

from ..utils.arguments import Natural, check_arguments
from .stream_step import StreamStep


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

    def __init__(self, encoder: dict, num_anticipation_tokens: Natural = 0,
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

        Returns features of the T frames of :meth:`forward_causal` and the A
        anticipated steps, [B, T + A, D].
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


# Prefix of the encoder's tensors in the state of a stream.
ENCODER = 'encoder.'
# Number of values of the frames that a CPU encodes at once, such as six frames
# of 224 x 224 pixels. Activations of larger batches do not fit its caches.
VALUES_AT_ONCE = 2**20


class VideoStep(StreamStep):
    """Step for streams of :class:`mmvidattn.online.OnlineVideoEncoder`.

    A frame is ``frames``, an RGB image with values from 0 to 255,
    [B, 3, H, W], which the step normalizes like the model's
    ``data_preprocessor``; and ``elapsed``, the time since the previous frame
    in nominal frame intervals, [B]. A stream's memory is the state of the
    encoder; ``newest``, the features of the last good frame, [B, D]; and
    ``gap``, the time since this frame, [B].

    A frame that is missing or not finite is dropped: the state ages by its
    duration, and it gets the scores of the last good frame. Sample rates have
    no effect.
    """

    @property
    def frame_shapes(self) -> dict[str, tuple[int, ...]]:
        backbone = self.model.backbone
        return dict(
            frames=(backbone.in_channels['frames'],
                    *backbone.encoder.frame_shape),
            elapsed=())

    frame_defaults = dict(elapsed=1.)
    frame_scales = dict(frames=255.)
    options: dict[str, Any] = {}

    @property
    def frame_dtype(self) -> torch.dtype:
        """Return a dtype that can represent the values of an image."""
        return torch.promote_types(self.example.dtype, torch.float32)

    def prepare(self) -> None:
        """Do nothing, because no frame is projected in advance."""

    def initial_memory(self, batch_size: int) -> dict[str, Tensor]:
        backbone = self.model.backbone
        state = backbone.encoder.initial_state(batch_size)
        return dict(
            newest=self.example.new_zeros(batch_size, backbone.embed_dims),
            gap=torch.zeros(batch_size, dtype=self.frame_dtype,
                            device=self.example.device),
            **{ENCODER + name: x for name, x in state.items()})

    def update(self, features: Mapping[str, Tensor],
               state: dict[str, Tensor]) -> Tensor:
        frames = features['frames']
        # A program for any batch cannot depend on the number of parts.
        if (self.example.device.type != 'cpu' or torch.is_grad_enabled()
                or torch.compiler.is_compiling() or torch.jit.is_tracing()
                or frames.numel() <= VALUES_AT_ONCE):
            return self._update(features, state)
        rows = max(1, VALUES_AT_ONCE // frames[0].numel())
        # The parts are views, so the state is updated in place.
        return torch.cat([
            self._update(*(
                {name: x[start:start + rows] for name, x in tensors.items()}
                for tensors in (features, state)))
            for start in range(0, len(frames), rows)])

    def _update(self, features: Mapping[str, Tensor],
                state: dict[str, Tensor]) -> Tensor:
        frames, elapsed = (
            features[name].to(self.example.device, self.frame_dtype)
            for name in ('frames', 'elapsed'))
        good = frames.isfinite().flatten(1).all(dim=1)
        frames = frames.where(good[:, None, None, None], 0.)
        normalize = getattr(self.model.data_preprocessor, 'normalize', None)
        frames = frames.unsqueeze(2)
        if normalize is not None:
            frames = normalize(frames)
        gap = state['gap'] + elapsed
        before = {name.removeprefix(ENCODER): x for name, x in state.items()
                  if name.startswith(ENCODER)}
        y, after = self.model.backbone.forward_causal(
            dict(frames=frames.to(self.example), elapsed=gap[:, None]), before)
        y = y[:, 0]
        # A frame is also bad if its values overflow in the network.
        good = good & y.isfinite().all(dim=1)
        for name, x in before.items():
            # At least float32, because ONNX Runtime cannot select bfloat16.
            wide = torch.promote_types(x.dtype, torch.float32)
            mask = good.view(-1, *[1] * (x.dim() - 1))
            x.copy_(torch.where(mask, after[name].to(wide), x.to(wide)))
        state['newest'].copy_(y.where(good[:, None], state['newest']))
        state['gap'].copy_(gap.where(~good, 0.))
        state['count'].add_(1)
        state['num_bad'].add_(~good)
        return ~good

    def scored(self, state: Mapping[str, Tensor]) -> Tensor:
        x = state['newest']
        return torch.cat(
            [x[:, None], self.model.backbone.anticipate(x)], dim=1)

    def skip(self, number: int, state: dict[str, Tensor],
             elapsed: float | None = None) -> None:
        """Age the state by missing frames without scoring them.

        ``elapsed`` is the duration of all these frames, in nominal frame
        intervals. Defaults to ``number``.
        """
        state['gap'].add_(number if elapsed is None else elapsed)
        state['count'].add_(number)
        state['num_bad'].add_(number)


class ClipPlace(NamedTuple):
    """Steps of a clip in its video; ``end`` is exclusive."""
    video: str
    start: int
    end: int


class CarriedState:
    """Store of a causal network's state between two training batches.

    A clip continues from the state after a clip of the latest batch, in any
    row, if it starts where that clip ended. Any other clip starts from the
    initial state. A skipped or repeated clip therefore never continues from
    another video's state.
    """

    def __init__(self) -> None:
        self._ends: list[tuple[str, int]] = []
        self._state: dict[str, Tensor] = {}

    def take(self, clips: Sequence[ClipPlace], initial: Mapping[str, Tensor]
             ) -> dict[str, Tensor]:
        """Return the state from which each clip of a batch starts.

        Args:
            clips: Places of the clips.
            initial: Initial state of a batch of this size, [B, ...] each.

        Returns:
            State without gradients, [B, ...] each.
        """
        state = {name: x.clone() for name, x in initial.items()}
        for row, clip in enumerate(clips):
            if (clip.video, clip.start) in self._ends:
                end = self._ends.index((clip.video, clip.start))
                for name, x in state.items():
                    x[row] = self._state[name][end]
        return state

    def keep(self, clips: Sequence[ClipPlace],
             state: Mapping[str, Tensor]) -> None:
        """Keep the state after the clips of a batch, without gradients."""
        self._ends = [(clip.video, clip.end) for clip in clips]
        self._state = {name: x.detach() for name, x in state.items()}

    def state_dict(self) -> dict[str, Any]:
        """Return the state for a checkpoint, on the CPU."""
        return dict(ends=[list(end) for end in self._ends],
                    state={name: x.cpu() for name, x in self._state.items()})

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Continue from a state of :meth:`state_dict`."""
        self._ends = [(video, end) for video, end in state_dict['ends']]
        self._state = dict(state_dict['state'])
