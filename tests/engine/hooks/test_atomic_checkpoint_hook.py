# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import errno
import math
import os
from pathlib import Path
from unittest.mock import Mock

import pytest
import torch
from mmengine.fileio import FileClient, LocalBackend
from mmengine.fileio.backends.registry_utils import prefix_to_backends
from mmengine.hooks import Hook
from toy_runs import Stop, build, log_of

from mmvidattn.apis.build_runner import unsaved_checkpoint
from mmvidattn.engine import AtomicCheckpointHook
from mmvidattn.engine.hooks import atomic_checkpoint_hook
from mmvidattn.utils.checkpoint import check_opens, find_resumable


def names(folder):
    return sorted(path.name for path in folder.glob('*.pth*'))


def test_keeps_last_and_best_of_several_metrics(tmp_path):
    runner = build(tmp_path, checkpoint=dict(save_best=['acc', 'loss']))
    runner.train()
    hub, kept = runner.message_hub, ['epoch_3.pth', 'epoch_4.pth']
    for key, best in (('acc', max), ('loss', min)):
        values = hub.get_scalar(f'val/{key}').data[0].tolist()
        assert len(values) == 4
        assert hub.get_info(f'best_score_{key}') == best(values)
        kept += [f'best_{key}_epoch_{values.index(best(values)) + 1}.pth']
        path = tmp_path / kept[-1]
        assert hub.get_info(f'best_ckpt_{key}') == str(path)
        # The best one has only weights, and is ignored.
        assert {'message_hub', 'meta', 'state_dict'} >= {
            *torch.load(path, weights_only=True)}
        os.utime(path, (2e9, 2e9))
    assert names(tmp_path) == sorted(kept)
    assert (tmp_path / 'last_checkpoint').read_text().endswith('epoch_4.pth')
    assert find_resumable(tmp_path) == (tmp_path / 'epoch_4.pth', [])


@pytest.mark.parametrize('rule', ['greater', 'less'])
def test_bad_model_or_score_is_never_best(tmp_path, rule):
    runner = build(tmp_path, checkpoint=dict(rule=rule))
    runner.call_hook('before_run')
    runner.call_hook('before_train')
    weight = runner.model.layers[3].weight.data[0]
    for score, value in ((math.nan, 1.), (math.inf, 1.), (-math.inf, 1.),
                         (0.5, math.inf), (0.5, 1.)):
        assert not [*tmp_path.glob('best_*')]
        assert 'best_ckpt' not in runner.message_hub.runtime_info
        weight[0] = value
        runner.call_hook('after_val_epoch', metrics=dict(acc=score))
    assert 'weights of the model are not finite' in log_of(tmp_path)
    path, = tmp_path.glob('best_*')
    assert runner.message_hub.get_info('best_ckpt') == str(path)


def test_complete_checkpoint_exists_at_any_moment(tmp_path, monkeypatch):
    """Look at the files that a kill would leave at each stage of saving."""
    found, calls, pointer = [], [], tmp_path / 'last_checkpoint'

    def watch(owner, name):
        function = getattr(owner, name)

        def watched(*args, **kwargs):
            calls.append((name, Path(str(args[-1])).name))
            result = function(*args, **kwargs)
            for path in tmp_path.glob('*.pth'):
                check_opens(path)
            found.append(({path.name for path in tmp_path.glob('*.pth')},
                          pointer.is_file() and Path(pointer.read_text()).name
                          ))
            return result

        monkeypatch.setattr(owner, name, watched)

    for owner, name in ((LocalBackend, 'put'), (LocalBackend, 'remove'),
                        (os, 'replace'), (atomic_checkpoint_hook, 'flush')):
        watch(owner, name)
    build(tmp_path, checkpoint=dict(max_keep_ckpts=1)).train()
    assert len(found) > 20
    for kind in 'epoch_', 'best_':
        there = [any(name.startswith(kind) for name in files)
                 for files, _ in found]
        assert all(there[there.index(True):])
    # The old file is deleted after the pointer is updated.
    first = [bool(target) for _, target in found].index(True)
    assert all(target in files for files, target in found[first:])
    # The disk has the data before the name, and then the name.
    renamed = [i for i, (call, name) in enumerate(calls)
               if call == 'replace' and name.endswith('.pth')]
    assert renamed
    for i in renamed:
        assert calls[i - 1] == ('flush', f'{calls[i][1]}.part')
        assert calls[i + 1] == ('flush', tmp_path.name)


