# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Loads samples whatever their files are like."""
import copy
import logging
from collections.abc import Callable
from typing import Any, Literal

import torch
from mmengine.dataset import BaseDataset
from mmengine.logging import print_log
from mmengine.structures import BaseDataElement

from ...utils.arguments import Count, Positive, check_arguments
from ...utils.printable import brief
from .checked_step import CLOCK, CheckedStep, plain_step
from .container_size import check_not_cut
from .read_notes import ReadNotes
from .timeout import TimeLimit

ON_ERROR = ('skip', 'raise', 'flag')
NAMES = 'filename', 'frame_dir', 'audio_path', 'video_id'


@check_arguments
class Guard:
    """Loads samples of a dataset, and decides about those that fail.

    A failure is an exception of any transform; a file that is cut off; and a
    sample that takes longer than ``timeout``, whose file this process does not
    try again.

    Where failures are skipped, a warning names the file (once in each process
    that loads data). The next sample that loads lists it in its meta
    information, under ``skipped_videos``, and why, under ``skipped_reasons``.
    Each sample has its own file there as ``filename``, and the seconds that
    opening and decoding it took as ``decode_seconds``, if that was done.

    Args:
        dataset: The dataset, whose pipeline gets checks of its frames.
        on_error: ``'skip'``, which raises in testing, ``'raise'``, or
            ``'flag'``: a sample of zeros with its label and the error under
            ``unreadable``. Defaults to ``'skip'``.
        max_failures: Failures in a row after which the fault is taken to be
            elsewhere, and raised.
        timeout: Seconds that a sample may take; None for any number.

    Attributes:
        notes: Where each process notes the file that it reads, or None.
        given_up: Files that are not tried (again), and why.
    """

    def __init__(self,
                 dataset: BaseDataset,
                 *,
                 on_error: Literal[ON_ERROR] | None = None,
                 max_failures: Count = 10,
                 timeout: Positive | None = 60.) -> None:
        self.on_error = on_error or 'skip'
        if self.on_error == 'skip' and dataset.test_mode:
            self.on_error = 'raise'
        self.max_failures = max_failures
        steps = dataset.pipeline.transforms
        steps[:] = [CheckedStep(plain_step(step)) for step in steps]
        self.notes: ReadNotes | None = None
        self.given_up: dict[str, str] = {}
        # Files that failed since the last one that did not, and why.
        self._failures: list[tuple[str, str]] = []
        self._warned: set[str] = set()
        self._template: Any = None
        self._within_time = TimeLimit(timeout)

    def __call__(self, dataset: BaseDataset, idx: int,
                 prepare: Callable[[int], Any]) -> Any:
        """Load a sample.

        Args:
            dataset: The dataset, which knows the file.
            idx: Number of the sample.
            prepare: Loads the sample of a number.

        Returns:
            The sample; None if it is to be skipped.

        Raises:
            RuntimeError: If it cannot be loaded, and ``on_error`` is
                ``'raise'``; or if too many in a row cannot.
        """
        info = dataset.get_data_info(idx)
        name = next((str(info[key]) for key in NAMES if info.get(key)),
                    f'sample {idx}')
        try:
            data = self._load(idx, name, prepare)
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
        """Note in a sample its file, and those skipped before it.

        Called for what is loaded here, and for samples that need no loading.

        Args:
            data: The sample.
            name: Its file.
        """
        skipped, self._failures = self._failures, []
        _annotate(data, filename=name)
        if skipped:
            _annotate(data, skipped_videos=[name for name, _ in skipped],
                      skipped_reasons=dict(skipped))

    def _load(self, idx: int, name: str, prepare: Callable) -> Any:
        if name in self.given_up:
            raise RuntimeError(f'not tried again: {self.given_up[name]}')

        def check_and_prepare() -> Any:
            # First, as decord can crash on what is opened, not read.
            check_not_cut(name)
            return prepare(idx)

        if self.notes is not None:
            self.notes.write(name)
        CLOCK.start()
        try:
            return self._within_time(check_and_prepare)
        except TimeoutError as error:
            self.given_up[name] = str(error)
            raise
        finally:
            if self.notes is not None:
                self.notes.write('')

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
        """Return a sample like the others, but of zeros."""
        for other in range(idx + 1, idx + 1 + self.max_failures):
            if self._template is not None:
                break
            try:
                other %= len(dataset)
                self._template = self._load(other, f'sample {other}', prepare)
            except Exception:
                continue
        if self._template is None:
            raise RuntimeError(
                f'cannot load {name}, nor the {self.max_failures} samples '
                f'that follow it: {brief(error)}') from error
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
