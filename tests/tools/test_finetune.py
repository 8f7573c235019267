# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import csv
import json
import re
import shutil
from pathlib import Path

import cv2
import decord
import numpy as np
import pytest
import torch
from helpers import read_scalars
from safetensors.torch import load_file

import mmvidattn
from mmvidattn.commands import finetune, main, make_parser

FILES = {'best.pth', 'best.safetensors', 'bundle', 'config.py',
         'confusion.png', 'curves.png', 'data', 'finetune.json',
         'metrics.json', 'mistakes.png', 'run'}
CLASSES = ['go left é', 'go $up$']


@pytest.fixture(scope='module')
def videos(make_classes, tmp_path_factory):
    """Two classes of three videos, with blanks, accents and $ in names."""
    return make_classes(tmp_path_factory.mktemp('mes vidéos') / 'à', CLASSES)


@pytest.fixture
def begin(small_config, small_checkpoint, videos, tmp_path, monkeypatch):
    """Run the command in this process, and return the work folder."""

    config = tmp_path / 'small.py'
    config.write_text(f"""
_base_ = '{small_config}'
default_hooks = dict(logger=dict(interval=100))
""")

    def run(*options, source=videos, weights=True, out='öut'):
        monkeypatch.setattr('mmvidattn.finetune.clips.MIN_STEPS', 4)
        main(['finetune', *map(str, (
            source, '--model', config, '--work-dir', tmp_path / out,
            '--workers', 0, '--epochs', 1,
            *(['--weights', small_checkpoint] if weights else []),
            *options))])
        return tmp_path / out

    return run


def check_files(out):
    assert {path.name for path in out.iterdir()} == FILES
    # Readable by those who may read any new file.
    (out / 'data/new').touch()
    mode = (out / 'data/new').stat().st_mode & 0o044
    for path in out.rglob('*'):
        assert path.stat().st_mode & 0o044 == mode, path
    for path in out.glob('*.png'):
        assert cv2.imread(str(path)).std() > 1, path
    weights = torch.load(out / 'best.pth', weights_only=True)
    safe = load_file(out / 'best.safetensors')
    assert weights['state_dict'].keys() == safe.keys()
    assert all(torch.equal(value, safe[name])
               for name, value in weights['state_dict'].items())
    return weights


def test_writes_all_files_and_resumes(begin, videos, tmp_path, capfd):
    with pytest.raises(SystemExit, match='freeze must be at most 1, .*got 9'):
        begin('--freeze', '9')
    # A corrected command may use the same folder.
    assert not (tmp_path / 'öut/run').exists()
    out = begin()
    printed = capfd.readouterr().out
    weights = check_files(out)
    assert weights['meta']['dataset_meta']['classes'] == sorted(CLASSES)
    assert 'go left é: 3, ' in printed
    assert 'train: 4 videos; val: 2 videos' in printed
    assert ('the start weights have 8 classes, this model has 2') in printed
    assert 'size mismatch' not in printed and 'top5' not in printed
    assert len(printed.splitlines()) < 50
    assert sum(line.startswith('epoch ') for line in printed.splitlines()) == 1
    assert f"mmvidattn predict VIDEO_OR_FOLDER '{out}/bundle'\n" in printed
    window, stride = map(float, re.search(
        r"mmvidattn stream 0 '.*/bundle' --seconds (\S+) --stride (\S+)\n",
        printed).groups())
    assert stride == pytest.approx(window / 4, rel=.1)
    assert f"mmvidattn export '{out}/bundle' model.onnx" in printed

    metrics = json.loads((out / 'metrics.json').read_text('utf-8'))
    model = mmvidattn.get_model(out / 'config.py', out / 'best.pth')
    lines = (out / 'data/val.txt').read_text('utf-8').splitlines()
    hits = []
    for name, label in (line.rsplit(' ', 1) for line in lines):
        # The prediction averages the views of the test pipeline.
        best, *_ = mmvidattn.VideoClassifier(model)(videos / name).predictions
        hits.append(best.label == sorted(CLASSES)[int(label)])
    assert metrics['top1'] == sum(hits) / len(hits)
    assert len(metrics['mistakes']) == len(hits) - sum(hits)
    assert [one['videos'] for one in metrics['classes']] == [1, 1]

    # Training has finished; resume with a config that the user changed.
    config = out / 'config.py'
    text = config.read_text('utf-8')
    for name in 'max_epochs', 'end':
        assert f'{name}=1,' in text
        text = text.replace(f'{name}=1,', f'{name}=2,')
    config.write_text(text, 'utf-8')
    (out / 'metrics.json').unlink()
    begin()
    assert f'{out}: resuming with its lists' in capfd.readouterr().out
    check_files(out)
    # Each step is logged, because a short run may end before an epoch does.
    assert [log['epoch'] for log in read_scalars(out) if 'loss' in log] == [
        1] * 4 + [2] * 4
    assert (out / 'run/epoch_2.pth').is_file()
    # Changed options are rejected.
    with pytest.raises(SystemExit, match='balance was none, and now is focal'):
        begin('--balance', 'focal')


