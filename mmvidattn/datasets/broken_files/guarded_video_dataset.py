# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""A video dataset that says what is wrong with its files."""
import logging
import os.path as osp
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Literal

from mmaction.datasets import VideoDataset
from mmaction.registry import DATASETS
from mmengine.fileio import exists, list_from_file
from mmengine.logging import print_log

from ...utils.arguments import Count, Positive, check_arguments
from ...utils.printable import brief
from ...utils.video_readers import VideoBackend
from ..annotations.own.video_list import read_video_list
from ..transforms.video_reader_steps import VideoReaderInit
from .checked_step import plain_step
from .find_fault import find_fault
from .guard import ON_ERROR, Guard


@DATASETS.register_module()
@check_arguments
class GuardedVideoDataset(VideoDataset):
    """mmaction2's ``VideoDataset``, which checks its annotations and videos.

    Each line of the annotation file is ``<path> <label>``; the path may
    contain spaces. With ``multi_class`` it is ``<path> <label> <label> ...``
    and the path may not. Blank lines are skipped, any other fault is an error
    that names the line; see :func:`mmvidattn.datasets.read_video_list`.

    A video that is skipped in training is replaced by another one at random,
    see :class:`mmvidattn.datasets.broken_files.guard.Guard`;
    :class:`mmvidattn.engine.SkippedVideosHook` counts.

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
        on_error: What to do with a missing or unreadable video: ``'skip'``,
            ``'raise'``, or ``'flag'``, which puts zeros in its place and
            ``unreadable`` in the meta information. Defaults to skip in
            training and raise in testing.
        max_failures: How often in a row loading may fail in training before
            the fault is taken to be elsewhere, and raised.
        timeout: Seconds that a video may take; None for any number.
        allow_outside: Whether names of videos may lead out of their folder,
            ``data_prefix['video']`` below ``data_root``: by ``../``, from the
            root, or by symbolic links. For lists of others' making set False:
            such a name is an error that names its line.
        kwargs: Other arguments of ``VideoDataset``.
    """

    def __init__(self,
                 ann_file: str,
                 pipeline: list,
                 *,
                 num_classes: Count | None = None,
                 on_error: Literal[ON_ERROR] | None = None,
                 max_failures: Count = 10,
                 timeout: Positive | None = 60.,
                 allow_outside: bool = True,
                 **kwargs: Any) -> None:
        self.on_error = on_error
        self.allow_outside = allow_outside
        super().__init__(
            ann_file, pipeline, num_classes=num_classes, **kwargs)
        self.guard = Guard(self, on_error=on_error, max_failures=max_failures,
                           timeout=timeout)

    def prepare_data(self, idx: int) -> Any:
        """Load a sample; None if it is to be skipped."""
        return self.guard(self, idx, super().prepare_data)

    def get_cat_ids(self, idx: int) -> list[int]:
        """The classes of a video, for mmengine's ``ClassBalancedDataset``."""
        label = self.get_data_info(idx)['label']
        # Many labels of a video are zeros and ones by now, as in mmaction2.
        return label.nonzero()[:, 0].tolist() if self.multi_class else [label]

    @classmethod
    def _load_metainfo(cls, metainfo: Mapping | None = None) -> dict:
        # mmengine would take the path itself for the names.
        if isinstance(metainfo, Mapping):
            path = metainfo.get('classes')
            if isinstance(path, str) and exists(path):
                # A byte order mark would become part of the first name.
                metainfo = dict(metainfo, classes=list_from_file(
                    path, encoding='utf-8-sig'))
            elif isinstance(path, str):
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
        if self.multi_class and self.num_classes is None:
            raise ValueError('multi_class needs num_classes')
        data_list = []
        for name, label in read_video_list(
                self.ann_file,
                delimiter=self.delimiter,
                multi_class=self.multi_class,
                num_classes=self.num_classes,
                folder=None if self.allow_outside else
                self.data_prefix['video'] or ''):
            if self.data_prefix['video'] is not None:
                name = osp.join(self.data_prefix['video'], name)
            data_list.append(dict(filename=name, label=label))
        return data_list

    def filter_data(self) -> list[dict]:
        """Leave unreadable videos out of a test set if they are skipped."""
        if not self.test_mode or self.on_error != 'skip':
            return self.data_list
        names = list(dict.fromkeys(
            info['filename'] for info in self.data_list))
        backend = self._video_backend()
        # Decoders release the GIL, so threads read in parallel.
        with ThreadPoolExecutor() as pool:
            faults = dict(zip(names, pool.map(
                lambda name: find_fault(name, backend=backend), names)))
        found = [(name, fault) for name, fault in faults.items() if fault]
        if len(found) == len(names):
            raise RuntimeError(
                f'{self.ann_file}: none of the {len(found)} videos can be '
                f'read, the first of them {found[0][0]}') from found[0][1]
        if found:
            print_log(
                f'{self.ann_file}: {len(found)} of {len(names)} '
                'videos cannot be read and are left out: '
                + '; '.join(f'{n} ({brief(e)})' for n, e in found),
                logger='current',
                level=logging.WARNING)
        return [info for info in self.data_list
                if not faults[info['filename']]]

    def _video_backend(self) -> VideoBackend | None:
        """What decodes the videos, if it is one of our readers."""
        steps = map(plain_step, self.pipeline.transforms)
        return next((step.backend for step in steps
                     if isinstance(step, VideoReaderInit)), None)