def test_file_left_by_a_kill_is_deleted(tmp_path, monkeypatch):
    """The kill comes between updating the pointer and deleting the file."""
    with monkeypatch.context() as patch, pytest.raises(Stop):
        patch.setattr(LocalBackend, 'remove', Mock(side_effect=Stop))
        build(tmp_path, checkpoint=dict(save_best=None)).train()
    assert names(tmp_path) == [f'epoch_{i}.pth' for i in (1, 2, 3)]
    build(tmp_path, resume=True, checkpoint=dict(save_best=None)).train()
    assert names(tmp_path) == ['epoch_3.pth', 'epoch_4.pth']


@pytest.mark.parametrize('at, reason', [
    (3, 'does not open'), (4, 'No space left on device')])
def test_training_continues_after_failed_save(tmp_path, monkeypatch, at,
                                              reason):
    """The disk changes a bit of the third file, or is full at the fourth."""
    put = LocalBackend.put

    def faulty(self, data, path):
        middle, changed = len(data) // 2, b''
        if f'epoch_{at}' in str(path):
            changed = bytes([data[middle] ^ 1]) + data[middle + 1:]
            if at == 4:
                put(self, data[:middle], path)
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), path)
        put(self, data[:middle] + changed if changed else data, path)

    monkeypatch.setattr(LocalBackend, 'put', faulty)
    runner = build(tmp_path, checkpoint=dict(save_best=None))
    runner.train()
    log = log_of(tmp_path)
    last = f'{tmp_path}/epoch_{at - 1}.pth'
    assert f'cannot save epoch_{at}.pth in {tmp_path}: ' in log
    assert reason in log and f'last complete checkpoint is {last}' in log
    assert runner.epoch == 4
    for path in tmp_path.glob('*.pth'):
        check_opens(path)
    if at == 3:
        # A later checkpoint was saved.
        assert unsaved_checkpoint(runner) == ''
        assert names(tmp_path) == ['epoch_2.pth', 'epoch_4.pth']
        return
    assert unsaved_checkpoint(runner) == (
        f'{tmp_path}/epoch_4.pth could not be saved; the last complete '
        f'checkpoint is {last}')
    hub = runner.message_hub
    assert hub.get_info('last_ckpt') == last
    assert hub.get_info('keep_ckpt_ids') == [2, 3]
    assert hub.get_info('outdated_ckpt') == f'{tmp_path}/epoch_1.pth'


def test_other_processes_know_that_saving_failed(tmp_path, monkeypatch):
    """Check that the first process sends the result of a save to the rest."""
    # The first process reported a failure.
    monkeypatch.setattr(atomic_checkpoint_hook, 'broadcast_object_list',
                        lambda answer: answer.append(not answer.pop()))
    runner = build(tmp_path, checkpoint=dict(interval=4))
    runner.train()
    assert runner.message_hub.get_info('last_ckpt') is None
    assert not (tmp_path / 'last_checkpoint').exists()


class Store(LocalBackend):
    """Stand-in for an object store, which damages the object of epoch 3."""
    objects = {}
    get, isfile, remove = objects.get, objects.__contains__, objects.pop

    def put(self, data, path):
        cut = len(data) // 2 if 'epoch_3' in path else None
        self.objects[path] = bytes(data[:cut])

    def join_path(self, path, *more):
        return '/'.join([path.rstrip('/'), *more])


