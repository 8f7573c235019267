# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Stream steps of networks that read windows: TeSTra, LSTR and MAT."""
from collections.abc import Mapping

import torch
from torch import Tensor

from ..ops.precision import at_least_float32
from ..ops.ring_buffers import fill_rows, push_row, read_rows, write_row
from ..ops.sample_smoothing import (
    SmoothingState,
    exponential_smoothing,
    smoothing_state,
    window_smoothing,
)
from .stream_step import StreamStep, keep_last_row
from .windows import WindowReader, long_memory_frames, work_memory_start

KERNELS = 'window', 'smoothing'
RING_BUFFERS = 'work', 'scores', 'values'


class WindowStep(StreamStep):
    """Step of networks whose state has a ring buffer ``work``."""

    @property
    def work_reach(self) -> int:
        """Frames between the first and the last sample of the work memory."""
        return (self.model.backbone.work_memory_length - 1) * self.work_rate

    def start(self, step: Tensor) -> tuple[Tensor, Tensor]:
        """Return :func:`work_memory_start` of the work memory at a step."""
        return work_memory_start(
            step, self.model.backbone.work_memory_length, self.work_rate)

    def long_frames(self, start: Tensor) -> tuple[Tensor, Tensor]:
        """Return :func:`long_memory_frames` before a work memory."""
        return long_memory_frames(
            start, self.model.backbone.long_memory_length, self.long_rate,
            self.stretch_long_memory)

    def read_work(self, state: Mapping[str, Tensor]) -> Tensor:
        """Return the rows of the work memory, oldest first, [B, L, R]."""
        ago = self.work_rate * torch.arange(
            self.model.backbone.work_memory_length - 1, -1, -1,
            device=state['count'].device)
        return read_rows(state['work'], state['count'][:, None] - 1 - ago)


class TeSTraStep(WindowStep):
    """Step for streams of :class:`mmvidattn.online.TeSTra`.

    A frame is projected once, when it arrives (:meth:`update`). Ring buffers
    store the results while the frame is in a memory: scores and values for the
    long memory, and the projection for the work memory. Scoring
    (:meth:`scored`) gathers the projections of the newest window.

    See :class:`StreamStep` for the arguments.
    """

    def prepare(self) -> None:
        backbone = self.model.backbone
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

    @property
    def stretches_by_default(self) -> bool:
        """True for a long memory with positions, as in LSTR."""
        return self.model.backbone.long_memory_pos_embed

    @property
    def example(self) -> Tensor:
        # Use a buffer, because parameters may be quantized.
        return self.reader.positions

    def check_kernel(self, kernel: str | None) -> None:
        backbone, reasons = self.model.backbone, []
        if kernel not in (None, *KERNELS):
            raise ValueError(f'kernel must be one of {", ".join(KERNELS)} or '
                             f'None, got {kernel!r}')
        if backbone.encoder is None:
            reasons.append('has no long memory')
        else:
            blocks = backbone.encoder.stages[0].blocks
            if len(blocks) > 1:
                raise ValueError(
                    "the encoder's first stage must have one layer "
                    f'(num_layers=1) for streams, got {len(blocks)}: the '
                    'queries of a second layer depend on the memory')
            if backbone.long_memory_pos_embed:
                reasons.append('has positions in its long memory')
            if backbone.fusion == 'long':
                reasons.append("has fusion='long'")
        if self.work_rate > self.long_rate:
            reasons.append(
                'has work_memory_sample_rate > long_memory_sample_rate '
                f'({self.work_rate} and {self.long_rate})')
        if kernel == 'smoothing' and reasons:
            raise ValueError("kernel='smoothing' does not apply: the model "
                             f'{" and ".join(reasons)}; use kernel=\'window\'')

    def _score(self, long: Tensor) -> tuple[Tensor, Tensor]:
        """Return scores and values of projections [*, R] for the long memory.
        """
        return at_least_float32(*self.model.backbone.encoder.score(
            long, self.reader.queries_0))

    @property
    def limit(self) -> float:
        """Largest absolute number in a projection or value.

        Later sums of numbers up to 64 times as large, and of their squares in
        float32, do not overflow; see ``docs/streaming.md``.
        """
        wide, = at_least_float32(self.example.new_empty(0))
        return min(
            torch.finfo(self.example.dtype).max / 2,
            (torch.finfo(wide.dtype).max / self.model.backbone.embed_dims)
            **0.5 / 4) / 64

    def fits(self, projected: Mapping[str, Tensor]) -> Tensor:
        limits = dict.fromkeys(projected, self.limit)
        if 'scores' in projected:
            limits['scores'] = torch.finfo(projected['scores'].dtype).max / 4
        # NaN is not <= any limit.
        return torch.stack([
            x.abs().flatten(1).amax(dim=1) <= limits[name]
            for name, x in projected.items()
        ]).all(dim=0)

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
        zero, memory = self.zero_work, {}
        memory['work'] = zero.new_zeros(
            batch_size, self.work_reach + 1, zero.shape[-1])
        if self.model.backbone.encoder is None:
            return memory
        length = self.work_reach + self.long_reach + 1
        for name in 'scores', 'values':
            zero = getattr(self, f'zero_{name}')
            memory[name] = zero.new_zeros(batch_size, length, *zero.shape[1:])
        if self.kernel == 'smoothing':
            phases = memory['scores'][:, :1].expand(
                -1, self.long_rate, -1, -1)
            memory.update(smoothing_state(
                phases, self.zero_values.shape[-1])._asdict())
        return memory

    def take(self, projected: Mapping[str, Tensor], keep: Tensor,
             step: Tensor, state: dict[str, Tensor]) -> None:
        for name, x in projected.items():
            push_row(state[name], step, x, keep)
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
        backbone, read_long = self.model.backbone, None
        start, num_padded = self.start(state['count'] - 1)
        if backbone.encoder is not None:
            y = self._read_smoothed(state, start) \
                if self.kernel == 'smoothing' \
                else self._read_window(state, start)
            y = y.flatten(-2).to(self.example.dtype)

            def read_long(block: int, queries: Tensor) -> Tensor:
                return y

        return self.reader.read(read_long, self.read_work(state), num_padded)

    def _read_smoothed(self, state: Mapping[str, Tensor],
                       start: Tensor) -> Tensor:
        """Attend to all earlier samples, [B, Q, G, D]."""
        phase = (start % self.long_rate)[:, None]
        weight, total = (
            read_rows(state[name], phase)[:, 0]
            for name in ('weight', 'total'))
        return total / weight[..., None]

    def _read_window(self, state: Mapping[str, Tensor],
                     start: Tensor) -> Tensor:
        """Attend to the N samples before ``start``, [B, Q, G, D]."""
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
        for name in RING_BUFFERS:
            if name in state:
                last = read_rows(state[name], step[:, None] - 1)[:, 0]
                fill_rows(state[name], step, number, last)

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


