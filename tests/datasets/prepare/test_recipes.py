# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Data roots made from published lists with the command line."""
import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from helpers import small_disk
from mmaction.registry import DATASETS

from mmvidattn.apis import load_config
from mmvidattn.commands import main
from mmvidattn.datasets.annotations.published import (
    THUMOS14,
    TVSERIES,
    TVSERIES_VIDEOS,
    read_thumos14,
)
from mmvidattn.datasets.annotations.segment_csv import read_segment_file
from mmvidattn.datasets.annotations.video_list import read_video_list

LINES = Path(__file__).parents[1] / 'annotations/lines'


def prepare(*args):
    main(['prepare', *map(str, args)])


def write_features(folder, lengths, width=2):
    folder.mkdir(parents=True, exist_ok=True)
    for video, length in lengths.items():
        np.save(folder / f'{video}.npy', np.zeros((length, width), np.uint8))
    return folder


def lines(path):
    return path.read_text().splitlines()


def targets_of(root):
    return {path.name: path.read_bytes()
            for path in (root / 'target_perframe').glob('*.npy')}


VAL = dict(video_validation_0000263=200, video_validation_0000264=1134)
TEST = dict(video_test_0000270=600, video_test_0001081=468,
            video_test_0001292=700)
THUMOS_LENGTHS = VAL | TEST


def test_thumos14(thumos14, tmp_path, capsys):
    rgb = write_features(tmp_path / 'rgb', THUMOS_LENGTHS)
    root = tmp_path / 'val'
    for split in 'test', 'val':
        prepare('thumos14', thumos14, root, '--split', split, '--rgb', rgb)
    assert lines(root / 'classes.txt') == ['background', *THUMOS14]
    assert lines(root / 'val.txt') == [*VAL]
    assert lines(root / 'test.txt') == [*TEST]
    assert (root / 'rgb_kinetics_resnet50').resolve() == rgb
    printed = capsys.readouterr().out
    assert printed.startswith("THUMOS'14 needs\n- the temporal annotation of")
    # One video lasts 176.13 s; its features end after 150 s.
    for text in ('val: 2 videos; the released protocol has 200',
                 f'val: {root}: 2 videos, 4 segments; lists: val.txt (2); ',
                 ': 3 videos, 7 segments (1 cut at the end of video_test_0000'
                 '270, 3 dropped after the end of video_test_0001081 and oth'):
        assert text in printed
    frisbee = np.load(root / 'target_perframe/video_validation_0000264.npy')
    assert frisbee.shape == (1134, 22)
    # 59.4 to 60.7 s, and 61.8 to 64.5 s in two overlapping segments.
    assert np.flatnonzero(frisbee[:, 9]).tolist() == [
        *range(237, 243), *range(247, 258)]
    ambiguous = np.load(root / 'target_perframe/video_test_0001292.npy')
    assert np.flatnonzero(ambiguous[:, 21]).tolist() == [*range(159, 190)]
    # Prepare both splits at once, in the existing folder.
    prepare('thumos14', thumos14, root)
    assert capsys.readouterr().out.count(' 0 files written') == 2


def test_thumos14_without_features_writes_segments_of_videos(
        thumos14, tmp_path, capsys):
    root = tmp_path / 'root'
    prepare('thumos14', thumos14, root, '--split', 'test')
    assert [path.name for path in root.glob('*.csv')] == ['test.csv']
    prepare('thumos14', thumos14, root)
    printed = capsys.readouterr().out
    assert not (root / 'target_perframe').exists()
    for split in 'val', 'test':
        want = sorted(read_thumos14(thumos14, split), key=lambda one: one[1:4])
        assert [(*one[1:4], one.label) for one in want] == sorted(
            (*one[1:4], one.label)
            for one in read_segment_file(root / f'{split}.csv')) != []
        assert f'{split}.csv: {len(want)} segments of' in printed
    # The config of a network of pixels reads these files.
    dataset = load_config(
        'linear_ff_causal_thumos14_rgb').test_dataloader.dataset
    assert dataset.ann_file == 'test.csv'
    classes = lines(root / Path(dataset.metainfo.classes).name)
    assert classes == ['background', *THUMOS14] and dataset.num_classes == 22


