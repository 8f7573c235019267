# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Several processes, by torchrun and by Slurm."""
import json
import multiprocessing
import os
import pickle
import runpy
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from helpers import ROOT, read_scalars
from killed_runs import free_port

import mmvidattn
from mmvidattn.apis import load_config


def launched(number, launcher, program, *args):
    """Run a program of tools/ in forked processes that communicate by gloo.

    If a process fails, all are killed.
    """
    port = free_port()

    def start(rank):
        # Threads of OpenMP do not survive a fork.
        torch.set_num_threads(1)
        os.environ.update(
            RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE=str(number),
            MASTER_ADDR='127.0.0.1', MASTER_PORT=str(port))
        if launcher == 'slurm':
            os.environ.update(
                SLURM_PROCID=str(rank), SLURM_LOCALID=str(rank),
                SLURM_NTASKS=str(number), SLURM_NODELIST='here')
        sys.argv = [program, *map(str, args), '--launcher', launcher]
        runpy.run_path(str(ROOT / 'tools' / program), run_name='__main__')
        torch.distributed.barrier()
        # Skip the regular shutdown, in which gloo may abort the process.
        os._exit(0)

    processes = [multiprocessing.get_context('fork').Process(
        target=start, args=(rank, )) for rank in range(number)]
    for process in processes:
        process.start()
    while any(p.is_alive() for p in processes):
        for process in processes:
            process.join(0.05)
        if any(p.exitcode for p in processes):
            for process in processes:
                process.kill()
    assert [p.exitcode for p in processes] == [0] * number


def test_two_processes_of_slurm_give_the_results_of_one_and_of_the_model(
        run_main, small_config, small_checkpoint):
    results, metrics = {}, {}
    for name in 'one', 'two':
        words = ('test.py', small_config, small_checkpoint, '--work-dir', name,
                 '--dump', f'{name}.pkl')
        if name == 'one':
            run_main(*words)
        else:
            launched(2, 'slurm', *words)
        results[name] = pickle.loads(Path(f'{name}.pkl').read_bytes())
        path, = Path().glob(f'{name}/*/*.json')
        metrics[name] = {
            key: value for key, value in json.loads(path.read_text()).items()
            if key.startswith('acc')
        }
    classify = mmvidattn.VideoClassifier(small_config, small_checkpoint)
    cfg = load_config(small_config).test_dataloader.dataset
    lines = Path(cfg.ann_file).read_text().splitlines()
    # Seven videos for two processes: one is dealt out twice.
    for line, one, two in zip(lines, *results.values(), strict=True):
        video, label = line.split()
        want = classify(Path(cfg.data_root, video)).probabilities
        for got in one, two:
            torch.testing.assert_close(
                got['pred_score'].softmax(0), want, atol=1e-5, rtol=0)
            assert got['gt_label'] == int(label)
    hits = [(one['pred_label'] == one['gt_label']).item()
            for one in results['one']]
    assert metrics['one']['acc/top1'] == np.mean(hits)
    assert metrics['one'] == metrics['two']


def test_two_processes_train(small_config):
    launched(2, 'pytorch', 'train.py', small_config, '--amp', '--work-dir',
             'work', '--cfg-options', 'train_cfg.max_epochs=1',
             'train_dataloader.dataset.indices=8',
             'train_dataloader.batch_size=2')
    logs = read_scalars(Path('work'))
    # Eight videos in batches of two, for two.
    assert [log['step'] for log in logs if 'loss' in log] == [1, 2]
    # The metric has seen seven videos, not eight.
    top1, = (log['acc/top1'] for log in logs if 'acc/top1' in log)
    assert top1 * 7 == pytest.approx(round(top1 * 7))
    meta = torch.load('work/epoch_1.pth')['meta']
    assert meta['iter'] == 2


@pytest.mark.slow
@pytest.mark.parametrize('then, now', [(1, 2), (2, 1)])
def test_resumes_with_another_number_of_processes(small_config, then, now):
    """With the same samples, learning rates and weights."""

    def train(name, number, *args):
        launched(
            number, 'pytorch', 'train.py', small_config, '--work-dir', name,
            '--no-validate', *args, '--cfg-options',
            'model.cls_head.dropout_ratio=0', 'train_cfg.max_epochs=3',
            f'train_dataloader.batch_size={4 // number}', 'randomness.seed=1',
            'default_hooks.checkpoint.max_keep_ckpts=3')
        rates = {log['step']: log['lr'] for log in read_scalars(Path(name))}
        return rates, torch.load(f'{name}/epoch_3.pth')

    rates, whole = train('whole', then)
    rest, resumed = train('rest', now, '--resume', 'whole/epoch_1.pth')
    assert list(rest) == [step for step in rates if step > 4]
    assert rest == pytest.approx({step: rates[step] for step in rest})
    for name, value in whole['state_dict'].items():
        torch.testing.assert_close(
            resumed['state_dict'][name], value, rtol=1e-5, atol=1e-6)


