# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import json
import shutil

import decord
import pytest
import torch

import mmvidattn
from mmvidattn.visualization import VideoWriter


@pytest.fixture(scope='module')
def clips(motion_dir, tmp_path_factory):
    """Folder with three videos, one in a subfolder, and other files."""
    folder = tmp_path_factory.mktemp('clips')
    (folder / 'sub').mkdir()
    for i, name in enumerate(('a.mp4', 'b.mp4', 'sub/a.MP4')):
        shutil.copy(motion_dir / f'val/{i:06d}.mp4', folder / name)
    (folder / 'notes.txt').write_text('no video')
    # The picture of an earlier prediction does not make it a folder of frames.
    (folder / 'prediction.png').write_bytes(b'')
    return folder


def test_predicts_a_folder(run_main, capsys, clips, small_config,
                           small_checkpoint, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run_main('predict.py', clips, small_config, small_checkpoint, '--out',
             'out', '--json', 'new/out.json', '--device', 'cpu')
    printed = capsys.readouterr()
    assert '100%' in printed.err
    results = json.loads((tmp_path / 'new/out.json').read_text())
    names = ['a.mp4', 'b.mp4', 'sub/a.MP4']
    assert [r['video'] for r in results] == [str(clips / n) for n in names]
    model = mmvidattn.get_model(small_config, small_checkpoint)
    for name, result in zip(names, results):
        expected = mmvidattn.VideoClassifier(model)(clips / name).predictions
        assert [p['label'] for p in result['predictions']] == [
            p.label for p in expected]
        assert [p['score'] for p in result['predictions']] == pytest.approx(
            [p.score for p in expected], abs=1e-5)
        lines = [f'{p.score:6.3f}  {p.label}' for p in expected]
        assert len(lines) == 5
        assert '\n'.join([str(clips / name), *lines]) in printed.out
        before = decord.VideoReader(str(clips / name), num_threads=1)
        after = decord.VideoReader(
            str((tmp_path / 'out' / name).with_suffix('.mp4')), num_threads=1)
        assert len(after) == len(before)


def test_labels_option_overrides_the_checkpoint(
        run_main, clips, small_config, small_checkpoint, tmp_path, capsys):
    names = [f'mine {i}' for i in range(8)]
    (tmp_path / 'labels.txt').write_text('\n'.join(names))
    run_main('predict.py', clips / 'a.mp4', small_config, small_checkpoint,
             '--labels', tmp_path / 'labels.txt')
    lines = capsys.readouterr().out.splitlines()[1:]
    assert len(lines) == 5 and all('  mine ' in line for line in lines)
    scores = [float(line.split()[0]) for line in lines]
    assert scores == sorted(scores, reverse=True) and 0 < sum(scores) <= 1.005


def test_windows_are_written_as_json_lines(run_main, clips, small_config,
                                           small_checkpoint, tmp_path, capsys):
    (tmp_path / 'broken.mp4').write_text('no video')
    with pytest.raises(SystemExit, match='1 of 2 videos failed: .*broken.mp4'):
        run_main('predict.py', tmp_path / 'broken.mp4', clips / 'a.mp4',
                 small_config, small_checkpoint, '--windows', '.4', '--stride',
                 '.3', '--batch-size', '2', '--json-lines',
                 tmp_path / 'new/out.jsonl')
    text = (tmp_path / 'new/out.jsonl').read_text()
    broken, *got = map(json.loads, text.splitlines())
    assert broken['error'].startswith('cannot read ')
    expected = list(mmvidattn.VideoClassifier(
        small_config, small_checkpoint).windows(clips / 'a.mp4', .4, .3))
    assert len(expected) > 2
    for one, other in zip(got, expected, strict=True):
        assert (one['video'], one['start']) == (
            str(clips / 'a.mp4'), other.start)
        assert one['end'] == pytest.approx(other.end, abs=1e-3)
        assert [p['score'] for p in one['predictions']] == pytest.approx(
            [p.score for p in other.predictions], abs=1e-5)
    assert f'{clips}/a.mp4, 0.30 to 0.70 s\n' in capsys.readouterr().out


def test_windows_are_shown_in_the_video(
        run_main, clips, small_config, small_checkpoint, tmp_path, capsys,
        monkeypatch):
    captions = []
    monkeypatch.setattr(VideoWriter, 'write', lambda self, frame, lines: (
        captions.append(lines)))
    run_main('predict.py', clips / 'a.mp4', small_config, small_checkpoint,
             '--windows', '.2', '--stride', '.3', '--out',
             tmp_path / 'out.mp4')
    monkeypatch.undo()
    assert f'written: {tmp_path}/out.mp4\n' in capsys.readouterr().out
    # 22 frames at 25 frames per second; between the windows is a gap.
    expected = [*mmvidattn.VideoClassifier(
        small_config, small_checkpoint).windows(clips / 'a.mp4', .2, .3)]
    for i, lines in enumerate(captions):
        time = i / 25
        window = expected[int((time + 1e-9) // .3)]
        if time < window.end:
            assert lines[0] == f'{window.start:.2f} to {window.end:.2f} s'
            assert lines[1].endswith(window.predictions[0].label)
        else:
            assert lines == [''] * 6
    assert len(captions) == 22 and [''] * 6 in captions
    run_main('predict.py', clips / 'a.mp4', small_config, small_checkpoint,
             '--windows', '.2', '--out', tmp_path / 'out.mp4')
    assert len(decord.VideoReader(str(tmp_path / 'out.mp4'))) == 22
    with pytest.raises(SystemExit, match=r'--out must be an \.mp4 file'):
        run_main('predict.py', clips / 'a.mp4', small_config,
                 small_checkpoint, '--windows', '.2', '--out', 'out.png')


def test_output_has_no_control_sequences(
        run_main, motion_dir, small_config, small_checkpoint, tmp_path,
        capsys):
    """Names of classes and videos are not trusted."""
    model = torch.load(small_checkpoint, weights_only=True)
    model['meta']['dataset_meta']['classes'] = [
        f'class\x1b]0;{i}\x07\x9b2J\u202e' for i in range(8)]
    torch.save(model, tmp_path / 'model.pth')
    shutil.copy(motion_dir / 'val/000001.mp4', tmp_path / 'a\x1b[31m\x9b.mp4')
    (tmp_path / 'b\x1b[2J\x9b.mp4').write_bytes(b'no video' * 99)
    with pytest.raises(SystemExit) as end:
        run_main('predict.py', tmp_path, small_config, tmp_path / 'model.pth',
                 '--json', tmp_path / 'out.json')
    out, error = capsys.readouterr()
    for text in out, error, str(end.value):
        assert not {'\x1b', '\x07', '\x9b', '\u202e'} & set(text)
    assert 'a\\x1b[31m\\x9b.mp4\n' in out and 'class\\x1b]0;' in out
    assert 'cannot read' in error and 'b\\x1b[2J\\x9b.mp4' in error
    assert 'b\\x1b[2J\\x9b.mp4' in str(end.value)
    with pytest.raises(SystemExit, match=r'no\\x1b\[31m\.txt'):
        run_main('predict.py', tmp_path, small_config, tmp_path / 'model.pth',
                 '--labels', 'no\x1b[31m.txt')
