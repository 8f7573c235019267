# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Feature files of untrimmed videos, opened on demand."""
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from ..utils.files import map_numbers
from ..utils.remote_files import is_url, join_url, local_path
from .annotations.segment_csv import read_segment_file
from .annotations.video_segment import steps_of

# Maximum number of open files per process; systems allow at least 1024.
MAX_OPEN = 512
TARGETS = ('gt_action', 'gt_verb', 'gt_noun')
# Allowed difference in steps between the files of a video. Feature extractors
# round the end of a video differently.
MAX_DIFFERENCE = 1


class Segment(NamedTuple):
    """Annotated action; times are in steps, and ``end`` is exclusive."""
    id: str
    video: int
    start: int
    end: int
    # In frames for segments of a file, in steps for segments of targets.
    duration: float
    labels: dict[str, int]


class SegmentTable(list[Segment]):
    """List of segments, also by video and by action."""

    def __init__(self, segments: Iterable[Segment] = ()) -> None:
        super().__init__(segments)
        self.of_video: dict[int, list[Segment]] = defaultdict(list)
        self.of_action: dict[int, list[Segment]] = defaultdict(list)
        for segment in self:
            self.of_video[segment.video].append(segment)
            if 'action' in segment.labels:
                self.of_action[segment.labels['action']].append(segment)


def open_array(path: str | Path) -> np.ndarray:
    """Map a ``.npy`` file of numbers into memory, without unpickling.

    Raises:
        ValueError: If the file is missing, invalid, or not a matrix of
            numbers.
    """
    array = map_numbers(local_path(path))
    if array.ndim != 2:
        raise ValueError(f'{path} must be numbers of shape (steps, width), '
                         f'got {array.dtype} {array.shape}')
    return array


def near(steps: int, others: int) -> bool:
    """Return True if two files of a video may have these lengths."""
    return abs(steps - others) <= MAX_DIFFERENCE


