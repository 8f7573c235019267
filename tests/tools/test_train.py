# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import re

import pytest
import torch
from helpers import read_scalars
from mmengine.config import Config

from mmvidattn.apis import load_config
from mmvidattn.commands import make_parser
from mmvidattn.commands.train import apply_args
from mmvidattn.engine import AtomicCheckpointHook


def scalars(work_dir):
    """Return the logs of a folder: training, validation."""
    logs = read_scalars(work_dir)
    return ([log for log in logs if 'loss' in log],
            [log for log in logs if 'acc/top1' in log])


@pytest.fixture(scope='module')
def trained(run_main, small_config, tmp_path_factory):
    cwd = tmp_path_factory.mktemp('train')
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(cwd)
        run_main('train.py', small_config, '--seed', 5, '--resume')
    return cwd / 'work_dirs/small'


@pytest.fixture
def train(run_main, small_config, tmp_path):
    """Train in another work directory."""
    def run(*options):
        run_main('train.py', small_config, '--work-dir', tmp_path, *options)
        return scalars(tmp_path)
    return run


def test_trains_and_validates(trained):
    train, val = scalars(trained)
    assert [log['epoch'] for log in train] == [1] * 4 + [2] * 4
    assert len(val) == 2
    # The seed of the command line, not that of the config.
    assert torch.load(trained / 'epoch_2.pth')['meta']['seed'] == 5
    assert len(list(trained.glob('best_acc_top1_epoch_*.pth'))) == 1
    log, = trained.glob('*/*.log')
    assert 'work_dirs/small: training starts from the beginning' in (
        log.read_text('utf-8'))


def test_resumes_from_the_last_checkpoint(trained, train, tmp_path, capfd):
    (tmp_path / 'last_checkpoint').write_text(str(trained / 'epoch_2.pth'))
    logs, _ = train('--resume', '--epochs', 3)
    assert [log['step'] for log in logs] == [9, 10, 11, 12]
    for epoch, path in (2, trained), (3, tmp_path):
        state = torch.load(path / f'epoch_{epoch}.pth')['optimizer']['state']
        assert state[0]['step'] == 4 * epoch
    train('--resume', '--epochs', 3)
    assert 'has had all 3 epochs' in ''.join(capfd.readouterr())


def test_resumes_from_a_path(trained, train, monkeypatch, capfd):
    """Where bfloat16 is slow, --amp changes nothing unless it is forced."""
    monkeypatch.delenv('MMVIDATTN_BFLOAT16')
    monkeypatch.setattr('mmvidattn.utils.half_precision.'
                        'has_bfloat16_instructions', lambda: False)
    logs, val = train('--resume', trained / 'epoch_1.pth', '--amp')
    line, = (line for line in ''.join(capfd.readouterr()).splitlines()
             if 'no bfloat16 units' in line)
    assert 'MMVIDATTN_BFLOAT16=force' in line
    assert [log['step'] for log in logs] == [5, 6, 7, 8]
    assert [log['step'] for log in val] == [2]
    # The same weights and rate; dropout and the order of videos differ.
    whole = scalars(trained)[0]
    assert [log['lr'] for log in logs] == [log['lr'] for log in whole[4:]]


def test_options_of_training(trained, train, tmp_path, monkeypatch):
    set_globally = []
    monkeypatch.setattr(torch, 'use_deterministic_algorithms',
                        set_globally.append)
    monkeypatch.setattr(torch.backends.cudnn, 'deterministic', False)
    monkeypatch.setattr(torch.backends.cudnn, 'benchmark', False)
    logs, val = train(
        '--seed', 5, '--no-validate', '--epochs', 1, '--amp',
        '--auto-scale-lr', '--deterministic', '--diff-rank-seed',
        '--cfg-options', 'default_scope=None')
    assert not val and [log['step'] for log in logs] == [1, 2, 3, 4]
    amp, full = logs[0], scalars(trained)[0][0]
    cfg = Config.fromfile(tmp_path / 'small.py')
    assert cfg.train_cfg.max_epochs == 1
    assert cfg.randomness == dict(
        seed=5, deterministic=True, diff_rank_seed=True)
    assert set_globally == [True]
    # The batch is a quarter of the 16 that the config's rate is for.
    assert amp['lr'] == pytest.approx(full['lr'] / 4)
    # The same first batch and weights, rounded to eight bits.
    assert amp['loss'] == pytest.approx(full['loss'], rel=0.02)
    assert amp['loss'] != pytest.approx(full['loss'], rel=1e-6)


def config_of(name, *words):
    """Load a config, and apply options of the command."""
    args = make_parser('train').parse_args([name, *words])
    cfg = load_config(name, args.cfg_options)
    apply_args(cfg, args)
    return cfg


