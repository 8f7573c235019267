# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Checks of a config before its runner is built.

mmengine and mmaction2 would ignore these mistakes, or fail later with an error
that does not name the option.
"""
import os

from mmengine.config import Config

from ..utils.remote_files import is_url
from ..utils.text_files import refuse_pickle

# Key of data_prefix, for data sets of lists of videos whose last column is the
# label.
LISTS = dict(VideoDataset='video', CheckedVideoDataset='video',
             RawframeDataset='img')


def check_config(cfg: Config) -> None:
    """Check the data sets, loops and start weights of a config.

    Raises:
        FileNotFoundError: If the checkpoint ``load_from`` is missing.
        ValueError: If a loop is incomplete, a folder has an unknown name, or
            the data have more classes than the head.
    """
    if 'model' not in cfg:
        raise ValueError(f'{cfg.filename} is not a config: it lacks model')
    start = cfg.get('load_from')
    if start and not is_url(start) and not os.path.exists(start):
        raise FileNotFoundError(f'no checkpoint file {start}')
    # Recognizers of features lack a head.
    classes = (cfg.model.get('cls_head') or {}).get('num_classes')
    for name in 'train', 'val', 'test':
        _check_loop(cfg, name)
        data = (cfg.get(f'{name}_dataloader') or {}).get('dataset', {})
        option = f'{name}_dataloader.dataset'
        while 'dataset' in data:
            data, option = data.dataset, f'{option}.dataset'
        number = data.get('num_classes')
        if isinstance(number, int) and isinstance(classes, int) and (
                number > classes):
            raise ValueError(
                f'model.cls_head.num_classes is {classes}, but '
                f'{option}.num_classes is {number}: set both to the number of '
                'classes of your labels')
        kind = str(data.get('type')).rpartition('.')[2]
        if kind not in LISTS:
            continue
        for key in (data.get('data_prefix') or {}).keys() - {LISTS[kind]}:
            raise ValueError(f'{option}.data_prefix: {kind} reads '
                             f'{LISTS[kind]!r}, got {key!r}')
        if isinstance(classes, int) and number is None and not data.get(
                'multi_class'):
            _check_labels(data, classes)


def _check_loop(cfg: Config, name: str) -> None:
    """Raise a ``ValueError`` if only a part of a loop is configured."""
    parts = [f'{name}_dataloader', f'{name}_cfg',
             'optim_wrapper' if name == 'train' else f'{name}_evaluator']
    missing = [part for part in parts if cfg.get(part) is None]
    if 0 < len(missing) < len(parts):
        raise ValueError(
            f'the config has no {" and no ".join(missing)}: set all of '
            f'{", ".join(parts)}, or leave all out')


def _check_labels(data: Config, classes: int) -> None:
    """Check the label at the end of each line of a data set."""
    path = os.path.join(data.get('data_root') or '', data.get('ann_file', ''))
    if not os.path.isfile(path):
        return
    delimiter = data.get('delimiter', ' ')
    shape = f'<path>{delimiter}<label>'
    refuse_pickle(path, f'lines of {shape}')
    with open(path, encoding='utf-8', errors='replace') as lines:
        for number, line in enumerate(lines, 1):
            *names, label = line.strip().split(delimiter)
            if line.strip() and data.type == 'VideoDataset' and (
                    len(names) != 1):
                raise ValueError(
                    f'{path}, line {number}: expected {shape}, got '
                    f'{line.strip()[:80]!r}; CheckedVideoDataset reads names '
                    'with spaces')
            if line.strip() and not (
                    label.isdecimal() and int(label) < classes):
                raise ValueError(
                    f'{path}, line {number}: the label must be a number below '
                    f'model.cls_head.num_classes={classes}, got '
                    f'{label[:80]!r}')
