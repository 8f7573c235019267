# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Feature files of untrimmed videos, opened as they are needed."""
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from mmengine.logging import print_log

from ..utils.files import map_numbers
from .annotations.segment_file import read_segment_file
from .annotations.video_segment import steps_of

# Files of a process that stay open; systems allow 1024 or more.
MAX_OPEN = 512
TARGETS = ('gt_action', 'gt_verb', 'gt_noun')
# Steps by which the files of a video may differ: each program rounds the end
# of a video its own way.
MAX_DIFFERENCE = 1


class Segment(NamedTuple):
    """An action of a video; times are in steps, and ``end`` is after it."""
    id: str
    video: int
    start: int
    end: int
    # In frames, before the feature rate rounds it.
    duration: float
    labels: dict[str, int]


class SegmentTable(list[Segment]):
    """Segments, also by their video and by their action."""

    def __init__(self, segments: Iterable[Segment] = ()) -> None:
        super().__init__(segments)
        self._videos: dict[int, list[Segment]] = {}
        self._actions: dict[int, list[Segment]] = {}
        self._places: dict[tuple[int, int], list[int]] = {}
        for segment in self:
            self._videos.setdefault(segment.video, []).append(segment)
            if 'action' in segment.labels:
                action = segment.labels['action']
                same = self._actions.setdefault(action, [])
                self._places.setdefault((action, segment.video),
                                        []).append(len(same))
                same.append(segment)

    @property
    def actions(self) -> list[int]:
        """The classes that occur."""
        return sorted(self._actions)

    def of_video(self, video: int) -> list[Segment]:
        """The segments of a video."""
        return self._videos.get(video, [])

    def of_action(self, action: int) -> list[Segment]:
        """The segments of a class."""
        return self._actions.get(action, [])

    def places(self, action: int, video: int) -> list[int]:
        """Which of the segments of a class are of a video."""
        return self._places.get((action, video), [])


def open_array(path: Path) -> np.ndarray:
    """Map a ``.npy`` file of numbers into memory, without unpickling.

    Raises:
        ValueError: If it is missing, no such file, or of other than numbers
            in rows.
    """
    array = map_numbers(path)
    if array.ndim != 2:
        raise ValueError(f'{path} must be numbers of shape (steps, width), '
                         f'got {array.dtype} {array.shape}')
    return array


