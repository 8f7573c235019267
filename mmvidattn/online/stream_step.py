# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""One step of streams: their newest frames in, scores and states out."""
from collections.abc import Mapping, Sequence

import torch
from torch import Tensor, nn

from ..layers.packed_linear import with_packed_layers
from ..ops.precision import at_least_float32
from ..ops.temporal_smoothing import (
    SmoothingState,
    exponential_smoothing,
    fill_rows,
    push_row,
    read_rows,
    smoothing_state,
    window_smoothing,
    write_row,
)
from .frame_rows import FrameRows
from .stream_checks import check_stream
from .window_frames import long_memory_frames, work_memory_start

KERNELS = 'window', 'smoothing'
RINGS = 'work', 'scores', 'values'


class StreamStep(nn.Module):
    """The step of a batch of streams of one model, which holds none of theirs.

    A frame's rows are made when it comes (:meth:`update`), and kept for as
    long as it is in a memory: its scores and values in the long memory, and
    its row in the work memory. Scoring (:meth:`read`) gathers the rows of the
    newest window. The weights must not change afterwards
    (:class:`~mmvidattn.online.frame_rows.FrameRows`): on a CPU it has a second
    copy of them, in the order in which products read them
    (:func:`mmvidattn.ops.packed_linear.pack_weight`).

    All of a stream is in its state, tensors that begin with a dimension B of
    streams, which may differ in age. Memories are large, so :meth:`update` and
    :meth:`skip` write into the tensors of the state that they are given; no
    other tensor shares theirs. The step has no branches that depend on the
    state; it can be compiled, exported and recorded as a graph.

    Args:
        model: :class:`mmvidattn.recognizers.OnlineActionDetector` in eval
            mode.
        long_memory_sample_rate: Every how many frames the long memory takes
            one.
        work_memory_sample_rate: Every how many frames the work memory takes
            one.
        kernel: See :class:`mmvidattn.online.StreamSession`.
        stretch_long_memory: Likewise.

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
        self.model = model = with_packed_layers(model)
        backbone = model.backbone
        self.long_rate = long_memory_sample_rate
        self.work_rate = work_memory_sample_rate
        self.kernel = _choose_kernel(backbone, kernel, self.long_rate,
                                     self.work_rate)
        if stretch_long_memory is None:
            stretch_long_memory = backbone.long_memory_pos_embed
        self.stretch_long_memory = stretch_long_memory
        # From the first frame of a window's work memory to the last.
        self.work_reach = (backbone.work_memory_length - 1) * self.work_rate
        # From the oldest sample of its long memory to that.
        self.long_reach = self.long_rate * (
            1 if self.kernel == 'smoothing' else backbone.long_memory_length)
        self.rows = FrameRows(backbone)
        if self.rows.long_positions is not None:
            scores, values = self._score(self.rows.long_positions)
            self.register_buffer('position_scores', scores)
            self.register_buffer('position_values', values)
        zero = {name: self.example.new_zeros(1, channels)
                for name, channels in backbone.in_channels.items()}
        self.register_buffer('gains', torch.stack([
            _gain(*pair) for pair in self._attended(
                *backbone.project(zero))]))

    @property
    def example(self) -> Tensor:
        """A tensor of the dtype and on the device of the streams."""
        return self.rows.positions

    def _score(self, long_rows: Tensor) -> tuple[Tensor, Tensor]:
        """Rows of the long memory [*, R] to scores and values."""
        return self.model.backbone.encoder.score(long_rows,
                                                 self.rows.queries_0)

    @torch.no_grad()
    def initial_state(self, batch_size: int = 1) -> dict[str, Tensor]:
        """The state of streams that nothing has come from.

        Args:
            batch_size: Streams B.

        Returns:
            ``count`` and ``num_bad``: frames so far, and how many of them
            were not finite, int64 [B]. ``work``: rows of the work memory.
            ``scores`` and ``values``: samples of the long memory, float32 or
            wider. With kernel 'smoothing', ``maximum``, ``weight`` and
            ``total`` of each phase of its sampling. Their sizes do not
            change.
        """
        example = self.example
        count = torch.zeros(
            batch_size, dtype=torch.int64, device=example.device)
        state = dict(
            count=count,
            num_bad=count.clone(),
            work=example.new_zeros(batch_size, self.work_reach + 1,
                                   example.shape[-1]))
        encoder = self.model.backbone.encoder
        if encoder is None:
            return state
        length = self.work_reach + self.long_reach + 1
        zero = encoder.project(example.new_zeros(
            batch_size, self.model.backbone.embed_dims))
        scores, values = at_least_float32(*self._score(zero))
        for name, x in dict(scores=scores, values=values).items():
            state[name] = x.new_zeros(batch_size, length, *x.shape[1:])
        if self.kernel == 'smoothing':
            phases = scores[:, None].expand(-1, self.long_rate, -1, -1)
            state.update(smoothing_state(phases, values.shape[-1])._asdict())
        return state

    def forward(
        self, features: Mapping[str, Tensor], state: dict[str, Tensor]
    ) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
        """Take a frame of each stream, and score it.

        Args:
            features: ``{modality: features}``, each [B, channels].
            state: Of :meth:`initial_state`, or of the step before; contiguous.
                It is updated in place.

        Returns:
            ``action``, and ``verb`` and ``noun`` where the head has them:
            logits [B, 1 + A, K], of the newest frame and of those that are
            anticipated; ``bad_frame``, bool [B]: the frame was not finite,
            and the last good one stands in. And the state it was given.
        """
        bad = self.update(features, state)
        return dict(self.read(state), bad_frame=bad), state

    def update(self, features: Mapping[str, Tensor],
               state: dict[str, Tensor]) -> Tensor:
        """Take a frame of each stream into its state, in place.

        Args:
            features: As of :meth:`forward`.
            state: Likewise.

        Returns:
            Bool, [B]: the frame was not finite, and the last good one stands
            in.
        """
        step = state['count'].clone()
        features = {
            name: features[name].to(self.example)
            for name in self.model.backbone.in_channels
        }
        finite = torch.stack(
            [x.isfinite().all(dim=-1) for x in features.values()]).all(dim=0)
        # Where nothing has come yet, a frame of zeros stands in.
        rows, fits = self._project({
            name: x.where(finite[:, None], 0) for name, x in features.items()
        })
        keep = ~finite & (step == 0)
        # Nor are frames kept that would overflow further on.
        finite = finite & fits
        keep = keep | finite
        for name, x in rows.items():
            push_row(state[name], step, x, keep)
        if self.kernel == 'smoothing':
            self._smooth(state, step)
        state['count'].copy_(step + 1)
        state['num_bad'].add_(~finite)
        return ~finite

    def _project(
        self, features: Mapping[str, Tensor]
    ) -> tuple[dict[str, Tensor], Tensor]:
        """Frames [B, channels] to their rows in the rings of a state.

        And whether all that is made of them, up to the next LayerNorm, is
        finite; bool, [B].
        """
        backbone = self.model.backbone
        long, work = backbone.project(features)
        rows, parts = dict(work=work), [work]
        if long is not None:
            scores, values = self._score(long)
            rows['scores'], rows['values'] = at_least_float32(scores, values)
            parts.append(long)
        values = [values for values, _ in self._attended(long, work)]
        return rows, _fits(parts, values, self.gains, rows.get('scores'))

    def _attended(self, long: Tensor | None,
                  work: Tensor) -> list[tuple[Tensor, nn.Module]]:
        """Values [*, C] in rows, each with the projection of their means."""
        backbone = self.model.backbone
        found = backbone.decoder.attended(work)
        if long is not None:
            found += backbone.encoder.stages[0].attended(long)
        return found

    def _smooth(self, state: dict[str, Tensor], step: Tensor) -> None:
        """Take the sample that leaves the work memory in this step."""
        start, _ = self._start(step)
        phase, frame = start % self.long_rate, start - self.long_rate
        before = SmoothingState(*(
            read_rows(state[name], phase[:, None])[:, 0]
            for name in SmoothingState._fields))
        scores, v = (
            read_rows(state[name], frame.clamp(min=0)[:, None])[:, 0]
            for name in ('scores', 'values'))
        # Each phase begins with frame 0.
        empty = before.maximum[:, 0, 0] == -torch.inf
        _, after = exponential_smoothing(
            scores, v, before, decay=self.model.backbone.encoder.decay,
            times=(empty | (frame > 0)).long())
        for name, x in after._asdict().items():
            write_row(state[name], phase, x)

    def _start(self, step: Tensor) -> tuple[Tensor, Tensor]:
        """First frame of the work memory of step [B], and its padding.

        That of a young stream is shorter, and as in the first windows of a
        video.
        """
        return work_memory_start(
            step, self.model.backbone.work_memory_length, self.work_rate)

    def read(self, state: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Score the newest frame of each stream; at least one has come.

        Args:
            state: As of :meth:`forward`; nothing is written.

        Returns:
            The logits of :meth:`forward`.
        """
        backbone, step = self.model.backbone, state['count'] - 1
        start, num_padded = self._start(step)
        read_long = None
        if backbone.encoder is not None:
            y = self._read_smoothed(state, start) \
                if self.kernel == 'smoothing' \
                else self._read_window(state, start)
            y = y.flatten(-2).to(self.example.dtype)

            def read_long(block: int, queries: Tensor) -> Tensor:
                return y

        ago = self.work_rate * torch.arange(
            backbone.work_memory_length - 1, -1, -1, device=step.device)
        work = read_rows(state['work'], step[:, None] - ago)
        return self.model.cls_head(
            self.rows.read(read_long, work, num_padded))

    def _read_smoothed(self, state: Mapping[str, Tensor],
                       start: Tensor) -> Tensor:
        """Attend to all of the past: [B, Q, G, D]."""
        phase = (start % self.long_rate)[:, None]
        weight, total = (
            read_rows(state[name], phase)[:, 0]
            for name in ('weight', 'total'))
        return total / weight[..., None]

    def _read_window(self, state: Mapping[str, Tensor],
                     start: Tensor) -> Tensor:
        """Attend to the samples before ``start``: [B, Q, G, D]."""
        backbone = self.model.backbone
        frames, mask = long_memory_frames(
            start, backbone.long_memory_length, self.long_rate,
            self.stretch_long_memory)
        if backbone.fusion == 'long':
            work = start[:, None] + self.work_rate * torch.arange(
                backbone.work_memory_length, device=start.device)
            frames = torch.cat([frames, work], dim=1)
            mask = torch.cat([mask, work < state['count'][:, None]], dim=1)
        scores, v = (
            read_rows(state[name], frames) for name in ('scores', 'values'))
        if self.rows.long_positions is not None:
            scores = scores + self.position_scores
            v = v + self.position_values
        return window_smoothing(
            scores, v, mask=mask, decay=backbone.encoder.decay)

    @torch.no_grad()
    def skip(self, number: int, state: dict[str, Tensor]) -> None:
        """Take missing frames, as that many steps would; none is scored.

        Args:
            number: Frames that are missing; of each stream the last good one
                stands in.
            state: As of :meth:`forward`; it is updated in place.
        """
        if number < 1:
            return
        # If nothing has come yet, this makes the row that stands in.
        self.update({
            name: self.example.new_full((len(state['count']), channels),
                                        torch.nan)
            for name, channels in self.model.backbone.in_channels.items()
        }, state)
        step, number = state['count'].clone(), number - 1
        if self.kernel == 'smoothing':
            # First the samples that were in the work memory.
            young = min(number, self.work_reach + self.long_rate)
            for i in range(young):
                self._smooth(state, step + i)
            self._smooth_copies(state, step + young, number - young)
        for name in RINGS:
            if name in state:
                last = read_rows(state[name], step[:, None] - 1)[:, 0]
                fill_rows(state[name], step, number, last)
        state['count'].add_(number)
        state['num_bad'].add_(number)

    def _smooth_copies(self, state: dict[str, Tensor], step: Tensor,
                       number: int) -> None:
        """``number`` times :meth:`_smooth`, if all samples are the newest."""
        newest = state['count'][:, None] - 1
        scores, v = (
            read_rows(state[name], newest).expand(
                -1, self.long_rate, -1, -1) for name in ('scores', 'values'))
        phases = torch.arange(self.long_rate, device=step.device)
        # Until a phase has its turn.
        wait = (phases - (step - self.work_reach)[:, None]) % self.long_rate
        before = SmoothingState(
            *(state[name] for name in SmoothingState._fields))
        times = (number - wait + self.long_rate - 1) // self.long_rate
        _, after = exponential_smoothing(
            scores, v, before, decay=self.model.backbone.encoder.decay,
            times=times.clamp(min=0))
        for name, x in after._asdict().items():
            state[name].copy_(x)


