# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import multiprocessing
import os
import random
import signal
import time
from collections import Counter
from pathlib import Path

import pytest
from corpus_job import check_results, outputs, run, write_list

from mmvidattn.corpus.progress import Meter
from mmvidattn.corpus.run import (
    exit_with_faults,
    order_shards,
    place_of_process,
)

FORK = multiprocessing.get_context('fork')


def test_bad_videos_are_rows_with_a_reason(tmp_path, capsys):
    names = [f'a{i}' for i in range(23)]
    names[4], names[17] = 'bad', 'crash'
    faults = run(tmp_path / 'out', [write_list(tmp_path, names)], processes=2)
    rows = check_results(tmp_path / 'out', names)
    reasons = ['ValueError: no frames', 'it crashed the process that read it '
               f'(exit status {-signal.SIGSEGV})']
    assert {row['name']: row['reason'] for row in rows if row['reason']} == {
        'bad': reasons[0], 'crash': reasons[1]}
    assert {row['name'] for row in rows if row['status'] == 'failed'} == {
        'bad', 'crash'}
    assert faults == {f'{tmp_path}/{name}.mp4': reason
                      for name, reason in zip(('bad', 'crash'), reasons)}
    with pytest.raises(SystemExit, match='bad.mp4: .*crash.mp4: it crashed'):
        exit_with_faults(faults)
    printed = capsys.readouterr()
    assert '21 videos are ok, 2 failed' in printed.out
    assert f'{tmp_path}/bad.mp4: {reasons[0]}' in printed.err
    assert 'out: 23 videos processed here, ' in printed.err
    # The crash was tried twice, everything else once.
    calls = Counter((tmp_path / 'calls.txt').read_text().split())
    assert calls == Counter([*map(str, range(23)), '17'])
    assert not [*(tmp_path / 'out/leases').iterdir()]


def test_repeats_nothing_that_is_done(tmp_path, capsys):
    names = [f'a{i}' for i in range(23)]
    listed = write_list(tmp_path, names)
    out = tmp_path / 'out'
    run(out, [listed])
    before = outputs(out)
    (tmp_path / 'calls.txt').unlink()
    run(out, [listed])
    assert '23 videos are ok, 0 failed' in capsys.readouterr().out
    assert not (tmp_path / 'calls.txt').exists()
    assert outputs(out) == before
    # A lost part is replaced by an equal one.
    (out / 'parts/000001.parquet').unlink()
    (out / 'catalog.parquet').unlink()
    run(out, [listed])
    assert (tmp_path / 'calls.txt').read_text().split() == [
        *map(str, range(10, 20))]
    assert outputs(out) == before


def test_machines_without_a_common_disk(tmp_path, capsys):
    """Parts of two folders are copied together."""
    names = [f'a{i}' for i in range(47)]
    listed = write_list(tmp_path, names)
    for number in range(2):
        assert run(tmp_path / f'{number}', [listed], shard=(number, 2)) is None
        assert 'no catalog yet' in capsys.readouterr().out
        parts = sorted(os.listdir(tmp_path / f'{number}/parts'))
        assert parts == [f'{i:06}.parquet' for i in range(number, 5, 2)]
    for path in tmp_path.glob('1/parts/*'):
        path.rename(tmp_path / '0/parts' / path.name)
    for path in tmp_path.glob('1/*.npy'):
        path.rename(tmp_path / '0' / path.name)
    run(tmp_path / '0', [listed])
    check_results(tmp_path / '0', names)
    calls = Counter((tmp_path / 'calls.txt').read_text().split())
    assert calls == Counter(map(str, range(47)))


@pytest.mark.parametrize('variables, expected', [
    ({}, (0, 1)), (dict(RANK='2', WORLD_SIZE='4'), (2, 4)),
    (dict(SLURM_PROCID='1', SLURM_NTASKS='3'), (1, 3)),
    (dict(SLURM_PROCID='1', SLURM_NTASKS='3', RANK='5', WORLD_SIZE='6'),
     (5, 6)),
    (dict(SLURM_ARRAY_TASK_ID='7', SLURM_ARRAY_TASK_COUNT='4',
          SLURM_ARRAY_TASK_MIN='3', SLURM_ARRAY_TASK_STEP='2'), (2, 4)),
    (dict(SLURM_ARRAY_TASK_ID='1', SLURM_ARRAY_TASK_COUNT='3',
          SLURM_ARRAY_TASK_MIN='0', RANK='1', WORLD_SIZE='2'), (3, 6)),
    (dict(SLURM_ARRAY_TASK_ID='1', RANK='1'), (0, 1))])
