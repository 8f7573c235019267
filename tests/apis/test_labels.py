# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import pytest

import mmvidattn
from mmvidattn.apis import read_labels
from mmvidattn.apis.labels import find_labels


@pytest.fixture(scope='module')
def model():
    return mmvidattn.get_model('linear_ff_tiny_motion', device='meta')


def test_labels_are_from_checkpoint_then_config(model, motion_dir,
                                                monkeypatch):
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
