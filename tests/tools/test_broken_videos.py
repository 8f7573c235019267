# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Damaged and unusual video files: each is read correctly or rejected."""
from pathlib import Path

import numpy as np
import pytest
from broken_videos import EITHER, READ, REFUSED, write_corpus, write_long
from mmaction.registry import DATASETS

from mmvidattn.utils.video_reader import VideoReader


@pytest.fixture(scope='module')
def corpus(tmp_path_factory):
    folder = tmp_path_factory.mktemp('broken')
    return folder, write_corpus(folder)


def build(folder, names, **options):
    list_file = folder / 'list.txt'
    list_file.write_text(''.join(f'{name} 0\n' for name in names), 'utf-8')
    return DATASETS.build(dict(
        type='CheckedVideoDataset', ann_file=str(list_file),
        data_root=str(folder), **options,
        pipeline=[
            dict(type='VideoReaderInit'),
            dict(type='UniformSample', clip_len=8, test_mode=True),
            dict(type='VideoReaderDecode'),
            dict(type='Resize', scale=(32, 32), keep_ratio=False),
            dict(type='FormatShape', input_format='NCTHW'),
            dict(type='PackActionInputs')]))


def test_each_kind_is_read_right_or_refused(corpus):
    folder, kinds = corpus
    names, wrong = list(kinds), {}
    dataset = build(folder, names, test_mode=True)
    for i, name in enumerate(names):
        try:
            result = tuple(dataset[i]['inputs'].shape)
        except RuntimeError as error:
            result = str(error)
        is_read = result == (1, 3, 8, 32, 32)
        expected = kinds[name] in (EITHER, READ if is_read else REFUSED)
        if not expected or not (
                is_read or f'cannot load {folder / name}' in result):
            wrong[name] = kinds[name], result
    assert not wrong


def test_a_cut_file_is_read_up_to_its_last_complete_frame(corpus, tmp_path):
    folder, _ = corpus
    whole = {name: folder / f'good{name[-4:]}'
             for name in ('cut.avi', 'cut_index_first.mp4')}
    whole['cut_long.mp4'] = write_long(tmp_path / 'a.mp4')
    for name, complete in whole.items():
        frames = list(VideoReader(folder / name).frames())
        assert len(frames) >= 9, name
        expected = VideoReader(complete).get_batch(range(len(frames)))
        np.testing.assert_array_equal(frames, expected, name)


def test_a_file_without_its_beginning_is_named(corpus):
    with pytest.raises(ValueError, match='raw m4v stream; the beginning of'):
        VideoReader(corpus[0] / 'cut_start.mp4')


def test_check_videos_lists_rejected_files(corpus, run_main, capfd):
    folder, kinds = corpus
    names = [name for name in kinds if kinds[name] != EITHER]
    Path('list.txt').write_text(
        ''.join(f'{name};0\n' for name in names), 'utf-8')
    with pytest.raises(SystemExit) as end:
        run_main('check-videos', 'list.txt', '--delimiter', ';', '--root',
                 folder, '--workers', 2, '--timeout', 20, '--out',
                 'bad.tsv', '--good', 'good.txt')
    printed = capfd.readouterr()
    assert end.value.code == 1, printed.err
    bad = {line.split('\t')[0].rsplit('/', 1)[1]
           for line in Path('bad.tsv').read_text('utf-8').splitlines()}
    assert bad == {name for name in names if kinds[name] == REFUSED}
    good = Path('good.txt').read_text('utf-8').splitlines()
    assert good == [f'{name};0' for name in names if name not in bad]
    assert f'{len(bad)} of {len(names)} videos are unreadable' in printed.out
    assert f'{len(names)}/{len(names)}' in printed.err


def test_a_text_file_in_a_test_is_named_or_left_out(
        run_main, small_config, small_checkpoint, motion_dir, capsys):
    Path('notes.txt').write_text('no video')
    lines = (motion_dir / 'val.txt').read_text().splitlines()[:3]
    Path('list.txt').write_text('\n'.join(
        [f'{motion_dir}/{line}' for line in lines] + ['notes.txt 0\n']))
    data = 'test_dataloader.dataset.'
    words = ['test', small_config, small_checkpoint, '--cfg-options',
             f'{data}ann_file={Path.cwd()}/list.txt', f'{data}data_root=.',
             f'{data}data_prefix.video=', 'test_dataloader.num_workers=1']
    with pytest.raises(SystemExit) as end:
        run_main(*words)
    assert str(end.value).startswith(
        'mmvidattn test: error: cannot load ./notes.txt: ')
    assert "on_error to 'skip'" in str(end.value)
    run_main(*words, f'{data}on_error=skip')
    printed = capsys.readouterr()
    assert 'cannot read 1 of 4 videos, which are left out' in (
        printed.out + printed.err)
