# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Datasets that skip and report unreadable videos."""
import logging
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Literal

from mmaction.datasets import VideoDataset
from mmaction.registry import DATASETS
from mmengine.dataset import BaseDataset
from mmengine.fileio import exists, list_from_file
from mmengine.logging import print_log
from torch.utils.data import Dataset

from ..utils.arguments import Count, check_arguments
from ..utils.printable import brief
from ..utils.remote_files import RemoteError, join_url, without_secrets
from .annotations.video_list import read_video_list
from .check_files import check_video
from .skipping_loader import MAX_FAILURES, ON_ERROR, SkippingLoader


@DATASETS.register_module()
@check_arguments
class CheckedVideoDataset(VideoDataset):
    """mmaction2's ``VideoDataset`` with checks of annotations and videos.

    In training, a random video replaces an unreadable video, see
    :class:`mmvidattn.datasets.skipping_loader.SkippingLoader`.
    :class:`mmvidattn.engine.SkippedVideosHook` counts the skipped videos.

    In test mode, ``on_error='skip'`` removes unreadable videos when the
    dataset is loaded. Every rank then opens every video and decodes its last
    frame. Damage before the last frame is not detected then; it raises an
    error when a damaged frame is read.

    If ``metainfo['classes']`` is the path of a missing file, it is ignored
    with a warning.

    Args:
        ann_file: Path or URL of the list, see
            :func:`mmvidattn.datasets.read_video_list`. Videos may be URLs as
            well, see ``docs/remote.md``.
        pipeline: Transforms.
        num_classes: Number of classes; labels must be smaller. Not checked
            by default.
        on_error: Option of ``SkippingLoader``. By default, unreadable videos
            are skipped in training, and raise an error in testing.
        max_failures: Option of ``SkippingLoader``.
        allow_outside: Accept names that lead out of the video folder
            (``data_prefix['video']`` below ``data_root``) by ``../``, an
            absolute path, or a symbolic link. Set it to False for lists that
            you did not write; such names are then errors.
        kwargs: Other arguments of ``VideoDataset``.
    """

    def __init__(self, ann_file: str, pipeline: list, *,
                 num_classes: Count | None = None,
                 on_error: Literal[ON_ERROR] | None = None,
                 max_failures: Count = MAX_FAILURES,
                 allow_outside: bool = True,
                 **kwargs: Any) -> None:
        self.on_error = on_error
        self.allow_outside = allow_outside
        super().__init__(ann_file, pipeline, num_classes=num_classes, **kwargs)
        self.loader = SkippingLoader(self, on_error=on_error,
                                   max_failures=max_failures)

    def prepare_data(self, idx: int) -> Any:
        return self.loader(self, idx, super().prepare_data)

    def get_cat_ids(self, idx: int) -> list[int]:
        """Return a video's classes for mmengine's ``ClassBalancedDataset``."""
        label = self.get_data_info(idx)['label']
        # With multi_class, mmaction2 has converted it to zeros and ones.
        return label.nonzero()[:, 0].tolist() if self.multi_class else [label]

    @classmethod
    def _load_metainfo(cls, metainfo: Mapping | None = None) -> dict:
        # mmengine would use the path of a missing file as class names.
        if isinstance(metainfo, Mapping):
            path = metainfo.get('classes')
            if isinstance(path, str) and exists(path):
                # utf-8-sig removes a byte order mark from the first name.
                metainfo = dict(metainfo, classes=list_from_file(
                    path, encoding='utf-8-sig'))
            elif isinstance(path, str):
                print_log(
                    f'No file of class names at {path}; classes have only '
                    'numbers', logger='current', level=logging.WARNING)
                metainfo = {key: value for key, value in metainfo.items()
                            if key != 'classes'}
        return super()._load_metainfo(metainfo)

    def load_data_list(self) -> list[dict]:
        if self.multi_class and self.num_classes is None:
            raise ValueError('multi_class needs num_classes')
        data_list = []
        folder = self.data_prefix['video']
        for name, label in read_video_list(
                self.ann_file, delimiter=self.delimiter,
                multi_class=self.multi_class, num_classes=self.num_classes,
                folder=None if self.allow_outside else folder or ''):
            if folder is not None:
                name = join_url(folder, name)
            data_list.append(dict(filename=name, label=label))
        return data_list

    def filter_data(self) -> list[dict]:
        """Remove unreadable videos of a test set if ``on_error='skip'``."""
        if not self.test_mode or self.on_error != 'skip':
            return self.data_list
        readable = self._read_all(
            check_video, [info['filename'] for info in self.data_list])
        return [info for info in self.data_list
                if info['filename'] in readable]

    def _read_all(self, read: Callable[[str], Any], names: Iterable[str],
                  allowed: bool = True) -> dict[str, Any]:
        """Return ``read(name)`` of each readable video; log the rest.

        Raises:
            RemoteError: If the server of a remote video cannot be reached.
            RuntimeError: If no video is readable, or unreadable videos are not
                allowed.
        """
        def attempt(name: str) -> Any:
            try:
                return read(name)
            except RemoteError:
                raise
            except Exception as error:
                return error

        names = list(dict.fromkeys(names))
        # Decoders release the GIL, so threads read in parallel.
        with ThreadPoolExecutor() as pool:
            results = dict(zip(names, pool.map(attempt, names)))
        errors = {name: each for name, each in results.items()
                  if isinstance(each, Exception)}
        message = (f'{self.ann_file}: cannot read {len(errors)} of '
                   f'{len(names)} videos')
        named = [f'{without_secrets(name)} ({brief(error)})'
                 for name, error in errors.items()]
        if errors and (len(errors) == len(names) or not allowed):
            raise RuntimeError(f'{message}, such as {named[0]}'
                               ) from next(iter(errors.values()))
        if errors:
            print_log(f'{message}, which are left out: {"; ".join(named)}',
                      logger='current', level=logging.WARNING)
        return {name: each for name, each in results.items()
                if name not in errors}


class DatasetWrapper(Dataset):
    """Dataset with the attributes of the dataset that it wraps.

    Subclasses define ``prepare_data``, which returns None to skip a sample.
    """

    def __init__(self, dataset: Dataset) -> None:
        self.dataset = dataset

    def __getattr__(self, name: str) -> Any:
        if name == 'dataset':
            # The attribute is not set yet while a worker unpickles the
            # wrapper.
            raise AttributeError(name)
        return getattr(self.dataset, name)

    def __len__(self) -> int:
        return len(self.dataset)

    # If the sample is None, this method loads a sample at a random index.
    __getitem__ = BaseDataset.__getitem__


@DATASETS.register_module()
@check_arguments
class SkipUnreadable(DatasetWrapper):
    """Dataset wrapper that skips samples with unreadable files.

    In training, a random sample replaces a sample that cannot be loaded; see
    ``SkippingLoader``. A config wraps a dataset of mmaction2 by
    ``dataset=dict(type='SkipUnreadable', dataset=dict(type='VideoDataset',
    ...))``.

    Args:
        dataset: Dataset or its config.
        options: Options of ``SkippingLoader``.
    """

    def __init__(self, dataset: dict | BaseDataset, **options: Any) -> None:
        if isinstance(dataset, dict):
            dataset = DATASETS.build(dataset)
        super().__init__(dataset)
        self.loader = SkippingLoader(dataset, **options)

    def prepare_data(self, idx: int) -> Any:
        return self.loader(self.dataset, idx, self.dataset.prepare_data)
