# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Videos as lists of frames, each with its labels."""
import os.path as osp
import re
from collections.abc import Iterator, Sequence
from typing import Any

from mmaction.datasets.base import BaseActionDataset
from mmaction.registry import DATASETS

from ..utils.arguments import Count, check_arguments
from .annotations.custom.video_list import check_inside

HEADER = 'original_vido_id'


@DATASETS.register_module()
@check_arguments
class FrameListDataset(BaseActionDataset):
    """Videos of several labels each, by the frame lists of Charades.

    The lists are those that SlowFast has for Charades. Their first line names
    the columns ``original_vido_id video_id frame_id path labels``; each other
    one is a frame of a video, in order, with its path below
    ``data_prefix['img']`` and its classes: numbers with commas between them in
    quotation marks, or nothing between these.

    Samples are what ``RawFrameDecode`` reads. ``label`` is a vector with ones
    for all classes of the video; ``segments`` lists when which is seen, for
    :class:`~mmvidattn.datasets.ClipLabels`.

    Args:
        ann_file: Path of the list.
        pipeline: Transforms, as mmaction2's.
        num_classes: Classes K.
        allow_outside: Whether paths may lead out of ``data_prefix['img']``,
            by ``../``, from the root, or by symbolic links.
        **kwargs: Other arguments of mmaction2's ``BaseActionDataset``.

    Raises:
        ValueError: If a line is not as above, with its number, or the frames
            of a video are not numbered in order.
    """

    def __init__(self, ann_file: str, pipeline: Sequence, num_classes: Count,
                 data_prefix: dict = dict(img=''), allow_outside: bool = True,
                 **kwargs: Any) -> None:
        self.allow_outside = allow_outside
        super().__init__(
            ann_file,
            pipeline,
            data_prefix=data_prefix,
            num_classes=num_classes,
            multi_class=True,
            start_index=0,
            **kwargs)

    def load_data_list(self) -> list[dict]:
        """Read the list."""
        videos: dict[str, list[tuple[str, list[int]]]] = {}
        for video, path, labels in self._lines():
            videos.setdefault(video, []).append((path, labels))
        return [self._sample(frames) for frames in videos.values()]

    def _lines(self) -> Iterator[tuple[str, str, list[int]]]:
        with open(self.ann_file, encoding='utf-8-sig') as lines:
            if not lines.readline().startswith(HEADER):
                raise ValueError(f'{self.ann_file} is no frame list: its '
                                 f'first line must begin with {HEADER}')
            for number, line in enumerate(lines, 2):
                cells = line.split()
                classes = cells[-1].strip('"') if cells else ''
                labels = classes.split(',') if classes else []
                if len(cells) != 5 or not all(
                        label.isdecimal() and int(label) < self.num_classes
                        for label in labels):
                    raise ValueError(
                        f'{self.ann_file}, line {number}: expected a video, '
                        'its number, that of the frame, a path, and classes '
                        f'below {self.num_classes} such as "3,14", got '
                        f'{line.strip()!r}')
                if not self.allow_outside:
                    self._check_inside(cells[3], number)
                yield cells[0], cells[3], [int(label) for label in labels]

    def _check_inside(self, path: str, number: int) -> None:
        folder = self.data_prefix['img'] or ''
        try:
            check_inside(osp.join(folder, path), folder)
        except ValueError as error:
            raise ValueError(
                f'{self.ann_file}, line {number}: {error}') from None

    def _sample(self, frames: list[tuple[str, list[int]]]) -> dict:
        folder, name = osp.split(frames[0][0])
        match = re.fullmatch(r'(.*?)(\d+)(\.\w+)', name)
        if match is None:
            raise ValueError(f'{self.ann_file}: {name} must be a number and '
                             'a suffix behind whatever else')
        before, digits, suffix = match.groups()
        plain = before.replace('{', '{{').replace('}', '}}')
        template = f'{plain}{{:0{len(digits)}}}{suffix}'
        segments: list[list[int]] = []
        running: dict[int, list[int]] = {}
        for index, (path, labels) in enumerate(frames):
            if path != osp.join(folder, template.format(int(digits) + index)):
                raise ValueError(
                    f'{self.ann_file}: {path} is not the frame behind '
                    f'{frames[index - 1][0]}')
            running = {label: running.get(label) or [label, index, index]
                       for label in labels}
            for segment in running.values():
                if segment[1] == index:
                    segments.append(segment)
                segment[2] = index
        return dict(
            frame_dir=osp.join(self.data_prefix['img'] or '', folder),
            filename_tmpl=template,
            offset=int(digits),
            total_frames=len(frames),
            segments=segments,
            label=sorted({label for label, _, _ in segments}))
