# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Train and test the Charades config on frame lists."""
import cv2
import numpy as np
import pytest
import torch
from config_cache import load_config
from mmaction.registry import DATASETS, METRICS, MODELS
from mmengine.dataset import pseudo_collate

NAME = 'linear_ff_charades_released'


@pytest.fixture
def frames_dir(tmp_path):
    """Write three videos of 20 frames in the folders of the config."""
    lines = ['original_vido_id video_id frame_id path labels']
    rng = np.random.default_rng(0)
    for v in range(3):
        folder = tmp_path / f'Charades_v1_rgb/V{v}'
        folder.mkdir(parents=True)
        for i in range(20):
            name = f'V{v}-{i + 1:06}.jpg'
            cv2.imwrite(str(folder / name),
                        rng.integers(256, size=(24, 32, 3), dtype=np.uint8))
            lines.append(f'V{v} {v} {i} V{v}/{name} "{v},{i // 10 + 100}"')
    for name in 'train.csv', 'val.csv':
        (tmp_path / name).write_text('\n'.join(lines))
    return tmp_path


def test_train_step_and_test_step(narrow, step_once, frames_dir):
    sets = {split: load_config(NAME)[f'{split}_dataloader'].dataset
            for split in ('train', 'val', 'test')}
    cfg = narrow(NAME)
    for split, dataset in sets.items():
        dataset.data_root = str(frames_dir)
        for step in dataset.pipeline:
            for key in {'scale_range', 'scale', 'size', 'crop_size'} & {*step}:
                value = step[key]
                step[key] = tuple(max(x // 8, -1) for x in value) if \
                    isinstance(value, tuple) else value // 8
        cfg[f'{split}_dataloader'].dataset = dataset
    assert step_once(cfg) == (30, 3, 16, 32, 32)

    # Test labels are those of the video. Training labels are those of the
    # clip, which may repeat the first frame.
    sample = DATASETS.build(sets['val'])[1]
    assert sample['data_samples'].gt_label.nonzero().flatten().tolist() == [
        1, 100, 101]
    np.random.seed(0)
    trained = [DATASETS.build(sets['train'])[1]['data_samples'].gt_label
               for _ in range(8)]
    assert {label.shape for label in trained} == {(157, )}
    assert all(label[1] == 1 and label.sum() in (2, 3) for label in trained)
    model = MODELS.build(cfg.model).eval()
    with torch.no_grad():
        results = model.test_step(pseudo_collate([
            DATASETS.build(sets['val'])[i] for i in range(3)]))
    metric = METRICS.build(dict(cfg.test_evaluator))
    metric.dataset_meta = None
    metric.process(None, [result.to_dict() for result in results])
    got = metric.evaluate(3)['acc/mean_average_precision']
    assert 0 < got <= 1
