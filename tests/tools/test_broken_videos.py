# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""The corpus of damaged files, and what we make of each."""
import json
import multiprocessing
import time

import pytest
import torch
from mmaction.registry import DATASETS
from mmengine.registry import DefaultScope

NUM_KINDS = 30
TIMEOUT = 2


@pytest.fixture(scope='module')
def corpus(run_tool, tmp_path_factory):
    folder = tmp_path_factory.mktemp('broken')
    done = run_tool('data/broken_videos.py', folder, cwd=folder)
    assert done.returncode == 0, done.stderr
    rows = [line.split('\t') for line in (
        folder / 'kinds.tsv').read_text('utf-8').splitlines()]
    return folder, {name: frames for name, frames, _ in rows}


def build(folder, names, **options):
    list_file = folder / 'list.txt'
    list_file.write_text(''.join(f'{name} 0\n' for name in names), 'utf-8')
    with DefaultScope.overwrite_default_scope('mmaction'):
        return DATASETS.build(dict(
            type='GuardedVideoDataset', ann_file=str(list_file),
            data_root=str(folder), timeout=TIMEOUT, **options,
            pipeline=[
                dict(type='DecordInit'),
                dict(type='UniformSample', clip_len=8, test_mode=True),
                dict(type='DecordDecode'),
                dict(type='Resize', scale=(32, 32), keep_ratio=False),
                dict(type='FormatShape', input_format='NCTHW'),
                dict(type='PackActionInputs')]))


def look(dataset, i, pipe):
    """Tell of a sample its frames, or why there are none."""
    with DefaultScope.overwrite_default_scope('mmaction'):
        try:
            pipe.send(tuple(dataset[i]['inputs'].shape))
        except RuntimeError as error:
            pipe.send(str(error))


def outcome(dataset, i):
    """Of a sample, from a process of its own, which may crash.

    decord 0.6 can crash on one damaged file after it failed on another.
    """
    ours, theirs = multiprocessing.Pipe()
    process = multiprocessing.Process(target=look, args=(dataset, i, theirs))
    process.start()
    theirs.close()
    if not ours.poll(TIMEOUT + 10):
        process.kill()
        return 'hangs'
    try:
        result = ours.recv()
    except EOFError:
        result = 'crashes'
    process.join()
    return result if process.exitcode == 0 else 'crashes'


def test_each_kind_is_read_right_or_refused(corpus, record_property):
    folder, kinds = corpus
    # For tools/soak/reliability.py.
    record_property('times', len(kinds))
    assert len(kinds) >= NUM_KINDS
    names = list(kinds)
    wrong = {}
    dataset = build(folder, names, test_mode=True)
    for i, name in enumerate(names):
        result = outcome(dataset, i)
        is_read = result == (1, 3, 8, 32, 32)
        expected = {'-': [False], '?': [False, True]}.get(kinds[name], [True])
        if is_read not in expected or not (
                is_read or f'cannot load {folder / name}' in result):
            wrong[name] = kinds[name], result
    assert not wrong


def test_check_videos_finds_what_is_refused(corpus, run_tool, tmp_path):
    folder, kinds = corpus
    names = [name for name in kinds if kinds[name] != '?']
    (tmp_path / 'list.txt').write_text(
        ''.join(f'{name} 0\n' for name in names), 'utf-8')
    began = time.monotonic()
    done = run_tool(
        'check-videos', 'list.txt', '--root', folder, '--workers', 2,
        '--timeout', 3, '--out', 'bad.tsv', '--good', 'good.txt',
        cwd=tmp_path)
    assert time.monotonic() - began < 60
    assert done.returncode == 1, done.stderr
    bad = {line.split('\t')[0].rsplit('/', 1)[1]
           for line in (tmp_path / 'bad.tsv').read_text('utf-8').splitlines()}
    assert bad == {name for name in names if kinds[name] == '-'}
    good = (tmp_path / 'good.txt').read_text('utf-8').splitlines()
    assert good == [f'{name} 0' for name in names if name not in bad]
    assert f'{len(bad)} of {len(names)} videos are bad' in done.stdout
    assert f'{len(names)}/{len(names)}' in done.stderr


def test_training_set_with_a_twentieth_of_them_finishes(
        corpus, run_main, small_config, motion_dir, tmp_path, monkeypatch):
    folder, kinds = corpus
    refused = [name for name in kinds if kinds[name] == '-'][:2]
    good = [line for line in (motion_dir / 'train.txt').read_text()
            .splitlines()]
    # 38 and 2: one in twenty.
    lines = [f'{motion_dir}/{line}' for line in (good * 3)[:38]]
    lines[7:7] = [f'{folder / refused[0]} 0']
    lines[23:23] = [f'{folder / refused[1]} 1']
    (tmp_path / 'train.txt').write_text('\n'.join(lines) + '\n')
    monkeypatch.chdir(tmp_path)
    run_main(
        'train.py', small_config, '--work-dir', 'work', '--no-validate',
        '--cfg-options',
        f'train_dataloader.dataset.ann_file={tmp_path}/train.txt',
        'train_dataloader.dataset.data_prefix.video=',
        'train_dataloader.dataset.timeout=3', 'train_cfg.max_epochs=2')
    rows = [line.split('\t') for line in (
        tmp_path / 'work/skipped_videos.txt').read_text().splitlines()]
    assert {name for _, name, _ in rows} == {
        str(folder / name) for name in refused}
    # Once in each of two epochs, and again if one stood in for the other.
    assert all(2 <= int(count) <= 5 for count, _, _ in rows)
    path, = tmp_path.glob('work/*/vis_data/scalars.json')
    steps = [json.loads(line) for line in path.read_text().splitlines()]
    assert sum('loss' in step for step in steps) == 20
    assert torch.load(tmp_path / 'work/epoch_2.pth',
                      weights_only=True)['meta']['iter'] == 20
