# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Load samples of a dataset, and handle unreadable files."""
import copy
import logging
from collections.abc import Callable
from typing import Any, Literal

import torch
from mmengine.dataset import BaseDataset
from mmengine.logging import print_log
from mmengine.structures import BaseDataElement

from ...utils.arguments import Count, check_arguments
from ...utils.printable import brief
from ...utils.remote_files import RemoteError
from .checked_step import CLOCK, CheckedStep, local_video, plain_step

ON_ERROR = ('skip', 'raise', 'flag')
NAMES = 'filename', 'frame_dir', 'audio_path', 'video_id'


@check_arguments
class Guard:
    """Loader of a dataset's samples that handles failures.

    Loading a sample fails if a transform raises an error.

    When a sample is skipped, a warning names its file (once per process). The
    next sample that loads reports the skipped files in its meta information:
    ``skipped_videos`` has their names, and ``skipped_reasons`` the reasons.
    The meta information of every sample also has ``filename`` and, if a video
    was decoded, ``decode_seconds``, the time for opening and decoding it.

    Args:
        dataset: Dataset. Each step of its pipeline is wrapped in a
            :class:`CheckedStep`.
        on_error: Reaction to a failure. ``'skip'`` returns None, so that
            another sample is loaded; in test mode, it raises like ``'raise'``.
            ``'flag'`` returns zeros with the sample's label, and the error in
            the meta information as ``unreadable``. Defaults to ``'skip'``.
        max_failures: Number of consecutive failures that raise an error,
            because the cause is probably not in the files.
    """

    def __init__(self, dataset: BaseDataset, *,
                 on_error: Literal[ON_ERROR] | None = None,
                 max_failures: Count = 10) -> None:
        self.on_error = on_error or 'skip'
        if self.on_error == 'skip' and dataset.test_mode:
            self.on_error = 'raise'
        self.max_failures = max_failures
        steps = dataset.pipeline.transforms
        steps[:] = [CheckedStep(plain_step(step)) for step in steps]
        # Files that failed since the last success, and the reasons.
        self._failures: list[tuple[str, str]] = []
        self._warned: set[str] = set()
        self._template: Any = None

    def __call__(self, dataset: BaseDataset, idx: int,
                 prepare: Callable[[int], Any]) -> Any:
        """Load a sample by ``prepare(idx)``; return None to skip it.

        Raises:
            RemoteError: If the server of a remote file cannot be reached.
            RuntimeError: If loading fails and ``on_error`` is ``'raise'``, or
                ``max_failures`` consecutive samples fail.
        """
        info = dataset.get_data_info(idx)
        name = next((str(info[key]) for key in NAMES if info.get(key)),
                    f'sample {idx}')
        try:
            data = self._load(dataset, idx, name, prepare)
        except RemoteError:
            # All samples on this server would be lost.
            raise
        except Exception as error:
            if self.on_error == 'raise':
                raise RuntimeError(
                    f'cannot load {name}: {brief(error)}') from error
            if self.on_error == 'flag':
                self._warn('Flagged', name, error)
                data = self._zeros(dataset, idx, name, prepare, error)
                label = info.get('label')
                if label is not None and hasattr(data['data_samples'],
                                                 'set_gt_label'):
                    data['data_samples'].set_gt_label(label)
                _annotate(data, filename=name, unreadable=brief(error))
                return data
            self._warn('Skipped', name, error)
            self._count(name, error)
            return None
        if data is not None:
            self.annotate(data, name)
            if CLOCK.seconds is not None:
                _annotate(data, decode_seconds=CLOCK.seconds)
        return data

    def annotate(self, data: Any, name: str) -> None:
        """Add the sample's file and the skipped files as meta information."""
        skipped, self._failures = self._failures, []
        _annotate(data, filename=name)
        if skipped:
            _annotate(data, skipped_videos=[name for name, _ in skipped],
                      skipped_reasons=dict(skipped))

    def _load(self, dataset: BaseDataset, idx: int, name: str,
              prepare: Callable) -> Any:
        # Get a remote file first: the time of decoding excludes it.
        local_video(dataset.get_data_info(idx))
        CLOCK.seconds = None
        return prepare(idx)

    def _warn(self, verb: str, name: str, error: Exception) -> None:
        if name not in self._warned:
            self._warned.add(name)
            print_log(f'{verb} {name}: {brief(error)}', logger='current',
                      level=logging.WARNING)

    def _count(self, name: str, error: Exception) -> None:
        self._failures.append((name, brief(error)))
        if len(self._failures) >= self.max_failures:
            failed, self._failures = self._failures, []
            raise RuntimeError(
                f'loading failed {len(failed)} times in a row; is the data '
                'folder right, and does the pipeline work? The last error: '
                f'{brief(error)}. The videos: {", ".join(dict(failed))}'
            ) from error

    def _zeros(self, dataset: BaseDataset, idx: int, name: str,
               prepare: Callable, error: Exception) -> Any:
        """Return zeros, in the shape of another sample that can be loaded."""
        for other in range(idx + 1, idx + 1 + self.max_failures):
            if self._template is not None:
                break
            try:
                other %= len(dataset)
                self._template = self._load(
                    dataset, other, f'sample {other}', prepare)
            except Exception:
                continue
        if self._template is None:
            raise RuntimeError(
                f'cannot load {name}, or any of the next {self.max_failures} '
                f'samples: {brief(error)}') from error
        data = copy.deepcopy(self._template)
        data['inputs'] = _zeros_like(data['inputs'])
        return data


def _annotate(data: Any, **note: Any) -> None:
    for one in data if isinstance(data, list) else [data]:
        sample = one.get('data_samples') if isinstance(one, dict) else None
        if isinstance(sample, BaseDataElement):
            sample.set_metainfo(note)


def _zeros_like(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _zeros_like(v) for key, v in value.items()}
    return torch.zeros_like(value)