def test_keeps_released_targets_on_request(thumos14, tmp_path):
    root = tmp_path / 'out'
    write_features(root / 'rgb_kinetics_resnet50', THUMOS_LENGTHS)
    write_features(root / 'target_perframe', THUMOS_LENGTHS, 22)
    before = targets_of(root)
    with pytest.raises(SystemExit, match='already exists'):
        prepare('thumos14', thumos14, root)
    prepare('thumos14', thumos14, root, '--keep-targets')
    assert targets_of(root) == before
    assert len(lines(root / 'test.txt')) == 3
    counts = np.loadtxt(root / 'val_class_counts.txt')
    # One FrisbeeCatch belongs to another video.
    assert counts[9] == counts.sum() == 4
    write_features(root / 'target_perframe', THUMOS_LENGTHS, 21)
    with pytest.raises(SystemExit, match='must be targets of .* 22 classes'):
        prepare('thumos14', thumos14, root, '--keep-targets')


def test_full_disk_damages_no_file(thumos14, tmp_path):
    rgb = write_features(tmp_path / 'rgb', THUMOS_LENGTHS)

    def run(name, split):
        prepare('thumos14', thumos14, tmp_path / name, '--split', split,
                '--rgb', rgb)

    def files(name):
        return {path.relative_to(tmp_path / name): path.read_bytes()
                for path in (tmp_path / name).rglob('*') if path.is_file()}

    run('out', 'val')
    before = files('out')
    with small_disk(1900), pytest.raises(SystemExit, match='too large'):
        run('out', 'test')
    assert files('out') == before
    for name, split in ('out', 'test'), ('new', 'test'), ('new', 'val'):
        run(name, split)
    assert files('out') == files('new') != before


def test_tvseries_trains_on_train_and_val(tmp_path):
    names = TVSERIES_VIDEOS['train'] + TVSERIES_VIDEOS['test']
    rgb = write_features(tmp_path / 'rgb', dict.fromkeys(names, 500))
    root = tmp_path / 'root'
    lists = [LINES / f'tvseries/GT-{split}.txt' for split in ('val', 'train')]
    # Files, then the folder, whose test list is new.
    for sources in lists, [LINES / 'tvseries']:
        prepare('tvseries', *sources, root, '--rgb', rgb)
        assert lines(root / 'classes.txt') == ['background', *TVSERIES]
        assert lines(root / 'train.txt') == ['24_ep1', 'Breaking_Bad_ep1']
        counts = np.loadtxt(root / 'train_class_counts.txt')
        # Pick something up, Point and Smoke.
        assert np.flatnonzero(counts).tolist() == [1, 2, 8]
    assert lines(root / 'test.txt') == ['24_ep4']
    assert {*targets_of(root)} == {
        '24_ep1.npy', 'Breaking_Bad_ep1.npy', '24_ep4.npy'}
    shot = np.load(root / 'target_perframe/24_ep4.npy')
    assert np.flatnonzero(shot[:, 30]).tolist() == [*range(400, 406)]


def test_epic100(tmp_path):
    rulstm, actions = tmp_path / 'rulstm', tmp_path / 'actions.csv'
    rulstm.mkdir()
    for name in 'training.csv', 'validation.csv':
        shutil.copy(LINES / 'ek100' / name, rulstm)
    (rulstm / 'validation_tail_verbs_ids.csv').write_text('P01_11_102\n')
    actions.write_text('id,verb,noun,action\n' + ''.join(
        f'{i},96,{i},do {i}\n' for i in range(3806)))
    rgb = write_features(tmp_path / 'rgb', dict(
        P01_01=2000, P01_11=1400, P01_12=300, P18_01=50))
    prepare('epic100', rulstm, actions, tmp_path / 'one', '--rgb', rgb)
    cfg = load_config('testra_ek100')
    root = tmp_path / 'one'
    for split in 'train', 'val':
        dataset = cfg[f'{split}_dataloader'].dataset
        rows = lines(root / dataset.segment_file)
        assert rows == lines(rulstm / dataset.segment_file)
        assert {*lines(root / dataset.ann_file)} == {
            row.split(',')[1] for row in rows}
    assert len(lines(root / 'classes.txt')) == 3807
    # Frames 1 to 56 at 30 fps, also verb 0 from 89, and noun 2 from 46 to 73.
    for part, width, column, steps in (
            ('target', 3807, 107, [*range(8)]), ('noun', 301, 3, [*range(10)]),
            ('verb', 98, 1, [*range(8), *range(11, 20)])):
        targets = np.load(root / f'{part}_perframe/P01_11.npy')
        assert targets.shape == (1400, width)
        assert np.flatnonzero(targets[:20, column]).tolist() == steps
    assert lines(root / 'validation_tail_verbs_ids.csv') == ['P01_11_102']
    with pytest.raises(SystemExit, match='no training.csv or validation.csv'):
        prepare('epic100', LINES / 'ek100/EPIC_100_validation.csv',
                tmp_path / 'three', '--rgb', rgb)


