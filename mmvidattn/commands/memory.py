# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Compute the memory of training, and which GPUs have enough."""
import argparse
import copy
import json
import os
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch
from mmaction.models.data_preprocessors import data_preprocessor
from mmaction.registry import MODELS
from mmaction.structures import ActionDataSample
from mmengine.config import Config
from mmengine.logging import MMLogger
from mmengine.optim import build_optim_wrapper
from mmengine.registry import init_default_scope
from torch import Tensor, nn

from ..apis import load_config
from ..apis.memory import (
    StepMemory,
    Strategy,
    compute_step,
    has_average,
    largest_batch,
)
from ..apis.runner import one_line_errors
from ..engine.sharding import check_scaling
from ..utils.files import write_atomically
from ..utils.printable import echo
from .complexity import count_config, shape_of, view_of
from .train import use_amp

GB = 10**9
CAPACITIES = 24, 40, 80
# Batches from which larger ones follow. In a batch of one, some copies of
# tensors are omitted.
TRIALS = 2, 3
# Part of the machine's memory that a check may need.
MAX_SHARE = 0.7
NAMES = dict(single='one process', ddp='DDP', FullyShard='FullyShard')


class Training:
    """Training step of a config on random samples.

    Args:
        cfg: Config.
        shape: Shape (T, H, W) of a clip. Defaults to the shape from the
            training pipeline.
        checkpointing: Recompute blocks in the backward pass. Defaults to the
            config's setting.

    Raises:
        ValueError: If the backbone does not support checkpointing.
    """

    def __init__(self, cfg: Config, shape: Sequence[int] | None = None,
                 checkpointing: bool | None = None) -> None:
        init_default_scope('mmaction')
        self.cfg, self.checkpointing = cfg, checkpointing
        self.is_online = cfg.model.type == 'OnlineActionDetector'
        self.views = 1
        dataset = cfg.train_dataloader.dataset
        while 'dataset' in dataset:
            dataset = dataset.dataset
        if self.is_online:
            if shape:
                raise ValueError('--shape needs a model of clips')
            self.shape = shape_of(cfg)[0]
            if len(self.shape) == 3:
                self.shape = dataset.get('clip_frames', 64), *self.shape[1:]
        elif shape:
            self.shape = tuple(shape)
        else:
            self.shape, self.views = view_of(dataset.pipeline)
        with torch.device('meta'):
            parts = _recomputing(self.build())
        self.can_checkpoint = bool(parts)
        if checkpointing and not parts:
            raise ValueError(
                f'{cfg.model.backbone.type} does not support checkpointing')
        self.checkpointing = any(part.with_cp for part in parts)

    def build(self) -> nn.Module:
        """Build the model."""
        cfg = copy.deepcopy(self.cfg.model)
        if cfg.get('teacher_checkpoint'):
            cfg.teacher_checkpoint = None
        if cfg.get('label_store'):
            raise ValueError('memory does not support label_store of the '
                             'model; set model.label_store=None and '
                             'model.teacher')
        # Blending mixes clips before the forward pass, and is not counted.
        # Some kinds cannot be built without data.
        blending = (cfg.get('data_preprocessor') or {}).pop('blending', None)
        self.copies = 1 + bool(
            blending and blending['type'] == 'AppendReversedClips')
        model = MODELS.build(cfg)
        if self.checkpointing is not None:
            for part in _recomputing(model):
                part.with_cp = self.checkpointing
        return model

    def batch(self, model: nn.Module, size: int) -> dict[str, list]:
        """Return a batch of random samples, like a data loader."""
        samples = [self._sample(model) for _ in range(size * self.copies)]
        return {name: [x[name] for x in samples] for name in samples[0]}

    def _sample(self, model: nn.Module) -> dict[str, Any]:
        head, sample = model.cls_head, ActionDataSample()
        if not self.is_online:
            clips = torch.randint(
                256, (self.views, 3, *self.shape), dtype=torch.uint8)
            # A vector of all classes is a label of any head.
            sample.set_gt_label(_distribution(head.num_classes))
            return dict(inputs=clips, data_samples=sample)
        backbone = self.cfg.model.backbone
        if len(self.shape) == 3:
            steps = self.shape[0]
            inputs = dict(
                frames=torch.randint(256, (3, *self.shape),
                                     dtype=torch.uint8),
                elapsed=torch.ones(steps))
            sample.set_metainfo(dict(video_name='random',
                                     work_indices=range(steps)))
        else:
            steps = backbone.work_memory_length
            inputs = {name: torch.rand(*self.shape, width)
                      for name, width in model.backbone.in_channels.items()}
        for prefix, number in (
                ('gt', steps + backbone.get('num_anticipation_tokens', 0)),
                ('gt_future', backbone.get('num_future_tokens', 0))):
            for name in 'action', 'verb', 'noun':
                layer = 'fc_cls' if name == 'action' else f'fc_{name}'
                if number and hasattr(head, layer):
                    sample.set_data({f'{prefix}_{name}': _distribution(
                        number, getattr(head, layer).out_features)})
        return dict(inputs=inputs, data_samples=sample)

    def memory(self, batch_size: int, like_gpu: bool = True) -> StepMemory:
        """Compute the memory of a step; see :func:`compute_step`."""
        # mmengine's stack_batch looks at values of a tensor.
        original = data_preprocessor.stack_batch
        data_preprocessor.stack_batch = torch.stack
        try:
            return compute_step(
                self.build, self.batch, self.cfg, batch_size, like_gpu)
        finally:
            data_preprocessor.stack_batch = original

    def operations(self) -> int:
        """Return the floating-point operations of a sample in a step.

        The backward pass counts twice the forward pass, and checkpointing
        another forward pass.
        """
        shape, copies = self.shape, self.views
        if self.is_online:
            shape = shape_of(self.cfg)[0]
            copies = self.shape[0] if len(shape) == 3 else 1
        forward = count_config(self.cfg, shape)[0].flops
        return (4 if self.checkpointing else 3) * copies * forward

    def measure(self, batch_size: int) -> int:
        """Train two steps on the CPU, and return the allocator's peak."""

        def train() -> None:
            model = self.build().train()
            average = copy.deepcopy(model) if has_average(self.cfg) else None
            wrapper = build_optim_wrapper(model, self.cfg.optim_wrapper)
            batch = self.batch(model, batch_size)
            for _ in range(2):
                model.train_step(copy.copy(batch), wrapper)
            del average

        return allocated_peak(train)


