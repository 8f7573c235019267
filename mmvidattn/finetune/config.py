# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Write the config of a fine-tuning run, which the user may then edit."""
import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from mmaction.registry import MODELS
from mmengine.config import Config
from mmengine.registry import init_default_scope

from ..apis.models import find_config, find_weights, load_config
from ..layers.lora import add_lora
from ..utils.video_backend import OPENS
from .options import (
    FEW_CLIPS,
    FROZEN,
    LOSSES,
    RANK,
    FineTuneOptions,
)
from .plan import Plan

PARTLY = 'FineTunedRecognizer3D'
RECOGNIZERS = 'Recognizer3D', 'Recognizer2D', PARTLY
# Factor on the learning rate of the inherited config, if all layers of a
# pretrained network are trained; see docs/tutorials/own_videos.md.
TUNED_RATE = 0.3
# The batch size is reduced until a set has MIN_BATCHES batches. A small set is
# repeated until an epoch has MIN_STEPS steps.
MIN_BATCHES, MIN_STEPS = 4, 20
MAX_VALIDATIONS = 10
# Number of validations without improvement that stop the training on a small
# set.
PATIENCE = 3
# With fewer validation videos, the last checkpoint is used, because the choice
# of the best one would be chance.
MIN_TO_SELECT = 50
# Up to this number of videos, validation uses the views of the test.
MAX_WITH_VIEWS = 200
NOTES = dict(
    val_cfg='There are no validation videos.',
    test_cfg='There are no test videos.',
    log_processor='Averages over each epoch, for curves.png.')


class Source(str):
    """Text that a config contains without quotes, such as ``_base_.x``."""

    __repr__ = str.__str__


def load_base(model: str) -> Config:
    """Read the config of a model, and check that it can be fine-tuned.

    Raises:
        ValueError: If the model is not a recognizer of video files with one
            classifier.
        FileNotFoundError: If the config does not exist.
    """
    base = load_config(model)
    model_cfg = base.get('model') or {}
    head = model_cfg.get('cls_head') or {}
    kind = model_cfg.get('type')
    if kind not in RECOGNIZERS or 'num_nouns' in head:
        raise ValueError(
            f'--model {model} cannot be fine-tuned: model.type must be '
            f'{" or ".join(RECOGNIZERS)}, with one classifier, got {kind} '
            f'with {head.get("type")}'
            + ('; use the config without token labels'
               if kind == 'TokenLabelRecognizer3D' else ''))
    for split in 'train', 'val', 'test':
        steps = str(_pipeline(base, split)[1])
        if not any(name in steps for name in OPENS):
            raise ValueError(
                f'--model {model} cannot be fine-tuned: the {split} '
                'pipeline must open video files, as DecordInit does')
    return base


def build_config(options: FineTuneOptions, plan: Plan, epochs: int,
                 on_features: bool = False) -> dict[str, Any]:
    """Build the config of a run, which inherits from the model's config.

    Args:
        options: Options of the run.
        plan: Videos of the run.
        epochs: Number of epochs.
        on_features: Train and validate on the features of the frozen layers
            (:mod:`~mmvidattn.finetune.clips`). Defaults to False.

    Returns:
        Variables of the config. Expressions, such as references to other
        variables, are :class:`Source`.

    Raises:
        ValueError: If the options do not fit the model.
    """
    base = load_base(options.model)
    options = choose_layers(options, base, sum(plan.counts))
    path = find_config(options.model).resolve()
    if not path.is_file():
        # The model is a row of an ablation table and has no file. The run
        # writes its config.
        path = options.out.resolve() / path.name
    batch = options.batch_size or _batch_size(base, sum(plan.counts))
    return dict(
        _base_=str(path),
        videos=str(plan.root.resolve()),
        data_root=str((options.out / 'data').resolve()),
        num_classes=len(plan.classes),
        max_epochs=epochs,
        model=_model(base, options, plan.counts),
        **_data(base, batch, options, plan, on_features),
        **_schedule(base, batch, options, sum(plan.counts),
                    len(plan.splits.get('val', ())), epochs))


def metric_of(multi_label: bool) -> str:
    """Return the name of the validation metric."""
    return 'acc/mean_average_precision' if multi_label else 'acc/top1'


def choose_layers(options: FineTuneOptions, base: Config,
                  number: int) -> FineTuneOptions:
    """Replace ``freeze='auto'`` and ``'none'`` by the layers that they mean.

    Args:
        options: Options of the run.
        base: Config of the model.
        number: Number of training clips.

    Returns:
        Options with ``freeze`` None, a number, 'backbone' or 'spatial'.
    """
    if options.freeze not in ('auto', 'none'):
        return options
    if (options.freeze == 'none' or options.lora is not None
            or options.layer_decay is not None or options.weights is None
            or number >= FEW_CLIPS or base.model.type != 'Recognizer3D'):
        return replace(options, freeze=None)
    if _has_projections(base):
        return replace(options, freeze=None, lora=RANK)
    return replace(options, freeze='backbone')


