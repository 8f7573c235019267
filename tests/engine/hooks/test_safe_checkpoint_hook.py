# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import errno
import math
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from mmengine.fileio import FileClient, LocalBackend
from mmengine.fileio.backends.registry_utils import prefix_to_backends
from mmengine.hooks import Hook
from mmengine.logging import HistoryBuffer
from toy_runs import DivergeHook, Stop, build, log_of

from mmvidattn.apis.runner import unsaved
from mmvidattn.engine import SafeCheckpointHook
from mmvidattn.engine.hooks import safe_checkpoint_hook
from mmvidattn.utils.checkpoint import (
    check_opens,
    find_resumable,
)
from mmvidattn.utils.plain import restore_histories, to_plain


def names(folder):
    return sorted(path.name for path in folder.glob('*.pth*'))


def opens(path):
    check_opens(path)
    return True


def test_keeps_the_last_and_the_best(tmp_path):
    runner = build(tmp_path)
    runner.train()
    best = runner.message_hub.get_info('best_ckpt')
    assert names(tmp_path) == sorted(
        [best.rsplit('/')[-1], 'epoch_3.pth', 'epoch_4.pth'])
    assert (tmp_path / 'last_checkpoint').read_text().endswith('epoch_4.pth')
    assert all(opens(path) for path in tmp_path.glob('*.pth'))
    # The best one has weights only, and is not even looked at.
    assert {'message_hub', 'meta', 'state_dict'} >= {
        *torch.load(best, weights_only=True)}
    os.utime(best, (2e9, 2e9))
    assert find_resumable(tmp_path) == (tmp_path / 'epoch_4.pth', [])


def test_keeps_the_best_of_several_metrics(tmp_path):
    runner = build(tmp_path, checkpoint=dict(save_best=['acc', 'loss']))
    runner.train()
    hub = runner.message_hub
    for key, best in (('acc', max), ('loss', min)):
        values = hub.get_scalar(f'val/{key}').data[0].tolist()
        assert len(values) == 4
        assert hub.get_info(f'best_score_{key}') == best(values)
        epoch = values.index(best(values)) + 1
        path, = tmp_path.glob(f'best_{key}_*')
        assert path.name == f'best_{key}_epoch_{epoch}.pth' and opens(path)
        assert hub.get_info(f'best_ckpt_{key}') == str(path)


def test_model_that_is_not_finite_is_never_the_best(tmp_path):
    runner = build(tmp_path, hooks=[DivergeHook()])
    runner.train()
    assert not [*tmp_path.glob('best_*')]
    assert log_of(tmp_path).count('acc ') and 'best_ckpt' not in (
        runner.message_hub.runtime_info)
    assert 'weights of the model are not finite' in log_of(tmp_path)


@pytest.mark.parametrize('score', [math.nan, math.inf])
def test_score_that_is_not_finite_is_never_the_best(tmp_path, score):
    for rule in 'greater', 'less':
        runner = build(tmp_path, checkpoint=dict(rule=rule))
        runner.call_hook('before_run')
        runner.call_hook('before_train')
        runner.call_hook('after_val_epoch', metrics=dict(acc=score))
        assert not [*tmp_path.glob('best_*')]
        runner.call_hook('after_val_epoch', metrics=dict(acc=0.5))
        best, = tmp_path.glob('best_*')
        best.unlink()


def test_opens_without_an_allow_list(tmp_path):
    """In a process that has not imported us, which allows some types."""
    runner = build(tmp_path, hooks=[OddThings()])
    runner.train()
    code = ("import sys, torch; x = torch.load(sys.argv[1], "
            "weights_only=True); print(*sorted(x)); "
            "print(x['message_hub']['runtime_info']['odd'])")
    done = subprocess.run(
        [sys.executable, '-c', code, tmp_path / 'epoch_4.pth'],
        capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        'exact_resume message_hub meta optimizer param_schedulers state_dict',
        "{'a': 1.5, 'b': [1, 2]}"]
    assert 'Thing is not a plain type' in log_of(tmp_path)


class Thing:
    pass


class OddThings(Hook):
    """Leaves in the hub what users leave there."""

    def before_train(self, runner):
        runner.message_hub.update_info(
            'odd', dict(a=np.float64(1.5), b={1, 2}, c=Thing()))


