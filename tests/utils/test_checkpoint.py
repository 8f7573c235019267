# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import argparse
import functools
import hashlib
import http.server
import os
import struct
import threading
import zipfile
from pathlib import Path

import pytest
import torch
from mmengine.runner.checkpoint import CheckpointLoader
from safetensors.torch import save_file
from torch import nn

from mmvidattn.utils.checkpoint import (
    check_opens,
    download,
    load_checkpoint,
    load_state_dict_file,
    read_checkpoint,
    require_overlap,
)
from mmvidattn.utils.files import hash_file


class Model(nn.Module):
    """Model with a head, and a table that is resized on loading."""

    def __init__(self, width=4, length=3, num_classes=2):
        super().__init__()
        self.backbone = nn.Linear(width, width)
        self.backbone.table = nn.Parameter(torch.zeros(length))
        self.cls_head = nn.Linear(width, num_classes)
        self.backbone.register_load_state_dict_pre_hook(self.resize)

    @staticmethod
    def resize(module, state_dict, prefix, *args):
        old = state_dict.pop(f'{prefix}old_table', None)
        table = state_dict.get(f'{prefix}table', old)
        if table is not None:
            state_dict[f'{prefix}table'] = torch.resize_as_(
                table.clone(), module.table)


def save(path, model, **others):
    torch.save(dict(state_dict=model.state_dict(), **others), path)
    return path


WEIGHTS = {'a.weight': torch.arange(6.).view(2, 3), 'a.bias': torch.ones(2)}


@pytest.mark.parametrize(
    'wrap',
    [dict, lambda w: dict(state_dict=w, epoch=1),
     lambda w: dict(model=w, optimizer={}), lambda w: dict(model_state=w),
     lambda w: {f'module.{k}': v for k, v in w.items()},
     lambda w: dict(state_dict={f'module.{k}': v for k, v in w.items()})],
    ids=['bare', 'state_dict', 'model', 'model_state', 'module.', 'both'])
def test_unwraps_tensors(tmp_path, wrap):
    torch.save(wrap(WEIGHTS), tmp_path / 'x.pth')
    result = load_state_dict_file(tmp_path / 'x.pth')
    assert list(result) == list(WEIGHTS)
    assert all(torch.equal(result[k], v) for k, v in WEIGHTS.items())


def test_partial_module_prefix_is_kept(tmp_path):
    state = {'module.a': torch.ones(1), 'b': torch.ones(1)}
    torch.save(state, tmp_path / 'x.pth')
    assert load_state_dict_file(tmp_path / 'x.pth').keys() == state.keys()


def test_reads_safetensors_like_mmengine(tmp_path):
    path = tmp_path / 'x.safetensors'
    save_file(WEIGHTS, path)
    for result in (load_state_dict_file(path),
                   CheckpointLoader.load_checkpoint(str(path), 'cpu'),
                   CheckpointLoader.load_checkpoint(str(path))):
        assert all(torch.equal(result[k], v) for k, v in WEIGHTS.items())


@pytest.mark.parametrize('name', ['x.pth', 'x.safetensors'])
def test_names_missing_file(tmp_path, name):
    with pytest.raises(FileNotFoundError, match=f'no checkpoint file .*{name}'
                       ):
        read_checkpoint(tmp_path / name)


@pytest.mark.parametrize('name', ['x.pth', 'x.safetensors'])
@pytest.mark.parametrize('content', [b'', b'a text', b'PK\x03\x04 cut'],
                         ids=['empty', 'text', 'cut'])
def test_names_file_that_is_not_a_checkpoint(tmp_path, name, content):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(ValueError, match=f'{name} is not a checkpoint'):
        load_state_dict_file(tmp_path / name)


@pytest.mark.parametrize(
    'content', [[1, 2], {}, dict(epoch=1), dict(state_dict=dict(a=1))],
    ids=str)
def test_names_file_without_tensors(tmp_path, content):
    torch.save(content, tmp_path / 'x.pth')
    with pytest.raises(ValueError, match='x.pth is not a checkpoint'):
        load_state_dict_file(tmp_path / 'x.pth')


