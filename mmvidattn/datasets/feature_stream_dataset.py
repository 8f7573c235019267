# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Datasets of features: windows of streams, and frozen features of clips."""
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from mmaction.registry import DATASETS
from mmaction.structures import ActionDataSample
from mmengine.dataset import BaseDataset
from mmengine.fileio import exists
from safetensors.torch import load_file

from ..utils.arguments import Count, Natural, Positive, check_arguments
from ..utils.remote_files import join_url
from ..utils.text_files import read_lines
from .feature_streams import (
    TARGETS,
    FeatureStreams,
    SegmentTable,
    read_segments,
)
from .feature_windows import WINDOWS, SegmentStreamWindows, WindowShape

PROTOCOLS = ('testra', 'strict')


def read_video_names(path: str | Path) -> list[str]:
    """Read a list of video names, one a line.

    Raises:
        ValueError: If the file is missing or empty, or repeats a name.
    """
    if not exists(path):
        raise ValueError(f'ann_file not found: {path}')
    videos = [line.strip() for line in read_lines(path) if line.strip()]
    repeated = sorted(v for v, count in Counter(videos).items() if count > 1)
    if not videos or repeated:
        raise ValueError(
            f'{path} must list each video once, got '
            + (f'{", ".join(repeated)} twice' if repeated else 'no videos'))
    return videos


