# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import os
import shutil
import sys
import zipfile
from pathlib import Path

import pytest
import torch
from helpers import ROOT, small_disk
from mmaction.registry import MODELS
from mmengine.config import Config
from safetensors.torch import load_file, save_file

import mmvidattn
from mmvidattn.apis import load_bundle, load_config, save_bundle
from mmvidattn.apis.bundle import SUFFIXES, save_release
from mmvidattn.apis.bundle_file import clean_config, write_bundle
from mmvidattn.apis.bundle_types.registry import check_config
from mmvidattn.utils.exits import one_line_errors
from mmvidattn.utils.lock import lock_folder

NAME = 'linear_ff_tiny_motion'
CLASSES = [f'class of {i}' for i in range(8)]


@pytest.fixture(scope='module')
def trained(tmp_path_factory):
    """Return a config with paths and inheritance, its checkpoint and model."""
    folder = tmp_path_factory.mktemp('trained')
    config, checkpoint = folder / 'config.py', folder / 'best.pth'
    config.write_text(
        f'_base_ = {str(ROOT / f"configs/{NAME}.py")!r}\n'
        f'data_root = {str(folder)!r}\n'
        f'load_from = {str(checkpoint)!r}\n'
        'online = dict(events=dict(on=0.4, off=0.2), max_gap=3., stride=.5)\n'
    )
    torch.manual_seed(0)
    model = mmvidattn.get_model(config)
    torch.save(dict(state_dict=model.state_dict(), meta=dict(
        dataset_meta=dict(classes=CLASSES))), checkpoint)
    return config, checkpoint, model


@pytest.fixture(scope='module')
def bundle(trained, tmp_path_factory):
    return save_bundle(
        tmp_path_factory.mktemp('bundles') / 'motion', *trained[:2],
        thresholds=dict(on=0.6), seconds=1.)


def test_equals_config_and_checkpoint(trained, bundle):
    config, checkpoint, model = trained
    expected = mmvidattn.VideoClassifier(config, checkpoint)
    frames = torch.randint(256, (16, 64, 64, 3), dtype=torch.uint8)
    for path in bundle, save_bundle(
            bundle.with_name('motion.zip'), config, checkpoint):
        classifier = mmvidattn.VideoClassifier(path)
        assert classifier.labels == CLASSES
        assert torch.equal(classifier(frames).probabilities,
                           expected(frames).probabilities)
        weights = load_bundle(path).load_weights()
        assert all(torch.equal(value, weights[name])
                   for name, value in model.state_dict().items())
    online = load_bundle(bundle).config.online
    assert online == dict(events=dict(on=0.6, off=0.2), max_gap=3., stride=.5,
                          seconds=1.)
    text = (bundle / 'bundle.json').read_text()
    assert str(config.parent) not in text and str(ROOT) not in text
    assert '_base_' not in text and 'custom_imports' not in text


@pytest.mark.parametrize('name', [
    NAME, pytest.param('testra_tiny_synthetic', id='online'),
    pytest.param('vivit_tiny_linear_distill_motion', id='distilled'),
    *(pytest.param(name, marks=pytest.mark.slow)
      for name in mmvidattn.list_models(ablations=True))])
def test_bundle_of_config(name, tmp_path):
    """Check that a saved and loaded bundle has equal tensors."""
    cfg = load_config(name)
    result = clean_config(cfg)
    path = write_bundle(
        tmp_path / name, name, result, [], dict(x=torch.ones(1)))
    loaded = load_bundle(path).config
    assert loaded.to_dict() == dict(result, default_scope='mmaction')
    assert loaded.get('test_pipeline') == cfg.get('test_pipeline')
    # Mixup, which only trains, cannot be built on the meta device.
    steps = [one.model.pop('data_preprocessor', {}) for one in (cfg, loaded)]
    assert {**steps[0], 'blending': None} == {**steps[1], 'blending': None}
    with torch.device('meta'):
        before, after = ({
            key: value.shape for key, value in MODELS.build(
                one.model).state_dict().items()} for one in (cfg, loaded))
    assert before == after
    with pytest.raises(ValueError, match='num_classes=./home/me.*no path'):
        write_bundle(tmp_path / 'b', name, dict(
            result, num_classes='/home/me'), [], {})
    assert [*tmp_path.iterdir()] == [path]


def test_keeps_an_existing_file(trained, bundle, tmp_path):
    copy = shutil.copytree(bundle, tmp_path / 'copy')
    with pytest.raises(FileExistsError, match='--force'):
        save_bundle(copy, *trained[:2])
    save_bundle(copy, *trained[:2], labels=['x'] * 8, replace=True)
    assert load_bundle(copy).labels == ['x'] * 8
    for name in 'other', 'other.zip':
        (tmp_path / name).mkdir()
        with pytest.raises(FileExistsError):
            save_bundle(tmp_path / name, *trained[:2], replace=True)
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        'copy', 'other', 'other.zip']


