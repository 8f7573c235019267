# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Loads samples whatever their files are like."""
import copy
import logging
import os
import queue
import threading
import traceback
from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import Any

import numpy as np
import torch
from mmaction.datasets import BaseActionDataset
from mmcv import VideoReader
from mmengine.logging import print_log
from mmengine.structures import BaseDataElement

from .container_size import check_not_cut

ON_ERROR = ('skip', 'raise', 'flag')
NAMES = 'filename', 'frame_dir', 'audio_path', 'video_id'


class Guard:
    """The ``prepare_data`` of a dataset, guarded.

    What fails is an exception of any transform; a video without frames, or
    that is cut off; fewer frames than were asked for; and a sample that takes
    longer than ``timeout`` (the thread that loads it is left behind, and this
    process does not try that file again).

    In training another sample takes the place. A warning names the file
    (once in each process that loads data), and the sample that comes instead
    lists it in its meta information, under ``skipped_videos``, and why, under
    ``skipped_reasons``. Each sample has its own file there as ``filename``.

    A decoder may also crash the process. That is what ``notes`` is for: each
    process keeps the name of the file that it reads there, see
    :func:`read_note`.

    Args:
        dataset: The dataset.
        on_error: ``'skip'`` (for training only), ``'raise'``, or ``'flag'``:
            a sample of zeros with its label and the error under
            ``unreadable``.
        max_failures: How often in a row loading may fail before the fault is
            taken to be elsewhere, and raised.
        timeout: Seconds that a sample may take; None for any number.

    Attributes:
        notes: Folder for what each process reads, or None.
        given_up: Files that are not tried (again), and why.
    """

    def __init__(self,
                 dataset: BaseActionDataset,
                 *,
                 on_error: str = 'skip',
                 max_failures: int = 10,
                 timeout: float | None = 60.) -> None:
        if on_error not in ON_ERROR:
            raise ValueError(
                f'on_error must be None or one of {ON_ERROR}, got '
                f'{on_error!r}')
        if max_failures < 1:
            raise ValueError(
                f'max_failures must be at least 1, got {max_failures}')
        if timeout is not None and not timeout > 0:
            raise ValueError('timeout must be None or a positive number of '
                             f'seconds, got {timeout}')
        self.dataset = dataset
        self.on_error = on_error
        self.max_failures = max_failures
        # Files that failed since the last one that did not, and why.
        self._failures: list[tuple[str, str]] = []
        self._warned: set[str] = set()
        self.notes: str | None = None
        self.given_up: dict[str, str] = {}
        self._note_file: tuple[str, int, int] | None = None
        self._template: Any = None
        self._within = _Within(timeout)
        pipeline = getattr(dataset, 'pipeline', None)
        if hasattr(pipeline, 'transforms'):
            pipeline.transforms = [_Checked(t) for t in pipeline.transforms]

    def __call__(self, idx: int) -> Any:
        info = self.dataset.get_data_info(idx)
        name = next((str(info[key]) for key in NAMES if info.get(key)),
                    f'sample {idx}')
        try:
            data = self._load(idx, name)
        except Exception as error:
            if self.on_error == 'flag':
                return self._flagged(idx, info, name, error)
            if self.on_error == 'raise':
                raise RuntimeError(
                    f'cannot load {name}: {brief(error)}') from error
            self._note(name, error)
            return None
        if data is not None:
            skipped, self._failures = self._failures, []
            note = dict(filename=name)
            if skipped:
                note.update(skipped_videos=[name for name, _ in skipped],
                            skipped_reasons=dict(skipped))
            _annotate(data, note)
        return data

    def _load(self, idx: int, name: str) -> Any:
        if name in self.given_up:
            raise RuntimeError(f'not tried again: {self.given_up[name]}')
        self._write_note(name)
        try:
            return self._within(self._prepare, idx, name)
        except TimeoutError as error:
            self.given_up[name] = str(error)
            raise
        finally:
            self._write_note('')

    def _write_note(self, name: str) -> None:
        if self.notes is None or not os.path.isdir(self.notes):
            return
        here = self.notes, os.getpid()
        try:
            if self._note_file is None or self._note_file[:2] != here:
                path = os.path.join(self.notes, str(os.getpid()))
                self._note_file = (*here, os.open(
                    path, os.O_WRONLY | os.O_CREAT))
            # What is written is there, even if this process dies at once.
            os.pwrite(self._note_file[2], os.fsencode(name) + b'\0', 0)
        except OSError as error:
            # A full disk costs the notes, and not the samples.
            self.notes = None
            print_log(
                f'Cannot note what is read: {error}',
                logger='current',
                level=logging.WARNING)

    def _prepare(self, idx: int, name: str) -> Any:
        # Before it is opened: decord can crash on what is opened, not read.
        check_not_cut(name)
        # Of the class: the attribute of the dataset is this guard.
        return type(self.dataset).prepare_data(self.dataset, idx)

    def _note(self, name: str, error: Exception) -> None:
        self._failures.append((name, brief(error)))
        if name not in self._warned:
            self._warned.add(name)
            print_log(
                f'Skipped {name}: {brief(error)}',
                logger='current',
                level=logging.WARNING)
        if len(self._failures) >= self.max_failures:
            failed, self._failures = self._failures, []
            raise RuntimeError(
                f'loading failed {len(failed)} times in a row; is the data '
                'folder right, and does the pipeline work? The last error: '
                f'{brief(error)}. The videos: {", ".join(dict(failed))}'
            ) from error

    def _flagged(self, idx: int, info: dict, name: str,
                 error: Exception) -> Any:
        for other in range(idx + 1, idx + 1 + self.max_failures):
            if self._template is not None:
                break
            try:
                other %= len(self.dataset)
                self._template = self._load(other, f'sample {other}')
            except Exception:
                continue
        else:
            if self._template is None:
                raise RuntimeError(
                    f'cannot load {name}, nor the {self.max_failures} samples '
                    f'that follow it: {brief(error)}') from error
        data = copy.deepcopy(self._template)
        data['inputs'] = _zeros(data['inputs'])
        label = info.get('label')
        if label is not None and hasattr(data['data_samples'],
                                         'set_gt_label'):
            data['data_samples'].set_gt_label(label)
        if name not in self._warned:
            self._warned.add(name)
            print_log(
                f'Flagged {name}: {brief(error)}',
                logger='current',
                level=logging.WARNING)
        _annotate(data, dict(filename=name, unreadable=brief(error)))
        return data