def test_egtea_of_rulstm(tmp_path):
    rgb = write_features(tmp_path / 'rgb', {
        f'{name}-R01-PastaSalad': 3000 for name in ('P05', 'P07', 'P15')})
    prepare('egtea', LINES / 'egtea', tmp_path / 'out', '--rgb', rgb)
    assert lines(tmp_path / 'out/train_split1.txt') == [
        'P07-R01-PastaSalad', 'P15-R01-PastaSalad']
    actions = LINES / 'egtea/actions.csv'
    assert (tmp_path / 'out/actions.csv').read_text() == actions.read_text()
    assert lines(tmp_path / 'out/classes.txt') == [
        'background', *(line.rpartition(', ')[2] for line in lines(actions))]
    targets = np.load(tmp_path / 'out/verb_perframe/P07-R01-PastaSalad.npy')
    # Frames 2751 to 2808, 7.5 per step.
    assert targets.shape == (3000, 20)
    assert np.flatnonzero(targets[:, 3]).tolist() == [*range(366, 375)]


def test_features_from_lmdb(tmp_path):
    lmdb = pytest.importorskip('lmdb', reason='the package lmdb is missing')
    source = tmp_path / 'lmdb'
    with lmdb.open(str(source)) as env, env.begin(write=True) as transaction:
        for video, frames in dict(
                P01_01=range(1, 31), P01_010=range(1, 5), P01_02=(9, 14, 16),
                P02=(20, 21), P03=[1]).items():
            for frame in frames:
                # Rows of the frame's number; those of one have two widths.
                width = 2 if (video, frame) == ('P02', 20) else 3
                transaction.put(f'{video}_frame_{frame:010}.jpg'.encode(),
                                np.full(width, frame, np.float32).tobytes())

    def convert(*videos):
        (tmp_path / 'training.csv').write_text(''.join(
            f'{i},{video},1,20,0,0,{i}\n' for i, video in enumerate(videos)))
        prepare('epic100', tmp_path / 'training.csv', tmp_path / 'out',
                '--force', '--rgb', source)

    convert('P01_01', 'P01_02')
    folder = tmp_path / 'out/rgb_kinetics_bninception'
    one, two = (np.load(folder / f'P01_0{i}.npy') for i in (1, 2))
    # The latest of each 7.5 frames.
    assert one[:, 0].tolist() == [7, 15, 22, 30] and one.shape == (4, 3)
    # The latest available frame; the step of frame 16 is incomplete.
    assert two[:, 0].tolist() == [9, 14]
    # Rows of two widths, and not one complete step.
    for video, error in (('P09', 'lacks frames of P09, such as'),
                         ('P02', 'rows of P02 must have one'),
                         ('P03', 'rows of P03 must have one')):
        with pytest.raises(SystemExit, match=error):
            convert(video)
    (source / 'data.mdb').write_bytes(bytes(9000))
    with pytest.raises(SystemExit, match=f'{source} must be an LMDB'):
        convert('P04')


@pytest.mark.parametrize('change, error', [
    (lambda r: (r / 'rgb/video_test_0000270.npy').unlink(),
     r'annotation/\w+_test.txt has segments of video_test_0000270, but .*'
     r'video_test_0000270.npy \(1 of 3 videos\)'),
    (lambda r: write_features(r / 'flow', dict(video_test_0000270=700)),
     '0270.npy with 600, .*0270.npy with 700'),
    (lambda r: shutil.rmtree(r / 'rgb'), '--rgb: folder not found'),
    (lambda r: [path.unlink() for path in (r / 'flow').iterdir()],
     'no .npy files in .*flow'),
    (lambda r: (r / 'annotation/Diving_test.txt').unlink(),
     'file not found: .*Diving_test.txt'),
    (lambda r: (r / 'annotation/Diving_test.txt').write_text('v 2 1\n'),
     'Diving_test.txt, line 1: a segment must have')])
def test_rejects_invalid_sources(thumos14, tmp_path, change, error):
    write_features(tmp_path / 'rgb', THUMOS_LENGTHS)
    write_features(tmp_path / 'flow', THUMOS_LENGTHS)
    change(tmp_path)
    with pytest.raises(SystemExit, match=error):
        prepare('thumos14', thumos14, tmp_path / 'out', '--split', 'test',
                '--rgb', tmp_path / 'rgb', '--flow', tmp_path / 'flow')


