# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Streams scored on data sets by mmengine's test loop."""
import copy
import itertools

import numpy as np
import pytest
import torch
from feature_set import LENGTHS, SEGMENTS, write_set

from mmvidattn.apis import get_model, load_config
from mmvidattn.apis.build_runner import build_runner
from tools.data.online.make_synthetic import Recipe, make_synthetic

NAME = 'testra_tiny_synthetic'
# A small model, with a long memory that is shorter than a video.
SMALL = {
    'model.backbone.embed_dims': 16,
    'model.backbone.ffn_dims': 16,
    'model.backbone.long_memory_length': 8,
    'model.cls_head.in_channels': 16,
    'test_dataloader.dataset.long_steps': 32,
}


@pytest.fixture
def score(tmp_path):
    """Score a data set with options; return its metrics and samples."""
    numbers = itertools.count()

    def run(data, options, changes):
        name, dataset = f'streams{next(numbers)}', 'test_dataloader.dataset'
        options = {
            'work_dir': str(tmp_path), 'visualizer.vis_backends': [],
            'visualizer.name': name, 'experiment_name': name,
            'log_level': 'ERROR', f'{dataset}.data_root': str(data),
            f'{dataset}.metainfo.classes': f'{data}/classes.txt', **SMALL,
            **options}
        checkpoint = tmp_path / 'model.pth'
        if not checkpoint.exists():
            torch.manual_seed(0)
            model = get_model(NAME, cfg_options=copy.deepcopy(options))
            # With initial weights, scores hardly depend on the video.
            for x in model.parameters():
                if x.dim() > 1:
                    torch.nn.init.normal_(x, std=0.3)
            torch.save(dict(state_dict=model.state_dict()), checkpoint)
        cfg = load_config(NAME, {**options, **changes})
        cfg.load_from = str(checkpoint)
        runner, samples = build_runner(cfg, strict=True), []
        process = runner.test_loop.evaluator.process
        runner.test_loop.evaluator.process = lambda data_samples, **kwargs: (
            samples.extend(data_samples),
            process(data_samples=data_samples, **kwargs))
        return runner.test(), samples

    return run


@pytest.fixture(scope='module')
def data(tmp_path_factory):
    """Four streams of different lengths, one shorter than a window."""
    out = tmp_path_factory.mktemp('streams') / 'set'
    make_synthetic(out, 2, 4, 0, Recipe(
        steps=100, classes=2, cue_steps=(40, 60)))
    short = (out / 'val.txt').read_text().split()[2]
    for folder in 'rgb', 'flow', 'target_perframe':
        path = out / folder / f'{short}.npy'
        np.save(path, np.load(path)[:20])
    return out


def test_streams_have_the_map_of_windows(data, score):
    got, scores = zip(*(score(data, {'model.cls_head.num_classes': 7}, {
        'test_dataloader.dataset.windows': windows,
        'test_dataloader.batch_size': together,
        'model.stream_kernel': kernel,
    }) for windows, kernel, together in (
        ('videos', 'window', 1), ('stream', 'window', 3),
        ('stream', 'smoothing', 4))))
    windows, three, smoothing = got
    # Detection, anticipation and some classes.
    assert len(windows) > 6 and 'online/mAP_dense@0.25s' in windows
    for key, value in windows.items():
        assert three[key.replace('dense', 'stream_window')] == \
            pytest.approx(value, abs=1e-6), key
    expected, streams, smoothed = scores
    for a, b in zip(expected, streams, strict=True):
        torch.testing.assert_close(
            a.pred_action[:a.video_length], b.pred_action, atol=1e-5, rtol=0)
    # The other kernel has different scores.
    value = smoothing['online/mAP_stream_smoothing']
    assert 0 < value != windows['online/mAP_dense']
    assert max((a.pred_action - b.pred_action).abs().max()
               for a, b in zip(streams, smoothed)) > 1e-3
    for result in three, smoothing:
        assert result['online/stream_steps_per_second'] > 0
    # Work memory: 32 rows; long memory: scores (8 x 4) and values (16) of the
    # 32 + 32 last steps; the two counters.
    row = 16 + 2 * 16 + 16 + 2 * (2 * 16)
    state = 4 * (32 * row + (31 + 32 + 1) * (8 * 4 + 16)) + 2 * 8
    assert three['online/stream_state_bytes'] == state


def test_streams_have_the_recall_of_windows(score, tmp_path):
    """Compare segments scored in windows and along a stream (Table 4)."""
    root = write_set(tmp_path, LENGTHS)
    # 30 frames and 4 steps per second.
    rows = [(video, round(start * 7.5 + 1), round(end * 7.5 - 1), label - 1,
             0, label - 1) for video, segments in SEGMENTS.items()
            for start, end, label in segments]
    (root / 'segments.csv').write_text(''.join(
        f'P0{i % 3}_01_{i},{",".join(map(str, row))}\n'
        for i, row in enumerate(rows)))
    options = {
        'model.backbone.in_channels': dict(rgb=3, flow=2),
        'model.backbone.num_anticipation_tokens': 2,
        'model.backbone.work_memory_length': 8,
        'model.cls_head.num_classes': 3,
        'model.cls_head.score': 'logit',
        'test_dataloader.batch_size': 3,
        **{f'test_dataloader.dataset.{name}': value for name, value in dict(
            ann_file='videos.txt', segment_file='segments.csv', work_steps=16,
            work_rate=2, anticipation_steps=8, anticipation_rate=4).items()}}
    result, scores = zip(*(score(root, options, {
        'test_dataloader.dataset.windows': windows,
        'test_evaluator': dict(
            _delete_=True, type='MeanTopKRecall', k=1,
            actions=[(0, 0), (1, 0)], subsets=dict(unseen=['P01']))})
        for windows in ('segments', 'stream')))
    assert list(result[0])[0] == 'online/action_top1_recall_testra'
    assert len(result[0]) == 6
    for key, value in result[0].items():
        assert result[1][key.replace('testra', 'testra_stream_window')] == \
            value
    # Three of 9 segments begin in the first 8 steps.
    windows = {s.segment_id: s for s in scores[0] if s.score_rows}
    assert len(windows) == 6
    for sample in scores[1]:
        for i, identity in enumerate(sample.segment_id):
            rows = sample.score_rows[i]
            assert bool(rows) == (identity in windows)
            if rows:
                want = windows[identity]
                got = sample.pred_action[i] if rows == [0] else \
                    sample.pred_anticipated_action[i, rows[0] - 1]
                torch.testing.assert_close(
                    got, want.pred_action[want.score_rows[0]], atol=1e-4,
                    rtol=0)
