# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Labels of ViViT; test_released.py tests its recipes."""
import pytest
import torch
from mmaction.registry import DATASETS, METRICS, MODELS
from mmengine.dataset import pseudo_collate


def test_epic_kitchens_labels_have_a_noun_and_a_verb(narrow, motion_dir):
    cfg = narrow('vivit_l16x2_fact_encoder_epic')
    video = (motion_dir / 'val.txt').read_text().split()[0]
    path = motion_dir / 'epic.csv'
    path.write_text(
        'narration_id,video_id,start_timestamp,stop_timestamp,start_frame,'
        'stop_frame,verb_class,noun_class\n'
        f'a_0,{video},00:00:00.00,00:00:00.50,1,6,96,299\n'
        f'a_1,{video},00:00:00.50,00:00:01.00,6,11,0,0\n')
    cfg.train_dataloader.dataset.update(
        ann_file=path.name, filename_tmpl='{}')
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
