# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import warnings
from pathlib import Path

import pytest
import torch
from mmaction.models import Recognizer3D
from mmengine.config import Config
from mmengine.registry import DefaultScope
from torch import nn

import mmvidattn
from mmvidattn.apis import find_config, load_bundle, load_config, read_labels
from mmvidattn.apis.build_runner import (
    add_default_runtime,
    build_runner,
    load_runner_config,
)
from mmvidattn.apis.labels import find_labels
from mmvidattn.apis.models import find_default
from mmvidattn.commands import make_parser
from mmvidattn.engine import VideoRunner
from mmvidattn.utils import config_folder

ROOT = Path(__file__).resolve().parents[2]
NAME = 'linear_ff_tiny_motion'
DEEPER = {'model.backbone.num_layers': 2}
OLD = dict(runner_type='Mine', default_hooks=dict(
    checkpoint=dict(type='CheckpointHook', interval=7),
    logger=dict(type='MyLogger')))


def test_lists_models_and_ablations():
    names = mmvidattn.list_models()
    assert names == sorted(
        path.stem for path in (ROOT / 'configs').glob('*.py'))
    assert NAME in mmvidattn.list_models('*_motion')
    assert mmvidattn.list_models('testra_table04*') == []
    assert mmvidattn.list_models('testra_table04*', ablations=True) == [
        'testra_table04_box', 'testra_table04_laplace']
    every = mmvidattn.list_models(ablations=True)
    rows = {*every} - {*names}
    assert every == sorted({*every}) and len(rows) == 161
    assert all(find_config(row).stem == row for row in rows)


def test_finds_row_by_name_and_path(tmp_path):
    path = 'configs/linear_ff/ablations/linear_ff_table05_sigmoid.py'
    assert find_config(path) == find_config(Path(path).stem)
    cfg = load_config(path, DEEPER)
    assert Path(cfg.filename).name == Path(path).name
    want = load_config('mmvidattn::linear_ff_ssv2.py').to_dict()
    want['model']['backbone'].update(num_layers=2, attention=dict(
        type='LinearAttention', kernel='sigmoid', offset=0.))
    assert cfg.to_dict() == want
    cfg.dump(tmp_path / 'row.py')
    assert load_config(tmp_path / 'row.py').to_dict() == want


def test_finds_the_configs_of_a_wheel_first(tmp_path, monkeypatch):
    for folder in ('wheel/family/ablations', 'wheel/_base_/models',
                   'checkout'):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / f'{Path(folder).name}.py').write_text(
            "rows = dict(ablations_row=dict(\n"
            "    table='Table 1', row='r', base='a'))\n")
    folders = tmp_path / 'wheel', tmp_path / 'checkout'
    monkeypatch.setattr(config_folder, 'CONFIG_FOLDERS', folders)
    assert mmvidattn.list_models(ablations=True) == ['ablations_row']
    assert find_config('ablations_row').parent.name == 'ablations'
    monkeypatch.setattr(config_folder, 'CONFIG_FOLDERS', folders[1:])
    assert mmvidattn.list_models() == ['checkout']
    monkeypatch.setattr(config_folder, 'CONFIG_FOLDERS', (tmp_path / 'none', ))
    with pytest.raises(FileNotFoundError, match='no configs in .*none'):
        mmvidattn.list_models()


def test_model_is_a_recognizer_in_eval_mode(capsys):
    model = mmvidattn.get_model(NAME, cfg_options=DEEPER)
    assert isinstance(model, Recognizer3D)
    assert not any(module.training for module in model.modules())
    assert model.cfg.model.backbone.num_layers == 2
    clips = torch.randn(2, 3, 3, 8, 64, 64)
    with torch.no_grad():
        logits = model(clips, mode='tensor', stage='head')
        first = model(clips[:1, :1], mode='tensor', stage='head')
    assert logits.shape == (6, 8)
    torch.testing.assert_close(logits[:1], first)
    # init_weights has run: nn.Linear would draw uniformly within 1/8.
    weight = model.cls_head.fc_cls.weight.detach()
    assert weight.std() == pytest.approx(.02, rel=.2)
    assert capsys.readouterr().out == ''
    meta = mmvidattn.get_model(NAME, device='meta', cfg_options=DEEPER)
    assert {p.device.type for p in meta.parameters()} == {'meta'}


def test_loads_the_checkpoint(tmp_path, monkeypatch):
    saved, path = mmvidattn.get_model(NAME, cfg_options=DEEPER), (
        tmp_path / 'model.pth')
    torch.save(dict(state_dict=saved.state_dict(), meta=dict(
        dataset_meta=dict(classes=['a', 'b']))), path)
    cfg = load_config(NAME)
    before = cfg.to_dict()
    for name in NAME, ROOT / f'configs/{NAME}.py', cfg:
        if name is cfg:
            # A loaded config is not read again.
            monkeypatch.setattr(Config, 'fromfile', None)
        model = mmvidattn.get_model(name, path, cfg_options=DEEPER)
        for key, value in saved.state_dict().items():
            assert torch.equal(model.state_dict()[key], value), key
        assert model.dataset_meta == dict(classes=['a', 'b'])
    with pytest.raises(ValueError, match='model.pth does not fit the model'):
        mmvidattn.get_model(cfg, path)
    weights = load_bundle(find_default(NAME)).load_weights()
    model = mmvidattn.get_model(cfg, 'default')
    assert torch.equal(model.cls_head.fc_cls.weight,
                       weights['cls_head.fc_cls.weight'])
    assert before == cfg.to_dict()


