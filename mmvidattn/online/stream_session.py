# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Frame-by-frame scoring of streams by an online detector."""
import time
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from ..layers.packed_linear import pack_linears
from ..ops.precision import without_autocast
from ..utils.arguments import Natural, NotNegative, check_type
from ..utils.half_precision import without_slow_bfloat16
from .mat import MAT, MATStep
from .miniroad import MiniROAD, MiniROADStep
from .online_video_encoder import OnlineVideoEncoder, VideoStep
from .stream_step import CUDAGraphStep, StreamStep
from .testra import TeSTra
from .testra_step import TeSTraStep

VERSION = 1
STEPS = {
    MAT: MATStep,
    MiniROAD: MiniROADStep,
    OnlineVideoEncoder: VideoStep,
    TeSTra: TeSTraStep,
}


def make_stream_step(model: nn.Module, *args: Any,
                     **kwargs: Any) -> StreamStep:
    """Build the :class:`mmvidattn.online.StreamStep` of a model.

    Raises:
        ValueError: If the backbone is not supported, or the options do not
            fit it.
    """
    for kind, step in STEPS.items():
        if isinstance(model.backbone, kind):
            # What depends on the weights alone keeps their dtype, and so do
            # the states.
            with without_autocast(next(model.parameters()).device.type):
                return step(model, *args, **kwargs)
    raise ValueError(
        'the backbone of a model for streams must be one of '
        f'{", ".join(kind.__name__ for kind in STEPS)}, got '
        f'{type(model.backbone).__name__}')


