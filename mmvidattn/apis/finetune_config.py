# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""The config of a fine-tuning, which its user keeps and edits."""
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from mmengine.config import Config

from ..utils.video_backend import OPENS
from .models import find_config, load_config

PARTLY = 'FineTunedRecognizer3D'
RECOGNIZERS = 'Recognizer3D', 'Recognizer2D', PARTLY
CACHE = 'FeatureCacheHook'
# What can be frozen so that its features can be kept.
KEPT = 'backbone', 'spatial'
BALANCES = 'none', 'weights', 'focal', 'sampler'
# Of the base's learning rate, where all of a trained network goes on learning:
# see tools/studies/README.md.
TUNED_RATE = 0.3
# Steps of an epoch that a small set has at least.
MIN_STEPS = 4
MAX_VALIDATIONS = 10


class FineTuning(NamedTuple):
    """All that the text of a config depends on.

    Args:
        model: Name or path of the config that is inherited.
        root: Folder of the videos.
        lists: Folder of the lists.
        suffix: Of the lists.
        counts: Training videos of each class, in the order of the labels.
        splits: Of train, val and test those that there are.
        epochs: How many.
        weights: Checkpoint to start from.
        freeze: ``'backbone'``, ``'spatial'``, a number of blocks, or None.
        lora: Rank of LoRA.
        layer_decay: Factor of the learning rate from a layer to the one
            before it.
        balance: One of ``BALANCES``.
        batch_size: Clips of a training step; by default that of the model's
            config, and less for a small set.
        lr: Learning rate; by default made of that of the model's config.
        workers: Processes that read videos.
        seed: Of all that is random.
        cache_dir: Folder of the features of what is frozen.
        num_variants: Of each training video in that folder.
    """
    model: str
    root: Path
    lists: Path
    suffix: str
    counts: Sequence[int]
    splits: Sequence[str]
    epochs: int
    weights: Path | None = None
    freeze: str | int | None = None
    lora: int | None = None
    layer_decay: float | None = None
    balance: str = 'none'
    batch_size: int | None = None
    lr: float | None = None
    workers: int = 2
    seed: int = 0
    cache_dir: Path | None = None
    num_variants: int = 1


def load_base(model: str) -> Config:
    """Read the config of a model, and check that it can be fine-tuned.

    Raises:
        ValueError: If it is no recognizer of video files with one classifier.
        FileNotFoundError: If there is no such config.
    """
    base = load_config(model)
    found = base.get('model') or {}
    head = found.get('cls_head') or {}
    kind = found.get('type')
    if kind not in RECOGNIZERS or 'num_nouns' in head:
        raise ValueError(
            f'--model {model} cannot be fine-tuned here: model.type must be '
            f'{" or ".join(RECOGNIZERS)}, with one classifier, got {kind} '
            f'with {head.get("type")}'
            + ('; the config without token labels can'
               if kind == 'TokenLabelRecognizer3D' else ''))
    for split in 'train', 'val', 'test':
        steps = str(_pipeline(base, split)[1])
        if not any(name in steps for name in OPENS):
            raise ValueError(
                f'--model {model} cannot be fine-tuned here: the {split} '
                'pipeline must open video files, as DecordInit does')
    return base


def write_config(tuning: FineTuning, command: str) -> str:
    """The text of the config.

    Args:
        tuning: What it says.
        command: The command that writes it, for the head of the file.
    """
    base = load_base(tuning.model)
    batch = tuning.batch_size or _batch_size(base, sum(tuning.counts))
    lr = tuning.lr or _learning_rate(base, batch, tuning)
    interval = math.ceil(tuning.epochs / MAX_VALIDATIONS)
    path = find_config(tuning.model).resolve()
    parts = [
        # A carriage return in a name would end the comment.
        '# Written once by: ' + ''.join(
            c if c.isprintable() else '?' for c in command),
        '# Change what you like: the same command goes on with what is here.',
        f'_base_ = {str(path)!r}',
        '',
        f'videos = {str(tuning.root.resolve())!r}',
        f'data_root = {str(tuning.lists.resolve())!r}',
        f'num_classes = {len(tuning.counts)}',
        f'max_epochs = {tuning.epochs}',
        '',
        *_model(base, tuning),
        '',
        *_data(base, batch, tuning),
        *_schedule(base, lr, interval, tuning),
    ]
    return '\n'.join(parts) + '\n'


