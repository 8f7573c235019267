# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
from pathlib import Path

import pytest
from mmaction.registry import TRANSFORMS
from mmengine.config import Config

from mmvidattn.apis import list_models, load_config

ROOT = Path(__file__).resolve().parents[2]
VIEWS_OPTION = 'test_dataloader.dataset.pipeline.1.num_clips'
VIEWS = dict(
    dualformer_tiny_k400=(4, 32, 224),
    dualformer_small_k400=(4, 32, 224),
    dualformer_base_k400=(4, 32, 224),
    dualformer_base_k600=(4, 32, 224),
    dualformer_tiny_tl_k400=(4, 32, 224),
    dualformer_small_tl_k400=(4, 32, 224),
    dualformer_tiny_tl_stored_k400=(4, 32, 224),
    dualformer_tiny_hmdb51=(4, 16, 224),
    dualformer_tiny_ucf101=(4, 16, 224),
    dualformer_tiny_diving48=(4, 16, 224),
    dualformer_small_hmdb51=(4, 32, 224),
    dualformer_small_ucf101=(4, 32, 224),
    dualformer_small_diving48=(4, 32, 224),
    dualformer_tiny_motion=(6, 8, 64),
    dualformer_wide_motion=(6, 8, 64),
    dualformer_tiny_tl_motion=(6, 8, 64),
    linear_ff_ssv2=(6, 16, 224),
    linear_ff_s_ssv2=(6, 8, 224),
    linear_ff_h_ssv2=(6, 32, 224),
    linear_ff_hr_ssv2=(6, 16, 336),
    linear_ff_vit_s16_ssv2=(6, 16, 224),
    linear_ff_vit_b16_ssv2=(6, 16, 224),
    linear_ff_paper_ssv2=(6, 16, 224),
    linear_ff_paper_k400=(12, 16, 224),
    linear_ff_paper_k600=(12, 16, 224),
    linear_ff_k400=(12, 16, 224),
    linear_ff_k600=(12, 16, 224),
    linear_ff_released_k400=(12, 16, 224),
    linear_ff_k400_1k_released=(12, 16, 224),
    linear_ff_k400_21k_released=(12, 16, 224),
    linear_ff_k600_released=(12, 16, 224),
    linear_ff_tiny_motion=(6, 8, 64),
    vivit_b16x2_joint_k400=(12, 32, 224),
    vivit_b16x2_fact_encoder_k400=(12, 32, 224),
    vivit_b16x2_fact_attention_k400=(12, 32, 224),
    vivit_b16x2_fact_dot_k400=(12, 32, 224),
    vivit_l16x2_joint_k400=(12, 32, 224),
    vivit_l16x2_fact_encoder_k400=(12, 32, 224),
    vivit_l16x2_fact_encoder_k600=(12, 32, 224),
    vivit_l16x2_fact_encoder_ssv2=(12, 32, 256),
    vivit_l16x2_fact_encoder_k400_released=(12, 32, 224),
    vivit_l16x2_fact_encoder_k600_released=(12, 32, 224),
    vivit_l16x2_fact_encoder_ssv2_released=(12, 32, 256),
    vivit_l16x2_fact_encoder_epic=(4, 32, 224),
    vivit_l16x2_fact_encoder_epic_released=(12, 32, 224),
    vivit_l16x2_fact_encoder_mit=(12, 32, 224),
    vivit_tiny_motion=(6, 8, 64),
    vivit_tiny_fact_encoder_motion=(6, 8, 64),
    vivit_tiny_frozen_motion=(6, 8, 64),
    vivit_dinov2_b14_fact_encoder_ucf101=(6, 16, 224),
    vivit_tiny_linear_motion=(6, 8, 64),
    vivit_tiny_linear_distill_motion=(6, 8, 64),
    xvit_ssv2=(3, 16, 224),
    xvit_ssv2_released=(6, 16, 224),
    xvit_linear_ssv2=(3, 16, 224),
    xvit_linear_distill_ssv2=(3, 16, 224),
    xvit_k400_released=(3, 16, 224),
    xvit_k600_released=(3, 16, 224),
    xvit_k400=(6, 16, 224),
    xvit_k600=(3, 16, 224))


