# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Convert videos, frames and windows to inputs of a test pipeline."""
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from mmaction.utils import get_str_type
from mmengine.config import Config
from mmengine.dataset import Compose
from mmengine.registry import init_default_scope
from torch import Tensor

from ..datasets import video_facts
from ..datasets.transforms.video_reader_steps import MILLISECOND
from ..utils import remote_files
from ..utils.frame_times import frame_times
from ..utils.video_backend import KEY, with_video_backend
from .bundle_types.registry import types_of

VideoSource: TypeAlias = str | Path | np.ndarray | Tensor


class Clip(NamedTuple):
    """Input of a :class:`ClipPipeline`: a video, or a window of a video."""
    # In seconds; the end is None if the frame rate is unknown.
    start: float
    end: float | None
    # Keys that the first steps of a pipeline would add.
    sample: dict[str, Any]


class TestSteps(NamedTuple):
    """Steps of a test pipeline, with types as names."""
    # The step that opens the file; by default VideoReaderInit.
    open: dict
    # Other steps before decoding.
    sample: list[dict]
    decode: dict
    # Steps after decoding.
    rest: list[dict]


def test_steps(cfg: Config) -> TestSteps:
    """Return the steps of a config's test pipeline, which decodes videos."""
    init_default_scope(cfg.get('default_scope', 'mmaction'))
    dataset = (cfg.get('test_dataloader') or {}).get('dataset') or {}
    steps = [
        dict(step, type=get_str_type(step['type'])) for step in
        dataset.get('pipeline') or cfg.get('test_pipeline') or ()]
    for i, step in enumerate(steps):
        if 'Decode' in step['type']:
            openings = [one for one in steps[:i]
                        if one['type'].endswith('Init')]
            return TestSteps(
                (openings or [dict(type='VideoReaderInit')])[0],
                [one for one in steps[:i] if one not in openings],
                step, steps[i + 1:])
    raise ValueError(
        'the test pipeline of the config must decode videos, got '
        f'{", ".join(step["type"] for step in steps)}; for models of feature '
        'streams use mmvidattn.OnlineDetector')


def sample_of(num_frames: int, **others: Any) -> dict[str, Any]:
    """Return the sample of a video of ``num_frames`` before its first step."""
    return dict(dict(filename='frames', label=-1, start_index=0,
                     modality='RGB', total_frames=num_frames), **others)


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
        steps = test_steps(cfg)
        init, decode = steps.open, steps.decode
        if init['type'] == 'DecordInit':
            init['type'] = 'DecordSegmentInit'
        if decode['type'] == 'RawFrameDecode':
            decode = dict(type='VideoReaderDecode')
        if cfg.get(KEY) is not None:
            init, decode = with_video_backend([init, decode], cfg[KEY])

        def take(sample: dict) -> dict:
            if 'read_frame' not in sample:
                return decode_file(sample)
            images = [sample['read_frame'](number) for number in
                      np.ravel(sample['frame_inds']).tolist()]
            shape = images[0].shape[:2]
            return dict(sample, imgs=images, original_shape=shape,
                        img_shape=shape)

        with types_of(cfg):
            self._open, decode_file = Compose([init]), Compose([decode])
            self._rest = Compose([*steps.sample, take, *steps.rest])

    def open(self, path: Path) -> dict:
        """Return the sample of mmaction2's pipelines that reads a file."""
        return self._open(dict(filename=str(path), label=-1, start_index=0,
                               modality='RGB'))

    def __call__(self, sample: dict) -> dict:
        """Sample, decode and transform the frames of a clip."""
        return self._rest(dict(sample))


