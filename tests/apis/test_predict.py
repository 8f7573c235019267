# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import pytest
import torch
from mmaction.apis import inference_recognizer

import mmvidattn
from mmvidattn.apis import predict_video, read_labels
from mmvidattn.apis.labels import find_labels

NAME = 'linear_ff_tiny_motion'


@pytest.fixture(scope='module')
def model():
    torch.manual_seed(0)
    model = mmvidattn.get_model(
        NAME, cfg_options={'model.backbone.num_layers': 1})
    torch.nn.init.normal_(model.cls_head.fc_cls.weight)
    return model


@pytest.fixture(scope='module')
def video(motion_dir):
    return motion_dir / 'val/000001.mp4'


@pytest.mark.parametrize('average', ['score', 'prob'])
def test_agrees_with_mmaction(model, video, average, monkeypatch):
    monkeypatch.setattr(model.cls_head, 'average_clips', average)
    wanted = inference_recognizer(model, str(video)).pred_score
    if average == 'score':
        wanted = wanted.softmax(0)
    found = predict_video(model, video, topk=8)
    assert [p.score for p in found] == pytest.approx(
        wanted.sort(descending=True).values.tolist())
    assert [p.index for p in found] == wanted.argsort(
        descending=True).tolist()
    assert sum(p.score for p in found) == pytest.approx(1)


@pytest.mark.parametrize('topk, count', [(1, 1), (5, 5), (100, 8)])
def test_returns_topk_or_all_classes(model, video, topk, count):
    assert len(predict_video(model, video, topk)) == count


def test_classes_without_a_name_are_numbered(model, video, monkeypatch):
    monkeypatch.setattr(model, 'dataset_meta', dict(classes=['a', 'b']))
    for p in predict_video(model, video, topk=8):
        assert p.label == ('a', 'b')[p.index] if p.index < 2 else (
            f'class {p.index}')


def test_given_labels_win(model, video, monkeypatch):
    monkeypatch.setattr(model, 'dataset_meta', dict(classes=list('abcdefgh')))
    best, = predict_video(model, video, topk=1, labels=list('ABCDEFGH'))
    assert best.label == 'ABCDEFGH'[best.index]


def test_labels_are_the_checkpoints_then_the_configs(model, motion_dir,
                                                     monkeypatch):
    metainfo = model.cfg.test_dataloader.dataset.metainfo
    monkeypatch.setitem(metainfo, 'classes', str(motion_dir / 'none.txt'))
    monkeypatch.setitem(model.cfg.train_dataloader.dataset, 'metainfo', {})
    assert find_labels(model) == []
    metainfo.classes = str(motion_dir / 'label_map.txt')
    names = (motion_dir / 'label_map.txt').read_text().splitlines()
    assert find_labels(model) == names
    monkeypatch.setattr(model, 'dataset_meta', dict(classes=('a', 'b')))
    assert find_labels(model) == ['a', 'b']


def test_labels_are_one_a_line(tmp_path):
    (tmp_path / 'names.txt').write_text('walk the dog\n\n run \n')
    assert read_labels(tmp_path / 'names.txt') == ['walk the dog', 'run']


def test_labels_have_no_byte_order_mark(tmp_path):
    (tmp_path / 'x.txt').write_text('jump\nrun\n', 'utf-8-sig')
    assert read_labels(tmp_path / 'x.txt') == ['jump', 'run']


def test_missing_video_is_named(model):
    with pytest.raises(FileNotFoundError, match='no video none.mp4'):
        predict_video(model, 'none.mp4')


def test_broken_video_is_named_in_one_line(model, tmp_path):
    (tmp_path / 'bad.mp4').write_bytes(b'no video' * 100)
    with pytest.raises(ValueError, match=r'cannot read .*bad.mp4: .') as info:
        predict_video(model, tmp_path / 'bad.mp4')
    assert '\n' not in str(info.value)