def _model(base: Config, tuning: FineTuning) -> list[str]:
    lines, notes = [], []
    partly = tuning.freeze is not None or tuning.lora is not None
    if not tuning.weights and not base.model.backbone.get('init_cfg') and (
            _keeps_features(base, tuning)):
        raise ValueError(f'--model {tuning.model} freezes what --weights has '
                         'learned: give these as well')
    if partly and base.model.type not in ('Recognizer3D', PARTLY):
        raise ValueError('--freeze and --lora need a model of type '
                         f'Recognizer3D, and {tuning.model} is a '
                         f'{base.model.type}')
    if partly:
        lines.append(f'type={PARTLY!r}')
    if partly and tuning.freeze != base.model.get('freeze'):
        lines.append(f'freeze={tuning.freeze!r}')
    if tuning.lora is not None:
        lines.append(f'lora=dict(rank={tuning.lora})')
    if tuning.weights and base.model.backbone.get('init_cfg'):
        lines.append('backbone=dict(init_cfg=None)')
    head = ['num_classes=num_classes']
    if tuning.balance == 'weights':
        weights = [round(sum(tuning.counts) / len(tuning.counts) / number, 4)
                   for number in tuning.counts]
        head.append(_call('loss_cls', [
            *_anew(base.model.cls_head, 'loss_cls'),
            "type='CrossEntropyLoss'", f'class_weight={weights}'], 8))
    elif tuning.balance == 'focal':
        # It takes hard labels only.
        head += [_call('loss_cls', [
            *_anew(base.model.cls_head, 'loss_cls'), "type='CBFocalLoss'",
            f'samples_per_cls={list(tuning.counts)}'], 8),
            'label_smooth_eps=0']
    lines.append(_call('cls_head', head, 4))
    if (base.model.get('data_preprocessor') or {}).get('blending'):
        notes.append('# Clips are not mixed, as the inherited config has it '
                     'for large sets.')
        lines.append('data_preprocessor=dict(blending=None)')
    return [*notes, _call('model', lines, 0, ' = ')]


def _anew(options: dict, name: str) -> list[str]:
    """What replaces an inherited dict; where there is none it would stay."""
    return ['_delete_=True'] * bool(options.get(name))


def _call(name: str, arguments: Sequence[str], indent: int,
          sign: str = '=') -> str:
    one_line = f'{name}{sign}dict({", ".join(arguments)})'
    if indent + len(one_line) < 79:
        return one_line
    blanks = ' ' * (indent + 4)
    return (f'{name}{sign}dict(\n{blanks}'
            + f',\n{blanks}'.join(arguments) + ')')


def _data(base: Config, batch: int, tuning: FineTuning) -> list[str]:
    loaders = []
    for split in 'train', 'val', 'test':
        place, _ = _pipeline(base, split)
        # Without a test split the validation videos are tested, with the more
        # views that the test pipeline takes.
        name = split if split in tuning.splits else 'val'
        if name not in tuning.splits:
            loaders.append(f'# There are no videos for it.\n{split}_cfg = '
                           f'{split}_dataloader = {split}_evaluator = None\n')
            continue
        arguments = ["type='VideoSegmentDataset'",
                     f"ann_file=f'{{data_root}}/{name}.{tuning.suffix}'",
                     'data_prefix=dict(video=videos)',
                     "metainfo=dict(classes=f'{data_root}/label_map.txt')",
                     'num_classes=num_classes',
                     f'pipeline={place}']
        if split != 'train':
            arguments.append('test_mode=True')
        if split == 'train' and tuning.balance == 'sampler':
            threshold = _threshold(tuning.counts)
            dataset = _call('dataset', [
                '_delete_=True', "type='ClassBalancedDataset'",
                f'oversample_thr={threshold:.6f}',
                _call('dataset', arguments, 8)], 4)
        else:
            dataset = _call('dataset', ['_delete_=True', *arguments], 4)
        options = [f'num_workers={tuning.workers}',
                   f'persistent_workers={tuning.workers > 0}', dataset]
        if split == 'train':
            options.insert(0, f'batch_size={batch}')
        loaders.append(_call(f'{split}_dataloader', options, 0, ' = ') + '\n')
        if split != 'train':
            loaders[-1] += (
                f"{split}_evaluator = dict(_delete_=True, type='AccMetric')\n")
    return loaders


