# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Convert videos, frames and windows to inputs of a test pipeline."""
import tempfile
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias
from urllib.parse import urlsplit

import numpy as np
from mmaction.utils import get_str_type
from mmengine.config import Config
from mmengine.dataset import Compose
from mmengine.registry import init_default_scope
from torch import Tensor

from .. import sources
from ..datasets.transforms.video_reader_steps import MILLISECOND
from ..datasets.video_facts import VIDEO_SUFFIXES
from ..utils.frame_times import frame_times
from ..utils.remote_files import (
    STORES,
    download_file,
    local_path,
    without_secrets,
)
from ..utils.video_backend import KEY, with_video_backend
from .bundle_types.registry import types_of

VideoSource: TypeAlias = str | Path | int | np.ndarray | Tensor


class Clip(NamedTuple):
    """Input of a :class:`ClipPipeline`: a video, or a window of a video.

    Attributes:
        start: Start in seconds.
        end: End in seconds; None if the frame rate is unknown.
        sample: Keys that the first steps of a pipeline would add.
    """
    start: float
    end: float | None
    sample: dict[str, Any]


def test_steps(cfg: Config) -> tuple[list[dict], int]:
    """Return the steps of a config's test pipeline, with types as names.

    Args:
        cfg: See :class:`ClipPipeline`.

    Returns:
        The steps, and the index of the step that decodes frames.

    Raises:
        ValueError: If the pipeline does not decode videos.
    """
    init_default_scope(cfg.get('default_scope', 'mmaction'))
    dataset = (cfg.get('test_dataloader') or {}).get('dataset') or {}
    steps = [
        dict(step, type=get_str_type(step['type'])) for step in
        dataset.get('pipeline') or cfg.get('test_pipeline') or ()]
    for number, step in enumerate(steps):
        if 'Decode' in step['type']:
            return steps, number
    raise ValueError(
        'the test pipeline of the config must decode videos, got '
        f'{", ".join(step["type"] for step in steps)}; for models of feature '
        'streams use mmvidattn.OnlineDetector')


class ClipPipeline:
    """Test pipeline of a config, for files and for frames in memory.

    It differs from the config's pipeline in two ways. ``DecordInit`` is
    replaced by :class:`~mmvidattn.datasets.transforms.DecordSegmentInit`,
    which reads the same frames without loading the entire file. If the
    pipeline reads frame images, video files are decoded with the config's
    ``video_backend``, or else with PyAV.

    Args:
        cfg: Config with a ``test_dataloader``, or else a ``test_pipeline``.

    Raises:
        ValueError: If the pipeline does not decode videos.
    """

    def __init__(self, cfg: Config) -> None:
        steps, at = test_steps(cfg)
        decode = steps[at]
        init = next((step for step in steps if step['type'].endswith('Init')),
                    dict(type='VideoReaderInit'))
        if init['type'] == 'DecordInit':
            init['type'] = 'DecordSegmentInit'
        if decode['type'] == 'RawFrameDecode':
            decode = dict(type='VideoReaderDecode')
        if cfg.get(KEY) is not None:
            init, decode = with_video_backend([init, decode], cfg[KEY])
        with types_of(cfg):
            self._open = Compose([init])
            decode_file = Compose([decode])

        def take(sample: dict) -> dict:
            if 'frames' not in sample:
                return decode_file(sample)
            images = sample['frames'].take(np.ravel(sample['frame_inds']))
            shape = images[0].shape[:2]
            return dict(sample, imgs=images, original_shape=shape,
                        img_shape=shape)

        with types_of(cfg):
            self._rest = Compose([
                take if 'Decode' in step['type'] else step for step in steps
                if not step['type'].endswith('Init')])

    def open(self, path: Path) -> dict:
        """Open a video file for the following steps of the pipeline.

        Returns:
            Sample of mmaction2's pipelines with the reader of the video.
        """
        return self._open(dict(_sample(str(path)), filename=str(path)))

    def __call__(self, sample: dict) -> dict:
        """Sample, decode and transform the frames of a clip."""
        return self._rest(dict(sample))