def test_saves_to_an_object_store(tmp_path, monkeypatch):
    """An object that arrives damaged is not kept."""
    # Register it with both registries of mmengine.
    monkeypatch.setitem(prefix_to_backends, 'store', Store)
    monkeypatch.setitem(FileClient._prefix_to_backends, 'store', Store)
    runner = build(tmp_path, checkpoint=dict(
        save_best=None, out_dir='store://bucket'))
    runner.train()
    assert runner.epoch == 4
    assert sorted(path.rsplit('/')[-1] for path in Store.objects) == [
        'epoch_2.pth', 'epoch_4.pth']
    for data in Store.objects.values():
        check_opens(data)
    assert 'cannot save epoch_3.pth' in log_of(tmp_path)


def test_our_metrics_are_better_if_greater():
    for key in ('online/mcAP_non_overlapping', 'online/mAP_dense',
                'online/action_top5_recall_testra', 'acc/top1'):
        hook = AtomicCheckpointHook(save_best='auto')
        hook._init_rule(hook.rules, [key])
        assert hook.rules == ['greater'], key


def test_finds_newest_complete_checkpoint(tmp_path):
    """A file that is cut, damaged or has only weights is passed over."""
    build(tmp_path, checkpoint=dict(save_best=None, max_keep_ckpts=4)).train()
    pointer = tmp_path / 'last_checkpoint'
    for damaged in (b'\0' * 40, b'.', b'a' * 300 + b'.pth', b'/gone.pth'):
        pointer.write_bytes(damaged)
        assert find_resumable(tmp_path)[0] == tmp_path / 'epoch_4.pth'
    pointer.unlink()
    # Checkpoints may be in another folder.
    (tmp_path / 'run').mkdir()
    (tmp_path / 'run/last_checkpoint').write_text(f'{tmp_path}/epoch_4.pth')
    assert find_resumable(tmp_path / 'run')[0] == tmp_path / 'epoch_4.pth'
    (tmp_path / 'epoch_4.pth').write_bytes(b'cut')
    data = bytearray((tmp_path / 'epoch_3.pth').read_bytes())
    data[len(data) // 2] ^= 1
    (tmp_path / 'epoch_3.pth').write_bytes(data)
    torch.save(dict(state_dict={}), tmp_path / 'weights.pth')
    for i, name in enumerate(names(tmp_path)):
        os.utime(tmp_path / name, (i, i))
    path, passed = find_resumable(tmp_path)
    assert path.name == 'epoch_2.pth'
    for (path, reason), (name, text) in zip(passed, dict(
            weights='weights only', epoch_4='not a complete zip archive',
            epoch_3='not open').items(), strict=True):
        assert path.stem == name and text in reason
    assert find_resumable(tmp_path / 'nowhere') == (None, [])


class UnsafeHook(Hook):
    """Add an object to the checkpoints that torch refuses to load."""

    def before_train(self, runner):
        runner.message_hub.update_info('thing', self)


def test_keeps_no_checkpoint_that_cannot_be_loaded(tmp_path):
    build(tmp_path, hooks=[UnsafeHook()]).train()
    assert names(tmp_path) == []
    assert 'Unsupported global' in log_of(tmp_path).replace('\n', ' ')


def test_training_continues_if_files_cannot_be_changed(tmp_path, monkeypatch):
    """An old checkpoint cannot be removed, and the pointer is a folder."""
    monkeypatch.setattr(LocalBackend, 'remove',
                        Mock(side_effect=PermissionError))
    (tmp_path / 'last_checkpoint').mkdir(parents=True)
    build(tmp_path, checkpoint=dict(save_best=None)).train()
    assert f'cannot remove {tmp_path}/epoch_1.pth: ' in log_of(tmp_path)
    assert 'cannot write last_checkpoint: ' in log_of(tmp_path)
    assert find_resumable(tmp_path)[0].name == 'epoch_4.pth'


def test_names_the_metrics_of_save_best(tmp_path):
    with pytest.raises(ValueError, match="'acc_1' must be a metric .*: acc"):
        build(tmp_path, checkpoint=dict(save_best='acc_1')).train()
