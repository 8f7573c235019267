# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Untrimmed videos as streams of frames, with a label for each frame."""
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Literal

import numpy as np
from mmaction.registry import DATASETS
from mmengine.dataset import Compose
from mmengine.logging import print_log
from torch import Tensor

from ..utils.arguments import Count, Natural, Positive, check_arguments
from ..utils.frame_times import ConstantRate, num_steps
from ..utils.video_reader import VideoReader
from .annotations.segment_csv import read_segment_file
from .annotations.video_segment import (
    VideoSegment,
    describe,
    fit_to_videos,
    steps_of,
)
from .feature_stream_dataset import PROTOCOLS, read_video_names
from .feature_streams import Segment, SegmentTable
from .feature_windows import (
    DenseWindows,
    SegmentStreamWindows,
    StreamWindows,
    WindowShape,
)
from .transforms.stream_inputs import pack_stream_sample
from .video_segment_dataset import VideoSegmentDataset


@DATASETS.register_module()
@check_arguments
class VideoStreamDataset(VideoSegmentDataset):
    """Untrimmed videos as frames, with the action at each frame.

    It is :class:`FeatureStreamDataset` for networks that read pixels. The
    annotation file lists segments, in a format of
    :class:`VideoSegmentDataset`. Videos are read at ``frame_rate`` frames per
    second, and each of these frames is a step. A video with fewer frames per
    second is read at its own rate; ``elapsed`` of its steps is then above 1.

    In training, a sample is a clip of ``clip_frames`` steps.
    ``DefaultSampler`` reads clips in random order, and
    :class:`StatefulVideoSampler` reads the clips of each video in temporal
    order. In test mode, a sample is an entire video. The model's process
    decodes its next ``clip_frames`` frames while the model scores the current
    ones.

    The pipeline has the steps ``DecordInit`` (or another reader),
    ``StreamSampleFrames``, ``DecordDecode``, steps that change images,
    ``FormatShape(input_format='NCTHW')`` and ``PackStreamInputs``. A data
    sample has the targets ``gt_action`` [T + A, K] of T steps and A
    anticipation tokens, and ``gt_verb`` and ``gt_noun`` if ``num_verbs`` and
    ``num_nouns`` are set. A target is 1 for each class with a segment that
    overlaps the step. Class 0 is the background. Steps after the video have
    zero targets.

    Args:
        ann_file: Path of the CSV file.
        pipeline: Transforms.
        frame_rate: Frames per second that the model reads.
        clip_frames: Frames T of a training clip, and of a chunk of a test
            video. Defaults to 64.
        anticipation_steps: Steps after a clip that tokens anticipate.
            Defaults to 0.
        anticipation_rate: Distance in steps between tokens. Defaults to 1.
        video_list: File with the name of one video per line. These videos may
            have no segments. Defaults to all videos with segments.
        num_classes: Number of actions K with the background. Defaults to the
            number of ``metainfo['classes']``. The CSV file numbers the actions
            without the background.
        num_verbs: Number of verbs with the background. Defaults to no
            targets.
        num_nouns: Number of nouns with the background. Defaults to no
            targets.
        ignore_index: Class that a live detector does not report, in addition
            to the background. Defaults to none.
        protocol: In test mode, score each segment only at the step that
            anticipates it (:class:`~.feature_windows.SegmentWindows`).
            Defaults to scoring each step.
        kwargs: Other arguments of :class:`VideoSegmentDataset`.
    """

    def __init__(self, ann_file: str, pipeline: Sequence[Any], *,
                 frame_rate: Positive, clip_frames: Count = 64,
                 anticipation_steps: Natural = 0, anticipation_rate: Count = 1,
                 video_list: str | None = None,
                 num_classes: Count | None = None,
                 num_verbs: Count | None = None,
                 num_nouns: Count | None = None,
                 ignore_index: Natural | None = None,
                 protocol: Literal[PROTOCOLS] | None = None,
                 test_mode: bool = False, **kwargs: Any) -> None:
        if protocol is not None and not (test_mode and anticipation_steps):
            raise ValueError(
                f'protocol={protocol!r} needs test_mode=True and '
                f'anticipation_steps, got test_mode={test_mode} and '
                f'anticipation_steps={anticipation_steps}')
        if kwargs.get('multi_class'):
            raise ValueError('multi_class is not supported: steps have '
                             'targets of 0 and 1')
        if not str(ann_file).endswith('.csv'):
            raise ValueError(f'ann_file must be a CSV file, got {ann_file}')
        self.frame_rate = frame_rate
        self.video_list = video_list
        self.ignore_index = ignore_index
        self.protocol = protocol
        self._widths = dict(action=num_classes, verb=num_verbs, noun=num_nouns)
        self.clip_frames = clip_frames
        self.shape = WindowShape(
            frame_rate, work_steps=1 if test_mode else clip_frames,
            anticipation_steps=anticipation_steps,
            anticipation_rate=anticipation_rate)
        self.shape.check_protocol(protocol)
        super().__init__(
            ann_file, pipeline, num_classes=num_classes, test_mode=test_mode,
            # Entries are small, and the sampler reads all of them.
            **{'serialize_data': False, **kwargs})

    def load_data_list(self) -> list[dict]:
        """Read the CSV file, open all videos, and list the clips."""
        classes = list(self._metainfo.get('classes', ()))
        if self._widths['action'] is None and not classes:
            raise ValueError(
                'num_classes, or metainfo.classes with an existing file, is '
                'needed; --cfg-options data_root=FOLDER sets the folder')
        self._widths['action'] = self._widths['action'] or len(classes)
        if classes and len(classes) != self._widths['action']:
            raise ValueError(
                f'num_classes must be the number of classes {len(classes)}, '
                f'got {self._widths["action"]}')
        segments = read_segment_file(
            self.ann_file, self.fps, num_classes={
                part: width - 1 for part, width in self._widths.items()
                if width})
        files = self._find_videos(segments)
        # 1. Open the videos.
        opened = self._open_videos(files)
        self.videos = list(opened)
        self.files = {video: files[video] for video in opened}
        self.rates = [min(self.frame_rate, fps)
                      for _, fps, _ in opened.values()]
        self.lengths = [
            num_steps(num_frames, fps, rate)
            for (num_frames, fps, _), rate in zip(opened.values(), self.rates)]
        # 2. Convert the segments to steps.
        segments = [one for one in segments if one.video in opened]
        if self.unit == 'frames':
            segments = [_in_seconds(one, opened[one.video][2])
                        for one in segments]
        fitted, notes = fit_to_videos(
            segments,
            {video: length / rate for video, length, rate in zip(
                self.videos, self.lengths, self.rates)})
        if notes:
            print_log(f'{self.ann_file}: {describe(notes)}', logger='current')
        numbers = {video: i for i, video in enumerate(self.videos)}
        self.segments = SegmentTable(
            Segment(one.id, numbers[one.video],
                    *steps_of(one.start, one.end,
                              self.rates[numbers[one.video]]),
                    one.end - one.start, self._labels(one, classes))
            for one in fitted)
        # 3. List the windows.
        kind = DenseWindows
        if self.test_mode:
            kind = StreamWindows if self.protocol is None else (
                SegmentStreamWindows)
        self._kind = kind(self.shape, self, self.segments, self.test_mode,
                          self.protocol or 'testra')
        windows = self._kind.list()
        if not windows:
            raise ValueError(
                f'{self.ann_file}: no video has a clip of '
                f'{self.shape.needed} steps; the longest of '
                f'{len(self.videos)} videos has {max(self.lengths)} steps')
        for window in windows:
            window['filename'] = self.files[self.videos[window['video']]]
        return windows

    def _find_videos(self, segments: Sequence[VideoSegment]) -> dict[str, str]:
        """Return the file of each video that exists."""
        if self.video_list is not None:
            names = read_video_names(self.video_list)
            listed = [VideoSegment('', name, 0, 0, {}, self.video_list)
                      for name in names]
            segments = [*listed, *(one for one in segments
                                   if one.video in names)]
        if not segments:
            raise ValueError(f'{self.ann_file} lists no segments')
        data_list = [dict(filename=self._filename(one), video=one.video)
                     for one in segments]
        missing = self._check_files(data_list)
        return {info['video']: info['filename'] for info in data_list
                if info['filename'] not in missing}

    def _open_videos(self, files: Mapping[str, str]
                     ) -> dict[str, tuple[int, float, np.ndarray]]:
        """Return length and rate of each readable video, and its frame times.
        """
        def read(path: str) -> tuple[int, float, np.ndarray]:
            reader = VideoReader(path)
            video = ConstantRate(reader)
            return len(video), video.fps, reader.times

        facts = self._read_all(
            read, files.values(), self.on_error == 'skip' or (
                self.on_error is None and not self.test_mode))
        return {video: facts[path] for video, path in files.items()
                if path in facts}

    def _labels(self, segment: VideoSegment,
                classes: Sequence[str]) -> dict[str, int]:
        """Return the numbers of a segment's classes, after the background."""
        labels = {part: label for part, label in segment.labels.items()
                  if self._widths.get(part)}
        action = labels.get('action')
        if isinstance(action, str):
            if action not in classes[1:]:
                raise ValueError(
                    f'{segment.where}: label must be one of the '
                    f'{len(classes)} names in metainfo.classes except the '
                    f'background, got {action!r}')
            labels['action'] = classes.index(action) - 1
        if not labels and not self.protocol:
            raise ValueError(f'{segment.where}: a segment must have a label, '
                             f'got {", ".join(segment.labels) or "none"}')
        return labels

    @property
    def clip_stride(self) -> int:
        """Distance in steps between consecutive clips of a video."""
        return self.shape.work_steps

    def get_data_info(self, idx: int) -> dict:
        """Return the input of the pipeline for a clip, or for a video."""
        info = super().get_data_info(idx)
        window = self._kind.load(info, None)
        number = window['video']
        # A video is scored at each step; a clip has targets of its tokens.
        steps = np.arange(self.lengths[number])
        if not window['is_whole_video']:
            steps = np.concatenate(
                [window['work_indices'], window['anticipation_steps']])
        targets = {} if self.protocol else self._targets(number, steps)
        rate = self.rates[number]
        return {**info, **window, 'targets': targets, 'rate': rate,
                'elapsed': self.frame_rate / rate}

    def prepare_data(self, idx: int) -> Any:
        return self.loader(self, idx, self._prepare)

    def get_cat_ids(self, idx: int) -> list[int]:
        """Return a clip's classes for mmengine's ``ClassBalancedDataset``."""
        targets = self.get_data_info(idx)['targets']['gt_action']
        return np.flatnonzero(targets.any(axis=0)).tolist()

    def _prepare(self, idx: int) -> dict:
        results = self.get_data_info(idx)
        if not results['is_whole_video']:
            return self.pipeline(results)
        chunks = VideoChunks(self.pipeline, results, self.clip_frames)
        return dict(inputs=dict(frames=chunks),
                    data_samples=pack_stream_sample(results))

    def _targets(self, video: int, steps: np.ndarray) -> dict[str, np.ndarray]:
        """Return targets of 0 and 1 for steps of a video, [T, K] each."""
        targets = {}
        inside = (steps >= 0) & (steps < self.lengths[video])
        for part, width in self._widths.items():
            if not width:
                continue
            marked = np.zeros((len(steps), width), np.float32)
            for segment in self.segments.of_video[video]:
                if part in segment.labels:
                    here = inside & (steps >= segment.start) & (
                        steps < segment.end)
                    marked[here, 1 + segment.labels[part]] = 1
            marked[:, 0] = inside & ~marked.any(axis=1)
            targets[f'gt_{part}'] = marked
        return targets


