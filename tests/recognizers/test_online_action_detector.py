# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import pytest
import torch
from mmaction.registry import MODELS
from mmengine.dataset import pseudo_collate
from mmengine.structures import BaseDataElement

from mmvidattn.online import StreamSession

N, L, A, K = 6, 4, 2, 5


def _detector(tokens=A, stream_kernel='window', **head):
    torch.manual_seed(0)
    return MODELS.build(dict(
        type='OnlineActionDetector',
        stream_kernel=stream_kernel,
        backbone=dict(
            type='TeSTra', in_channels=dict(rgb=7, flow=3), embed_dims=8,
            num_heads=2, ffn_dims=8, long_memory_length=N,
            work_memory_length=L, num_anticipation_tokens=tokens, decay=0.9,
            encoder=[dict(num_queries=2, num_layers=1)]),
        cls_head=dict(type='OnlineActionHead', in_channels=8, num_classes=K,
                      **head)))


def _sample(seed):
    gen = torch.Generator().manual_seed(seed)
    gt = torch.randint(K, (L + A, ), generator=gen)
    sample = BaseDataElement(metainfo=dict(video_name=f'v{seed}'))
    sample.set_data(dict(gt_action=gt, gt_verb=gt, gt_noun=gt))
    return dict(
        inputs=dict(
            rgb=torch.randn(N + L, 7, generator=gen),
            flow=torch.randn(N + L, 3, generator=gen).half(),
            padding_mask=torch.arange(N) < seed),
        data_samples=sample)


def _video(seed, length):
    gen = torch.Generator().manual_seed(seed)
    work = torch.arange(length - L + 1)[:, None] + torch.arange(L)
    long = work[:, :1] - torch.arange(N, 0, -1)
    mask = long < 0
    # Like in the dataset, an empty long memory keeps step 0.
    mask[0, -1] = False
    return dict(
        inputs=dict(
            rgb=torch.randn(length, 7, generator=gen),
            flow=torch.randn(length, 3, generator=gen),
            long_indices=long.clamp(min=0), work_indices=work,
            padding_mask=mask),
        data_samples=BaseDataElement())


@torch.no_grad()
def test_predicts_each_sample_of_a_batch():
    model = _detector(num_verbs=3, num_nouns=4).eval()
    samples = [_sample(i) for i in range(3)]
    results = model.test_step(pseudo_collate(samples))
    assert [r.video_name for r in results] == ['v0', 'v1', 'v2']
    for sample, result in zip(samples, results):
        logits = model({name: x[None].float() if name == 'flow' else x[None]
                        for name, x in sample['inputs'].items()})
        for name, classes in (('action', K), ('verb', 3), ('noun', 4)):
            assert logits[name].shape == (1, L + A, classes)
            torch.testing.assert_close(result.get(f'pred_{name}'),
                                       logits[name][0].softmax(-1))


def _as_stream(video, **options):
    inputs = {k: video['inputs'][k] for k in ('rgb', 'flow')}
    return dict(
        inputs=dict(inputs, long_rate=1, work_rate=1,
                    stretch_long_memory=False, **options),
        data_samples=BaseDataElement(metainfo=dict(evaluation_mode='mode')))


@pytest.mark.parametrize('tokens', [0, A])
@torch.no_grad()
def test_videos_and_streams_have_the_scores_of_windows(tokens):
    """The streams run in parallel and have different lengths."""
    model = _detector(tokens, num_verbs=3).eval()
    videos = [_video(i, n) for i, n in enumerate((11, 15, 4, 15))]
    dense = model.test_step(pseudo_collate(videos))
    # Add a video that is shorter than the work memory.
    videos.append(_video(4, L))
    for name in 'rgb', 'flow':
        videos[-1]['inputs'][name] = videos[-1]['inputs'][name][:2]
    streams = model.test_step(pseudo_collate([_as_stream(v) for v in videos]))
    for video, whole, stream in zip(videos, dense, streams):
        x = video['inputs']
        windows = torch.cat([x['long_indices'], x['work_indices']], dim=1)
        logits = model(dict(rgb=x['rgb'][windows], flow=x['flow'][windows],
                            padding_mask=x['padding_mask']))
        for name in 'action', 'verb':
            scores = logits[name].softmax(-1)
            steps = torch.cat([scores[0, :L - 1], scores[:, L - 1]])
            key = f'pred_anticipated_{name}'
            for got, first in (whole, 0), (stream, L - 1):
                torch.testing.assert_close(
                    got.get(f'pred_{name}'), steps, atol=2e-6, rtol=0)
                assert (key in got) == bool(tokens)
                if tokens:
                    torch.testing.assert_close(
                        got.get(key)[first:], scores[:, L:], atol=2e-6,
                        rtol=0)
    # The size of the state is for a single stream.
    size = sum(x.nbytes for x in StreamSession(
        model, 1).state_dict()['state'].values())
    share = streams[0].stream_cost['seconds'] / 11
    assert share > 0
    for sample, length in zip(streams, (11, 15, 4, 15, 2), strict=True):
        assert len(sample.pred_action) == length
        assert sample.evaluation_mode == 'mode_window'
        # The time is divided by the number of steps.
        assert sample.stream_cost == dict(
            steps=length, state_bytes=size,
            seconds=pytest.approx(share * length))


def test_streams_score_selected_steps():
    model = _detector(stream_kernel='smoothing').eval()
    sample = _as_stream(_video(0, 30))
    rows, = model.test_step(pseudo_collate([sample]))
    none = _as_stream(_video(1, 5))
    for each, steps in (sample, [7, 3, 7]), (none, []):
        each['data_samples'] = BaseDataElement(metainfo=dict(
            evaluation_mode='mode', score_steps=steps))
    some, no = model.test_step(pseudo_collate([sample, none]))
    assert some.evaluation_mode == 'mode_smoothing'
    for key in 'pred_action', 'pred_anticipated_action':
        torch.testing.assert_close(
            some.get(key), rows.get(key)[[7, 3, 7]], atol=1e-6, rtol=0)
    assert 'pred_action' not in no and no.stream_cost['steps'] == 5
    # The smoothing kernel sees the entire past, the window kernel only the
    # latest samples.
    window = _detector().eval()
    other, = window.test_step(pseudo_collate([_as_stream(_video(0, 30))]))
    difference = (other.pred_action - rows.pred_action).abs().amax(dim=1)
    assert difference[:L + N].max() < 1e-6 < difference[-1]


def test_tensor_mode_has_stages_and_compiles_to_one_graph():
    model = _detector().eval()
    inputs = model.data_preprocessor(
        pseudo_collate([_sample(1), _sample(2)]))['inputs']
    features, want = model(inputs, stage='backbone'), model(inputs)['action']
    assert features.shape == (2, L + A, 8)
    assert torch.equal(model.cls_head(features)['action'], want)
    compiled = torch.compile(model, fullgraph=True, backend='eager')
    torch.testing.assert_close(compiled(inputs)['action'], want)
    for x, options, error in (
            (inputs, dict(stage='neck'), 'stage must be one of'),
            (inputs, dict(mode='train'), 'mode must be one of'),
            ([_video(0, 15)['inputs']], dict(mode='loss'), "mode='loss'")):
        with pytest.raises(ValueError, match=error):
            model(x, **options)