def guard(dataset: Any,
          *,
          notes: str | None = None,
          given_up: Mapping[str, str] = MappingProxyType({}),
          **options: Any) -> int:
    """Guard mmaction2's datasets in a dataset, but those that have a guard.

    Args:
        dataset: A dataset, or a wrapper of one or more.
        notes: See :class:`Guard`; also of those that have a guard.
        given_up: See :class:`Guard`; also of those that have a guard.
        options: See :class:`Guard`. In test mode ``'skip'`` raises.

    Returns:
        How many were guarded.
    """
    number = 0
    for leaf in _leaves(dataset):
        if not isinstance(vars(leaf).get('prepare_data'), Guard):
            chosen = dict(options)
            if leaf.test_mode and chosen.get('on_error', 'skip') == 'skip':
                chosen['on_error'] = 'raise'
            leaf.prepare_data = Guard(leaf, **chosen)
            number += 1
        leaf.prepare_data.notes = notes
        leaf.prepare_data.given_up.update(given_up)
    return number


def read_note(folder: str, pid: int) -> str:
    """The file that a process was reading; '' if none.

    Args:
        folder: The ``notes`` of its guard.
        pid: The number of the process, which may have died.
    """
    path = os.path.join(folder, str(pid))
    if not os.path.isfile(path):
        return ''
    with open(path, 'rb') as file:
        return os.fsdecode(file.read().split(b'\0')[0])


def brief(error: BaseException) -> str:
    """Type and start of an error; decord appends a stack trace to its own."""
    words = ' '.join(str(error).split('Stack trace')[0].split())
    return f'{type(error).__name__}: {words[:200]}'


def _leaves(dataset: Any) -> Iterator[BaseActionDataset]:
    if isinstance(dataset, BaseActionDataset):
        yield dataset
        return
    inner = getattr(dataset, 'datasets', None)
    if inner is None and hasattr(dataset, 'dataset'):
        inner = [dataset.dataset]
    for one in inner or ():
        yield from _leaves(one)