class ArrayFrames:
    """Frames in memory, uint8 [T, H, W, 3], RGB."""

    def __init__(self, array: np.ndarray) -> None:
        self._array = array

    def take(self, indices: np.ndarray) -> list[np.ndarray]:
        return [self._array[i] for i in indices]


class SourceFrames:
    """Frames of a source. It is read once, up to the last needed frame."""

    def __init__(self, source: Iterable) -> None:
        self._source = source

    def take(self, indices: np.ndarray) -> list[np.ndarray]:
        needed, images = set(indices.tolist()), {}
        for frame in self._source:
            if frame.index in needed:
                images[frame.index] = frame.image
                if len(images) == len(needed):
                    break
        return [images[i] for i in indices.tolist()]


class WindowFrames:
    """Frames of a window of a source, numbered from ``first``.

    A frame that a live source has dropped is replaced by the previous frame.
    """

    def __init__(self, frames: Iterable, first: int) -> None:
        frames = list(frames)
        self._numbers = np.array([frame.index for frame in frames]) - first
        self._images = [frame.image for frame in frames]

    def take(self, indices: np.ndarray) -> list[np.ndarray]:
        at = np.searchsorted(self._numbers, indices, 'right') - 1
        return [self._images[i] for i in at.clip(0)]


def whole_clip(source: VideoSource, pipeline: ClipPipeline,
               fps: float | None) -> Clip:
    """Return an entire video as a clip.

    Args: see :meth:`~mmvidattn.apis.VideoClassifier.__call__`.
    """
    if isinstance(source, (np.ndarray, Tensor)):
        array = _checked(source)
        return _frames_clip('frames', ArrayFrames(array), len(array), fps)
    path = _existing(source)
    if path is None:
        raise ValueError(f'{source_name(source)} is endless: use windows() '
                         'and set the seconds of a window')
    if path.is_dir():
        folder = sources.open_source(path, fps=fps)
        return _frames_clip(
            str(path), SourceFrames(folder), folder.num_frames, fps)
    _check_no_fps(path, fps)
    sample = pipeline.open(path)
    end = float(frame_times(sample['video_reader'])[-1])
    return Clip(0., end, sample)


def window_clips(source: VideoSource, pipeline: ClipPipeline, seconds: float,
                 stride: float, fps: float | None) -> Iterator[Clip]:
    """Yield the windows of a video while it is read.

    Args: see :meth:`~mmvidattn.apis.VideoClassifier.windows`.
    """
    if isinstance(source, (np.ndarray, Tensor)):
        array = _checked(source)
        if fps is None:
            raise ValueError('windows of frames in memory need fps')
        sample = dict(_sample('frames'), frames=ArrayFrames(array),
                      avg_fps=fps)
        times = np.arange(len(array) + 1) / fps
        yield from _windows(sample, times, seconds, stride)
        return
    path = _existing(source)
    if path is not None and path.is_file():
        _check_no_fps(path, fps)
        sample = pipeline.open(path)
        times = frame_times(sample['video_reader'])
        yield from _windows(sample, times, seconds, stride)
        return
    if path is not None and fps is None:
        raise ValueError('windows of a folder of frames need fps')
    stream = sources.open_source(source, fps=fps)
    try:
        yield from _source_windows(stream, seconds, stride)
    finally:
        stream.stop()


def _windows(sample: dict, times: np.ndarray, seconds: float, stride: float
             ) -> Iterator[Clip]:
    """Yield windows; ``times`` has the start of each frame and the end."""
    begins, number, stop = times[:-1], 0, 0
    while stop < len(begins):
        start = number * stride
        first, stop = np.searchsorted(
            begins, np.subtract([start, start + seconds], MILLISECOND)
        ).tolist()
        if first < stop:
            yield Clip(
                start, min(start + seconds, float(times[-1])),
                dict(sample, start_index=first, total_frames=stop - first))
        number += 1


