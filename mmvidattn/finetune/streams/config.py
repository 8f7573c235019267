# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Write the config of a detector, which the user may then edit."""
import statistics
from pathlib import Path
from typing import Any

from ...apis.models import find_config
from ..config import Source
from ..options import FineTuneOptions
from .plan import StreamPlan

# Configs that a run inherits, for each kind of model.
BASES = dict(pixels='linear_ff_causal_tiny_synthetic',
             features='testra_tiny_videos')
METRIC = dict(pixels='online/mAP_stream',
              features='online/mAP_non_overlapping')
# Patch side in pixels of the network of pixels.
PATCH = 8
# Frames of a clip, and number of videos that are read in parallel.
CLIP_FRAMES, MAX_ROWS = 128, 4
MAX_VALIDATIONS = 10
# Steps per second of features; seconds of the long and the work memory.
FEATURE_RATE = 4
LONG_SECONDS, WORK_SECONDS = 16, 4


def build_config(kind: str, options: FineTuneOptions, plan: StreamPlan,
                 epochs: int, size: int) -> dict[str, Any]:
    """Build the config of a run, which inherits from a small config.

    Args:
        kind: ``'pixels'`` or ``'features'``.
        options: Options of the run.
        plan: Videos of the run.
        epochs: Number of epochs.
        size: Side of the images that a network of pixels reads, or number of
            channels of the features.

    Returns:
        Variables of the config. Expressions, such as references to other
        variables, are :class:`Source`.
    """
    cfg = dict(
        _base_=str(find_config(BASES[kind]).resolve()),
        videos=str(plan.root.resolve()),
        data_root=str((options.out / 'data').resolve()),
        num_classes=len(plan.classes),
        max_epochs=epochs,
        **(_images(size) if kind == 'pixels' else {}),
        model=_model(kind, plan, size),
        **_data(kind, options, plan),
        **_schedule(kind, options, plan, epochs))
    shortest = min(plan.durations)
    online = dict(events=dict(min_duration=round(shortest / 2, 2)))
    if kind == 'features':
        online['extractors'] = dict(rgb=dict(
            config=options.features, checkpoint=checkpoint_of(options)))
    return cfg | dict(online=online)


def checkpoint_of(options: FineTuneOptions) -> str | None:
    """Return the weights of the frozen network; files as absolute paths."""
    weights = options.weights
    if weights is None or not Path(weights).is_file():
        return weights
    return str(Path(weights).resolve())


def _images(side: int) -> dict[str, Any]:
    """Return the size of the images, and the pipeline that resizes them."""
    return dict(img_size=side, pipeline=[
        dict(type='DecordInit'),
        dict(type='StreamSampleFrames'),
        dict(type='DecordDecode'),
        dict(type='Resize', scale=Source('(img_size, img_size)'),
             keep_ratio=False),
        dict(type='FormatShape', input_format='NCTHW'),
        dict(type='PackStreamInputs')])


def _model(kind: str, plan: StreamPlan, size: int) -> dict[str, Any]:
    head = dict(num_classes=Source('num_classes'))
    if kind == 'pixels':
        longest = plan.frame_rate * statistics.median(plan.durations)
        encoder = dict(
            img_size=Source('img_size'), patch_size=PATCH, patch_stride=PATCH,
            decay=dict(half_life=(2, max(8, round(longest)))))
        return dict(backbone=dict(encoder=encoder), cls_head=head)
    return dict(
        backbone=dict(
            in_channels=dict(rgb=size),
            long_memory_length=LONG_SECONDS * FEATURE_RATE,
            work_memory_length=WORK_SECONDS * FEATURE_RATE),
        cls_head=head)


def _data(kind: str, options: FineTuneOptions, plan: StreamPlan
          ) -> dict[str, Any]:
    cfg: dict[str, Any] = {}
    dataset: dict[str, Any] = dict(
        data_root=Source('data_root'),
        metainfo=dict(classes=Source("f'{data_root}/classes.txt'")))
    if kind == 'pixels':
        dataset |= dict(
            data_prefix=dict(video=Source('videos')),
            frame_rate=plan.frame_rate, clip_frames=CLIP_FRAMES,
            pipeline=Source('pipeline'))
    else:
        dataset |= dict(long_steps=LONG_SECONDS * FEATURE_RATE,
                        work_steps=WORK_SECONDS * FEATURE_RATE)
    for split in 'train', 'val', 'test':
        name = split if split in plan.splits else 'val'
        if name not in plan.splits:
            cfg |= {f'{split}_cfg': None, f'{split}_dataloader': None,
                    f'{split}_evaluator': None}
            continue
        files = dict(ann_file=f'{name}.csv', video_list=Source(
            f"f'{{data_root}}/{name}_videos.txt'")) if kind == 'pixels' else (
                dict(ann_file=f'{name}_features.txt'))
        loader = dict(dataset=dataset | files)
        if split == 'train':
            loader |= dict(num_workers=options.workers,
                           persistent_workers=options.workers > 0)
            loader['batch_size'] = options.batch_size or (
                min(MAX_ROWS, len(plan.splits['train']))
                if kind == 'pixels' else 8)
        cfg[f'{split}_dataloader'] = loader
    return cfg


def _schedule(kind: str, options: FineTuneOptions, plan: StreamPlan,
              epochs: int) -> dict[str, Any]:
    interval = -(-epochs // MAX_VALIDATIONS)
    has_val = 'val' in plan.splits
    return dict(
        **(dict(optim_wrapper=dict(optimizer=dict(lr=options.lr)))
           if options.lr else {}),
        param_scheduler=dict(
            warmup=Source('0.1 * max_epochs'), end=Source('max_epochs')),
        train_cfg=dict(max_epochs=Source('max_epochs'),
                       val_interval=interval),
        default_hooks=dict(
            checkpoint=dict(
                type='SafeCheckpointHook', interval=interval, max_keep_ckpts=1,
                save_best=METRIC[kind] if has_val else None,
                rule='greater')),
        log_processor=dict(custom_cfg=[
            dict(data_src='loss', method_name='mean', window_size='epoch')]),
        randomness=dict(seed=options.seed))