def _in_seconds(segment: VideoSegment, times: np.ndarray) -> VideoSegment:
    """Convert the frame numbers of a segment by the times of the frames."""
    frames = np.array(segment.frames or segment[2:4], int)
    start, end = times[frames.clip(max=len(times) - 1)].tolist()
    return segment._replace(start=start, end=end)


class VideoChunks:
    """Inputs of an entire video, decoded in chunks; iterate over them.

    Args:
        pipeline: Transforms of a clip.
        results: Input of the pipeline for the video.
        chunk_frames: Maximum number of frames in a chunk.
    """

    def __init__(self, pipeline: Compose, results: Mapping[str, Any],
                 chunk_frames: int) -> None:
        self.pipeline = pipeline
        self.results = dict(results)
        self.chunk_frames = chunk_frames

    def __iter__(self) -> Iterator[dict[str, Tensor]]:
        """Yield ``frames`` [C, T, H, W] and ``elapsed`` [T] of each chunk."""
        length = self.results['video_length']
        # The next chunk is decoded while the model scores this one.
        with ThreadPoolExecutor(1) as pool:
            ready = pool.submit(self._load, 0)
            for start in range(self.chunk_frames, length, self.chunk_frames):
                chunk, ready = ready.result(), pool.submit(self._load, start)
                yield chunk
            yield ready.result()

    def _load(self, start: int) -> dict[str, Tensor]:
        end = min(start + self.chunk_frames, self.results['video_length'])
        return self.pipeline({
            **self.results, 'work_indices': np.arange(start, end)})['inputs']