def _recomputing(model: nn.Module) -> list[nn.Module]:
    """Return the modules that can recompute blocks in the backward pass."""
    return [x for x in model.modules() if hasattr(x, 'with_cp')]


def _distribution(*shape: int) -> Tensor:
    """Return a vector of equal probabilities, or several."""
    return torch.full(shape, 1 / shape[-1])


def allocated_peak(function: Callable[[], Any]) -> int:
    """Return the bytes that a function allocates on the CPU, at most.

    The figures are from the records of torch's allocator.
    """
    activities = [torch.profiler.ProfilerActivity.CPU]
    with torch.profiler.profile(
            activities=activities, profile_memory=True) as profiler:
        function()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, 'trace.json')
        profiler.export_chrome_trace(str(path))
        events = json.loads(path.read_text('utf-8'))['traceEvents']
    records = [x['args'] for x in sorted(
        (x for x in events if x.get('name') == '[memory]'),
        key=lambda x: x['ts'])]
    first = records[0]
    return max(x['Total Allocated'] for x in records) - (
        first['Total Allocated'] - first['Bytes'])


def strategy_of(cfg: Config, chosen: str | None, gpus: int) -> Strategy:
    """Return how processes share the model.

    Raises:
        ValueError: If the config has options that are not supported.
    """
    check_scaling(cfg)
    wrapper = cfg.get('model_wrapper_cfg') or {}
    for name in 'mixed_precision', 'cpu_offload':
        if wrapper.get(name):
            raise ValueError(f'memory does not support {name} of '
                             'model_wrapper_cfg; set it to its default')
    if chosen is None:
        chosen = 'FullyShard' if wrapper.get('type') == 'FullyShard' else 'ddp'
    return 'single' if gpus == 1 else chosen


