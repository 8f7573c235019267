# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import pytest
import torch
from mmaction.apis import inference_recognizer

import mmvidattn
from mmvidattn.apis import VideoClassifier, predict_video, read_labels
from mmvidattn.apis.labels import find_labels, top_predictions

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
def test_matches_mmaction(model, video, average, monkeypatch):
    monkeypatch.setattr(model.cls_head, 'average_clips', average)
    expected = inference_recognizer(model, str(video)).pred_score
    if average == 'score':
        expected = expected.softmax(0)
    got = predict_video(model, video, topk=8)
    assert [p.score for p in got] == pytest.approx(
        expected.sort(descending=True).values.tolist())
    assert [p.index for p in got] == expected.argsort(
        descending=True).tolist()
    assert sum(p.score for p in got) == pytest.approx(1)


@pytest.mark.parametrize('topk, count', [(1, 1), (5, 5), (100, 8)])
def test_returns_topk_or_all_classes(topk, count):
    result = top_predictions(torch.arange(8.), [], topk)
    assert [p.index for p in result] == list(range(7, 7 - count, -1))


def test_classes_without_a_name_are_numbered(model, video, monkeypatch):
    monkeypatch.setattr(model, 'dataset_meta', dict(classes=['a', 'b']))
    names = ['a', 'b', *(f'class {i}' for i in range(2, 8))]
    for p in predict_video(model, video, topk=8):
        assert p.label == names[p.index]


def test_labels_argument_takes_precedence(model, video, monkeypatch):
    monkeypatch.setattr(model, 'dataset_meta', dict(classes=list('abcdefgh')))
    best, = predict_video(model, video, topk=1, labels=list('ABCDEFGH'))
    assert best.label == 'ABCDEFGH'[best.index]


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
    monkeypatch.setattr(model, 'dataset_meta', dict(classes=('a', 'b')))
    assert find_labels(model) == ['a', 'b']


@pytest.mark.parametrize('as_text', [str, lambda path: f'../{path.name}'])
def test_checkpoint_cannot_name_a_file(model, motion_dir, tmp_path,
                                       monkeypatch, as_text):
    """The author of a checkpoint could otherwise make us read any file."""
    secret = tmp_path / 'secret.txt'
    secret.write_text('password 1234\n')
    (tmp_path / 'here').mkdir()
    monkeypatch.chdir(tmp_path / 'here')
    monkeypatch.setattr(model, 'dataset_meta', dict(classes=as_text(secret)))
    for split in 'test_dataloader', 'train_dataloader':
        monkeypatch.setitem(model.cfg[split].dataset, 'metainfo', {})
    assert find_labels(model) == []
    # The user's config may name a file.
    path = motion_dir / 'label_map.txt'
    monkeypatch.setitem(model.cfg.test_dataloader.dataset, 'metainfo',
                        dict(classes=str(path)))
    assert find_labels(model) == read_labels(path)


def test_labels_are_printable(model, tmp_path, monkeypatch):
    (tmp_path / 'names.txt').write_text('a\x1b[31m\n跳\u2028\x9b1m\n', 'utf-8')
    names = ['a\\x1b[31m', '跳\\u2028\\x9b1m']
    assert read_labels(tmp_path / 'names.txt') == names
    monkeypatch.setattr(model, 'dataset_meta', dict(
        classes=['a\x1b[31m', '跳\u2028\x9b1m']))
    assert find_labels(model) == names


@pytest.mark.parametrize('encoding', ['utf-8', 'utf-8-sig'])
def test_reads_one_label_per_line(tmp_path, encoding):
    (tmp_path / 'names.txt').write_text('walk the dog\n\n run \n', encoding)
    assert read_labels(tmp_path / 'names.txt') == ['walk the dog', 'run']


def test_names_missing_video(model):
    with pytest.raises(FileNotFoundError, match='video none.mp4'):
        predict_video(model, 'none.mp4')


def test_names_broken_video_in_one_line(model, tmp_path):
    (tmp_path / 'bad.mp4').write_bytes(b'no video' * 100)
    with pytest.raises(ValueError, match=r'cannot read .*bad.mp4: .') as info:
        predict_video(model, tmp_path / 'bad.mp4')
    assert '\n' not in str(info.value)


@pytest.mark.parametrize('bad', [torch.nan, torch.inf], ids=str)
def test_rejects_non_finite_scores(model, video, monkeypatch, bad):
    monkeypatch.setattr(model.cls_head.fc_cls.bias, 'data',
                        torch.full((8, ), bad))
    with pytest.raises(ValueError, match='000001.mp4: pred_score .*8 of 8'):
        predict_video(model, video)
    result = VideoClassifier(model)([video, video])
    assert all('pred_score' in each.error for each in result)
    assert not any(each.predictions for each in result)
