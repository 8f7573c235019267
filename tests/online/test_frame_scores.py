# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import json

import numpy as np
import pytest

from mmvidattn.online.frame_scores import (
    FrameScores,
    ScoredVideos,
    read_frame_scores,
)


def scored():
    rng = np.random.default_rng(0)
    return ScoredVideos(['background', 'tänzen'], {0}, {
        name: FrameScores(rate, rng.random((steps, 2), np.float32))
        for name, rate, steps in (
            ('a.mp4', 4., 5), ('x/a.mp4', 2.5, 0), ('x_a.mp4', 1., 3),
            ('../up', 1., 1), ('X_A.mp4', 1., 2))})


def test_folder_keeps_scores_of_all_names(tmp_path):
    expected = scored()
    expected.write(tmp_path / 'new')
    got = read_frame_scores(tmp_path / 'new')
    assert (got.classes, got.ignore) == (expected.classes, expected.ignore)
    assert list(got.videos) == list(expected.videos)
    for (rate, scores), want in zip(got.videos.values(),
                                    expected.videos.values()):
        assert rate == want.rate
        np.testing.assert_array_equal(scores, want.scores)
    # Nothing outside of the folder.
    assert [path.name for path in tmp_path.iterdir()] == ['new']
    assert len(list(tmp_path.glob('new/*'))) == 6


def entry(**change):
    return dict(videos={'a.mp4': {**dict(rate=4., file='0_a.mp4.npy'),
                                  **change}})


@pytest.mark.parametrize('change, message', [
    (dict(format=2), 'newer than 1'),
    (dict(classes=['x']), r'shape \[T, 1\]'),
    (entry(rate=-1), 'rate of a.mp4 must be positive'),
    (entry(file='../a.npy'), 'same folder'),
    (entry(file='b.npy'), 'No such file'),
    (entry(file='objects.npy'), 'allow_pickle'),
    (entry(file='nan.npy'), 'must be finite'),
    (entry(file='text.npy'), 'cannot read the scores')])
def test_rejects_damaged_folders(tmp_path, change, message):
    scored().write(tmp_path)
    np.save(tmp_path / 'objects.npy', np.array([{}]), allow_pickle=True)
    np.save(tmp_path / 'nan.npy', np.full((2, 2), np.nan))
    (tmp_path / 'text.npy').write_text('text')
    path = tmp_path / 'scores.json'
    content = json.loads(path.read_text('utf-8'))
    path.write_text(json.dumps({**content, **change}))
    with pytest.raises(ValueError, match=message):
        read_frame_scores(tmp_path)
    path.unlink()
    with pytest.raises(ValueError, match='cannot read the scores .*scores.js'):
        read_frame_scores(tmp_path)
