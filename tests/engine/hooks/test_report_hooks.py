# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import json
from contextlib import nullcontext
from unittest.mock import Mock

import pytest
from mmengine.hooks import Hook
from toy_runs import Stop, build, log_of

from mmvidattn.engine import TolerantLoggerHook
from mmvidattn.engine.hooks import report_hooks


class InfoHook(Hook):
    """Give a sample of a batch meta information, as datasets do."""
    priority = 'HIGHEST'

    def after_train_iter(self, runner, batch_idx, data_batch, outputs):
        info = dict(decode_seconds=2 + runner.iter % 2)
        if batch_idx == 1:
            info.update(skipped_videos=['a.mp4', 'a.mp4'],
                        skipped_reasons={'a.mp4': 'ValueError: no frames'})
        data_batch['data_samples'][0].set_metainfo(info)


def test_logs_share_of_waiting_and_decode_time(tmp_path):
    runner = build(tmp_path, hooks=[InfoHook()],
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


def test_reports_skipped_videos_of_all_ranks(tmp_path, monkeypatch):
    """After each epoch in a file, and at the end in the log."""
    others = [(dict(b=1), dict(b='OSError')), ({}, {})]
    monkeypatch.setattr(report_hooks, 'all_gather_object',
                        lambda mine: [mine, *others])
    path = tmp_path / 'skipped_videos.txt'
    for epochs, stop in (2, ('before_train_epoch', 3)), (4, None):
        run = build(tmp_path, hooks=[InfoHook()], stop=stop,
                    skipped_videos=dict(type='SkippedVideosHook'))
        with pytest.raises(Stop) if stop else nullcontext():
            run.train()
        assert path.read_text() == (
            f'{2 * epochs}\ta.mp4\tValueError: no frames\n1\tb\tOSError\n')
    line, = [line for line in log_of(tmp_path).splitlines()
             if ' unreadable ' in line]
    assert line.endswith(' - WARNING - skipped 2 unreadable videos, '
                         '9 times in all: a.mp4 (8), b (1)')


def test_only_main_process_writes_test_metrics(tmp_path, monkeypatch):
    hook, path = TolerantLoggerHook(), tmp_path / 'metrics.json'
    hook.json_log_path = path.name
    runner = Mock(log_dir=str(tmp_path), test_dataloader=[0])
    runner.log_processor.get_log_after_epoch.return_value = dict(acc=.5), ''
    for is_main in False, True:
        monkeypatch.setattr(report_hooks, 'is_main_process', lambda: is_main)
        hook.after_test_epoch(runner)
        assert path.exists() == is_main
    assert json.loads(path.read_text()) == dict(acc=.5)


def test_training_continues_if_logs_cannot_be_written(tmp_path, monkeypatch):
    """But other errors are raised."""
    logger = dict(type='TolerantLoggerHook', interval=1)
    runner = build(tmp_path, logger=logger)
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
    assert 'is a folder' in error
    runner = build(tmp_path, logger=logger)
    monkeypatch.setattr(runner.visualizer, 'add_scalars', lambda: None)
    with pytest.raises(TypeError):
        runner.train()
