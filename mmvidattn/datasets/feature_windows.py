# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Windows of feature streams, with a class for each kind of window.

Which steps the long memory of a window has follows the released code of TeSTra
and LSTR.
"""
from dataclasses import dataclass
from typing import Any

import numpy as np

from .feature_streams import FeatureStreams, Segment, SegmentTable


@dataclass(frozen=True)
class WindowShape:
    """Sizes of a window; see the options of :class:`FeatureStreamDataset`."""
    feature_rate: float
    long_steps: int = 0
    long_rate: int = 1
    work_steps: int = 1
    work_rate: int = 1
    anticipation_steps: int = 0
    anticipation_rate: int = 1
    future_steps: int = 0
    stretch_long_memory: bool = False
    pad_start: bool = False

    def __post_init__(self) -> None:
        for name in 'long', 'work', 'anticipation':
            steps = getattr(self, f'{name}_steps')
            rate = getattr(self, f'{name}_rate')
            if steps % rate:
                raise ValueError(f'{name}_steps must be a multiple of '
                                 f'{name}_rate ({rate}), got {steps}')

    @property
    def num_work(self) -> int:
        """Rows of the work memory, L."""
        return self.work_steps // self.work_rate

    @property
    def needed(self) -> int:
        """Number of steps of the work memory and of anticipation."""
        return self.work_steps + self.anticipation_steps

    @property
    def horizons(self) -> list[float]:
        """Seconds from the end of the work memory to each token."""
        ahead = range(1, self.anticipation_steps + 1, self.anticipation_rate)
        return [step / self.feature_rate for step in ahead]

    @property
    def second_ahead(self) -> float:
        """Entry of ``horizons`` of the token that anticipates by one second.

        It is one step more than a second, because the features of the first
        step of a segment are available one step after the segment starts.
        """
        return 1 + 1 / self.feature_rate

    def check_protocol(self, protocol: str) -> None:
        """Check that a token anticipates the step that a protocol scores."""
        if protocol == 'strict' and self.second_ahead not in self.horizons:
            raise ValueError("protocol='strict' needs a token one second "
                             f'ahead, got tokens at {self.horizons} s')

    def place_of_score(self, segment: Segment,
                       protocol: str) -> tuple[int, list[int]]:
        """Return the first step of a segment's window, and the row to score.

        The list of rows is empty if the segment starts too early.
        """
        start = segment.start
        if protocol == 'strict':
            token = self.horizons.index(self.second_ahead)
            end = start - token * self.anticipation_rate
            rows = [self.num_work + token] if end > 0 else []
            return end - self.work_steps, rows
        if start < self.anticipation_steps:
            return start % self.work_rate, []
        if start < self.work_steps:
            # The segment starts in the first window: score the detection of
            # its first step.
            first = start % self.work_rate
            return first, [(start - first) // self.work_rate]
        # The window's last row is the step before the segment.
        return start - 1 + self.work_rate - self.work_steps, [self.num_work]


def dense_long_indices(work_start: int, steps: int, rate: int,
                       keep_phase: bool = True) -> np.ndarray:
    """Return the steps of the long memory in evaluation, oldest first.

    The steps are ``rate`` apart, and the last one is ``rate`` steps before the
    work memory. Step 0 stands for steps before the video.

    Args:
        work_start: First step of the work memory.
        steps: Steps covered by the long memory.
        rate: Distance in steps between rows.
        keep_phase: If fewer than ``steps`` steps are available, count back
            from the work memory (TeSTra) instead of forward from step 0
            (LSTR).

    Returns:
        ``(steps // rate,)`` int64.
    """
    start = work_start - steps
    if start < 0:
        start = work_start % rate if keep_phase else 0
    known = np.arange(start, work_start, rate)
    # Near the start of the video, counting forward (LSTR) can give one step
    # too many.
    known = known[-(steps // rate):] if steps else known[:0]
    return np.concatenate(
        [np.zeros(steps // rate - len(known), np.int64), known])


def training_long_indices(work_start: int, steps: int, rate: int,
                          stretch: bool = False) -> np.ndarray:
    """Return the steps of the long memory in training, oldest first.

    The steps are spread evenly before the work memory, and rounded down. For
    the other arguments and the result, see :func:`dense_long_indices`.

    Args:
        stretch: If fewer than ``steps`` steps are available, spread all rows
            over them (LSTR) instead of repeating step 0 (TeSTra).
    """
    start = work_start - steps
    if stretch:
        start = max(0, start)
    spread = np.linspace(start, work_start - 1, steps // rate)
    # Rounds towards zero, as released: -0.8 becomes 0.
    return spread.astype(np.int64).clip(min=0)


def long_padding_mask(indices: np.ndarray) -> np.ndarray:
    """Mask the padding of a long memory with the steps ``indices``, ``(N,)``.

    All rows of step 0 except the last are padding.
    """
    mask = np.zeros(len(indices), dtype=bool)
    mask[:max(0, np.count_nonzero(indices == 0) - 1)] = True
    return mask


@dataclass
class DenseWindows:
    """A window of a video for each step at which it can begin.

    All steps of the first window are scored. Of every other window, only the
    last step is scored.

    Args:
        shape: Sizes of a window.
        streams: Features and targets.
        segments: Segments of all videos.
        test_mode: True for evaluation, False for training.
        protocol: Position of a segment's window in evaluation, see
            :class:`SegmentWindows`.
    """
    shape: WindowShape
    streams: FeatureStreams
    segments: SegmentTable
    test_mode: bool
    protocol: str
    mode = 'dense'
    only_for_evaluation = False
    scores_last_row = True

    @property
    def stride(self) -> int:
        """Distance in steps between windows that do not overlap."""
        return self.shape.work_steps if self.test_mode else self.shape.needed

    def list(self) -> list[dict]:
        """List the windows of all videos."""
        return [dict(video=video, work_start=start)
                for video, length in enumerate(self.streams.lengths)
                for start in self._starts(length)]

    def _starts(self, length: int) -> Any:
        if self.test_mode and length < self.stride:
            return [0]
        first = 1 - self.shape.work_steps if self.shape.pad_start else 0
        return range(first, length - self.stride + 1)

    def load(self, info: dict, rng: np.random.Generator) -> dict:
        """Return the input of the pipeline for a window of the list."""
        return self._window(info['video'], info['work_start'])

    def _window(self, video: int, work_start: int,
                segment: Segment | None = None) -> dict:
        shape = self.shape
        length = self.streams.lengths[video]
        work_end = work_start + shape.work_steps
        work = np.arange(work_start, work_end, shape.work_rate)
        ahead = np.arange(work_end, work_end + shape.anticipation_steps,
                          shape.anticipation_rate)
        if self.test_mode:
            # With protocol='strict', a window may begin before the video.
            long = self._dense_long(max(0, work_start))
        else:
            long = training_long_indices(
                work_start, shape.long_steps, shape.long_rate,
                shape.stretch_long_memory)
        is_first = work_start < shape.work_rate
        scored = np.flatnonzero(work < length)
        if self.scores_last_row and not is_first:
            scored = scored[-1:]
        num_future = 0 if self.test_mode else shape.future_steps
        return dict(
            video=video, video_name=self.streams.videos[video],
            video_length=length,
            long_indices=long, long_videos=np.full(len(long), video),
            padding_mask=long_padding_mask(long),
            work_indices=work, num_work=len(work), pad_start=shape.pad_start,
            future_steps=(work_end + 1 + np.arange(num_future)).clip(
                max=length - 1),
            anticipation_steps=ahead, horizons=shape.horizons,
            # MixClip replaces actions only if they end before this step.
            history_end=work_start if segment is None else segment.start,
            segment_id=None if segment is None else segment.id,
            segment_labels=None if segment is None else segment.labels,
            is_first_window=is_first, is_whole_video=False,
            score_rows=scored.tolist(), score_steps=work[scored].tolist(),
            evaluation_mode=self.mode)

    def _dense_long(self, work_start: int) -> np.ndarray:
        return dense_long_indices(
            work_start, self.shape.long_steps, self.shape.long_rate,
            not self.shape.stretch_long_memory)


class NonOverlappingWindows(DenseWindows):
    """Windows that do not overlap; all of their rows are scored.

    The released code of TeSTra reports the scores of these windows during
    training. The scores of :class:`DenseWindows` are higher.
    """
    mode = 'non_overlapping'
    only_for_evaluation = True
    scores_last_row = False

    def _starts(self, length: int) -> Any:
        if length < self.stride:
            return [0]
        starts = [*range(0, length - self.stride + 1, self.stride)]
        # Unlike the released code, also score the end of the video.
        return starts + [length - self.stride] * bool(length % self.stride)


class SegmentWindows(DenseWindows):
    """Windows that anticipate the segments of EPIC-Kitchens-100.

    In training, as in TeSTra's released code, a window moves later by a random
    number of steps below ``anticipation_steps``, but not beyond the end of the
    segment. In evaluation, ``protocol`` sets the end of the window:

    * ``'testra'``: as in the released code, the window ends with the step
      before the segment, and the first token is scored. It anticipates by a
      quarter to half a second, which the paper reports as one second. If the
      segment starts in the first window, the detection of the segment's first
      step is scored.
    * ``'strict'``: the window ends one second before the segment, and the
      token one second ahead is scored.
    """
    mode = 'segments'
    scores_last_row = False

    def list(self) -> list[dict]:
        """List the windows of segments with enough steps before them."""
        windows = []
        for number, segment in enumerate(self.segments):
            latest = min(segment.start + self.shape.anticipation_steps - 1,
                         segment.end,
                         self.streams.lengths[segment.video] - 1)
            if self.test_mode or latest >= self.shape.needed:
                windows.append(
                    dict(video=segment.video, segment=number, latest=latest))
        return windows

    def load(self, info: dict, rng: np.random.Generator) -> dict:
        segment = self.segments[info['segment']]
        if self.test_mode:
            first, rows = self.shape.place_of_score(segment, self.protocol)
            return self._window(segment.video, first, segment) | dict(
                score_rows=rows, score_steps=[segment.start] * len(rows),
                evaluation_mode=self.protocol)
        needed = self.shape.needed
        later = rng.integers(max(0, needed - segment.start),
                             self.shape.anticipation_steps)
        begin = min(segment.start + int(later), info['latest'])
        return self._window(segment.video, begin - needed, segment)


class VideoWindows(DenseWindows):
    """All :class:`DenseWindows` of a video as one item.

    The model then computes only once what several windows share, see
    :class:`~mmvidattn.recognizers.OnlineActionDetector`. For W windows of a
    video with T steps, ``inputs`` are features ``(T, D)``, ``long_indices``
    ``(W, N)``, ``work_indices`` ``(W, L)`` and ``padding_mask`` ``(W, N)``;
    targets are ``(T, K)``.
    """
    only_for_evaluation = True

    def _starts(self, length: int) -> Any:
        return [0]

    def load(self, info: dict, rng: np.random.Generator) -> dict:
        video = self._whole_video(info['video'])
        starts = np.arange(len(video['anticipation_steps']))
        long = np.stack([self._dense_long(start) for start in starts])
        work = starts[:, None] + video['work_indices']
        return video | dict(
            long_indices=long,
            padding_mask=np.stack([long_padding_mask(row) for row in long]),
            # Repeat the last step of a video that is shorter than a window.
            work_indices=work.clip(max=video['video_length'] - 1))

    def _whole_video(self, number: int) -> dict:
        """Return the input of the pipeline for a video."""
        video = self._window(number, 0)
        length = video['video_length']
        starts = np.arange(max(1, length - self.shape.work_steps + 1))
        return video | dict(
            anticipation_steps=starts[:, None] + video['anticipation_steps'],
            score_rows=list(range(length)),
            score_steps=list(range(length)),
            is_whole_video=True)


class StreamWindows(VideoWindows):
    """Videos that the model processes step by step, with all steps scored.

    ``inputs`` are features ``(T, D)``, ``long_rate``, ``work_rate`` and
    ``stretch_long_memory``.
    """
    mode = 'stream'

    def load(self, info: dict, rng: np.random.Generator) -> dict:
        return self._whole_video(info['video']) | dict(stream=dict(
            long_rate=self.shape.long_rate,
            work_rate=self.shape.work_rate,
            stretch_long_memory=self.shape.stretch_long_memory))


class SegmentStreamWindows(StreamWindows):
    """Videos processed step by step, with segments scored, without targets."""

    def load(self, info: dict, rng: np.random.Generator) -> dict:
        segments = self.segments.of_video[info['video']]
        places = [self._place(segment) for segment in segments]
        return super().load(info, rng) | dict(
            score_steps=[step for step, _ in places],
            score_rows=[rows for _, rows in places],
            segment_id=[segment.id for segment in segments],
            segment_labels=[segment.labels for segment in segments],
            evaluation_mode=f'{self.protocol}_stream')

    def _place(self, segment: Segment) -> tuple[int, list[int]]:
        """Return the step whose output scores a segment, and the row to score.

        Row 0 of the output is the detection of this step; the tokens follow.
        """
        num_work = self.shape.num_work
        first, rows = self.shape.place_of_score(segment, self.protocol)
        if not rows:
            return 0, []
        last = min(rows[0], num_work - 1)
        return (max(0, first + last * self.shape.work_rate),
                [max(0, rows[0] - num_work + 1)])


WINDOWS = dict(
    dense=DenseWindows, videos=VideoWindows,
    non_overlapping=NonOverlappingWindows, segments=SegmentWindows,
    stream=StreamWindows)