def test_plain_types_keep_their_values():
    history = HistoryBuffer([1., 2.], [1, 3], max_length=5)
    array = np.arange(6, dtype='>i4').reshape(2, 3)[:, ::-1]
    plain = to_plain(dict(x=history, y=array, z=(np.int8(3), np.bool_(True)),
                          w=np.array(['a', 'b']), o=OrderedSubclass(q='s')))
    assert plain['y'].tolist() == array.tolist()
    assert plain['z'] == (3, True) and type(plain['z'][0]) is int
    assert plain['w'] == ['a', 'b'] and plain['o'] == dict(q='s')
    again = restore_histories(plain)['x']
    assert again.data[0].tolist() == [1, 2]
    assert again.data[1].tolist() == [1, 3] and again.max_length == 5
    again.update(4.)
    assert again.mean() == pytest.approx((1 + 2 + 4) / 5)


class OrderedSubclass(dict):
    pass


class Snapshots(Hook):
    """At each step of a save, what a kill would leave behind."""

    def __init__(self, monkeypatch, folder):
        self.found, self.folder = [], folder
        for owner, name in ((os, 'replace'), (os, 'fsync'),
                            (LocalBackend, 'put'), (LocalBackend, 'remove')):
            self.watch(monkeypatch, owner, name)

    def watch(self, monkeypatch, owner, name):
        function = getattr(owner, name)

        def watched(*args, **kwargs):
            self.look()
            result = function(*args, **kwargs)
            self.look()
            return result

        monkeypatch.setattr(owner, name, watched)

    def look(self):
        whole = {path.name for path in self.folder.glob('*.pth')
                 if opens(path)}
        pointer = self.folder / 'last_checkpoint'
        target = pointer.read_text().rsplit('/')[-1] if pointer.is_file() \
            else None
        self.found.append((whole, target))


def test_at_every_moment_there_is_a_whole_one(tmp_path, monkeypatch):
    look = Snapshots(monkeypatch, tmp_path)
    build(tmp_path, checkpoint=dict(max_keep_ckpts=1)).train()
    assert len(look.found) > 40
    for kind in 'epoch_', 'best_':
        there = [any(name.startswith(kind) for name in whole)
                 for whole, _ in look.found]
        assert all(there[there.index(True):])
    # The pointer follows, and what it pointed to goes last.
    pointed = [i for i, (_, target) in enumerate(look.found) if target]
    for whole, target in look.found[pointed[0]:]:
        assert target in whole


def test_file_that_a_kill_left_over_goes(tmp_path, monkeypatch):
    """Killed after the pointer was written, before the old file went."""
    remove = SafeCheckpointHook._remove

    def stop(self, path):
        if path and path.endswith('epoch_1.pth'):
            raise Stop
        remove(self, path)

    monkeypatch.setattr(SafeCheckpointHook, '_remove', stop)
    with pytest.raises(Stop):
        build(tmp_path, checkpoint=dict(save_best=None)).train()
    assert names(tmp_path) == [f'epoch_{i}.pth' for i in (1, 2, 3)]
    monkeypatch.undo()
    build(tmp_path, resume=True, checkpoint=dict(save_best=None)).train()
    assert names(tmp_path) == ['epoch_3.pth', 'epoch_4.pth']


class FaultyBackend(LocalBackend):
    """A disk that fills up, or loses what is written, at the n-th file."""
    fault, at = None, 3

    def put(self, data, path):
        type(self).at -= 1
        if self.at:
            super().put(data, path)
        elif self.fault == 'full':
            super().put(data[:len(data) // 2], path)
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))
        elif self.fault == 'flipped':
            middle = len(data) // 2
            flipped = bytes([data[middle] ^ 1])
            super().put(data[:middle] + flipped + data[middle + 1:], path)


@pytest.mark.parametrize('fault, said', [
    ('full', 'No space left on device'), ('flipped', 'does not open')])
def test_failed_save_is_told_and_training_goes_on(tmp_path, monkeypatch,
                                                  fault, said):
    backend = type('Backend', (FaultyBackend, ), dict(fault=fault, at=3))
    monkeypatch.setattr('mmengine.runner.checkpoint.get_file_backend',
                        lambda *args, **kwargs: backend())
    runner = build(tmp_path, checkpoint=dict(save_best=None))
    runner.train()
    log = log_of(tmp_path)
    assert f'cannot save epoch_3.pth in {tmp_path}: ' in log and said in log
    assert f'last whole checkpoint is {tmp_path}/epoch_2.pth' in log
    assert ' MiB free there; the weights alone are ' in log
    # A later one was saved.
    assert unsaved(runner) == ''
    assert runner.epoch == 4
    assert names(tmp_path) == ['epoch_2.pth', 'epoch_4.pth']
    assert all(opens(path) for path in tmp_path.glob('*.pth'))


