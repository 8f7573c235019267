# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# The spatial encoder of vivit_tiny_fact_encoder_motion.py, frozen, whose
# features are kept on disk: only what comes behind it is trained. Give it
# weights, as load_from or init_cfg of the backbone.
_base_ = 'vivit_tiny_fact_encoder_motion.py'

model = dict(type='FineTunedRecognizer3D', freeze='spatial')
custom_hooks = [dict(
    type='FeatureCacheHook', cache_dir='work_dirs/features', num_variants=1)]
