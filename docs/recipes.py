# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Write configs/<family>/recipes.md and model-index.yml.

    python docs/recipes.py

For maintainers. A page shows how each config trains and tests, followed by the
authors' settings from ``configs/<family>/recipes.yml``, with differences in
bold. ``model-index.yml`` lists the metafiles of all families. A test fails if
a file is not current.
"""
import re
from collections.abc import Iterator, Sequence
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import yaml
from mmengine.config import Config, ConfigDict

from mmvidattn.apis import load_config
from mmvidattn.apis.view_shape import CROPS

ROOT = Path(__file__).resolve().parents[1]
NOTE = '<!-- Written by python docs/recipes.py -->'
LEGEND = '''\
An empty cell repeats ours, and bold differs: [how to read this
table](../../docs/tutorials/paper_tables.md#the-columns-of-recipes).'''


# Keys of the rows in recipes.yml, and their titles.
COLUMNS = dict(
    batch='batch',
    rate='optimizer, rate',
    decay='decay',
    warmup='warm-up',
    epochs='epochs',
    clip='clip',
    sides='sides',
    views='views',
    test_sides='test sides',
    average='averaged',
    start='start weights')
# Pipeline steps that are not augmentations.
PLUMBING = (
    'DecordInit', 'FormatShape', 'LoadFeatureWindow',
    'VideoReaderInit')
# Mean and standard deviation of ImageNet.
IMAGENET = [[123.675, 116.28, 103.53], [58.395, 57.12, 57.375]]
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
    mean, std = preprocessor.get('mean'), preprocessor.get('std')
    if [mean, std] == IMAGENET:
        steps.append('normalize(ImageNet)')
    elif mean:
        steps.append(f'normalize(mean={text_of(mean)}, std={text_of(std)})')
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


def _row(authors: dict[str, Any], ours: dict[str, str]) -> str:
    """Return the authors' row; cells that repeat ours are empty."""
    cells = [authors['of']]
    for key in COLUMNS:
        cell = text_of(authors.get(key, '-'))
        if cell == ours[key]:
            cell = ''
        elif is_different(authors, ours, key):
            cell = f'**{cell}**'
        cells.append(cell)
    while len(cells) > 2 and not cells[-1]:
        cells.pop()
    return f'| {" | ".join(cells)} |'


def table(folder: Path) -> str:
    """Return a family's table of recipes and its augmentations as Markdown.

    Args:
        folder: Folder of ``recipes.yml``, one level below the configs.

    Raises:
        ValueError: If ``recipes.yml`` has an unknown config or key.
    """
    names, content = read_recipes(folder)
    # 1. Collect the rows: configs with equal settings share them.
    rows: dict[tuple[str, ...], list[str]] = {}
    ours_by_steps: dict[str, list[str]] = {}
    authors_by_steps: dict[str, list[str]] = {}
    for name in names:
        cfg = load_config(folder.parent / f'{name}.py')
        ours = recipe(cfg, start_of(
            name, content['start'], folder / 'recipes.yml'))
        authors = [row for row in content['authors']
                   if fnmatch(name, row['config'])]
        key = ' | '.join(ours.values()), *(
            _row(row, ours) for row in authors)
        rows.setdefault(key, []).append(f'`{name}`')
        ours_by_steps.setdefault(augmentation(cfg), []).append(f'`{name}`')
        for row in authors:
            if 'augmentation' in row:
                authors_by_steps.setdefault(
                    row['augmentation'], []).append(f'`{name}`')
    lines = [f'| | {" | ".join(COLUMNS.values())} |',
             '|' + '---|' * (len(COLUMNS) + 1)]
    for (ours, *authors), configs in rows.items():
        lines += [f'| {", ".join(configs)} | {ours} |', *authors]
    # 2. List the augmentations, grouped by equal steps.
    for title, by_steps in (
            ('Augmentations in training, in order:', ours_by_steps),
            ("The authors' augmentations:", authors_by_steps)):
        lines += ['', title, '']
        for steps, configs in by_steps.items():
            lines.append(f'* {", ".join(dict.fromkeys(configs))}: {steps}.')
    return '\n'.join([LEGEND, '', *lines])


def make_files(root: Path = ROOT) -> dict[Path, str]:
    """Return the text of each file to write."""
    texts = {}
    for path in sorted(root.glob('configs/*/recipes.yml')):
        folder = path.parent
        title = (folder / 'README.md').read_text('utf-8').splitlines()[0]
        texts[folder / 'recipes.md'] = (
            f'{title}: recipes\n\n{NOTE}\n\n{table(folder)}\n')
    lines = ['# Written by python docs/recipes.py', 'Import:']
    lines += [f'  - {path.relative_to(root).as_posix()}'
              for path in sorted(root.glob('configs/*/metafile.yml'))]
    texts[root / 'model-index.yml'] = '\n'.join(lines) + '\n'
    return texts


if __name__ == '__main__':
    for page, text in make_files().items():
        page.write_text(text, 'utf-8')