@torch.no_grad()
def _gain(values: Tensor, proj: nn.Module) -> Tensor:
    """What an output may be of values of norm 1, and of none, [2].

    Asked of the layer, which may have quantized weights.
    """
    none = proj(torch.zeros_like(values[:1]))
    weight, none = at_least_float32(
        proj(torch.eye(values.shape[-1]).to(values)) - none, none)
    return torch.stack([weight.norm(dim=0).max(), none.abs().max()])


def _fits(parts: Sequence[Tensor], values: Sequence[Tensor], gains: Tensor,
          scores: Tensor | None) -> Tensor:
    """Whether sums and products of what is made of frames cannot overflow.

    Args:
        parts: Tokens, queries, keys and values, [B, *], whose sums are in
            their dtype, and whose squares and products are in float32 or
            wider.
        values: Of each attention, [B, C]; what a projection makes of their
            means is bounded by their norm, for a hundredth of its cost.
        gains: Of the projections, [number of values, 2].
        scores: Of the long memory, [B, *], in float32 or wider.

    Returns:
        Bool, [B].
    """
    x = torch.cat(list(parts), dim=-1)
    largest = torch.finfo(x.dtype).max
    x, *values = at_least_float32(x, *values)
    norms = torch.stack(values, dim=1).norm(dim=-1)
    factor, bias = gains.to(norms).unbind(dim=1)
    added = (norms * factor + bias).amax(dim=-1)
    # Sums are of two, with what positions add.
    fits = torch.maximum(x.abs().amax(dim=-1), added) <= largest / 4
    if scores is not None:
        x = torch.cat([x, scores.flatten(1)], dim=-1)
    return fits & (
        x.square().sum(dim=-1) + added.square() * x.shape[-1]
        <= torch.finfo(x.dtype).max / 16)


def _choose_kernel(backbone: nn.Module, kernel: str | None, long_rate: int,
                   work_rate: int) -> str:
    """The kernel of a stream, or an error if the model has no such stream."""
    if kernel not in (None, *KERNELS):
        raise ValueError(f'kernel must be one of {", ".join(KERNELS)} or '
                         f'None, got {kernel!r}')
    reasons = []
    if backbone.encoder is None:
        reasons.append('has no long memory')
    else:
        if len(backbone.encoder.stages[0].blocks) > 1:
            raise ValueError(
                "a stream takes a model whose encoder's first stage has one "
                "layer (num_layers=1), got "
                f'{len(backbone.encoder.stages[0].blocks)}: the queries of a '
                'second one change with the memory')
        if backbone.long_memory_pos_embed:
            reasons.append('has positions in its long memory')
        if backbone.fusion == 'long':
            reasons.append("has fusion='long'")
    if work_rate > long_rate:
        reasons.append(
            'has work_memory_sample_rate > long_memory_sample_rate '
            f'({work_rate} and {long_rate})')
    if kernel == 'smoothing' and reasons:
        raise ValueError("kernel='smoothing' does not apply: the model "
                         f'{" and ".join(reasons)}; take kernel=\'window\'')
    return kernel or 'window'
