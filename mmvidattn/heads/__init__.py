# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Classification heads."""
from ..lazy import lazy_package

lazy_package(__name__, dict(
    attentive_head=['AttentiveHead'],
    clip_heads=['LAPSHead', 'LinearVideoTransformerHead', 'VerbNounHead',
                'ViViTHead', 'XViTHead'],
    mat_head=['MATHead'],
    online_action_head=['OnlineActionHead'],
    token_label_head=['TokenLabelHead']))
