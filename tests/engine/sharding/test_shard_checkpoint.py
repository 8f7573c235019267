# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import pytest
import sharded_runs as runs
import torch

from mmvidattn.utils.checkpoint import check_opens, read_checkpoint

WRAPPER = dict(type='FullyShard', sharded_checkpoints=True)
EMA = dict(type='EMAHook', momentum=0.1)
OPTIONS = dict(hooks=[EMA], interval=2, optim_wrapper=dict(
    type='OptimWrapper', optimizer=dict(type='AdamW', lr=1e-3)))


def train(folder, steps=4, num_ranks=1, wrapper=WRAPPER, **kwargs):
    runs.train(folder, 'linear_ff', wrapper if num_ranks > 1 else None, steps,
               num_ranks=num_ranks, **OPTIONS, **kwargs)


def train_whole_and_sharded(folder, num_ranks):
    train(folder / 'whole', num_ranks=num_ranks,
          wrapper=dict(type='FullyShard'))
    train(folder / 'shards', num_ranks=num_ranks)


@pytest.fixture(scope='module')
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp('runs')
    runs.launched(2, train_whole_and_sharded, folder)
    return folder


def differences(a, b):
    return [runs.largest_difference(a[key], b[key])
            for key in ('state_dict', 'ema_state_dict', 'optimizer')]


def test_joined_checkpoint_equals_the_whole_one(folder):
    path = folder / 'shards/iter_4.pth'
    joined = read_checkpoint(path)
    whole = read_checkpoint(folder / 'whole/iter_4.pth')
    assert differences(joined, whole) == [0, 0, 0]
    assert joined['exact_resume'].keys() == whole['exact_resume'].keys()
    # Each process has written its half.
    names = torch.load(path, weights_only=True)
    assert not set(names['state_dict']) & {
        key for key in whole['state_dict'] if key.endswith('weight')}
    found = sorted((folder / 'shards').glob('iter_4.pth.*.shards'))
    assert len(found) == 1 and found[0].name == names['meta']['shards']
    sizes = [file.stat().st_size for file in found[0].iterdir()]
    assert len(sizes) == 2 and max(sizes) < 1.1 * min(sizes)
    assert path.stat().st_size < min(sizes) / 2


@pytest.mark.parametrize('number', [
    2, *(pytest.param(n, marks=pytest.mark.slow) for n in (1, 4))])
def test_resumes_with_any_number_of_processes(folder, number, tmp_path):
    options = dict(steps=8, resume=True,
                   load_from=str(folder / 'shards/iter_4.pth'))
    if number > 1:
        runs.launched(number, train, tmp_path / 'shards', **options)
    else:
        train(tmp_path / 'shards', **options)
    options['load_from'] = str(folder / 'whole/iter_4.pth')
    train(tmp_path / 'one', **options)
    a, b = (read_checkpoint(tmp_path / name / 'iter_8.pth')
            for name in ('shards', 'one'))
    assert max(differences(a, b)) <= (0 if number == 1 else 1e-5)


def train_few_files(folder, num_ranks):
    runner = runs.build_runner(
        folder, 'linear_ff', WRAPPER, 6, num_ranks=num_ranks, **OPTIONS)
    for hook in runner.hooks:
        if hasattr(hook, 'max_keep_ckpts'):
            hook.max_keep_ckpts = 1
    runner.train()


@pytest.mark.slow
def test_removes_folders_of_removed_checkpoints(tmp_path):
    tmp_path.joinpath('iter_6.pth.0123.shards').mkdir()
    runs.launched(2, train_few_files, tmp_path)
    assert [path.name for path in tmp_path.glob('*.pth')] == ['iter_6.pth']
    folder, = tmp_path.glob('*.shards')
    assert folder.name != 'iter_6.pth.0123.shards'
    read_checkpoint(tmp_path / 'iter_6.pth')


def test_incomplete_folders_are_errors(folder, tmp_path):
    source = folder / 'shards/iter_2.pth'
    path = tmp_path / 'iter_2.pth'
    path.write_bytes(source.read_bytes())
    for read in check_opens, read_checkpoint:
        with pytest.raises(ValueError, match='needs its folder iter_2.pth.*'):
            read(path)
    name = torch.load(path, weights_only=True)['meta']['shards']
    files = sorted((source.parent / name).iterdir())
    (tmp_path / name).mkdir()
    for file in None, files[0]:
        if file is not None:
            (tmp_path / name / file.name).write_bytes(file.read_bytes())
        for read in check_opens, read_checkpoint:
            with pytest.raises(ValueError, match='lacks parts of'):
                read(path)
    (tmp_path / name / files[1].name).write_bytes(
        files[1].read_bytes()[:-100])
    with pytest.raises(ValueError, match='damaged'):
        check_opens(path)
    (tmp_path / name / files[1].name).write_bytes(files[1].read_bytes())
    check_opens(path)


@pytest.mark.parametrize('name', ['../other.shards', '/tmp', 3, '..'])
def test_refuses_folders_elsewhere(tmp_path, name):
    path = tmp_path / 'a.pth'
    torch.save(dict(state_dict={}, meta=dict(shards=name)), path)
    with pytest.raises(ValueError, match='must be the name of a folder'):
        read_checkpoint(path)
