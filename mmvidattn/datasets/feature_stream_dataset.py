# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Windows of feature streams, for online detection and anticipation."""
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import numpy as np
from mmaction.registry import DATASETS
from mmengine.dataset import BaseDataset

from ..utils.arguments import Count, Natural, Positive, check_arguments
from ..utils.lines import read_lines
from .feature_streams import (
    TARGETS,
    FeatureStreams,
    SegmentTable,
    read_segments,
)
from .feature_windows import WINDOWS, SegmentStreamWindows, WindowShape

PROTOCOLS = ('testra', 'strict')


@DATASETS.register_module()
@check_arguments
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

    Each kind of window is a class of :mod:`~.feature_windows`:

    * ``'dense'``, :class:`~.feature_windows.DenseWindows`: a window at each
      step. Train with the sampler :class:`RandomOffsetSampler`, which takes
      each step once an epoch.
    * ``'videos'``, :class:`~.feature_windows.VideoWindows`: the dense windows
      of a whole video as one item. Evaluation only, with a ``work_rate`` of
      1.
    * ``'stream'``, :class:`~.feature_windows.StreamWindows`: a whole video,
      which the model runs step by step. Evaluation only. Each step is scored
      (with a ``work_rate`` of 1), or, with a ``segment_file``, each segment.
    * ``'non_overlapping'``,
      :class:`~.feature_windows.NonOverlappingWindows`: each step in one
      window. Evaluation only.
    * ``'segments'``, :class:`~.feature_windows.SegmentWindows`: a window
      before each annotated segment. Files without labels (of a challenge) are
      for evaluation without ``gt_action``.

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
        windows: Kind of window, see above.
        protocol: End of a segment's window in evaluation, see
            :class:`~.feature_windows.SegmentWindows`.
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
                 feature_rate: Positive = 4.,
                 long_steps: Natural = 2048,
                 long_rate: Count = 4,
                 work_steps: Count = 32,
                 work_rate: Count = 1,
                 anticipation_steps: Natural = 0,
                 anticipation_rate: Count = 1,
                 future_steps: Natural = 0,
                 stretch_long_memory: bool = False,
                 windows: Literal[tuple(WINDOWS)] = 'dense',
                 protocol: Literal[PROTOCOLS] = 'testra',
                 segment_file: str | None = None,
                 video_fps: Positive = 30.,
                 background_index: Natural | None = 0,
                 ignore_index: Natural | None = None,
                 pad_start: bool = False,
                 feature_dims: Mapping[str, Count] | None = None,
                 test_mode: bool = False,
                 **kwargs: Any) -> None:
        of_segments = windows == 'segments' or (
            windows == 'stream' and segment_file is not None)
        if of_segments and segment_file is None:
            raise ValueError("windows='segments' needs segment_file")
        if of_segments and not anticipation_steps:
            raise ValueError(f'windows={windows!r} needs anticipation_steps '
                             'to score segments')
        if WINDOWS[windows].only_for_evaluation and not test_mode:
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
        self.shape = WindowShape(
            feature_rate, long_steps, long_rate, work_steps, work_rate,
            anticipation_steps, anticipation_rate, future_steps,
            stretch_long_memory, pad_start)
        self.windows = windows
        self.protocol = protocol
        self.segment_file = segment_file
        self.video_fps = video_fps
        self.background_index = background_index
        self.ignore_index = ignore_index
        self.feature_dims = dict(feature_dims or {})
        if of_segments and test_mode and protocol == 'strict':
            if self.shape.second_ahead not in self.shape.horizons:
                raise ValueError(
                    "protocol='strict' needs a token one second ahead, got "
                    f'tokens at {self.shape.horizons} s')
        super().__init__(
            ann_file=ann_file,
            data_root=data_root,
            data_prefix=data_prefix,
            metainfo=metainfo,
            pipeline=pipeline,
            test_mode=test_mode,
            # Windows are small, and the sampler reads them all.
            **{'serialize_data': False, **kwargs})

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
        videos = [line.strip() for line in read_lines(self.ann_file)
                  if line.strip()]
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
                                          self.shape.feature_rate)
            self._check_segments(path)
            # Their ends may be behind that of the features.
            self.segments = SegmentTable(
                s._replace(end=min(s.end, self.streams.lengths[s.video]))
                for s in self.segments)
        kind = WINDOWS[self.windows]
        if self.windows == 'stream' and self.segment_file is not None:
            kind = SegmentStreamWindows
        self._kind = kind(self.shape, self.streams, self.segments,
                          self.test_mode, self.protocol)
        windows = self._kind.list()
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

    @property
    def stride(self) -> int:
        """Steps between windows without a common step."""
        return self._kind.stride

    def get_data_info(self, idx: int) -> dict:
        """One window, before the pipeline."""
        info = super().get_data_info(idx)
        # Follows the seed of numpy, but in evaluation leaves it alone.
        rng = np.random.default_rng(
            0 if self.test_mode else np.random.randint(2**31))
        return dict(
            streams=self.streams,
            segments=self.segments,
            rng=rng,
            sample_idx=info['sample_idx'],
            **self._kind.load(info, rng))