@pytest.mark.parametrize('name, epochs, expected', [
    ('linear_ff_ssv2', 7, [dict(warmup=1, begin=0, end=7)]),
    ('dualformer_tiny_k400', 60, [
        dict(begin=0, end=6), dict(begin=0, end=60, T_max=60)]),
    ('laps_visformer_k400', 9, [dict(milestones=[5, 8], begin=0, end=9)]),
    ('testra_thumos14', 50, [dict(warmup=20, begin=0, end=50)]),
    ('linear_ff_tiny_motion', 2, [
        dict(begin=0, end=4), dict(begin=0, end=2, T_max=2)])])
def test_epochs_stretch_the_schedules(name, epochs, expected):
    before = load_config(name)
    cfg = config_of(name, '--epochs', str(epochs))
    assert cfg.train_cfg.max_epochs == epochs
    got, old = ([dict(x)] if isinstance(x, dict) else x for x in (
        cfg.param_scheduler, before.param_scheduler))
    for scheduler, times, was in zip(got, expected, old, strict=True):
        assert scheduler == {**was, **times}


def test_sets_batch_size_rate_and_seed():
    before = load_config('linear_ff_ssv2')
    before.train_dataloader.batch_size = 3
    before.optim_wrapper.optimizer.lr = 0.5
    before.randomness = dict(seed=3, deterministic=True)
    cfg = config_of('linear_ff_ssv2', '--batch-size', '3', '--lr', '0.5',
                    '--seed', '3', '--deterministic')
    assert cfg.to_dict() == before.to_dict()


def test_different_optimizer_cannot_resume(trained, train):
    with pytest.raises(SystemExit, match=(
            'epoch_1.pth was trained with another optimizer: it has no '
            'dampening, momentum for SGD')):
        train('--resume', trained / 'epoch_1.pth', '--cfg-options',
              'optim_wrapper.optimizer.type=SGD')


@pytest.mark.parametrize('option, error', [
    ('model.cls_head.in_channels=5', '.* in_channels of model.cls_head'),
    ('train_dataloader.dataset.type=VideoDataset '
     'train_dataloader.dataset.data_prefix.video=lost',
     'Init of .*lost/.*; check .*data_prefix'),
    ('train_dataloader.num_workers=1 '
     'train_dataloader.dataset.type=VideoDataset '
     'train_dataloader.dataset.pipeline.0.type=DecordDecode',
     "Decode of .*.mp4: KeyError.'frame_inds'"),
    ('default_hooks.checkpoint.save_best=top1 '
     'default_hooks.checkpoint.type=CheckpointHook',
     'error: top1; .*save_best names no metric')])
def test_failure_of_the_first_step_names_options(train, option, error):
    with pytest.raises(SystemExit, match=error):
        train('--cfg-options', *option.split())


def test_error_names_a_checkpoint_that_was_not_saved(
        train, motion_dir, tmp_path, monkeypatch):
    """A broken video in the list does not end the run."""
    bad, videos = tmp_path / 'bad.mp4', tmp_path / 'videos.txt'
    bad.write_text('no video')
    videos.write_text('\n'.join([f'{bad} 0', *(
        motion_dir / 'train.txt').read_text().splitlines()[:7]]))
    (tmp_path / 'epoch_9.pth').touch()
    monkeypatch.setattr(AtomicCheckpointHook, '_write', lambda *_, **__: False)
    with pytest.raises(SystemExit, match=(
            'train: error: .*epoch_1.pth could not be saved; the last '
            'complete checkpoint is none')):
        train('--no-validate', '--epochs', 1, '--cfg-options',
              f'train_dataloader.dataset.ann_file={videos}')
    assert re.match(rf'\d\t{bad}\t.*',
                    (tmp_path / 'skipped_videos.txt').read_text())
    log, = tmp_path.glob('*/*.log')
    # Below the config, where it is seen.
    assert re.search(r'num_layers=1.*1 checkpoint of an earlier run '
                     r'\(epoch_9.pth\).*--resume .*Epoch\(train\)',
                     log.read_text('utf-8'), re.DOTALL)


@pytest.mark.parametrize('tool', ['train.py', 'test.py'])
def test_compiles_the_backbone(run_main, small_config, small_checkpoint,
                               tmp_path, monkeypatch, tool):
    compiled = []

    def compile_in_place(module):
        compiled.append(type(module).__name__)
        raise ValueError('stop here')

    monkeypatch.setattr('torch.nn.Module.compile', compile_in_place)
    rest = [small_checkpoint] if tool == 'test.py' else []
    with pytest.raises(SystemExit, match='error: stop here'):
        run_main(tool, small_config, *rest, '--compile', '--work-dir',
                 tmp_path)
    assert compiled == ['LinearVideoTransformer']
