# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Arguments that ops reject, with the values in the message."""
import re

import pytest
import torch
from torch import zeros

from mmvidattn import ops
from mmvidattn.ops.depthwise_conv import depthwise_conv
from mmvidattn.ops.leap import leap_pair
from mmvidattn.ops.patch_conv import patch_conv
from mmvidattn.ops.periodic_shift import plain_shift, token_shift
from mmvidattn.ops.stream_smoothing import (
    exponential_smoothing,
    sample_scores,
    smoothing_state,
    window_smoothing,
)
from mmvidattn.ops.top_share_attention import top_share_attention
from mmvidattn.ops.window import window_merge, window_partition

Q, K, V = zeros(2, 7, 2, 8), zeros(2, 9, 2, 8), zeros(2, 9, 2, 8)
LANDMARKS = zeros(2, 4, 2, 8)
FRAMES = zeros(1, 2, 3, 1, 4)
CLIP = zeros(1, 4, 3, 2, 4)
P = zeros(6, 8)
DELTA = *[zeros(1, 3, 3, 1, 4)] * 3, zeros(1, 3, 3, 1), zeros(1, 3, 1)
SCORES, VALUE = zeros(2, 3, 2), zeros(2, 2, 5)

ATTENTIONS = {
    ops.softmax_attention: (), ops.linear_attention: (),
    ops.cosformer_attention: (), ops.performer_attention: (P, ),
    ops.linformer_attention: (zeros(9, 3), zeros(9, 3))}
ORDERED = (ops.linear_attention, ops.cosformer_attention,
           ops.performer_attention)
