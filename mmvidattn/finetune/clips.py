# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Fine-tune a classifier of clips: prepare, and write results."""
import json
import math
import shlex
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import torch
from mmengine.config import Config
from rich.progress import Progress
from safetensors.torch import save_file

from ..apis.bundle import save_bundle
from ..apis.labels import read_labels
from ..apis.models import DEFAULT, find_default, find_weights, load_config
from ..apis.runner import build_runner
from ..datasets.annotations.custom.labeled_videos import (
    count,
    read_labeled_videos,
)
from ..utils.checkpoint import is_url, read_checkpoint
from ..utils.files import replacing, write_atomically
from ..utils.printable import echo
from ..visualization.training_curves import draw_training_curves
from .config import (
    build_config,
    choose_layers,
    format_config,
    is_frozen,
    load_base,
    metric_of,
)
from .options import FineTuneOptions
from .plan import make_plan
from .report import (
    chance_of,
    format_labels,
    measure_labels,
    read_answers,
    read_label_scores,
    read_logs,
    tune_label_thresholds,
    write_report,
)
from .training import (
    BUNDLE,
    fit_epochs,
    no_prints,
    read_notes,
    run_test,
    save_best,
)

# Fewer epochs trigger a note.
FEW_EPOCHS = 10
# Measured in docs/tutorials/own_videos.md.
EXPECTED = ('With 12 clips per class, a small model reached 52 to 79 % on '
            'four classes of motion, and 96 to 100 % on four scenes')


def write_features(cfg: Config, split: str, path: Path) -> None:
    """Run the frozen layers on the clips of a split, and write the results.

    Unreadable clips are left out and counted. Training clips are augmented
    once.

    Args:
        cfg: Config of the run, whose data loaders read videos.
        split: 'train' or 'val'.
        path: File for :class:`~mmvidattn.datasets.FrozenFeatureDataset`.

    Raises:
        ValueError: If no clip can be read, or the features of the model
            cannot be stored.
    """
    cfg = cfg.copy()
    loader = cfg[f'{split}_dataloader']
    dataset = loader.dataset
    while 'dataset' in dataset:
        # Repetitions and the balance of classes apply to the features.
        dataset = dataset.dataset
    cfg.test_dataloader = dict(
        batch_size=loader.batch_size, num_workers=loader.num_workers,
        sampler=dict(type='DefaultSampler', shuffle=False), dataset=dataset)
    cfg.test_cfg, cfg.test_evaluator = {}, dict(type='AccMetric')
    features, labels, lost = [], [], 0
    with no_prints(), TemporaryDirectory() as folder:
        cfg.work_dir = folder
        # Not strict, because the head may have other classes.
        runner = build_runner(cfg, False)
        batches = runner.test_loop.dataloader
        runner.load_or_resume()
    model = runner.model.eval()
    with Progress(transient=True) as progress:
        for batch in progress.track(batches, description='frozen layers'):
            batch = model.data_preprocessor(batch)
            values = model.frozen_features(batch['inputs']).cpu()
            for sample, one in zip(batch['data_samples'], values):
                if 'unreadable' in sample:
                    lost += 1
                    continue
                features.append(one)
                labels.append(sample.gt_label.cpu())
    if not features:
        raise ValueError(f'no clip of {dataset.ann_file} can be read')
    if lost:
        echo(f'note: {split} features: {count(range(lost), "clip")} left out, '
             'because they cannot be read')
    with replacing(path) as part:
        save_file(dict(features=torch.stack(features).contiguous(),
                       labels=torch.stack(labels)), part)


def count_entries(options: FineTuneOptions) -> int:
    """Return the number of videos of the source."""
    return len(read_labeled_videos(
        options.source, options.multi_label, options.columns, options.fps,
        options.more)[1])


def complete_options(options: FineTuneOptions) -> FineTuneOptions:
    """Choose the start weights."""
    return replace(options, weights=_choose_weights(options))


def _choose_weights(options: FineTuneOptions) -> Path | str | None:
    """Return the checkpoint, None for random weights, or ``'default'``.

    Raises:
        ValueError: If the checkpoint is not a local file, or is unsafe.
        FileNotFoundError: If there is no such file.
    """
    weights, model = options.weights, options.model
    if str(weights) == 'auto':
        with suppress(ValueError):
            find_default(model)
            echo(f'start weights: {model}, included in the package')
            return DEFAULT
        weights = 'none'
        if sys.stdin.isatty() and sys.stdout.isatty():
            echo(f'The package has no weights of {model}. '
                 'configs/start_weights.md lists free ones')
            weights = (input('File to start from, or Enter for none: ')
                       or 'none')
    if str(weights) in ('none', 'None'):
        if options.lora or options.freeze not in ('auto', 'none', None):
            raise ValueError('--freeze and --lora need --weights')
        echo('note: without --weights, training starts from random weights. '
             f'{EXPECTED}')
        return None
    if is_url(str(weights).replace(':/', '://')):
        raise ValueError(f'--weights must be a local file, got {weights}: '
                         'download it first')
    read_checkpoint(find_weights(model, str(weights)))
    return DEFAULT if str(weights) == DEFAULT else Path(weights)