def length_of(path):
    reader = decord.VideoReader(str(path), num_threads=1)
    return len(reader) / reader.get_avg_fps()


def test_segments_train_without_cutting(begin, videos, tmp_path, capfd):
    rows = []
    for path in videos.rglob('*.mp4'):
        middle = length_of(path) / 2
        rows += [(path, path.parent.name, 0, middle),
                 (path, path.parent.name, middle, 99)]
    rows.append((*rows[0][:2], 50, 60))
    source = tmp_path / 'own, list.csv'
    with open(source, 'w', encoding='utf-8') as file:
        csv.writer(file).writerows([('file', 'label', 'start', 'stop'), *rows])
    before = {*videos.rglob('*')}
    out = begin('--lora', 2, '--balance', 'sampler', '--layer-decay', 0.5,
                source=source)
    weights = check_files(out)
    assert not any('lora' in name for name in weights['state_dict'])
    assert any('lora' in name for name in torch.load(
        out / 'run/epoch_1.pth')['state_dict'])
    printed = capfd.readouterr().out
    assert re.search('segments: 6 cut at the end of .*/a 1.mp4 and others, '
                     '1 dropped after the end of .*.mp4\n', printed)
    assert 'train: 8 videos; val: 4 videos' in printed
    lists = {name: [*csv.DictReader(open(out / f'data/{name}.csv'))]
             for name in ('train', 'val')}
    files = {name: {row['video'] for row in side}
             for name, side in lists.items()}
    assert not files['train'] & files['val']
    found = sorted((row['video'], float(row['start']), float(row['end']))
                   for side in lists.values() for row in side)
    for path in videos.rglob('*.mp4'):
        (begin, middle), (same, end) = [
            row[1:] for row in found if row[0] == str(path)]
        length = length_of(path)
        assert begin == 0 and middle == same
        assert (middle, end) == pytest.approx((length / 2, length), abs=.01)
    # The length of windows in a stream.
    notes = json.loads((out / 'finetune.json').read_text('utf-8'))
    assert notes['seconds'] == pytest.approx(np.median([
        row[2] - row[1] for row in found if row[0] in files['train']]),
        rel=.01)
    assert before == {*videos.rglob('*')}
    assert not [path for path in out.rglob('*.mp4')]