class MATStep(WindowStep):
    """Step for streams of :class:`mmvidattn.online.MAT`.

    A frame is projected once. A stream's memory is the projections of its
    frames: ring buffers ``long``, [B, ., 2C], and ``work``, [B, ., C]; and
    ``row``, the last good frame. Everything that mixes frames is computed anew
    in each step, because the segments of the long memory move with each frame,
    and every token of the work memory attends to a future that depends on all
    of them.
    """

    @property
    def stretches_by_default(self) -> bool:
        """True, as in the released code."""
        return True

    def initial_memory(self, batch_size: int) -> dict[str, Tensor]:
        backbone = self.model.backbone
        C, work = backbone.embed_dims, self.work_reach + 1
        long = work + backbone.long_memory_length * self.long_rate
        zeros = self.example.new_zeros
        return dict(row=zeros(batch_size, 3 * C),
                    long=zeros(batch_size, long, 2 * C),
                    work=zeros(batch_size, work, C))

    def _split(self, row: Tensor) -> dict[str, Tensor]:
        C = self.model.backbone.embed_dims
        return dict(zip(('long', 'work'), row.split([2 * C, C], dim=-1)))

    def take(self, projected: Mapping[str, Tensor], keep: Tensor,
             step: Tensor, state: dict[str, Tensor]) -> None:
        row = keep_last_row(projected, keep, state)
        for name, x in self._split(row).items():
            write_row(state[name], step, x)

    def scored(self, state: Mapping[str, Tensor]) -> Tensor:
        backbone = self.model.backbone
        start, num_padded = self.start(state['count'] - 1)
        frames, mask = self.long_frames(start)
        return backbone.read(
            read_rows(state['long'], frames), self.read_work(state), ~mask,
            num_padded, 1 + backbone.num_anticipation_tokens).work[-1]

    def repeat(self, number: int, state: dict[str, Tensor]) -> None:
        for name, x in self._split(state['row']).items():
            fill_rows(state[name], state['count'], number, x)
