# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import copy

import pytest
from mmengine.config import Config

from mmvidattn.utils.config import change, check_variables, derive

STEPS = [dict(type='Open'), dict(type='Sample', clip_len=8, interval=2),
         dict(type='Crop', size=224), dict(type='Flip'), dict(type='Crop')]


def test_changes_only_the_named_steps():
    before = copy.deepcopy(STEPS)
    got = change(STEPS, Sample=dict(clip_len=16, test_mode=True), Flip={})
    assert got[1] == dict(
        type='Sample', clip_len=16, interval=2, test_mode=True)
    assert got[:1] + got[2:] == STEPS[:1] + STEPS[2:]
    got[0]['type'] = 'other'
    assert STEPS == before


def test_removes_and_replaces_steps():
    options = dict(_delete_=True, type='Stretch', size=2)
    assert change(STEPS, Open=None, Sample=options, Flip=None) == [
        dict(type='Stretch', size=2), STEPS[2], STEPS[4]]
    assert options['_delete_']
    assert change(STEPS, Sample=dict(type='Spread'))[1] == dict(
        type='Spread', clip_len=8, interval=2)


@pytest.mark.parametrize('name, count', [('Smaple', 0), ('Crop', 2)])
def test_rejects_missing_and_repeated_types(name, count):
    with pytest.raises(ValueError) as error:
        change(STEPS, **{name: None})
    message = str(error.value)
    assert f'cannot change {name}' in message and f'got {count}' in message
    assert all(step['type'] in message for step in STEPS)


def test_works_in_a_config_file_that_is_dumped(tmp_path):
    (tmp_path / 'base.py').write_text(f'pipeline = {STEPS}\n')
    (tmp_path / 'child.py').write_text(
        "_base_ = 'base.py'\n\n"
        'from mmvidattn.utils.config import change\n\n'
        'inherited = _base_.pipeline\n'
        'pipeline = change(_base_.pipeline, Sample=dict(clip_len=16))\n'
        'loader = dict(dataset=dict(pipeline=pipeline))\n')
    cfg = Config.fromfile(tmp_path / 'child.py')
    assert cfg.inherited == STEPS and 'change' not in cfg
    assert cfg.pipeline == cfg.loader.dataset.pipeline
    cfg.merge_from_dict({'loader.dataset.pipeline.1.interval': 4})
    cfg.dump(tmp_path / 'dumped.py')
    again = Config.fromfile(tmp_path / 'dumped.py')
    assert again.to_dict() == cfg.to_dict()
    assert again.loader.dataset.pipeline[1] == dict(
        type='Sample', clip_len=16, interval=4)


BASE = dict(
    num_classes=5, num_frames=16, img_size=224, data_root='data/a',
    model=dict(
        backbone=dict(num_frames=None, img_size=None, window=16),
        cls_head=dict(num_classes=None), teacher=dict(num_frames=32)),
    train_pipeline=[
        dict(type='Sample', clip_len=16, interval=224),
        dict(type='Resize', scale=(-1, 256)),
        dict(type='Jitter', scale_range=(0.5, 1.5)),
        dict(type='Crop', size=224), dict(type='Pad', size=16)],
    train_dataloader=dict(dataset=dict(
        ann_file='data/a/x.txt', num_classes=5, pipeline=None)))


def test_derive_fills_in_open_numbers():
    cfg = copy.deepcopy(BASE)
    derive(cfg)
    expected = copy.deepcopy(BASE)
    expected['model']['backbone'].update(num_frames=16, img_size=224)
    expected['model']['cls_head']['num_classes'] = 5
    dataset = expected['train_dataloader']['dataset']
    dataset['pipeline'] = BASE['train_pipeline']
    assert cfg == expected
    check_variables(cfg)


