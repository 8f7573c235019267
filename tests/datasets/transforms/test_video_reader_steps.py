# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import numpy as np
import pytest
from made_videos import make, require_backend
from mmengine.dataset import Compose
from mmengine.fileio import FileClient, HardDiskBackend

OURS = dict(type='VideoReaderInit'), dict(type='VideoReaderDecode')
OPEN, DECODE = dict(type='DecordInit'), dict(type='DecordDecode')
SAMPLE = dict(type='SampleFrames', clip_len=4, frame_interval=2, num_clips=2)


def load(path, opens, decodes, **more):
    np.random.seed(0)
    return Compose([opens, SAMPLE, decodes])(dict(
        filename=str(path), start_index=0, modality='RGB', **more))


def assert_same(found, wanted):
    assert found.keys() == wanted.keys()
    # Readers disagree on the duration of the last frame at varying rates.
    assert found['avg_fps'] == pytest.approx(wanted['avg_fps'], rel=0.04)
    for key in wanted.keys() - {'imgs', 'avg_fps'}:
        assert np.array_equal(found[key], wanted[key]), key
    np.testing.assert_allclose(
        np.array(found['imgs'], int), np.array(wanted['imgs']), atol=2)
    assert type(found['imgs']) is list


def test_keys_and_frames_match_decords_steps(tmp_path):
    require_backend('decord')
    path = make('plain', tmp_path)
    boxes = dict(gt_bboxes=np.array([[0, 0.25, 0.5, 1]]), proposals=None)
    assert_same(load(path, *OURS, **boxes),
                load(path, OPEN, DECODE, **boxes))
    opens, decodes = dict(OURS[0]), OURS[1]
    # Read from another storage backend, by a name without a suffix.
    FileClient.register_backend('shelf', HardDiskBackend, force=True)
    opens['io_backend'] = 'shelf'
    assert_same(load(path.with_suffix(''), opens, decodes),
                load(path.with_suffix(''), OPEN, DECODE))


@pytest.mark.parametrize('segment', [
    (0.5, 1.4, 's'), (0, 0.3, 's'), (1.2, 99, 's'), (7, 21, 'frames')])
@pytest.mark.parametrize('kind', ['plain', 'varying rate'])
def test_segments_match_decord(kind, segment, tmp_path):
    require_backend('decord')
    path = make(kind, tmp_path)
    assert_same(
        load(path, *OURS, segment=segment),
        load(path, dict(type='DecordSegmentInit'), DECODE, segment=segment))


def test_repeated_frames_are_different_arrays(tmp_path):
    path = make('plain', tmp_path)
    images = Compose([OURS[0], OURS[1]])(dict(
        filename=str(path), frame_inds=np.array([3, 5, 3])))['imgs']
    assert np.array_equal(images[0], images[2])
    images[0][:] = 0
    assert images[2].any() and images[1].flags.writeable


def test_rejects_segment_without_frames(tmp_path):
    path = make('plain', tmp_path)
    for segment, text in (((9, 10, 's'), 'begins after the video'),
                          ((0.51, 0.54, 's'), 'contains no frame')):
        with pytest.raises(ValueError, match=text):
            load(path, *OURS, segment=segment)


def test_rejects_the_removed_choice_of_a_decoder():
    with pytest.raises(ValueError, match='has no option backend .*remove it'):
        Compose([dict(type='VideoReaderInit', backend='opencv')])
