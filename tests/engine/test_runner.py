# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import multiprocessing

import pytest
import torch
from killed_runs import differences
from mmaction.registry import MODEL_WRAPPERS, RUNNERS
from mmengine.logging import print_log
from mmengine.model import MMDistributedDataParallel
from mmengine.optim import OptimWrapper
from mmengine.registry import MODEL_WRAPPERS as WRAPPERS_OF_MMENGINE
from mmengine.runner import EpochBasedTrainLoop, IterBasedTrainLoop, ValLoop
from toy_runs import Data, build, log_of

from mmvidattn.engine import VideoRunner
from mmvidattn.engine.runner import check_scaling


def test_builds_the_parts_of_mmengine(tmp_path):
    """Nothing of a config is exchanged, and old names resolve."""
    runner = build(tmp_path, nan_guard=dict(type='NanGuardHook'),
                   skipped_videos=dict(type='SkippedVideosHook'))
    for kind, options in ((EpochBasedTrainLoop, dict(max_epochs=1)),
                          (IterBasedTrainLoop, dict(max_iters=1))):
        for name in kind.__name__, f'Safe{kind.__name__}':
            assert type(runner.build_train_loop(
                dict(type=name, **options))) is kind
    assert type(runner.build_val_loop(dict(type='SafeValLoop'))) is ValLoop
    assert type(runner.train_dataloader.dataset) is Data
    wrapper = runner.build_optim_wrapper(runner.optim_wrapper)
    assert type(wrapper) is OptimWrapper
    assert RUNNERS.get('SafeRunner') is VideoRunner


def test_resumed_run_past_its_end_does_not_train(tmp_path):
    weights = build(tmp_path).train().state_dict()
    runner = build(tmp_path, resume=True)
    runner._train_loop = dict(by_epoch=True, max_epochs=2)
    assert not differences(runner.train().state_dict(), weights)
    assert runner.iter == 16


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
    runner = build(tmp_path, workers=1, by_epoch=by_epoch)
    runner._train_loop['max_epochs' if by_epoch else 'max_iters'] = 2
    runner.train()
    assert runner.train_dataloader.persistent_workers
    assert not multiprocessing.active_children()


def test_runs_of_one_second_have_their_own_logs(tmp_path, monkeypatch):
    """Also if they are in one process, with configs of one name."""
    monkeypatch.setattr('time.strftime', lambda *args: '20260102_030405')
    # A run of another process.
    (tmp_path / 'b/20260102_030405_4').mkdir(parents=True)
    for folder, suffix in ('a', ''), ('a', '_2'), ('b', '_3'), ('b', '_5'):
        runner = VideoRunner(torch.nn.Linear(1, 1), str(tmp_path / folder),
                            experiment_name='same')
        runner.logger.info(f'run {suffix}.')
        name = f'20260102_030405{suffix}'
        assert runner.timestamp == name
        text = (tmp_path / folder / name / f'{name}.log').read_text()
        assert f'run {suffix}.' in text


@pytest.mark.parametrize('key, value, error', [
    ('strategy', dict(type='MyStrategy'), 'remove strategy, and train with'),
    ('runner_type', 'FlexibleRunner', 'remove runner_type, and train with'),
    *(('model_wrapper_cfg', dict(type=name), 'use MMDistributedDataParallel')
      for name in ('FullyShard', 'mmengine.DataParallel', torch.nn.Linear,
                   *sorted(WRAPPERS_OF_MMENGINE.module_dict.keys()
                           - {'MMDistributedDataParallel'})))], ids=str)
def test_refuses_options_that_are_ignored_or_hang(key, value, error):
    with pytest.raises(ValueError, match=f'{key} .* not supported.*{error}'):
        check_scaling({key: value})


def test_accepts_supported_wrappers(monkeypatch):

    class Derived(MMDistributedDataParallel):
        pass

    monkeypatch.setitem(MODEL_WRAPPERS.module_dict, 'Registered', Derived)
    for wrapper in (
            dict(type='MMDistributedDataParallel'), dict(type=Derived),
            dict(type='Registered'), dict(find_unused_parameters=True), None):
        check_scaling(dict(model_wrapper_cfg=wrapper, strategy=None,
                           runner_type='VideoRunner'))