def test_compiles_the_backbone(monkeypatch):
    """tests/backbones/test_backbones.py compares the outputs."""
    compiled = []
    monkeypatch.setattr(nn.Module, 'compile', lambda x: compiled.append(x))
    mmvidattn.get_model(NAME, device='meta')
    assert not compiled
    model = mmvidattn.get_model(NAME, device='meta', compile=True)
    assert compiled == [model.backbone]


def test_labels_are_from_checkpoint_then_config(motion_dir, monkeypatch):
    model = mmvidattn.get_model(NAME, device='meta')
    metainfo = model.cfg.test_dataloader.dataset.metainfo
    monkeypatch.setitem(metainfo, 'classes', str(motion_dir / 'none.txt'))
    monkeypatch.setitem(model.cfg.train_dataloader.dataset, 'metainfo', {})
    assert find_labels(model) == []
    metainfo.classes = str(motion_dir / 'label_map.txt')
    names = (motion_dir / 'label_map.txt').read_text().splitlines()
    assert find_labels(model) == names
    monkeypatch.setitem(model.cfg.train_dataloader.dataset, 'metainfo',
                        dict(classes=['of', 'training']))
    assert find_labels(model) == names
    # The author of a checkpoint could otherwise make us read any file.
    monkeypatch.setattr(model, 'dataset_meta', dict(
        classes=str(motion_dir / 'label_map.txt')))
    metainfo.classes = []
    assert find_labels(model) == []
    monkeypatch.setattr(model, 'dataset_meta', dict(classes=('a', 'b\x1b')))
    assert find_labels(model) == ['a', 'b\\x1b']


@pytest.mark.parametrize('encoding', ['utf-8', 'utf-8-sig'])
def test_reads_one_printable_label_per_line(tmp_path, encoding):
    (tmp_path / 'names.txt').write_text(
        'walk the dog\n\n run \na\x1b[31m\n跳\u2028\x9b1m\n', encoding)
    assert read_labels(tmp_path / 'names.txt') == [
        'walk the dog', 'run', 'a\\x1b[31m', '跳\\u2028\\x9b1m']


def test_default_runtime_completes_hooks_of_a_config(tmp_path):
    path = tmp_path / 'mine.py'
    path.write_text('default_hooks = dict(checkpoint=dict(interval=7))')
    words = [str(path), '--default-runtime']
    cfg = load_runner_config(make_parser('train').parse_args(words))
    assert cfg.default_hooks.checkpoint == dict(
        type='AtomicCheckpointHook', interval=7)
    with pytest.raises(ValueError, match='checkpoint has no type'):
        load_runner_config(make_parser('train').parse_args(words[:1]))


def test_default_runtime_keeps_options():
    cfg = Config({})
    add_default_runtime(cfg)
    assert cfg.runner_type == 'VideoRunner'
    assert cfg.default_hooks.nan_guard.type == 'SkipNanStepsHook'
    cfg = Config(OLD)
    add_default_runtime(cfg)
    assert cfg.runner_type == 'Mine'
    assert cfg.default_hooks.checkpoint == dict(
        type='AtomicCheckpointHook', interval=7)
    assert cfg.default_hooks.logger == dict(type='MyLogger')


def test_warns_of_keys_that_change_nothing(tmp_path):
    path = tmp_path / 'mine.py'
    path.write_text("_base_ = 'mmvidattn::linear_ff_tiny_motion.py'\n"
                    "data_root = 'mine'\ntrain_cgf = {}\nmodle = {}\n")
    with pytest.warns(UserWarning, match="data_root='mine' .*no path"), \
            pytest.warns(UserWarning, match='train_cgf .*mean train_cfg'), \
            pytest.warns(UserWarning, match='modle .*mean model'):
        load_runner_config(make_parser('train').parse_args([str(path)]))
    # Options may leave a variable without effect.
    with warnings.catch_warnings():
        warnings.simplefilter('error')
        load_runner_config(make_parser('train').parse_args([
            NAME, '--cfg-options', 'train_dataloader.dataset.pipeline.1.'
            'clip_len=4', 'visualizer.vis_backends=[]']))


@pytest.mark.parametrize('added', [{}, dict(runner_type='VideoRunner')])
def test_config_without_runner_type_gets_safe_runner(tmp_path, added):
    cfg = Config(dict(
        model=dict(type='Recognizer2D', cls_head=None, backbone=dict(
            type='ResNet', depth=18, num_stages=1, strides=(1, ),
            dilations=(1, ), out_indices=(0, ))),
        work_dir=str(tmp_path), default_scope='mmaction',
        experiment_name=f'{tmp_path.name}_{len(added)}',
        default_hooks=dict(nan_guard=dict(type='SkipNanStepsHook')), **added))
    # Another library may have left its scope.
    with DefaultScope.overwrite_default_scope('mmengine'):
        runner = build_runner(cfg, strict=False)
    assert type(runner) is VideoRunner
    assert cfg.get('runner_type') == added.get('runner_type')