@pytest.mark.parametrize('name', ['b', 'b.zip'])
def test_killed_and_simultaneous_writers(trained, tmp_path, name):
    with lock_folder(tmp_path / f'.{name}.part'):
        child = os.fork()
        if not child:
            try:
                save_bundle(tmp_path / name, *trained[:2])
            except ValueError as error:
                os._exit(7 * ('in use by another run' in str(error)))
            os._exit(0)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    child = os.fork()
    if not child:
        Path.replace = lambda *_: os._exit(9)
        save_bundle(tmp_path / name, *trained[:2])
    os.waitpid(child, 0)
    assert len([*tmp_path.iterdir()]) == 1
    path = save_bundle(tmp_path / name, *trained[:2])
    assert [*tmp_path.iterdir()] == [path]


def compress(path):
    with zipfile.ZipFile(path, 'w', zipfile.ZIP_DEFLATED) as archive:
        archive.writestr('bundle.json', '{}')


def change_weights(path):
    weights = load_file(path / 'model.safetensors')
    weights['backbone.norm.weight'][0] += 1
    save_file(weights, path / 'model.safetensors')


@pytest.mark.parametrize('damage, error', [
    *((text, 'bundle.json .*a.b is damaged') for text in (
        '', '[]', '{"format": 1}', '{"format": "x"}', '[' * 10**5)),
    ('{"format": 2}', 'format 2.*update mmvidattn'),
    (lambda path: (path / 'bundle.json').unlink(), 'bundle.json'),
    (lambda path: (path / 'model.safetensors').unlink(), 'model.safetensors'),
    (change_weights, 'SHA-256'), (compress, 'compressed'),
    (lambda path: path.write_bytes(b'no zip'), 'a.zip is damaged')],
    ids=lambda x: str(x)[:14])
def test_damaged_files_are_refused(bundle, tmp_path, damage, error):
    path = tmp_path / ('a.zip' if 'zip' in error or damage is compress
                       else 'a.b')
    if path.suffix == '.b':
        shutil.copytree(bundle, path)
    if isinstance(damage, str):
        (path / 'bundle.json').write_text(damage)
    else:
        damage(path)
    with pytest.raises(ValueError, match=error):
        load_bundle(path).load_weights()


@pytest.mark.parametrize('part, error', [
    *((dict(type=kind), 'type=') for kind in (
        'antigravity', 'mmpretrain.ResNet', ['ResNet3d'], None, 'LFB',
        'BeitModel3D', 'DecordInit/x', 'TorchVisionWrapper')),
    ([[dict(type='Resize')], [dict(type='Flip')]], 'type='),
    (dict(type='Recognizer3D', _scope_='mmdet'), "_scope_='mmdet'"),
    (dict(type='DecordInit', io_backend='memcached', sys_path='x'),
     'io_backend|sys_path'),
    (dict(type='Resize', scale=8, resize_type='Resize'), 'resize_type'),
    (dict(type='PackActionInputs', collect_keys=['x']), 'collect_keys')],
    ids=str)
def test_names_only_listed_classes_and_options(part, error, monkeypatch):
    """tests/tools/test_hostile_bundles.py attacks each key of a config."""
    monkeypatch.setitem(sys.modules, 'antigravity', None)
    with pytest.raises(ValueError, match=f'b is refused: .*(?:{error})'):
        check_config(dict(model=dict(part=part)), 'b')


def test_custom_class_must_be_imported(trained, tmp_path):
    from mmvidattn.backbones import LinearVideoTransformer

    @MODELS.register_module(name='OwnBackbone')
    class OwnBackbone(LinearVideoTransformer):
        pass

    config = tmp_path / 'config.py'
    config.write_text(f'_base_ = {str(trained[0])!r}\n'
                      'model = dict(backbone=dict(type="OwnBackbone"))\n')
    path = save_bundle(tmp_path / 'own', config, trained[1])
    assert type(mmvidattn.get_model(path).backbone) is OwnBackbone
    del MODELS.module_dict['OwnBackbone']
    with pytest.raises(ValueError, match='OwnBackbone.*import its module'):
        load_bundle(path)


def test_release_on_a_full_disk_is_one_line(tmp_path):
    model = torch.nn.Linear(400, 400)
    model.cfg, model.dataset_meta = Config(), dict(classes=['a', 'b'])
    with small_disk(100_000), pytest.raises(
            SystemExit, match='error: cannot write .*a.pth and '
            '.*a.safetensors: ') as stop, one_line_errors():
        save_release(model, {
            suffix: tmp_path / f'a{suffix}' for suffix in SUFFIXES})
    assert len(str(stop.value).splitlines()) == 1
    assert not [*tmp_path.iterdir()]