def test_computes_features_of_a_frozen_backbone_once(begin, videos, capfd):
    out = begin('--freeze', 'backbone', '--epochs', 2)
    check_files(out)
    printed = capfd.readouterr().out
    assert len(re.findall('^epoch ', printed, re.M)) == 2
    # Training uses one view; validation and test use six.
    model = mmvidattn.get_model(out / 'config.py', out / 'best.pth')
    stored = {split: load_file(out / f'data/{split}.safetensors')
              for split in ('train', 'val')}
    lines = {split: (out / f'data/{split}.txt').read_text('utf-8').splitlines()
             for split in stored}
    for split, views in ('train', 1), ('val', 6):
        labels = [int(line.rsplit(' ', 1)[1]) for line in lines[split]]
        assert stored[split]['labels'][:, 0].tolist() == labels
        assert stored[split]['features'].shape[:2] == (len(labels), views)
    # Head and stored features give the predictions of the whole model.
    classifier = mmvidattn.VideoClassifier(model)
    scores = [sorted(
        classifier(videos / line.rsplit(' ', 1)[0]).predictions,
        key=lambda one: one.index) for line in lines['val']]
    with torch.no_grad():
        logits = torch.stack([model.cls_head(views).mean(0)
                              for views in stored['val']['features']])
    torch.testing.assert_close(
        logits.softmax(-1),
        torch.tensor([[one.score for one in video] for video in scores]),
        rtol=1e-4, atol=1e-5)


def test_several_labels_per_video(begin, videos, tmp_path, capfd):
    rows = [(videos / name / f'a {i}.mp4', label, split)
            for i, split in enumerate(('train', 'val', 'test'))
            for name in CLASSES for label in (name, f'{i} {name[3:5]}', 'any')
            if split == 'train' or not label[0].isdigit()]
    source = tmp_path / 'mine.csv'
    with open(source, 'w', encoding='utf-8') as file:
        csv.writer(file).writerows([('file', 'label', 'split'), *rows])
    with pytest.raises(SystemExit, match='several labels need --multi-label'):
        begin(source=source)
    out = begin('--multi-label', '--loss', 'asymmetric', source=source)
    assert {path.name for path in out.iterdir()} == FILES - {
        'confusion.png', 'mistakes.png'}
    printed = capfd.readouterr().out
    assert re.search(r'^mAP \d.*, 2 videos$', printed, re.M)
    metrics = json.loads((out / 'metrics.json').read_text('utf-8'))
    assert {one['name']: one['videos'] for one in metrics['classes']} == {
        '0 $u': 0, '0 le': 0, 'any': 2, **dict.fromkeys(CLASSES, 1)}
    any_class, = (one for one in metrics['classes'] if one['name'] == 'any')
    assert any_class['ap'] == 1
    classifier = mmvidattn.VideoClassifier(out / 'bundle')
    found = classifier(videos / CLASSES[0] / 'a 2.mp4', topk=5)
    scores = {one.label: one.score for one in found.predictions}
    # Sigmoids instead of a softmax.
    assert 0 < min(scores.values()) and not 0.99 < sum(scores.values()) < 1.01


def test_every_list_of_the_command_is_used():
    for name in 'abc':
        Path(f'{name}.csv').touch()
    options = finetune.make_options(make_parser('finetune').parse_args(
        ['a.csv', 'b.csv', 'c.csv']))
    assert [options.source, *options.more] == [*map(Path, (
        'a.csv', 'b.csv', 'c.csv'))]


def test_dry_run_prints_notes_and_the_config(begin, videos, tmp_path, capfd):
    few = tmp_path / 'few'
    for name in CLASSES:
        (few / name).mkdir(parents=True)
        shutil.copy(videos / name / 'a 0.mp4', few / name)
    (few / CLASSES[0] / 'b.mp4').write_text('no video')
    cv2.imwrite(str(few / CLASSES[0] / 'c.png'), np.zeros((64, 64, 3)))
    (few / CLASSES[0] / 'c.png').rename(few / CLASSES[0] / 'c.mp4')
    out = begin('--dry-run', '--epochs', 'auto', source=few, weights=False)
    printed = capfd.readouterr().out
    assert not out.exists()
    for words in ('2 unreadable videos left out:\n  go left é/b.mp4: ',
                  '  go left é/c.mp4: a single image\n',
                  'note: training starts from random weights',
                  'note: 2 classes with a single video',
                  'note: 2 classes with fewer than 10 training videos',
                  f'video={str(few)!r}'):
        assert words in printed
    compile(printed.partition('\n\n')[2], 'config.py', 'exec')
