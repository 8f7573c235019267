# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import json
from types import SimpleNamespace

import pytest

from mmvidattn.engine.hooks import SafeLoggerHook, safe_logger_hook


@pytest.mark.parametrize('is_main', [True, False])
def test_one_process_writes_the_metrics_of_a_test(tmp_path, monkeypatch,
                                                  is_main):
    monkeypatch.setattr(safe_logger_hook, 'is_main_process', lambda: is_main)
    hook = SafeLoggerHook()
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