def _schedule(base: Config, lr: float, interval: int,
              tuning: FineTuning) -> list[str]:
    optimizer = [f'optimizer=dict(lr={lr:.3g})']
    if tuning.layer_decay is not None:
        optimizer += [
            "constructor='LearningRateDecayOptimWrapperConstructor'",
            _call('paramwise_cfg', [
                *_anew(base.optim_wrapper, 'paramwise_cfg'),
                f'decay_rate={tuning.layer_decay:g}'], 4)]
    validates = 'val' in tuning.splits
    best = "'acc/top1'" if validates else None
    lines = [
        _call('optim_wrapper', optimizer, 0, ' = '),
        'param_scheduler = [dict(\n'
        "    type='WarmupCosineLR', curve='line', start_factor=0.05,\n"
        '    warmup=0.1 * max_epochs, end=max_epochs, '
        'convert_to_iter_based=True)]',
        _call('train_cfg', [
            '_delete_=True', 'by_epoch=True', 'max_epochs=max_epochs',
            f'val_interval={interval}'], 0, ' = '),
        _call('default_hooks', [_call('checkpoint', [
            "type='SafeCheckpointHook'", f'interval={interval}',
            f'save_best={best}', 'max_keep_ckpts=1'], 4)], 0, ' = '),
        '# Of a whole epoch, for curves.png.',
        'log_processor = dict(custom_cfg=[\n'
        "    dict(data_src=name, method_name='mean', window_size='epoch')\n"
        "    for name in ('loss', 'top1_acc')])",
        f'randomness = dict(seed={tuning.seed})',
        f'load_from = {str(tuning.weights.resolve())!r}' if tuning.weights
        else 'load_from = None',
    ]
    lines += _hooks(base, tuning)
    if base.get('runner_type') is None:
        lines.append("runner_type = 'SafeRunner'")
    return lines


def _hooks(base: Config, tuning: FineTuning) -> list[str]:
    hooks = [dict(hook) for hook in base.get('custom_hooks') or ()]
    kept = hooks
    if tuning.cache_dir is not None or not _keeps_features(base, tuning):
        kept = [hook for hook in hooks if hook['type'] != CACHE]
    items = [repr(hook) for hook in kept]
    if tuning.cache_dir is not None:
        folder = str(tuning.cache_dir.resolve())
        items.append(_call('', [
            f'type={CACHE!r}', f'cache_dir={folder!r}',
            f'num_variants={tuning.num_variants}'], 4, ''))
    if items == [repr(hook) for hook in hooks]:
        return []
    return ['custom_hooks = [\n    ' + ',\n    '.join(items) + ']']


def _keeps_features(base: Config, tuning: FineTuning) -> bool:
    """Whether a part is frozen whose features can be kept."""
    freeze = tuning.freeze
    if freeze is None and tuning.lora is None:
        freeze = base.model.get('freeze')
    return freeze in KEPT


def _pipeline(base: Config, split: str) -> tuple[str, Any]:
    """Where the pipeline is in the config, and what it is."""
    place = f'_base_.{split}_dataloader.dataset'
    dataset = (base.get(f'{split}_dataloader') or {}).get('dataset') or {}
    while 'pipeline' not in dataset and 'dataset' in dataset:
        place, dataset = f'{place}.dataset', dataset['dataset']
    return f'{place}.pipeline', dataset.get('pipeline')


def _batch_size(base: Config, number: int) -> int:
    """The base's, or the power of two that leaves an epoch some steps."""
    most = max(1, number // MIN_STEPS)
    return min(base.train_dataloader.batch_size, 1 << most.bit_length() - 1)


def _learning_rate(base: Config, batch: int, tuning: FineTuning) -> float:
    """The base's, in proportion to the batch; less where it is fine-tuned."""
    planned = base.get('auto_scale_lr') or {}
    planned = planned.get('base_batch_size', base.train_dataloader.batch_size)
    lr = base.optim_wrapper.optimizer.lr * batch / planned
    # Else it is new layers that learn, or updates.
    whole = not _keeps_features(base, tuning) and tuning.lora is None
    return lr * TUNED_RATE if tuning.weights and whole else lr


def _threshold(counts: Sequence[int]) -> float:
    """Of ``ClassBalancedDataset`` the one that makes classes most alike.

    It repeats a class ``ceil(sqrt(threshold / share))`` times, so that about
    the square root of the ratio of two classes remains.
    """
    total, rarest = sum(counts), min(counts)
    most = math.ceil(math.sqrt(max(counts) / rarest))
    # A hair below, as the ceiling of 2.0000001 is 3.
    tried = sorted({number / total * times**2 * (1 - 1e-6)
                    for number in counts for times in range(1, most + 1)})

    def unevenness(threshold: float) -> float:
        repeated = [number * max(1, math.ceil(math.sqrt(
            threshold * total / number))) for number in counts]
        return max(repeated) / min(repeated)

    return min(tried, key=unevenness)