class StreamSession:
    """Online detector that scores one stream frame by frame.

    A frame is the features of one step (a row of the dataset's feature
    files), or an image for an :class:`mmvidattn.online.OnlineVideoEncoder`.
    The session stores the state of the stream. Each frame gets the same scores
    as in the dataset's windowed evaluation, but time and memory per frame do
    not grow with the stream::

        session = StreamSession(model)
        for features in stream:
            session.push(features)['action'][0].softmax(dim=-1)

    Before the work memory is full, a frame is scored from all frames so far,
    like in the first window of a video in the dataset's evaluation (except
    with ``fusion='long'``, where scores in a window depend on later frames).
    The session anticipates from the first frame on; the dataset's evaluation
    anticipates only when the work memory is full.

    A frame that is missing or not finite is replaced by the last good frame,
    or by zeros if there was none. The session warns, counts the frame and
    marks the result as ``bad_frame``.

    A model may have any number of sessions, each used by one thread at a time;
    it stores no state. It must stay in eval mode while sessions exist, and its
    weights must not change.

    Args:
        model: ``OnlineActionDetector`` in eval mode. On a CPU without bfloat16
            units, a bfloat16 model runs as a float32 copy, unless
            ``MMVIDATTN_BFLOAT16=force``.
        long_memory_sample_rate: Frames per sample of the long memory, the
            dataset's ``long_rate``. Each phase of the sampling has its own
            memory.
        work_memory_sample_rate: Frames per sample of the work memory, the
            dataset's ``work_rate``.
        kernel: 'window' uses the latest N samples, weighted by the model's
            decay, as in training and evaluation. 'smoothing', Eq. 6 of the
            paper, uses all earlier samples, at a cost that does not depend on
            N; it needs a long memory without positions. Defaults to 'window'.
        stretch_long_memory: Sample a stream that is shorter than the long
            memory as LSTR does, like the dataset's option. Defaults to True
            for models with positions in the long memory, such as LSTR.
        cuda_graph: Record the step of this session as a CUDA graph, and replay
            it until the session is pushed together with other sessions; see
            :meth:`record_graph`.

    Raises:
        ValueError: If the model is in training mode, or an option does not
            fit the model or its device.

    Attributes:
        step: Module of :func:`make_stream_step` that computes the scores;
            ``session.step.compile()`` compiles it.
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
            pack_linears(without_slow_bfloat16(model)),
            long_memory_sample_rate,
            work_memory_sample_rate,
            kernel,
            stretch_long_memory=stretch_long_memory))
        if cuda_graph:
            StreamSession.record_graph([self])

    def _start(self, step: nn.Module) -> None:
        self.step = step
        self._batch = _Batch(step.initial_state())
        self._row = 0

    def spawn(self) -> 'StreamSession':
        """Create a session with the same model and options for a new stream.

        The two sessions share everything that depends only on the weights,
        and :meth:`push_many` can score them in one batch.
        """
        other = object.__new__(type(self))
        other._start(self.step)
        return other

    @property
    def _state(self) -> dict[str, Tensor]:
        """State of this stream, [1, ...] each, as views of the batch."""
        return {
            name: x[self._row:self._row + 1]
            for name, x in self._batch.state.items()
        }

    @property
    def num_steps(self) -> int:
        """Number of frames until now."""
        return int(self._state['count'])

    @property
    def num_bad_frames(self) -> int:
        """Number of missing or non-finite frames until now."""
        return int(self._state['num_bad'])

    @property
    def num_bytes(self) -> int:
        """Size of the state in bytes. It does not grow."""
        return sum(x.nbytes for x in self._state.values())

    def push(self,
             features: Mapping[str, Tensor] | None) -> dict[str, Tensor]:
        """Score one frame or several.

        Args:
            features: ``{modality: features}``, each [C], or each [T, C] for T
                frames; or ``{'frames': [3, H, W] or [T, 3, H, W]}``, with an
                optional ``elapsed``, a number or [T]. None, or None for a
                modality, is a missing frame.

        Returns:
            ``action``, and ``verb`` and ``noun`` if the head has them: logits
            [1 + A, K] or [T, 1 + A, K] of the newest frame and the A
            anticipated ones; ``bad_frame``, bool, [] or [T]: whether the frame
            was missing or not finite.

        Raises:
            ValueError: If a modality is missing or has another shape.
        """
        frames, several = self.step.split_frames(features)
        results = [_advance([self], [frame])[0] for frame in frames]
        if not several:
            return results[0]
        return {
            name: torch.stack([result[name] for result in results])
            for name in results[0]
        }

    def skip(self, number: int, elapsed: float | None = None) -> None:
        """Skip missing frames without scoring them.

        Equivalent to calling ``push(None)`` ``number`` times, but without a
        warning, and at a cost that does not grow with the number.

        Args:
            number: Number of missing frames, 0 or more.
            elapsed: Duration of all these frames, in nominal frame intervals;
                only for models of videos. Defaults to ``number``.

        Raises:
            ValueError: If ``number`` is negative, or ``elapsed`` not allowed.
        """
        check_type('number', number, Natural)
        options = {}
        if elapsed is not None:
            check_type('elapsed', elapsed, NotNegative)
            if 'elapsed' not in self.step.frame_shapes:
                raise ValueError(
                    'elapsed is only for models of videos, got a '
                    f'{type(self.step.model.backbone).__name__}')
            options['elapsed'] = elapsed
        self.step.skip(number, self._state, **options)

    @staticmethod
    def push_many(
        sessions: Sequence['StreamSession'],
        features: Sequence[Mapping[str, Tensor] | None]
    ) -> list[dict[str, Tensor]]:
        """Score one frame of each of several streams in one batch.

        The streams may differ in age. Passing the same sessions in the same
        order each time is fastest, because nothing is copied.

        Args:
            sessions: Different sessions that share a step (:meth:`spawn`).
            features: Features of one frame for each session, as in
                :meth:`push`.

        Returns:
            Result of :meth:`push` for each session.

        Raises:
            ValueError: If the sessions do not share a step, a session appears
                twice, or the features do not fit.
        """
        if len(sessions) != len(features):
            raise ValueError('features must have one frame for each session, '
                             f'got {len(features)} for {len(sessions)}')
        if not sessions:
            return []
        _check_sessions(sessions)
        frames = []
        for x in features:
            rows, several = sessions[0].step.split_frames(x)
            if several:
                raise ValueError('features of push_many must be one frame of '
                                 'each stream, got [T, C]')
            frames += rows
        return _advance(sessions, frames)

    @staticmethod
    def record_graph(sessions: Sequence['StreamSession']) -> None:
        """Record the step of these streams as a CUDA graph.

        :meth:`push_many` with these sessions in this order replays it, or
        :meth:`push` for a single session. Any other batch with one of these
        sessions discards the graph.

        Args:
            sessions: Sessions of :meth:`push_many`, on a CUDA device.
        """
        _check_sessions(sessions)
        step = sessions[0].step
        if step.example.device.type != 'cuda':
            raise ValueError('a CUDA graph needs a model on a CUDA device, '
                             f'got one on {step.example.device}')
        batch = _join(sessions)
        batch.graph = CUDAGraphStep(step, batch.state)

    def reset(self) -> None:
        """Start a new stream."""
        self._write(self.step.initial_state())

    def state_dict(self) -> dict[str, Any]:
        """Return the state, which ``weights_only=True`` can load.

        A session of the same model and options that loads this state continues
        with bit-equal results.
        """
        return dict(
            version=VERSION,
            options=self.step.options,
            state={name: x.clone() for name, x in self._state.items()})

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Continue from a saved state.

        Args:
            state_dict: State of :meth:`state_dict`.

        Raises:
            ValueError: If the state is for another version, model or options.
        """
        version = state_dict.get('version')
        if version != VERSION:
            raise ValueError(f'state_dict must be of version {VERSION}, got '
                             f'{version}')
        state = state_dict['state']
        for name, got, expected in (
            ('options', state_dict['options'], self.step.options),
            ('state', _shapes(state), _shapes(self._state))):
            if got != expected:
                raise ValueError(f'the {name} of state_dict must be '
                                 f'{expected}, got {got}')
        self._write(state)

    def _write(self, state: Mapping[str, Tensor]) -> None:
        # Write in place, because other sessions may share the tensors, and a
        # CUDA graph contains their addresses.
        for name, x in self._state.items():
            x.copy_(state[name])


