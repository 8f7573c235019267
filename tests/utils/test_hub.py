# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import importlib
import sys
import types

import pytest
import torch
from safetensors.torch import save_file

from mmvidattn.backbones import XViT
from mmvidattn.utils.checkpoint import download, read_checkpoint
from mmvidattn.utils.hub import hub_file

COMMIT = '0123456789abcdef0123456789abcdef01234567'
NAME = f'hf://owner/model-a.b@{COMMIT}'


@pytest.fixture
def hub(tmp_path, monkeypatch):
    """Replace the Hub by one file, and return the list of requests to it."""
    path = tmp_path / 'model.safetensors'
    save_file({'w': torch.arange(3.)}, path)
    requests = []

    def hf_hub_download(repo_id, filename, *, revision):
        requests.append((repo_id, filename, revision))
        if repo_id == 'owner/none':
            raise FileNotFoundError('404, no such\nmodel')
        return str(path)

    monkeypatch.setitem(
        sys.modules, 'huggingface_hub',
        types.SimpleNamespace(hf_hub_download=hf_hub_download))
    return requests


def test_requests_revision_and_file(hub):
    assert torch.equal(read_checkpoint(NAME)['w'], torch.arange(3.))
    hub_file(f'{NAME}/folder/other.safetensors')
    assert hub == [
        ('owner/model-a.b', 'model.safetensors', COMMIT),
        ('owner/model-a.b', 'folder/other.safetensors', COMMIT)]


def test_checks_hash(hub):
    with pytest.raises(ValueError, match='has the SHA-256 .* not used'):
        download(NAME, sha256='0000')


def test_mmengine_loads_hub_names(hub):
    from mmengine.runner import CheckpointLoader
    result = CheckpointLoader.load_checkpoint(NAME, 'cpu')
    assert torch.equal(result['w'], torch.arange(3.))


@pytest.mark.parametrize('name, message', [
    ('hf://owner/model', "40 hexadecimal digits.*got None"),
    ('hf://owner/model@main', "40 hexadecimal digits.*got 'main'"),
    ('hf://model@0', 'must be hf://OWNER/MODEL@REVISION'),
    (f'{NAME}/pytorch_model.bin', 'must name a .safetensors file')],
    ids=['no-revision', 'branch', 'no-owner', 'pickle'])
def test_refuses_names_without_commit_or_safetensors(hub, name, message):
    with pytest.raises(ValueError, match=message):
        hub_file(name)
    assert not hub


def test_names_missing_model(hub):
    with pytest.raises(OSError, match=f'hf://owner/none@{COMMIT} cannot be '
                       'loaded .* 404, no such model'):
        read_checkpoint(f'hf://owner/none@{COMMIT}')


def test_names_missing_package(monkeypatch):
    monkeypatch.setitem(sys.modules, 'huggingface_hub', None)
    with pytest.raises(ImportError, match='pip install huggingface_hub'):
        hub_file(NAME)


def test_finds_file_in_the_cache(tmp_path, monkeypatch):
    constants = pytest.importorskip('huggingface_hub.constants')
    folder = tmp_path / 'models--owner--model-a.b' / 'snapshots' / COMMIT
    folder.mkdir(parents=True)
    save_file({'w': torch.arange(3.)}, folder / 'model.safetensors')
    monkeypatch.setattr(constants, 'HF_HUB_CACHE', str(tmp_path))
    monkeypatch.setattr(constants, 'HF_HUB_OFFLINE', True)
    # The library has already read these constants.
    monkeypatch.setattr(
        importlib.import_module('huggingface_hub.file_download').constants,
        'HF_HUB_CACHE', str(tmp_path))
    assert torch.equal(read_checkpoint(NAME)['w'], torch.arange(3.))
    with pytest.raises(OSError, match='cannot be loaded'):
        hub_file(f'hf://owner/other@{COMMIT}')


def test_backbone_converts_start_weights(tmp_path, monkeypatch):
    """``source`` of ``init_cfg`` converts published names."""
    reports = []
    monkeypatch.setattr('mmvidattn.backbones.base.print_log',
                        lambda message, logger: reports.append(message))
    path = tmp_path / 'vit.safetensors'
    vit = {'patch_embed.proj.weight': torch.randn(8, 3, 4, 4),
           'cls_token': torch.randn(1, 1, 8),
           'pos_embed': torch.randn(1, 5, 8)}
    save_file(vit, path)
    options = dict(num_frames=2, img_size=8, patch_size=4, embed_dims=8,
                   num_layers=1, num_heads=2)
    init_cfg = dict(type='Pretrained', checkpoint=str(path),
                    source='xvit_image')
    model = XViT(init_cfg=init_cfg, **options)
    model.init_weights()
    assert torch.equal(model.patch_embed.projection.weight,
                       vit['patch_embed.proj.weight'])
    assert '4 of 19 tensors' in reports[0]
    with pytest.raises(ValueError, match="source must be one of .* 'none'"):
        XViT(init_cfg={**init_cfg, 'source': 'none'}, **options
             ).init_weights()
