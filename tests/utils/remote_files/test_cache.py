# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import multiprocessing
import os
import random
import signal
import time

import pytest

from mmvidattn.utils.remote_files.cache import FileCache

KB = 1000


def hold(cache, key, size=KB, log=None):
    """Hold a file of zeros."""
    def fill(part):
        if log is not None:
            log.append(key)
        part.write_bytes(bytes(size))

    return cache.hold(key, 'a.bin', lambda: size, fill)


def files_of(cache):
    return [path for path in cache.folder.rglob('a.bin')]


def test_creates_a_file_once(tmp_path):
    cache, log = FileCache(tmp_path / 'new', 10 * KB), []
    with hold(cache, 'a', log=log) as path:
        assert path.read_bytes() == bytes(KB)
    with hold(cache, 'a', log=log), hold(cache, 'a', log=log) as again:
        assert again == path
    assert log == ['a']


def test_deletes_the_least_recently_used_files(tmp_path):
    cache, log = FileCache(tmp_path, 5 * KB), []
    for number in range(4):
        hold(cache, str(number), log=log).close()
        time.sleep(.01)
    hold(cache, '0', log=log).close()
    for new in 'ab':
        hold(cache, new, log=log).close()
    assert sum(path.stat().st_size for path in files_of(cache)) <= 5 * KB
    # 1 and 2 were not used for the longest time.
    for key in '0', '3', 'a', 'b':
        hold(cache, key, log=log).close()
    assert log == ['0', '1', '2', '3', 'a', 'b']
    hold(cache, '1', log=log).close()
    assert log[-1] == '1'


def test_never_deletes_a_file_in_use(tmp_path):
    cache = FileCache(tmp_path, 3 * KB)
    with hold(cache, 'used') as path:
        for number in range(20):
            hold(cache, str(number)).close()
        assert path.is_file()
        assert len(files_of(cache)) <= 3
    for number in range(20, 24):
        hold(cache, str(number)).close()
    assert not path.exists()


def test_a_collected_file_can_be_deleted(tmp_path):
    cache = FileCache(tmp_path, 3 * KB)
    path = hold(cache, 'dropped').path
    for number in range(5):
        hold(cache, str(number))
    assert not path.exists()


def test_rejects_a_file_larger_than_the_cache(tmp_path):
    with pytest.raises(ValueError, match='a.bin has 2,000 .*CACHE_GB'):
        hold(FileCache(tmp_path, KB), 'a', 2 * KB)


def test_a_failed_file_leaves_nothing_and_can_be_retried(tmp_path):
    cache = FileCache(tmp_path, 5 * KB)

    def fail(part):
        part.write_bytes(b'half')
        raise OSError('gone')

    with pytest.raises(OSError, match='gone'):
        cache.hold('a', 'a.bin', lambda: KB, fail)
    assert not list(tmp_path.rglob('*.part')) + files_of(cache)
    with hold(cache, 'a') as path:
        assert path.stat().st_size == KB


def use_many(folder, seed, queue):
    """Use files in a random order, and report the number of bad reads."""
    cache, rng = FileCache(folder, 6 * KB), random.Random(seed)
    bad, log = 0, []
    for _ in range(150):
        with hold(cache, str(rng.randrange(12)), log=log) as path:
            time.sleep(rng.random() / 2000)
            bad += path.read_bytes() != bytes(KB)
    queue.put((bad, len(log)))


def test_processes_share_the_folder(tmp_path):
    context = multiprocessing.get_context('fork')
    queue = context.Queue()
    workers = [context.Process(target=use_many, args=(tmp_path, i, queue))
               for i in range(4)]
    for worker in workers:
        worker.start()
    results = [queue.get(timeout=60) for _ in workers]
    for worker in workers:
        worker.join()
    assert sum(bad for bad, _ in results) == 0
    assert len(files_of(FileCache(tmp_path, 1))) <= 6


def fill_slowly(folder, started):
    def fill(part):
        part.write_bytes(b'half')
        started.set()
        time.sleep(60)

    FileCache(folder, 5 * KB).hold('a', 'a.bin', lambda: KB, fill)


def test_a_killed_process_leaves_no_half_file(tmp_path):
    context = multiprocessing.get_context('fork')
    started = context.Event()
    worker = context.Process(target=fill_slowly, args=(tmp_path, started))
    worker.start()
    assert started.wait(30)
    os.kill(worker.pid, signal.SIGKILL)
    worker.join()
    with hold(FileCache(tmp_path, 5 * KB), 'a') as path:
        assert path.read_bytes() == bytes(KB)
    assert not list(tmp_path.rglob('*.part'))


def test_a_forked_process_does_not_release_the_file(tmp_path):
    cache = FileCache(tmp_path, 2 * KB)
    held = hold(cache, 'used')
    child = multiprocessing.get_context('fork').Process(target=held.close)
    child.start()
    child.join()
    for number in range(4):
        hold(cache, str(number)).close()
    assert held.path.is_file()
