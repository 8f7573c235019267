# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Datasets that skip and report unreadable videos, and read URLs."""
import copy
import pickle
import re
import shutil

import numpy as np
import pytest
import torch
from feature_set import options
from made_videos import require_backend
from mmaction.registry import DATASETS
from mmengine.dataset import worker_init_fn
from torch.utils.data import DataLoader

from mmvidattn.datasets.check_files import check_video
from mmvidattn.utils.remote_files import RemoteError, local_path

DECODERS = {
    'decord': [dict(type='DecordInit'), dict(type='DecordDecode')],
    'opencv': [dict(type='OpenCVInit'), dict(type='OpenCVDecode')],
    'pyav': [dict(type='VideoReaderInit'), dict(type='VideoReaderDecode')]}
BROKEN = ['missing', 'empty', 'cut']


def pipeline(decoder='pyav', *more):
    require_backend(decoder)
    init, decode = DECODERS[decoder]
    return [init, dict(type='UniformSample', clip_len=2), decode,
            dict(type='Resize', scale=(32, 32), keep_ratio=False), *more,
            dict(type='FormatShape', input_format='NCTHW'),
            dict(type='PackActionInputs')]


@pytest.fixture(scope='module')
def videos(motion_dir, tmp_path_factory):
    """Folder of three good videos, and a broken video of each kind."""
    folder = tmp_path_factory.mktemp('videos')
    good = motion_dir / 'train/000002.mp4'
    for name in 'a.mp4', 'b.mp4', 'with two spaces.mp4':
        shutil.copy(good, folder / name)
    (folder / 'empty.mp4').touch()
    whole = good.read_bytes()
    (folder / 'cut.mp4').write_bytes(whole[:len(whole) // 2])
    return folder


@pytest.fixture
def build(videos, tmp_path):
    """Build a dataset of list lines; with ``wrap``, in SkipUnreadable."""
    def build(lines, wrap=None, **options):
        (tmp_path / 'list.txt').write_text('\n'.join(lines))
        config = dict(
            type='CheckedVideoDataset' if wrap is None else 'VideoDataset',
            ann_file=str(tmp_path / 'list.txt'), pipeline=pipeline(),
            data_prefix=dict(video=str(videos))) | options
        return DATASETS.build(config if wrap is None else dict(
            type='SkipUnreadable', dataset=config, **wrap))

    return build


def label(sample):
    return sample['data_samples'].gt_label.item()


def skipped(sample):
    return {name.rsplit('/', 1)[1] for name in
            sample['data_samples'].get('skipped_videos', [])}


@pytest.mark.parametrize('kind', BROKEN)
def test_broken_video_is_replaced_in_training_and_an_error_in_testing(
        build, logged, kind):
    np.random.seed(0)
    lines = ['a.mp4 1', f'{kind}.mp4 0']
    dataset = build(lines)
    for _ in range(2):
        sample = dataset[1]
        assert label(sample) == 1 and skipped(sample) == {f'{kind}.mp4'}
    assert not skipped(dataset[0])
    log, = (line for line in logged if f'{kind}.mp4' in line)
    assert re.search(r'mp4: .*(Error|No such file)', log)
    dataset = build(lines, test_mode=True)
    with pytest.raises(RuntimeError, match=f'{kind}.mp4') as error:
        dataset[1]
    assert error.value.__cause__ is not None
    assert dataset[0]['inputs'].shape == (1, 3, 2, 32, 32)


def test_removes_broken_videos_of_a_test_set_on_request(build, videos,
                                                        logged):
    lines = [f'{name}.mp4 {number}' for number, name in enumerate(
        ['a', *BROKEN, 'with two spaces'])]
    # A name without a suffix is an mp4, and classes of nowhere are a warning.
    dataset = build([*lines, 'b 8'], test_mode=True, on_error='skip',
                    metainfo=dict(classes='nowhere.txt', task='x'))
    assert [label(dataset[i]) for i in range(len(dataset))] == [0, 4, 8]
    # mmengine's ClassBalancedDataset calls this.
    assert [dataset.get_cat_ids(i) for i in range(3)] == [[0], [4], [8]]
    assert dataset.metainfo.keys() == {'task'}
    assert sum('nowhere.txt' in line for line in logged) == 1
    log, = (line for line in logged if '3 of 6 videos' in line)
    assert all(re.search(rf'{kind}\.mp4 \(.+\)', log) for kind in BROKEN)
    with pytest.raises(RuntimeError, match='cannot read 2 of 2.* such as '
                       f'{videos}/empty.mp4') as error:
        # The class's former name.
        build(['empty.mp4 0', 'cut.mp4 0'], type='GuardedVideoDataset',
              test_mode=True, on_error='skip')
    assert error.value.__cause__ is not None


def add_noise(results):
    results['imgs'] = [img + np.random.randint(99, dtype=np.uint8)
                       for img in results['imgs']]
    return results


@pytest.mark.parametrize('decoder', DECODERS)
def test_skips_in_any_mmaction_pipeline(build, videos, decoder):
    lines = ['cut.mp4 0', 'a.mp4 1']
    steps = pipeline(decoder, add_noise)
    plain = build(lines, type='VideoDataset', pipeline=steps)
    with pytest.raises(Exception):
        plain[0]
    dataset = build(lines, {}, pipeline=steps)
    assert len(dataset) == 2 and dataset.metainfo == plain.metainfo
    for other in dataset, pickle.loads(pickle.dumps(dataset)), copy.deepcopy(
            dataset):
        # The wrapper draws no random number.
        inputs = [(np.random.seed(0), one[1]['inputs'])[1]
                  for one in (plain, other)]
        assert torch.equal(*inputs)
        note = other[0]['data_samples']
        assert note.filename == str(videos / 'a.mp4')
        assert {*note.skipped_videos} == {str(videos / 'cut.mp4')}
        assert 'Error' in note.skipped_reasons[str(videos / 'cut.mp4')]


def test_skips_with_repeated_augmentation(build):
    np.random.seed(0)
    samples = build(['cut.mp4 0', 'a.mp4 1'], {}, type='RepeatAugDataset',
                    num_repeats=2, pipeline=pipeline('decord'))[0]
    assert [skipped(sample) for sample in samples] == [{'cut.mp4'}] * 2


IMAGE = np.zeros((8, 8, 3), np.uint8)


@pytest.mark.parametrize('place, change, message', [
    (2, dict(imgs=[IMAGE]), 'expected 2 frames, read 1'),
    (2, dict(imgs=[]), 'expected 2 frames, read 0'),
    (2, dict(imgs=[IMAGE, IMAGE[:0]]), 'frame 1 of the clip is empty'),
    (2, dict(imgs=[IMAGE, None]), 'frame 1 of the clip is empty'),
    (0, dict(total_frames=0), 'it contains no frames')])
def test_detects_lost_frames(build, place, change, message):
    steps = pipeline()
    steps[place] = lambda results: {**results, **change}
    dataset = build(['a.mp4 0'], {}, pipeline=steps, test_mode=True)
    with pytest.raises(RuntimeError, match=message):
        dataset[0]


def test_raises_for_a_faulty_pipeline(build):
    def faulty(results):
        raise KeyError('a bug')

    dataset = build(['a.mp4 0', 'b.mp4 1'], pipeline=[*pipeline(), faulty])
    with pytest.raises(RuntimeError, match='10 times.*a bug') as error:
        dataset[0]
    assert isinstance(error.value.__cause__, KeyError)


def test_workers_report_skipped_videos(build):
    dataset = build(['a.mp4 0', 'b.mp4 0', *(
        f'{kind}.mp4 1' for kind in BROKEN)], max_failures=100)
    samples = [*DataLoader(
        dataset, batch_size=None, num_workers=2, collate_fn=lambda x: x,
        worker_init_fn=lambda i: worker_init_fn(i, 2, 0, 0))]
    assert [*map(label, samples)] == [0] * 5
    assert set.union(*map(skipped, samples)) == {
        f'{kind}.mp4' for kind in BROKEN}


# URLs

fsspec = pytest.importorskip('fsspec', reason='needs mmvidattn[remote]')
@pytest.fixture
def store(tmp_path, monkeypatch):
    """Object store in memory, with an empty folder ``b``."""
    monkeypatch.setenv('XDG_CACHE_HOME', str(tmp_path / 'cache'))
    memory = fsspec.filesystem('memory')
    memory.mkdirs('/b', exist_ok=True)
    yield memory
    memory.rm('/b', recursive=True)


@pytest.fixture
def remote_videos(store, motion_dir):
    """Two videos, a text file with the suffix of a video, and a list."""
    for name in '01':
        store.pipe(f'/b/videos/{name}.mp4',
                   (motion_dir / f'train/00000{name}.mp4').read_bytes())
    store.pipe('/b/videos/bad.mp4', b'not a video')
    store.pipe('/b/list.txt', b'0.mp4 3\n1.mp4 1\n')


def make(root='memory://b', video='videos', **options):
    return DATASETS.build(dict(
        type='CheckedVideoDataset', pipeline=pipeline('decord'),
        ann_file='list.txt', data_root=root, data_prefix=dict(video=video),
        **options))


def test_videos_equal_local_videos(remote_videos, motion_dir, tmp_path):
    (tmp_path / 'list.txt').write_text('000000.mp4 3\n000001.mp4 1\n')
    remote = make(test_mode=True)
    here = make(str(tmp_path), str(motion_dir / 'train'), test_mode=True)
    for i in range(2):
        a, b = ((np.random.seed(i), one[i])[1] for one in (remote, here))
        assert torch.equal(a['inputs'], b['inputs'])
        assert a['data_samples'].gt_label == b['data_samples'].gt_label
        assert a['data_samples'].filename == f'memory://b/videos/{i}.mp4'


def test_bad_and_missing_videos_are_reported(remote_videos, store, logged):
    store.pipe('/b/list.txt',
               b'bad.mp4 0\nmissing.mp4?sig=secret 0\n0.mp4 3\n')
    dataset = make()
    assert dataset.prepare_data(0) is None
    assert dataset.prepare_data(1) is None
    reasons = dataset.prepare_data(2)['data_samples'].skipped_reasons
    assert list(reasons) == ['memory://b/videos/bad.mp4',
                             'memory://b/videos/missing.mp4']
    assert 'FileNotFoundError' in reasons['memory://b/videos/missing.mp4']
    assert not any('secret' in line for line in logged)
    kept = make(test_mode=True, on_error='skip')
    assert [kept.get_data_info(i)['filename'] for i in range(len(kept))] == [
        'memory://b/videos/0.mp4']
    assert any('videos/missing.mp4 (FileNotFoundError' in line
               for line in logged)


def test_a_lost_server_stops_the_run_instead_of_skipping(remote_videos, store,
                                                         monkeypatch):
    dataset = make(on_error='skip')

    def away(*_):
        raise ConnectionResetError('away')

    monkeypatch.setattr(type(store), 'get_file', away)
    with pytest.raises(RemoteError, match='memory://b/videos/0.mp4'):
        dataset[0]
    with pytest.raises(RemoteError, match='memory://b/videos/1.mp4'):
        check_video('memory://b/videos/1.mp4')


def test_feature_streams_equal_local_files(store, root):
    for path in root.rglob('*.*'):
        store.pipe(f'/b/{path.relative_to(root)}', path.read_bytes())
    remote, here = (DATASETS.build(dict(
        type='FeatureStreamDataset',
        **options(folder, windows='videos', test_mode=True)))
        for folder in ('memory://b', root))
    assert remote.metainfo == here.metainfo and len(remote) == len(here) == 4
    for i in range(4):
        inputs = remote[i]['inputs']
        assert inputs.keys() == here[i]['inputs'].keys()
        for key, value in here[i]['inputs'].items():
            assert np.array_equal(inputs[key], value)
    with pytest.raises(FileNotFoundError):
        local_path('memory://b/rgb/w.npy')
