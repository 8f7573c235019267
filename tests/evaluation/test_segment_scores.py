# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import pytest
import torch

from mmvidattn.evaluation.segment_scores import read_segment_scores

SCORES = {
    # Four segments of a video; class 0 is the background.
    'pred_action': torch.tensor(
        [[9., 1., 2.], [9., 3., 4.], [9., 5., 6.], [9., 7., 8.]]),
    # Two anticipation tokens.
    'pred_anticipated_action': torch.arange(24.).reshape(4, 2, 3)}


def test_rows_of_a_stream():
    """Row 0 is the detection, higher rows are anticipation tokens."""
    result = read_segment_scores(dict(
        SCORES, is_whole_video=True, video_name='v',
        segment_id=[1, 2, 'c', 4],
        segment_labels=[dict(action=0), {}, {}, {}],
        score_rows=[[0], [1], [2], []]))
    assert [segment.id for segment in result] == ['1', '2', 'c', '4']
    assert [segment.seen for segment in result] == [True, True, True, False]
    assert result[0].labels == dict(action=0)
    assert [segment.scores['action'].tolist() for segment in result] == [
        [1, 2], [7, 8], [16, 17], [0, 0]]


@pytest.mark.parametrize('rows, scores', [
    ([2], [5, 6]), ([3], [7, 8]), ([], [0, 0])])
def test_rows_of_a_window(rows, scores):
    result, = read_segment_scores(dict(
        SCORES, is_whole_video=False, video_name='v', segment_id=1,
        segment_labels={}, score_rows=rows))
    assert result.seen == bool(rows)
    assert result.scores['action'].tolist() == scores
