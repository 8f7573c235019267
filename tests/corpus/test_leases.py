# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import json
import multiprocessing
import os
import threading
import time

import pytest

from mmvidattn.corpus import leases as module
from mmvidattn.corpus.leases import Leases, start_of

FORK = multiprocessing.get_context('fork')


def in_process(function, *args):
    """Return the result of a function in a process that then ends."""
    receiver, sender = FORK.Pipe()
    process = FORK.Process(target=lambda: sender.send(function(*args)))
    process.start()
    result = receiver.recv()
    process.join()
    return result


@pytest.fixture
def clock(monkeypatch):
    """Clock of the module, as a list with the time."""
    now = [100.]
    monkeypatch.setattr(module.time, 'monotonic', lambda: now[0])
    return now


def lease_of_another_machine(folder, name='0'):
    folder.mkdir(exist_ok=True)
    (folder / name).write_text(json.dumps(dict(
        machine='other', pid=os.getpid(), start='1', lease='a')))


def test_is_taken_once_and_given_back(tmp_path):
    first, second = Leases(tmp_path, 60), Leases(tmp_path, 60)
    assert first.take('0') and not first.take('0') and not second.take('0')
    assert second.take('1')
    first.release('0')
    assert second.take('0')
    second.release_all()
    assert [*tmp_path.iterdir()] == []


def test_lease_of_a_dead_process_is_taken_over_at_once(tmp_path):
    assert in_process(lambda: Leases(tmp_path, 60).take('0'))
    assert Leases(tmp_path, 60).take('0')


def test_lease_of_a_zombie_is_taken_over(tmp_path):
    process = FORK.Process(target=lambda: Leases(tmp_path, 60).take('0'))
    process.start()
    while start_of(process.pid) is not None:
        time.sleep(0.01)
    assert Leases(tmp_path, 60).take('0')
    process.join()


def test_number_of_a_process_may_be_used_again(tmp_path):
    assert Leases(tmp_path, 60).take('0')
    holder = json.loads((tmp_path / '0').read_text())
    assert holder['start'] == start_of(os.getpid())
    (tmp_path / '0').write_text(json.dumps(dict(holder, start='1')))
    assert Leases(tmp_path, 60).take('0')


def test_other_machines_lose_a_lease_without_heartbeats(tmp_path, clock):
    """Time stamps of the other machine, which may be wrong, are not used."""
    lease_of_another_machine(tmp_path)
    leases = Leases(tmp_path, 60)
    for stamp in 0, 1e6, 5e9:
        os.utime(tmp_path / '0', (stamp, stamp))
        assert not leases.take('0')
        clock[0] += 59
        assert not leases.take('0')
    clock[0] += 2
    assert leases.take('0')


def test_heartbeats_keep_a_lease(tmp_path, clock, monkeypatch):
    monkeypatch.setattr(module, 'machine', lambda: 'a')
    holder = Leases(tmp_path, 60)
    assert holder.take('0')
    monkeypatch.setattr(module, 'machine', lambda: 'b')
    other = Leases(tmp_path, 60)
    for _ in range(20):
        assert not other.take('0')
        clock[0] += 11
        before = os.stat(tmp_path / '0').st_mtime_ns
        # Some file systems have coarse times.
        time.sleep(0.02)
        holder.beat()
        assert os.stat(tmp_path / '0').st_mtime_ns > before
    assert not other.take('0')
    clock[0] += 61
    assert other.take('0')
    # The first holder no longer touches or removes it.
    before = os.stat(tmp_path / '0')
    holder.beat()
    holder.release('0')
    assert os.stat(tmp_path / '0').st_mtime_ns == before.st_mtime_ns


def test_one_of_many_takes_over(tmp_path):
    """Threads that see the same dead lease at the same time."""
    for trial in range(15):
        name = str(trial)
        in_process(lambda: Leases(tmp_path, 60).take(name))
        start, taken = threading.Barrier(8), []

        def take():
            leases = Leases(tmp_path, 60)
            start.wait()
            if leases.take(name):
                taken.append(leases)

        threads = [threading.Thread(target=take) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        holders = [one for one in taken if one._held]
        # A slow process may bury the new lease of a fast one, which is legal.
        assert len(holders) >= 1
        live = [one for one in holders if (tmp_path / name).read_bytes()
                in one._held.values()]
        assert len(live) == 1


def test_new_lease_is_put_back(tmp_path, monkeypatch):
    """A process that sees a dead lease too late returns the new one."""
    in_process(lambda: Leases(tmp_path, 60).take('0'))
    slow, fast = Leases(tmp_path, 60), Leases(tmp_path, 60)
    rename = os.rename

    def rename_late(*args):
        monkeypatch.setattr(module.os, 'rename', rename)
        assert fast.take('0')
        rename(*args)

    monkeypatch.setattr(module.os, 'rename', rename_late)
    assert not slow.take('0')
    fast.beat()
    assert fast._held and (tmp_path / '0').is_file()
    assert [path.name for path in tmp_path.iterdir()] == ['0']
