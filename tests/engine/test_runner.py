# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import multiprocessing

import pytest
import torch
from mmaction.registry import DATASETS, LOOPS
from mmengine.logging import print_log
from mmengine.optim import AmpOptimWrapper, OptimWrapper
from mmengine.registry import DefaultScope
from mmengine.runner import EpochBasedTrainLoop, Runner, ValLoop
from torch.utils.data import DataLoader
from toy_runs import Data, build, log_of

from mmvidattn.datasets import SkipUnreadable
from mmvidattn.engine import (
    SafeEpochBasedTrainLoop,
    SafeIterBasedTrainLoop,
    SafeRunner,
)
from mmvidattn.engine.hooks.nan_guard_hook import NanGuard
from mmvidattn.engine.seeded_samples import SeededBatches

GUARDS = dict(skipped_videos=dict(
    type='SkippedVideosHook', max_failures=3))


def test_replaces_loops_of_mmengine(tmp_path):
    runner = build(tmp_path)
    for loop, kind in (
            (dict(type='EpochBasedTrainLoop', max_epochs=1),
             SafeEpochBasedTrainLoop),
            (dict(by_epoch=True, max_epochs=1), SafeEpochBasedTrainLoop),
            (dict(type='mmengine.IterBasedTrainLoop', max_iters=1),
             SafeIterBasedTrainLoop),
            (dict(type='SafeIterBasedTrainLoop', max_iters=1),
             SafeIterBasedTrainLoop),
            (dict(by_epoch=False, max_iters=1), SafeIterBasedTrainLoop)):
        assert type(runner.build_train_loop(loop)) is kind, loop
    # Configs of earlier versions name this loop.
    assert type(runner.build_val_loop(dict(type='SafeValLoop'))) is ValLoop


def test_keeps_loops_of_other_types(tmp_path):

    @LOOPS.register_module()
    class OtherTrainLoop(EpochBasedTrainLoop):

        def run_epoch(self):
            super().run_epoch()

    try:
        runner = build(tmp_path)
        loop = runner.build_train_loop(
            dict(type='OtherTrainLoop', max_epochs=1))
        assert type(loop) is OtherTrainLoop
        assert runner.build_train_loop(loop) is loop
    finally:
        LOOPS.module_dict.pop('OtherTrainLoop')


def test_other_loop_resumes_between_epochs_with_warning(tmp_path):

    class OtherTrainLoop(EpochBasedTrainLoop):
        """Loop of a type that mmengine does not know."""

    runner = build(tmp_path, preemption=dict(type='PreemptionHook'))
    loop = OtherTrainLoop(runner, DataLoader(
        Data(), batch_size=3, collate_fn=lambda items: {
            key: [item[key] for item in items] for key in items[0]}), 2)
    runner._train_loop = loop
    runner.train()
    for message in ('cannot resume within an epoch with OtherTrainLoop',
                    'cannot stop OtherTrainLoop; it is off'):
        assert message in log_of(tmp_path)
    saved = torch.load(tmp_path / 'epoch_2.pth', weights_only=True)
    assert saved['exact_resume']['batch'] == 0


@pytest.mark.parametrize('by_epoch', [False, True])
def test_resumed_run_past_its_end_does_not_train(tmp_path, by_epoch):
    done = build(tmp_path, by_epoch=by_epoch)
    done.train()
    runner = build(tmp_path, by_epoch=by_epoch, resume=True)
    runner._train_loop = (dict(by_epoch=True, max_epochs=2) if by_epoch
                          else dict(by_epoch=False, max_iters=7))
    model = runner.train()
    assert runner.iter == 16
    for name, weight in done.model.state_dict().items():
        assert torch.equal(model.state_dict()[name], weight), name


def loaders(motion_dir, split):
    return dict(
        batch_size=2, num_workers=0,
        sampler=dict(type='DefaultSampler', shuffle=False),
        dataset=dict(
            type='VideoDataset', ann_file=f'{split}.txt', pipeline=[],
            data_root=str(motion_dir), data_prefix=dict(video=''),
            test_mode=split != 'train'))


