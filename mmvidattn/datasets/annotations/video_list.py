# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Reader of mmaction2's lists of videos and labels."""
import logging
import math
import os.path as osp

from mmengine.fileio import exists, get
from mmengine.logging import print_log

from ...utils.printable import count
from ...utils.text_files import refuse_pickle, split_lines
from .video_segment import decode_text


def read_video_list(ann_file: str, *, delimiter: str = ' ',
                    multi_class: bool = False, num_classes: int | None = None,
                    folder: str | None = None
                    ) -> list[tuple[str, int | list[int]]]:
    """Read a list of videos, and check each line.

    Each line is ``<path> <label>``; the path may contain the delimiter. With
    ``multi_class``, each line is ``<path> <label> <label> ...``; the path must
    not contain the delimiter. Blank lines, a byte order mark and any line ends
    are accepted. Repeated videos are kept, with a warning.

    Args:
        ann_file: UTF-8 file.
        delimiter: Separator of path and label.
        multi_class: Accept several labels per video.
        num_classes: Number of classes; labels must be smaller. Not checked
            by default.
        folder: Folder that paths are relative to. Paths that lead out of it
            are errors, see :func:`check_inside`. By default, paths are not
            checked.

    Returns:
        Path and label of each line; with ``multi_class``, path and list of
        labels.

    Raises:
        FileNotFoundError: If the file is missing.
        ValueError: If the file is empty or not text, a line is invalid, or a
            video has two labels. The error names the line.
    """
    if not exists(ann_file):
        raise FileNotFoundError(
            f'no annotation file {ann_file}; if the data set is in another '
            'folder, pass --cfg-options data_root=FOLDER')
    refuse_pickle(ann_file, f'lines of <path>{delimiter}<label>')
    shape = f'<path>{delimiter}<label>' + f'{delimiter}...' * multi_class
    entries, faults, seen = [], [], {}
    repeated = []
    text = decode_text(get(ann_file), ann_file)
    for number, line in enumerate(split_lines(text), 1):
        if not line.strip():
            continue
        try:
            if '\0' in line:
                raise ValueError('zero byte')
            name, label = _parse(
                line.strip(), delimiter, multi_class, num_classes)
            if folder is not None:
                check_inside(osp.join(folder, name), folder)
            if name in seen:
                repeated.append(name)
                first, earlier = seen[name]
                if not multi_class and earlier != label:
                    raise ValueError(f'line {first} gives it the label '
                                     f'{earlier}')
        except ValueError as error:
            faults.append(f'line {number}: {line!r}: {error}')
            continue
        seen.setdefault(name, (number, label))
        entries.append((name, label))
    if faults:
        raise ValueError(
            f'{ann_file}, {faults[0]}; expected {shape!r}'
            + f'. {count(len(faults) - 1, "other line")} also invalid' * (
                len(faults) > 1))
    if not entries:
        raise ValueError(f'{ann_file} lists no videos; expected lines of '
                         f'{shape}')
    if repeated:
        print_log(f'{ann_file}: {count({*repeated}, "video")} listed more '
                  f'than once, such as {repeated[0]}', logger='current',
                  level=logging.WARNING)
    return entries


def check_inside(path: str, folder: str, where: str = '') -> None:
    """Check that a path stays within a folder.

    ``../``, absolute paths and symbolic links are resolved first. The check
    does not protect from a link that is changed later.

    Raises:
        ValueError: If the path leads out of the folder, or ``folder`` is an
            empty string or a URL. The message begins with ``where``.
    """
    if '://' in folder or not folder:
        raise ValueError(
            f'{where}allow_outside=False needs a local folder of videos, got '
            f'{folder!r}; set data_root or data_prefix')
    root = osp.realpath(folder)
    if osp.commonpath([root, osp.realpath(path)]) != root:
        raise ValueError(f'{where}{path} leads out of {folder}')


def _parse(line: str, delimiter: str, multi_class: bool,
           num_classes: int | None) -> tuple[str, int | list[int]]:
    name, *words = (line.split if multi_class else line.rsplit)(
        delimiter, -1 if multi_class else 1)
    if not words or not name.strip():
        raise ValueError('no path' if words else 'no label')
    labels = []
    for word in words:
        try:
            labels.append(int(word))
        except ValueError:
            labels.append(-1)
        if not 0 <= labels[-1] < (num_classes or math.inf):
            last = f' to {num_classes - 1}' if num_classes else ''
            raise ValueError(f'the label must be an integer from 0{last}, got '
                             f'{word!r}')
    return name.strip(), labels if multi_class else labels[0]
