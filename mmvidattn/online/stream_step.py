# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Base class of the modules that score a batch of streams."""
import math
from collections.abc import Mapping
from functools import cached_property
from typing import Any, Literal

import torch
from torch import Tensor, nn

from ..utils.arguments import Count, check_arguments


@check_arguments
class StreamStep(nn.Module):
    """Module that takes one frame of each of B streams, and scores it.

    The module stores nothing about the streams: the caller passes their state,
    tensors with the B streams in the first dimension, which it updates in
    place. The streams may differ in age. No branch of the code depends on the
    values of the state, so the module can be compiled, exported and recorded
    as a CUDA graph.

    A frame whose projections would overflow later (:meth:`fits`) counts as not
    finite. See :class:`StreamSession`.

    Subclasses implement :meth:`initial_memory` and :meth:`scored`; and either
    :meth:`take` and :meth:`repeat`, or :meth:`prepare`, :meth:`update` and
    :meth:`skip`.

    Args:
        model: Online network. The other arguments are those of
            :class:`mmvidattn.online.StreamSession`.

    Raises:
        ValueError: If the model does not support an option.
    """

    #: Largest absolute number in projections, by name. Defaults to the largest
    #: number of the dtype.
    limits: Mapping[str, float] = {}
    #: Default of ``stretch_long_memory``.
    stretches_by_default = False
    #: Values of the parts of a frame that may be left out.
    frame_defaults: Mapping[str, float] = {}
    #: Largest values of the parts of a frame, except 1.
    frame_scales: Mapping[str, float] = {}

    def __init__(self,
                 model: nn.Module,
                 long_memory_sample_rate: Count = 4,
                 work_memory_sample_rate: Count = 1,
                 kernel: Literal['window', 'smoothing'] | None = None,
                 *,
                 stretch_long_memory: bool | None = None) -> None:
        super().__init__()
        if model.training:
            raise ValueError('model must be in eval mode for streams; call '
                             'model.eval()')
        self.model = model
        self.long_rate = long_memory_sample_rate
        self.work_rate = work_memory_sample_rate
        self.kernel = kernel or 'window'
        if kernel == 'smoothing':
            self.check_smoothing()
        self.stretch_long_memory = (
            self.stretches_by_default if stretch_long_memory is None
            else stretch_long_memory)
        self.prepare()

    def check_smoothing(self) -> None:
        """Raise a ValueError if 'smoothing' does not fit the model."""
        raise ValueError("kernel='smoothing' is for TeSTra, got a "
                         f'{type(self.model.backbone).__name__}')

    @cached_property
    def example(self) -> Tensor:
        """Tensor with the dtype and the device of the streams."""
        return next(self.model.backbone.parameters())

    @property
    def frame_shapes(self) -> dict[str, tuple[int, ...]]:
        """Shapes of the parts of a frame, without the batch dimension."""
        return {name: (channels, )
                for name, channels in self.model.backbone.in_channels.items()}

    @property
    def frame_dtype(self) -> torch.dtype:
        """Dtype in which frames are collected."""
        return self.example.dtype

    @property
    def options(self) -> dict[str, Any]:
        """Options that a saved state depends on."""
        return dict(
            long_memory_sample_rate=self.long_rate,
            work_memory_sample_rate=self.work_rate,
            kernel=self.kernel,
            stretch_long_memory=self.stretch_long_memory)

    def blank_frames(self, batch_size: int,
                     value: float = 0.) -> dict[str, Tensor]:
        """Return a frame of each stream, filled with a value or defaults."""
        return {
            name: torch.full(
                (batch_size, *shape), self.frame_defaults.get(name, value),
                dtype=self.frame_dtype, device=self.example.device)
            for name, shape in self.frame_shapes.items()
        }

    def random_frames(self, batch_size: int,
                      generator: torch.Generator) -> dict[str, Tensor]:
        """Return random frames, for comparisons with another program."""
        return {
            name: self.frame_scales.get(name, 1.) * torch.rand(
                batch_size, *shape, generator=generator).to(
                    self.example.device, self.frame_dtype)
            for name, shape in self.frame_shapes.items()
        }

    def split_frames(self, features: Mapping[str, Tensor] | None
                     ) -> tuple[list[dict[str, Tensor]], bool]:
        """Check the frames of one stream, and split them.

        Args:
            features: Argument of :meth:`StreamSession.push`.

        Returns:
            Frames ``{name: [*]}`` with all parts, and True if T was given.
        """
        shapes, defaults = self.frame_shapes, self.frame_defaults
        features = features or dict.fromkeys(shapes.keys() - defaults.keys())
        # Features may have more modalities than the model reads.
        unknown = features.keys() - shapes.keys() if defaults else ()
        missing = shapes.keys() - defaults.keys() - features.keys()
        if missing or unknown:
            raise ValueError(f'features must have {", ".join(shapes)}, got '
                             f'{", ".join(features)}')
        leads, present = {}, {}
        for name, shape in shapes.items():
            x = features.get(name)
            if x is None or name in defaults:
                continue
            lead = tuple(x.shape[:x.dim() - len(shape)])
            leads[name] = lead
            if tuple(x.shape[len(lead):]) != shape or len(lead) > 1 or (
                    lead != next(iter(leads.values())) or 0 in lead):
                sizes = ', '.join(map(str, shape))
                raise ValueError(
                    f'features[{name!r}] must be [{sizes}] or [T, {sizes}] '
                    'with T >= 1 equal for all modalities, got '
                    f'{tuple(x.shape)}')
            present[name] = x
        lead = next(iter(leads.values()), ())
        for name, shape in shapes.items():
            if name in defaults:
                present[name] = _numbers(
                    name, features.get(name, defaults[name]), lead)
            elif name not in present:
                present[name] = self.example.new_full(
                    (*lead, *shape), torch.nan)
        present = {name: x.to(self.frame_dtype) for name, x in present.items()}
        if not lead:
            return [present], False
        rows = zip(*present.values())
        return [dict(zip(present, row)) for row in rows], True

    @torch.no_grad()
    def prepare(self) -> None:
        """Compute what depends only on the weights."""
        # Defaults to the projections of a frame of zeros.
        for name, x in self.project(self.blank_frames(1)).items():
            self.register_buffer(f'zero_{name}', x)

    def project(self, features: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Project frames [B, channels] to a dict of tensors [B, ...].

        Defaults to ``row``, the projection of the backbone, [B, R].
        """
        return dict(row=self.model.backbone.project(features))

    def fits(self, projected: Mapping[str, Tensor]) -> Tensor:
        """Return True for frames that cannot overflow later, bool [B]."""
        # NaN is not <= any limit.
        return torch.stack([
            x.abs().flatten(1).amax(dim=1) <= self.limits.get(
                name, torch.finfo(x.dtype).max)
            for name, x in projected.items()
        ]).all(dim=0)

    def initial_memory(self, batch_size: int) -> dict[str, Tensor]:
        """Return the network-specific tensors of a state, [B, ...] each."""
        raise NotImplementedError

    def take(self, projected: Mapping[str, Tensor], keep: Tensor,
             step: Tensor, state: dict[str, Tensor]) -> None:
        """Write projected frames into the state.

        Args:
            projected: Projections of :meth:`project`.
            keep: Bool, [B]. False repeats the previous frame instead.
            step: Number of the frames, int64, [B].
            state: State of :meth:`forward`. Updated in place.
        """
        raise NotImplementedError

    def scored(self, state: Mapping[str, Tensor]) -> Tensor:
        """Return features of newest and anticipated frames, [B, 1 + A, C]."""
        raise NotImplementedError

    def repeat(self, number: int, state: dict[str, Tensor]) -> None:
        """Repeat the newest frame ``number`` times, without counting it."""
        raise NotImplementedError

    @torch.no_grad()
    def initial_state(self, batch_size: int = 1) -> dict[str, Tensor]:
        """Return the state of B streams before their first frame.

        Returns:
            ``count`` and ``num_bad``, the number of all frames and of bad
            frames, int64 [B], and :meth:`initial_memory`. The sizes of the
            tensors never change.
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
            state: State of :meth:`initial_state` or of the previous call;
                contiguous. Updated in place.

        Returns:
            Scores, [B, ...] each, as in :meth:`StreamSession.push`; and the
            given state.
        """
        bad = self.update(features, state)
        scores = self.model.cls_head(self.scored(state))
        return dict(scores, bad_frame=bad), state

    def update(self, features: Mapping[str, Tensor],
               state: dict[str, Tensor]) -> Tensor:
        """Update the state with a frame of each stream, in place.

        Returns:
            True for a bad frame, which was replaced, bool [B].
        """
        step = state['count'].clone()
        features = {
            name: features[name].to(self.example)
            for name in self.model.backbone.in_channels
        }
        good = torch.stack(
            [x.isfinite().all(dim=-1) for x in features.values()]).all(dim=0)
        projected = self.project(features)
        good = good & self.fits(projected)
        projected = {
            name: x.where(good.view(-1, *[1] * (x.dim() - 1)),
                          getattr(self, f'zero_{name}'))
            for name, x in projected.items()
        }
        self.take(projected, good | (step == 0), step, state)
        state['count'].copy_(step + 1)
        state['num_bad'].add_(~good)
        return ~good

    @torch.no_grad()
    def skip(self, number: int, state: dict[str, Tensor]) -> None:
        """Advance the state past missing frames, without scoring them."""
        if number < 1:
            return
        self.update(self.blank_frames(len(state['count']), torch.nan), state)
        self.repeat(number - 1, state)
        state['count'].add_(number - 1)
        state['num_bad'].add_(number - 1)


def _numbers(name: str, value: Tensor | float, lead: tuple[int, ...]
             ) -> Tensor:
    """Return numbers of frames, [] or [T]."""
    if isinstance(value, int | float) and 0 <= value < math.inf:
        return torch.full(lead, value, dtype=torch.float64)
    x = torch.as_tensor(value, dtype=torch.float64)
    if x.shape not in ((), lead) or not (x >= 0).all() or x.isinf().any():
        raise ValueError(
            f'features[{name!r}] must be non-negative, one number or one for '
            f'each frame, got {value}')
    return x.expand(lead)


class CUDAGraphStep:
    """Step for a batch of streams as a CUDA graph, which avoids launches.

    Args:
        step: Step of :func:`mmvidattn.online.make_stream_step`.
        state: State of the streams; each call updates these tensors.
    """

    @torch.no_grad()
    def __init__(self, step: nn.Module, state: dict[str, Tensor]) -> None:
        example = step.example
        self.features = step.blank_frames(len(state['count']))
        before = {name: x.clone() for name, x in state.items()}
        # The first calls initialize libraries, and cannot be recorded.
        stream = torch.cuda.Stream(example.device)
        stream.wait_stream(torch.cuda.current_stream(example.device))
        with torch.cuda.stream(stream):
            for _ in range(3):
                step(self.features, state)
        torch.cuda.current_stream(example.device).wait_stream(stream)
        self.graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self.graph):
            self.scores, _ = step(self.features, state)
        for name, x in before.items():
            state[name].copy_(x)

    def __call__(self, features: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Return the scores of one frame of each stream, [B, ...] each."""
        for name, x in self.features.items():
            x.copy_(features[name])
        self.graph.replay()
        return {name: x.clone() for name, x in self.scores.items()}
