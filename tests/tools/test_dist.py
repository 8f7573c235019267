# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Several processes, by torchrun and by Slurm."""
import json
import os
import pickle
import sys

import pytest
import torch

TOOL_NAMES = ('dist_train.sh', 'dist_test.sh', 'slurm_train.sh',
              'slurm_test.sh')


def test_two_processes_give_what_one_gives(run_tool, small_config,
                                           small_checkpoint, tmp_path):
    runs = dict(one=('test.py', small_config, small_checkpoint),
                two=('dist_test.sh', small_config, small_checkpoint, 2))
    scores, metrics = {}, {}
    for name, command in runs.items():
        done = run_tool(
            *command, '--work-dir', name, '--dump', f'{name}.pkl',
            '--show-dir', f'{name}/pictures', cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        found = pickle.loads((tmp_path / f'{name}.pkl').read_bytes())
        scores[name] = torch.stack([one['pred_score'] for one in found])
        path, = tmp_path.glob(f'{name}/*/*.json')
        metrics[name] = {
            key: value for key, value in json.loads(path.read_text()).items()
            if key.startswith('acc')
        }
    # Seven videos for two processes: one is dealt out twice.
    assert scores['one'].shape == scores['two'].shape == (7, 8)
    torch.testing.assert_close(scores['one'], scores['two'])
    assert metrics['one'] == metrics['two']
    pictures = [sorted(p.name for p in tmp_path.glob(f'{name}/pictures/*'))
                for name in runs]
    assert pictures[0] == pictures[1] and len(pictures[0]) == 7


def test_two_processes_train(run_tool, small_config, tmp_path):
    done = run_tool(
        'dist_train.sh', small_config, 2, '--amp', '--work-dir', 'work',
        '--cfg-options', 'train_cfg.max_epochs=1', cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    path, = tmp_path.glob('work/*/vis_data/scalars.json')
    logs = [json.loads(line) for line in path.read_text().splitlines()]
    # Sixteen videos in batches of four, for two.
    assert [log['step'] for log in logs if 'loss' in log] == [1, 2]
    # The metric has seen seven videos, not eight.
    top1, = (log['acc/top1'] for log in logs if 'acc/top1' in log)
    assert top1 * 7 == pytest.approx(round(top1 * 7))
    meta = torch.load(tmp_path / 'work/epoch_1.pth')['meta']
    assert meta['iter'] == 2


# Starts as many tasks as asked, in turn, as srun does.
SRUN = '''#!/usr/bin/env bash
echo "$@" > srun.args
for arg; do case $arg in --ntasks=*) n=${arg#*=};; esac; done
while [[ $1 == -* ]]; do [[ $1 == -p ]] && shift; shift; done
export SLURM_NTASKS=$n SLURM_NODELIST=here
for ((i = 0; i < n; i++)); do
    SLURM_PROCID=$i SLURM_LOCALID=$i "$@" & pids+=($!)
done
for pid in "${pids[@]}"; do wait "$pid" || exit; done
'''
SCONTROL = '#!/bin/sh\necho 127.0.0.1\n'


@pytest.fixture
def slurm(tmp_path):
    """A PATH with stand-ins for Slurm's programs."""
    folder = tmp_path / 'bin'
    folder.mkdir()
    for name, text in dict(srun=SRUN, scontrol=SCONTROL).items():
        (folder / name).write_text(text)
        (folder / name).chmod(0o755)
    return folder


@pytest.fixture
def run_slurm(run_tool, slurm, tmp_path):

    def run(*args, **env):
        path = os.pathsep.join(
            [str(slurm), os.path.dirname(sys.executable),
             os.environ['PATH']])
        done = run_tool(*args, cwd=tmp_path, PATH=path, **env)
        assert done.returncode == 0, done.stderr
        return (tmp_path / 'srun.args').read_text()

    return run


def test_slurm_trains(run_slurm, small_config, tmp_path):
    args = run_slurm(
        'slurm_train.sh', 'gpus', 'my job', small_config, '--work-dir',
        'work', '--cfg-options', 'train_cfg.max_epochs=1', GPUS='2',
        GPUS_PER_NODE='2', CPUS_PER_TASK='3', SRUN_ARGS='--quiet --qos=high')
    assert args.startswith(
        '-p gpus --job-name=my job --gres=gpu:2 --ntasks=2 '
        '--ntasks-per-node=2 --cpus-per-task=3 --kill-on-bad-exit=1 '
        '--quiet --qos=high ')
    meta = torch.load(tmp_path / 'work/epoch_1.pth')['meta']
    assert meta['iter'] == 2


def test_slurm_tests(run_slurm, small_config, small_checkpoint, tmp_path):
    args = run_slurm(
        'slurm_test.sh', 'gpus', 'job', small_config, small_checkpoint,
        '--dump', 'out.pkl', GPUS='1', GPUS_PER_NODE='1')
    assert '--cpus-per-task=5' in args
    assert len(pickle.loads((tmp_path / 'out.pkl').read_bytes())) == 7


@pytest.mark.parametrize('tool', TOOL_NAMES)
def test_tells_its_arguments(run_tool, tool, tmp_path):
    done = run_tool(tool, 'config.py', cwd=tmp_path)
    assert done.returncode == 2
    assert done.stderr.startswith(f'usage: {tool} ')
