# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
default_scope = 'mmaction'
custom_imports = dict(imports=['mmvidattn'], allow_failed_imports=False)

# Decode with the reader of mmvidattn instead of DecordInit and DecordDecode;
# 'decord' keeps them.
video_backend = 'pyav'

# mmengine's Runner, which also applies video_backend.
runner_type = 'VideoRunner'

default_hooks = dict(
    runtime_info=dict(type='RuntimeInfoHook'),
    timer=dict(type='IterTimerHook'),
    logger=dict(type='TolerantLoggerHook', interval=20, ignore_last=False),
    param_scheduler=dict(type='ParamSchedulerHook'),
    checkpoint=dict(
        type='AtomicCheckpointHook',
        interval=1,
        save_best='auto',
        max_keep_ckpts=3),
    sampler_seed=dict(type='DistSamplerSeedHook'),
    sync_buffers=dict(type='SyncBuffersHook'),
    skipped_videos=dict(type='SkippedVideosHook'),
    data_time=dict(type='DataTimeHook'),
    # Let a long run survive kills, preemption and invalid values.
    exact_resume=dict(type='ExactResumeHook'),
    preemption=dict(type='PreemptionHook'),
    nan_guard=dict(type='SkipNanStepsHook', max_skips=3))

env_cfg = dict(
    cudnn_benchmark=False,
    mp_cfg=dict(mp_start_method='fork', opencv_num_threads=0),
    dist_cfg=dict(backend='nccl'))

log_processor = dict(type='LogProcessor', window_size=20, by_epoch=True)

vis_backends = [dict(type='LocalVisBackend')]
visualizer = dict(type='ActionVisualizer', vis_backends=vis_backends)

log_level = 'INFO'
load_from = None
resume = False
