# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""The step of streams of networks that make one row of each frame."""
from collections.abc import Mapping

import torch
from torch import Tensor, nn

from ..layers.packed_linear import with_packed_layers
from .stream_checks import check_stream


class FrameStep(nn.Module):
    """The step of a batch of streams, of which :meth:`advance` is the model's.

    It has the surface of :class:`mmvidattn.online.StreamStep`: all of a
    stream is in its state, tensors that begin with a dimension B of streams,
    which may differ in age; :meth:`update` and :meth:`skip` write into the
    tensors that they are given. A step has no branches that depend on the
    state.

    A frame that is not finite, or of which the model makes nothing finite,
    does not harm what follows: the row of the last good frame stands in, or
    that of a frame of zeros where none came before.

    Args:
        model: :class:`mmvidattn.recognizers.OnlineActionDetector` in eval
            mode.
        long_memory_sample_rate: See :class:`mmvidattn.online.StreamSession`.
        work_memory_sample_rate: Likewise.
        kernel: None or 'window': there is no other kernel.
        stretch_long_memory: As of ``StreamSession``.

    Raises:
        ValueError: If the options do not fit the model.
    """

    def __init__(self,
                 model: nn.Module,
                 long_memory_sample_rate: int = 4,
                 work_memory_sample_rate: int = 1,
                 kernel: str | None = None,
                 *,
                 stretch_long_memory: bool | None = None) -> None:
        super().__init__()
        check_stream(
            model, long_memory_sample_rate=long_memory_sample_rate,
            work_memory_sample_rate=work_memory_sample_rate)
        name = type(model.backbone).__name__
        if kernel not in (None, 'window'):
            raise ValueError(f"kernel must be 'window' or None for a {name}, "
                             f'got {kernel!r}')
        self.model = model = with_packed_layers(model)
        self.long_rate = long_memory_sample_rate
        self.work_rate = work_memory_sample_rate
        self.kernel = 'window'
        self.stretch_long_memory = bool(stretch_long_memory)

    @property
    def example(self) -> Tensor:
        """A tensor of the dtype and on the device of the streams."""
        return next(self.model.backbone.parameters())

    @property
    def reach(self) -> int | None:
        """Equal frames after which all of a stream is theirs, if bounded."""
        return None

    def project(self, features: Mapping[str, Tensor]) -> Tensor:
        """Frames [B, channels] to rows [B, R], each by itself."""
        return self.model.backbone.project(features)

    def initial_memory(self, batch_size: int) -> dict[str, Tensor]:
        """What is kept of streams beside the last good row, [B, ...] each."""
        raise NotImplementedError

    def advance(self, row: Tensor, step: Tensor,
                state: dict[str, Tensor]) -> None:
        """Take the rows [B, R] of frames ``step`` [B] into the state."""
        raise NotImplementedError

    def scored(self, state: Mapping[str, Tensor]) -> Tensor:
        """Features of the newest frame and those ahead, [B, 1 + A, C]."""
        raise NotImplementedError

    @torch.no_grad()
    def initial_state(self, batch_size: int = 1) -> dict[str, Tensor]:
        """The state of streams that nothing has come from.

        Args:
            batch_size: Streams B.

        Returns:
            ``count`` and ``num_bad``: frames so far, and how many of them
            were not finite, int64 [B]. ``row``: of the last good one. And
            those of the model. Their sizes do not change.
        """
        count = torch.zeros(
            batch_size, dtype=torch.int64, device=self.example.device)
        zeros = {
            name: self.example.new_zeros(batch_size, channels)
            for name, channels in self.model.backbone.in_channels.items()
        }
        return dict(
            count=count,
            num_bad=count.clone(),
            row=self.project(zeros).contiguous(),
            **self.initial_memory(batch_size))

    def forward(
        self, features: Mapping[str, Tensor], state: dict[str, Tensor]
    ) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
        """Take a frame of each stream, and score it.

        See :meth:`mmvidattn.online.StreamStep.forward`.
        """
        bad = self.update(features, state)
        return dict(self.read(state), bad_frame=bad), state

    def update(self, features: Mapping[str, Tensor],
               state: dict[str, Tensor]) -> Tensor:
        """Take a frame of each stream into its state, in place.

        Returns:
            Bool, [B]: the frame was not finite, and the last good one stands
            in.
        """
        step = state['count'].clone()
        features = {
            name: features[name].to(self.example)
            for name in self.model.backbone.in_channels
        }
        good = torch.stack(
            [x.isfinite().all(dim=-1) for x in features.values()]).all(dim=0)
        row = self.project({
            name: x.where(good[:, None], 0) for name, x in features.items()
        })
        good = good & row.isfinite().all(dim=-1)
        row = row.where(good[:, None], state['row'])
        state['row'].copy_(row)
        self.advance(row, step, state)
        state['count'].copy_(step + 1)
        state['num_bad'].add_(~good)
        return ~good

    def read(self, state: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Score the newest frame of each stream; at least one has come.

        Returns:
            The logits of :meth:`forward`.
        """
        return self.model.cls_head(self.scored(state))

    @torch.no_grad()
    def skip(self, number: int, state: dict[str, Tensor]) -> None:
        """Take missing frames, as that many steps would; none is scored.

        Once missing frames change nothing, those that follow are counted
        only.

        Args:
            number: Frames that are missing; of each stream the last good one
                stands in.
            state: As of :meth:`forward`; it is updated in place.
        """
        number = max(0, number)
        memory = [x for name, x in state.items()
                  if name not in ('count', 'num_bad', 'row')]
        for done in range(1, number + 1):
            before = [x.clone() for x in memory]
            self.advance(state['row'], state['count'].clone(), state)
            state['count'].add_(1)
            if done == self.reach or all(map(torch.equal, before, memory)):
                state['count'].add_(number - done)
                break
        state['num_bad'].add_(number)