@DATASETS.register_module()
@check_arguments
class FeatureStreamDataset(BaseDataset):
    """Untrimmed videos as feature streams, cut into windows.

    A step is a row of a video's feature files. The files are::

        data_root
        |- <features of a modality>/<video>.npy    (steps, width)
        |- target_perframe/<video>.npy             (steps, classes), 0 or 1
        |- <ann_file>                              names of videos, one a line
        `- <classes>                               names of classes, one a line

    Files are mapped into memory; nothing is unpickled.

    A window has N rows of long memory, then L rows of work memory. The model
    also anticipates a number of later steps, one with each anticipation token.
    The pipeline packs a window with A tokens as
    ``inputs = dict(<modality>=(N + L, D), padding_mask=(N,))`` and a data
    sample with ``gt_action`` ``(L + A, K)``, and with ``gt_verb`` and
    ``gt_noun`` if ``data_prefix`` has their folders.

    ``windows`` selects the kind of window, see the classes in
    :mod:`.feature_windows`. Train on ``'dense'`` windows, one for each step,
    with :class:`RandomOffsetSampler`, which uses each step once per epoch, or
    on ``'segments'``, one before each annotated segment. Only for evaluation
    are ``'videos'`` (all dense windows of a video, with ``work_rate=1``),
    ``'stream'`` (a video that the model processes step by step) and
    ``'non_overlapping'``. Segments without labels (of a challenge) are only
    allowed in evaluation, without ``gt_action``.

    A video shorter than the work memory is not used for training. In
    evaluation, it is one window, which repeats the last step of the video; the
    repeated steps are not scored. Steps before or after the video have targets
    of zeros.

    Args:
        ann_file: List of video names.
        data_root: Folder, or its URL, that all other paths are relative to.
        data_prefix: Folder of each modality, of ``gt_action``, and optionally
            of ``gt_verb`` and ``gt_noun``. Entries that are None are ignored.
        metainfo: ``classes``: class names, or the path of their file. They
            include the background and, for THUMOS'14, "Ambiguous".
        pipeline: Transforms.
        feature_rate: Steps per second.
        long_steps: Steps covered by the long memory; 0 for no long memory.
        long_rate: Distance in steps between rows of the long memory.
        work_steps: Steps covered by the work memory.
        work_rate: Distance in steps between rows of the work memory.
        anticipation_steps: Number of steps after the work memory that tokens
            anticipate; 0 for no tokens.
        anticipation_rate: Distance in steps between tokens.
        future_steps: Number of steps with additional targets for MAT in
            training: ``gt_future_action`` ``(future_steps, K)``, and
            ``gt_future_verb`` and ``gt_future_noun`` if they have folders. The
            first step is two steps after the work memory. After the end of the
            video, the last step is repeated.
        stretch_long_memory: At the start of a video, spread the rows of the
            long memory over the available steps (LSTR) instead of padding with
            step 0 (TeSTra).
        windows: Kind of window, see above. Defaults to ``'dense'``.
        protocol: Position of a segment's window in evaluation, ``'testra'`` or
            ``'strict'``, see :class:`~.feature_windows.SegmentWindows`.
        segment_file: CSV file of segments, see :func:`read_segments`. By
            default, consecutive steps of a class in ``gt_action`` are a
            segment.
        video_fps: Frames per second in ``segment_file``.
        background_index: Class without segments.
        ignore_index: Another class without segments.
        pad_start: Also use training windows that begin before the video, like
            MiniROAD; the earliest one ends with the first step. Steps before
            the video are zeros. Only for ``windows='dense'`` without a long
            memory.
        feature_dims: Expected width of each modality. Not checked by default.
        test_mode: Prepare windows for evaluation instead of training.
        kwargs: Other arguments of ``BaseDataset``.
    """

    def __init__(self, ann_file: str, data_root: str = '',
                 data_prefix: dict = dict(gt_action='target_perframe'),
                 metainfo: Mapping | None = None, pipeline: list = [], *,
                 feature_rate: Positive = 4.,
                 long_steps: Natural = 2048, long_rate: Count = 4,
                 work_steps: Count = 32, work_rate: Count = 1,
                 anticipation_steps: Natural = 0, anticipation_rate: Count = 1,
                 future_steps: Natural = 0, stretch_long_memory: bool = False,
                 windows: Literal[tuple(WINDOWS)] = 'dense',
                 protocol: Literal[PROTOCOLS] = 'testra',
                 segment_file: str | None = None, video_fps: Positive = 30.,
                 background_index: Natural | None = 0,
                 ignore_index: Natural | None = None, pad_start: bool = False,
                 feature_dims: Mapping[str, Count] | None = None,
                 test_mode: bool = False, **kwargs: Any) -> None:
        scores_segments = windows == 'segments' or (
            windows == 'stream' and segment_file is not None)
        if scores_segments and segment_file is None:
            raise ValueError("windows='segments' needs segment_file")
        if scores_segments and not anticipation_steps:
            raise ValueError(f'windows={windows!r} needs anticipation_steps '
                             'to score segments')
        if WINDOWS[windows].only_for_evaluation and not test_mode:
            raise ValueError(f'windows={windows!r} is only for evaluation; '
                             "train on 'dense' with RandomOffsetSampler")
        if windows in ('videos', 'stream') and work_rate > 1 and (
                not scores_segments):
            raise ValueError(f'windows={windows!r} needs work_rate=1, got '
                             f'{work_rate}')
        if pad_start and (windows != 'dense' or test_mode or long_steps):
            raise ValueError("pad_start is only for training on "
                             "windows='dense' without a long memory, got "
                             f'windows={windows!r}, test_mode={test_mode} and '
                             f'long_steps={long_steps}')
        data_prefix = {key: folder for key, folder in data_prefix.items()
                       if folder is not None}
        needs_targets = not (scores_segments and test_mode)
        if not {*data_prefix} - {*TARGETS} or (
                needs_targets and 'gt_action' not in data_prefix):
            raise ValueError(
                'data_prefix must have the folders of gt_action and of at '
                f'least one modality, got {dict(data_prefix)}')
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
        if scores_segments and test_mode:
            self.shape.check_protocol(protocol)
        super().__init__(
            ann_file=ann_file, data_root=data_root, data_prefix=data_prefix,
            metainfo=metainfo, pipeline=pipeline, test_mode=test_mode,
            # Entries are small, and the sampler reads all of them.
            **{'serialize_data': False, **kwargs})

    @classmethod
    def _load_metainfo(cls, metainfo: Mapping | None = None) -> dict:
        # mmengine would use the path of a missing file as class names.
        for key, value in (metainfo or {}).items():
            if isinstance(value, str) and not exists(value):
                raise ValueError(
                    f'metainfo: file of {key} not found: {value}; if the data '
                    'set is in another folder, pass --cfg-options '
                    'data_root=FOLDER')
        return super()._load_metainfo(metainfo)

    def load_data_list(self) -> list[dict]:
        """Check all files, and return the list of windows."""
        videos = read_video_names(self.ann_file)
        widths = {key: width for key, width in self.feature_dims.items()
                  if key in self.data_prefix}
        if 'classes' in self._metainfo:
            widths['gt_action'] = len(self._metainfo['classes'])
        self.streams = FeatureStreams(videos, self.data_prefix, widths)
        if self.segment_file is None:
            self.segments = self.streams.segments_of_targets(
                self.background_index, self.ignore_index)
        else:
            path = join_url(self.data_root or '', self.segment_file)
            self.segments = read_segments(path, videos, self.video_fps,
                                          self.shape.feature_rate)
            self._check_segments(path)
            # Segments may end after the features.
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
                f'{self.ann_file}: no video has a window of {self.stride} '
                'steps'
                + (' before a segment' if self.segment_file else '')
                + f'; the longest of {len(videos)} videos has '
                f'{max(self.streams.lengths)} steps')
        return windows

    def _check_segments(self, path: str) -> None:
        for segment in self.segments:
            length = self.streams.lengths[segment.video]
            where = f'{path}: segment {segment.id}'
            if segment.start >= length:
                raise ValueError(
                    f'{where} begins in step {segment.start}, but '
                    f'{self.streams.videos[segment.video]} has {length} steps')
            if not segment.labels and not self.test_mode:
                raise ValueError(f'{where} lacks labels, which is only '
                                 'allowed with test_mode=True')
            for part, label in segment.labels.items():
                # Column 0 is the background.
                classes = self.streams.widths.get(f'gt_{part}', np.inf) - 1
                if label >= classes:
                    raise ValueError(f'{where}: {part} must be below '
                                     f'{classes}, got {label}')

    @property
    def stride(self) -> int:
        """Distance in steps between windows that do not overlap."""
        return self._kind.stride

    def get_data_info(self, idx: int) -> dict:
        """Return the input of the pipeline for a window."""
        info = super().get_data_info(idx)
        # Evaluation must not advance numpy's random state.
        rng = np.random.default_rng(
            0 if self.test_mode else np.random.randint(2**31))
        return dict(
            streams=self.streams, segments=self.segments, rng=rng,
            sample_idx=info['sample_idx'], **self._kind.load(info, rng))


