# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Commands with --engine local: the same results as without it."""
import numpy as np
import pyarrow.parquet
import pytest
import torch
from live_fixtures import write_tsn

import mmvidattn
from mmvidattn.apis import VideoClassifier
from mmvidattn.commands.extract_features import Extractor
from mmvidattn.datasets.broken_files.check import check_files


@pytest.fixture(scope='module')
def folder(motion_dir, tmp_path_factory):
    """Folder with three videos, one in a subfolder, and a broken one."""
    path = tmp_path_factory.mktemp('videos')
    (path / 'sub').mkdir()
    for i, name in enumerate(('a.mp4', 'sub/a.mp4', 'c.mp4')):
        (path / name).write_bytes(
            (motion_dir / f'val/{i:06}.mp4').read_bytes())
    (path / 'broken.mp4').write_bytes(b'no video')
    return path


def read(path):
    return {row['name']: row
            for row in pyarrow.parquet.read_table(path).to_pylist()}


def test_features_are_those_of_a_plain_run(run_main, run_tool, folder,
                                           tmp_path, capsys):
    torch.manual_seed(0)
    config = write_tsn(tmp_path / 'tsn.py', False)
    checkpoint = tmp_path / 'tsn.pth'
    torch.save(dict(state_dict=mmvidattn.get_model(config).state_dict()),
               checkpoint)
    # In a separate program, because it forks.
    args = ('extract-features', folder, tmp_path / 'out', config,
            '--checkpoint', checkpoint, '--device', 'cpu')
    done = run_tool(*args, '--engine', 'local', '--processes', 2,
                    '--shard-size', 2, cwd=tmp_path)
    assert done.returncode == 1, done.stderr
    assert '3 videos are ok, 1 failed' in done.stdout
    rows = read(tmp_path / 'out/catalog.parquet')
    assert [*rows] == ['a', 'broken', 'c', 'sub_a']
    assert rows['broken']['status'] == 'failed' and rows['broken']['reason']
    extractor = Extractor(dict(
        config=str(config), checkpoint=str(checkpoint), device='cpu',
        cfg_options=None, threads=1, rate=4., flow=None, clip_len=None,
        frame_interval=1, layer=None, batch_size=16))
    for name, row in rows.items():
        if name == 'broken':
            continue
        expected = extractor(folder / f'{name.replace("_", "/")}.mp4')
        features = np.load(tmp_path / 'out' / row['file'])
        np.testing.assert_allclose(features, expected, rtol=1e-5, atol=1e-6)
        assert row['shape'] == [*features.shape]
    # A plain run continues in the same folder, and the other way round.
    with pytest.raises(SystemExit, match='broken.mp4'):
        run_main(*args)
    assert '0 videos written, 3 existed already, 1 failed' in (
        capsys.readouterr().out)


def test_features_in_parquet(run_tool, folder, tmp_path):
    config = write_tsn(tmp_path / 'tsn.py', False)
    (tmp_path / 'list.txt').write_text(f'{folder}/a.mp4\n{folder}/c.mp4\n')
    args = ('extract-features', 'list.txt', 'out', config, '--device', 'cpu',
            '--engine', 'local')
    done = run_tool(*args, '--store', 'parquet', cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    rows = read(tmp_path / 'out/parts')
    assert {*rows} == {'a', 'c'}
    for row in rows.values():
        assert row['shape'][1] == 512
        assert np.isfinite(np.reshape(row['values'], row['shape'])).all()
    assert 'values' not in read(tmp_path / 'out/catalog.parquet')['a']
    done = run_tool(*args, cwd=tmp_path)
    assert 'store was parquet and now is None' in done.stderr


def test_predictions(run_tool, folder, small_config, small_checkpoint,
                     tmp_path):
    done = run_tool('predict', folder, small_config, small_checkpoint,
                    '--engine', 'local', '--processes', 2, '--out', 'out',
                    '--device', 'cpu', cwd=tmp_path)
    assert done.returncode == 1, done.stderr
    assert f'{folder}/broken.mp4: ' in done.stderr
    rows = read(tmp_path / 'out/parts')
    classifier = VideoClassifier(small_config, small_checkpoint)
    for name, row in rows.items():
        if name == 'broken':
            assert row['label'] is row['values'] is None and row['reason']
            continue
        expected = classifier(folder / f'{name.replace("_", "/")}.mp4')
        assert row['label'] == expected.predictions[0].label
        np.testing.assert_allclose(row['values'], expected.probabilities,
                                   atol=1e-6)
        assert row['score'] == max(row['values'])
        assert row['shape'] == [len(row['values'])]


def test_checks(run_main, folder, tmp_path, monkeypatch, capsys):
    names = ['a.mp4', 'broken.mp4', 'sub/a.mp4', 'none.mp4']
    (tmp_path / 'list.txt').write_text(
        ''.join(f'{name} {i}\n' for i, name in enumerate(names)))
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit, match='broken.mp4: .*none.mp4: '):
        run_main('check-videos', 'list.txt', '--root', folder, '--workers', 2,
                 '--engine', 'local', '--out', 'out', '--good', 'good.txt')
    assert '2 videos are ok, 2 failed' in capsys.readouterr().out
    rows = read(tmp_path / 'out/catalog.parquet')
    assert [*rows] == names
    bad = dict(check_files([f'{folder}/{name}' for name in names], 1, 60))
    assert {row['source']: row['reason'] for row in rows.values()
            if row['status'] == 'failed'} == bad
    assert (tmp_path / 'good.txt').read_text() == 'a.mp4 0\nsub/a.mp4 2\n'
    # Nothing is left to check.
    with pytest.raises(SystemExit, match='broken.mp4'):
        run_main('check-videos', 'list.txt', '--root', folder, '--workers', 2,
                 '--engine', 'local', '--out', 'out')
    with pytest.raises(SystemExit, match='quick was False and now is True'):
        run_main('check-videos', 'list.txt', '--root', folder, '--quick',
                 '--engine', 'local', '--out', 'out')


@pytest.mark.parametrize('words, error', [
    ('extract-features a b c --shard 0/2', '--shard needs --engine'),
    ('extract-features a b c --store parquet', '--store needs --engine'),
    ('check-videos a --shard-size 3', '--shard-size needs --engine'),
    ('check-videos a --engine local', '--engine needs --out FOLDER'),
    ('predict a --engine local', '--engine needs --out FOLDER'),
    ('predict a --processes 2', '--processes needs --engine'),
    ('predict a --engine local --out b --windows 3',
     '--engine does not support --windows'),
    ('predict a --engine local --out b --json-lines c',
     '--engine does not support --json-lines'),
    ('predict a --engine local --shard 2/2', 'must be I/N with 0 <= I < N'),
    ('predict a --engine local --shard x', 'must be I/N with 0 <= I < N')])
def test_rejects_options(run_main, capsys, words, error):
    with pytest.raises(SystemExit):
        run_main(*words.split())
    assert error in capsys.readouterr().err