# A config, the published files, lines of both lists, and classes.
VIDEO_SETS = dict(
    ssv2=('linear_ff_ssv2', {
        'labels.json': '{"Moving something up": "1", '
                       '"Holding something": "0"}',
        'train.json': '[{"id": "7", "label": "moving a cup up", "template": '
                      '"Moving [something] up", "placeholders": ["a cup"]}]',
        'validation.json': '[{"id": "12", "template": "Holding [something]"}]'
    }, ['7.webm 1', '12.webm 0'], ['Holding something',
                                   'Moving something up']),
    kinetics=('linear_ff_k400', {
        'train.csv': 'label,youtube_id,time_start,time_end,split\n'
                     'zumba,--aB_-x,9,19,train\nabseiling,_4Yl,5,15,train\n'
                     '"passing ball (not in game)",0Q,0,10,train\n',
        'validate.csv': 'label,youtube_id,time_start,time_end,split\n'
                        'zumba,1x,100,110,validate\n'
    }, ['zumba/--aB_-x_000009_000019.mp4 2',
        'zumba/1x_000100_000110.mp4 2'],
        ['abseiling', 'passing_ball_(not_in_game)', 'zumba']),
    ucf101=('laps_visformer_ucf101', {
        'classInd.txt': '1 ApplyEyeMakeup\r\n2 ApplyLipstick\r\n',
        'trainlist01.txt': 'ApplyLipstick/v_ApplyLipstick_g08_c01.avi 2\r\n',
        'testlist01.txt': 'ApplyEyeMakeup/v_ApplyEyeMakeup_g01_c01.avi\r\n'
    }, ['ApplyLipstick/v_ApplyLipstick_g08_c01.avi 1',
        'ApplyEyeMakeup/v_ApplyEyeMakeup_g01_c01.avi 0'],
        ['ApplyEyeMakeup', 'ApplyLipstick']),
    hmdb51=('dualformer_tiny_hmdb51', {
        'brush_hair_test_split1.txt': 'a_brush_hair_u.avi 0 \nb_h.avi 2 \n',
        'cartwheel_test_split1.txt': 'Acrobacias_cartwheel_f.avi 1 \n'
    }, ['cartwheel/Acrobacias_cartwheel_f.avi 1', 'brush_hair/b_h.avi 0'],
        ['brush_hair', 'cartwheel']),
    diving48=('dualformer_tiny_diving48', {
        'Diving48_V2_train.json':
            '[{"vid_name": "_8Vy3dlHg2w_00000", "label": 1, '
            '"start_frame": 0, "end_frame": 161}]',
        'Diving48_V2_test.json': '[{"vid_name": "x.y_00001", "label": 0}]',
        'Diving48_vocab.json': '[["Back", "15som", "05Twis", "FREE"], '
                               '["Back", "15som", "15Twis", "FREE"]]'
    }, ['_8Vy3dlHg2w_00000.mp4 1', 'x.y_00001.mp4 0'],
        ['Back 15som 05Twis FREE', 'Back 15som 15Twis FREE']),
    mit=('vivit_l16x2_fact_encoder_mit', {
        'moments_categories.txt': 'clapping,0\npraying,1\n',
        'trainingSet.csv': 'praying/yt-a_3.mp4,praying,3,0\n',
        'validationSet.csv': 'clapping/flickr-0-1.mp4,clapping,4,1\n'
    }, ['praying/yt-a_3.mp4 1', 'clapping/flickr-0-1.mp4 0'],
        ['clapping', 'praying']))
SEGMENT_SETS = dict(
    egtea=('laps_visformer_h_egtea', 'videos/P07-R01-PastaSalad.mp4', {
        'training1.csv': '2,P07-R01-PastaSalad,2751,2808,1,2,1\n',
        'validation1.csv': '0,P07-R01-PastaSalad,10,40,0,0,0\n',
        'actions.csv': '0, 0_0, Inspect/Read_recipe\n1, 1_2, Open_fridge\n'
    }, [(91.7, 93.6), (10 / 30, 40 / 30)]),
    epic100=('vivit_l16x2_fact_encoder_epic', 'P01/videos/P01_11.MP4', {
        f'EPIC_100_{split}.csv':
            'narration_id,participant_id,video_id,start_timestamp,'
            'stop_timestamp,start_frame,stop_frame,verb_class,noun_class\n'
            f'P01_11_{i},P01,P01_11,00:00:0{i}.00,00:05:30.62,1,113,0,2\n'
        for i, split in enumerate(['train', 'validation'])
    }, [(0, 330.62), (1, 330.62)]))