def test_failed_save_is_not_taken_for_the_last(tmp_path, monkeypatch):
    backend = type('Backend', (FaultyBackend, ), dict(fault='full', at=4))
    monkeypatch.setattr('mmengine.runner.checkpoint.get_file_backend',
                        lambda *args, **kwargs: backend())
    runner = build(tmp_path, checkpoint=dict(save_best=None))
    runner.train()
    assert unsaved(runner) == (
        f'{tmp_path}/epoch_4.pth could not be saved; the last whole '
        f'checkpoint is {tmp_path}/epoch_3.pth')
    hub = runner.message_hub
    assert hub.get_info('last_ckpt') == f'{tmp_path}/epoch_3.pth'
    assert hub.get_info('keep_ckpt_ids') == [2, 3]
    assert hub.get_info('outdated_ckpt') == f'{tmp_path}/epoch_1.pth'


def test_a_disk_that_is_gone_has_an_unknown_amount_free(tmp_path):
    hook = SafeCheckpointHook()
    hook.out_dir = str(tmp_path / 'gone')
    said = hook._why(
        SimpleNamespace(model=torch.nn.Linear(2**17, 6)), 'epoch_1.pth',
        OSError('Input/output error'))
    assert said.startswith(
        f'cannot save epoch_1.pth in {tmp_path}/gone: Input/output error (an '
        'unknown amount free there; the weights alone are 3 MiB). There is no '
        'earlier checkpoint')


def test_best_of_the_same_epoch_replaces_itself(tmp_path):
    runner = build(tmp_path)
    runner.train()
    hook, = (h for h in runner.hooks if isinstance(h, SafeCheckpointHook))
    for score in 1e3, 2e3:
        hook._save_best_checkpoint(runner, dict(acc=score))
        path, = tmp_path.glob('best_*')
        assert path.name == 'best_acc_epoch_4.pth'
        assert runner.message_hub.get_info('best_score') == score
        # The last one was saved again, with what it knows of the best.
        assert [*hook.keep_ckpt_ids] == [3, 4]
        assert names(tmp_path) == [path.name, 'epoch_3.pth', 'epoch_4.pth']


def test_other_processes_know_that_it_failed(tmp_path, monkeypatch):
    """The first one alone writes; else they would wait for each other."""
    told = []

    def broadcast(answer):
        told.append(list(answer))
        answer[0] = False

    monkeypatch.setattr(safe_checkpoint_hook, 'broadcast_object_list',
                        broadcast)
    runner = build(tmp_path)
    runner.train()
    assert told and all(answer == [True] for answer in told)
    # By what the first one says nothing was saved.
    assert runner.message_hub.get_info('last_ckpt') is None
    assert not (tmp_path / 'last_checkpoint').exists()


def test_old_file_that_cannot_go_is_told_and_training_goes_on(
        tmp_path, monkeypatch):

    def refuse(self, path):
        raise PermissionError(errno.EACCES, 'Permission denied', str(path))

    monkeypatch.setattr(LocalBackend, 'remove', refuse)
    runner = build(tmp_path, checkpoint=dict(save_best=None))
    runner.train()
    assert runner.epoch == 4
    assert f'cannot remove {tmp_path}/epoch_1.pth: ' in log_of(tmp_path)


def test_pointer_that_cannot_be_written_is_told_and_training_goes_on(
        tmp_path):
    (tmp_path / 'last_checkpoint').mkdir(parents=True)
    runner = build(tmp_path, checkpoint=dict(save_best=None))
    runner.train()
    assert 'cannot write last_checkpoint: ' in log_of(tmp_path)
    assert names(tmp_path) == ['epoch_3.pth', 'epoch_4.pth']
    assert find_resumable(tmp_path)[0].name == 'epoch_4.pth'


class Store(LocalBackend):
    """Puts whole objects: a stand-in for one that needs the network."""
    objects = {}

    def put(self, data, path):
        self.objects[str(path)] = bytes(data)

    def get(self, path):
        return self.objects[str(path)]

    def isfile(self, path):
        return str(path) in self.objects

    def remove(self, path):
        del self.objects[str(path)]

    def join_path(self, path, *more):
        return '/'.join([path.rstrip('/'), *more])


