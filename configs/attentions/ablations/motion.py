# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# The attentions of docs/attentions.md on the motion set. All rows have the
# shifts, and only the row `fixation` has feature fixation. `options` are those
# of --cfg-options, applied to `base`. `note` has two cells of the page: the
# result of a query q, and the multiply-accumulates of a head of D channels,
# with N tokens, M of them in 8 frames, and P landmarks, projections or
# features.
rows = dict(
    linear_ff_motion_softmax=dict(
        table='Attentions',
        row='Softmax',
        note='softmax(q kᵀ / √D) v | 2 N² D',
        base='linear_ff_tiny_motion',
        options={
            'model.backbone.attention': dict(
                _delete_=True, type='SoftmaxAttention'),
            'model.backbone.fixation': None}),
    linear_ff_motion_rotary=dict(
        table='Attentions',
        row='Softmax, rotary positions',
        note='softmax(R q (R k)ᵀ / √D) v, R rotates by position | 2 N² D',
        base='linear_ff_tiny_motion',
        options={
            'model.backbone.attention': dict(
                _delete_=True, type='RotaryAttention'),
            'model.backbone.fixation': None}),
    linear_ff_motion_linear=dict(
        table='Attentions',
        row='Linear, ReLU',
        note='φ(q) Σφ(k)ᵀv / φ(q) Σφ(k)ᵀ, φ = ReLU + D^-½ | 2 N D²',
        base='linear_ff_tiny_motion',
        options={
            'model.backbone.attention': dict(
                _delete_=True, type='LinearAttention',
                kernel='relu', offset='auto'),
            'model.backbone.fixation': None}),
    linear_ff_motion_elu=dict(
        table='Attentions',
        row='Linear, ELU + 1',
        note='the same with φ = ELU + 1 | 2 N D²',
        base='linear_ff_tiny_motion',
        options={
            'model.backbone.attention': dict(
                _delete_=True, type='LinearAttention', kernel='elu+1'),
            'model.backbone.fixation': None}),
    linear_ff_motion_cosformer=dict(
        table='Attentions',
        row='cosFormer',
        note='linear, ReLU, scores times cos(π/2 (i - j) / N) | 4 N D²',
        base='linear_ff_tiny_motion',
        options={
            'model.backbone.attention': dict(
                _delete_=True, type='CosFormerAttention'),
            'model.backbone.fixation': None}),
    linear_ff_motion_performer=dict(
        table='Attentions',
        row='Performer',
        note='linear, φ(x) = exp(W x - ‖x‖²/2), random W | 4 N D P',
        base='linear_ff_tiny_motion',
        options={
            'model.backbone.attention': dict(
                _delete_=True, type='PerformerAttention', num_features=64),
            'model.backbone.fixation': None}),
    linear_ff_motion_linformer=dict(
        table='Attentions',
        row='Linformer',
        note='softmax(q (E k)ᵀ / √D) F v, learned E and F | 4 N D P',
        base='linear_ff_tiny_motion',
        options={
            'model.backbone.attention': dict(
                _delete_=True, type='LinformerAttention', num_projections=16),
            'model.backbone.fixation': None}),
    linear_ff_motion_orthoformer=dict(
        table='Attentions',
        row='Orthoformer',
        note='softmax(q mᵀ) softmax(m kᵀ) v, P of the queries m | 4 N D P',
        base='linear_ff_tiny_motion',
        options={
            'model.backbone.attention': dict(
                _delete_=True, type='OrthoformerAttention', num_landmarks=16),
            'model.backbone.fixation': None}),
    linear_ff_motion_lara=dict(
        table='Attentions',
        row='LARA',
        note='linear, features exp(ω x - ‖x‖²/2) at P landmarks ω | 5 N D P',
        base='linear_ff_tiny_motion',
        options={
            'model.backbone.attention': dict(
                _delete_=True, type='LARAAttention', num_landmarks=9),
            'model.backbone.fixation': None}),
    linear_ff_motion_mala=dict(
        table='Attentions',
        row='MALA',
        note='Σ((1 + 1/z) s - z/N) v, s = φ(q) φ(k)ᵀ / N√D, z = Σs | 2 N D²',
        base='linear_ff_tiny_motion',
        options={
            'model.backbone.attention': dict(
                _delete_=True, type='MALAAttention'),
            'model.backbone.fixation': None}),
    linear_ff_motion_polaformer=dict(
        table='Attentions',
        row='PolaFormer',
        note='linear, ReLU(±x)^p; equal signs for half of v, '
        'opposite signs for half; times W q | 5 N D²',
        base='linear_ff_tiny_motion',
        options={
            'model.backbone.attention': dict(
                _delete_=True, type='PolaFormerAttention'),
            'model.backbone.fixation': None}),
    linear_ff_motion_rala=dict(
        table='Attentions',
        row='RALA',
        note='linear, keys times softmax(q̄ kᵀ / √D); times W φ(q) | 3 N D²',
        base='linear_ff_tiny_motion',
        options={
            'model.backbone.attention': dict(
                _delete_=True, type='RALAAttention'),
            'model.backbone.fixation': None}),
    linear_ff_motion_causal_softmax=dict(
        table='Attentions',
        row='Softmax, causal',
        note='softmax over the latest 8 frames | 2 N M D',
        base='linear_ff_causal_tiny_motion',
        options={
            'model.backbone.attention': dict(
                _delete_=True, type='SoftmaxAttention', window_frames=8),
            'model.backbone.fixation': None}),
    linear_ff_motion_causal_linear=dict(
        table='Attentions',
        row='Linear, causal',
        note='linear over previous frames, state Σφ(k)ᵀv | 2 N D²',
        base='linear_ff_causal_tiny_motion',
        options={
            'model.backbone.attention': dict(
                _delete_=True, type='LinearAttention',
                kernel='relu', offset='auto'),
            'model.backbone.fixation': None}),
    linear_ff_motion_causal_gated_delta=dict(
        table='Attentions',
        row='Gated delta rule, causal',
        note='q S normalized, times SiLU(W q); state S = αS + Kᵀ '
        'diag(β) (V - αK S) / m | 4 N D²',
        base='linear_ff_causal_tiny_motion',
        options={
            'model.backbone.attention': dict(
                _delete_=True, type='GatedDeltaAttention'),
            'model.backbone.fixation': None}),
    linear_ff_motion_fixation=dict(
        table='Attentions',
        row='Linear, feature fixation',
        note='linear, φ(q) and φ(k) times σ(W [φ(q), φ(k), v]) | 5 N D²',
        base='linear_ff_tiny_motion'))
