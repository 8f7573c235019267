# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import pytest
from mmaction.registry import DATASETS
from mmengine.registry import DefaultScope

from mmvidattn.apis import load_config

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
    (folder / 'test_split1.txt').write_text(f'{second} 1 1 2\n')
    (folder / 'action_idx.txt').write_text(
        'Put eating_utensil 2\nInspect/Read recipe 1\nTake egg 3\n')
    clip = tmp_path / f'cropped_clips/OP01-R01-PastaSalad/{first}.mp4'
    clip.parent.mkdir(parents=True)
    clip.touch()
    return tmp_path


def test_writes_the_lists_that_the_config_reads(run_main, root, capsys):
    run_main(TOOL, root)
    cfg = load_config('laps_visformer_h_egtea', {'data_root': str(root)})
    for split, (session, name), label in zip(('train', 'val'), CLIPS.items(),
                                             (2, 0)):
        ann_file = f'egtea_{split}_split1.txt'
        assert (root / ann_file).read_text() == (
            f'{session}/{name}.mp4 {label}\n')
        # By default the config reads segments of long videos, see README.md.
        dataset = cfg[f'{split}_dataloader'].dataset
        dataset.ann_file, dataset.data_prefix.video = ann_file, 'cropped_clips'
        with DefaultScope.overwrite_default_scope('mmaction'):
            info = DATASETS.build(dataset).get_data_info(0)
        assert info['label'] == label
        assert info['filename'] == str(
            root / f'cropped_clips/{session}/{name}.mp4')
    assert (root / 'label_map.txt').read_text().splitlines() == [
        'Inspect/Read recipe', 'Put eating_utensil', 'Take egg']
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].endswith('egtea_train_split1.txt: 1 clips, 1 classes')
    assert '1 clips are missing, such as P02-R03-BaconAndEggs/' in lines[1]


@pytest.mark.parametrize('line, message', [
    ('clip 1', "got 'clip'"),
    ('OP01-R01-A-1-2-F1-F2', 'line 1: expected a clip and its action'),
    ('OP01-R01-A-1-2-F1-F2 0', 'line 1: expected'),
    ('OP01-R01-A-1-2-F1-F2 x', 'line 1: expected')])
def test_rejects_invalid_lists(run_main, root, line, message):
    (root / 'action_annotation/train_split1.txt').write_text(line)
    with pytest.raises(SystemExit, match=message):
        run_main(TOOL, root)


def test_names_the_missing_download(run_main, tmp_path):
    with pytest.raises(SystemExit, match='train_split1.txt; see '):
        run_main(TOOL, tmp_path)
