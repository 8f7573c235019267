# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Published weights from a stand-in of the Hub, with the authors' names."""
import json
import sys
import types

import pytest
import torch
from convert.test_vjepa2 import authors_names
from safetensors.torch import save_file

from mmvidattn import VideoClassifier, get_model
from mmvidattn.apis import published
from mmvidattn.apis.published import list_published, published_checkpoint
from mmvidattn.commands import main
from mmvidattn.convert import SOURCES
from mmvidattn.utils.files import hash_file
from mmvidattn.utils.remote_files import HUB_NAME

NAME, COMMIT = 'vjepa2_tiny_motion', '0123456789' * 4
CLASSES = [f'real action {i}' for i in range(8)]


@pytest.fixture
def hub(tmp_path, monkeypatch):
    """Publish a tiny model, and return the list of requests for its files."""
    torch.manual_seed(3)
    state = get_model(NAME).state_dict()
    files = tmp_path / 'hub'
    files.mkdir()
    save_file({name: value.contiguous() for name, value in
               authors_names(state).items()}, files / 'model.safetensors')
    (files / 'config.json').write_text(json.dumps(dict(
        id2label={str(i): name for i, name in enumerate(CLASSES)})))
    (tmp_path / 'published.yml').write_text(json.dumps({NAME: dict(
        weights=f'hf://owner/model@{COMMIT}', source='vjepa2',
        license='MIT', megabytes=1,
        sha256=hash_file(files / 'model.safetensors'))}))
    monkeypatch.setenv('XDG_CACHE_HOME', str(tmp_path / 'cache'))
    monkeypatch.setattr(published, 'config_folder', lambda: tmp_path)
    requests = []

    def hf_hub_download(repo_id, filename, *, revision):
        requests.append((repo_id, filename, revision))
        if not files.is_dir():
            raise OSError('no network')
        return str(files / filename)

    monkeypatch.setitem(
        sys.modules, 'huggingface_hub',
        types.SimpleNamespace(hf_hub_download=hf_hub_download))
    return types.SimpleNamespace(
        files=files, requests=requests, state=state,
        cache=tmp_path / 'cache/mmvidattn/published' / NAME)


def test_predicts_real_classes_and_downloads_once(hub, motion_dir, capsys):
    video = str(next(motion_dir.rglob('*.mp4')))
    classifier = VideoClassifier(NAME, 'published')
    assert classifier.labels == CLASSES
    for name, value in classifier.model.state_dict().items():
        assert torch.equal(value, hub.state[name]), name
    assert 'owner/model of the Hugging Face Hub, 1 MB, license MIT' in (
        capsys.readouterr().err)
    again = VideoClassifier(NAME, 'published')(video)
    assert again.predictions[0].label.startswith('real action')
    assert torch.equal(again.probabilities, classifier(video).probabilities)
    assert hub.requests == [('owner/model', name, COMMIT) for name in
                            ('model.safetensors', 'config.json')]
    assert 'license' not in capsys.readouterr().err
    main(['predict', video, NAME])
    assert 'real action' in capsys.readouterr().out
    # The name of weights is a checkpoint, too.
    model = get_model(NAME, NAME, optional='cls_head.fc_cls.')
    assert torch.equal(model.backbone.norm.weight,
                       hub.state['backbone.norm.weight'])
    with pytest.raises(ValueError, match=f'must be one of {NAME}, got xvit'):
        get_model('xvit_k400', 'published')


def test_damaged_file_is_refused(hub):
    path = hub.files / 'model.safetensors'
    data = path.read_bytes()
    path.write_bytes(data[:-1] + bytes([data[-1] ^ 1]))
    with pytest.raises(ValueError, match='SHA-256'):
        published_checkpoint(NAME)
    assert not list(hub.cache.glob('*.pth'))


def test_without_a_network_copies_are_used(hub, tmp_path):
    hub.files.rename(tmp_path / 'elsewhere')
    with pytest.raises(OSError, match=(
            f'no network. Without a network, copy .*model.safetensors and '
            f'config.json of https://huggingface.co/owner/model/tree/{COMMIT}'
            f' to {hub.cache}')):
        published_checkpoint(NAME)
    hub.cache.mkdir(parents=True)
    for path in (tmp_path / 'elsewhere').iterdir():
        path.rename(hub.cache / path.name)
    hub.requests.clear()
    assert VideoClassifier(NAME, 'published').labels == CLASSES
    assert not hub.requests


def test_list_names_commits_and_licenses():
    entries = list_published()
    assert {'vjepa2_l', 'vjepa2_l_ssv2', 'vivit_videomae_b_k400'} <= {*entries}
    for entry in entries.values():
        match = HUB_NAME.fullmatch(entry.weights)
        assert len(match['revision']) == 40 and not match['file']
        assert entry.source in SOURCES and entry.license
        assert entry.sha256 is None or len(entry.sha256) == 64
