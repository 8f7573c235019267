# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Follows a stream, frame by frame."""
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from .cuda_graph import CUDAGraphStep
from .make_stream_step import make_stream_step

VERSION = 1


class StreamSession:
    """Scores of a model for a stream, from its very first frame on.

    A frame is a row of the dataset's feature files. Each has the scores that
    the windowed evaluation of the dataset gives it, at a cost and a memory
    that do not grow with the stream::

        session = StreamSession(model)
        for features in stream:
            session.push(features)['action'][0].softmax(dim=-1)

    The first frames, before the work memory is full, are scored from as many
    as there are: they have the scores of the first windows' rows, which look
    at no later frame. (Those of ``fusion='long'`` do, when windowed.) Steps
    to come are anticipated from the first frame on, behind the newest one;
    windows have such scores for full work memories only.

    A frame that is missing or not finite does not harm what follows: the last
    good frame stands in, or a frame of zeros where none came before. The
    session warns of it, counts it and says so in the result.

    The model may have any number of sessions. It holds nothing of theirs, and
    its weights must not change while there are some. On a CPU a session packs
    them for its products; those of :meth:`spawn` share that, and one that is
    made anew takes the memory of the weights again. A session is not for two
    threads at a time; several sessions are.

    Args:
        model: ``OnlineActionDetector`` in eval mode.
        long_memory_sample_rate: Every how many frames the long memory takes
            one, as the dataset's ``long_rate``. Each phase of this has a
            memory of its own.
        work_memory_sample_rate: The same of the work memory, as ``work_rate``.
        kernel: 'window', what the model was trained and evaluated with: the
            latest N samples count, under the model's decay; or 'smoothing',
            Eq. 6 of the paper: all so far count, at a cost that does not
            depend on N. That is for long memories without positions. None
            takes 'window'.
        stretch_long_memory: As of the dataset: LSTR's samples while the
            stream is shorter than the long memory. Defaults to True for a
            model that has positions in its long memory, as LSTR has.
        cuda_graph: Replay the session's step as a CUDA graph, until it is
            pushed with others: :meth:`record_graph` of this one alone.

    Raises:
        ValueError: If the model is in training mode, or an option does not
            fit it or its device.

    Attributes:
        step: Step of :func:`make_stream_step`; ``session.step.compile()``
            compiles it.
    """

    def __init__(self,
                 model: nn.Module,
                 long_memory_sample_rate: int = 4,
                 work_memory_sample_rate: int = 1,
                 kernel: str | None = None,
                 *,
                 stretch_long_memory: bool | None = None,
                 cuda_graph: bool = False) -> None:
        self._start(make_stream_step(
            model,
            long_memory_sample_rate,
            work_memory_sample_rate,
            kernel,
            stretch_long_memory=stretch_long_memory))
        if cuda_graph:
            _require_cuda('cuda_graph=True', self.step)
            StreamSession.record_graph([self])

    def _start(self, step: nn.Module) -> None:
        self.step = step
        self._batch = _Batch(step.initial_state())
        self._row = 0

    def spawn(self) -> 'StreamSession':
        """A session of another stream, with the same model and options.

        The two share what depends on the weights alone, and can be pushed
        together.
        """
        other = object.__new__(type(self))
        other._start(self.step)
        return other

    @property
    def _state(self) -> dict[str, Tensor]:
        """Our row of a batch, [1, ...] each: views of tensors that others may
        share."""
        return {
            name: x[self._row:self._row + 1]
            for name, x in self._batch.state.items()
        }

    @property
    def num_steps(self) -> int:
        """Frames so far."""
        return int(self._state['count'])

    @property
    def num_bad_frames(self) -> int:
        """How many of them were missing or not finite."""
        return int(self._state['num_bad'])

    @property
    def num_bytes(self) -> int:
        """Size of the stream's state, which does not grow."""
        return sum(x.nbytes for x in self._state.values())

    def push(self,
             features: Mapping[str, Tensor] | None) -> dict[str, Tensor]:
        """Take one frame or several.

        Args:
            features: ``{modality: features}``, each [C], or each [T, C] for T
                frames. None, or None of a modality, is one missing frame.

        Returns:
            ``action``, and ``verb`` and ``noun`` where the head has them:
            logits [1 + A, K], or [T, 1 + A, K]. Row 0 is of the newest frame,
            the others are anticipated. ``bad_frame``: bool, [] or [T], where
            the frame was missing or not finite.

        Raises:
            ValueError: If a modality is missing or has another shape.
        """
        frames, several = _frames(self.step, features)
        results = [_advance([self], [frame])[0] for frame in frames]
        if not several:
            return results[0]
        return {
            name: torch.stack([result[name] for result in results])
            for name in results[0]
        }

    def skip(self, number: int) -> None:
        """Take missing frames, which nobody wants the scores of.

        The same as ``push(None)`` that many times, with one warning, and at
        a cost that does not grow with the number: nothing is scored.

        Args:
            number: Frames that are missing, 0 or more.

        Raises:
            ValueError: If it is negative.
        """
        if number < 0:
            raise ValueError(f'number must be at least 0, got {number}')
        first = self.num_steps
        self.step.skip(number, self._state)
        if number:
            warnings.warn(_bad_frames(first, number), stacklevel=2)

    @staticmethod
    def push_many(
        sessions: Sequence['StreamSession'],
        features: Sequence[Mapping[str, Tensor] | None]
    ) -> list[dict[str, Tensor]]:
        """Take one frame of each of several streams, in one step.

        The streams may differ in age. It is fastest when the same sessions
        come in the same order each time: then nothing is copied.

        Args:
            sessions: Each once; all of one :meth:`spawn`.
            features: Of each, as :meth:`push` takes for one frame.

        Returns:
            Of each what :meth:`push` returns.

        Raises:
            ValueError: If the sessions are of different models or options, or
                one comes twice, or the features do not fit.
        """
        if len(sessions) != len(features):
            raise ValueError(f'push_many takes features for each session, got '
                             f'{len(features)} for {len(sessions)}')
        if not sessions:
            return []
        _check_sessions(sessions)
        frames = []
        for x in features:
            rows, several = _frames(sessions[0].step, x)
            if several:
                raise ValueError('push_many takes one frame of each stream, '
                                 'got [T, C]')
            frames += rows
        return _advance(sessions, frames)

    @staticmethod
    def record_graph(sessions: Sequence['StreamSession']) -> None:
        """Record the step of these streams as a CUDA graph.

        Until one of them is pushed with others, :meth:`push_many` of these in
        this order, or :meth:`push` if it is one, replays it.

        Args:
            sessions: Each once; all of one :meth:`spawn`.

        Raises:
            ValueError: If they are not on a CUDA device, or as in
                :meth:`push_many`.
        """
        _check_sessions(sessions)
        step = sessions[0].step
        _require_cuda('record_graph', step)
        batch = _join(sessions)
        batch.graph = CUDAGraphStep(step, batch.state)

    def reset(self) -> None:
        """Start a new stream."""
        self._write(self.step.initial_state())

    def state_dict(self) -> dict[str, Any]:
        """All of the session, to be saved: numbers, strings and tensors.

        ``torch.load`` reads it with ``weights_only=True``. A session of the
        same model and options that loads it goes on with the same bits.
        """
        return dict(
            version=VERSION,
            options=self._options(),
            state={name: x.clone() for name, x in self._state.items()})

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Go on where another session was.

        Args:
            state_dict: Of :meth:`state_dict`.

        Raises:
            ValueError: If it is of another version, model or options.
        """
        version = state_dict.get('version')
        if version != VERSION:
            raise ValueError(f'state_dict must be of version {VERSION}, got '
                             f'{version}')
        options = dict(state_dict['options'])
        # An option there was, by which streams were not right.
        if not options.get('released'):
            options.pop('released', None)
        state = dict(state_dict['state'])
        # The sums there were in float32.
        for name in {'weight', 'total'} & self._state.keys() & state.keys():
            state[name] = state[name].double()
        for name, got, wanted in (
            ('options', options, self._options()),
            ('state', _shapes(state), _shapes(self._state))):
            if got != wanted:
                raise ValueError(f'the {name} of state_dict must be {wanted}, '
                                 f'got {got}')
        self._write(state)

    def _options(self) -> dict[str, Any]:
        step = self.step
        return dict(
            long_memory_sample_rate=step.long_rate,
            work_memory_sample_rate=step.work_rate,
            kernel=step.kernel,
            stretch_long_memory=step.stretch_long_memory)

    def _write(self, state: Mapping[str, Tensor]) -> None:
        # In place: others may share the tensors, and a graph has recorded
        # where they are.
        for name, x in self._state.items():
            x.copy_(state[name])


@dataclass
class _Batch:
    """Streams that were pushed together last, side by side.

    Attributes:
        state: Of all, [B, ...] each, which is always updated in place.
        graph: Their step, if it is recorded.
    """
    state: dict[str, Tensor]
    graph: CUDAGraphStep | None = None


def _check_sessions(sessions: Sequence[StreamSession]) -> None:
    if len({id(session) for session in sessions}) < len(sessions):
        raise ValueError('sessions must be given once each')
    if any(session.step is not sessions[0].step for session in sessions):
        raise ValueError('sessions must share their step: make them by '
                         'session.spawn()')


def _require_cuda(name: str, step: nn.Module) -> None:
    if step.example.device.type != 'cuda':
        raise ValueError(f'{name} takes a model on a CUDA device, got one on '
                         f'{step.example.device}')


def _join(sessions: Sequence[StreamSession]) -> _Batch:
    """The batch of exactly these, in this order."""
    batch = sessions[0]._batch
    if len(sessions) == len(batch.state['count']) and all(
            session._batch is batch and session._row == row
            for row, session in enumerate(sessions)):
        return batch
    if len(sessions) == 1:
        return _Batch(sessions[0]._state)
    states = [session._state for session in sessions]
    batch = _Batch({
        name: torch.cat([state[name] for state in states])
        for name in states[0]
    })
    for row, session in enumerate(sessions):
        session._batch, session._row = batch, row
    return batch


@torch.no_grad()
def _advance(sessions: Sequence[StreamSession],
             frames: Sequence[Mapping[str, Tensor]]
             ) -> list[dict[str, Tensor]]:
    step, batch = sessions[0].step, _join(sessions)
    features = {
        name: torch.stack([frame[name] for frame in frames])
        for name in frames[0]
    }
    if batch.graph is None:
        scores, _ = step(features, batch.state)
    else:
        scores = batch.graph(features)
    for session, bad in zip(sessions, scores['bad_frame'].tolist()):
        if bad:
            warnings.warn(_bad_frames(session.num_steps - 1), stacklevel=3)
    return [{name: x[row] for name, x in scores.items()}
            for row in range(len(sessions))]


def _bad_frames(first: int, number: int = 1) -> str:
    frames = f'frame {first} of a stream is' if number == 1 else (
        f'frames {first} to {first + number - 1} of a stream are')
    return f'{frames} missing or not finite; the last good one stands in'


def _shapes(state: Mapping[str, Tensor]) -> dict[str, tuple]:
    return {name: (tuple(x.shape), x.dtype) for name, x in state.items()}


def _frames(
    step: nn.Module, features: Mapping[str, Tensor] | None
) -> tuple[list[dict[str, Tensor]], bool]:
    """Frames, each {modality: [channels]}, and whether there may be several.
    """
    in_channels = step.model.backbone.in_channels
    features = features or dict.fromkeys(in_channels)
    shapes = {}
    for name, channels in in_channels.items():
        if name not in features:
            raise ValueError(f'features must have {", ".join(in_channels)}, '
                             f'got {", ".join(features)}')
        x = features[name]
        if x is None:
            continue
        shapes[name] = tuple(x.shape[:-1])
        if x.dim() not in (1, 2) or x.shape[-1] != channels or (
                shapes[name] != next(iter(shapes.values()))) or not len(x):
            raise ValueError(
                f'features[{name!r}] must be [{channels}] or [T, {channels}], '
                f'T as of the others and at least 1, got {tuple(x.shape)}')
    lead = next(iter(shapes.values()), ())
    present = {
        name: features[name] if name in shapes else
        step.example.new_full((*lead, channels), torch.nan)
        for name, channels in in_channels.items()
    }
    if not lead:
        return [present], False
    return [dict(zip(present, rows)) for rows in zip(*present.values())], True