# Tables' rows and LAPS have their own tests, on smaller clips; detectors of
# feature streams likewise, on features, and Charades, on lists of frames.
NAMES = [
    name for name in list_models()
    if not name.startswith(('laps_', 'testra', 'lstr', 'linear_ff_charades',
                            'miniroad', 'mat_', 'causal_transformer'))
]


@pytest.mark.parametrize('name', NAMES)
def test_trains_a_step_and_tests_a_step(name, narrow, step_once):
    views, frames, side = VIEWS[name]
    assert step_once(narrow(name)) == (views, 3, frames, side, side)


@pytest.mark.parametrize('name', list_models(ablations=True))
def test_can_be_dumped_and_read_again(name, tmp_path, monkeypatch):
    # The looks of the text take most of the time; trainings dump with them.
    monkeypatch.setattr('mmengine.config.config.FormatCode',
                        lambda text, **kwargs: (text, True))
    cfg = load_config(name)
    cfg.dump(tmp_path / 'dumped.py')
    again = Config.fromfile(tmp_path / 'dumped.py')
    assert again.to_dict() == cfg.to_dict()


def test_released_and_paper_settings_are_what_the_headers_say():
    ssv2, k400, k600, released, paper = (
        load_config(f'linear_ff_{name}')
        for name in ('ssv2', 'k400', 'k600', 'released_k400', 'paper_ssv2'))
    for cfg in (ssv2, k400, k600):
        assert cfg.model.backbone.fixation == dict(
            mode='cooperative', inputs='qkv', shared=True)
        assert cfg.train_cfg.max_epochs == 35
    assert ssv2.model.backbone.temporal_shift.divisor == 4
    assert ssv2.model.backbone.spatial_shift == dict(mode='eight', size=1)
    for cfg in (k400, k600):
        assert cfg.model.backbone.temporal_shift == dict(
            mode='tsm', divisor=8)
        assert cfg.model.backbone.spatial_shift == dict(
            mode='cross', size=4, divisor=8)
        assert cfg.model.cls_head.num_classes == \
            cfg.model.data_preprocessor.blending.num_classes == \
            cfg.train_dataloader.dataset.num_classes
    assert not released.model.backbone.fixation.shared
    assert released.model.backbone.temporal_shift.segment_frames == 8
    assert released.param_scheduler[-1].end == released.train_cfg.max_epochs
    assert paper.optim_wrapper.optimizer.weight_decay == 4e-4
    assert paper.model.backbone.attention.offset == 0


@pytest.mark.parametrize('name, space, time, start', [
    ('ssv2', 1, 4, .003), ('k400', 4, 8, .01), ('k600', 4, 8, .01)])
def test_papers_network_is_that_of_table_10(name, space, time, start):
    cfg = load_config(f'linear_ff_paper_{name}')
    backbone = cfg.model.backbone
    # A.3: radii of windows in which half of the channels stay.
    assert backbone.spatial_shift == dict(
        mode='cross', size=space, alpha=0.5)
    assert backbone.temporal_shift == dict(
        mode='window', size=time, alpha=0.5)
    assert (backbone.num_frames, backbone.embed_dims, backbone.num_heads,
            backbone.num_layers, backbone.order, backbone.shift_placement,
            backbone.patch_stride, backbone.attention.kernel) == (
                16, 512, 8, 12, 'space_time', 'both', 16, 'relu')
    optimizer, (schedule, ) = cfg.optim_wrapper.optimizer, cfg.param_scheduler
    assert (optimizer.lr, optimizer.weight_decay, optimizer.momentum) == (
        .035, 4e-4, .9)
    assert (cfg.train_cfg.max_epochs, schedule.warmup) == (35, 5)
    assert schedule.start_factor * optimizer.lr == pytest.approx(start)
    assert cfg.auto_scale_lr.base_batch_size == 32
    assert cfg.model.cls_head.dropout_ratio == .5
    # All else is that of the config that reads Table 10 as the code does.
    other = load_config(f'linear_ff_{name}')
    assert cfg.test_dataloader == other.test_dataloader
    assert cfg.model.cls_head == other.model.cls_head
    assert cfg.model.data_preprocessor == other.model.data_preprocessor