@DATASETS.register_module()
@check_arguments
class FrozenFeatureDataset(BaseDataset):
    """Features of the frozen layers of a network, one entry for each clip.

    A :class:`~mmvidattn.recognizers.FineTunedRecognizer3D` trains its other
    layers on them. Each sample has ``frozen_features`` [V, *] for V views, the
    label, and zeros as ``inputs``.

    Args:
        ann_file: File with the tensors ``features`` [N, V, *] and ``labels``
            [N, 1], or [N, K] for several labels per clip. ``mmvidattn
            finetune --freeze`` writes it.
        **kwargs: Arguments of ``BaseDataset``.
    """

    def __init__(self, ann_file: str, **kwargs: Any) -> None:
        super().__init__(ann_file, serialize_data=False, **kwargs)

    def load_data_list(self) -> list[dict]:
        tensors = load_file(self.ann_file)
        return [dict(features=features, label=label) for features, label in
                zip(tensors['features'], tensors['labels'])]

    def get_cat_ids(self, idx: int) -> list[int]:
        label = self.data_list[idx]['label']
        return (label if len(label) == 1 else label.nonzero()[:, 0]).tolist()

    def prepare_data(self, idx: int) -> dict:
        entry = self.data_list[idx]
        sample = ActionDataSample().set_gt_label(entry['label'])
        sample.set_data(dict(frozen_features=entry['features']))
        # Shaped like views of a clip, [V, C, T, H, W].
        inputs = torch.zeros(len(entry['features']), 1, 1, 1, 1,
                             dtype=torch.uint8)
        return dict(inputs=inputs, data_samples=sample)
