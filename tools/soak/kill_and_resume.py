# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Kill a short training at random moments, resume it, and compare results.

    python tools/soak/kill_and_resume.py --trials 50
    python tools/soak/kill_and_resume.py --trials 10 --processes 2
    python tools/soak/kill_and_resume.py --trials 10 --config tsn

An uninterrupted training is the reference. Each trial kills the same training
and its workers, by default with SIGKILL, at a random moment of one of four
stages in turn (forward, backward, save, validation), and runs it again with
``--resume``. The last and the best checkpoint must equal the reference's bit
for bit, except for times and paths: weights, averaged weights, optimizer,
schedulers, random generators, and history of the logs. The soak exits with 1
if any checkpoint differs.
"""
import argparse
import multiprocessing as mp
import os
import random
import shutil
import signal
import socket
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

# First, because it applies the workarounds to the packages below.
import mmvidattn  # noqa: F401, I001  isort: skip

import torch
from mmaction.models.recognizers.base import BaseRecognizer
from mmengine.optim import OptimWrapper
from mmengine.runner import ValLoop

from mmvidattn.cli.train import main as train
from mmvidattn.engine import SafeCheckpointHook

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from tools.harness import (
    ROOT,
    add_outputs,
    append_json,
    count,
    parser_of,
    run_program,
)

STAGES = 'forward', 'backward', 'save', 'validation'
# Four batches per epoch and a checkpoint after every third batch, so that runs
# resume both within an epoch and between two epochs.
COMMON = '''
data = dict(data_root={data!r})
here = dict(num_workers={workers}, persistent_workers={workers} > 0,
            batch_size=4 // {processes})
train_dataloader = dict(dataset=data, **here)
val_dataloader = dict(dataset=data, **here)
test_dataloader = val_dataloader
default_hooks = dict(
    checkpoint=dict(by_epoch=False, interval=3, max_keep_ckpts=2),
    logger=dict(interval=1))
custom_hooks = [dict(type='EMAHook', momentum=0.1)]
randomness = dict(seed=3)
'''
# Each config has dropout, and augmentations that draw from numpy and Python.
CONFIGS = dict(
    linear='''
_base_ = '{root}/configs/linear_ff_tiny_motion.py'
model = dict(
    backbone=dict(embed_dims=24, num_layers=1, num_heads=2),
    cls_head=dict(in_channels=24, hidden_dims=24, dropout_ratio=0.5))
pipeline = [
    dict(type='DecordInit'),
    dict(type='UniformSample', clip_len=8),
    dict(type='DecordDecode'),
    dict(type='RandomResizedCrop', area_range=(0.3, 1.0)),
    dict(type='Resize', scale=(64, 64), keep_ratio=False),
    dict(type='Flip', flip_ratio=0.5),
    dict(type='FormatShape', input_format='NCTHW'),
    dict(type='PackActionInputs')
]
train_cfg = dict(max_epochs=3, val_interval=1)
''' + COMMON + '''
metainfo = dict(classes='{data}/label_map.txt')
train_dataloader['dataset'] = dict(
    pipeline=pipeline, metainfo=metainfo, **data)
val_dataloader['dataset'] = dict(metainfo=metainfo, **data)
test_dataloader = val_dataloader
''',
    # mmaction2's config with a smaller model and our data.
    tsn='''
_base_ = 'mmaction::recognition/tsn/' \\
    'tsn_imagenet-pretrained-r50_8xb32-1x1x3-100e_kinetics400-rgb.py'
model = dict(
    backbone=dict(
        depth=18, pretrained=None, num_stages=1, strides=(1, ),
        dilations=(1, ), out_indices=(0, )),
    cls_head=dict(in_channels=64, num_classes=8))
train_cfg = dict(max_epochs=3, val_interval=1)
''' + COMMON + '''
pipeline = [
    dict(type='DecordInit'),
    dict(type='SampleFrames', clip_len=1, frame_interval=1, num_clips=3),
    dict(type='DecordDecode'),
    dict(type='MultiScaleCrop', input_size=32, scales=(1, 0.875, 0.75),
         random_crop=True),
    dict(type='Resize', scale=(32, 32), keep_ratio=False),
    dict(type='Flip', flip_ratio=0.5),
    dict(type='FormatShape', input_format='NCHW'),
    dict(type='PackActionInputs')
]
train_dataloader['dataset'] = dict(
    pipeline=pipeline, ann_file='train.txt', data_prefix=dict(video=''),
    **data)
# The validation pipeline has no random steps.
val_pipeline = [
    pipeline[0], dict(pipeline[1], test_mode=True), pipeline[2], pipeline[4],
    *pipeline[6:]
]
val_dataloader['dataset'] = dict(
    pipeline=val_pipeline, ann_file='val.txt', data_prefix=dict(video=''),
    **data)
test_dataloader = val_dataloader
''')


def parse_args() -> argparse.Namespace:
    parser = parser_of(__doc__)
    parser.add_argument('--trials', type=count, default=50)
    parser.add_argument(
        '--processes', type=int, choices=[1, 2, 4], default=1,
        help='processes of a training, connected by gloo')
    parser.add_argument(
        '--workers', type=int, default=1,
        help='data-loading workers per process')
    parser.add_argument('--config', choices=CONFIGS, default='linear')
    parser.add_argument(
        '--signal', choices=['KILL', 'TERM'], default='KILL',
        help='signal to send; clusters preempt a job with TERM')
    parser.add_argument('--seed', type=int, default=0)
    add_outputs(parser)
    return parser.parse_args()


class Training:
    """Training in separate processes, which report their stage.

    The processes are forked, because importing everything takes seconds.

    Args:
        config: Config file.
        work_dir: Folder of the checkpoints.
        log: File for the output.
        processes: Number of processes. Defaults to 1.
        resume: Resume from the last checkpoint. Defaults to False.
    """

    def __init__(self, config: Path, work_dir: Path, log: Path,
                 processes: int = 1, resume: bool = False) -> None:
        # Stage of the first process, how often each stage began, and its
        # total seconds.
        self.stage = mp.RawValue('i', -1)
        self.entries = mp.RawArray('i', len(STAGES))
        self.seconds = mp.RawArray('d', len(STAGES))
        with socket.create_server(('127.0.0.1', 0)) as server:
            port = server.getsockname()[1]
        argv = ['train.py', str(config), '--work-dir', str(work_dir),
                '--default-runtime']
        argv += ['--resume'] * resume
        argv += ['--launcher', 'pytorch'] * (processes > 1)
        self.pids = []
        for rank in range(processes):
            pid = os.fork()
            if pid == 0:
                env = dict(RANK=rank, LOCAL_RANK=rank, WORLD_SIZE=processes,
                           MASTER_ADDR='127.0.0.1', MASTER_PORT=port)
                os.environ.update({k: str(v) for k, v in env.items()})
                self._train(argv, log, rank)
            self.pids.append(pid)

    def _train(self, argv: list[str], log: Path, rank: int) -> None:
        code = 1
        try:
            os.setsid()
            out = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
            os.dup2(out, 1)
            os.dup2(out, 2)
            if rank == 0:
                self._mark_stages()
            sys.argv = argv
            train()
            code = 0
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else 1
            if not isinstance(end.code, (int, type(None))):
                print(end.code, file=sys.stderr, flush=True)
        except BaseException:
            sys.excepthook(*sys.exc_info())
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code or 0)

    def _mark_stages(self) -> None:
        for stage, (owner, name) in enumerate(
            ((BaseRecognizer, 'loss'), (OptimWrapper, 'backward'),
             (SafeCheckpointHook, '_write'), (ValLoop, 'run'))):
            setattr(owner, name, self._marked(stage, getattr(owner, name)))

    def _marked(self, stage: int, function: Callable) -> Callable:

        def marked(*args: Any, **kwargs: Any) -> Any:
            before, began = self.stage.value, time.monotonic()
            self.entries[stage] += 1
            self.stage.value = stage
            try:
                return function(*args, **kwargs)
            finally:
                self.stage.value = before
                self.seconds[stage] += time.monotonic() - began

        return marked

    def wait_for(self, stage: int, count: int) -> bool:
        """Wait until a stage begins the count-th time.

        Returns:
            False if the training ends before.
        """
        while self.entries[stage] < count:
            if os.waitpid(self.pids[0], os.WNOHANG)[0]:
                self.pids = self.pids[1:]
                return False
            time.sleep(2e-4)
        return True

    def kill(self, number: int) -> None:
        for pid in self.pids:
            try:
                # The workers are in the same process group.
                os.killpg(pid, number)
            except ProcessLookupError:
                pass

    def wait(self, timeout: float = 300) -> list[int]:
        """Return the exit codes; a negative code is the number of a signal."""
        codes, end = [], time.monotonic() + timeout
        for pid in self.pids:
            while True:
                ended, status = os.waitpid(pid, os.WNOHANG)
                if ended:
                    break
                if time.monotonic() > end:
                    self.kill(signal.SIGKILL)
                time.sleep(5e-3)
            codes.append(os.waitstatus_to_exitcode(status))
        return codes


def differences(one: Any, two: Any, name: str = '') -> Iterator[str]:
    """List where two checkpoints differ, except in times and paths."""
    if any(word in name for word in ('time', 'ckpt', 'memory', "['cfg']",
                                     'experiment_name')):
        return
    if isinstance(one, dict) and isinstance(two, dict):
        for key in [*one, *(key for key in two if key not in one)]:
            if key in one and key in two:
                yield from differences(one[key], two[key], f'{name}[{key!r}]')
            else:
                yield f'{name}[{key!r}] is missing in one checkpoint'
    elif isinstance(one, (list, tuple)) and type(one) is type(two):
        if len(one) != len(two):
            yield f'{name}: {len(one)} and {len(two)} items'
        for i, (a, b) in enumerate(zip(one, two)):
            yield from differences(a, b, f'{name}[{i}]')
    elif torch.is_tensor(one) and torch.is_tensor(two):
        # Compare bits: -0 differs from 0, and a NaN equals itself.
        if one.dtype != two.dtype or one.shape != two.shape or (
                one.numpy().tobytes() != two.numpy().tobytes()):
            yield name
    elif type(one) is not type(two) or one != two:
        yield f'{name}: {one!r} and {two!r}'


def compare(work_dir: Path, reference: Path) -> list[str]:
    """List how the files of two finished runs differ."""
    names = [sorted(path.name for path in folder.glob('*.pth'))
             for folder in (work_dir, reference)]
    if names[0] != names[1]:
        return [f'files {names[0]}, expected {names[1]}']
    faults = []
    for name in names[0]:
        one, two = (torch.load(folder / name, weights_only=True)
                    for folder in (work_dir, reference))
        faults += [f'{name}: {line}' for line in differences(one, two)]
    return faults


def write_config(folder: Path, kind: str, processes: int,
                 workers: int) -> Path:
    """Write the data and the config of a training that takes seconds."""
    data = folder / 'motion'
    if not data.is_dir():
        run_program('data/motion/make_motion.py', data, '--train', 16,
                    '--val', 8, '--seed', 0)
    config = folder / f'{kind}.py'
    config.write_text(CONFIGS[kind].format(
        root=ROOT, data=str(data), processes=processes, workers=workers))
    return config


def run_trials(folder: Path, trials: int, kind: str = 'linear',
               processes: int = 1, workers: int = 1,
               number: int = signal.SIGKILL, seed: int = 0
               ) -> Iterator[dict[str, Any]]:
    """Kill a training at a random moment and resume it, again and again.

    Yields:
        For each trial, a dictionary with the intended stage and its count,
        the stage in which the run was killed, the exit codes of the killed
        and of the resumed run, and the differences from the reference.
    """
    config = write_config(folder, kind, processes, workers)
    reference = folder / 'reference'
    shutil.rmtree(reference, ignore_errors=True)
    log = folder / 'reference.log'
    training = Training(config, reference, log, processes)
    codes = training.wait()
    if any(codes):
        raise RuntimeError(f'the reference failed: {log.read_text()[-3000:]}')
    counts = list(training.entries)
    mean = [s / max(n, 1) for s, n in zip(training.seconds, counts)]
    rng = random.Random(seed)
    for trial in range(trials):
        stage = trial % len(STAGES)
        count = rng.randint(1, counts[stage])
        delay = rng.uniform(0, mean[stage])
        work_dir, log = folder / 'run', folder / f'trial_{trial}.log'
        shutil.rmtree(work_dir, ignore_errors=True)
        began = time.monotonic()
        training = Training(config, work_dir, log, processes)
        there = training.wait_for(stage, count)
        time.sleep(delay)
        where = training.stage.value
        training.kill(number)
        killed = training.wait()
        resumed = Training(config, work_dir, log, processes, True).wait()
        differences = (compare(work_dir, reference) if not any(resumed) else
                       [f'the resumed run failed, see {log}'])
        if not there:
            differences.append('the run ended before the stage began')
        if not differences:
            log.unlink()
        yield dict(
            trial=trial, aimed_at=STAGES[stage], count=count,
            hit=STAGES[where] if where >= 0 else 'other', killed=killed,
            resumed=resumed, seconds=round(time.monotonic() - began, 1),
            differences=differences[:5])


def main() -> None:
    args = parse_args()
    folder = args.folder or Path(tempfile.mkdtemp(prefix='soak_'))
    folder.mkdir(parents=True, exist_ok=True)
    number = signal.Signals[f'SIG{args.signal}']
    results = []
    for result in run_trials(
            folder, args.trials, args.config, args.processes, args.workers,
            number, args.seed):
        results.append(result)
        print(f'{result["trial"] + 1:3d} of {args.trials}: killed in '
              f'{result["hit"]} (aimed at {result["aimed_at"]} number '
              f'{result["count"]}), {result["seconds"]} s: '
              + ('; '.join(result['differences']) or 'bit-equal'), flush=True)
        append_json(args.out, result)
    equal = [r for r in results if not r['differences']]
    hits = Counter(r['hit'] for r in results)
    print(f'{len(equal)} of {len(results)} runs ended bit-equal; killed in '
          + ', '.join(f'{name} {count}' for name, count in hits.items()))
    if args.folder is None and len(equal) == len(results):
        shutil.rmtree(folder)
    raise SystemExit(len(equal) != len(results))


if __name__ == '__main__':
    main()
