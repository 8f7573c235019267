# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Checks of a config before its runner is built.

mmengine and mmaction2 would ignore these mistakes, or fail later with an error
that does not name the option.
"""
import os
import warnings

from mmengine.config import Config
from torch.utils.data import DataLoader

from ..utils.arguments import suggest_argument
from ..utils.printable import count
from ..utils.remote_files import is_url
from ..utils.text_files import read_lines, refuse_pickle

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
        names = (data.get('metainfo') or {}).get('classes')
        if isinstance(names, str) and os.path.isfile(names):
            names = read_lines(names)
        if isinstance(classes, int) and isinstance(names, (list, tuple)) and (
                len(names) != classes):
            warnings.warn(f'the data set names {count(names, "class")}, but '
                          f'model.cls_head.num_classes is {classes}')
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
    if loader := cfg.get(f'{name}_dataloader'):
        try:
            suggest_argument(
                DataLoader, loader.keys() - {'num_batch_per_epoch'})
        except TypeError as error:
            raise ValueError(f'{name}_dataloader: {error}') from None
        if loader.get('persistent_workers') and not loader.get('num_workers'):
            raise ValueError(f'{name}_dataloader: num_workers=0 needs '
                             'persistent_workers=False')
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
    with open(path, encoding='utf-8', errors='replace') as file:
        lines = [(number, line.strip()) for number, line in enumerate(file, 1)
                 if line.strip()]
    if not lines:
        raise ValueError(f'{path} is empty')
    for number, line in lines:
        *names, label = line.split(delimiter)
        if data.type == 'VideoDataset' and len(names) != 1:
            raise ValueError(
                f'{path}, line {number}: expected {shape}, got {line[:80]!r}'
                + '; CheckedVideoDataset reads names with spaces' * (
                    len(names) > 1))
        if not (label.isdecimal() and int(label) < classes):
            raise ValueError(
                f'{path}, line {number}: the label must be a number from 0 to '
                f'{classes - 1} (model.cls_head.num_classes is {classes}), '
                f'got {label[:80]!r}')
