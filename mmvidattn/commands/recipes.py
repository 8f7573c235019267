# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Print how a config trains, beside the authors' settings."""
import argparse
import re
from collections.abc import Iterator, Sequence
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import yaml
from mmengine.config import Config, ConfigDict
from rich.console import Console
from rich.table import Table

from ..apis.models import CONFIG_FOLDERS, find_config, load_config
from ..apis.runner import one_line_errors
from .complexity import CROPS

# Keys of the rows in recipes.yml, and their titles.
COLUMNS = dict(
    batch='batch',
    rate='optimizer, rate',
    decay='decay',
    warmup='warm-up epochs',
    epochs='epochs',
    clip='training clip',
    sides='training sides',
    views='views',
    test_sides='test sides',
    average='averaged',
    start='start weights')
# Pipeline steps that are not augmentations.
PLUMBING = (
    'DecordInit', 'FormatShape', 'LoadFeatureWindow', 'TorchCodecInit',
    'VideoReaderInit')
SIZES = 'scale_range', 'scale', 'size', 'crop_size', 'input_size'
# Configs of small models on synthetic data, which are not from a paper.
MINIATURES = '*_motion', '*_synthetic', '*_videos'


def _number(value: Any) -> str:
    return f'{value:g}' if isinstance(value, float) else str(value)


def text_of(value: Any) -> str:
    if isinstance(value, (list, tuple)):
        return f'({", ".join(map(text_of, value))})'
    return _number(value)


def _call(step: dict[str, Any]) -> str:
    options = [f'{key}={text_of(value)}' for key, value in step.items()
               if key != 'type']
    return f'{step["type"]}({", ".join(options)})'


