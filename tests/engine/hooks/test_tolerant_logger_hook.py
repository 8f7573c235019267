# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import json
from types import SimpleNamespace

import pytest
from toy_runs import build, log_of

from mmvidattn.engine import TolerantLoggerHook
from mmvidattn.engine.hooks import tolerant_logger_hook


@pytest.mark.parametrize('is_main', [True, False])
def test_only_main_process_writes_test_metrics(tmp_path, monkeypatch,
                                               is_main):
    monkeypatch.setattr(
        tolerant_logger_hook, 'is_main_process', lambda: is_main)
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