def _open_source(source: VideoSource, pipeline: ClipPipeline, fps: float | None
                 ) -> tuple[dict[str, Any], np.ndarray | None]:
    """Open a video for the following steps of a pipeline.

    Returns:
        Sample of mmaction2's pipelines, and the start of each frame and the
        end of the last one in seconds, [T + 1]; None without frame rate.
    """
    if isinstance(source, (np.ndarray, Tensor)):
        name, frames = 'frames', np.asarray(
            source.cpu() if isinstance(source, Tensor) else source)
        check_frames(frames)
        read = frames.__getitem__
    elif Path(source).is_dir():
        name, frames = str(source), video_facts.list_images(Path(source))

        def read(number: int) -> np.ndarray:
            return video_facts.read_image(frames[number])
    else:
        path, name = Path(source), source_name(source)
        if not path.exists():
            raise FileNotFoundError(f'video {name} does not exist' + (
                '; for a camera or a live stream, use mmvidattn stream'
                if '://' in name or name.isdecimal() else ''))
        if fps is not None:
            raise ValueError(f'fps={fps:g} cannot change the rate of {path}; '
                             'it is for frames in memory or in a folder')
        sample = pipeline.open(path)
        return sample, frame_times(sample['video_reader'])
    sample = sample_of(len(frames), filename=name, read_frame=read)
    if fps is None:
        return sample, None
    return dict(sample, avg_fps=fps), np.arange(len(frames) + 1) / fps


def read_clips(source: VideoSource, pipeline: ClipPipeline, fps: float | None,
               seconds: float | None = None, stride: float | None = None
               ) -> Iterator[Clip]:
    """Yield an entire video, or its windows.

    Args:
        source: File, folder of frames, or frames in memory.
        pipeline: Pipeline that opens files.
        fps: Frame rate of frames in memory or in a folder.
        seconds: See :meth:`~mmvidattn.apis.VideoClassifier.windows`. Defaults
            to the entire video.
        stride: Seconds between the starts of windows.
    """
    sample, times = _open_source(source, pipeline, fps)
    end = None if times is None else float(times[-1])
    if seconds is None:
        yield Clip(0., end, sample)
        return
    if times is None:
        raise ValueError('windows of frames in memory or in a folder need fps')
    begins, number, stop = times[:-1], 0, 0
    while stop < len(begins):
        # Without rounding noise.
        start = round(number * stride, 9)
        first, stop = np.searchsorted(
            begins, np.subtract([start, start + seconds], MILLISECOND)
        ).tolist()
        if first < stop:
            yield Clip(
                start, round(min(start + seconds, end), 9),
                dict(sample, start_index=first, total_frames=stop - first))
        number += 1


@contextmanager
def local_source(source: VideoSource) -> Iterator[VideoSource]:
    """Copy a video file from a URL; yield other sources unchanged."""
    if not isinstance(source, str) or not remote_files.is_url(source):
        yield source
        return
    if not source.startswith('http'):
        yield remote_files.local_path(source)
        return
    with tempfile.TemporaryDirectory() as folder:
        try:
            path = remote_files.download_file(source, folder)
        except OSError as error:
            raise ValueError(f'cannot download: {error}') from error
        yield source if path is None else path


def source_name(source: VideoSource) -> str:
    """Return the display name of a source, without the secrets of a URL."""
    if isinstance(source, (np.ndarray, Tensor)):
        return 'frames'
    return remote_files.without_secrets(str(source))


def is_folder_of_videos(source: Any) -> bool:
    """Return True for a folder with videos, or without images as frames."""
    if not isinstance(source, (str, Path)) or not Path(source).is_dir():
        return False
    suffixes = {path.suffix.lower() for path in Path(source).iterdir()}
    return not suffixes.isdisjoint(video_facts.VIDEO_SUFFIXES) or (
        suffixes.isdisjoint(video_facts.IMAGE_SUFFIXES))


def check_frames(frames: np.ndarray, layout: str = '[T, H, W, 3]') -> None:
    """Raise a ``ValueError`` unless frames are uint8 of the layout."""
    if frames.dtype != np.uint8 or frames.ndim != len(layout.split()) or (
            frames.shape[-1] != 3) or not frames.size:
        raise ValueError(f'frames must be RGB, uint8 {layout}, got '
                         f'{frames.dtype} {list(frames.shape)}')