@pytest.mark.parametrize('cut', [False, True])
def test_saves_to_an_object_store(tmp_path, monkeypatch, cut):
    monkeypatch.setattr(Store, 'objects', {})
    if cut:
        put = Store.put
        monkeypatch.setattr(Store, 'put', lambda self, data, path: put(
            self, data[:len(data) // 2] if 'epoch_3' in path else data, path))
    # One that users register, by mmengine's newer way and its older one.
    monkeypatch.setitem(prefix_to_backends, 'store', Store)
    monkeypatch.setitem(FileClient._prefix_to_backends, 'store', Store)
    runner = build(tmp_path, checkpoint=dict(
        save_best=None, out_dir='store://bucket'))
    runner.train()
    assert runner.epoch == 4
    kept = [2, 4] if cut else [3, 4]
    assert sorted(path.rsplit('/')[-1] for path in Store.objects) == [
        f'epoch_{i}.pth' for i in kept]
    for data in Store.objects.values():
        check_opens(data)
    assert ('cannot save epoch_3.pth' in log_of(tmp_path)) == cut


@pytest.mark.parametrize('key', [
    'online/mcAP_non_overlapping', 'online/mAP_dense',
    'online/action_top5_recall_testra', 'acc/top1'])
def test_best_of_our_metrics_is_the_greatest(key):
    hook = SafeCheckpointHook(save_best='auto')
    hook._init_rule(hook.rules, [key])
    assert hook.rules == ['greater']


def test_found_where_the_pointer_leads(tmp_path):
    run, other = tmp_path / 'run', tmp_path / 'other/run'
    build(run, checkpoint=dict(out_dir=str(tmp_path / 'other'),
                               save_best=None)).train()
    assert (run / 'last_checkpoint').read_text() == str(other / 'epoch_4.pth')
    assert find_resumable(run)[0] == other / 'epoch_4.pth'
    (other / 'epoch_4.pth').write_bytes(b'cut')
    assert find_resumable(run)[0] == other / 'epoch_3.pth'


def test_newest_that_opens_is_found(tmp_path):
    build(tmp_path, checkpoint=dict(max_keep_ckpts=4)).train()
    (tmp_path / 'epoch_4.pth').write_bytes(b'cut')
    data = bytearray((tmp_path / 'epoch_3.pth').read_bytes())
    data[len(data) // 2] ^= 1
    (tmp_path / 'epoch_3.pth').write_bytes(data)
    torch.save(dict(state_dict={}), tmp_path / 'weights.pth')
    now = time.time()
    for i, name in enumerate(['epoch_1', 'epoch_2', 'epoch_3', 'epoch_4',
                              'weights']):
        os.utime(tmp_path / f'{name}.pth', (now + i, now + i))
    path, passed = find_resumable(tmp_path)
    assert path.name == 'epoch_2.pth'
    assert [p.name for p, _ in passed] == [
        'weights.pth', 'epoch_4.pth', 'epoch_3.pth']
    assert 'weights only' in passed[0][1] and 'not open' in passed[2][1]


@pytest.fixture(scope='module')
def trained(tmp_path_factory):
    folder = tmp_path_factory.mktemp('trained')
    build(folder, checkpoint=dict(save_best=None)).train()
    return folder


@pytest.mark.parametrize('pointer', [
    b'', b'\0' * 40, b'\xff\xfe', b'.', b'a' * 300 + b'.pth',
    b'/' + b'a/' * 3000 + b'b.pth', b'a\0b.pth'],
    ids=['empty', 'zeros', 'noise', 'folder', 'long', 'deep', 'zero'])
def test_pointer_that_a_crash_left_leads_nowhere(trained, tmp_path,
                                                 monkeypatch, pointer):
    here, run = tmp_path / 'here', tmp_path / 'run'
    for folder in here, run:
        shutil.copytree(trained, folder)
    monkeypatch.chdir(here)
    (run / 'last_checkpoint').write_bytes(pointer)
    os.utime(here / 'epoch_4.pth', (2e9, 2e9))
    torch.save(torch.tensor(1.), run / 'number.pth')
    assert find_resumable(run)[0] == run / 'epoch_4.pth'


def test_checkpoint_is_on_the_disk_before_it_has_its_name(
        tmp_path, monkeypatch):
    calls, flush, replace = [], safe_checkpoint_hook.flush, os.replace

    def note_flush(path):
        calls.append(f'flush {Path(path).name}')
        flush(path)

    def note_replace(part, path):
        if str(path).endswith('.pth'):
            calls.append(f'name {Path(path).name}')
        replace(part, path)

    monkeypatch.setattr(safe_checkpoint_hook, 'flush', note_flush)
    monkeypatch.setattr(os, 'replace', note_replace)
    build(tmp_path, checkpoint=dict(save_best=None)).train()
    names = [i for i, call in enumerate(calls) if call.startswith('name')]
    assert names
    for i in names:
        name = calls[i].removeprefix('name ')
        assert calls[i - 1].startswith(f'flush {name}.')
        assert calls[i + 1] == f'flush {tmp_path.name}'


def test_nothing_to_resume_from(tmp_path):
    (tmp_path / 'last_checkpoint').write_text(str(tmp_path / 'gone.pth'))
    assert find_resumable(tmp_path) == (None, [])
    assert find_resumable(tmp_path / 'nowhere') == (None, [])
