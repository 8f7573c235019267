# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import builtins
import random
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest

from mmvidattn.corpus.manifest import Item, open_manifest, plan_videos

ROOT = Path(__file__).resolve().parents[2]
MILLION = '''
import resource, sys
from pathlib import Path
from mmvidattn.corpus.manifest import open_manifest
base = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
manifest = open_manifest(Path(sys.argv[1]), [sys.argv[2]], 100)
print(len(manifest), len({item.name for shard in range(manifest.num_shards)
                          for item in manifest.items(shard)}),
      resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
'''


def touch(folder, *names):
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    return folder


def test_names_of_folders_and_files(tmp_path, monkeypatch):
    touch(tmp_path / 'a', 'x.mp4', 'x/y.AVI', 'x/z/w.webm', 'x.md', 'x-.ts')
    touch(tmp_path, 'b/file.v2.mkv')
    monkeypatch.chdir(tmp_path)
    assert plan_videos(['a', Path('b/file.v2.mkv')]) == {
        'a/x-.ts': 'x-', 'a/x.mp4': 'x', 'a/x/y.AVI': 'x_y',
        'a/x/z/w.webm': 'x_z_w', 'b/file.v2.mkv': 'file.v2'}
    monkeypatch.chdir('a')
    assert plan_videos(['.'])['x/z/w.webm'] == 'x_z_w'
    assert plan_videos(['../a/x.mp4', '../a/x.mp4']) == {'../a/x.mp4': 'x'}


def test_order_is_by_folder(tmp_path):
    """pathlib sorts in this order."""
    draw = random.Random(0)
    names = {f'{draw.choice(["", "a/", "a.b/", "a/c/"])}'
             f'{draw.choice("ab.-_ é")}{draw.randrange(50)}.mp4'
             for _ in range(200)}
    touch(tmp_path, *names)
    found = [*plan_videos([tmp_path])]
    assert found == [*map(str, sorted(tmp_path.rglob('*.mp4')))]


@pytest.mark.parametrize('suffix', ['txt', 'csv', 'parquet'])
def test_lists(tmp_path, suffix):
    path = tmp_path / f'list.{suffix}'
    sources = ['day 1/b.mp4', 'day 1/cam/a.mp4', 'day 1/b,c.mp4']
    names = ['b', 'cam_a', 'b,c']
    if suffix == 'txt':
        path.write_text('\n'.join(sources) + '\n\n')
    elif suffix == 'csv':
        path.write_text('label,source\n' + ''.join(
            f'3,"{source}"\n' for source in sources))
    else:
        pa.parquet.write_table(pa.table(dict(source=sources)), path)
    assert plan_videos([path]) == {
        f'{tmp_path}/{source}': name for source, name in zip(sources, names)}
    if suffix != 'txt':
        names = ['one', 'two.x', 'three']
        table = pa.table(dict(name=names, source=sources))
        if suffix == 'csv':
            pa.csv.write_csv(table, path)
        else:
            pa.parquet.write_table(table, path)
        assert [*plan_videos([path]).values()] == names


def test_absolute_paths_in_a_list(tmp_path):
    path = tmp_path / 'list.txt'
    path.write_text('/data/x1/a.mp4\n/data/x2/a.mp4\n')
    assert plan_videos([path]) == {
        '/data/x1/a.mp4': 'x1_a', '/data/x2/a.mp4': 'x2_a'}
    path.write_text('/data/x1/a.mp4\n')
    assert plan_videos([path]) == {'/data/x1/a.mp4': 'a'}


@pytest.mark.parametrize('name, text, error', [
    ('a.csv', 'video\nx.mp4\n', 'must have a column source, got video'),
    ('a.csv', 'source\n', 'lists no videos'), ('a.csv', '', 'column source'),
    ('a.csv', 'source,name\na.mp4,../b\n', "name must be .*'../b'"),
    ('a.csv', 'source,name\na.mp4\n', 'must have 2 columns in each row'),
    ('a.csv', 'source,name\na.mp4,x\n,y\n', 'a path in each row'),
    ('a.csv', 'source,name\na.mp4,x\nb.mp4,x\n',
     'a.mp4 and .*b.mp4 would both have the name x'),
    ('a.txt', '\n', 'lists no videos'), ('b.txt', None, 'does not exist'),
    ('a.txt', 'x/a.mp4\nx_a.mp4\n', 'would both have the name x_a')])
def test_rejects_lists(tmp_path, name, text, error):
    if text is not None:
        (tmp_path / name).write_text(text)
    with pytest.raises(ValueError, match=error):
        plan_videos([tmp_path / name])


def test_manifest_is_written_once(tmp_path, monkeypatch):
    touch(tmp_path / 'videos', *(f'{i}.mp4' for i in range(7)))
    out = tmp_path / 'out'
    out.mkdir()
    monkeypatch.chdir(tmp_path)
    manifest = open_manifest(out, ['videos'], 3)
    assert (len(manifest), manifest.num_shards) == (7, 3)
    assert [manifest.size(shard) for shard in range(3)] == [3, 3, 1]
    assert manifest.items(2) == [Item(f'{tmp_path}/videos/6.mp4', '6', 6)]
    table = pa.parquet.read_table(out / 'manifest.parquet')
    assert table['shard'].to_pylist() == [0, 0, 0, 1, 1, 1, 2]
    assert table['index'].to_pylist() == [*range(7)]
    before = (out / 'manifest.parquet').read_bytes()
    touch(tmp_path / 'videos', '8.mp4')
    assert len(open_manifest(out, ['videos'], 3)) == 7
    assert (out / 'manifest.parquet').read_bytes() == before
    with pytest.raises(ValueError, match='shard_size was 3 and now is 4'):
        open_manifest(out, ['videos'], 4)
    with pytest.raises(ValueError, match='inputs was'):
        open_manifest(out, ['videos/0.mp4'], 3)
    assert [path.name for path in out.iterdir()] == ['manifest.parquet']


def test_names_the_extra_if_pyarrow_is_missing(tmp_path, monkeypatch):
    load = builtins.__import__

    def fail(name, *args, **kwargs):
        if name.startswith('pyarrow'):
            raise ImportError(name)
        return load(name, *args, **kwargs)

    touch(tmp_path, 'a.mp4')
    monkeypatch.setattr(builtins, '__import__', fail)
    with pytest.raises(ImportError, match=r'pip install "mmvidattn\[corpus\]'):
        open_manifest(tmp_path, [tmp_path], 3)


@pytest.mark.slow
def test_a_million_names_need_less_than_a_gigabyte(tmp_path):
    for i in range(1000):
        folder = tmp_path / 'videos' / str(i)
        folder.mkdir(parents=True)
        for j in range(1000):
            (folder / f'{j}.mp4').touch()
    done = subprocess.run(
        [sys.executable, '-c', MILLION, tmp_path, tmp_path / 'videos'],
        cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    count, names, kilobytes = map(int, done.stdout.split())
    assert count == names == 1_000_000
    assert kilobytes < 1e6
