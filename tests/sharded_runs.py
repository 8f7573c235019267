# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Short trainings of tiny models by one process or several."""
import itertools
import multiprocessing
import os
import socket
from pathlib import Path

import torch
from mmaction.structures import ActionDataSample
from mmengine.evaluator import BaseMetric, Evaluator
from mmengine.registry import init_default_scope
from torch.utils.data import Dataset

from mmvidattn.apis import load_config
from mmvidattn.engine import SafeRunner

STEPS = 10
# Samples of a step of all processes together.
BATCH = 4
STREAM = dict(rgb=32, flow=16)
# One model of each family: config, changes of the backbone, and the type.
FAMILIES = dict(
    linear_ff=('linear_ff_tiny_motion', dict(num_layers=2)),
    causal_linear_ff=('linear_ff_causal_tiny_motion', dict(num_layers=2)),
    laps=('laps_tiny_motion', {}),
    vivit=('vivit_tiny_fact_encoder_motion', dict(num_layers=2)),
    xvit=('xvit_tiny_motion', dict(num_layers=2)),
    dualformer=('dualformer_tiny_motion', {}),
    testra=('testra_tiny_synthetic', dict(drop_rate=0.)),
    mat=('mat_tiny_synthetic', dict(drop_rate=0.)),
    miniroad=('miniroad_tiny_synthetic', dict(drop_rate=0.)),
    causal_transformer=('causal_transformer_tiny_synthetic',
                        dict(drop_rate=0.)))
# Depend on the batch of a process, with DDP as well: LAPS has BatchNorm, and
# MAT decides for an entire batch whether its memories are padded.
WITH_BATCH_EFFECTS = ('laps', 'mat')


class Samples(Dataset):
    """Random clips [1, 3, 8, 64, 64] or windows of streams."""

    def __init__(self, model, length):
        self.model, self.length = model, length

    def __len__(self):
        return self.length

    def __getitem__(self, index):
        generator = torch.Generator().manual_seed(index)
        if self.model.type.endswith('Recognizer3D'):
            inputs = torch.randint(256, (1, 3, 8, 64, 64), generator=generator,
                                   dtype=torch.uint8)
            sample = ActionDataSample().set_gt_label(index % 8)
            return dict(inputs=inputs, data_samples=sample)
        backbone = self.model.backbone
        memory = backbone.get('long_memory_length', 0)
        length = memory + backbone.work_memory_length
        inputs = {key: torch.randn(length, width, generator=generator)
                  for key, width in STREAM.items()}
        if memory:
            inputs['padding_mask'] = torch.arange(memory) < index % 9

        def targets(number):
            return torch.eye(10)[torch.randint(
                10, (number, ), generator=generator)]

        sample = ActionDataSample()
        sample.gt_action = targets(
            backbone.work_memory_length
            + backbone.get('num_anticipation_tokens', 0))
        if backbone.get('num_future_tokens'):
            sample.gt_future_action = targets(backbone.num_future_tokens)
        return dict(inputs=inputs, data_samples=sample)


class NormMetric(BaseMetric):
    """Sum of all scores, which validation averages."""
    default_prefix = 'norm'

    def process(self, data_batch, data_samples):
        self.results += [float(s['pred_score'].double().square().sum())
                         for s in data_samples]

    def compute_metrics(self, results):
        return dict(scores=sum(results))


def model_config(family, **changes):
    name, options = FAMILIES[family]
    init_default_scope('mmaction')
    model = load_config(name).model
    model.backbone.update(options)
    if 'dropout_ratio' in model.cls_head:
        model.cls_head.dropout_ratio = 0.
    model.update(changes)
    return model


NUMBERS = itertools.count()