@pytest.fixture
def official(tmp_path):
    """Function that writes published files and returns their folder."""
    folder = tmp_path / 'official'
    folder.mkdir()

    def write(sources):
        for name, text in sources.items():
            (folder / name).write_text(text, newline='')
        return folder

    return write


@pytest.mark.parametrize('name', SEGMENT_SETS)
def test_config_reads_the_segments(name, official, tmp_path):
    config, video, sources, expected = SEGMENT_SETS[name]
    root = tmp_path / 'out'
    (root / video).parent.mkdir(parents=True)
    (root / video).touch()
    for _ in range(2):
        prepare(name, official(sources), root)
    cfg = load_config(config, {'data_root': str(root)})
    for split, segment in zip(('train', 'val'), expected):
        dataset = DATASETS.build(cfg[f'{split}_dataloader'].dataset)
        assert len(dataset) == 1
        info = dataset.get_data_info(0)
        assert [*info['segment']] == pytest.approx([*segment, 's'])
        if name == 'epic100':
            # Noun 2 of 300, and verb 0.
            assert info['label'].nonzero().flatten().tolist() == [2, 300]
    if name == 'egtea':
        assert lines(root / 'label_map.txt') == [
            'Inspect/Read_recipe', 'Open_fridge']


def test_egtea_trimmed_clips(official, tmp_path):
    prepare('egtea', official({
        'train_split1.txt': 'OP01-R01-A-1-2-F000001-F000002 2 1 1\n',
        'test_split1.txt': 'P02-R03-B-9-12-F000001-F000031 1 1 2\n',
        'action_idx.txt': 'Put eating_utensil 2\nInspect/Read recipe 1\n'
    }), tmp_path)
    for name, want in dict(
            egtea_train_split1=[
                'OP01-R01-A/OP01-R01-A-1-2-F000001-F000002.mp4 1'],
            egtea_val_split1=[
                'P02-R03-B/P02-R03-B-9-12-F000001-F000031.mp4 0'],
            label_map=['Inspect/Read recipe', 'Put eating_utensil']).items():
        assert lines(tmp_path / f'{name}.txt') == want


@pytest.mark.parametrize('name', VIDEO_SETS)
def test_config_reads_the_video_lists(name, official, tmp_path, capsys):
    config, sources, expected, classes = VIDEO_SETS[name]
    root = tmp_path / 'out'
    words = [name, official(sources), root]
    if name == 'kinetics':
        words += ['--size', '400']
    prepare(*words)
    cfg = load_config(config)
    paths = []
    for split, line in zip(('train', 'val'), expected):
        dataset = cfg[f'{split}_dataloader'].dataset
        file, _, label = line.rpartition(' ')
        paths.append(root / dataset.ann_file)
        assert (file, int(label)) in read_video_list(
            str(paths[-1]), num_classes=dataset.num_classes)
        # Create one video of each list.
        file = root / dataset.data_prefix.video / file
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch()
    assert lines(root / 'label_map.txt') == classes
    assert Path(dataset.metainfo.classes).name == 'label_map.txt'
    prepare(*words)
    assert [lines(path) for path in paths] == [[line] for line in expected]
    if name == 'kinetics':
        assert '2 are missing in' in capsys.readouterr().out


# Complete published files.


def test_real_thumos14(real, tmp_path):
    info = json.loads((real / 'thumos14/video_info.json').read_text())
    lengths = {video: int(one['duration'] * 4) for video, one in info.items()}
    # The annotation has this video, but the file does not.
    lengths['video_test_0001292'] = 700
    folder, root = real / 'thumos14/annotation', tmp_path / 'root'
    data_info = real / 'testra_data_info.json'
    released = json.loads(data_info.read_text())['THUMOS']
    prepare('thumos14', folder, root, '--data-info', data_info,
            '--rgb', write_features(tmp_path / 'rgb', lengths))
    assert len(targets_of(root)) == 413
    assert lines(root / 'val.txt') == released['train_session_set']
    assert lines(root / 'test.txt') == released['test_session_set']
    assert lines(root / 'classes.txt')[1:] == released['class_names'][1:]