def test_derive_changes_dependent_options():
    cfg = copy.deepcopy(BASE)
    derive(cfg)
    derive(cfg, num_classes=7, num_frames=8, img_size=112, data_root='b/',
           train_pipeline=dict(Sample=dict(interval=2), Jitter=None))
    steps = [
        dict(type='Sample', clip_len=8, interval=2),
        dict(type='Resize', scale=(-1, 128)),
        dict(type='Crop', size=112), dict(type='Pad', size=16)]
    assert cfg == dict(
        num_classes=7, num_frames=8, img_size=112, data_root='b',
        model=dict(
            backbone=dict(num_frames=8, img_size=112, window=16),
            cls_head=dict(num_classes=7), teacher=dict(num_frames=32)),
        train_pipeline=steps,
        train_dataloader=dict(dataset=dict(
            ann_file='b/x.txt', num_classes=7, pipeline=steps)))


def test_derive_keeps_separate_pipeline_of_loader():
    cfg = copy.deepcopy(BASE)
    dataset = cfg['train_dataloader']['dataset']
    dataset['pipeline'] = [dict(type='Own')]
    derive(cfg, train_pipeline=[dict(type='New')])
    dataset = cfg['train_dataloader']['dataset']
    assert dataset['pipeline'] == [dict(type='Own')]
    assert cfg['train_pipeline'] == [dict(type='New')]


@pytest.mark.parametrize('name', ['num_nouns', 'val_pipeline', 'model'])
def test_derive_rejects_unknown_variables(name):
    with pytest.raises(ValueError, match=f'{name}.*num_frames'):
        derive(copy.deepcopy(BASE), **{name: 3})


def test_variables_of_the_file_override_derived_ones(tmp_path):
    (tmp_path / 'base.py').write_text('\n'.join(
        f'{name} = {value}' if not isinstance(value, str)
        else f'{name} = {value!r}' for name, value in BASE.items()))
    (tmp_path / 'child.py').write_text(
        "_base_ = 'base.py'\n\n"
        'from mmvidattn.utils.config import derive\n\n'
        'derive(_base_, num_frames=8)\n'
        'model = dict(backbone=dict(_delete_=True, num_frames=4))\n')
    cfg = Config.fromfile(tmp_path / 'child.py')
    assert cfg.model.backbone == dict(num_frames=4)
    assert cfg.model.cls_head == dict(num_classes=5)
    assert cfg.train_dataloader.dataset.pipeline[0].clip_len == 8
    # A grandchild starts from the variables of its base.
    (tmp_path / 'grandchild.py').write_text(
        (tmp_path / 'child.py').read_text().replace(
            'base.py', 'child.py').replace('num_frames=8', 'num_frames=2'))
    cfg = Config.fromfile(tmp_path / 'grandchild.py')
    assert cfg.num_frames == cfg.train_pipeline[0].clip_len == 2


@pytest.mark.parametrize('variables, message', [
    (dict(num_frames=32), 'num_frames is 32.*16.*num_frames=32'),
    (dict(num_classes=9), 'num_classes is 9.*5.*num_classes=9'),
    (dict(model=BASE['model']), 'num_classes is 5.*num_classes=5'),
    (dict(train_dataloader=BASE['train_dataloader']), 'train_pipeline'),
    (dict(model=None, rows=dict(a=1, b=2)), 'a, b')])
def test_rejects_number_without_effect(variables, message):
    cfg = copy.deepcopy(BASE)
    derive(cfg)
    cfg.update(variables)
    if cfg['model'] is None:
        del cfg['model']
    with pytest.raises(ValueError, match=message):
        check_variables(cfg, 'num_frames = 32\nnum_classes=9')


def test_accepts_options_set_without_variable():
    """Users of mmaction2 override options without the inherited variable."""
    cfg = copy.deepcopy(BASE)
    derive(cfg)
    cfg['model']['cls_head']['num_classes'] = 9
    cfg['train_dataloader']['dataset']['num_classes'] = 9
    check_variables(cfg, "_base_ = 'base.py'\nmodel = dict()")
