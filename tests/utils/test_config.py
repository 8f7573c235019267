# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import copy

import pytest
from mmengine.config import Config

from mmvidattn.utils.config import change

STEPS = [dict(type='Open'), dict(type='Sample', clip_len=8, interval=2),
         dict(type='Crop', size=224), dict(type='Flip'), dict(type='Crop')]


def test_changes_options_of_the_named_step_only():
    before = copy.deepcopy(STEPS)
    got = change(STEPS, Sample=dict(clip_len=16, test_mode=True), Flip={})
    assert got[1] == dict(
        type='Sample', clip_len=16, interval=2, test_mode=True)
    assert got[:1] + got[2:] == STEPS[:1] + STEPS[2:]
    got[0]['type'] = 'other'
    assert STEPS == before


def test_leaves_out_and_replaces_a_step():
    options = dict(_delete_=True, type='Stretch', size=2)
    assert change(STEPS, Open=None, Sample=options, Flip=None) == [
        dict(type='Stretch', size=2), STEPS[2], STEPS[4]]
    assert options['_delete_']
    assert change(STEPS, Sample=dict(type='Spread'))[1] == dict(
        type='Spread', clip_len=8, interval=2)


@pytest.mark.parametrize('name, count', [('Smaple', 0), ('Crop', 2)])
def test_a_type_that_is_not_there_once_is_an_error(name, count):
    with pytest.raises(ValueError) as error:
        change(STEPS, **{name: None})
    message = str(error.value)
    assert f'cannot change {name}' in message and f'got {count}' in message
    assert all(step['type'] in message for step in STEPS)


def test_serves_a_config_file_that_is_changed_and_dumped(tmp_path):
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