class FeatureStreams:
    """The features and targets of some videos, ``<folder>/<video>.npy``.

    Files of a video may differ in length by a step. The shortest is then the
    length of the video, and what is behind it is not read of any.

    Args:
        videos: Names of the videos.
        folders: Of each modality, and of each target (``gt_action``,
            ``gt_verb``, ``gt_noun``), the folder.
        widths: What is known beforehand of the width of some of them.

    Raises:
        ValueError: If a file is missing or unfit, the lengths of a video
            differ by more than a step, or widths do.
    """

    def __init__(self,
                 videos: Sequence[str],
                 folders: Mapping[str, str | Path],
                 widths: Mapping[str, int] | None = None) -> None:
        self.videos = list(videos)
        self.folders = {key: Path(path) for key, path in folders.items()}
        self.features = [key for key in folders if key not in TARGETS]
        self.targets = [key for key in TARGETS if key in folders]
        self.lengths = []
        self._opened: dict[Path, np.ndarray] = {}
        self.widths = dict(widths or {})
        told = {key: 'as the config says' for key in self.widths}
        cut = []
        for i, video in enumerate(self.videos):
            lengths = {}
            for key in self.folders:
                shape = open_array(self.path(i, key)).shape
                lengths[key] = shape[0]
                wanted = self.widths.setdefault(key, shape[1])
                told.setdefault(key, f'as {self.path(i, key)}')
                if shape[1] != wanted:
                    raise ValueError(
                        f'{self.path(i, key)} must have rows of {wanted}, '
                        f'{told[key]}, got {shape[1]}')
            shortest, longest = min(lengths.values()), max(lengths.values())
            if longest - shortest > MAX_DIFFERENCE:
                raise ValueError(
                    f'{video}: all files must have as many steps (give or '
                    f'take {MAX_DIFFERENCE}), got '
                    + ', '.join(f'{self.path(i, key)} with {length}'
                                for key, length in lengths.items()))
            if longest > shortest:
                cut.append(video)
            self.lengths.append(shortest)
            if not self.lengths[-1]:
                empty = min(lengths, key=lengths.get)
                raise ValueError(f'{video}: there are no steps in '
                                 f'{self.path(i, empty)}')
        if cut:
            print_log(
                f'{len(cut)} of {len(self.videos)} videos have files that '
                f'differ by a step; they end with the shortest: '
                f'{", ".join(cut[:3])}{", ..." if len(cut) > 3 else ""}',
                logger='current')

    def path(self, video: int, key: str) -> Path:
        """The file of a modality or target of a video."""
        return self.folders[key] / f'{self.videos[video]}.npy'

    def open(self, video: int, key: str) -> np.ndarray:
        """The rows of a modality or target of a video, on the disk."""
        path = self.path(video, key)
        if path not in self._opened:
            if len(self._opened) >= MAX_OPEN:
                del self._opened[next(iter(self._opened))]
            self._opened[path] = open_array(path)
        return self._opened[path]

    def __getstate__(self) -> dict:
        # A process that is spawned opens its own.
        return {**vars(self), '_opened': {}}

    def read(self, key: str, videos: np.ndarray | int,
             steps: np.ndarray) -> np.ndarray:
        """Rows of one modality or target, each of any video.

        Args:
            key: The modality or target.
            videos: Number of the video, or of that of each row ``(R,)``.
            steps: ``(R,)``.

        Returns:
            ``(R, D)`` float32.

        Raises:
            ValueError: If a number is not finite, or one of a target is
                neither 0 nor 1.
        """
        videos = np.broadcast_to(videos, steps.shape)
        rows = np.empty((len(steps), self.widths[key]), np.float32)
        for video in np.unique(videos):
            here = videos == video
            rows[here] = self.open(video, key)[steps[here]]
        bad = np.flatnonzero(~np.isfinite(rows).all(axis=1))
        if len(bad):
            raise ValueError(
                f'{self.path(videos[bad[0]], key)} must be finite, got nan '
                f'or infinity in step {steps[bad[0]]}')
        if key in self.targets:
            _check_targets(rows, lambda i: self.path(videos[i], key), steps)
        return rows

    def segments_of_targets(self, background: int | None,
                            ignored: int | None) -> SegmentTable:
        """The runs of each class in ``gt_action``."""
        segments = []
        for video in range(len(self.videos)):
            targets = open_array(
                self.path(video, 'gt_action'))[:self.lengths[video]]
            _check_targets(targets, lambda _: self.path(video, 'gt_action'))
            for label in range(targets.shape[1]):
                if label in (background, ignored):
                    continue
                for start, end in find_runs(targets[:, label] == 1):
                    segments.append(
                        Segment(
                            str(len(segments)), video, start, end, end - start,
                            dict(action=label)))
        return SegmentTable(segments)


def _check_targets(rows: np.ndarray, path_of: Callable[[int], Path],
                   steps: np.ndarray | None = None) -> None:
    bad = np.flatnonzero(((rows != 0) & (rows != 1)).any(axis=1))
    if len(bad):
        first = bad[0]
        step = first if steps is None else steps[first]
        values = rows[first]
        value = values[(values != 0) & (values != 1)][0]
        raise ValueError(f'{path_of(first)} must have targets of 0 or 1, got '
                         f'{value} in step {step}')


def read_segments(path: str | Path, videos: Sequence[str], video_fps: float,
                  feature_rate: float) -> SegmentTable:
    """The segments of a list, as RULSTM and TeSTra read them.

    Videos that are not wanted are skipped. A segment begins with the step
    that its first frame is in, and ends after the step that its last frame is
    in. Test lists have no labels.

    Args:
        path: The CSV file, see
            :func:`~.annotations.segment_file.read_segment_file`.
        videos: Names of the videos.
        video_fps: Frames a second of RULSTM's lists, 30.
        feature_rate: Steps a second.

    Raises:
        ValueError: If there is no such file, or a line of it is unfit.
    """
    numbers = {video: i for i, video in enumerate(videos)}
    return SegmentTable(
        Segment(one.id, numbers[one.video],
                *steps_of(one.start, one.end, feature_rate),
                round((one.end - one.start) * video_fps, 6), one.labels)
        for one in read_segment_file(path, video_fps)
        if one.video in numbers)


def find_runs(positive: np.ndarray) -> list[tuple[int, int]]:
    """First step, and first step after, of each run of true steps."""
    edges = np.diff(np.concatenate([[0], positive, [0]]).astype(np.int8))
    return list(
        zip(np.flatnonzero(edges == 1).tolist(),
            np.flatnonzero(edges == -1).tolist()))
