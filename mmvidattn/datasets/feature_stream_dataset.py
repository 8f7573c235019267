# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Windows of feature streams, for online detection and anticipation."""
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from mmaction.registry import DATASETS
from mmengine.dataset import BaseDataset

from ..utils.arguments import check_arguments
from ..utils.checks import check_natural
from .feature_streams import (
    TARGETS,
    FeatureStreams,
    Segment,
    SegmentTable,
    read_segments,
)
from .feature_windows import (
    dense_long_indices,
    long_padding_mask,
    training_long_indices,
)

WINDOWS = ('dense', 'videos', 'non_overlapping', 'segments', 'stream')
PROTOCOLS = ('testra', 'strict')


@DATASETS.register_module()
@check_arguments(future_steps=check_natural)
class FeatureStreamDataset(BaseDataset):
    """Untrimmed videos as streams of features, cut into windows.

    The layout is that of the field's repositories::

        data_root
        |- <features of a modality>/<video>.npy    (steps, width)
        |- target_perframe/<video>.npy             (steps, classes), 0 or 1
        |- <ann_file>                              names of videos, one a line
        `- <classes>                               names of classes, one a line

    Files are mapped into memory; nothing is unpickled. A window has a long
    memory of N rows and, right behind it, a work memory of L rows; A tokens
    anticipate what follows the work memory. Each item is packed by the
    pipeline as ``inputs = dict(<modality>=(N + L, D), padding_mask=(N,))`` and
    a data sample with ``gt_action`` ``(L + A, K)``, and ``gt_verb`` and
    ``gt_noun`` where these have folders.

    Which windows there are:

    * ``'dense'``: one that begins at each step; the last row counts, and all
      rows of a video's first. In training it takes the sampler
      :class:`RandomOffsetSampler` to see each step once an epoch.
    * ``'videos'``: the same, but an item is a whole video, so that the model
      can share what its windows share (see :class:`OnlineActionDetector`).
      ``inputs`` are features ``(T, D)``, ``long_indices`` ``(W, N)``,
      ``work_indices`` ``(W, L)`` and ``padding_mask`` ``(W, N)``; targets
      ``(T, K)``. Evaluation only, and of a ``work_rate`` of 1.
    * ``'stream'``: an item is a whole video, which the model runs step by
      step, as it would a camera; the videos of a batch side by side.
      ``inputs`` are features ``(T, D)``, ``long_rate``, ``work_rate`` and
      ``stretch_long_memory``. Without a ``segment_file`` each step is scored,
      as with ``'videos'``; with one, the segments are, as with
      ``'segments'``, and targets are not read. Evaluation only.
    * ``'non_overlapping'``: in evaluation, each step once. The released code
      reports this while it trains; its numbers are lower than the dense ones.
    * ``'segments'``: one before each annotated segment of EPIC-Kitchens-100,
      to anticipate it. In training the segment is taken to begin up to
      ``anticipation_steps`` later than it does, drawn uniformly, but not
      after its end (as released). In evaluation ``protocol`` says when the
      window ends: ``'testra'`` has, as released, the first
      token after the step before the segment (a quarter to half a second,
      reported as one second) and, of segments within the first window, the
      row of the detection; ``'strict'`` has seen nothing later than one
      second before the segment, and reads its second token. Files without
      labels, such as those of a challenge, are for evaluation without
      ``gt_action``.

    A video shorter than the work memory is evaluated in one window whose last
    rows repeat its last step and do not count. It is not trained on. Steps
    that are not of the video have targets of 0.

    Args:
        ann_file: List of the videos' names.
        data_root: Folder that all other paths are relative to.
        data_prefix: Of each modality, and of ``gt_action`` (and ``gt_verb``,
            ``gt_noun``), the folder. One that is None is left out.
        metainfo: ``classes``: their names or a file of these, background
            and "Ambiguous" included.
        pipeline: Transforms.
        feature_rate: Steps a second.
        long_steps: How far back the long memory reaches; 0 for none.
        long_rate: Every how many steps the long memory takes one.
        work_steps: Length of the work memory.
        work_rate: Every how many steps the work memory takes one.
        anticipation_steps: How far ahead the tokens reach; 0 for none.
        anticipation_rate: Every how many steps there is a token.
        future_steps: How many steps behind the one that follows the work
            memory have targets of their own in training, as MAT takes them:
            ``gt_future_action`` ``(future_steps, K)``, and so on. Beyond the
            end of the video the last step is repeated.
        stretch_long_memory: At the start of a video spread the long memory
            over what there is (LSTR), instead of padding it (TeSTra).
        windows: Which windows there are, see above.
        protocol: When the windows of segments end in evaluation, see above.
        segment_file: CSV of segments, see :func:`read_segments`. Without it
            segments are the runs of a class.
        video_fps: Frames a second in that file.
        background_index: Class without segments.
        ignore_index: Another such class, if there is one.
        pad_start: In training on ``'dense'``, windows may begin before the
            video, up to one that ends with its first step, as MiniROAD's do;
            steps before it are zeros. Without a long memory only.
        feature_dims: Width of each modality, if it is to be checked.
        test_mode: Evaluation.
        kwargs: Other arguments of ``BaseDataset``.
    """

    def __init__(self,
                 ann_file: str,
                 data_root: str = '',
                 data_prefix: dict = dict(gt_action='target_perframe'),
                 metainfo: Mapping | None = None,
                 pipeline: list = [],
                 *,
                 feature_rate: float = 4.,
                 long_steps: int = 2048,
                 long_rate: int = 4,
                 work_steps: int = 32,
                 work_rate: int = 1,
                 anticipation_steps: int = 0,
                 anticipation_rate: int = 1,
                 future_steps: int = 0,
                 stretch_long_memory: bool = False,
                 windows: str = 'dense',
                 protocol: str = 'testra',
                 segment_file: str | None = None,
                 video_fps: float = 30.,
                 background_index: int | None = 0,
                 ignore_index: int | None = None,
                 pad_start: bool = False,
                 feature_dims: Mapping[str, int] | None = None,
                 test_mode: bool = False,
                 **kwargs: Any) -> None:
        for name, value, rate, least in (
                ('long', long_steps, long_rate, 0),
                ('work', work_steps, work_rate, 1),
                ('anticipation', anticipation_steps, anticipation_rate, 0)):
            if value < least or value % rate:
                raise ValueError(
                    f'{name}_steps must be a multiple of {name}_rate ({rate}) '
                    f'and at least {least}, got {value}')
        for name, value, valid in (('windows', windows, WINDOWS),
                                   ('protocol', protocol, PROTOCOLS)):
            if value not in valid:
                raise ValueError(f'{name} must be one of {", ".join(valid)}, '
                                 f'got {value!r}')
        of_segments = windows == 'segments' or (
            windows == 'stream' and segment_file is not None)
        if of_segments and segment_file is None:
            raise ValueError("windows='segments' needs segment_file")
        if of_segments and not anticipation_steps:
            raise ValueError(f'windows={windows!r} needs anticipation_steps '
                             'to score segments')
        if windows in ('videos', 'non_overlapping',
                       'stream') and not test_mode:
            raise ValueError(f'windows={windows!r} is for evaluation; '
                             "train on 'dense' with RandomOffsetSampler")
        if windows in ('videos', 'stream') and work_rate > 1 and (
                not of_segments):
            raise ValueError(f'windows={windows!r} needs work_rate=1, got '
                             f'{work_rate}')
        if pad_start and (windows != 'dense' or test_mode or long_steps):
            raise ValueError("pad_start is for training on windows='dense' "
                             'without a long memory, got '
                             f'windows={windows!r}, test_mode={test_mode} and '
                             f'long_steps={long_steps}')
        data_prefix = {
            key: folder for key, folder in data_prefix.items()
            if folder is not None
        }
        needs_targets = not (of_segments and test_mode)
        if not {*data_prefix} - {*TARGETS} or (
                needs_targets and 'gt_action' not in data_prefix):
            raise ValueError(
                'data_prefix must have the folders of gt_action and of one '
                f'modality or more, got {dict(data_prefix)}')
        self.feature_rate = feature_rate
        self.long_steps, self.long_rate = long_steps, long_rate
        self.work_steps, self.work_rate = work_steps, work_rate
        self.anticipation_steps = anticipation_steps
        self.anticipation_rate = anticipation_rate
        self.future_steps = future_steps
        self.stretch_long_memory = stretch_long_memory
        self.windows = windows
        self.of_segments = of_segments
        self.protocol = protocol
        self.segment_file = segment_file
        self.video_fps = video_fps
        self.background_index = background_index
        self.ignore_index = ignore_index
        self.pad_start = pad_start
        self.feature_dims = dict(feature_dims or {})
        if of_segments and test_mode and protocol == 'strict':
            if self._seconds_ahead() not in self.horizons:
                raise ValueError(
                    "protocol='strict' needs a token one second ahead, got "
                    f'tokens at {self.horizons} s')
        super().__init__(
            ann_file=ann_file,
            data_root=data_root,
            data_prefix=data_prefix,
            metainfo=metainfo,
            pipeline=pipeline,
            test_mode=test_mode,
            # Windows are small, and the sampler reads them all.
            **{'serialize_data': False, **kwargs})

    @property
    def stride(self) -> int:
        """Steps from one window to the next that shares nothing with it."""
        if self.test_mode:
            return self.work_steps
        return self.work_steps + self.anticipation_steps

    @property
    def horizons(self) -> list[float]:
        """Seconds from the last step that is seen to that of each token."""
        ahead = range(1, self.anticipation_steps + 1, self.anticipation_rate)
        return [step / self.feature_rate for step in ahead]

    def _seconds_ahead(self) -> float:
        # The token of the first step of the segment, whose features end
        # one step later than it begins.
        return 1 + 1 / self.feature_rate

    @classmethod
    def _load_metainfo(cls, metainfo: Mapping | None = None) -> dict:
        # mmengine would go on with the path as the names.
        for key, value in (metainfo or {}).items():
            if isinstance(value, str) and not Path(value).is_file():
                raise ValueError(f'metainfo: there is no file {value} of '
                                 f'{key}')
        return super()._load_metainfo(metainfo)

    def load_data_list(self) -> list[dict]:
        """Open all files, check them, and list the windows."""
        if not Path(self.ann_file).is_file():
            raise ValueError(f'ann_file: there is no file {self.ann_file}')
        lines = Path(self.ann_file).read_text(
            encoding='utf-8-sig').splitlines()
        videos = [line.strip() for line in lines if line.strip()]
        twice = {v for v in videos if videos.count(v) > 1}
        if not videos or twice:
            raise ValueError(
                f'{self.ann_file} must list videos, each once, got '
                + (', '.join(sorted(twice)) + ' twice' if twice else 'none'))
        widths = {
            key: width for key, width in self.feature_dims.items()
            if key in self.data_prefix
        }
        if 'classes' in self._metainfo:
            widths['gt_action'] = len(self._metainfo['classes'])
        self.streams = FeatureStreams(videos, self.data_prefix, widths)
        if self.segment_file is None:
            self.segments = self.streams.segments_of_targets(
                self.background_index, self.ignore_index)
        else:
            path = Path(self.data_root, self.segment_file)
            self.segments = read_segments(path, videos, self.video_fps,
                                          self.feature_rate)
            self._check_segments(path)
            # Their ends may be behind that of the features.
            self.segments = SegmentTable(
                s._replace(end=min(s.end, self.streams.lengths[s.video]))
                for s in self.segments)
        listing = (self._list_segments
                   if self.windows == 'segments' else self._list_windows)
        windows = listing()
        if not windows:
            raise ValueError(
                f'{self.ann_file}: there must be a window of {self.stride} '
                f'steps, but the longest of {len(videos)} videos has '
                f'{max(self.streams.lengths)}'
                + (', or none has a segment' if self.segment_file else ''))
        return windows

    def _check_segments(self, path: Path) -> None:
        for segment in self.segments:
            length = self.streams.lengths[segment.video]
            where = f'{path}: segment {segment.id}'
            if segment.start >= length:
                raise ValueError(
                    f'{where} begins in step {segment.start} of '
                    f'{self.streams.videos[segment.video]}, which has '
                    f'{length}')
            if not segment.labels and not self.test_mode:
                raise ValueError(f'{where} has no labels; it is for '
                                 'evaluation (test_mode=True)')
            for part, label in segment.labels.items():
                # 0 is the background.
                classes = self.streams.widths.get(f'gt_{part}', np.inf) - 1
                if label >= classes:
                    raise ValueError(f'{where} is of {part} {label}, but '
                                     f'there are {classes}')

    def _list_windows(self) -> list[dict]:
        windows = []
        step = self.stride if self.windows == 'non_overlapping' else 1
        for video, length in enumerate(self.streams.lengths):
            if self.windows in ('videos', 'stream'):
                windows.append(dict(video=video, work_start=0))
                continue
            first = 1 - self.work_steps if self.pad_start else 0
            starts = range(first, length - self.stride + 1, step)
            if self.test_mode and length < self.stride:
                starts = [0]
            elif self.windows == 'non_overlapping' and length % step:
                # The end of the video, which the released code leaves out.
                starts = [*starts, length - self.work_steps]
            windows += [
                dict(video=video, work_start=start) for start in starts
            ]
        return windows

    def _list_segments(self) -> list[dict]:
        windows = []
        needed = self.work_steps + self.anticipation_steps
        for number, segment in enumerate(self.segments):
            latest = min(segment.start + self.anticipation_steps - 1,
                         segment.end,
                         self.streams.lengths[segment.video] - 1)
            if self.test_mode or latest >= needed:
                windows.append(
                    dict(video=segment.video, segment=number, latest=latest))
        return windows

    def get_data_info(self, idx: int) -> dict:
        """One window, before the pipeline."""
        info = super().get_data_info(idx)
        # Follows the seed of numpy, but in evaluation leaves it alone.
        rng = np.random.default_rng(
            0 if self.test_mode else np.random.randint(2**31))
        segment = self.segments[info['segment']] if 'segment' in info else None
        if self.windows == 'videos':
            return self._video(info)
        if self.windows == 'stream':
            return self._stream(info)
        if segment is None:
            return self._window(info, info['work_start'], rng)
        if self.test_mode:
            return self._evaluated_segment(info, segment, rng)
        needed = self.work_steps + self.anticipation_steps
        later = rng.integers(
            max(0, needed - segment.start), self.anticipation_steps)
        begin = min(segment.start + int(later), info['latest'])
        return self._window(info, begin - needed, rng, segment)

    def _evaluated_segment(self, info: dict, segment: Segment,
                           rng: np.random.Generator) -> dict:
        first, rows = self._place_of_score(segment)
        window = self._window(info, first, rng, segment)
        window.update(
            score_rows=rows,
            score_steps=[segment.start] * len(rows),
            evaluation_mode=self.protocol)
        return window

    def _place_of_score(self, segment: Segment) -> tuple[int, list[int]]:
        """First step of the window of a segment, and the row that counts.

        Without a row nothing was seen of it in time.
        """
        start = segment.start
        if self.protocol == 'strict':
            token = self.horizons.index(self._seconds_ahead())
            end = start - token * self.anticipation_rate
            rows = [self.num_work + token] if end > 0 else []
            return end - self.work_steps, rows
        if start < self.anticipation_steps:
            return start % self.work_rate, []
        if start < self.work_steps:
            # A row of the first window of this phase: a detection.
            first = start % self.work_rate
            return first, [(start - first) // self.work_rate]
        # The last step that is sampled is the one before the segment.
        return start - 1 + self.work_rate - self.work_steps, [self.num_work]

    @property
    def num_work(self) -> int:
        """Rows of the work memory, L."""
        return self.work_steps // self.work_rate

    def _window(self,
                info: dict,
                work_start: int,
                rng: np.random.Generator,
                segment: Segment | None = None) -> dict:
        video = info['video']
        length = self.streams.lengths[video]
        work_end = work_start + self.work_steps
        work = np.arange(work_start, work_end, self.work_rate)
        ahead = np.arange(work_end, work_end + self.anticipation_steps,
                          self.anticipation_rate)
        # What strict windows lack before the video begins is step 0.
        if self.test_mode:
            long = dense_long_indices(
                max(0, work_start), self.long_steps, self.long_rate,
                not self.stretch_long_memory)
        else:
            long = training_long_indices(
                work_start, self.long_steps, self.long_rate,
                self.stretch_long_memory)
        inside = np.flatnonzero(work < length)
        first = work_start < self.work_rate
        counting = inside
        if self.windows == 'dense' and not first:
            counting = inside[-1:]
        return dict(
            streams=self.streams,
            segments=self.segments,
            rng=rng,
            sample_idx=info['sample_idx'],
            video=video,
            video_name=self.streams.videos[video],
            video_length=length,
            feature_rate=self.feature_rate,
            long_indices=long,
            long_videos=np.full(len(long), video),
            padding_mask=long_padding_mask(long),
            work_indices=work,
            pad_start=self.pad_start,
            future_steps=(work_end + 1 + np.arange(
                0 if self.test_mode else self.future_steps)).clip(
                    max=length - 1),
            num_work=len(work),
            anticipation_steps=ahead,
            horizons=self.horizons,
            # Until when MixClip may touch the history.
            history_end=work_start if segment is None else segment.start,
            segment_id=None if segment is None else segment.id,
            segment_labels=None if segment is None else segment.labels,
            is_first_window=first,
            is_whole_video=False,
            score_rows=counting.tolist(),
            score_steps=work[counting].tolist(),
            evaluation_mode=self.windows)

    def _whole_video(self, info: dict) -> dict:
        """A video of which each step is scored, in one item."""
        window = self._window(info, 0, np.random.default_rng(0))
        length = window['video_length']
        starts = np.arange(max(1, length - self.work_steps + 1))
        window.update(
            anticipation_steps=starts[:, None] + window['anticipation_steps'],
            score_rows=list(range(length)),
            score_steps=list(range(length)),
            is_whole_video=True)
        return window

    def _stream(self, info: dict) -> dict:
        """A video, to be run step by step."""
        video = self._whole_video(info)
        video.update(
            evaluation_mode='stream',
            stream=dict(
                long_rate=self.long_rate,
                work_rate=self.work_rate,
                stretch_long_memory=self.stretch_long_memory))
        if not self.of_segments:
            return video
        segments = self.segments.of_video(info['video'])
        places = [self._place_in_stream(segment) for segment in segments]
        video.update(
            score_steps=[step for step, _ in places],
            score_rows=[rows for _, rows in places],
            segment_id=[segment.id for segment in segments],
            segment_labels=[segment.labels for segment in segments],
            evaluation_mode=f'{self.protocol}_stream')
        return video

    def _place_in_stream(self, segment: Segment) -> tuple[int, list[int]]:
        """Step of a stream that scores a segment, and the row that counts.

        Row 0 is the detection, the others are the tokens.
        """
        first, rows = self._place_of_score(segment)
        if not rows:
            return 0, []
        last = min(rows[0], self.num_work - 1)
        return (max(0, first + last * self.work_rate),
                [max(0, rows[0] - self.num_work + 1)])

    def _video(self, info: dict) -> dict:
        """All windows of a video, in one item."""
        window = self._whole_video(info)
        length = window['video_length']
        starts = np.arange(len(window['anticipation_steps']))
        long = np.stack([
            dense_long_indices(start, self.long_steps, self.long_rate,
                               not self.stretch_long_memory)
            for start in starts
        ])
        work = starts[:, None] + window['work_indices']
        window.update(
            long_indices=long,
            padding_mask=np.stack([long_padding_mask(row) for row in long]),
            # A video shorter than a window goes on with its last step.
            work_indices=work.clip(max=length - 1),
            evaluation_mode='dense')
        return window
