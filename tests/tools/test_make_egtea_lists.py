# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import pytest

TOOL = 'data/egtea/make_lists.py'
CLIPS = {
    'OP01-R01-PastaSalad':
    'OP01-R01-PastaSalad-1002316-1004005-F024051-F024101',
    'P02-R03-BaconAndEggs': 'P02-R03-BaconAndEggs-9-12-F000001-F000031',
}


@pytest.fixture
def root(tmp_path):
    folder = tmp_path / 'action_annotation'
    folder.mkdir()
    first, second = CLIPS.values()
    (folder / 'train_split1.txt').write_text(f'{first} 3 1 2 5\n\n')
    (tmp_path / 'videos').mkdir()
    (tmp_path / 'videos/P02-R03-BaconAndEggs.mp4').touch()
    (folder / 'test_split1.txt').write_text(f'{second} 1 1 2\n')
    (folder / 'action_idx.txt').write_text(
        'Put eating_utensil 2\nInspect/Read recipe 1\nTake egg 3\n')
    clip = tmp_path / f'cropped_clips/OP01-R01-PastaSalad/{first}.mp4'
    clip.parent.mkdir(parents=True)
    clip.touch()
    return tmp_path


def test_writes_the_lists_that_the_config_reads(run_main, root, capsys):
    run_main(TOOL, root)
    from mmvidattn.apis import load_config
    cfg = load_config('laps_visformer_h_egtea')
    for split, (session, name), times, label in zip(
            ('train', 'val'), CLIPS.items(), ('1002.316,1004.005',
                                              '0.009,0.012'), (2, 0)):
        dataset = cfg[f'{split}_dataloader'].dataset
        path = root / dataset.ann_file
        assert path.read_text() == (
            f'video,start,end,label\n{session},{times},{label}\n')
        assert dataset.data_prefix.video == 'videos'
        assert path.with_suffix('.txt').read_text() == (
            f'{session}/{name}.mp4 {label}\n')
    assert (root / 'label_map.txt').read_text().splitlines() == [
        'Inspect/Read recipe', 'Put eating_utensil', 'Take egg']
    said = capsys.readouterr().out.splitlines()
    assert said[0].endswith('egtea_train_split1.txt: 1 clips, 1 classes')
    assert said[1].endswith(
        'egtea_train_split1.csv: 1 segments of 1 videos; 1 videos are '
        'missing, such as OP01-R01-PastaSalad.mp4')
    assert '1 clips are missing, such as P02-R03-BaconAndEggs/' in said[2]
    assert said[3].endswith('egtea_val_split1.csv: 1 segments of 1 videos')


@pytest.mark.parametrize('line, message', [
    ('clip 1', "'clip' is no name of a clip"),
    ('OP01-R01-A-x-2-F1-F2 1', 'is no name of a clip'),
    ('OP01-R01-A-1-2-F1-F2', 'line 1: expected a clip and its action'),
    ('OP01-R01-A-1-2-F1-F2 0', 'line 1: expected'),
    ('OP01-R01-A-1-2-F1-F2 x', 'line 1: expected')])
def test_rejects_other_lists(run_main, root, line, message):
    (root / 'action_annotation/train_split1.txt').write_text(line)
    with pytest.raises(SystemExit, match=message):
        run_main(TOOL, root)


def test_says_what_to_download(run_main, tmp_path):
    with pytest.raises(SystemExit, match='no file .*train_split1.txt; see '):
        run_main(TOOL, tmp_path)