class FeatureStreams:
    """Features and targets of videos, in files ``<folder>/<video>.npy``.

    The files of a video may differ in length by one step. The shortest file
    defines the length of the video.

    Args:
        videos: Video names.
        folders: Folder, or its URL, of each modality and of each target
            (``gt_action``, ``gt_verb``, ``gt_noun``).
        widths: Expected width of some modalities and targets.

    Raises:
        ValueError: If a file is missing or invalid, or its length or width
            does not match the other files.
    """

    def __init__(self, videos: Sequence[str],
                 folders: Mapping[str, str | Path],
                 widths: Mapping[str, int] | None = None) -> None:
        self.videos = list(videos)
        self.folders = {key: path if is_url(path) else Path(path)
                        for key, path in folders.items()}
        self.features = [key for key in folders if key not in TARGETS]
        self.targets = [key for key in TARGETS if key in folders]
        self.lengths = []
        self._opened: dict[str | Path, np.ndarray] = {}
        self.widths = dict(widths or {})
        origin = {key: 'as in the config' for key in self.widths}
        first_steps: dict[str, int] = {}
        for i, video in enumerate(self.videos):
            shapes = {key: open_array(self.path(i, key)).shape
                      for key in self.folders}
            lengths = {key: shape[0] for key, shape in shapes.items()}
            for key, (steps, width) in shapes.items():
                path = self.path(i, key)
                others = [n for name, n in lengths.items() if name != key]
                expected = self.widths.setdefault(key, width)
                origin.setdefault(key, f'as in {path}')
                if (width != expected
                        and steps in (expected, first_steps.get(key))
                        or any(near(width, n) for n in others)
                        and not any(near(steps, n) for n in others)):
                    raise ValueError(
                        f'{path} must have the shape (steps, width), got '
                        f'{(steps, width)}, whose transposition '
                        f'{(width, steps)} fits: '
                        'np.save(path, np.load(path).T)')
                if width != expected:
                    raise ValueError(f'{path} must have rows of {expected}, '
                                     f'{origin[key]}, got {width}')
                first_steps.setdefault(key, steps)
            shortest, longest = min(lengths.values()), max(lengths.values())
            if not near(shortest, longest):
                raise ValueError(
                    f'{video}: all files must have the same number of steps '
                    f'(+/- {MAX_DIFFERENCE}), got '
                    + ', '.join(f'{self.path(i, key)} with {length}'
                                for key, length in lengths.items()))
            self.lengths.append(shortest)
            if not self.lengths[-1]:
                empty = min(lengths, key=lengths.get)
                raise ValueError(f'{video}: {self.path(i, empty)} is empty')

    def path(self, video: int, key: str) -> str | Path:
        """Return the path or URL of a modality or target of a video."""
        folder, name = self.folders[key], f'{self.videos[video]}.npy'
        return folder / name if isinstance(folder, Path) else (
            join_url(folder, name))

    def open(self, video: int, key: str) -> np.ndarray:
        """Return a modality or target of a video as a memory map."""
        path = self.path(video, key)
        if path not in self._opened:
            if len(self._opened) >= MAX_OPEN:
                del self._opened[next(iter(self._opened))]
            self._opened[path] = open_array(path)
        return self._opened[path]

    def __getstate__(self) -> dict:
        # Do not copy memory maps to a spawned worker, which opens the files.
        return {**vars(self), '_opened': {}}

    def read(self, key: str, videos: np.ndarray | int,
             steps: np.ndarray) -> np.ndarray:
        """Read rows of one modality or target.

        Args:
            key: Modality or target.
            videos: Video index of all rows, or of each row ``(R,)``.
            steps: Step of each row ``(R,)``.

        Returns:
            ``(R, D)`` float32.

        Raises:
            ValueError: If a number is not finite, or a target is neither 0
                nor 1.
        """
        videos = np.broadcast_to(videos, steps.shape)
        rows = np.empty((len(steps), self.widths[key]), np.float32)
        for video in np.unique(videos):
            mask = videos == video
            rows[mask] = self.open(video, key)[steps[mask]]
        bad = np.flatnonzero(~np.isfinite(rows).all(axis=1))
        if len(bad):
            raise ValueError(
                f'{self.path(videos[bad[0]], key)} must be finite, got nan '
                f'or infinity in step {steps[bad[0]]}')
        if key in self.targets:
            others = np.argwhere((rows != 0) & (rows != 1))
            for row, column in others[:1]:
                raise ValueError(
                    f'{self.path(videos[row], key)} must have targets of 0 or '
                    f'1, got {rows[row, column]} in step {steps[row]}')
        return rows

    def segments_of_targets(self, background: int | None,
                            ignored: int | None) -> SegmentTable:
        """Return runs of each class in ``gt_action`` as segments."""
        segments = []
        for video, length in enumerate(self.lengths):
            targets = self.read('gt_action', video, np.arange(length))
            for label in range(targets.shape[1]):
                if label in (background, ignored):
                    continue
                for start, end in find_runs(targets[:, label] == 1):
                    segments.append(Segment(
                        str(len(segments)), video, start, end, end - start,
                        dict(action=label)))
        return SegmentTable(segments)


def read_segments(path: str | Path, videos: Sequence[str], video_fps: float,
                  feature_rate: float) -> SegmentTable:
    """Read the segments of some videos.

    As in RULSTM and TeSTra, a segment begins with the step that contains its
    start, and ends with the step that contains its end. Segments of test lists
    have no labels.

    Args:
        path: CSV file, see
            :func:`~.annotations.segment_csv.read_segment_file`.
        videos: Names of the videos. Segments of other videos are ignored.
        video_fps: Frames per second in RULSTM's lists, usually 30.
        feature_rate: Steps per second.
    """
    numbers = {video: i for i, video in enumerate(videos)}
    return SegmentTable(
        Segment(one.id, numbers[one.video],
                *steps_of(one.start, one.end, feature_rate),
                round((one.end - one.start) * video_fps, 6), one.labels)
        for one in read_segment_file(path, video_fps)
        if one.video in numbers)


def find_runs(positive: np.ndarray) -> list[tuple[int, int]]:
    """Return the start and exclusive end of each run of true steps."""
    edges = np.diff(np.concatenate([[0], positive, [0]]).astype(np.int8))
    return list(zip(np.flatnonzero(edges == 1).tolist(),
                    np.flatnonzero(edges == -1).tolist()))
