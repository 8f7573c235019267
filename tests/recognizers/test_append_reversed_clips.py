# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import pytest
import torch
from mmaction.registry import MODELS
from mmaction.structures import ActionDataSample

import mmvidattn  # noqa: F401


def samples(labels):
    return [ActionDataSample(metainfo=dict(name=str(i))).set_gt_label(label)
            for i, label in enumerate(labels)]


def test_training_batch_has_each_clip_in_both_directions():
    preprocessor = MODELS.build(dict(
        type='ActionDataPreprocessor', format_shape='NCTHW',
        blending=dict(type='AppendReversedClips', opposites=[1, 0, 2])))
    clips = torch.randint(256, (2, 1, 3, 4, 2, 2), dtype=torch.uint8)
    data = dict(inputs=[*clips], data_samples=samples([0, 2]))
    out = preprocessor(data, training=True)
    assert out['inputs'].shape == (4, 1, 3, 4, 2, 2)
    for i in range(2):
        assert out['inputs'][i].equal(clips[i].float())
        for t in range(4):
            assert out['inputs'][2 + i, :, :, t].equal(
                clips[i, :, :, 3 - t].float())
    labels = [int(sample.gt_label) for sample in out['data_samples']]
    assert labels == [0, 2, 1, 2]
    assert [s.name for s in out['data_samples']] == ['0', '1', '0', '1']
    data = dict(inputs=[*clips], data_samples=samples([0, 2]))
    assert len(preprocessor(data, training=False)['inputs']) == 2


@pytest.mark.parametrize('opposites, error', [
    ([1, 2, 0], 'opposites must'), ([-1, 0], 'opposites must'),
    ([0], r'inputs must .*\[1, 2, 3, 4, 5\]')], ids=str)
def test_rejects_other_opposites_and_frames_without_time(opposites, error):
    with pytest.raises(ValueError, match=error):
        MODELS.build(dict(type='AppendReversedClips', opposites=opposites))(
            torch.zeros(1, 2, 3, 4, 5), samples([0]))
