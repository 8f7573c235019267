# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# The attentions of docs/attentions.md on the motion set. All rows have the
# shifts, and only the row `fixation` has feature fixation. `options` are those
# of --cfg-options, applied to `base`. `note` has two cells of the page: the
# result of a query q, and the multiply-accumulates of a head of D channels,
# with N tokens, M of them in 8 frames, and P landmarks, projections or
# features.
LINEAR = dict(type='LinearAttention', kernel='relu', offset='auto')
CLIPS = dict(
    softmax=('Softmax', dict(type='SoftmaxAttention'),
             'softmax(q kᵀ / √D) v | 2 N² D'),
    rotary=('Softmax, rotary positions', dict(type='RotaryAttention'),
            'softmax(R q (R k)ᵀ / √D) v, R rotates by position | 2 N² D'),
    linear=('Linear, ReLU', LINEAR,
            'φ(q) Σφ(k)ᵀv / φ(q) Σφ(k)ᵀ, φ = ReLU + D^-½ | 2 N D²'),
    elu=('Linear, ELU + 1', dict(type='LinearAttention', kernel='elu+1'),
         'the same with φ = ELU + 1 | 2 N D²'),
    cosformer=('cosFormer', dict(type='CosFormerAttention'),
               'linear, ReLU, scores times cos(π/2 (i - j) / N) | 4 N D²'),
    performer=('Performer', dict(type='PerformerAttention', num_features=64),
               'linear, φ(x) = exp(W x - ‖x‖²/2), random W | 4 N D P'),
    linformer=('Linformer',
               dict(type='LinformerAttention', num_projections=16),
               'softmax(q (E k)ᵀ / √D) F v, learned E and F | 4 N D P'),
    orthoformer=('Orthoformer',
                 dict(type='OrthoformerAttention', num_landmarks=16),
                 'softmax(q mᵀ) softmax(m kᵀ) v, P of the queries m | '
                 '4 N D P'),
    lara=('LARA', dict(type='LARAAttention', num_landmarks=9),
          'linear, features exp(ω x - ‖x‖²/2) at P landmarks ω | 5 N D P'),
    mala=('MALA', dict(type='MALAAttention'),
          'Σ((1 + 1/z) s - z/N) v, s = φ(q) φ(k)ᵀ / N√D, z = Σs | 2 N D²'),
    polaformer=('PolaFormer', dict(type='PolaFormerAttention'),
                'linear, ReLU(±x)^p; equal signs for half of v, opposite '
                'signs for half; times W q | 5 N D²'),
    rala=('RALA', dict(type='RALAAttention'),
          'linear, keys times softmax(q̄ kᵀ / √D); times W φ(q) | 3 N D²'))
STREAMS = dict(
    causal_softmax=('Softmax, causal',
                    dict(type='SoftmaxAttention', window_frames=8),
                    'softmax over the latest 8 frames | 2 N M D'),
    causal_linear=('Linear, causal', LINEAR,
                   'linear over previous frames, state Σφ(k)ᵀv | 2 N D²'),
    causal_gated_delta=('Gated delta rule, causal',
                        dict(type='GatedDeltaAttention'),
                        'q S normalized, times SiLU(W q); state '
                        'S = αS + Kᵀ diag(β) (V - αK S) / m | 4 N D²'))

rows = {
    f'linear_ff_motion_{name}': dict(
        table='Attentions',
        row=title,
        note=note,
        base=base,
        options={
            'model.backbone.attention': dict(_delete_=True, **attention),
            'model.backbone.fixation': None})
    for base, part in (('linear_ff_tiny_motion', CLIPS),
                       ('linear_ff_causal_tiny_motion', STREAMS))
    for name, (title, attention, note) in part.items()}
rows['linear_ff_motion_fixation'] = dict(
    table='Attentions',
    row='Linear, feature fixation',
    note='linear, φ(q) and φ(k) times σ(W [φ(q), φ(k), v]) | 5 N D²',
    base='linear_ff_tiny_motion')
