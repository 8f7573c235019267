# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Detectors of frames: training with carried state, and entire videos."""
import numpy as np
import pytest
import torch
from mmaction.registry import MODELS
from mmengine.dataset import pseudo_collate
from mmengine.structures import BaseDataElement

K, SIDE, T = 4, 16, 6


def build(tokens=0, carry_state=True, **options):
    torch.manual_seed(0)
    model = MODELS.build(dict(
        type='OnlineActionDetector', carry_state=carry_state,
        backbone=dict(
            type='OnlineVideoEncoder', num_anticipation_tokens=tokens,
            encoder=dict(
                type='LinearVideoTransformer', pattern='causal',
                img_size=SIDE, patch_size=8, patch_stride=8, patch_padding=0,
                embed_dims=16, num_layers=2, num_heads=2, init_std=.25,
                temporal_shift=dict(mode='tsm', divisor=4),
                decay=dict(half_life=(4, 16)))),
        cls_head=dict(type='OnlineActionHead', in_channels=16, num_classes=K),
        data_preprocessor=dict(type='VideoStreamPreprocessor'), **options))
    model.init_weights()
    return model


def frames_of(video, length):
    gen = torch.Generator().manual_seed(video)
    return torch.randint(256, (3, length, SIDE, SIDE), generator=gen,
                         dtype=torch.uint8)


def clip(video, start, length=T):
    steps = np.arange(start, start + length)
    gen = torch.Generator().manual_seed(video + 100)
    targets = torch.nn.functional.one_hot(
        torch.randint(K, (60, ), generator=gen), K).float()
    sample = BaseDataElement(metainfo=dict(
        video_name=f'v{video}', work_indices=steps))
    sample.set_data(dict(gt_action=targets[steps]))
    return dict(inputs=dict(frames=frames_of(video, 60)[:, steps],
                            elapsed=torch.ones(length)), data_samples=sample)


def losses_of(model, batches):
    results = []
    for batch in batches:
        data = model.data_preprocessor(
            pseudo_collate([clip(*place) for place in batch]), True)
        results.append(model(**data, mode='loss')['loss_action'])
    return results


def test_consecutive_clips_have_the_loss_of_one_long_clip():
    model = build()
    parts = losses_of(model, [[(0, 0), (1, 12)], [(0, 6), (1, 18)],
                              [(0, 12), (1, 24)]])
    whole = build(carry_state=False)
    whole.load_state_dict(model.state_dict())
    want, = losses_of(whole, [[(0, 0, 3 * T), (1, 12, 3 * T)]])
    torch.testing.assert_close(torch.stack(parts).mean(), want, rtol=1e-5,
                               atol=1e-6)


def test_only_the_next_clip_of_the_same_video_continues():
    model = build()
    first, moved, other, late = (
        losses_of(model, batches)[-1] for batches in (
            # The clip (1, 6) at the start of training; after its previous
            # clip in another row; after clips of other videos; after a batch
            # of other videos.
            [[(1, 6), (0, 6)]],
            [[(0, 0), (1, 0)], [(1, 6), (0, 6)]],
            [[(2, 0), (3, 0)], [(1, 6), (0, 6)]],
            [[(0, 0), (1, 0)], [(2, 6), (3, 6)], [(1, 6), (0, 6)]]))
    torch.testing.assert_close(other, first)
    torch.testing.assert_close(late, first)
    assert (moved - first).abs() > 1e-4
    continued = losses_of(model, [[(0, 0), (1, 0)], [(0, 6), (1, 6)]])[-1]
    torch.testing.assert_close(moved, continued)


def test_gradients_stop_at_the_start_of_a_clip():
    model = build()
    data = [model.data_preprocessor(pseudo_collate([clip(0, start)]), True)
            for start in (0, 6)]
    first = data[0]['inputs']['frames'].requires_grad_()
    model(**data[0], mode='loss')
    model(**data[1], mode='loss')['loss_action'].backward()
    assert first.grad is None
    assert all(p.grad is not None for p in model.parameters())


@pytest.mark.parametrize('tokens, chunk', [(0, 40), (2, 1), (2, 7)])
def test_chunks_of_a_video_have_the_scores_of_the_whole(tokens, chunk):
    model = build(tokens, carry_state=False).eval()
    length = 16
    frames = frames_of(5, length)
    chunks = (dict(frames=x, elapsed=torch.ones(x.shape[1]))
              for x in frames.split(chunk, dim=1))
    # Steps to score; by default all.
    steps = [7, 3, 7] if chunk == 1 else [*range(length)]
    sample = BaseDataElement(metainfo=dict(
        score_steps=steps) if chunk == 1 else {})
    with torch.no_grad():
        result, = model.test_step(pseudo_collate([dict(
            inputs=dict(frames=chunks), data_samples=sample)]))
        want = [model(dict(frames=model.data_preprocessor.normalize(
            frames[None, :, :n])))['action'][0].softmax(-1)
            for n in range(1, length + 1)]
    got = result.pred_action[:, None]
    if tokens:
        got = torch.cat([got, result.pred_anticipated_action], dim=1)
    torch.testing.assert_close(
        got, torch.stack([want[i][i:] for i in steps]),
        rtol=1e-4, atol=1e-5)
    assert ('pred_anticipated_action' in result) == bool(tokens)


def test_preprocessor_normalizes_bytes():
    preprocessor = MODELS.build(dict(
        type='VideoStreamPreprocessor', mean=[100., 110., 120.],
        std=[50., 60., 70.]))
    frames = frames_of(0, 2)
    batch = preprocessor(dict(inputs=dict(frames=[frames] * 2)))
    for got, x, mean, std in zip(batch['inputs']['frames'][1], frames,
                                 (100, 110, 120), (50, 60, 70)):
        torch.testing.assert_close(got, (x.float() - mean) / std)


@pytest.mark.parametrize('options, error', [
    (dict(type='VideoStreamPreprocessor', std=[1., 1.]), 'std'),
    (dict(type='OnlineActionDetector', carry_state=True,
          backbone=dict(type='MiniROAD', in_channels=dict(rgb=4)),
          cls_head=dict(type='OnlineActionHead', num_classes=3)),
     'carry_state')], ids=str)
def test_rejects_options(options, error):
    with pytest.raises(ValueError, match=error):
        MODELS.build(options)
