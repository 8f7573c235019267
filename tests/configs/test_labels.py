# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Configs with several labels per clip."""
import cv2
import numpy as np
import pytest
import torch
from mmaction.registry import DATASETS, METRICS, MODELS
from mmengine.dataset import pseudo_collate

from mmvidattn.apis import load_config

CHARADES = 'linear_ff_charades_released'


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


def test_charades_trains_on_frame_lists(narrow, step_once, frames_dir):
    sets = {split: load_config(CHARADES)[f'{split}_dataloader'].dataset
            for split in ('train', 'val', 'test')}
    cfg = narrow(CHARADES)
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
    with torch.no_grad():
        results = MODELS.build(cfg.model).eval().test_step(pseudo_collate([
            DATASETS.build(sets['val'])[i] for i in range(3)]))
    metric = METRICS.build(cfg.test_evaluator)
    metric.dataset_meta = None
    metric.process(None, [result.to_dict() for result in results])
    got = metric.evaluate(3)['acc/mean_average_precision']
    assert 0 < got <= 1


def test_epic_kitchens_labels_have_a_noun_and_a_verb(narrow, motion_dir):
    cfg = narrow('vivit_l16x2_fact_encoder_epic')
    video = (motion_dir / 'val.txt').read_text().split()[0]
    path = motion_dir / 'epic.csv'
    path.write_text(
        'narration_id,video_id,start_timestamp,stop_timestamp,start_frame,'
        'stop_frame,verb_class,noun_class\n'
        f'a_0,{video},00:00:00.00,00:00:00.50,1,6,96,299\n'
        f'a_1,{video},00:00:00.50,00:00:01.00,6,11,0,0\n')
    cfg.train_dataloader.dataset.update(ann_file=path.name, filename_tmpl='{}')
    cfg.model.data_preprocessor.blending = None
    dataset = DATASETS.build(cfg.train_dataloader.dataset)
    samples = [dataset[0], dataset[1]]
    assert [s['data_samples'].gt_label.nonzero().flatten().tolist()
            for s in samples] == [[299, 396], [0, 300]]
    model = MODELS.build(cfg.model)
    model.init_weights()
    batch = model.data_preprocessor(pseudo_collate(samples), training=True)
    losses = model(**batch, mode='loss')
    assert {'loss_noun', 'loss_verb'} <= losses.keys()
    assert losses['loss_noun'].item() == pytest.approx(
        torch.tensor(300.).log().item() / 2)
    metric = METRICS.build(cfg.test_evaluator)
    metric.process(None, [
        dict(pred_score=s['data_samples'].gt_label,
             gt_label=s['data_samples'].gt_label) for s in samples])
    assert metric.evaluate(2)['acc/action'] == 1


def test_vjepa2_anticipates_noun_verb_and_action(narrow, train_once,
                                                 motion_dir):
    cfg = narrow('vjepa2_l_ek100')
    cfg.model.neck.update(in_channels=32, embed_dims=24, num_layers=1,
                          num_heads=2)
    cfg.model.backbone.mlp_dims = 32
    cfg.model.backbone.num_frames = 4
    cfg.optim_wrapper.type = 'OptimWrapper'
    del cfg.optim_wrapper['dtype']
    video = (motion_dir / 'val.txt').read_text().split()[0]
    # RULSTM's frames at 30 per second, verb, noun, action.
    (motion_dir / 'rulstm.csv').write_text(
        f'7,{video},15,30,96,299,3805\n8,{video},18,24,0,0,0\n')
    for split in 'train', 'test':
        dataset = cfg[f'{split}_dataloader'].dataset
        dataset.update(ann_file='rulstm.csv', filename_tmpl='{}')
        dataset.pipeline[1].update(clip_len=4, fps=10)
        for step in dataset.pipeline:
            for key in {'scale', 'crop_size'} & {*step}:
                step[key] = 32 if key == 'crop_size' else (
                    (-1, 32) if split == 'test' else (32, 32))
    model, unchanged = train_once(cfg)
    # Only the probe learns.
    assert {name.split('.')[0] for name in
            model.state_dict().keys() - unchanged} == {'cls_head'}
    assert unchanged >= {'neck.proj.weight', 'backbone.norm.bias'}
    dataset = DATASETS.build(cfg.test_dataloader.dataset)
    samples = [dataset[0], dataset[1]]
    labels = [sample['data_samples'].gt_label for sample in samples]
    assert [label.nonzero().flatten().tolist() for label in labels] == [
        [299, 396, 4202], [0, 300, 397]]
    with torch.no_grad():
        results = model.test_step(pseudo_collate(samples))
    assert results[0].pred_score.shape == (4203, )
    cfg.test_evaluator.subsets = dict(tail_verb=['7'], unseen=['8'])
    metric = METRICS.build(cfg.test_evaluator)
    # The second prediction ranks its noun sixth.
    scores = [label.clone() for label in labels]
    scores[1][[0, 1, 2, 3, 4, 5]] = torch.tensor([.5, 1, 1, 1, 1, 1])
    metric.process(None, [dict(result.to_dict(), pred_score=score)
                          for result, score in zip(results, scores)])
    got = metric.evaluate(2)
    assert [*got.items()][:2] == [
        ('online/action_top5_recall_clip', 1.),
        ('online/action_top5_recall_clip_unseen', 1.)]
    assert got['online/noun_top5_recall_clip'] == .5
    assert got['online/verb_top5_recall_clip_tail'] == 1
    with pytest.raises(ValueError, match='pred_score must have the 4203 cl'):
        metric.process(None, [dict(results[0].to_dict(),
                                   pred_score=torch.zeros(397))])
