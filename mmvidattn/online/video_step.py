# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Stream step of causal video networks."""
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from .stream_step import StreamStep

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

    @property
    def frame_defaults(self) -> dict[str, float]:
        return dict(elapsed=1.)

    @property
    def frame_dtype(self) -> torch.dtype:
        """Return a dtype that can represent the values of an image."""
        return torch.promote_types(self.example.dtype, torch.float32)

    @property
    def options(self) -> dict[str, Any]:
        return {}

    def random_frames(self, batch_size: int,
                      generator: torch.Generator) -> dict[str, Tensor]:
        frames = {
            name: torch.rand(batch_size, *shape, generator=generator)
            for name, shape in self.frame_shapes.items()
        }
        frames['frames'] *= 255
        return {name: x.to(self.example.device, self.frame_dtype)
                for name, x in frames.items()}

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
            x.copy_(torch.where(
                _like(good, x), after[name].to(wide), x.to(wide)))
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

        Args:
            number: Number of missing frames of each stream.
            state: State of :meth:`forward`. Updated in place.
            elapsed: Duration of all these frames, in nominal frame intervals.
                Defaults to ``number``.
        """
        state['gap'].add_(number if elapsed is None else elapsed)
        state['count'].add_(number)
        state['num_bad'].add_(number)


def _like(mask: Tensor, x: Tensor) -> Tensor:
    """Append dimensions to a mask [B] for a tensor [B, ...]."""
    return mask.view(-1, *[1] * (x.dim() - 1))
