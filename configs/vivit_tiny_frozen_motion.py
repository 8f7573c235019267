# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# vivit_tiny_fact_encoder_motion.py with a frozen spatial encoder, whose
# features are cached on disk. Set load_from, or init_cfg of the backbone, to
# its start weights.
_base_ = 'vivit_tiny_fact_encoder_motion.py'

model = dict(type='FineTunedRecognizer3D', freeze='spatial')
custom_hooks = [dict(
    type='FeatureCacheHook', cache_dir='work_dirs/features', num_variants=1)]
