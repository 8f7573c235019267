# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""A video dataset that says what is wrong with its files."""
import logging
import os.path as osp
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import decord
from mmaction.datasets import VideoDataset
from mmaction.registry import DATASETS
from mmengine.fileio import exists, get_local_path, list_from_file
from mmengine.logging import print_log

ON_ERROR = ('skip', 'raise')


def find_fault(filename: str) -> Exception | None:
    """Open a video and decode its last frame; returns the error, if any."""
    # mmaction2's readers take a name without a suffix for an mp4.
    path = filename if osp.splitext(filename)[1] else f'{filename}.mp4'
    try:
        with get_local_path(path) as local:
            reader = decord.VideoReader(local, num_threads=1)
            reader[len(reader) - 1]
    except Exception as error:
        return error
    return None


@DATASETS.register_module()
class GuardedVideoDataset(VideoDataset):
    """mmaction2's ``VideoDataset`` with its annotations and videos checked.

    Each line of the annotation file is ``<path> <label>``; the path may
    contain spaces. With ``multi_class`` it is ``<path> <label> <label> ...``
    and the path may not. Blank lines are skipped, any other fault is an error
    that names the line.

    A video that is skipped in training is replaced by another one at random,
    a warning names it (once in each process that loads data), and the
    replacing sample lists it in its meta information as ``skipped_videos``,
    from which :class:`mmvidattn.engine.SkippedVideosHook` counts.

    A video that is skipped in testing is left out when the dataset is loaded.
    This opens every video and decodes its last frame, on every rank; damage
    before the last frame is not seen there and still raises when the frame is
    read.

    A file of class names that does not exist, in ``metainfo['classes']``, is
    ignored with a warning.

    Args:
        ann_file: Path of the annotation file.
        pipeline: Transforms, as mmaction2's.
        num_classes: Number of classes. When given, labels are checked to be
            below it.
        on_error: What to do with a missing or unreadable video: ``'skip'``
            or ``'raise'``. Defaults to skip in training and raise in testing.
        max_failures: How often in a row loading may fail in training before
            the fault is taken to be elsewhere, and raised.
        kwargs: Other arguments of ``VideoDataset``.
    """

    def __init__(self,
                 ann_file: str,
                 pipeline: list,
                 *,
                 num_classes: int | None = None,
                 on_error: str | None = None,
                 max_failures: int = 10,
                 **kwargs: Any) -> None:
        if on_error is None:
            on_error = 'raise' if kwargs.get('test_mode') else 'skip'
        if on_error not in ON_ERROR:
            raise ValueError(
                f'on_error must be None or one of {ON_ERROR}, got '
                f'{on_error!r}')
        if max_failures < 1:
            raise ValueError(
                f'max_failures must be at least 1, got {max_failures}')
        self.on_error = on_error
        self.max_failures = max_failures
        # Videos that failed since the last one that did not.
        self._failures: list[str] = []
        self._warned: set[str] = set()
        super().__init__(
            ann_file, pipeline, num_classes=num_classes, **kwargs)

    @classmethod
    def _load_metainfo(cls, metainfo: Mapping | None = None) -> dict:
        # mmengine would take the path itself for the names.
        if isinstance(metainfo, Mapping):
            path = metainfo.get('classes')
            if isinstance(path, str) and not exists(path):
                print_log(
                    f'No file of class names at {path}; classes are numbers',
                    logger='current',
                    level=logging.WARNING)
                metainfo = {
                    k: v for k, v in metainfo.items() if k != 'classes'
                }
        return super()._load_metainfo(metainfo)

    def load_data_list(self) -> list[dict]:
        """Read and check the annotation file."""
        if not exists(self.ann_file):
            raise FileNotFoundError(f'no annotation file {self.ann_file}')
        if self.multi_class and self.num_classes is None:
            raise ValueError('multi_class needs num_classes')
        data_list = []
        for number, line in enumerate(list_from_file(self.ann_file), 1):
            if not line.strip():
                continue
            try:
                name, label = self._parse(line.strip())
            except ValueError as error:
                shape = f'<path>{self.delimiter}<label>'
                if self.multi_class:
                    shape += f'{self.delimiter}<label>...'
                raise ValueError(
                    f'{self.ann_file}, line {number}: {line!r}: {error}; '
                    f'expected {shape!r}') from None
            if self.data_prefix['video'] is not None:
                name = osp.join(self.data_prefix['video'], name)
            data_list.append(dict(filename=name, label=label))
        if not data_list:
            raise ValueError(f'{self.ann_file} lists no videos; expected '
                             f'lines of <path>{self.delimiter}<label>')
        return data_list

    def _parse(self, line: str) -> tuple[str, int | list[int]]:
        if self.multi_class:
            name, *words = line.split(self.delimiter)
        else:
            name, *words = line.rsplit(self.delimiter, 1)
        labels = [self._parse_label(word) for word in words]
        if not labels or not name.strip():
            raise ValueError('no label' if not labels else 'no path')
        return name.strip(), labels if self.multi_class else labels[0]

    def _parse_label(self, word: str) -> int:
        try:
            label = int(word)
        except ValueError:
            raise ValueError(f'label {word!r} is not an integer') from None
        if label < 0:
            raise ValueError(f'label {label} is negative')
        if self.num_classes is not None and label >= self.num_classes:
            raise ValueError(f'label {label} is out of range, with '
                             f'{self.num_classes} classes')
        return label

    def filter_data(self) -> list[dict]:
        """Leave unreadable videos out of a test set, if asked to."""
        if not self.test_mode or self.on_error == 'raise':
            return self.data_list
        # decord releases the GIL, so threads read in parallel.
        with ThreadPoolExecutor() as pool:
            faults = list(pool.map(
                find_fault, [info['filename'] for info in self.data_list]))
        found = [(info['filename'], fault)
                 for info, fault in zip(self.data_list, faults) if fault]
        if len(found) == len(self.data_list):
            raise RuntimeError(
                f'{self.ann_file}: none of the {len(found)} videos can be '
                f'read, the first of them {found[0][0]}') from found[0][1]
        if found:
            print_log(
                f'{self.ann_file}: {len(found)} of {len(self.data_list)} '
                'videos cannot be read and are left out: '
                + '; '.join(f'{n} ({_brief(e)})' for n, e in found),
                logger='current',
                level=logging.WARNING)
        return [info for info, fault in zip(self.data_list, faults)
                if not fault]

    def prepare_data(self, idx: int) -> Any:
        """One sample, or None if its video is to be replaced by another."""
        info = self.get_data_info(idx)
        filename = info['filename']
        try:
            data = self.pipeline(info)
        except Exception as error:
            if self.test_mode or self.on_error == 'raise':
                raise RuntimeError(
                    f'cannot load {filename}: {_brief(error)}') from error
            self._note(filename, error)
            return None
        if data is not None:
            skipped, self._failures = self._failures, []
            if skipped and 'data_samples' in data:
                data['data_samples'].set_metainfo(
                    dict(skipped_videos=skipped))
        return data

    def _note(self, filename: str, error: Exception) -> None:
        self._failures.append(filename)
        if filename not in self._warned:
            self._warned.add(filename)
            print_log(
                f'Skipped {filename}: {_brief(error)}',
                logger='current',
                level=logging.WARNING)
        if len(self._failures) >= self.max_failures:
            failed, self._failures = self._failures, []
            raise RuntimeError(
                f'loading failed {len(failed)} times in a row; is the data '
                'folder right, and does the pipeline work? The last error: '
                f'{_brief(error)}. The videos: '
                f'{", ".join(dict.fromkeys(failed))}') from error


def _brief(error: Exception) -> str:
    """Type and start of an error; decord appends a stack trace to its own."""
    words = ' '.join(str(error).split('Stack trace')[0].split())
    return f'{type(error).__name__}: {words[:200]}'