def _has_projections(base: Config) -> bool:
    """Return True if the backbone supports LoRA."""
    init_default_scope(base.get('default_scope', 'mmaction'))
    try:
        add_lora(MODELS.build(base.model.backbone), RANK)
    except ValueError:
        return False
    return True


def format_config(cfg: dict[str, Any], command: str) -> str:
    """Format a config as Python source.

    Args:
        cfg: Result of :func:`build_config`.
        command: Command that writes the config, for the header.
    """
    # A line break in a file name would end the comment.
    command = ''.join(c if c.isprintable() else '?' for c in command)
    lines = [f'# Written once by: {command}',
             '# You may edit it: the same command resumes with this file.']
    for name, value in cfg.items():
        if name in NOTES and (value is None or name == 'log_processor'):
            lines.append(f'# {NOTES[name]}')
        lines.append(Config({name: value}).pretty_text.rstrip())
    return '\n'.join(lines) + '\n'


def _model(base: Config, options: FineTuneOptions,
           counts: Sequence[int]) -> dict[str, Any]:
    model: dict[str, Any] = {}
    has_init_weights = bool(base.model.backbone.get('init_cfg'))
    if not options.weights and not has_init_weights and (
            is_frozen(base, options)):
        raise ValueError(f'--model {options.model} freezes layers, so it '
                         'needs --weights')
    if options.freeze is not None or options.lora is not None:
        if base.model.type not in ('Recognizer3D', PARTLY):
            raise ValueError('--freeze and --lora need a model of type '
                             f'Recognizer3D, got {base.model.type} of '
                             f'{options.model}')
        model['type'] = PARTLY
        if options.freeze != base.model.get('freeze'):
            model['freeze'] = options.freeze
    if options.lora is not None:
        model['lora'] = dict(rank=options.lora)
    if options.weights and has_init_weights:
        model['backbone'] = dict(init_cfg=None)
    head: dict[str, Any] = dict(num_classes=Source('num_classes'))
    if options.balance == 'weights':
        head['loss_cls'] = _replaced(
            base.model.cls_head, 'loss_cls', type='CrossEntropyLoss',
            class_weight=[round(sum(counts) / len(counts) / number, 4)
                          for number in counts])
    if options.multi_label:
        head |= dict(
            multi_class=True, average_clips='score', label_smooth_eps=0,
            loss_cls=_replaced(base.model.cls_head, 'loss_cls',
                               type=LOSSES[options.loss]))
    elif options.balance == 'focal':
        # CBFocalLoss supports only hard labels.
        head |= dict(label_smooth_eps=0, loss_cls=_replaced(
            base.model.cls_head, 'loss_cls', type='CBFocalLoss',
            samples_per_cls=list(counts)))
    if len(counts) <= 5:
        head['topk'] = 1
    model['cls_head'] = head
    if (base.model.get('data_preprocessor') or {}).get('blending'):
        # Blending of clips helps only with large datasets.
        model['data_preprocessor'] = dict(blending=None)
    return model


def _replaced(inherited: dict, name: str, **options: Any) -> dict[str, Any]:
    """Return options that replace an inherited dict instead of extending it.
    """
    # Without an inherited dict, _delete_ would stay in the config.
    return (dict(_delete_=True) if inherited.get(name) else {}) | options


def _data(base: Config, batch: int, options: FineTuneOptions,
          plan: Plan, on_features: bool) -> dict[str, Any]:
    cfg: dict[str, Any] = {}
    number, has_views = sum(plan.counts), (
        len(plan.splits.get('val', ())) <= MAX_WITH_VIEWS)
    for split in 'train', 'val', 'test':
        # If there are no test videos, test on the validation videos, with the
        # test pipeline.
        name = split if split in plan.splits else 'val'
        if name not in plan.splits:
            cfg |= {f'{split}_cfg': None, f'{split}_dataloader': None,
                    f'{split}_evaluator': None}
            continue
        dataset: dict[str, Any] = dict(
            type='VideoSegmentDataset',
            ann_file=Source(f"f'{{data_root}}/{name}.{plan.suffix}'"),
            data_prefix=dict(video=Source('videos')),
            metainfo=dict(classes=Source("f'{data_root}/label_map.txt'")),
            num_classes=Source('num_classes'),
            **(dict(multi_class=True) if options.multi_label else {}),
            pipeline=Source(_pipeline(
                base, 'test' if split == 'val' and has_views else split)[0]))
        workers = options.workers
        if on_features and split != 'test':
            workers = 0
            dataset = dict(
                type='FrozenFeatureDataset',
                ann_file=Source(f"f'{{data_root}}/{name}.safetensors'"),
                metainfo=dataset['metainfo'])
        loader = dict(num_workers=workers, persistent_workers=workers > 0)
        if split == 'train':
            loader['batch_size'] = batch
            if options.balance == 'sampler':
                dataset = dict(
                    type='ClassBalancedDataset',
                    oversample_thr=round(_threshold(plan.counts), 6),
                    dataset=dataset)
            repeats = math.ceil(MIN_STEPS * batch / number)
            if repeats > 1:
                dataset = dict(
                    type='RepeatDataset', times=repeats, dataset=dataset)
        else:
            dataset['test_mode'] = True
            if split == 'val' and has_views:
                loader['batch_size'] = base.test_dataloader.batch_size
            metric = dict(metric_list='mean_average_precision') if (
                options.multi_label) else dict(metric_options=dict(
                    top_k_accuracy=dict(topk=1))) if (
                        len(plan.classes) <= 5) else {}
            cfg[f'{split}_evaluator'] = dict(
                _delete_=True, type='AccMetric', **metric)
        cfg[f'{split}_dataloader'] = dict(
            loader, dataset=dict(_delete_=True, **dataset))
    return cfg