@dataclass
class _Batch:
    """Batch of the streams that the latest call scored together.

    Attributes:
        state: State of all streams, [B, ...] each; always updated in place.
        graph: Recorded step of these streams, if any.
    """
    state: dict[str, Tensor]
    graph: CUDAGraphStep | None = None


def _check_sessions(sessions: Sequence[StreamSession]) -> None:
    if len({id(session) for session in sessions}) < len(sessions):
        raise ValueError('sessions must be different, got one twice')
    if any(session.step is not sessions[0].step for session in sessions):
        raise ValueError('sessions must share their step: create them with '
                         'session.spawn()')


def _join(sessions: Sequence[StreamSession]) -> _Batch:
    """Return the batch of exactly these sessions in this order."""
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
            # Networks of features repeat the last good frame instead. In
            # networks of pixels, the state only ages.
            warnings.warn(f'frame {session.num_steps - 1} of a stream is '
                          'missing or not finite, and not used', stacklevel=3)
    return [{name: x[row] for name, x in scores.items()}
            for row in range(len(sessions))]


def _shapes(state: Mapping[str, Tensor]) -> dict[str, tuple]:
    return {name: (tuple(x.shape), x.dtype) for name, x in state.items()}


def stream_videos(session: StreamSession,
                  videos: Sequence[Mapping[str, Tensor]],
                  steps: Sequence[Sequence[int]]
                  ) -> tuple[list[dict[str, Tensor]], float]:
    """Run videos as a batch of streams, each from its first to its last step.

    Args:
        session: Session from which the streams are spawned.
        videos: ``{modality: features}`` of each video, [T, channels].
        steps: For each video, the n steps whose logits to return.

    Returns:
        For each video, the logits of these steps in this order (``action``
        [n, 1 + A, K] and so on, see :meth:`StreamSession.push`); and the
        seconds that all steps of all videos took.
    """
    frames = [session.step.split_frames(video)[0] for video in videos]
    # Sort by length, so that the remaining streams stay a batch.
    order = sorted(range(len(frames)), key=lambda i: -len(frames[i]))
    sessions = [session.spawn() for _ in frames]
    logits = [dict.fromkeys(each, {}) for each in steps]
    start = time.perf_counter()
    for step in range(len(frames[order[0]])):
        while len(frames[order[-1]]) <= step:
            order.pop()
        results = _advance([sessions[i] for i in order],
                           [frames[i][step] for i in order])
        for i, result in zip(order, results):
            if step in logits[i]:
                # A copy, because a view keeps the entire batch.
                logits[i][step] = {
                    name: y.clone() for name, y in result.items()
                    if name != 'bad_frame'}
    seconds = time.perf_counter() - start
    return [{name: torch.stack([scores[step][name] for step in each])
             for name in next(iter(scores.values()), {})}
            for scores, each in zip(logits, steps)], seconds
