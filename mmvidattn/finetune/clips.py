# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Classifiers of clips: start weights, config, frozen features, results."""
import math
import shlex
import shutil
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch
from mmaction.registry import MODELS
from mmengine.config import Config
from mmengine.registry import init_default_scope

from ..apis.build_runner import build_runner
from ..apis.bundle import save_bundle
from ..apis.labels import read_labels
from ..apis.models import DEFAULT, find_weights, load_config
from ..layers.lora import add_lora
from ..utils.checkpoint import read_checkpoint, save_tensors
from ..utils.files import replacing
from ..utils.printable import count, echo
from ..utils.video_backend import OPENS
from . import report, training
from .options import FEW_CLIPS, FROZEN, LOSSES, RANK, FineTuneOptions
from .plan import Plan, progress_bar

# Start weights that come with the package.
START = 'data/start.safetensors'
PARTLY = 'FineTunedRecognizer3D'
RECOGNIZERS = 'Recognizer3D', 'Recognizer2D', PARTLY
# Factor on the learning rate of the inherited config, if all layers of a
# pretrained network are trained; see docs/tutorials/own_videos.md.
TUNED_RATE = 0.3
# The batch size is reduced until a set has MIN_BATCHES batches. A small set is
# repeated until an epoch has MIN_STEPS steps.
MIN_BATCHES, MIN_STEPS = 4, 20
# Number of validations without improvement that stop the training on a small
# set.
PATIENCE = 3
# With fewer validation videos, the last checkpoint is used, because the choice
# of the best one would be chance.
MIN_TO_SELECT = 50
# A class with less than this share of the videos of the most frequent class is
# repeated, because the ratio of their numbers is then closer to 1.
RARE = .5**.5
# Up to this number of videos, validation uses the views of the test.
MAX_WITH_VIEWS = 200


def complete_options(options: FineTuneOptions) -> FineTuneOptions:
    """Choose the start weights: a file, ``'default'`` or None.

    Raises:
        ValueError: If the file is not a checkpoint.
        FileNotFoundError: If the file does not exist.
    """
    weights = training.find_start(options.weights, options.model)
    if weights == DEFAULT:
        echo(f'start weights: {options.model}, included in the package')
    elif weights is None:
        echo('note: training starts from random weights; '
             'configs/start_weights.md lists free ones')
    else:
        # As a path, so that a URL is not downloaded.
        read_checkpoint(Path(find_weights(options.model, str(weights))))
        weights = Path(weights)
    return replace(options, weights=weights)


def load_base(options: FineTuneOptions) -> Config:
    """Read the config of a model, and check that it can be fine-tuned.

    Raises:
        ValueError: If the model is not a recognizer of video files with one
            classifier.
        FileNotFoundError: If the config does not exist.
    """
    model = options.model
    cfg = load_config(model)
    model_cfg = cfg.get('model') or {}
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
        steps = str(_pipeline(cfg, split))
        if not any(name in steps for name in OPENS):
            raise ValueError(
                f'--model {model} cannot be fine-tuned: the {split} '
                'pipeline must open video files, as DecordInit does')
    return cfg


def _pipeline(cfg: Config, split: str) -> Any:
    """Return the pipeline of a split."""
    dataset = (cfg.get(f'{split}_dataloader') or {}).get('dataset') or {}
    while 'pipeline' not in dataset and 'dataset' in dataset:
        dataset = dataset['dataset']
    return dataset.get('pipeline')


