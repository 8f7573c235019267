# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Dataset for lists of labeled frames."""
import os.path as osp
import re
from collections.abc import Iterator, Sequence
from typing import Any

from mmaction.datasets.base import BaseActionDataset
from mmaction.registry import DATASETS

from ..utils.arguments import Count, check_arguments
from .annotations.video_list import check_inside
from .skipping_loader import SkippingLoader

HEADER = 'original_vido_id'


@DATASETS.register_module()
@check_arguments
class FrameListDataset(BaseActionDataset):
    """Multi-label videos in the format of SlowFast's frame lists (Charades).

    The first line of a list has the columns ``original_vido_id video_id
    frame_id path labels``. Each following line describes a frame, in order.
    The path is relative to ``data_prefix['img']``. The labels are class
    numbers, separated by commas, in quotation marks (``"3,14"`` or ``""``).

    mmaction2's ``RawFrameDecode`` reads the frames of a sample. ``label`` is a
    vector with ones for all classes of the video. ``segments`` lists the
    class, first frame and last frame of each occurrence, for
    :class:`~mmvidattn.datasets.transforms.ClipLabels`. In training, a random
    video replaces an unreadable video; see
    :class:`~mmvidattn.datasets.skipping_loader.SkippingLoader`.

    Args:
        ann_file: Path of the list.
        pipeline: Transforms.
        num_classes: Number of classes K.
        data_prefix: ``img``: folder of the frames.
        allow_outside: Accept paths that lead out of ``data_prefix['img']``
            by ``../``, an absolute path, or a symbolic link.
        **kwargs: Other arguments of mmaction2's ``BaseActionDataset``.

    Raises:
        ValueError: If a line is invalid, or the frames of a video are not
            numbered in order.
    """

    def __init__(self, ann_file: str, pipeline: Sequence, num_classes: Count,
                 data_prefix: dict = dict(img=''), allow_outside: bool = True,
                 **kwargs: Any) -> None:
        self.allow_outside = allow_outside
        super().__init__(
            ann_file, pipeline, data_prefix=data_prefix,
            num_classes=num_classes, multi_class=True, start_index=0,
            **kwargs)
        self.loader = SkippingLoader(self)

    def prepare_data(self, idx: int) -> Any:
        return self.loader(self, idx, super().prepare_data)

    def load_data_list(self) -> list[dict]:
        videos: dict[str, list[tuple[str, list[int]]]] = {}
        for video, path, labels in self._lines():
            videos.setdefault(video, []).append((path, labels))
        return [self._sample(frames) for frames in videos.values()]

    def _lines(self) -> Iterator[tuple[str, str, list[int]]]:
        with open(self.ann_file, encoding='utf-8-sig') as lines:
            if not lines.readline().startswith(HEADER):
                raise ValueError(f'{self.ann_file} is not a frame list: its '
                                 f'first line must begin with {HEADER}')
            for number, line in enumerate(lines, 2):
                cells = line.split()
                classes = cells[-1].strip('"') if cells else ''
                labels = classes.split(',') if classes else []
                if len(cells) != 5 or not all(
                        label.isdecimal() and int(label) < self.num_classes
                        for label in labels):
                    raise ValueError(
                        f'{self.ann_file}, line {number}: expected name and '
                        'number of a video, frame number, path, and classes '
                        f'below {self.num_classes} such as "3,14", got '
                        f'{line.strip()!r}')
                if not self.allow_outside:
                    folder = self.data_prefix['img'] or ''
                    check_inside(osp.join(folder, cells[3]), folder,
                                 f'{self.ann_file}, line {number}: ')
                yield cells[0], cells[3], [int(label) for label in labels]

    def _sample(self, frames: list[tuple[str, list[int]]]) -> dict:
        folder, name = osp.split(frames[0][0])
        match = re.fullmatch(r'(.*?)(\d+)(\.\w+)', name)
        if match is None:
            raise ValueError(f'{self.ann_file}: {name} must end with a number '
                             'and a suffix')
        before, digits, suffix = match.groups()
        plain = before.replace('{', '{{').replace('}', '}}')
        template = f'{plain}{{:0{len(digits)}}}{suffix}'
        segments: list[list[int]] = []
        running: dict[int, list[int]] = {}
        for index, (path, labels) in enumerate(frames):
            if path != osp.join(folder, template.format(int(digits) + index)):
                raise ValueError(
                    f'{self.ann_file}: expected the frame after '
                    f'{frames[index - 1][0]}, got {path}')
            running = {label: running.get(label) or [label, index, index]
                       for label in labels}
            for segment in running.values():
                if segment[1] == index:
                    segments.append(segment)
                segment[2] = index
        return dict(
            frame_dir=osp.join(self.data_prefix['img'] or '', folder),
            filename_tmpl=template, offset=int(digits),
            total_frames=len(frames), segments=segments,
            label=sorted({label for label, _, _ in segments}))
