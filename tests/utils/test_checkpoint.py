# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import functools
import http.server
import zipfile

import pytest
import torch
from live_fixtures import close, serve
from mmengine.runner.checkpoint import CheckpointLoader
from safetensors.torch import save_file
from torch import nn

from mmvidattn.backbones import XViT
from mmvidattn.utils.checkpoint import (
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
        self.backbone.table = nn.Parameter(torch.rand(length))
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


def check_weights(result):
    assert result.keys() == WEIGHTS.keys()
    assert all(torch.equal(result[k], v) for k, v in WEIGHTS.items())


@pytest.mark.parametrize('wrap', [
    dict, lambda w: dict(state_dict=w, epoch=1),
    lambda w: dict(model=w, optimizer={}), lambda w: dict(model_state=w),
    # TeSTra's files.
    lambda w: dict(epoch=25, model_state_dict=w, optimizer_state_dict=dict(
        state={}, param_groups=[])),
    lambda w: {f'module.{k}': v for k, v in w.items()},
    lambda w: dict(state_dict={f'module.{k}': v for k, v in w.items()})],
    ids=['bare', 'state_dict', 'model', 'model_state', 'TeSTra', 'module.',
         'both'])
def test_unwraps_tensors(tmp_path, wrap):
    torch.save(wrap(WEIGHTS), tmp_path / 'x.pth')
    check_weights(load_state_dict_file(tmp_path / 'x.pth'))
    # A prefix of some tensors stays.
    state = {'module.a': torch.ones(1), 'b': torch.ones(1)}
    torch.save(wrap(state), tmp_path / 'x.pth')
    assert load_state_dict_file(tmp_path / 'x.pth').keys() == state.keys()


NAN = dict(WEIGHTS, **{'b.weight': torch.tensor([1., torch.nan]),
                       'mask': torch.tensor([0., -torch.inf])})


@pytest.mark.parametrize('name, content, kind, error', [
    *((name, *row) for name in ('x.pth', 'x.safetensors') for row in (
        (None, FileNotFoundError, 'no checkpoint file .*{}'),
        (b'', ValueError, '{} is not a checkpoint'),
        (b'a text', ValueError, '{} is not a checkpoint'),
        (b'PK\x03\x04 cut', ValueError, '{} is not a checkpoint'),
        (NAN, ValueError, '{} is refused: 1 of its 4 tensors .*: b.weight'))),
    # Files without tensors.
    *(('x.pth', content, ValueError, '{} is not a checkpoint') for content in (
        [1, 2], {}, dict(epoch=1), dict(state_dict=dict(a=1))))], ids=str)
def test_rejected_files(tmp_path, name, content, kind, error):
    path = tmp_path / name
    if isinstance(content, bytes):
        path.write_bytes(content)
    elif content is not None:
        (save_file if path.suffix == '.safetensors' else torch.save)(
            content, path)
    with pytest.raises(kind, match=error.format(name)):
        load_state_dict_file(path)


def test_detects_flipped_bit(tmp_path):
    path = tmp_path / 'x.pth'
    torch.save(dict(state_dict=dict(a=torch.arange(99.), b=torch.ones(7))),
               path)
    data = path.read_bytes()
    with zipfile.ZipFile(path) as archive:
        contents = [archive.read(name) for name in archive.namelist()]
    for content in contents:
        if len(content) < 20:
            continue
        damaged = bytearray(data)
        damaged[data.index(content) + len(content) // 2] ^= 4
        path.write_bytes(damaged)
        with pytest.raises(ValueError, match='is not a checkpoint|refused'):
            read_checkpoint(path)


def test_loads_all_tensors_or_skips_a_prefix(tmp_path):
    saved, model = Model(num_classes=5, length=7), Model(num_classes=5)
    path = save(tmp_path / 'x.pth', saved, meta=dict(epoch=3))
    # A hook of the model resizes the table.
    assert load_checkpoint(model, path) == dict(epoch=3)
    for key, value in saved.state_dict().items():
        assert torch.equal(model.state_dict()[key], value[:3] if (
            key == 'backbone.table') else value)
    model = Model()
    before = model.cls_head.weight.clone()
    with pytest.raises(ValueError, match='cls_head'):
        load_checkpoint(Model(), path)
    load_checkpoint(model, path, optional='cls_head.')
    assert torch.equal(model.backbone.weight, saved.backbone.weight)
    assert torch.equal(model.cls_head.weight, before)


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
    path = save(tmp_path / 'x.pth', Model())
    assert '5 of 5 tensors match' in require_overlap(Model(), path)
    save(path, Model(num_classes=5))
    assert 'cls_head.weight (5, 4), expected (2, 4)' in require_overlap(
        Model(), path)
    # The bias of the head fits, but the backbone does not.
    with pytest.raises(ValueError, match=(
            'x.pth fits no tensor of the backbone of Model.*it has backbone.*'
            'expected backbone')):
        require_overlap(Model(width=6, length=4, num_classes=5), path)
    torch.save(nn.Linear(3, 2).state_dict(), path)
    require_overlap(nn.Linear(3, 2), path)
    with pytest.raises(ValueError, match='x.pth fits no tensor of'):
        require_overlap(nn.Linear(4, 4), path)


def test_backbone_converts_start_weights(tmp_path, monkeypatch):
    """``source`` of ``init_cfg`` converts published names."""
    reports = []
    monkeypatch.setattr('mmvidattn.backbones.pretrained.print_log',
                        lambda message, logger: reports.append(message))
    vit = {'patch_embed.proj.weight': torch.randn(8, 3, 4, 4),
           'cls_token': torch.randn(1, 1, 8),
           'pos_embed': torch.randn(1, 5, 8)}
    save_file(vit, tmp_path / 'vit.safetensors')

    def build(source):
        return XViT(
            num_frames=2, img_size=8, patch_size=4, embed_dims=8,
            num_layers=1, num_heads=2, init_cfg=dict(
                type='Pretrained', source=source,
                checkpoint=str(tmp_path / 'vit.safetensors')))

    model = build('xvit_image')
    model.init_weights()
    assert torch.equal(model.patch_embed.projection.weight,
                       vit['patch_embed.proj.weight'])
    assert '4 of 19 tensors' in reports[0]
    with pytest.raises(ValueError, match="source must be one of .* 'none'"):
        build('none').init_weights()


@pytest.fixture
def site(tmp_path, monkeypatch):
    """Folder and URL of a server; torch's cache is in another folder."""
    monkeypatch.setenv('TORCH_HOME', str(tmp_path / 'home'))
    folder = tmp_path / 'site'
    folder.mkdir()
    server = serve(functools.partial(
        http.server.SimpleHTTPRequestHandler, directory=str(folder)))
    yield folder, f'http://127.0.0.1:{server.server_port}'
    close(server)


def publish(folder, name, right=True):
    path = folder / 'x'
    (save_file if name.endswith('safetensors') else torch.save)(WEIGHTS, path)
    shown = hash_file(path)[:8] if right else '0badbeef'
    return path.rename(folder / name.format(shown)).name


@pytest.mark.parametrize('name', [
    'x-{}.pth', 'x-{}.safetensors', 'x.pth', 'vit-b.pth', 'x-20220818.pth'])
def test_downloads_once(site, name):
    folder, url = site
    name = publish(folder, name)
    for place in url, folder:
        for load in load_state_dict_file, CheckpointLoader.load_checkpoint:
            check_weights(load(f'{place}/{name}'))
    (folder / name).unlink()
    # The file is gone from the site, and comes from the cache.
    load_state_dict_file(f'{url}/{name}')
    # A file of the same name at another place is another file.
    with pytest.raises(OSError):
        load_state_dict_file(f'{url}/other/{name}')


@pytest.mark.parametrize('name', ['x-{}.pth', 'x-{}.safetensors', 'x.pth'])
def test_a_wrong_hash_is_refused_and_a_right_one_accepted(site, name):
    folder, url = site
    name = publish(folder, name, right=False)
    digest = hash_file(folder / name)
    for sha256 in (None, digest) if '-' in name else ('0' * 64, ):
        with pytest.raises(ValueError, match='SHA-256 .*expected .*0'):
            read_checkpoint(f'{url}/{name}', sha256)
    assert not list((folder.parent / 'home').rglob('x*'))
    read_checkpoint(folder / name, digest[:16].upper())
    with pytest.raises(ValueError, match='SHA-256'):
        read_checkpoint(folder / name, '0' * 64)
    if '-' not in name:
        read_checkpoint(f'{url}/{name}', digest)