def _schedule(base: Config, batch: int, options: FineTuneOptions,
              number: int, num_val: int, epochs: int) -> dict[str, Any]:
    lr = options.lr or _learning_rate(base, batch, options)
    optimizer: dict[str, Any] = dict(optimizer=dict(lr=float(f'{lr:.3g}')))
    if options.layer_decay is not None:
        optimizer |= dict(
            constructor='LearningRateDecayOptimWrapperConstructor',
            paramwise_cfg=_replaced(base.optim_wrapper, 'paramwise_cfg',
                                    decay_rate=options.layer_decay))
    interval = math.ceil(epochs / MAX_VALIDATIONS)
    is_small = number < FEW_CLIPS
    return dict(
        optim_wrapper=optimizer,
        param_scheduler=[dict(
            type='WarmupCosineLR', curve='line', start_factor=0.05,
            warmup=Source('0.1 * max_epochs'), end=Source('max_epochs'),
            convert_to_iter_based=True)],
        train_cfg=dict(
            _delete_=True, by_epoch=True, max_epochs=Source('max_epochs'),
            val_interval=interval),
        default_hooks=dict(
            checkpoint=dict(
                type='SafeCheckpointHook', interval=interval, max_keep_ckpts=1,
                save_best=metric_of(options.multi_label)
                if num_val >= MIN_TO_SELECT else None),
            **(dict(early_stop=dict(
                type='PatientStoppingHook', monitor='acc/top1', min_delta=1e-4,
                patience=PATIENCE)) if num_val and is_small
                and not options.multi_label else {})),
        log_processor=dict(custom_cfg=[
            dict(data_src=name, method_name='mean', window_size='epoch')
            for name in ('loss', 'top1_acc')[:1 + (not options.multi_label)]]),
        randomness=dict(seed=options.seed),
        load_from=options.weights and str(Path(find_weights(
            options.model, options.weights)).resolve()),
        **({} if base.get('runner_type') else dict(runner_type='SafeRunner')))


def is_frozen(base: Config, options: FineTuneOptions) -> bool:
    """Return True if features of frozen layers need be computed only once.
    """
    freeze = options.freeze
    if freeze is None and options.lora is None:
        freeze = base.model.get('freeze')
    return freeze in FROZEN


def _pipeline(base: Config, split: str) -> tuple[str, Any]:
    """Return the expression for a split's pipeline, and its value."""
    place = f'_base_.{split}_dataloader.dataset'
    dataset = (base.get(f'{split}_dataloader') or {}).get('dataset') or {}
    while 'pipeline' not in dataset and 'dataset' in dataset:
        place, dataset = f'{place}.dataset', dataset['dataset']
    return f'{place}.pipeline', dataset.get('pipeline')


def _batch_size(base: Config, number: int) -> int:
    """Reduce the inherited batch size to have MIN_BATCHES batches."""
    largest = max(1, number // MIN_BATCHES)
    power_of_two = 1 << largest.bit_length() - 1
    return min(base.train_dataloader.batch_size, power_of_two)


def _learning_rate(base: Config, batch: int,
                   options: FineTuneOptions) -> float:
    """Scale the inherited learning rate for the batch and trained layers."""
    base_batch = (base.get('auto_scale_lr') or {}).get(
        'base_batch_size', base.train_dataloader.batch_size)
    lr = base.optim_wrapper.optimizer.lr * batch / base_batch
    # New layers and low-rank updates keep the full rate.
    trains_all = not is_frozen(base, options) and options.lora is None
    return lr * TUNED_RATE if options.weights and trains_all else lr


def _threshold(counts: Sequence[int]) -> float:
    """Return the ``oversample_thr`` with the best balance of classes.

    ``ClassBalancedDataset`` repeats a class ``ceil(sqrt(threshold / share))``
    times, which reduces the ratio of two classes to about its square root.
    """
    total, rarest = sum(counts), min(counts)
    most = math.ceil(math.sqrt(max(counts) / rarest))
    # Stay slightly below, because the ceiling of 2.0000001 is 3.
    candidates = sorted({number / total * times**2 * (1 - 1e-6)
                         for number in counts for times in range(1, most + 1)})

    def imbalance(threshold: float) -> float:
        repeated = [number * max(1, math.ceil(math.sqrt(
            threshold * total / number))) for number in counts]
        return max(repeated) / min(repeated)

    return min(candidates, key=imbalance)
