# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""One step of streams: their newest frames in, scores and states out."""
from collections.abc import Mapping

import torch
from torch import Tensor, nn

from ..layers.packed_linear import with_packed_layers


class StreamStep(nn.Module):
    """Stateless step for a batch of streams of one model.

    A stream's entire history is in its state: tensors whose first dimension
    B counts streams, which may differ in age. :meth:`update` and :meth:`skip`
    write into the tensors of the state that they are given. The step has no
    branches that depend on the state, so it can be compiled, exported and
    recorded as a CUDA graph.

    The weights must not change afterwards. On a CPU the step holds a second
    copy of them, in the order in which products read them
    (:func:`mmvidattn.ops.packed_linear.pack_weight`).

    A frame that is not finite, or whose rows would overflow later
    (:meth:`fits`), does no harm: the last good frame stands in, or a frame of
    zeros where none came before.

    Subclasses implement :meth:`project`, :meth:`initial_memory`,
    :meth:`take`, :meth:`scored` and :meth:`repeat`, and end their
    constructor with :meth:`prepare`.

    Args:
        model: :class:`mmvidattn.recognizers.OnlineActionDetector` in eval
            mode.
        long_memory_sample_rate: Frames per sample of the long memory.
        work_memory_sample_rate: Frames per sample of the work memory.
        kernel: Kernel of :class:`mmvidattn.online.StreamSession`. None
            chooses 'window'.
        stretch_long_memory: Option of ``StreamSession``. Defaults to
            :attr:`stretches_by_default`.

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
        if model.training:
            raise ValueError('a stream takes a model in eval mode; call '
                             'model.eval()')
        for name, value in dict(
                long_memory_sample_rate=long_memory_sample_rate,
                work_memory_sample_rate=work_memory_sample_rate).items():
            if value < 1:
                raise ValueError(f'{name} must be at least 1, got {value}')
        self.model = with_packed_layers(model)
        self.long_rate = long_memory_sample_rate
        self.work_rate = work_memory_sample_rate
        self.check_kernel(kernel)
        self.kernel = kernel or 'window'
        self.stretch_long_memory = (
            self.stretches_by_default if stretch_long_memory is None
            else stretch_long_memory)

    def check_kernel(self, kernel: str | None) -> None:
        """Raise a ValueError if the kernel does not fit the model."""
        if kernel not in (None, 'window'):
            raise ValueError(
                "kernel must be 'window' or None for a "
                f'{type(self.model.backbone).__name__}, got {kernel!r}')

    @property
    def stretches_by_default(self) -> bool:
        return False

    @property
    def example(self) -> Tensor:
        """A tensor of the dtype and on the device of the streams."""
        return next(self.model.backbone.parameters())

    @torch.no_grad()
    def prepare(self) -> None:
        """Compute the rows of a frame of zeros."""
        rows = self.project({
            name: self.example.new_zeros(1, channels)
            for name, channels in self.model.backbone.in_channels.items()})
        for name, x in rows.items():
            self.register_buffer(f'zero_{name}', x)

    def project(self, features: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Project frames [B, channels] to named rows [B, ...]."""
        raise NotImplementedError

    def fits(self, rows: Mapping[str, Tensor]) -> Tensor:
        """Return where nothing computed from these rows overflows, bool [B].
        """
        return torch.stack([
            x.isfinite().flatten(1).all(dim=1) for x in rows.values()
        ]).all(dim=0)

    def initial_memory(self, batch_size: int) -> dict[str, Tensor]:
        """Return the network's own part of an initial state, [B, ...] each.

        Each tensor has one value.
        """
        raise NotImplementedError

    def take(self, rows: Mapping[str, Tensor], keep: Tensor, step: Tensor,
             state: dict[str, Tensor]) -> None:
        """Write the rows of frames ``step`` [B] into the state.

        Where ``keep`` [B] is False, the rows of the frame before stand in.
        """
        raise NotImplementedError

    def scored(self, state: Mapping[str, Tensor]) -> Tensor:
        """Features of the newest frame and those ahead, [B, 1 + A, C]."""
        raise NotImplementedError

    def repeat(self, number: int, state: dict[str, Tensor]) -> None:
        """Take the newest frame ``number`` more times, but do not count."""
        raise NotImplementedError

    @torch.no_grad()
    def initial_state(self, batch_size: int = 1) -> dict[str, Tensor]:
        """Return the state of streams before their first frame.

        Args:
            batch_size: Number of streams B.

        Returns:
            ``count`` and ``num_bad``, the number of frames so far and of bad
            ones among them, int64 [B], and :meth:`initial_memory`. Their
            sizes do not change.
        """
        count = torch.zeros(
            batch_size, dtype=torch.int64, device=self.example.device)
        return dict(count=count, num_bad=count.clone(),
                    **self.initial_memory(batch_size))

    def forward(
        self, features: Mapping[str, Tensor], state: dict[str, Tensor]
    ) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
        """Take a frame of each stream, and score it.

        Args:
            features: ``{modality: features}``, each [B, channels].
            state: State of :meth:`initial_state` or of the step before;
                contiguous. Updated in place.

        Returns:
            ``action``, and ``verb`` and ``noun`` where the head has them:
            logits [B, 1 + A, K] of the newest frame and of those that are
            anticipated; ``bad_frame``, bool [B]. And the state it was given.
        """
        bad = self.update(features, state)
        return dict(self.read(state), bad_frame=bad), state

    def update(self, features: Mapping[str, Tensor],
               state: dict[str, Tensor]) -> Tensor:
        """Take a frame of each stream into its state, in place.

        Args:
            features: Features of :meth:`forward`.
            state: State of :meth:`forward`.

        Returns:
            Bool, [B]: the frame was bad, and the last good one stands in.
        """
        step = state['count'].clone()
        features = {
            name: features[name].to(self.example)
            for name in self.model.backbone.in_channels
        }
        good = torch.stack(
            [x.isfinite().all(dim=-1) for x in features.values()]).all(dim=0)
        rows = self.project(features)
        good = good & self.fits(rows)
        rows = {
            name: x.where(good.view(-1, *[1] * (x.dim() - 1)),
                          getattr(self, f'zero_{name}'))
            for name, x in rows.items()
        }
        self.take(rows, good | (step == 0), step, state)
        state['count'].copy_(step + 1)
        state['num_bad'].add_(~good)
        return ~good

    def read(self, state: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Score the newest frame of each stream; at least one has come.

        Args:
            state: State of :meth:`forward`; nothing is written.

        Returns:
            The logits of :meth:`forward`.
        """
        return self.model.cls_head(self.scored(state))

    @torch.no_grad()
    def skip(self, number: int, state: dict[str, Tensor]) -> None:
        """Take missing frames without scoring them.

        Args:
            number: Number of missing frames of each stream.
            state: State of :meth:`forward`. Updated in place.
        """
        if number < 1:
            return
        self.update({
            name: self.example.new_full((len(state['count']), channels),
                                        torch.nan)
            for name, channels in self.model.backbone.in_channels.items()
        }, state)
        self.repeat(number - 1, state)
        state['count'].add_(number - 1)
        state['num_bad'].add_(number - 1)


class FrameStep(StreamStep):
    """Step of networks that make one row of each frame (:meth:`advance`)."""

    def __init__(self, *args, **kwargs) -> None:
        super().__init__(*args, **kwargs)
        self.prepare()

    @property
    def reach(self) -> int | None:
        """Number of equal frames after which older ones lose all influence.

        None if unbounded; :meth:`advance` must then ignore its argument
        ``step``.
        """
        return None

    def memory(self, batch_size: int) -> dict[str, Tensor]:
        """Return the zeros that a stream's memory begins with."""
        raise NotImplementedError

    def advance(self, row: Tensor, step: Tensor,
                state: dict[str, Tensor]) -> None:
        """Take the rows [B, R] of frames ``step`` [B] into the memory."""
        raise NotImplementedError

    def project(self, features: Mapping[str, Tensor]) -> dict[str, Tensor]:
        return dict(row=self.model.backbone.project(features))

    def initial_memory(self, batch_size: int) -> dict[str, Tensor]:
        """``row``, the last good one, and the network's memory."""
        return dict(
            row=self.example.new_zeros(batch_size, self.zero_row.shape[1]),
            **self.memory(batch_size))

    def take(self, rows: Mapping[str, Tensor], keep: Tensor, step: Tensor,
             state: dict[str, Tensor]) -> None:
        row = rows['row'].where(keep[:, None], state['row'])
        state['row'].copy_(row)
        self.advance(row, step, state)

    def repeat(self, number: int, state: dict[str, Tensor]) -> None:
        """Run at most :attr:`reach` steps, or as many as change the state."""
        memory = [x for name, x in state.items()
                  if name not in ('count', 'num_bad', 'row')]
        steps = number if self.reach is None else min(number, self.reach)
        for i in range(steps):
            before = [x.clone() for x in memory]
            self.advance(state['row'], state['count'] + i, state)
            # Equal states stay equal only if `advance` does not depend on the
            # step. With rings it does.
            if self.reach is None and all(map(torch.equal, before, memory)):
                break
