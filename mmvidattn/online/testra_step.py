# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Steps of streams of TeSTra and LSTR, and the windows of any such stream."""
from collections.abc import Mapping

import torch
from torch import Tensor, nn

from ..ops.precision import at_least_float32
from ..ops.ring_buffers import fill_rows, push_row, read_rows, write_row
from ..ops.stream_smoothing import (
    SmoothingState,
    exponential_smoothing,
    smoothing_state,
    window_smoothing,
)
from .stream_step import StreamStep
from .testra import WindowReader


class WindowStep(StreamStep):
    """Step of networks that read windows of projected frames.

    Each projection of :meth:`project` has a ring buffer of the same name in
    the state: ``work`` for the work memory. Full windows match
    :mod:`mmvidattn.datasets.feature_windows`.
    """

    @property
    def work_reach(self) -> int:
        """Frames between the first and the last sample of the work memory."""
        return (self.model.backbone.work_memory_length - 1) * self.work_rate

    def start(self, step: Tensor) -> tuple[Tensor, Tensor]:
        """Return the first frames of work memories, and their padding.

        Args:
            step: Number of the newest frame, int64, [B].

        Returns:
            Number of the first frame, and of padded samples, int64 [B]. A work
            memory is padded until the stream has enough frames.
        """
        length, rate = self.model.backbone.work_memory_length, self.work_rate
        num_padded = (length - 1 - step // rate).clamp(min=0)
        return step - rate * (length - 1 - num_padded), num_padded

    def long_frames(self, start: Tensor) -> tuple[Tensor, Tensor]:
        """Return the frames of the long memories before work memories.

        Args:
            start: First frames of the work memories, int64 [B].

        Returns:
            Numbers of the frames, oldest first, int64 [B, N], with 0 for
            padding; and a mask, bool [B, N], False for padding.
        """
        length, rate = self.model.backbone.long_memory_length, self.long_rate
        end = start
        if self.stretch_long_memory:
            # At the start of a stream, the samples start at frame 0.
            end = (start + rate - 1) // rate * rate
            end = end.where(start < length * rate, start)
        ago = torch.arange(length, 0, -1, device=start.device)
        frames = end[:, None] - rate * ago
        # Frame 0 stands for frames before the stream, and is masked except
        # once.
        mask = (frames > -rate) | (ago == 1)
        return frames.clamp(min=0), mask

    def read_work(self, state: Mapping[str, Tensor]) -> Tensor:
        """Return the rows of the work memory, oldest first, [B, L, R]."""
        ago = self.work_rate * torch.arange(
            self.model.backbone.work_memory_length - 1, -1, -1,
            device=state['count'].device)
        return read_rows(state['work'], state['count'][:, None] - 1 - ago)

    def take(self, projected: Mapping[str, Tensor], keep: Tensor,
             step: Tensor, state: dict[str, Tensor]) -> None:
        for name, x in projected.items():
            push_row(state[name], step, x, keep)

    def repeat(self, number: int, state: dict[str, Tensor]) -> None:
        step = state['count']
        for name, ring in state.items():
            if hasattr(self, f'zero_{name}'):
                last = read_rows(ring, step[:, None] - 1)[:, 0]
                fill_rows(ring, step, number, last)


class TeSTraStep(WindowStep):
    """Step for streams of :class:`mmvidattn.online.TeSTra`.

    A frame is projected once, when it arrives (:meth:`update`). Scoring
    (:meth:`scored`) gathers the projections of the newest window.
    """

    def prepare(self) -> None:
        backbone = self.model.backbone
        if backbone.encoder is not None:
            blocks = backbone.encoder.stages[0].blocks
            if len(blocks) > 1:
                raise ValueError(
                    "the encoder's first stage must have one layer "
                    f'(num_layers=1) for streams, got {len(blocks)}: the '
                    'queries of a second layer depend on the memory')
        # Frames between the oldest sample of the long memory and the first
        # sample of the work memory.
        self.long_reach = self.long_rate * (
            1 if self.kernel == 'smoothing' else backbone.long_memory_length)
        self.reader = WindowReader(backbone)
        if self.reader.long_positions is not None:
            scores, values = self._score(self.reader.long_positions)
            self.register_buffer('position_scores', scores)
            self.register_buffer('position_values', values)
        super().prepare()
        self.limits = dict.fromkeys(('work', 'values'), self._limit())
        if backbone.encoder is not None:
            self.limits['scores'] = torch.finfo(self.zero_scores.dtype).max / 4

    @property
    def stretches_by_default(self) -> bool:
        """True for a long memory with positions, as in LSTR."""
        return self.model.backbone.long_memory_pos_embed

    @property
    def example(self) -> Tensor:
        # Use a buffer, because parameters may be quantized.
        return self.reader.positions

    def check_smoothing(self) -> None:
        backbone, reasons = self.model.backbone, []
        if backbone.encoder is None:
            reasons.append('has no long memory')
        if backbone.long_memory_pos_embed:
            reasons.append('has positions in its long memory')
        if backbone.fusion == 'long':
            reasons.append("has fusion='long'")
        if self.work_rate > self.long_rate:
            reasons.append(
                'has work_memory_sample_rate > long_memory_sample_rate '
                f'({self.work_rate} and {self.long_rate})')
        if reasons:
            raise ValueError("kernel='smoothing' does not apply: the model "
                             f'{" and ".join(reasons)}; use kernel=\'window\'')

    def _score(self, long: Tensor) -> tuple[Tensor, Tensor]:
        """Return scores and values of projections [*, R] of long memories."""
        return at_least_float32(*self.model.backbone.encoder.score(
            long, self.reader.queries_0))

    def _limit(self) -> float:
        """Return the largest absolute number in a projection or value.

        An output projection of larger numbers, or the sum of squares in the
        norm after it, could overflow; see ``docs/streaming.md``.
        """
        backbone = self.model.backbone
        blocks = backbone.decoder.transformer.blocks
        readers = [blocks[0].self_attn]
        if backbone.encoder is not None:
            readers.append(backbone.encoder.stages[0].blocks[0].memory_attn)
        if backbone.decoder.with_work_memory:
            readers += [block.memory_attn for block in blocks]
        # A block adds its input to the output projection.
        gain = 1 + max(_largest_row(reader.proj) for reader in readers)
        wide, = at_least_float32(self.example.new_empty(0))
        return min(
            torch.finfo(self.example.dtype).max / 2,
            (torch.finfo(wide.dtype).max / backbone.embed_dims)**0.5 / 4
        ) / gain

    def project(self, features: Mapping[str, Tensor]) -> dict[str, Tensor]:
        long, work = self.model.backbone.project(features)
        if long is None:
            return dict(work=work)
        scores, values = self._score(long)
        return dict(work=work, scores=scores, values=values)

    def initial_memory(self, batch_size: int) -> dict[str, Tensor]:
        """Return ring buffers, and the sums of the smoothing kernel.

        ``work`` holds projections for the work memory; ``scores`` and
        ``values``, float32 or wider, samples of the long memory. Kernel
        'smoothing' adds ``maximum``, ``weight`` and ``total`` for each phase
        of the sampling.
        """
        lengths = dict(work=self.work_reach + 1)
        if self.model.backbone.encoder is not None:
            lengths['scores'] = lengths['values'] = (
                self.work_reach + self.long_reach + 1)
        memory = {}
        for name, length in lengths.items():
            zero = getattr(self, f'zero_{name}')
            memory[name] = zero.new_zeros(batch_size, length, *zero.shape[1:])
        if self.kernel == 'smoothing':
            phases = memory['scores'][:, :1].expand(-1, self.long_rate, -1, -1)
            memory.update(smoothing_state(
                phases, self.zero_values.shape[-1])._asdict())
        return memory

    def take(self, projected: Mapping[str, Tensor], keep: Tensor,
             step: Tensor, state: dict[str, Tensor]) -> None:
        super().take(projected, keep, step, state)
        if self.kernel == 'smoothing':
            self._smooth(state, step)

    def _smooth(self, state: dict[str, Tensor], step: Tensor) -> None:
        """Add the sample that leaves the work memory in this step."""
        start, _ = self.start(step)
        phase, frame = start % self.long_rate, start - self.long_rate
        before = SmoothingState(*(
            read_rows(state[name], phase[:, None])[:, 0]
            for name in SmoothingState._fields))
        scores, v = (
            read_rows(state[name], frame.clamp(min=0)[:, None])[:, 0]
            for name in ('scores', 'values'))
        # Each phase starts with frame 0.
        empty = before.maximum[:, 0, 0] == -torch.inf
        _, after = exponential_smoothing(
            scores, v, before, decay=self.model.backbone.encoder.decay,
            times=(empty | (frame > 0)).long())
        for name, x in after._asdict().items():
            write_row(state[name], phase, x)

    def scored(self, state: Mapping[str, Tensor]) -> Tensor:
        read_long = None
        start, num_padded = self.start(state['count'] - 1)
        if self.model.backbone.encoder is not None:
            y = self._read_long(state, start).flatten(-2).to(
                self.example.dtype)

            def read_long(block: int, queries: Tensor) -> Tensor:
                return y

        return self.reader.read(read_long, self.read_work(state), num_padded)

    def _read_long(self, state: Mapping[str, Tensor], start: Tensor
                   ) -> Tensor:
        """Attend to samples before ``start``, [B, Q, G, D].

        These are the latest N, or all with the kernel 'smoothing'.
        """
        if self.kernel == 'smoothing':
            phase = (start % self.long_rate)[:, None]
            weight, total = (read_rows(state[name], phase)[:, 0]
                             for name in ('weight', 'total'))
            return total / weight[..., None]
        backbone = self.model.backbone
        frames, mask = self.long_frames(start)
        if backbone.fusion == 'long':
            work = start[:, None] + self.work_rate * torch.arange(
                backbone.work_memory_length, device=start.device)
            frames = torch.cat([frames, work], dim=1)
            mask = torch.cat([mask, work < state['count'][:, None]], dim=1)
        scores, v = (
            read_rows(state[name], frames) for name in ('scores', 'values'))
        if self.reader.long_positions is not None:
            scores = scores + self.position_scores
            v = v + self.position_values
        return window_smoothing(
            scores, v, mask=mask, decay=backbone.encoder.decay)

    def repeat(self, number: int, state: dict[str, Tensor]) -> None:
        step = state['count']
        if self.kernel == 'smoothing':
            # First add the samples that are still in the work memory.
            num_old = min(number, self.work_reach + self.long_rate)
            for i in range(num_old):
                self._smooth(state, step + i)
            self._smooth_copies(state, step + num_old, number - num_old)
        super().repeat(number, state)

    def _smooth_copies(self, state: dict[str, Tensor], step: Tensor,
                       number: int) -> None:
        """Do ``number`` calls of :meth:`_smooth` for equal samples at once."""
        newest = state['count'][:, None] - 1
        scores, v = (
            read_rows(state[name], newest).expand(
                -1, self.long_rate, -1, -1) for name in ('scores', 'values'))
        phases = torch.arange(self.long_rate, device=step.device)
        # Steps until the next sample of each phase.
        wait = (phases - (step - self.work_reach)[:, None]) % self.long_rate
        before = SmoothingState(
            *(state[name] for name in SmoothingState._fields))
        times = (number - wait + self.long_rate - 1) // self.long_rate
        _, after = exponential_smoothing(
            scores, v, before, decay=self.model.backbone.encoder.decay,
            times=times.clamp(min=0))
        for name, x in after._asdict().items():
            state[name].copy_(x)


def _largest_row(layer: nn.Module) -> float:
    """Return the largest sum of absolute weights in a row."""
    weight = layer.weight
    # Quantized layers have a method.
    weight = weight() if callable(weight) else weight
    return float(weight.detach().dequantize().abs().sum(dim=1).max())
