# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Commands for many videos; --engine local gives the same results."""
import json
import os
import subprocess
import sys

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


# Run commands in one process, because their imports take seconds, but not in
# the process of the tests, because they fork.
SCRIPT = '''
import json
import sys
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO

import mmvidattn_cli

for words in json.loads(sys.argv[1]):
    out, errors, end = StringIO(), StringIO(), ''
    with redirect_stdout(out), redirect_stderr(errors):
        try:
            mmvidattn_cli.main(words)
        except SystemExit as error:
            end = str(error)
    print(json.dumps([end, out.getvalue(), errors.getvalue()]))
'''


@pytest.fixture(scope='module')
def tsn(tmp_path_factory):
    """Config and checkpoint of a recognizer."""
    torch.manual_seed(0)
    config = write_tsn(tmp_path_factory.mktemp('tsn') / 'tsn.py', False)
    checkpoint = config.with_suffix('.pth')
    torch.save(dict(state_dict=mmvidattn.get_model(config).state_dict()),
               checkpoint)
    return config, checkpoint


@pytest.fixture(scope='module')
def ran(folder, tsn, small_config, small_checkpoint, tmp_path_factory):
    """Run commands on the folder of videos.

    Return the working folder, and a dictionary: by the name of a command its
    error, standard output and standard error.
    """
    cwd = tmp_path_factory.mktemp('corpus')
    (cwd / 'list.txt').write_text(f'{folder}/a.mp4\n{folder}/c.mp4\n')
    plain = 'extract-features', '--device', 'cpu'
    extract = *plain, '--engine', 'local'
    commands = dict(
        plain=(*plain, folder, 'plain', tsn[0], '--checkpoint', tsn[1],
               '--processes', 2),
        features=(*extract, folder, 'features', tsn[0], '--checkpoint',
                  tsn[1], '--processes', 2, '--shard-size', 2),
        parquet=(*extract, 'list.txt', 'parquet', tsn[0], '--store',
                 'parquet'),
        other=(*extract, 'list.txt', 'parquet', tsn[0]),
        predictions=('predict', folder, small_config, small_checkpoint,
                     '--engine', 'local', '--processes', 2, '--out',
                     'predictions', '--device', 'cpu'))
    done = subprocess.run(
        [sys.executable, '-c', SCRIPT, json.dumps(
            [[*map(str, words)] for words in commands.values()])],
        cwd=cwd, capture_output=True, text=True,
        env=dict(os.environ, OMP_NUM_THREADS='1'))
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    return cwd, dict(zip(commands, map(json.loads, lines), strict=True))


def test_features_are_those_of_a_plain_run(run_main, folder, tsn, ran,
                                           monkeypatch, capsys):
    cwd, results = ran
    error, out, _ = results['features']
    assert 'broken.mp4' in error and '3 videos are ok, 1 failed' in out
    rows = read(cwd / 'features/catalog.parquet')
    assert [*rows] == ['a', 'broken', 'c', 'sub_a']
    assert rows['broken']['status'] == 'failed' and rows['broken']['reason']
    config, checkpoint = tsn
    extractor = Extractor(dict(
        config=str(config), checkpoint=str(checkpoint), device='cpu',
        cfg_options=None, threads=1, rate=4., flow=None, clip_len=None,
        frame_interval=1, layer=None, batch_size=16))
    for name, row in rows.items():
        if name == 'broken':
            continue
        expected = extractor(folder / f'{name.replace("_", "/")}.mp4')
        features = np.load(cwd / 'features' / row['file'])
        np.testing.assert_allclose(features, expected, rtol=1e-5, atol=1e-6)
        assert row['shape'] == [*features.shape]
    # A plain run continues in the same folder, and the other way round.
    monkeypatch.chdir(cwd)
    with pytest.raises(SystemExit, match='broken.mp4'):
        run_main('extract-features', folder, 'features', config,
                 '--checkpoint', checkpoint, '--device', 'cpu')
    assert '0 videos written, 3 existed already, 1 failed' in (
        capsys.readouterr().out)


def test_plain_run_skips_bad_videos_and_continues(run_main, folder, tsn, ran,
                                                  monkeypatch, capsys):
    cwd, results = ran
    assert f'{folder}/broken.mp4: ' in results['plain'][0]
    assert '3 videos written, 0 existed already, 1 failed' in (
        results['plain'][1])
    written = sorted((cwd / 'plain').glob('*.npy'))
    assert [p.stem for p in written] == ['a', 'c', 'sub_a']
    before = {p: (p.stat().st_mtime_ns, np.load(p)) for p in written}
    assert all(rows.shape[1] == 512 and np.isfinite(rows).all()
               for _, rows in before.values())
    # The same command continues where it stopped.
    written[1].unlink()
    monkeypatch.chdir(cwd)
    args = ('extract-features', folder, 'plain', tsn[0], '--checkpoint',
            tsn[1], '--device', 'cpu')
    with pytest.raises(SystemExit, match='broken.mp4'):
        run_main(*args)
    assert ('1 videos written, 2 existed already, 1 failed'
            in capsys.readouterr().out)
    assert written[0].stat().st_mtime_ns == before[written[0]][0]
    np.testing.assert_allclose(np.load(written[1]), before[written[1]][1],
                               rtol=1e-5, atol=1e-6)
    with pytest.raises(SystemExit, match='rate was 4.0 and now is 8.0'):
        run_main(*args, '--rate', 8)


def test_features_in_parquet(ran):
    cwd, results = ran
    assert results['parquet'][0] == ''
    rows = read(cwd / 'parquet/parts')
    assert {*rows} == {'a', 'c'}
    for row in rows.values():
        assert row['shape'][1] == 512
        assert np.isfinite(np.reshape(row['values'], row['shape'])).all()
    assert 'values' not in read(cwd / 'parquet/catalog.parquet')['a']
    assert 'store was parquet and now is None' in results['other'][0]


def test_predictions(folder, small_config, small_checkpoint, ran):
    cwd, results = ran
    assert f'{folder}/broken.mp4: ' in results['predictions'][0]
    rows = read(cwd / 'predictions/parts')
    assert {*rows} == {'a', 'broken', 'c', 'sub_a'}
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