CASES = [
    *((op, (*bad, *more), {}, r'v \[\*, M, G, E\], got')
      for op, more in ATTENTIONS.items()
      for bad in ((Q, K, V[:, :5]), (Q[:1], K, V), (Q[..., :4], K, V),
                  (Q[0, 0], K[0, 0], V[0, 0]))),
    *((op, (Q, K, V, *ATTENTIONS[op]), dict(order='up'),
       "'auto', 'left', 'right'.*'up'") for op in ORDERED),
    *((ops.softmax_attention, (Q, K, V), dict(key_mask=mask),
       r'key_mask.*bool.*\(2, 9\)')
      for mask in (torch.ones(2, 9), torch.ones(9, dtype=torch.bool),
                   torch.ones(2, 7, dtype=torch.bool))),
    *((ops.softmax_attention, (Q[0], K[0], V[0]), dict(bias=zeros(shape)),
       'bias of softmax_attention must')
      for shape in ((8, ), (2, 9), (2, 3, 7, 9), (4, 7, 9))),
    (ops.feature_map, (zeros(1), 'gelu'), {}, r"'elu\+1'.*got 'gelu'"),
    (ops.fixation_ratio, ((zeros(1, 4), ), zeros(4, 4), zeros(4), 'max'), {},
     "'concat', 'add', 'mul'.*'max'"),
    (ops.random_projection, (4, 0), {}, 'got 4 and 0'),
    (ops.performer_attention, (Q, K, V, zeros(6, 4)), {}, r'got \(6, 4\)'),
    *((ops.linformer_attention, (Q, K, V, zeros(9, 3), zeros(F)), {},
       'M=9 from') for F in ((9, 4), (6, 3))),
    (ops.lara_attention, (Q, K, V, LANDMARKS, LANDMARKS[:, :3]), {},
     r'key_landmarks, omega \[\*, C, G, D\]'),
    (ops.landmark_grid, ((17, 17), 50), {}, 'square.*two axes, got 50'),
    (ops.landmark_grid, ((17, ), 0), {}, 'positive, got 0'),
    (ops.landmark_pool, (zeros(12, 1, 2), (3, 4), (4, 4)), {}, 'grid'),
    (ops.orthoformer_attention, (Q, K, V, LANDMARKS[..., :7]), {},
     r'landmarks \[\*, C, G, D\]'),
    (ops.orthogonal_landmarks, (Q, 0), {}, 'num_landmarks.*got 0'),
    (ops.orthogonal_landmarks, (Q, 4, zeros(3, 2).long()), {},
     r'first_index.*\(2, 2\).*\(3, 2\)'),
    (top_share_attention, (Q, K, V), dict(share=0), r'share.*\(0, 1], got 0'),
    (top_share_attention, (Q, K, Q), dict(share=.5), 'top_share_attention ta'),
    *((ops.temporal_smoothing_attention, (Q, K, V), dict(decay=decay),
       r'decay must be in \(0, 1\], got') for decay in (0, -1, 1.01)),
    (ops.temporal_smoothing_attention, (Q, K[:, 1:], V), {}, 'attention take'),
    (sample_scores, (Q[0], K[..., :3]), {}, 'sample_scores takes q'),
    (window_smoothing, (SCORES[..., :1], VALUE), {}, 'window_smoothing takes'),
    (exponential_smoothing, (SCORES, VALUE, smoothing_state(SCORES, 5)),
     dict(decay=0.), r'decay must be in \(0, 1\]'),
    (ops.frame_causal_linear_attention,
     (FRAMES, FRAMES, zeros(1, 2, 4, 1, 4)), {}, 'takes q and k'),
    (ops.frame_causal_linear_attention, (FRAMES, ) * 3,
     dict(elapsed=torch.ones(1, 3)), r'elapsed.*\(1, 2\), got \(1, 3\)'),
    (ops.frame_causal_softmax_attention,
     (FRAMES[:, 1:], FRAMES, FRAMES, 4), {}, r'got \(1, 1, 3, 1, 4\)'),
    (ops.frame_causal_softmax_attention, (FRAMES, FRAMES, FRAMES, 0), {},
     'window_frames.*got 0'),
    *((ops.shift_plan, (mode, 32), options, message)
      for mode, options, message in (
          ('roll', dict(divisor=4), "must be one of.*'tsm'.*got 'roll'"),
          ('tsm', dict(divisor=4, alpha=.5), 'either divisor or alpha'),
          ('tsm', dict(alpha=.5), "'tsm' is not defined by alpha"),
          ('tsm', dict(divisor=1), 'at least'),
          ('window', dict(alpha=1.5), r'alpha must be in \[0, 1\], got 1.5'),
          ('eight', dict(size=0), 'at least 1, got 0'),
          ('eight', dict(boundary='wrap'), "'self'.*got 'wrap'"))),
    *((shift, (CLIP[..., None, :], ), options, message)
      for shift in (ops.periodic_shift, plain_shift, token_shift)
      for options, message in (
          (dict(fraction=0.6), r'fraction.*\[0, 1/2\], got 0.6'),
          (dict(first='last'), "first.*'next', 'previous'.*'last'"))),
    *((depthwise_conv, (CLIP, zeros(shape)), {}, 'depthwise_conv takes')
      for shape in ((4, 1, 3, 3, 2), (5, 1, 3, 3, 3))),
    *((patch_conv, (CLIP, zeros(shape)), {}, 'patch_conv takes')
      for shape in ((4, 3, 1, 1, 1), (4, 4, 5, 1, 1))),
    *((ops.frame_delta_rule, [x[:, :2] if i == wrong else x for i, x in
                              enumerate(DELTA)], {}, r'log_gate \[B, T, G\]')
      for wrong in range(5)),
    *((leap_pair, (zeros(1, T, 2), level), {},
       f'{T} frames.*{level}; .*{allowed}') for T, level, allowed in (
          (8, 0, r'\[1, 2, 3\]'), (6, 3, r'\[1, 2\]'),
          (7, 1, 'must be even'))),
    (ops.rotary_positions, (Q[0], (3, 2)), {}, '7 tokens, got'),
    (window_partition, (P, (1, 1, 1)), {}, r'H, W, C\], got \(6, 8\)'),
    *((window_partition, (CLIP, size), {}, f'got {re.escape(str(size))}')
      for size in ((2, 0, 2), (2, 2))),
    (window_merge, (zeros(1, 6, 7, 1), (2, 2, 2), (1, 4, 6)), {},
     r'windows must be \[B, 6, 8, C\]'),
]


@pytest.mark.parametrize('op, args, options, message', CASES,
                         ids=lambda x: getattr(x, '__name__', ''))
def test_rejects(op, args, options, message):
    with pytest.raises(ValueError, match=message):
        op(*args, **options)