def run_script(name, *args, cwd, **env):
    """Run a script of tools/ in the environment of the tests."""
    path = f'{Path(sys.executable).parent}{os.pathsep}{os.environ["PATH"]}'
    default = dict(os.environ, OMP_NUM_THREADS='1', PATH=path,
                   VIRTUAL_ENV=sys.prefix)
    return subprocess.run(
        ['bash', ROOT / 'tools' / name, *map(str, args)], cwd=cwd, text=True,
        env={**default, **env}, capture_output=True, timeout=600)


# In the second epoch a process dies, once.
DIES = '''
import os
from pathlib import Path

from mmaction.registry import HOOKS
from mmengine.hooks import Hook


@HOOKS.register_module()
class DieHook(Hook):
    priority = 'LOWEST'

    def after_train_iter(self, runner, batch_idx, **kwargs):
        died = Path(runner.work_dir, 'died')
        if runner.iter == 2 and runner.rank == 1 and not died.exists():
            died.touch()
            os.kill(os.getpid(), 9)
'''


@pytest.mark.slow
@pytest.mark.parametrize('restarts', [0, 1])
def test_a_process_that_dies(small_config, tmp_path, restarts):
    """All processes end with it, or resume from the last checkpoint."""
    (tmp_path / 'dies.py').write_text(DIES)
    config = tmp_path / 'config.py'
    config.write_text(f"""
_base_ = ['{small_config}']
custom_imports = dict(imports=['mmvidattn', 'dies'])
custom_hooks = [dict(type='DieHook')]
""")
    path = os.pathsep.join([str(tmp_path), os.environ['PYTHONPATH']])
    done = run_script(
        'dist_train.sh', config, 2, '--resume', '--work-dir', 'work',
        cwd=tmp_path, PYTHONPATH=path,
        TORCHRUN_ARGS=f'--max-restarts={restarts}')
    if not restarts:
        assert done.returncode != 0
        assert not (tmp_path / 'work/epoch_2.pth').exists()
        return
    assert done.returncode == 0, done.stderr
    meta = torch.load(tmp_path / 'work/epoch_2.pth')['meta']
    assert meta['iter'] == 4
    steps = [log['step'] for log in read_scalars(tmp_path / 'work')
             if 'loss' in log]
    # The third was lost with its process, or was not logged yet.
    assert steps in ([1, 2, 3, 4], [1, 2, 3, 3, 4])


# Stands for Python and srun.
WRITE_ARGUMENTS = '''#!/bin/sh
[ "$1" = -c ] && echo 1 || echo "$@" > arguments
'''
SRUN = ('-p gpus --job-name=my job --gres=gpu:{} --ntasks={} '
        '--ntasks-per-node={} --cpus-per-task={} --kill-on-bad-exit=1 {}'
        '{{bin}}/python3 -u {{tools}}/{}.py {} --launcher slurm\n')


@pytest.mark.parametrize('words, env, expected', [
    (['dist_test.sh', 'config.py', 'model.pth', 2, '--dump', 'out.pkl'], {},
     '-m torch.distributed.run --nnodes=1 --nproc_per_node=2 '
     '--rdzv-backend=c10d --rdzv-endpoint=127.0.0.1:0 '
     '--local-addr=127.0.0.1 {tools}/test.py config.py model.pth --dump '
     'out.pkl --launcher pytorch\n'),
    (['dist_train.sh', 'config.py', 2], dict(
        NNODES='3', NODE_RANK='1', MASTER_ADDR='a'),
     '-m torch.distributed.run --nnodes=3 --nproc_per_node=2 --node_rank=1 '
     '--master_addr=a --master_port=29500 {tools}/train.py config.py '
     '--launcher pytorch\n'),
    (['slurm_train.sh', 'gpus', 'my job', 'config.py', '--work-dir', 'work'],
     {}, SRUN.format(8, 8, 8, 5, '', 'train', 'config.py --work-dir work')),
    (['slurm_test.sh', 'gpus', 'my job', 'config.py', 'model.pth'],
     dict(GPUS='2', GPUS_PER_NODE='2', CPUS_PER_TASK='3',
          SRUN_ARGS='--quiet --qos=high'),
     SRUN.format(2, 2, 2, 3, '--quiet --qos=high ', 'test',
                 'config.py model.pth'))],
    ids=lambda x: x[0] if isinstance(x, list) else '')
def test_script_starts_the_program(tmp_path, words, env, expected):
    for name in 'python3', 'srun':
        path = tmp_path / 'bin' / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(WRITE_ARGUMENTS)
        path.chmod(0o755)
    done = run_script(words[0], 'config.py', cwd=tmp_path)
    assert done.returncode == 2
    assert done.stderr.startswith(f'usage: {words[0]} ')
    done = run_script(
        *words, cwd=tmp_path, **env,
        PATH=f'{path.parent}{os.pathsep}{os.environ["PATH"]}')
    assert done.returncode == 0, done.stderr
    assert (tmp_path / 'arguments').read_text() == expected.format(
        bin=path.parent, tools=ROOT / 'tools')
