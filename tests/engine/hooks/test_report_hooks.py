# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import json
import shutil
from types import SimpleNamespace

import pytest
import torch
from mmaction.structures import ActionDataSample
from mmengine.hooks import Hook
from mmengine.model import BaseModel
from mmengine.registry import DefaultScope
from toy_runs import build, log_of

from mmvidattn.engine import (
    SkippedVideosHook,
    TolerantLoggerHook,
    VideoRunner,
)
from mmvidattn.engine.hooks import report_hooks


class StateDecodingHook(Hook):
    """Give one sample of a batch a decoding time."""
    priority = 'HIGHEST'

    def after_train_iter(self, runner, batch_idx, data_batch, outputs):
        data_batch['data_samples'][0].set_metainfo(dict(decode_seconds=2 + (
            runner.iter % 2)))


def test_logs_share_of_waiting_and_decode_time(tmp_path):
    runner = build(tmp_path, hooks=[StateDecodingHook()],
                   data_time=dict(type='DataTimeHook'), checkpoint=dict(
                       interval=9, save_best=None))
    runner.train()
    lines = [line for line in log_of(tmp_path).splitlines()
             if 'waited for data' in line]
    waited, total = (
        runner.message_hub.get_scalar(f'train/{name}').data[0].reshape(4, 4)
        .sum(1) for name in ('data_time', 'time'))
    assert len(lines) == 4
    for line, share in zip(lines, waited / total):
        assert f' in {share:.0%} of its time' in line
        assert line.endswith('decoded a clip in 2500.0 ms')


class Tiny(BaseModel):

    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(()))
        self.seen = 0

    def forward(self, inputs, data_samples=None, mode='tensor'):
        self.seen += len(inputs)
        level = torch.stack([x.float().mean() for x in inputs])
        return dict(loss=(self.weight * level).mean())


@pytest.fixture
def folder(motion_dir, tmp_path):
    """Copies of eight videos, for the test to damage."""
    folder = tmp_path / 'set'
    (folder / 'train').mkdir(parents=True)
    lines = (motion_dir / 'train.txt').read_text().splitlines()[:8]
    for line in lines:
        shutil.copy(motion_dir / line.split()[0], folder / 'train')
    (folder / 'train.txt').write_text('\n'.join(lines) + '\n')
    return folder


def train(folder, work_dir, kind):
    pipeline = [
        dict(type='DecordInit'),
        dict(type='UniformSample', clip_len=2),
        dict(type='DecordDecode'),
        dict(type='Resize', scale=(32, 32), keep_ratio=False),
        dict(type='FormatShape', input_format='NCTHW'),
        dict(type='PackActionInputs')
    ]
    loader = dict(
        batch_size=4, num_workers=2, persistent_workers=True,
        sampler=dict(type='DefaultSampler', shuffle=True),
        dataset=dict(
            type=kind, data_root=str(folder), data_prefix=dict(video=''),
            ann_file='train.txt', num_classes=8, pipeline=pipeline))
    if kind == 'VideoDataset':
        loader['dataset'] = dict(
            type='SkipUnreadable', dataset=loader['dataset'])
    with DefaultScope.overwrite_default_scope('mmaction'):
        runner = VideoRunner(
            Tiny(), str(work_dir), loader,
            train_cfg=dict(by_epoch=True, max_epochs=2),
            optim_wrapper=dict(optimizer=dict(type='SGD', lr=0.)),
            default_hooks=dict(
                skipped_videos=dict(type='SkippedVideosHook')),
            randomness=dict(seed=0), default_scope='mmaction',
            experiment_name='_'.join(work_dir.parts[-2:]))
        model = runner.train()
    log, = work_dir.rglob('*.log')
    return model, log.read_text()


@pytest.mark.parametrize('kind', ['CheckedVideoDataset', 'VideoDataset'])
def test_run_continues_and_reports_skipped_videos(folder, tmp_path, kind):
    (folder / 'train/000003.mp4').unlink()
    broken = folder / 'train/000006.mp4'
    broken.write_bytes(broken.read_bytes()[:1000])
    model, log = train(folder, tmp_path / 'run', kind)
    assert model.seen == 16
    message, = [line for line in log.splitlines() if 'were skipped' in line]
    assert ' - WARNING - 2 unreadable videos were skipped, ' in message
    counts = {}
    for name in ('000003.mp4', '000006.mp4'):
        counts[name] = int(message.split(f'{name} (')[1].split(')')[0])
        # Each video is skipped once per epoch, and again whenever it is drawn
        # as the replacement of the other one.
        assert counts[name] >= 2
    assert f'{sum(counts.values())} times in all' in message
    rows = [line.split('\t') for line in (
        tmp_path / 'run/skipped_videos.txt').read_text().splitlines()]
    assert {name.rsplit('/', 1)[1]: int(count)
            for count, name, _ in rows} == counts
    assert all('Error' in reason for _, _, reason in rows)


def test_sums_counts_of_all_ranks(monkeypatch):
    other_ranks = [(dict(a=2), dict(a='why')), ({}, {}), (dict(b=1), {})]
    monkeypatch.setattr(report_hooks, 'all_gather_object',
                        lambda mine: [mine, *other_ranks])
    lines, hook = [], SkippedVideosHook()
    runner = SimpleNamespace(logger=SimpleNamespace(warning=lines.append))
    sample = ActionDataSample(metainfo=dict(skipped_videos=['b', 'a', 'a']))
    hook.before_train(runner)
    hook.after_train_iter(
        runner, 0, dict(data_samples=[sample, ActionDataSample()]))
    hook.after_train(runner)
    assert lines == [
        '2 unreadable videos were skipped, 6 times in all: a (4), b (2)']


@pytest.mark.parametrize('is_main', [True, False])
def test_only_main_process_writes_test_metrics(tmp_path, monkeypatch,
                                               is_main):
    monkeypatch.setattr(
        report_hooks, 'is_main_process', lambda: is_main)
    hook = TolerantLoggerHook()
    hook.json_log_path = 'metrics.json'
    runner = SimpleNamespace(
        log_dir=str(tmp_path), test_dataloader=[0],
        logger=SimpleNamespace(info=lambda line: None),
        log_processor=SimpleNamespace(
            get_log_after_epoch=lambda *args, **kwargs: (dict(acc=.5), '')))
    hook.after_test_epoch(runner)
    path = tmp_path / 'metrics.json'
    assert path.exists() == is_main
    if is_main:
        assert json.loads(path.read_text()) == dict(acc=.5)


def test_training_continues_if_logs_cannot_be_written(tmp_path):
    runner = build(
        tmp_path, logger=dict(type='TolerantLoggerHook', interval=1))
    # Put a folder in place of each log file.
    runner.visualizer.get_backend('LocalVisBackend').experiment
    for name in 'scalars.json', f'{runner.timestamp}.json':
        path = tmp_path / runner.timestamp / 'vis_data' / name
        path.unlink(missing_ok=True)
        path.mkdir(parents=True)
    runner.train()
    assert (tmp_path / 'epoch_4.pth').exists()
    error, = [line for line in log_of(tmp_path).splitlines()
              if 'cannot write the logs' in line]
    assert 'Is a directory' in error


def test_other_errors_are_raised(tmp_path, monkeypatch):
    runner = build(
        tmp_path, logger=dict(type='TolerantLoggerHook', interval=1))
    monkeypatch.setattr(runner.visualizer, 'add_scalars', lambda: None)
    with pytest.raises(TypeError):
        runner.train()