def set_config(cfg: Config, options: FineTuneOptions, plan: Plan) -> None:
    """Change the config of a model to the config of a run.

    Raises:
        ValueError: If the options do not fit the model.
    """
    number, num_val = sum(plan.counts), len(plan.splits.get('val', ()))
    options = choose_layers(options, cfg, number)
    # At most the largest power of two with MIN_BATCHES batches.
    largest = 1 << max(1, number // MIN_BATCHES).bit_length() - 1
    batch = options.batch_size or min(cfg.train_dataloader.batch_size, largest)
    lr = options.lr or _learning_rate(cfg, batch, options)
    cfg.optim_wrapper.optimizer.lr = float(f'{lr:.3g}')
    if options.layer_decay is not None:
        cfg.optim_wrapper.update(
            constructor='LearningRateDecayOptimWrapperConstructor',
            paramwise_cfg=dict(decay_rate=options.layer_decay))
    cfg.param_scheduler = [dict(
        type='WarmupCosineLR', curve='line', start_factor=0.05,
        convert_to_iter_based=True)]
    cfg.train_cfg = dict(by_epoch=True)
    # The config must not depend on where this package is.
    cfg.load_from = options.weights and str(
        options.out.resolve() / START if options.weights == DEFAULT else
        options.weights.resolve())
    _set_model(cfg, options, plan.counts)
    for split, name in training.used_splits(cfg, plan.splits):
        _set_loader(cfg, split, name, batch, options, plan)
    metric, averages = 'acc/top1', ('loss', 'top1_acc')
    if options.multi_label:
        metric, averages = 'acc/mean_average_precision', ('loss', )
    elif num_val and number < FEW_CLIPS and options.minutes is None:
        cfg.merge_from_dict(dict(default_hooks=dict(early_stop=dict(
            type='PatientStoppingHook', monitor=metric, min_delta=1e-4,
            patience=PATIENCE))))
    training.finish_config(
        cfg, options.seed, metric if num_val >= MIN_TO_SELECT else None,
        averages)


def choose_layers(options: FineTuneOptions, cfg: Config,
                  number: int) -> FineTuneOptions:
    """Replace ``freeze='auto'`` and ``'none'`` by the layers that they mean.

    ``number`` is the number of training clips. In the result, ``freeze`` is
    None, a number, 'backbone' or 'spatial'.
    """
    if options.freeze not in ('auto', 'none'):
        return options
    if (options.freeze == 'none' or options.lora is not None
            or options.layer_decay is not None or options.weights is None
            or number >= FEW_CLIPS or cfg.model.type != 'Recognizer3D'):
        return replace(options, freeze=None)
    init_default_scope(cfg.get('default_scope', 'mmaction'))
    try:
        add_lora(MODELS.build(cfg.model.backbone), RANK)
    except ValueError:
        # The backbone lacks attention projections.
        return replace(options, freeze='backbone')
    echo('few clips: training the classifier and low-rank updates of the '
         f'attention (--lora {RANK}); --freeze none trains all layers')
    return replace(options, freeze=None, lora=RANK)


def _learning_rate(cfg: Config, batch: int, options: FineTuneOptions) -> float:
    """Scale the inherited learning rate for the batch and trained layers."""
    base_batch = (cfg.get('auto_scale_lr') or {}).get(
        'base_batch_size', cfg.train_dataloader.batch_size)
    lr = cfg.optim_wrapper.optimizer.lr * batch / base_batch
    freeze = options.freeze
    if freeze is None and options.lora is None:
        freeze = cfg.model.get('freeze')
    # New layers and low-rank updates keep the full rate.
    trains_all = freeze not in FROZEN and options.lora is None
    return lr * TUNED_RATE if options.weights and trains_all else lr


def _set_model(cfg: Config, options: FineTuneOptions,
               counts: Sequence[int]) -> None:
    """Set the trained layers, the classes and the loss."""
    model = cfg.model
    if options.freeze is not None or options.lora is not None:
        if model.type not in ('Recognizer3D', PARTLY):
            raise ValueError('--freeze and --lora need a model of type '
                             f'Recognizer3D, got {model.type} of '
                             f'{options.model}')
        model.update(type=PARTLY, freeze=options.freeze)
    if options.lora is not None:
        model.lora = dict(rank=options.lora)
    if model.backbone.get('init_cfg'):
        if options.weights:
            model.backbone.init_cfg = None
    elif not options.weights and is_frozen(cfg):
        raise ValueError(f'--model {options.model} freezes layers, so it '
                         'needs --weights')
    head = model.cls_head
    head.num_classes = len(counts)
    if options.balance == 'weights':
        head.loss_cls = dict(type='CrossEntropyLoss', class_weight=[
            round(sum(counts) / len(counts) / number, 4)
            for number in counts])
    elif options.balance == 'focal':
        # CBFocalLoss supports only hard labels.
        head.update(label_smooth_eps=0, loss_cls=dict(
            type='CBFocalLoss', samples_per_cls=list(counts)))
    if options.multi_label:
        head.update(multi_class=True, average_clips='score',
                    label_smooth_eps=0,
                    loss_cls=dict(type=LOSSES[options.loss]))
    if (model.get('data_preprocessor') or {}).get('blending'):
        # Blending of clips helps only with large datasets.
        model.data_preprocessor.blending = None


def is_frozen(cfg: Config) -> bool:
    """Return True if features of frozen layers need be computed only once."""
    return cfg.model.get('freeze') in FROZEN


def _set_loader(cfg: Config, split: str, name: str, batch: int,
                options: FineTuneOptions, plan: Plan) -> None:
    """Let a loader read the videos of the split ``name``; set its metric."""
    data, is_train = (options.out / 'data').resolve(), split == 'train'
    with_views = split == 'val' and len(plan.splits['val']) <= MAX_WITH_VIEWS
    dataset = dict(
        type='VideoSegmentDataset',
        ann_file=str(data / f'{name}.{plan.suffix}'),
        data_prefix=dict(video=str(plan.root.resolve())),
        metainfo=dict(classes=str(data / 'classes.txt')),
        num_classes=len(plan.classes),
        pipeline=_pipeline(cfg, 'test' if with_views else split),
        **dict(multi_class=True) if options.multi_label else {},
        **{} if is_train else dict(test_mode=True))
    if is_train:
        if options.balance == 'sampler':
            # Rarer classes are repeated, and the most frequent one is not.
            dataset = dict(
                type='ClassBalancedDataset', dataset=dataset,
                oversample_thr=round(
                    RARE * max(plan.counts) / sum(plan.counts), 6))
        repeats = math.ceil(MIN_STEPS * batch / sum(plan.counts))
        if repeats > 1:
            dataset = dict(
                type='RepeatDataset', times=repeats, dataset=dataset)
    else:
        batch = cfg[f'{"test" if with_views else split}_dataloader'].batch_size
        cfg[f'{split}_evaluator'] = dict(
            type='AccMetric', **dict(metric_list='mean_average_precision')
            if options.multi_label else {})
    cfg[f'{split}_dataloader'] = dict(
        cfg[f'{split}_dataloader'], batch_size=batch, dataset=dataset,
        num_workers=options.workers, persistent_workers=options.workers > 0)


def write_data(cfg: Config, options: FineTuneOptions, plan: Plan) -> None:
    """Copy the start weights, and compute the features of frozen layers once.

    The config then trains on the features instead of the videos.
    """
    if options.weights == DEFAULT:
        shutil.copyfile(find_weights(options.model, DEFAULT), cfg.load_from)
    if not is_frozen(cfg):
        return
    original = cfg.copy()
    for split in ('train', 'val')[:1 + ('val' in plan.splits)]:
        path = (options.out / f'data/{split}.safetensors').resolve()
        write_features(original, split, path)
        # Repetitions and the balance of classes apply to the features.
        holder = _innermost(cfg, split)
        holder.dataset = dict(
            type='FrozenFeatureDataset', ann_file=str(path),
            metainfo=holder.dataset.metainfo,
            **{} if split == 'train' else dict(test_mode=True))
        cfg[f'{split}_dataloader'].update(num_workers=0,
                                          persistent_workers=False)


def _innermost(cfg: Config, split: str) -> dict:
    """Return the part of a config whose ``dataset`` wraps no other one."""
    holder = cfg[f'{split}_dataloader']
    while 'dataset' in holder.dataset:
        holder = holder.dataset
    return holder


def write_features(cfg: Config, split: str, path: Path) -> None:
    """Run the frozen layers on the clips of a split, and write the results.

    Unreadable clips are left out and counted. Training clips are augmented
    once. The file is for :class:`~mmvidattn.datasets.FrozenFeatureDataset`.

    Raises:
        ValueError: If no clip can be read, or the features of the model
            cannot be stored.
    """
    cfg = cfg.copy()
    loader = cfg[f'{split}_dataloader']
    dataset = _innermost(cfg, split).dataset
    cfg.test_dataloader = dict(
        batch_size=loader.batch_size, num_workers=loader.num_workers,
        sampler=dict(type='DefaultSampler', shuffle=False), dataset=dataset)
    cfg.test_cfg, cfg.test_evaluator = {}, dict(type='AccMetric')
    features, labels, lost = [], [], 0
    with training.no_prints(), TemporaryDirectory() as folder:
        cfg.work_dir = folder
        # Not strict, because the head may have other classes.
        runner = build_runner(cfg, strict=False)
        batches = runner.test_loop.dataloader
        runner.load_or_resume()
    model = runner.model.eval()
    with progress_bar() as bar:
        for batch in bar.track(batches, description='Frozen layers'):
            batch = model.data_preprocessor(batch)
            values = model.frozen_features(batch['inputs']).cpu()
            for sample, one in zip(batch['data_samples'], values):
                if 'skipped_videos' in sample:
                    lost += 1
                    continue
                features.append(one)
                labels.append(sample.gt_label.cpu())
    if not features:
        raise ValueError(f'no clip of {dataset.ann_file} can be read')
    if lost:
        echo(f'note: {split} features: {count(lost, "clip")} left out, '
             'because they cannot be read')
    with replacing(path) as part:
        save_tensors(dict(features=torch.stack(features).contiguous(),
                          labels=torch.stack(labels)), part)


def write_results(out: Path, checkpoint: str) -> None:
    """Write the bundle, the metrics and the images.

    ``checkpoint`` is the name of the checkpoint with these weights.
    """
    cfg = load_config(out / 'config.py')
    save_bundle(out / training.BUNDLE, cfg, out / 'best.pth',
                seconds=training.read_notes(out).get('seconds'), replace=True)
    if cfg.get('test_dataloader') is None:
        echo('note: there are no test videos, so metrics and mistakes.png are '
             'not written')
        return
    dataset = cfg.test_dataloader.dataset
    classes = read_labels(dataset.metainfo.classes)
    tested = training.run_test(out, 'test')[:2]
    if not cfg.model.cls_head.get('multi_class', False):
        echo(report.write_report(
            out, report.read_answers(*tested), classes,
            Path(dataset.data_prefix.video), checkpoint))
        return
    tested = tuned = report.read_label_scores(*tested)
    val = Path(dataset.ann_file).with_stem('val')
    if dataset.ann_file != str(val) and val.is_file():
        # With the views of the test.
        tuned = report.read_label_scores(*training.run_test(
            out, 'val', ann_file=str(val))[:2])
    metrics = report.measure_labels(
        *tested, report.tune_label_thresholds(*tuned), classes)
    report.write_metrics(out, dict(checkpoint=checkpoint, **metrics))
    echo(report.format_labels(metrics))


def describe_use(out: Path) -> str:
    """Return the commands that use the model."""
    model, note = shlex.quote(str(out / training.BUNDLE)), (
        'which runs on any machine with mmvidattn')
    imports = (load_config(out / 'config.py').get('custom_imports')
               or {}).get('imports') or []
    own = [name for name in (
        [imports] if isinstance(imports, str) else imports)
           if name.partition('.')[0] != 'mmvidattn']
    if own:
        # Bundles do not import the user's modules.
        model = ' '.join(shlex.quote(str(out / name))
                         for name in ('config.py', 'best.pth'))
        folders = {str(Path(one.__file__).parents[
            name.count('.') + hasattr(one, '__path__')]) for name in own
            if getattr(one := sys.modules.get(name), '__file__', None)}
        note = (f'with {" and ".join(own)} on PYTHONPATH (export PYTHONPATH='
                f'{":".join(sorted(folders))})')
    seconds = training.read_notes(out).get('seconds')
    # Score four times per window. The default stride may be a whole window.
    window = (f' --seconds {seconds:g} --stride {seconds / 4:.2g}'
              if seconds else '')
    return f'''The model is {model}, {note}:
    mmvidattn predict VIDEO_OR_FOLDER {model}
    mmvidattn stream 0 {model}{window}
    mmvidattn export {model} model.onnx'''
