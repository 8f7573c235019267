# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""One step of streams: their newest frames in, scores and states out."""
import math
from collections.abc import Mapping

import torch
from torch import Tensor, nn

from ..ops.temporal_smoothing import (
    SampleRing,
    SmoothingState,
    exponential_smoothing,
    read_rows,
    sample_ring,
    sample_scores,
    smoothing_state,
    window_smoothing,
    write_row,
)

KERNELS = 'window', 'smoothing'


class StreamStep(nn.Module):
    """What all streams of a model share, and the step of a batch of them.

    A frame is projected when it comes, and kept for as long as it is in a
    memory: its scores and values in the long memory, and all that the decoder
    needs of it before it mixes frames. What depends on the weights alone is
    computed here, once: the learned queries up to their memory, and what
    positions add to the projections, which are affine. So the weights must
    not change afterwards.

    All of a stream is in its state, tensors that begin with a dimension B of
    streams, which may differ in age. The step has no branches that depend on
    it; it can be compiled, exported and recorded as a graph.

    Args:
        model: :class:`mmvidattn.recognizers.OnlineActionDetector` in eval
            mode.
        long_memory_sample_rate: Every how many frames the long memory takes
            one.
        work_memory_sample_rate: Every how many frames the work memory takes
            one.
        kernel: See :class:`mmvidattn.online.StreamSession`.
        released: Likewise.
        stretch_long_memory: Likewise.

    Raises:
        ValueError: If the options do not fit the model.
    """

    def __init__(self,
                 model: nn.Module,
                 long_memory_sample_rate: int = 4,
                 work_memory_sample_rate: int = 1,
                 kernel: str | None = None,
                 released: bool = False,
                 stretch_long_memory: bool | None = None) -> None:
        super().__init__()
        if model.training:
            raise ValueError('a stream takes a model in eval mode; call '
                             'model.eval()')
        for name, value in (
            ('long_memory_sample_rate', long_memory_sample_rate),
            ('work_memory_sample_rate', work_memory_sample_rate)):
            if value < 1:
                raise ValueError(f'{name} must be at least 1, got {value}')
        self.model = model
        backbone = model.backbone
        self.long_rate = long_memory_sample_rate
        self.work_rate = work_memory_sample_rate
        self.released = released
        self.kernel = _choose_kernel(backbone, kernel, released,
                                     self.long_rate, self.work_rate)
        if stretch_long_memory is None:
            stretch_long_memory = backbone.long_memory_pos_embed
        self.stretch_long_memory = stretch_long_memory
        # From the first frame of a window's work memory to the last.
        self.work_reach = (backbone.work_memory_length - 1) * self.work_rate
        self.long_reach = self.long_rate * (
            1 if self.kernel == 'smoothing' else backbone.long_memory_length)
        with torch.no_grad():
            self._prepare_work()
            if backbone.encoder is not None:
                self._prepare_long()

    def _prepare_work(self) -> None:
        """What positions and tokens are after the decoder's projections."""
        backbone = self.model.backbone
        positions = backbone.work_positions()
        zero = self._work_rows(torch.zeros_like(positions[:1]))
        tokens = zero[:0]
        if backbone.num_anticipation_tokens:
            tokens = self._work_rows(backbone.anticipation_tokens)
        self.register_buffer('positions', self._work_rows(positions) - zero)
        self.register_buffer('tokens', tokens)

    def _prepare_long(self) -> None:
        """The queries, and what positions add to scores and values."""
        backbone = self.model.backbone
        begun = backbone.encoder.begin()
        for i, (x, q) in enumerate(begun):
            self.register_buffer(f'begun_{i}', x)
            self.register_buffer(f'queries_{i}', q)
        positions, added = backbone.long_positions(), (None, None)
        if positions is not None:
            zero = self._samples(torch.zeros_like(positions[:1]))
            added = (x - z for x, z in zip(self._samples(positions), zero))
        for name, x in zip(('scores', 'values'), added):
            self.register_buffer(f'position_{name}', x)

    def _samples(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Tokens of the long memory [*, C] to scores and values."""
        attention = self.model.backbone.encoder.stages[0].blocks[0].memory_attn
        k, v = attention.keys_values(x)
        if self.released and not self.model.backbone.long_memory_pos_embed:
            v = v - attention.kv.bias.chunk(2)[1].view(v.shape[-2:])
        return sample_scores(self.queries_0[0], k), v

    def _work_rows(self, x: Tensor) -> Tensor:
        """Tokens of the work memory [*, C], and their projections.

        [*, (4 + 2 L') C]: the tokens, the queries, keys and values of the
        decoder's first self-attention, and the keys and values of its L'
        attentions to the work memory.
        """
        decoder = self.model.backbone.decoder
        rows = [x, *decoder.transformer.blocks[0].project(x)]
        if decoder.with_work_memory:
            for pair in decoder.transformer.keys_values(x):
                rows += pair
        return torch.cat([row.reshape_as(x) for row in rows], dim=-1)

    def initial_state(self, batch_size: int = 1) -> dict[str, Tensor]:
        """The state of streams that nothing has come from.

        Args:
            batch_size: Streams B.

        Returns:
            ``count`` and ``num_bad``: frames so far, and how many of them
            were not finite, int64 [B]. ``work``: frames of the work memory.
            ``scores`` and ``values``: samples of the long memory, float32 or
            wider. With kernel 'smoothing', ``maximum``, ``weight`` and
            ``total`` of each phase of its sampling. Their sizes do not
            change.
        """
        backbone = self.model.backbone
        count = torch.zeros(
            batch_size, dtype=torch.int64, device=self.positions.device)
        state = dict(
            count=count,
            num_bad=count.clone(),
            work=self.positions.new_zeros(batch_size, self.work_reach + 1,
                                          self.positions.shape[-1]))
        if backbone.encoder is None:
            return state
        scores, v = self._samples(
            self.positions.new_zeros(batch_size, backbone.embed_dims))
        length = self.work_reach + self.long_reach + 1
        state.update(sample_ring(scores, v, length)._asdict())
        if self.kernel == 'smoothing':
            phases = scores[:, None].expand(-1, self.long_rate, -1, -1)
            state.update(smoothing_state(phases, v.shape[-1])._asdict())
        return state

    def forward(
        self, features: Mapping[str, Tensor], state: dict[str, Tensor]
    ) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
        """Take a frame of each stream.

        Args:
            features: ``{modality: features}``, each [B, channels].
            state: Of :meth:`initial_state`, or of the step before; contiguous.
                It is updated in place: memories are large.

        Returns:
            ``action``, and ``verb`` and ``noun`` where the head has them:
            logits [B, 1 + A, K], of the newest frame and of those that are
            anticipated; ``bad_frame``, bool [B]: the frame was not finite,
            and the last good one stands in. And the state.
        """
        backbone = self.model.backbone
        step = state['count']
        # The first frame of the work memory; that of a young stream is
        # shorter, and as in the first windows of a video.
        length = backbone.work_memory_length
        num_padded = (length - 1 - step // self.work_rate).clamp(min=0)
        start = step - self.work_rate * (length - 1 - num_padded)
        bad = self._take(features, state)
        memory = None
        if backbone.encoder is not None:
            memory = self._compress(state, start)
        x, qkv, keys_values = self._work_tokens(state, num_padded)
        y = backbone.decoder(
            x,
            memory,
            num_outputs=1 + backbone.num_anticipation_tokens,
            num_padded=num_padded,
            qkv=qkv,
            work_keys_values=keys_values)
        step += 1
        return dict(self.model.cls_head(y), bad_frame=bad), state

    def _take(self, features: Mapping[str, Tensor],
              state: dict[str, Tensor]) -> Tensor:
        """Project the frame into the memories; whether it was bad, [B]."""
        backbone, step = self.model.backbone, state['count']
        features = {
            name: features[name].to(self.positions)
            for name in backbone.in_channels
        }
        finite = torch.stack(
            [x.isfinite().all(dim=-1) for x in features.values()]).all(dim=0)
        # Where nothing has come yet, a frame of zeros stands in.
        features = {
            name: x.where(finite[:, None], 0) for name, x in features.items()
        }
        keep = ~finite & (step == 0)
        rows = dict(work=self._work_rows(backbone.work_projection(features)))
        if backbone.encoder is not None:
            rows['scores'], rows['values'] = self._samples(
                backbone.long_projection(features))
        # What overflows in half precision is not kept either.
        for x in rows.values():
            finite = finite & x.flatten(1).isfinite().all(dim=-1)
        keep = keep | finite
        for name, x in rows.items():
            last = read_rows(state[name], step[:, None] - 1)[:, 0]
            keep_here = keep.view(-1, *[1] * (x.dim() - 1))
            write_row(state[name], step, x.where(keep_here, last.to(x.dtype)))
        state['num_bad'] += ~finite
        return ~finite

    def _work_tokens(
        self, state: dict[str, Tensor], num_padded: Tensor
    ) -> tuple[Tensor, tuple, list[tuple[Tensor, Tensor]] | None]:
        """The decoder's tokens [B, L + A, C], and their projections."""
        backbone = self.model.backbone
        length, num_tokens = (backbone.work_memory_length,
                              backbone.num_anticipation_tokens)
        slots = torch.arange(length + num_tokens, device=num_padded.device)
        frames = state['count'][:, None] - self.work_rate * (
            length - 1 - slots[:length])
        rows = read_rows(state['work'], frames)
        rows = torch.cat([rows, self.tokens.expand(len(rows), -1, -1)], dim=1)
        places = (slots - num_padded[:, None]).clamp(min=0)
        positions = self.positions[places]
        if not (backbone.work_memory_pos_embed or self.released):
            positions = positions.where((slots >= length)[:, None], 0)
        rows = rows + positions
        x, *rows = rows.split(backbone.embed_dims, dim=-1)
        heads = backbone.decoder.transformer.blocks[0].self_attn.num_heads
        rows = [row.unflatten(-1, (heads, -1)) for row in rows]
        pairs = list(zip(rows[3::2], rows[4::2]))
        return x, tuple(rows[:3]), pairs or None

    def _compress(self, state: dict[str, Tensor], start: Tensor) -> Tensor:
        """The long memory of windows that begin at ``start`` [B]: [B, M, C].
        """
        ring = SampleRing(state['scores'], state['values'])
        attend = (self._smooth
                  if self.kernel == 'smoothing' else self._attend_window)
        encoder = self.model.backbone.encoder
        begun = [(getattr(self, f'begun_{i}'), getattr(self, f'queries_{i}'))
                 for i in range(len(encoder.stages))]
        y = attend(ring, state, start).to(self.positions.dtype)
        return encoder.finish(y, begun)

    def _attend_window(self, ring: SampleRing, state: dict[str, Tensor],
                       start: Tensor) -> Tensor:
        backbone, rate = self.model.backbone, self.long_rate
        length = backbone.long_memory_length
        end = start
        if self.stretch_long_memory:
            # While a stream is young its samples are those from frame 0 on.
            end = (start + rate - 1) // rate * rate
            if not self.released:
                end = end.where(start < length * rate, start)
        ago = torch.arange(length, 0, -1, device=start.device)
        frames = end[:, None] - rate * ago
        # Where there is none, frame 0 stands in, once.
        mask = (frames > -rate) | (ago == 1)
        frames = frames.clamp(min=0)
        if backbone.fusion == 'long':
            slots = torch.arange(
                backbone.work_memory_length, device=start.device)
            work = start[:, None] + self.work_rate * slots
            frames = torch.cat([frames, work], dim=1)
            mask = torch.cat([mask, work <= state['count'][:, None]], dim=1)
        return window_smoothing(
            ring,
            frames,
            mask=mask,
            decay=backbone.encoder.decay,
            position_scores=self.position_scores,
            position_values=self.position_values)

    def _smooth(self, ring: SampleRing, state: dict[str, Tensor],
                start: Tensor) -> Tensor:
        decay = self.model.backbone.encoder.decay
        names = SmoothingState._fields
        phase = start % self.long_rate
        before = SmoothingState(*(
            read_rows(state[name], phase[:, None])[:, 0] for name in names))
        frame = (start - self.long_rate)[:, None]
        scores, v = (read_rows(x, frame.clamp(min=0))[:, 0] for x in ring)
        # Each phase begins with frame 0.
        empty = before.maximum[:, 0, 0] == -torch.inf
        if self.released:
            # Which is there twice.
            twice = math.log1p(decay) * empty
            scores = scores + twice[:, None, None].to(scores)
        y, after = exponential_smoothing(
            scores, v, before, decay=decay, mask=empty | (frame[:, 0] > 0))
        for name, x in zip(names, after):
            write_row(state[name], phase, x)
        return y


def _choose_kernel(backbone: nn.Module, kernel: str | None, released: bool,
                   long_rate: int, work_rate: int) -> str:
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
    if released:
        positions = backbone.long_memory_pos_embed
        if backbone.encoder is None or backbone.fusion not in (
                ('none', ) if positions else ('compressed', 'none')):
            raise ValueError(
                'released=True takes TeSTra or LSTR, got a model with '
                f'long_memory_length={backbone.long_memory_length}, '
                f'fusion={backbone.fusion!r} and '
                f'long_memory_pos_embed={positions}')
        only = 'window' if positions else 'smoothing'
        if kernel not in (None, only):
            raise ValueError(f'released=True of this model has kernel={only!r}'
                             f', got {kernel!r}')
        kernel = only
    if kernel == 'smoothing' and reasons:
        raise ValueError("kernel='smoothing' does not apply: the model "
                         f'{" and ".join(reasons)}; take kernel=\'window\'')
    return kernel or 'window'
