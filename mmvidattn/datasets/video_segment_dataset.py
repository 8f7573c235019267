# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Dataset for segments of long videos, without cutting the files."""
import logging
import os.path as osp
from collections import Counter
from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import Any, Literal

from mmaction.registry import DATASETS
from mmengine.fileio import exists
from mmengine.logging import print_log

from ..utils.arguments import Count, Positive, check_arguments
from ..utils.printable import count
from ..utils.remote_files import is_url, join_url
from .annotations.segment_csv import read_segment_file
from .annotations.video_list import check_inside
from .annotations.video_segment import VideoSegment
from .checked_datasets import CheckedVideoDataset
from .transforms.video_reader_steps import UNITS

OPENS, OPENS_SEGMENT = 'DecordInit', 'DecordSegmentInit'
# Steps that can open segments.
SEGMENT_STEPS = OPENS_SEGMENT, 'VideoReaderInit'


@DATASETS.register_module()
@check_arguments
class VideoSegmentDataset(CheckedVideoDataset):
    """Segments of long videos; each segment is a sample.

    The annotation file is a CSV file in one of three formats, see
    :func:`~.annotations.segment_csv.read_segment_file`: a user's own
    file (columns video, start, end, and label or verb and noun),
    EPIC-Kitchens' or RULSTM's lists. A file that does not end with ``.csv`` is
    a list of videos in the format of :class:`CheckedVideoDataset`.

    In the pipeline, ``DecordInit`` is replaced by
    :class:`~mmvidattn.datasets.transforms.DecordSegmentInit`, which limits the
    video to the segment. ``VideoReaderInit`` also does this. mmaction2's steps
    then sample and decode frames. The meta information of a sample has a
    ``segment_id``, by which metrics select subsets.

    Args:
        ann_file: Path of the CSV file.
        pipeline: Transforms.
        filename_tmpl: Template that converts a video name in the CSV file to a
            path below ``data_prefix['video']``. ``.mp4`` is appended if the
            result has no suffix. For EPIC-Kitchens:
            ``'{0:.3}/videos/{0}.MP4'``.
        unit: Unit of start and end in the CSV file. ``'s'`` means seconds.
            ``'frames'`` means frames of the video, counted from 0, with an
            exclusive end. Defaults to ``'s'``.
        fps: Frames per second in RULSTM's lists.
        num_nouns: Number of nouns, for samples with a noun and a verb. A
            sample then has two labels: its noun, and ``num_nouns`` plus its
            verb; ``multi_class`` must be True. In test mode, segments without
            labels (of a challenge) are accepted. By default, a sample has one
            label: the number of its action, or the index of the action's name
            in ``metainfo['classes']``. With ``multi_class``, lines with the
            same video, start and end are one sample with several labels.
        num_verbs: Number of verbs, for samples with an action as well: the
            third label is ``num_nouns + num_verbs`` plus the action. Defaults
            to None, no actions.
        kwargs: Other arguments of :class:`CheckedVideoDataset`.

    Raises:
        ValueError: If a line of the CSV file is invalid, or arguments
            contradict each other.
        FileNotFoundError: If all videos are missing.
    """

    def __init__(self, ann_file: str, pipeline: Sequence[dict | Callable], *,
                 filename_tmpl: str = '{}', unit: Literal[UNITS] = 's',
                 fps: Positive = 30., num_nouns: Count | None = None,
                 num_verbs: Count | None = None, **kwargs: Any) -> None:
        if num_nouns is not None and not (
                kwargs.get('multi_class')
                and (kwargs.get('num_classes') or 0)
                > num_nouns + (num_verbs or 0)):
            raise ValueError(
                'num_nouns needs multi_class=True and num_classes, the number '
                'of nouns and verbs (and of actions, with num_verbs) together,'
                f' got num_nouns={num_nouns}, num_verbs={num_verbs}, '
                f'multi_class={kwargs.get("multi_class", False)}, '
                f'num_classes={kwargs.get("num_classes")}')
        self.filename_tmpl = filename_tmpl
        self.unit = unit
        self.fps = fps
        self.num_nouns = num_nouns
        self.num_verbs = num_verbs
        super().__init__(ann_file, _opening_segments(pipeline), **kwargs)

    def load_data_list(self) -> list[dict]:
        """Read and check the CSV file, and report missing videos."""
        if not self.ann_file.endswith('.csv'):
            return super().load_data_list()
        ranges = self._parts() or dict(action=self.num_classes)
        segments = read_segment_file(
            self.ann_file, self.fps, num_classes={
                part: number for part, number in ranges.items() if number})
        if not segments:
            raise ValueError(f'{self.ann_file} lists no segments')
        data_list = []
        for segment in segments:
            start, stop = segment.start, segment.end
            if self.unit == 'frames':
                start, stop = map(int, segment.frames or (start, stop))
            data_list.append(dict(
                filename=self._filename(segment),
                segment_id=segment.id,
                segment=(start, stop, self.unit),
                label=self._label(segment)))
        if self.multi_class and self.num_nouns is None:
            data_list = _merge_labels(data_list)
        self._check_files(data_list)
        return data_list

    def _parts(self) -> dict[str, int]:
        """Return the number of classes of each part, in order."""
        if self.num_nouns is None:
            return {}
        rest = self.num_classes - self.num_nouns
        if self.num_verbs is None:
            return dict(noun=self.num_nouns, verb=rest)
        return dict(noun=self.num_nouns, verb=self.num_verbs,
                    action=rest - self.num_verbs)

    def _filename(self, segment: VideoSegment) -> str:
        name = self.filename_tmpl.format(segment.video)
        if not osp.splitext(name)[1]:
            name += '.mp4'
        folder = self.data_prefix['video'] or ''
        path = join_url(folder, name)
        if not self.allow_outside:
            check_inside(path, folder, f'{segment.where}: ')
        return path

    def _label(self, segment: VideoSegment) -> int | list[int]:
        parts = self._parts()
        if parts and self.test_mode and not segment.labels:
            return []
        if not segment.labels.keys() >= (parts.keys() or {'action'}):
            raise ValueError(
                f'{segment.where}: a segment must have '
                + (f'the labels {", ".join(parts)}' if parts else
                   'a label (verbs and nouns need num_nouns)')
                + f', got {", ".join(segment.labels) or "none"}')
        if parts:
            firsts = accumulate(parts.values(), initial=0)
            return [first + segment.labels[part]
                    for part, first in zip(parts, firsts)]
        label = segment.labels['action']
        classes = list(self._metainfo.get('classes', ()))
        if label in classes:
            return classes.index(label)
        number = int(label) if str(label).isdecimal() else -1
        if number < 0 or self.num_classes and number >= self.num_classes:
            raise ValueError(
                f'{segment.where}: label must be a class name ({len(classes)} '
                'names) or a number'
                + (f' below {self.num_classes}' if self.num_classes else '')
                + f', got {label!r}')
        return number

    def _check_files(self, data_list: list[dict]) -> list[str]:
        """Report and return the missing local videos."""
        counts = Counter(info['filename'] for info in data_list)
        # One request for each remote video would take too long.
        missing = [name for name in counts
                   if not is_url(name) and not exists(name)]
        message = (
            f'{self.ann_file}: {len(missing)} of {len(counts)} videos are '
            f'missing, with {sum(counts[name] for name in missing)} of '
            f'{count(data_list, "segment")}')
        if len(missing) == len(counts):
            raise FileNotFoundError(
                f'{message}; check data_prefix and filename_tmpl, which give '
                f'{missing[0]} for the first video')
        if missing:
            print_log(f'{message}, such as {missing[0]}', logger='current',
                      level=logging.WARNING)
        return missing


def _merge_labels(data_list: Sequence[dict]) -> list[dict]:
    """Merge the labels of equal segments to a list."""
    merged: dict[tuple, dict] = {}
    for info in data_list:
        place = info['filename'], info['segment']
        merged.setdefault(place, info | dict(label=[]))['label'].append(
            info['label'])
    return list(merged.values())


def _opening_segments(pipeline: Sequence[dict | Callable]
                      ) -> list[dict | Callable]:
    steps = _replaced(pipeline)
    if not any(name in str(steps) for name in SEGMENT_STEPS):
        raise ValueError(
            f'pipeline must open videos with {OPENS} or VideoReaderInit, got '
            + ', '.join(str(step.get('type', step)) if isinstance(step, dict)
                        else type(step).__name__ for step in pipeline))
    return steps


def _replaced(steps: Sequence[dict | Callable]) -> list[dict | Callable]:
    """Let ``DecordInit`` open segments, also in nested steps."""
    adapted = []
    for step in steps:
        if isinstance(step, dict) and step.get('type') == OPENS:
            step = dict(step, type=OPENS_SEGMENT)
        elif isinstance(step, dict) and 'transforms' in step:
            step = dict(step, transforms=_replaced(step['transforms']))
        adapted.append(step)
    return adapted