@pytest.mark.parametrize('built', [False, True])
def test_guard_of_each_loop_has_its_options(tmp_path, motion_dir, built):
    splits = {name: loaders(motion_dir, 'val' if name == 'test' else name)
              for name in ('train', 'val', 'test')}
    if built:
        with DefaultScope.overwrite_default_scope('mmaction'):
            splits = {name: DataLoader(
                DATASETS.build(loader['dataset']), batch_size=2)
                for name, loader in splits.items()}
    runner = SafeRunner(
        torch.nn.Linear(1, 1), str(tmp_path), splits['train'], splits['val'],
        splits['test'],
        train_cfg=dict(by_epoch=True, max_epochs=1), val_cfg={}, test_cfg={},
        val_evaluator=dict(type='AccMetric'),
        test_evaluator=dict(type='AccMetric'),
        optim_wrapper=dict(optimizer=dict(type='SGD', lr=1.)),
        default_hooks=GUARDS, default_scope='mmaction',
        experiment_name=f'{tmp_path.name}_{built}')
    for split in 'train', 'val', 'test':
        loader = getattr(runner, f'{split}_dataloader')
        dataset = loader.dataset
        assert isinstance(dataset, SkipUnreadable)
        assert dataset.loader.on_error == (
            'skip' if split == 'train' else 'raise')
        assert dataset.loader.max_failures == 3
        # A built loop is returned unchanged.
        assert runner.build_train_loop(runner.train_loop) is runner.train_loop
        assert [len(batch) for batch in loader.batch_sampler] == [2] * (
            8 if split == 'train' else 4)


def test_no_guard_without_hook(tmp_path):
    runner = build(tmp_path, exact_resume=None)
    assert type(runner.train_dataloader.dataset) is Data
    assert not isinstance(
        runner.train_dataloader.batch_sampler, SeededBatches)
    wrapper = runner.build_optim_wrapper(runner.optim_wrapper)
    assert type(wrapper) is OptimWrapper


@pytest.mark.parametrize('kind', [None, 'OptimWrapper', 'AmpOptimWrapper'])
def test_optimizer_wrapper_gets_guard(tmp_path, kind):
    runner = build(tmp_path, nan_guard=dict(type='NanGuardHook'),
                   wrapper=dict(type=kind) if kind else {})
    wrapper = runner.build_optim_wrapper(runner.optim_wrapper)
    assert isinstance(wrapper, NanGuard)
    assert isinstance(wrapper, AmpOptimWrapper) == (kind == 'AmpOptimWrapper')


@pytest.mark.parametrize('name', [
    'SkippedVideosHook', 'ExactResumeHook', 'PreemptionHook', 'NanGuardHook'])
def test_hook_requires_this_runner(tmp_path, name):
    runner = Runner(
        torch.nn.Linear(1, 1), str(tmp_path), default_scope='mmaction',
        default_hooks=dict(mine=dict(type=name)),
        experiment_name=f'{tmp_path.name}_{name}')
    with pytest.raises(RuntimeError, match=(
            f"{name} has no effect without .*runner_type = 'SafeRunner'")):
        runner.call_hook('before_run')


def test_log_escapes_control_sequences(tmp_path, capsys):
    runner = build(tmp_path)
    runner.logger.warning('skipped %s\nand more', 'a\x1b[2J\x9b.mp4')
    print_log('no\x1b]0;x\x07.mp4', logger='current')
    for text in log_of(tmp_path), *capsys.readouterr():
        # Levels have colors in a terminal.
        assert '\x1b[2J' not in text and '\x1b]' not in text
        assert not {'\x07', '\x9b'} & set(text)
    assert 'skipped a\\x1b[2J\\x9b.mp4\nand more' in log_of(tmp_path)
    assert 'no\\x1b]0;x\\x07.mp4' in log_of(tmp_path)


@pytest.mark.parametrize('by_epoch', [True, False])
def test_training_ends_its_workers(tmp_path, by_epoch):
    """Workers end while the runner exists, because it is part of a cycle."""
    runner = build(tmp_path, workers=2, by_epoch=by_epoch)
    runner.train()
    assert runner.train_dataloader.persistent_workers
    assert not multiprocessing.active_children()


def test_runs_of_one_second_have_their_own_logs(tmp_path, monkeypatch):
    """Also if they are in one process, with configs of one name."""
    monkeypatch.setattr('time.strftime', lambda *args: '20260102_030405')
    runners = []
    for folder in 'a', 'a', 'b':
        runner = SafeRunner(torch.nn.Linear(1, 1), str(tmp_path / folder),
                            experiment_name='same')
        runner.logger.info(f'run {len(runners)}')
        runners.append(runner)
    # A run of another process.
    (tmp_path / 'b/20260102_030405_4').mkdir()
    runners.append(SafeRunner(torch.nn.Linear(1, 1), str(tmp_path / 'b'),
                              experiment_name='same'))
    assert [runner.timestamp.partition('20260102_030405')[2]
            for runner in runners] == ['', '_2', '_3', '_5']
    for number, runner in enumerate(runners[:3]):
        path, = (tmp_path / 'aab'[number]).glob(
            f'{runner.timestamp}/{runner.timestamp}.log')
        assert f'run {number}' in path.read_text()
