# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import numpy as np
import pytest

LENGTHS = dict(one=40, two=24, empty=8)


@pytest.fixture
def features(tmp_path):
    folder = tmp_path / 'features'
    folder.mkdir()
    for video, length in LENGTHS.items():
        np.save(folder / f'{video}.npy', np.zeros((length, 3), np.float32))
    return folder


@pytest.fixture
def write(run_main, features, tmp_path):
    """Write the targets of annotations, given as a path or as rows of csv."""
    def run(form, annotations, *args):
        if isinstance(annotations, str):
            (tmp_path / 'mine.csv').write_text(annotations)
            annotations = tmp_path / 'mine.csv'
        run_main('targets', form, annotations,
                 tmp_path / 'out', '--features', features, *args)
        return tmp_path / 'out'

    return run


def read(out, video, folder='target_perframe'):
    return np.load(out / folder / f'{video}.npy', allow_pickle=False)


CSV = '''video,start,end,label,subset
one,1.0,2.0,run,train
one,2.30,2.74,jump,train
two.mp4,0,6.0,run,val
'''


def test_csv(write):
    out = write('csv', CSV)
    assert (out / 'classes.txt').read_text().split() == [
        'background', 'jump', 'run']
    one = read(out, 'one')
    assert one.shape == (40, 3) and one.dtype == np.uint8
    # At 4 steps per second, 1 s to 2 s are steps 4 to 7, and 2.30 s to 2.74 s
    # are steps 9 and 10 (9.2 to 10.96).
    assert np.flatnonzero(one[:, 2]).tolist() == [4, 5, 6, 7]
    assert np.flatnonzero(one[:, 1]).tolist() == [9, 10]
    assert (one.sum(axis=1) == 1).all()
    assert read(out, 'two')[:, 2].all()
    assert read(out, 'empty')[:, 0].all()
    assert (out / 'train.txt').read_text() == 'one\n'
    assert (out / 'val.txt').read_text() == 'two\n'
    for name, counts in dict(train=[0, 1, 1], val=[0, 0, 1]).items():
        assert np.loadtxt(out / f'{name}_class_counts.txt').tolist() == counts


def test_classes_and_targets_of_an_earlier_run_are_kept(write):
    """Otherwise the targets of two lists would have different classes."""
    val = 'video,start,end,label,subset\nempty,1,2,run,test\n'
    out = write('csv', CSV)
    before = read(out, 'one').tolist()
    with pytest.raises(SystemExit, match='classes.txt has 3 classes '):
        write('csv', val)
    assert read(out, 'empty')[:, 0].all()
    write('csv', val, '--classes', out / 'classes.txt')
    # A video without segments receives some.
    assert np.flatnonzero(read(out, 'empty')[:, 2]).tolist() == [4, 5, 6, 7]
    assert (out / 'test.txt').read_text() == 'empty\n'
    assert np.loadtxt(out / 'test_class_counts.txt').tolist() == [0, 0, 1]
    args = ('csv', 'video,start,end,label,subset\none,1,2,jump,more\n',
            '--classes', out / 'classes.txt')
    with pytest.raises(SystemExit, match='one.npy already exists'):
        write(*args)
    assert read(out, 'one').tolist() == before
    write(*args, '--force')
    assert np.flatnonzero(read(out, 'one')[:, 1]).tolist() == [4, 5, 6, 7]


@pytest.mark.parametrize('text, error', [
    ('one,-1,1,run\n', 'line 2: a segment must have 0 <= start < end'),
    ('none,0,1,run\n', 'segments of none, but .*none.npy'),
    ('one,0,1,rum\n', "got 'rum'; did you mean 'run'"),
    ('one,nan,1,run\n', "line 2: .* got 'nan'"),
    ('', 'has no segments')])
def test_error_names_the_fault(write, tmp_path, capsys, text, error):
    (tmp_path / 'names.txt').write_text('run\njump\n')
    args = ('csv', 'video,start,end,label\n' + text, '--classes',
            tmp_path / 'names.txt')
    with pytest.raises(SystemExit, match=error):
        write(*args)
    if ',-1,' in text or 'none' in text:
        out = write(*args, '--lenient')
        assert 'warning: ' in capsys.readouterr().err
        assert read(out, 'one').shape == (40, 3)


def test_accepts_irregular_segments(write, capsys):
    # An overlap, a segment that ends after the end at 10 s, and one after it.
    out = write('csv', 'video,start,end,label\none,0,2,run\none,1,3,run\n'
                'one,9.5,11,run\none,10,11,run\n')
    assert (': 1 video, 4 segments (1 cut at the end of one, 1 dropped after '
            'the end of one); '
            ) in capsys.readouterr().out
    assert np.flatnonzero(read(out, 'one')[:, 1]).tolist() == [
        *range(12), 38, 39]
    assert np.loadtxt(out / 'all_class_counts.txt').tolist() == [0, 3]


def test_transposed_features_are_refused(write, features):
    for video, length in LENGTHS.items():
        np.save(features / f'{video}.npy', np.zeros((3, length), np.float32))
    with pytest.raises(SystemExit, match='one.npy must have the shape '
                       r'.steps, width.*, got .3, 40., whose transposition'):
        write('csv', CSV)
