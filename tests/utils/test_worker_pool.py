# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import faulthandler
import multiprocessing
import os
import signal
import time
from functools import partial
from pathlib import Path

import pytest

from mmvidattn.utils import worker_pool
from mmvidattn.utils.remote_files import RemoteError
from mmvidattn.utils.worker_pool import WorkerPool


def make(folder):
    """Return a function that crashes, blocks or fails at some items."""

    def double(item):
        if item == 'crash':
            # Writing a report would take time, which is limited.
            faulthandler.disable()
            os.kill(os.getpid(), signal.SIGSEGV)
        if item == 'crash once' and not (folder / 'crashed').exists():
            (folder / 'crashed').touch()
            os._exit(3)
        if item == 'block':
            time.sleep(600)
        if item == 'fail':
            raise ValueError('no frames')
        if item == 'away':
            raise RemoteError('s3://b/a.mp4: no answer')
        return 2 * item

    return double


def fail_to_start():
    raise ValueError('no weights')


def die_at_start():
    os._exit(7)


@pytest.mark.parametrize('processes', [1, 3])
def test_each_item_is_finished_once(tmp_path, processes):
    items = [1, 'crash', 2, 'block', 3, 'fail', 'crash once', 4]
    with WorkerPool(partial(make, tmp_path), processes, timeout=2,
                    start_method='fork') as pool:
        done = [one for one in pool.run(items) if one is not None]
        assert sorted(map(str, items)) == sorted(str(one.item) for one in done)
        assert {one.item: one.result or one.fault for one in done} == {
            1: 2, 2: 4, 3: 6, 4: 8, 'crash once': 2 * 'crash once',
            'crash': 'it crashed the process that read it (exit status '
                     f'{-signal.SIGSEGV})',
            'block': 'TimeoutError: it took more than 2 s',
            'fail': 'ValueError: no frames'}
        # The processes remain for further items.
        before = {worker.process.pid for worker in pool._workers}
        assert [one.result for one in pool.run([5]) if one] == [10]
        assert {worker.process.pid for worker in pool._workers} == before
    assert not pool._workers


def test_starts_a_process_without_a_fork(tmp_path):
    with WorkerPool(partial(make, tmp_path), 1, start_method='spawn') as pool:
        assert [one.result or one.fault for one in pool.run([1, 'fail', 2])
                if one] == [2, 'ValueError: no frames', 4]


def test_waits_for_items_that_are_not_available_yet(tmp_path):
    """An item that becomes available only after a result does not block."""
    results = []

    def items():
        yield 1
        while not results:
            yield None
        yield 2

    with WorkerPool(partial(make, tmp_path), 2, start_method='fork') as pool:
        for done in pool.run(items()):
            if done is not None:
                results.append(done.result)
    assert results == [2, 4]


def test_replaces_an_idle_process_that_was_killed(tmp_path):
    with WorkerPool(partial(make, tmp_path), 1, start_method='fork') as pool:
        assert [one.result for one in pool.run([1]) if one] == [2]
        process = pool._workers[0].process
        process.kill()
        process.join()
        assert [one.result for one in pool.run([2]) if one] == [4]


@pytest.mark.parametrize('start, error', [
    (fail_to_start, 'cannot start: ValueError: no weights'),
    (die_at_start, 'cannot start: the last one had the exit status 7')])
@pytest.mark.parametrize('is_late', [False, True])
def test_reports_processes_that_cannot_start(monkeypatch, start, error,
                                             is_late):
    if is_late:
        # The processes end before they receive an item.
        begin = worker_pool._Worker.begin
        monkeypatch.setattr(worker_pool._Worker, 'begin', lambda self, *args: (
            self.process.join(), begin(self, *args)))
    with WorkerPool(start, 2, start_method='fork') as pool:
        with pytest.raises(RuntimeError, match=error):
            [*pool.run([1, 2])]


def run_and_wait(idle):
    """Send the ids of two idle workers, while the third one works."""
    pool = WorkerPool(lambda: time.sleep, 3, start_method='fork')
    for _ in pool.run([0, 0, 1, 0, 600]):
        pids = [w.process.pid for w in pool._workers if w.item is None]
        if len(pids) == 2:
            idle.put(pids)
            time.sleep(600)


def test_processes_end_with_their_parent():
    """Workers end if their parent is killed, also without a running item."""
    context = multiprocessing.get_context('fork')
    idle = context.SimpleQueue()
    parent = context.Process(target=run_and_wait, args=(idle, ))
    parent.start()
    pids = idle.get()
    parent.kill()
    parent.join()
    deadline = time.monotonic() + 60
    while any(is_running(pid) for pid in pids):
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_process_whose_answer_is_not_read_ends_quietly(capfd):
    context = multiprocessing.get_context('fork')
    pipe, child_end = context.Pipe()
    process = context.Process(target=worker_pool._serve, args=(
        child_end, lambda: print, False, [pipe]))
    process.start()
    child_end.close()
    # Closing a pipe with an unread message resets its other end.
    assert pipe.poll(60)
    pipe.close()
    process.join()
    assert process.exitcode == 0 and capfd.readouterr().err == ''


def test_a_lost_server_is_not_a_fault_of_an_item(tmp_path):
    with WorkerPool(partial(make, tmp_path), 2) as pool:
        with pytest.raises(RemoteError, match='s3://b/a.mp4: no answer'):
            list(pool.run([1, 'away', 2]))


def is_running(pid):
    try:
        return Path(f'/proc/{pid}/stat').read_text().rpartition(
            ')')[2].split()[0] not in 'ZX'
    except FileNotFoundError:
        return False