@pytest.mark.parametrize('linear, softmax', [
    ('xvit_linear{}_ssv2', 'xvit_ssv2'),
    ('vivit_tiny_linear{}_motion', 'vivit_tiny_motion')])
def test_distilled_student_and_teacher_are_those_of_other_configs(
        linear, softmax):
    plain, whole, teacher = map(load_config, (
        linear.format(''), linear.format('_distill'), softmax))
    student = {key: value for key, value in whole.model.items()
               if key in plain.model}
    assert dict(student, type='Recognizer3D') == plain.model
    told = whole.model.teacher
    assert told.backbone.pop('fixation') is None and told == teacher.model
    # What a training of the teacher leaves in its default folder.
    assert whole.model.teacher_checkpoint == \
        f'work_dirs/{softmax}/epoch_{teacher.train_cfg.max_epochs}.pth'
    assert 0 < whole.model.distill_epochs < whole.train_cfg.max_epochs
    for key in ('optim_wrapper', 'param_scheduler', 'train_dataloader'):
        assert whole[key] == plain[key] == teacher[key]


@pytest.mark.parametrize('name, views', [
    ('linear_ff_ssv2', (1, 2, 3)), ('linear_ff_k400', (1, 2, 3, 4, 5, 10))])
def test_views_are_one_option(name, views):
    """Those of the paper's Figure 4."""
    for num in views:
        cfg = load_config(name, {VIEWS_OPTION: num})
        step = cfg.test_dataloader.dataset.pipeline[1]
        frames = TRANSFORMS.build(step)(dict(
            total_frames=300, start_index=0))['frame_inds'].reshape(num, 16)
        starts = frames[:, 0].tolist()
        assert len(set(map(tuple, frames.tolist()))) == num
        if name == 'linear_ff_k400':
            # 300 - 256 frames, in equal steps from the first.
            assert starts == [int(44 * k / num) for k in range(num)]
        else:
            # The middle of the first segment, its start, its end.
            assert starts == [9, 0, 19][:num]
        family = name.rpartition('_')[0]
        page = (ROOT / f'configs/{family}/README.md').read_text()
        assert f'{VIEWS_OPTION}=' in page


@pytest.mark.parametrize('name, divisor, epochs, weight_decay', [
    ('ssv2', 4, 35, 1e-4), ('k400', 8, 30, 1e-5), ('k600', 8, 30, 1e-5)])
def test_xvit_is_trained_as_released(name, divisor, epochs, weight_decay):
    cfg = load_config(f'xvit_{name}')
    assert cfg.model.backbone.temporal_shift == dict(
        mode='tsm', divisor=divisor)
    assert cfg.optim_wrapper.optimizer.lr == 0.03
    assert cfg.optim_wrapper.optimizer.weight_decay == weight_decay
    schedule, = cfg.param_scheduler
    assert schedule.warmup == 5
    assert schedule.end == cfg.train_cfg.max_epochs == epochs
    # On 8 GPUs.
    assert 8 * cfg.train_dataloader.batch_size == \
        cfg.auto_scale_lr.base_batch_size == 64
    classes = {cfg.model.cls_head.num_classes,
               cfg.train_dataloader.dataset.num_classes}
    if name != 'ssv2':
        classes.add(cfg.model.data_preprocessor.blending.num_classes)
    assert classes == {dict(ssv2=174, k400=400, k600=600)[name]}
