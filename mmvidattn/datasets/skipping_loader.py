# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Loader of samples that checks decoded frames and skips unreadable files."""
import logging
import os.path as osp
import time
from collections.abc import Callable, Mapping
from typing import Any, Literal

import numpy as np
from mmengine.dataset import BaseDataset
from mmengine.logging import print_log
from mmengine.structures import BaseDataElement

from ..utils.arguments import Count, check_arguments
from ..utils.printable import brief
from ..utils.remote_files import (
    RemoteError,
    is_url,
    local_path,
    without_secrets,
)

ON_ERROR = ('skip', 'raise')
# Consecutive failures that end a run by default.
MAX_FAILURES = 10
NAMES = 'filename', 'frame_dir', 'audio_path', 'video_id'


class SampleError(RuntimeError):
    """A sample cannot be loaded; a worker's traceback is not shown."""

    def __str__(self) -> str:
        return super().__str__().rpartition('SampleError: ')[2].strip()


@check_arguments
class SkippingLoader:
    """Loader of a dataset's samples that skips and reports failures.

    Loading a sample fails if a transform raises an error.

    When a sample is skipped, a warning names its file (once per process). The
    next sample that loads reports the skipped files in its meta information:
    ``skipped_videos`` has their names, and ``skipped_reasons`` the reasons.
    The meta information of every sample also has ``filename``, the
    ``segment_id`` of a segment, and, if a video was decoded,
    ``decode_seconds``, the time for opening and decoding it.

    Args:
        dataset: Dataset. Each step of its pipeline is wrapped in a
            :class:`CheckedStep`.
        on_error: Reaction to a failure. ``'skip'`` returns None, so that
            another sample is loaded; in test mode, it raises like ``'raise'``.
            Defaults to ``'skip'``.
        max_failures: Number of consecutive failures that raise an error,
            because the cause is probably not in the files.
    """

    def __init__(self, dataset: BaseDataset, *,
                 on_error: Literal[ON_ERROR] | None = None,
                 max_failures: Count = MAX_FAILURES) -> None:
        self.on_error = on_error or 'skip'
        if self.on_error == 'skip' and dataset.test_mode:
            self.on_error = 'raise'
        self.max_failures = max_failures
        steps = dataset.pipeline.transforms
        steps[:] = [step if isinstance(step, CheckedStep)
                    else CheckedStep(step) for step in steps]
        # Files that failed since the last success, and the reasons.
        self._failures: list[tuple[str, str]] = []
        self._warned: set[str] = set()

    def __call__(self, dataset: BaseDataset, idx: int,
                 prepare: Callable[[int], Any]) -> Any:
        """Load a sample by ``prepare(idx)``; return None to skip it.

        Raises:
            RemoteError: If the server of a remote file cannot be reached.
            SampleError: If loading fails and ``on_error`` is ``'raise'``, or
                ``max_failures`` consecutive samples fail.
        """
        info = dataset.get_data_info(idx)
        name = without_secrets(next(
            (str(info[key]) for key in NAMES if info.get(key)),
            f'sample {idx}'))
        try:
            # Get a remote file first: the time of decoding excludes it.
            local_video(info)
            CheckedStep.seconds = None
            data = prepare(idx)
        except RemoteError:
            # All samples on this server would be lost.
            raise
        except Exception as error:
            reason = brief(error).removeprefix(f'{name}: ')
            if self.on_error == 'raise':
                raise SampleError(
                    f'cannot load {name}: {reason}; to leave out such videos, '
                    "set the dataset's on_error to 'skip'") from error
            self._count(name, reason, error)
            return None
        if data is None:
            return None
        note: dict[str, Any] = dict(filename=name)
        if 'segment_id' in info:
            note['segment_id'] = info['segment_id']
        if CheckedStep.seconds is not None:
            note['decode_seconds'] = CheckedStep.seconds
        if self._failures:
            note['skipped_videos'] = [name for name, _ in self._failures]
            note['skipped_reasons'] = dict(self._failures)
            self._failures = []
        for one in data if isinstance(data, list) else [data]:
            sample = one.get('data_samples') if isinstance(one, dict) else None
            if isinstance(sample, BaseDataElement):
                sample.set_metainfo(note)
        return data

    def _count(self, name: str, reason: str, error: Exception) -> None:
        if name not in self._warned:
            self._warned.add(name)
            print_log(f'Skipped {name}: {reason}', logger='current',
                      level=logging.WARNING)
        self._failures.append((name, reason))
        if len(self._failures) >= self.max_failures:
            failed, self._failures = self._failures, []
            raise SampleError(
                f'loading failed {len(failed)} times in a row; is the data '
                'folder right, and does the pipeline work? The last error: '
                f'{reason}. The videos: {", ".join(dict(failed))}'
            ) from error


class CheckedStep:
    """Wrapper of a pipeline step that checks the decoded frames.

    A remote video is copied first, see :func:`local_video`.

    Args:
        step: Transform.

    Raises:
        ValueError: When called, if the video or a frame is empty, or the
            number of decoded frames is wrong.
    """
    # Seconds in which this process opened and decoded the current sample; None
    # if no step has opened or decoded a video yet.
    seconds: float | None = None

    def __init__(self, step: Callable) -> None:
        self.step = step

    def __call__(self, results: Any) -> Any:
        local = local_video(results) if isinstance(results, dict) else None
        if local is not None:
            results = dict(results, filename=local)
        before = _opened(results)
        began = time.perf_counter()
        results = self.step(results)
        if not isinstance(results, dict):
            return results
        new = _opened(results) - before
        if new:
            CheckedStep.seconds = (CheckedStep.seconds or 0.) + (
                time.perf_counter() - began)
        total = results.get('total_frames')
        if total is not None and total < 1:
            raise ValueError('it contains no frames')
        if 'imgs' in new and results.get('modality', 'RGB') == 'RGB':
            _check_frames(results['imgs'], results.get('frame_inds'))
        return results


def local_video(sample: Mapping[str, Any]) -> str | None:
    """Return a local copy of a sample's video; None if it is local already."""
    name = str(sample.get('filename') or '')
    if not is_url(name):
        return None
    # mmaction2's readers append .mp4 to a name without a suffix.
    return str(local_path(name if osp.splitext(name)[1] else f'{name}.mp4'))


def _opened(results: Any) -> set[str]:
    """Return which of the keys of an opened video and its frames exist."""
    return {'imgs', 'video_reader'} & results.keys() if isinstance(
        results, dict) else set()


def _check_frames(frames: Any, sampled: Any) -> None:
    if sampled is not None and len(frames) != np.size(sampled):
        raise ValueError(
            f'expected {np.size(sampled)} frames, read {len(frames)}')
    for number, frame in enumerate(frames):
        if frame is None or not np.size(frame):
            raise ValueError(f'frame {number} of the clip is empty')