def test_place_of_a_process(variables, expected):
    assert place_of_process(variables) == expected


def test_processes_begin_at_different_shards():
    firsts = []
    for rank in range(4):
        order = order_shards(10, None, dict(RANK=f'{rank}', WORLD_SIZE='4'))
        assert sorted(order) == [*range(10)]
        firsts.append(order[0])
    assert firsts == [0, 2, 5, 7]
    parts = [order_shards(10, (i, 4), {}) for i in range(4)]
    assert sorted(sum(parts, [])) == [*range(10)]
    assert parts[1] == [1, 5, 9]


def test_reports_progress_without_a_terminal(monkeypatch, capsys):
    now = [0.]
    monkeypatch.setattr('mmvidattn.corpus.progress.time.monotonic',
                        lambda: now[0])
    with Meter('Extracting', 100) as meter:
        for i in range(60):
            now[0] += 1
            meter.add(f'{i}.mp4', 'a fault' if i == 3 else '')
            meter.show()
    assert capsys.readouterr().err.splitlines() == [
        '3.mp4: a fault', 'Extracting: 30 of 100, 1/s, 1 failed',
        'Extracting: 60 of 100, 1/s, 1 failed']


def children_of(pid):
    try:
        return [int(child) for child in Path(
            f'/proc/{pid}/task/{pid}/children').read_text().split()]
    except FileNotFoundError:
        return []


def run_and_kill(out, listed, kills, programs, seed, **options):
    """Run programs; kill one of them, or a worker, at random moments."""
    draw = random.Random(seed)

    def start():
        process = FORK.Process(target=run, args=(out, [listed]),
                               kwargs=options)
        process.start()
        return process

    running = [start() for _ in range(programs)]
    total = len(listed.read_text().split()) // options['shard_size']
    moments = sorted(draw.randrange(1, total - programs) for _ in range(kills))
    killed = Counter()
    for i, moment in enumerate(moments):
        while len([*out.glob('parts/*.parquet')]) < moment:
            time.sleep(0.005)
        time.sleep(draw.random() * 0.05)
        # Kill workers of each program in turn: a video that ends two of its
        # workers is a failed one.
        number = i // 2 % programs if i % 2 else draw.randrange(programs)
        workers = children_of(running[number].pid)
        if workers and i % 2:
            os.kill(draw.choice(workers), signal.SIGKILL)
            killed['worker'] += 1
        else:
            running[number].kill()
            running[number].join()
            running[number] = start()
            killed['program'] += 1
    for process in running:
        process.join()
        assert process.exitcode == 0
    return killed


@pytest.mark.parametrize('number, kills, shard_size', [
    (300, 4, 20),
    pytest.param(10_000, 20, 50, marks=pytest.mark.slow)])
def test_killed_programs_lose_and_repeat_nothing(tmp_path, number, kills,
                                                 shard_size):
    names = [f'v{i}' for i in range(number)]
    listed = write_list(tmp_path, names)
    run(tmp_path / 'quiet' / 'out', [listed], shard_size=shard_size)
    killed = run_and_kill(tmp_path / 'killed' / 'out', listed, kills, 4, 0,
                          shard_size=shard_size, pause=0.002)
    assert sum(killed.values()) == kills and len(killed) == 2
    rows = check_results(tmp_path / 'killed/out', names)
    assert all(row['status'] == 'ok' for row in rows)
    assert outputs(tmp_path / 'killed/out') == outputs(tmp_path / 'quiet/out')
    # Some items were computed again, in shards whose program was killed.
    calls = (tmp_path / 'killed/calls.txt').read_text().split()
    assert {*calls} == {*map(str, range(number))}
    assert number <= len(calls) <= number + kills * (shard_size + 1)
