# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# vivit_tiny_fact_encoder_motion.py with a frozen spatial encoder. Set
# load_from, or init_cfg of the backbone, to its start weights.
_base_ = 'vivit_tiny_fact_encoder_motion.py'

model = dict(type='FineTunedRecognizer3D', freeze='spatial')
