# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import pytest
import torch
from mmaction.registry import MODELS
from mmengine.dataset import pseudo_collate
from mmengine.optim import build_optim_wrapper
from mmengine.registry import init_default_scope
from mmengine.structures import BaseDataElement

from mmvidattn.online import StreamSession

N, L, A, K = 6, 4, 2, 5


def _detector(tokens=A, stream_kernel='window', **head):
    torch.manual_seed(0)
    init_default_scope('mmaction')
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


def _sample(seed, multi_hot=False):
    gen = torch.Generator().manual_seed(seed)
    gt = torch.randint(K, (L + A, ), generator=gen)
    if multi_hot:
        gt = torch.nn.functional.one_hot(gt, K).float()
    sample = BaseDataElement(metainfo=dict(video_name=f'v{seed}'))
    sample.set_data(dict(gt_action=gt, gt_verb=gt, gt_noun=gt))
    mask = torch.arange(N) < seed
    return dict(
        inputs=dict(
            rgb=torch.randn(N + L, 7, generator=gen),
            flow=torch.randn(N + L, 3, generator=gen).half(),
            padding_mask=mask),
        data_samples=sample)


def _video(seed, length, tokens=A):
    gen = torch.Generator().manual_seed(seed)
    work = torch.arange(length - L + 1)[:, None] + torch.arange(L)
    long = (work[:, :1] - torch.arange(N, 0, -1))
    return dict(
        inputs=dict(
            rgb=torch.randn(length, 7, generator=gen),
            flow=torch.randn(length, 3, generator=gen),
            long_indices=long.clamp(min=0), work_indices=work,
            padding_mask=long < 0),
        data_samples=BaseDataElement(metainfo=dict(video_name=f'v{seed}')))


@pytest.mark.parametrize('multi_hot', [False, True], ids=['ids', 'multi-hot'])
def test_trains(multi_hot):
    model = _detector(num_verbs=K, num_nouns=K)
    wrapper = build_optim_wrapper(
        model, dict(optimizer=dict(type='Adam', lr=1e-2)))
    batch = pseudo_collate([_sample(i, multi_hot) for i in range(3)])
    first = model.train().train_step(batch, wrapper)
    assert set(first) == {'loss', 'loss_action', 'loss_verb', 'loss_noun'}
    for _ in range(10):
        last = model.train_step(batch, wrapper)
    assert last['loss'] < first['loss'] - 0.15


def test_predicts_each_sample_of_a_batch():
    model = _detector(num_verbs=3, num_nouns=4).eval()
    samples = [_sample(i) for i in range(3)]
    batch = pseudo_collate(samples)
    with torch.no_grad():
        results = model.test_step(batch)
    assert [r.video_name for r in results] == ['v0', 'v1', 'v2']
    for i, result in enumerate(results):
        x = samples[i]['inputs']
        with torch.no_grad():
            logits = model(dict(
                rgb=x['rgb'][None], flow=x['flow'][None].float(),
                padding_mask=x['padding_mask'][None]))
        for name, classes in (('action', K), ('verb', 3), ('noun', 4)):
            got = result.get(f'pred_{name}')
            assert got.shape == (L + A, classes)
            expected = logits[name][0].softmax(-1)
            assert torch.allclose(got, expected, atol=1e-6)


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
    for video in videos:
        # Like in the dataset, an empty long memory keeps step 0.
        video['inputs']['padding_mask'][0, -1] = False
    dense = model.test_step(pseudo_collate(videos))
    # Add a video that is shorter than the work memory.
    videos.append(_video(4, L))
    for name in 'rgb', 'flow':
        videos[-1]['inputs'][name] = videos[-1]['inputs'][name][:2]
    streams = model.test_step(
        pseudo_collate([_as_stream(v) for v in videos]))
    for video, whole, stream in zip(videos, dense, streams):
        x = video['inputs']
        windows = {
            name: torch.cat([x[name][x['long_indices']],
                             x[name][x['work_indices']]], dim=1)
            for name in ('rgb', 'flow')
        }
        logits = model(dict(windows, padding_mask=x['padding_mask']))
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
    for video, sample in zip(videos, streams):
        length = len(video['inputs']['rgb'])
        assert len(sample.pred_action) == length
        assert sample.evaluation_mode == 'mode_window'
        assert sample.stream_cost['steps'] == length
        # The size of the state is for a single stream.
        session = StreamSession(model, 1)
        assert sample.stream_cost['state_bytes'] == sum(
            x.nbytes for x in session.state_dict()['state'].values())
    # The time is divided by the number of steps.
    shares = [s.stream_cost['seconds'] / s.stream_cost['steps']
              for s in streams]
    assert shares == pytest.approx([shares[0]] * 5) and shares[0] > 0


def test_streams_score_selected_steps():
    model = _detector(stream_kernel='smoothing').eval()
    sample = _as_stream(_video(0, 30))
    rows, = model.test_step(pseudo_collate([sample]))
    sample = _as_stream(_video(0, 30))
    sample['data_samples'].set_metainfo(dict(score_steps=[7, 3, 7]))
    none = _as_stream(_video(1, 5))
    none['data_samples'].set_metainfo(dict(score_steps=[]))
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


def test_tensor_mode_has_stages():
    model = _detector().eval()
    inputs = model.data_preprocessor(pseudo_collate([_sample(0)]))['inputs']
    features = model(inputs, stage='backbone')
    assert features.shape == (1, L + A, 8)
    assert torch.equal(model.cls_head(features)['action'],
                       model(inputs)['action'])
    for options, error in ((dict(stage='neck'), 'stage must be one of'),
                           (dict(mode='train'), 'mode must be one of')):
        with pytest.raises(ValueError, match=error):
            model(inputs, **options)
    with pytest.raises(ValueError, match="mode='loss'"):
        model([_video(0, 15)['inputs']], mode='loss')


def test_compiles_to_one_graph():
    model = _detector().eval()
    inputs = pseudo_collate([_sample(1), _sample(2)])['inputs']
    inputs = {name: torch.stack(x) for name, x in inputs.items()}
    inputs['flow'] = inputs['flow'].float()
    want = model(inputs)['action']
    compiled = torch.compile(model, fullgraph=True, backend='eager')
    torch.testing.assert_close(compiled(inputs)['action'], want)