def _annotate(data: Any, note: dict) -> None:
    for one in data if isinstance(data, list) else [data]:
        sample = one.get('data_samples') if isinstance(one, dict) else None
        if isinstance(sample, BaseDataElement):
            sample.set_metainfo(note)


def _zeros(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _zeros(v) for key, v in value.items()}
    return torch.zeros_like(value)


class _Checked:
    """A transform, after which the frames are counted."""

    def __init__(self, transform: Callable) -> None:
        self.transform = transform

    def __getattr__(self, name: str) -> Any:
        if name == 'transform':
            raise AttributeError(name)
        return getattr(self.transform, name)

    def __repr__(self) -> str:
        return repr(self.transform)

    def __call__(self, results: Any) -> Any:
        had_frames = isinstance(results, dict) and 'imgs' in results
        results = self.transform(results)
        if not isinstance(results, dict):
            return results
        if isinstance(results.get('video_reader'), VideoReader):
            results['video_reader'] = _StrictReader(results['video_reader'])
        total = results.get('total_frames')
        if total is not None and total < 1:
            raise ValueError('it has no frames')
        if not had_frames and 'imgs' in results and results.get(
                'modality', 'RGB') == 'RGB':
            _check_frames(results['imgs'], results.get('frame_inds'))
        return results


def _check_frames(frames: Any, wanted: Any) -> None:
    if wanted is not None and len(frames) != np.size(wanted):
        raise ValueError(
            f'{len(frames)} frames were read, {np.size(wanted)} are wanted')
    for number, frame in enumerate(frames):
        if frame is None or not np.size(frame):
            raise ValueError(f'frame {number} of the clip is empty')


class _StrictReader:
    """mmcv's reader of videos, which may run out of frames before its end.

    ``OpenCVDecode`` goes back, for ever if need be, to a frame that it can
    read, and uses that in place of the one that was asked for.
    """

    def __init__(self, reader: VideoReader) -> None:
        self.reader = reader

    def __len__(self) -> int:
        return len(self.reader)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.reader, name)

    def __getitem__(self, index: Any) -> np.ndarray:
        frame = self.reader[index]
        if frame is None:
            raise ValueError(f'frame {index} of {len(self.reader)} cannot be '
                             'read')
        return frame


class _Within:
    """Calls functions in a thread, and waits so long and no longer.

    A signal would not do: a decoder that hangs does not return to Python.
    """

    def __init__(self, timeout: float | None) -> None:
        self.timeout = timeout
        self._inbox = None

    def __getstate__(self) -> dict:
        # A thread neither goes to another process nor is copied.
        return dict(timeout=self.timeout, _inbox=None)

    def __call__(self, function: Callable, *args: Any) -> Any:
        if self.timeout is None:
            return function(*args)
        if self._inbox is None or self._pid != os.getpid():
            self._start()
        inbox, outbox = self._inbox, self._outbox
        inbox.put((function, args))
        try:
            result, error = outbox.get(timeout=self.timeout)
        except queue.Empty:
            self._inbox = None
            inbox.put(None)
            raise TimeoutError(
                f'it took more than {self.timeout:g} s') from None
        if error is not None:
            raise error
        return result

    def _start(self) -> None:
        self._inbox = queue.SimpleQueue()
        self._outbox = queue.SimpleQueue()
        self._pid = os.getpid()
        # A daemon, as Python would wait for others before it ends.
        threading.Thread(
            target=_serve, daemon=True, name='guarded loading',
            args=(self._inbox, self._outbox, torch.get_num_threads())).start()


def _serve(inbox: queue.SimpleQueue, outbox: queue.SimpleQueue,
           num_threads: int) -> None:
    # A new thread has the default number, and a worker another one.
    torch.set_num_threads(num_threads)
    while (call := inbox.get()) is not None:
        function, args = call
        try:
            answer = function(*args), None
        except Exception as error:
            # So that a reader of videos goes in the thread that opened it.
            traceback.clear_frames(error.__traceback__)
            answer = None, error
        # So that this thread does not keep a sample alive while it waits.
        del call, function, args
        outbox.put(answer)
        del answer