def _source_windows(source: Any, seconds: float, stride: float
                    ) -> Iterator[Clip]:
    """Yield windows of a source; keep only the frames of one window."""
    fps = source.fps
    sample = dict(_sample(source.name), avg_fps=fps)
    kept: deque = deque()
    number = 0

    def bound(time: float) -> int:
        return int(np.ceil((time - MILLISECOND) * fps))

    def window(last: int) -> Iterator[Clip]:
        start = number * stride
        stop = min(bound(start + seconds), last + 1)
        if kept and kept[0].index < stop:
            first = max(bound(start), 0)
            frames = WindowFrames(
                (frame for frame in kept if frame.index < stop), first)
            yield Clip(
                start, min(start + seconds, (last + 1) / fps),
                dict(sample, frames=frames, total_frames=stop - first))

    last = -1
    for frame in source:
        while frame.index >= bound(number * stride + seconds):
            yield from window(frame.index)
            number += 1
            while kept and kept[0].index < bound(number * stride):
                kept.popleft()
        if frame.index >= bound(number * stride):
            kept.append(frame)
        last = frame.index
    yield from window(last)


@contextmanager
def local_source(source: VideoSource) -> Iterator[VideoSource]:
    """Copy a video file from a URL; yield other sources unchanged."""
    parts = urlsplit(source if isinstance(source, str) else '')
    if parts.scheme in STORES:
        try:
            path = local_path(source)
        except OSError as error:
            raise ValueError(str(error)) from error
        yield path
        return
    if parts.scheme not in ('http', 'https'):
        yield source
        return
    with tempfile.TemporaryDirectory() as folder:
        try:
            path = download_file(source, folder)
        except OSError as error:
            raise ValueError(f'cannot download: {error}') from error
        yield source if path is None else path


def source_name(source: VideoSource) -> str:
    """Return the display name of a source, without the secrets of a URL."""
    if isinstance(source, (np.ndarray, Tensor)):
        return 'frames'
    if not isinstance(source, (str, Path, int)):
        return source.name
    text = str(source)
    if text.isdecimal() and not Path(text).exists():
        return f'camera {text}'
    return without_secrets(text)


def is_folder_of_videos(source: Any) -> bool:
    """Return True for a folder with videos, or without images as frames."""
    if not isinstance(source, (str, Path)) or not Path(source).is_dir():
        return False
    suffixes = {path.suffix.lower() for path in Path(source).iterdir()}
    return not suffixes.isdisjoint(VIDEO_SUFFIXES) or (
        suffixes.isdisjoint(sources.files.IMAGE_SUFFIXES))


def _sample(name: str) -> dict[str, Any]:
    return dict(filename=name, label=-1, start_index=0, modality='RGB')


def _frames_clip(name: str, frames: ArrayFrames | SourceFrames, count: int,
                 fps: float | None) -> Clip:
    sample = dict(_sample(name), frames=frames, total_frames=count)
    if fps is None:
        return Clip(0., None, sample)
    return Clip(0., count / fps, dict(sample, avg_fps=fps))


def _checked(frames: np.ndarray | Tensor) -> np.ndarray:
    """Check frames in memory [T, H, W, 3], and return them as an array."""
    array = frames.cpu().numpy() if isinstance(frames, Tensor) else frames
    if array.dtype != np.uint8 or array.ndim != 4 or array.shape[-1] != 3 \
            or array.size == 0:
        raise ValueError('frames must be RGB, uint8 [T, H, W, 3], got '
                         f'{array.dtype} {list(array.shape)}')
    return array


def _existing(source: str | Path | int) -> Path | None:
    """Return the path of a file or folder; None for a camera or stream."""
    if not isinstance(source, (str, Path)):
        return None
    path = Path(source)
    if path.is_file() or path.is_dir():
        return path
    text = str(source)
    if text.isdecimal() or urlsplit(text).scheme or path.is_char_device():
        return None
    raise FileNotFoundError(f'video {source} does not exist')


def _check_no_fps(path: Path, fps: float | None) -> None:
    if fps is not None:
        raise ValueError(f'fps={fps:g} cannot change the rate of {path}; it '
                         'is for frames in memory, folders of frames and live '
                         'sources')