def prepare(options: FineTuneOptions, command: str,
            dry_run: bool = False) -> dict:
    """Check the videos, and write the lists and the config.

    Returns:
        Content of ``finetune.json``, which is written when training begins.
    """
    out, source = options.out, options.source
    base = load_base(options.model)
    if source.is_dir() and out.resolve().is_relative_to(source.resolve()):
        raise ValueError(f'--work-dir {out} must not be inside {source}: it '
                         'would become a class')
    plan = make_plan(options)
    is_auto = options.epochs == 'auto'
    cfg = build_config(options, plan, 1 if is_auto else options.epochs)
    if dry_run:
        if is_auto:
            echo('note: --epochs auto is measured before the training')
        echo(f'\n{format_config(cfg, command)}', end='')
        return {}
    plan.write_lists(out / 'data')
    if not Path(cfg['_base_']).is_file():
        load_config(options.model).dump(cfg['_base_'])
    config = out / 'config.py'
    write_atomically(config, format_config(cfg, command).encode())
    on_features = is_frozen(
        base, choose_layers(options, base, sum(plan.counts)))
    if on_features:
        for split in ('train', 'val')[:1 + ('val' in plan.splits)]:
            write_features(load_config(config), split,
                           out / f'data/{split}.safetensors')
        cfg = build_config(options, plan, cfg['max_epochs'], on_features)
        write_atomically(config, format_config(cfg, command).encode())
    if is_auto:
        with no_prints():
            epochs, seconds = fit_epochs(load_config(config), options.minutes)
        echo(f'{count(epochs, "epoch")} of about {seconds:.1f} s')
        if epochs < FEW_EPOCHS:
            echo('note: a model learns little in so few epochs; --minutes '
                 f'{math.ceil(options.minutes * FEW_EPOCHS / epochs)} would '
                 f'allow {FEW_EPOCHS}')
        cfg = build_config(options, plan, epochs, on_features)
        write_atomically(config, format_config(cfg, command).encode())
    val = [video.label for video in plan.splits.get('val', ())]
    return dict(options=options.fixed(), videos=plan.number,
                chance=chance_of(val)
                if val and not options.multi_label else None,
                seconds=plan.clip_seconds)


def write_results(out: Path) -> None:
    """Write the weights, the metrics and the images."""
    config = out / 'config.py'
    cfg = load_config(config)
    best = save_best(out)
    save_bundle(out / BUNDLE, config, out / 'best.pth',
                seconds=read_notes(out).get('seconds'), replace=True)
    is_multi_label = cfg.model.cls_head.get('multi_class', False)
    metric = metric_of(is_multi_label)
    draw_training_curves(
        out / 'curves.png', *read_logs(out / 'run', metric),
        chance=read_notes(out).get('chance'), metric=metric,
        title='mAP' if is_multi_label else 'top-1')
    if cfg.get('test_dataloader') is None:
        echo('note: there are no test videos, so metrics and mistakes.png are '
             'not written')
        return
    classes = read_labels(cfg.test_dataloader.dataset.metainfo.classes)
    if is_multi_label:
        _write_label_metrics(out, cfg, classes, best.name)
        return
    answers = read_answers(*run_test(out, 'test')[:2])
    echo(write_report(out, answers, classes, Path(cfg.videos),
                      checkpoint=best.name))


def _write_label_metrics(out: Path, cfg: Config, classes: Sequence[str],
                         checkpoint: str) -> None:
    """Write the metrics of a classifier with several labels per clip."""
    scores, labels = tuned = read_label_scores(*run_test(out, 'test')[:2])
    if not (out / 'data/test.csv').is_file():
        echo('note: no test videos: F1 is of the validation videos, whose '
             'thresholds are tuned, and therefore too high')
    elif (out / 'data/val.csv').is_file():
        # With the views of the test.
        file = Path(cfg.test_dataloader.dataset.ann_file).with_stem('val')
        tuned = read_label_scores(
            *run_test(out, 'val', ann_file=str(file))[:2])
    metrics = measure_labels(scores, labels, tune_label_thresholds(*tuned),
                             classes)
    write_atomically(out / 'metrics.json', json.dumps(dict(
        checkpoint=checkpoint, **metrics), indent=1,
        ensure_ascii=False).encode() + b'\n')
    echo(format_labels(metrics))


def describe_use(out: Path) -> str:
    """Return the commands that use the model."""
    bundle, config, run = (
        shlex.quote(str(out / name)) for name in (BUNDLE, 'config.py', 'run'))
    seconds = read_notes(out).get('seconds')
    # Score four times per window. The default stride may be a whole window.
    window = (f' --seconds {seconds:g} --stride {seconds / 4:.2g}'
              if seconds else '')
    return f'''The model is {bundle}, which runs on any machine with mmvidattn:
    mmvidattn predict VIDEO_OR_FOLDER {bundle}
    mmvidattn stream 0 {bundle}{window}
    mmvidattn export {bundle} model.onnx
Continue training after a change of the config, such as more epochs; then
repeat `mmvidattn finetune` with the same options to compute the metrics:
    mmvidattn train {config} --resume --work-dir {run}'''