class Evil:
    """Create a folder when unpickled."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return os.makedirs, (str(self.path), )


@pytest.mark.parametrize('zipped', [True, False], ids=['zip', 'legacy'])
@pytest.mark.parametrize('kind', ['os.makedirs', 'argparse.Namespace'])
def test_refuses_pickle_that_would_run_code(tmp_path, kind, zipped):
    path, made = tmp_path / 'x.pth', tmp_path / 'made'
    thing = Evil(made) if kind == 'os.makedirs' else argparse.Namespace()
    torch.save(dict(state_dict=WEIGHTS, args=thing), path,
               _use_new_zipfile_serialization=zipped)
    assert zipfile.is_zipfile(path) == zipped
    with pytest.raises(ValueError, match=(
            rf'x.pth is refused: loading it would call {kind}\..*'
            r"torch.save\(checkpoint\['state_dict'\]")):
        load_state_dict_file(path)
    assert not made.exists()


def test_detects_flipped_bit(tmp_path):
    path = tmp_path / 'x.pth'
    torch.save(dict(state_dict=dict(a=torch.arange(99.), b=torch.ones(7))),
               path)
    data, refused = path.read_bytes(), 0
    with zipfile.ZipFile(path) as archive:
        places = []
        for item in archive.infolist():
            # Contents start after the header, the name and the padding.
            lengths = data[item.header_offset + 26:item.header_offset + 30]
            start = item.header_offset + 30 + sum(
                struct.unpack('<HH', lengths))
            places += range(start, start + item.file_size)
    for place in places[::7]:
        damaged = bytearray(data)
        damaged[place] ^= 4
        path.write_bytes(damaged)
        with pytest.raises(ValueError, match='is not a checkpoint|refused'):
            read_checkpoint(path)
        refused += 1
    assert refused > 80


def test_reads_views_and_shared_tensors(tmp_path):
    table = torch.arange(12.).view(3, 4)
    weights = dict(
        table=table, row=table[1], column=table[:, 2], flipped=table.t(),
        wide=torch.ones(1).expand(6), empty=torch.zeros(0, 3),
        half=torch.ones(5).bfloat16(), scalar=torch.tensor(2),
        parameter=nn.Parameter(torch.ones(2)), sparse=torch.eye(3).to_sparse())
    for zipped in True, False:
        torch.save(weights, tmp_path / 'x.pth',
                   _use_new_zipfile_serialization=zipped)
        result = read_checkpoint(tmp_path / 'x.pth')
        for name, value in weights.items():
            assert torch.equal(result[name].to_dense(), value.to_dense())


def test_loads_all_tensors_and_returns_meta(tmp_path):
    torch.manual_seed(0)
    saved, model = Model(), Model()
    path = save(tmp_path / 'x.pth', saved, meta=dict(epoch=3))
    assert load_checkpoint(model, path) == dict(epoch=3)
    for key, value in saved.state_dict().items():
        assert torch.equal(model.state_dict()[key], value)


def test_optional_prefix_is_not_loaded(tmp_path):
    saved, model = Model(num_classes=5), Model()
    before = model.cls_head.weight.clone()
    path = save(tmp_path / 'x.pth', saved)
    with pytest.raises(ValueError, match='cls_head'):
        load_checkpoint(Model(), path)
    load_checkpoint(model, path, optional='cls_head.')
    assert torch.equal(model.backbone.weight, saved.backbone.weight)
    assert torch.equal(model.cls_head.weight, before)


def test_model_hooks_resize_and_rename(tmp_path):
    model = Model(length=5)
    load_checkpoint(model, save(tmp_path / 'x.pth', Model(length=7)))
    state = Model().state_dict()
    state['backbone.old_table'] = torch.tensor([1., 2., 3.])
    del state['backbone.table']
    torch.save(state, tmp_path / 'y.pth')
    model = Model()
    load_checkpoint(model, tmp_path / 'y.pth')
    assert model.backbone.table.tolist() == [1, 2, 3]


def test_reports_mismatch_in_one_line(tmp_path):
    state = Model(num_classes=5).state_dict()
    del state['backbone.bias']
    # The hook renames this tensor, so that it fits.
    state['backbone.old_table'] = state.pop('backbone.table')
    state.update({f'neck.{i}': torch.zeros(1) for i in range(4)})
    torch.save(state, tmp_path / 'x.pth')
    with pytest.raises(ValueError) as info:
        load_checkpoint(Model(), tmp_path / 'x.pth')
    assert str(info.value) == (
        f'{tmp_path}/x.pth does not fit the model Model(Linear, Linear): 2 of '
        '5 tensors match. missing 1: backbone.bias. unexpected 4: neck.0; '
        'neck.1; neck.2; .... of another shape 2: cls_head.weight (5, 4), '
        'expected (2, 4); cls_head.bias (5,), expected (2,)')


def test_start_weights_must_fit_the_backbone(tmp_path):
    path = save(tmp_path / 'x.pth', Model(num_classes=5))
    require_overlap(Model(num_classes=2), path)
    # The bias of the head fits, but the backbone does not.
    with pytest.raises(ValueError, match=(
            'x.pth fits no tensor of the backbone of Model.*it has backbone.*'
            'expected backbone')):
        require_overlap(Model(width=6, length=4, num_classes=5), path)


def test_start_weights_of_model_without_backbone(tmp_path):
    path = tmp_path / 'x.pth'
    torch.save(nn.Linear(3, 2).state_dict(), path)
    require_overlap(nn.Linear(3, 2), path)
    with pytest.raises(ValueError, match='x.pth fits no tensor of'):
        require_overlap(nn.Linear(4, 4), path)


class Server:
    """HTTP server of a folder."""

    def __init__(self, folder):
        handler = functools.partial(Quiet, directory=str(folder))
        self.server = http.server.ThreadingHTTPServer(
            ('127.0.0.1', 0), handler)
        threading.Thread(
            target=self.server.serve_forever, args=(0.02, )).start()
        self.url = f'http://127.0.0.1:{self.server.server_port}'


class Quiet(http.server.SimpleHTTPRequestHandler):

    def log_message(self, *args):
        pass


@pytest.fixture
def site(tmp_path, monkeypatch):
    monkeypatch.setenv('TORCH_HOME', str(tmp_path / 'home'))
    folder = tmp_path / 'site'
    folder.mkdir()
    server = Server(folder)
    yield folder, server.url
    server.server.shutdown()
    server.server.server_close()


def publish(folder, name, right=True):
    path = folder / 'x'
    (save_file if name.endswith('safetensors') else torch.save)(WEIGHTS, path)
    digest = hash_file(path)
    assert digest == hashlib.sha256(path.read_bytes()).hexdigest()
    shown = digest[:8] if right else '0badbeef'
    return path.rename(folder / name.format(shown)).name


@pytest.mark.parametrize('name', [
    'x-{}.pth', 'x-{}.safetensors', 'x.pth', 'vit-b.pth', 'x-20220818.pth'])
def test_downloads_and_reads(site, name):
    folder, url = site
    name = publish(folder, name)
    for load in (load_state_dict_file,
                 lambda u: CheckpointLoader.load_checkpoint(u, 'cpu')):
        result = load(f'{url}/{name}')
        assert all(torch.equal(result[k], v) for k, v in WEIGHTS.items())
    (folder / name).unlink()
    # The file is gone from the site, and comes from the cache.
    load_state_dict_file(f'{url}/{name}')


@pytest.mark.parametrize('name', ['x-{}.pth', 'x-{}.safetensors'])
def test_deletes_download_with_wrong_hash(site, name):
    folder, url = site
    name = publish(folder, name, right=False)
    with pytest.raises(ValueError, match='SHA-256 .*expected 0badbeef'):
        load_state_dict_file(f'{url}/{name}')
    assert not list((folder.parent / 'home').rglob('x-*'))


def test_mmengine_keeps_its_own_downloads(site):
    """Downloads of mmengine still use its cache, and no hash."""
    folder, url = site
    name = publish(folder, 'x-{}.pth', right=False)
    assert CheckpointLoader._get_checkpoint_loader(
        f'{url}/{name}').__module__ == 'mmengine.runner.checkpoint'
    CheckpointLoader.load_checkpoint(f'{url}/{name}', 'cpu')
    cached = Path(torch.hub.get_dir(), 'checkpoints', name)
    assert cached.is_file()
    (folder / name).unlink()
    CheckpointLoader.load_checkpoint(f'{url}/{name}', 'cpu')


def test_uses_download_of_mmengine_with_right_hash(site):
    folder, url = site
    name = publish(folder, 'x-{}.pth')
    digest = hash_file(folder / name)
    cache = Path(torch.hub.get_dir(), 'checkpoints')
    cache.mkdir(parents=True)
    (folder / name).rename(cache / name)
    assert download(f'{url}/{name}') == cache / name
    (cache / name).rename(cache / 'y.pth')
    assert download(f'{url}/y.pth', digest) == cache / 'y.pth'
    # The file may belong to another URL.
    with pytest.raises(OSError):
        download(f'{url}/y.pth')
    with pytest.raises(OSError):
        download(f'{url}/y.pth', '0' * 64)


def test_checks_given_hash(site):
    folder, url = site
    name = publish(folder, 'x.pth')
    digest = hash_file(folder / name)
    read_checkpoint(f'{url}/{name}', sha256=digest)
    read_checkpoint(folder / name, sha256=digest[:16].upper())
    for path in f'{url}/{name}', folder / name:
        with pytest.raises(ValueError, match='SHA-256'):
            read_checkpoint(path, sha256='0' * 64)


def test_checks_hash_in_name_beside_given_hash(site):
    folder, url = site
    name = publish(folder, 'x-{}.pth', right=False)
    with pytest.raises(ValueError, match='SHA-256'):
        read_checkpoint(f'{url}/{name}', sha256=hash_file(folder / name))


def test_files_of_equal_names_stay_separate(site):
    folder, url = site
    for i, sub in enumerate('ab'):
        (folder / sub).mkdir()
        torch.save(dict(x=torch.tensor(i)), folder / sub / 'model.pth')
    assert [load_state_dict_file(f'{url}/{sub}/model.pth')['x'].item()
            for sub in 'abab'] == [0, 1, 0, 1]


def test_torch_variable_does_not_allow_code(site, monkeypatch):
    folder, url = site
    made = folder / 'made'
    torch.save(dict(state_dict=WEIGHTS, x=Evil(made)), folder / 'x.pth')
    monkeypatch.setenv('TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD', '1')
    for path in folder / 'x.pth', f'{url}/x.pth':
        with pytest.raises(ValueError, match='refused.*os.makedirs'):
            read_checkpoint(path)
    with pytest.raises(ValueError, match='unset TORCH_FORCE_NO'):
        read_checkpoint('open-mmlab://resnet50')
    with pytest.raises(ValueError, match='does not open'):
        check_opens(folder / 'x.pth')
    assert not made.exists()
    # mmengine itself still obeys the variable.
    CheckpointLoader.load_checkpoint(str(folder / 'x.pth'), 'cpu')
    assert made.exists()


@pytest.mark.parametrize('name', ['x.pth', 'x.safetensors'])
def test_refuses_nan_weights(tmp_path, name):
    weights = dict(WEIGHTS, **{'b.weight': torch.tensor([1., torch.nan]),
                               'mask': torch.tensor([0., -torch.inf])})
    (save_file if name.endswith('safetensors') else torch.save)(
        weights, tmp_path / name)
    with pytest.raises(ValueError, match=(
            f'{name} is refused: 1 of its 4 tensors .*: b.weight')):
        load_state_dict_file(tmp_path / name)


def test_reports_which_tensors_fit(tmp_path):
    state = Model(num_classes=5).state_dict()
    state['neck.x'] = state.pop('backbone.table')
    torch.save(state, tmp_path / 'x.pth')
    report = require_overlap(Model(), tmp_path / 'x.pth')
    for fact in ('Model(Linear, Linear)', f'{tmp_path}/x.pth', '2 of 5',
                 'missing 1: backbone.table', 'unexpected 1: neck.x',
                 '2: cls_head.weight (5, 4), expected (2, 4); '
                 'cls_head.bias (5,), expected (2,)',
                 'the file has 5 classes, the model 2'):
        assert fact in report
    torch.save(Model().state_dict(), tmp_path / 'x.pth')
    assert 'new weights' not in require_overlap(Model(), tmp_path / 'x.pth')