def build_runner(work_dir, family='linear_ff', wrapper=None, steps=STEPS, *,
                 model=None, optim_wrapper=None, hooks=(), resume=False,
                 load_from=None, interval=1000, num_ranks=1, validate=False,
                 **options):
    """Build the runner of a process; there are ``num_ranks`` processes."""
    model = model or model_config(family)
    loader = dict(
        batch_size=BATCH // num_ranks, num_workers=0,
        dataset=Samples(model, 2 * BATCH),
        sampler=dict(type='DefaultSampler', shuffle=True),
        collate_fn=dict(type='pseudo_collate'))
    val = {}
    if validate:
        val = dict(val_dataloader=dict(loader, sampler=dict(
            type='DefaultSampler', shuffle=False)),
            val_cfg={}, val_evaluator=Evaluator([NormMetric()]))
    optim_wrapper = optim_wrapper or dict(
        type='OptimWrapper',
        optimizer=dict(type='SGD', lr=0.005, momentum=0.9, weight_decay=0.01))
    runner = SafeRunner(
        model=model, work_dir=str(work_dir), train_dataloader=loader,
        optim_wrapper=optim_wrapper,
        param_scheduler=dict(type='PolyLR', power=1., by_epoch=False,
                             begin=0, end=STEPS),
        train_cfg=dict(by_epoch=False, max_iters=steps,
                       val_interval=steps),
        default_hooks=dict(
            logger=dict(type='LoggerHook', interval=1),
            checkpoint=dict(type='SafeCheckpointHook', by_epoch=False,
                            interval=interval, save_last=True,
                            max_keep_ckpts=100),
            exact_resume=dict(type='ExactResumeHook'),
            preemption=dict(type='PreemptionHook'),
            nan_guard=dict(type='NanGuardHook')),
        custom_hooks=list(hooks), resume=resume, load_from=load_from,
        launcher='pytorch' if num_ranks > 1 else 'none',
        env_cfg=dict(mp_cfg=dict(mp_start_method='fork')),
        randomness=dict(seed=1), log_level='ERROR', default_scope='mmaction',
        visualizer=dict(type='Visualizer', vis_backends=[]),
        experiment_name=f'shards{os.getpid()}_{next(NUMBERS)}',
        cfg=dict(model_wrapper_cfg=wrapper, **options), **val)
    # Some buffers are float32 by definition.
    runner.model.to(torch.get_default_dtype())
    return runner


def train(work_dir, *args, **kwargs):
    """Train, and return the last checkpoint in the first process."""
    runner = build_runner(work_dir, *args, **kwargs)
    runner.train()
    if runner.rank == 0:
        return torch.load(
            Path(work_dir, f'iter_{runner.max_iters}.pth'), weights_only=True)
    return None


def launch(number, function, *args, **kwargs):
    """Run a function in forked processes that communicate by gloo.

    The function receives the number of processes as ``num_ranks``. If a
    process fails, all are killed.

    Returns:
        Exit codes of all processes.
    """
    with socket.socket() as free:
        free.bind(('127.0.0.1', 0))
        port = free.getsockname()[1]
    context = multiprocessing.get_context('fork')

    def start(rank):
        # Threads of OpenMP do not survive a fork.
        torch.set_num_threads(1)
        os.environ.update(
            RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE=str(number),
            MASTER_ADDR='127.0.0.1', MASTER_PORT=str(port))
        function(*args, num_ranks=number, **kwargs)
        torch.distributed.barrier()
        # Skip the regular shutdown, in which gloo may abort the process.
        os._exit(0)

    processes = [context.Process(target=start, args=(rank, ))
                 for rank in range(number)]
    for process in processes:
        process.start()
    while any(p.is_alive() for p in processes):
        for process in processes:
            process.join(0.05)
        if any(p.exitcode for p in processes):
            for process in processes:
                process.kill()
    return [p.exitcode for p in processes]


def launched(number, function, *args, **kwargs):
    """Run a function like :func:`launch`, which must succeed."""
    codes = launch(number, function, *args, **kwargs)
    assert codes == [0] * number, codes


def train_all_ways(folder, family, wrapper, num_ranks, **kwargs):
    """Train with DDP, then with a wrapper, in the same processes."""
    train(folder / 'ddp', family, num_ranks=num_ranks, **kwargs)
    train(folder / 'shared', family, wrapper, num_ranks=num_ranks, **kwargs)


def last_checkpoint(folder, steps=STEPS):
    return torch.load(folder / f'iter_{steps}.pth', weights_only=True)


def largest_difference(a, b):
    """Return the largest difference of tensors in nested dicts.

    It is relative to the largest value of a tensor, if that exceeds 1.
    """
    if torch.is_tensor(a):
        if a.shape != b.shape or a.dtype != b.dtype:
            return float('inf')
        if not a.numel():
            return 0.
        difference = (a.double() - b.double()).abs().max()
        return (difference / b.double().abs().max().clamp(min=1)).item()
    if isinstance(a, dict):
        if a.keys() != b.keys():
            return float('inf')
        return max((largest_difference(a[key], b[key]) for key in a),
                   default=0.)
    return 0. if a == b else float('inf')