def rows_of(cfg: Config, shape: Sequence[int] | None,
            gpus: int) -> list[dict[str, Any]]:
    """Return the largest batch for each strategy and GPU memory."""
    rows = []
    can = Training(cfg, shape).can_checkpoint
    for checkpointing in (False, True) if can else (False, ):
        training = Training(cfg, shape, checkpointing)
        small, large = map(training.memory, TRIALS)
        for strategy in ('single', ) if gpus == 1 else ('ddp', 'FullyShard'):
            rows.append(dict(
                strategy=strategy, checkpointing=checkpointing,
                batch_sizes={
                    str(size): largest_batch(
                        small, large, size * GB, strategy, gpus)
                    for size in CAPACITIES}))
    return rows


def run(args: argparse.Namespace) -> None:
    with one_line_errors():
        _run(args)


def _run(args: argparse.Namespace) -> None:
    # mmengine logs the options of each parameter.
    MMLogger.get_current_instance().setLevel('WARNING')
    cfg = load_config(args.config, args.cfg_options)
    if args.amp:
        use_amp(cfg)
    strategy = strategy_of(cfg, args.strategy, args.gpus)
    wrapper = cfg.get('model_wrapper_cfg') or {}
    training = Training(
        cfg, args.shape,
        args.checkpointing or wrapper.get('activation_checkpointing') or None)
    size = args.batch_size or cfg.train_dataloader.batch_size
    if args.check:
        check(training, size)
        return
    memory = training.memory(size)
    parts, peak = memory.parts(strategy, args.gpus), memory.peak(
        strategy, args.gpus)
    shape = 'x'.join(map(str, training.shape))
    echo(f'{args.config}: {size} samples of {shape} in each of {args.gpus} '
         f'processes, {NAMES[strategy]}'
         + ', checkpointing' * training.checkpointing)
    for name, number in parts.items():
        echo(f'{name:24}{number / GB:9.3f} GB')
    echo(f'{"peak":24}{peak / GB:9.3f} GB')
    operations = training.operations() * size
    echo(f'{operations / 1e12:.3f} TFLOP per step and process')
    seconds = None
    if args.flops:
        seconds = operations / args.flops
        echo(f'{seconds:.3f} s per step, '
             f'{size * args.gpus / seconds:.1f} samples/s')
    rows = rows_of(cfg, args.shape, args.gpus)
    echo('\nLargest batch of a process, by memory of the GPU:')
    echo(f'{"":28}' + ''.join(f'{f"{x} GB":>8}' for x in CAPACITIES))
    for row in rows:
        name = NAMES[row['strategy']] + ', checkpointing' * row[
            'checkpointing']
        echo(f'{name:28}' + ''.join(
            f'{number or "-":>8}' for number in row['batch_sizes'].values()))
    if args.json:
        write_atomically(args.json, json.dumps(dict(
            config=args.config, batch_size=size, shape=training.shape,
            gpus=args.gpus, strategy=strategy,
            checkpointing=training.checkpointing, bytes=parts, peak=peak,
            operations=operations, seconds=seconds, largest=rows), indent=2))


def check(training: Training, batch_size: int) -> None:
    """Compare the computed peak of a process with the measured one.

    Raises:
        ValueError: If the machine lacks the memory.
    """
    computed = training.memory(batch_size, like_gpu=False).peak('single', 1)
    total = os.sysconf('SC_PHYS_PAGES') * os.sysconf('SC_PAGE_SIZE')
    if computed > MAX_SHARE * total:
        raise ValueError(
            f'--check needs {computed / GB:.1f} GB, and this machine has '
            f'{total / GB:.1f} GB; use a smaller --batch-size')
    measured = training.measure(batch_size)
    echo(f'computed {computed / GB:.4f} GB, measured {measured / GB:.4f} GB: '
         f'{100 * (computed / measured - 1):+.1f} %')