def _flat(pipeline: Sequence[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield the steps of a pipeline, with nested steps flattened."""
    for step in pipeline:
        if 'transforms' in step:
            yield from _flat(step['transforms'])
        else:
            yield step


def _sampler(pipeline: Sequence[dict[str, Any]]) -> dict[str, Any]:
    return next((step for step in _flat(pipeline) if 'clip_len' in step), {})


def _is_augmentation(step: dict[str, Any]) -> bool:
    return not (step['type'] in PLUMBING or 'clip_len' in step
                or step['type'].startswith('Pack')
                or re.search('Decode|Init$|^StreamSample', step['type']))


def _sides(pipeline: Sequence[dict[str, Any]]) -> str:
    sides = []
    for step in _flat(pipeline):
        for key in SIZES:
            if key not in step:
                continue
            value = step[key]
            if key == 'scale_range':
                sides.append('-'.join(map(_number, value)))
            elif isinstance(value, (list, tuple)):
                sides.append(_number(max(value)))
            else:
                sides.append(_number(value))
    return ', '.join(sides) or '-'


def _batch(cfg: Config) -> str:
    each = cfg.train_dataloader.batch_size
    base = cfg.get('auto_scale_lr', {}).get('base_batch_size', each)
    if base % each:
        raise ValueError(f'{cfg.filename}: base_batch_size of auto_scale_lr '
                         f'must be a multiple of the batch size {each}, got '
                         f'{base}')
    parts = [each, base // each]
    steps = cfg.optim_wrapper.get('accumulative_counts', 1)
    return ' x '.join(map(str, parts + [steps] * (steps > 1)))


def _schedulers(cfg: Config) -> list[dict[str, Any]]:
    schedulers = cfg.get('param_scheduler') or []
    return [schedulers] if isinstance(schedulers, dict) else schedulers


def _warmup(cfg: Config) -> str:
    for step in _schedulers(cfg):
        length = step.get('warmup')
        if step['type'] == 'LinearLR':
            length = step['end'] - step.get('begin', 0)
        if length:
            return (f'{_number(length)} from '
                    f'{_number(round(step.get("start_factor", 1 / 3), 3))}')
    return 'none'


def _epochs(cfg: Config) -> str:
    shape = ''
    for step in _schedulers(cfg):
        if step['type'] == 'MultiStepLR':
            at = ', '.join(map(str, step['milestones']))
            shape = f', x {_number(step["gamma"])} at {at}'
        elif 'Cosine' in step['type']:
            begin = step.get('begin', 0)
            shape = ', cosine' + (f' from {_number(begin)}' if begin else '')
    return f'{cfg.train_cfg.max_epochs}{shape}'


def _window(dataset: ConfigDict) -> str:
    parts = [f'{dataset.long_steps} / {dataset.get("long_rate", 1)}',
             f'{dataset.work_steps} / {dataset.get("work_rate", 1)}']
    if dataset.get('anticipation_steps'):
        parts.append(f'{dataset.anticipation_steps} / '
                     f'{dataset.get("anticipation_rate", 1)}')
    return ' + '.join(parts)


def _clip(dataset: ConfigDict) -> str:
    if 'clip_frames' in dataset:
        return f'{dataset.clip_frames} at {_number(dataset.frame_rate)} Hz'
    sampler = _sampler(dataset.pipeline)
    if not sampler:
        return _window(dataset)
    interval = sampler.get('frame_interval')
    clip = f'{sampler["clip_len"]}' + (f' x {interval}' if interval else '')
    return f'{clip} {sampler["type"]}'


def _views(test: ConfigDict, train: ConfigDict) -> str:
    sampler = _sampler(test.pipeline)
    if not sampler:
        return test.get('windows', 'videos')
    crops = [CROPS[step['type']] for step in _flat(test.pipeline)
             if step['type'] in CROPS]
    views = f'{sampler.get("num_clips", 1)} x {crops[-1] if crops else 1}'
    if sampler['type'] != _sampler(train.pipeline)['type']:
        views += f' {sampler["type"]}'
    return views


def augmentation(cfg: Config) -> str:
    """List the augmentations of training clips, including normalization."""
    steps = [_call(step) for step in _flat(
        cfg.train_dataloader.dataset.pipeline) if _is_augmentation(step)]
    preprocessor = cfg.model.get('data_preprocessor') or {}
    if preprocessor.get('mean'):
        steps.append(f'normalize(mean={text_of(preprocessor["mean"])}, '
                     f'std={text_of(preprocessor["std"])})')
    blending = preprocessor.get('blending')
    if blending:
        steps.append(_call(blending))
    return ', '.join(f'`{step}`' for step in steps) or 'none'


def recipe(cfg: Config, start: str) -> dict[str, str]:
    """Return the cells of a config, by the keys of ``COLUMNS``.

    Args:
        cfg: Config from ``load_config``.
        start: Start weights if the config sets none.
    """
    train, test = cfg.train_dataloader.dataset, cfg.test_dataloader.dataset
    optimizer = cfg.optim_wrapper.optimizer
    init = cfg.get('load_from') or (
        cfg.model.backbone.get('init_cfg') or {}).get('checkpoint')
    return dict(
        batch=_batch(cfg),
        rate=f'{optimizer.type} {_number(optimizer.lr)}',
        decay=_number(optimizer.get('weight_decay', 0)),
        warmup=_warmup(cfg),
        epochs=_epochs(cfg),
        clip=_clip(train),
        sides=_sides(train.pipeline),
        views=_views(test, train),
        test_sides=_sides(test.pipeline),
        average=cfg.model.cls_head.get('average_clips') or '-',
        start=init or start)


def start_of(name: str, starts: dict[str, str], path: Path) -> str:
    """Return the start weights of the first pattern that matches a name."""
    for pattern, start in starts.items():
        if fnmatch(name, pattern):
            return start
    raise ValueError(f'{path}: no pattern of "start" matches {name}')


def is_different(authors: dict[str, Any], ours: dict[str, str],
                 key: str) -> bool:
    """Return True if the authors' setting is known and differs from ours."""
    cell = text_of(authors.get(key, '-'))
    return cell != '-' and '?' not in cell and cell != ours[key]


def read_recipes(folder: Path) -> tuple[list[str], dict[str, Any]]:
    """Read the ``recipes.yml`` of a family.

    Args:
        folder: Folder of ``recipes.yml``, one level below the configs.

    Returns:
        Names of the family's configs, and the content of the file.

    Raises:
        ValueError: If ``recipes.yml`` has an unknown config or key.
    """
    path = folder / 'recipes.yml'
    try:
        content = yaml.safe_load(path.read_text('utf-8'))
    except yaml.YAMLError as error:
        raise ValueError(f'{path} is not valid YAML: {error}') from error
    names = sorted(
        config.stem for config in folder.parent.glob('*.py')
        if any(fnmatch(config.stem, x) for x in content['configs'])
        and not any(fnmatch(config.stem, x) for x in MINIATURES))
    for row in content['authors']:
        if '*' not in row['config'] and row['config'] not in names:
            raise ValueError(f'{path}: config must be one of '
                             f'{", ".join(names)}, got {row["config"]}')
        unknown = row.keys() - COLUMNS.keys() - {'config', 'of',
                                                 'augmentation'}
        if unknown:
            raise ValueError(f'{path}, {row["config"]}: keys must be in '
                             f'{", ".join(COLUMNS)}, got '
                             f'{", ".join(sorted(unknown))}')
    return names, content


def find_recipes(name: str) -> tuple[Path, dict[str, Any]] | None:
    """Return the folder of a config's family, and its ``recipes.yml``.

    None if the config belongs to no model family.
    """
    root = next(path for path in CONFIG_FOLDERS if path.is_dir())
    for path in sorted(root.glob('*/recipes.yml')):
        names, content = read_recipes(path.parent)
        if name in names:
            return path.parent, content
    return None


def run(args: argparse.Namespace) -> None:
    with one_line_errors():
        name = find_config(args.config).stem
        cfg = load_config(args.config, args.cfg_options)
        recipes = find_recipes(name)
        authors = []
        start = '-'
        if recipes is not None:
            folder, content = recipes
            start = start_of(name, content['start'], folder / 'recipes.yml')
            authors = [row for row in content['authors']
                       if fnmatch(name, row['config'])]
        ours = recipe(cfg, start)
    table = Table('', name, *(row['of'] for row in authors))
    for key, title in COLUMNS.items():
        table.add_row(title, ours[key], *(
            f'* {text_of(row[key])}' if is_different(row, ours, key)
            else text_of(row.get(key, '-')) for row in authors))
    table.add_row('augmentation', augmentation(cfg).replace('`', ''), *(
        row.get('augmentation', '-') for row in authors))
    Console(highlight=False, markup=False).print(table)
    print('* differs from the config (augmentations are not compared)'
          if authors else f'No recipe of the authors is known for {name}.')
