# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""MAT: comparison with the naive reference, windows and streams."""
import pytest
import torch
import torch.nn.functional as F
from helpers import relative
from mmaction.registry import MODELS
from online.naive_mat import NaiveMAT, Sizes, random_weights
from online.networks import build_detector, frame_of, video_of, windows_of

from mmvidattn.convert import convert
from mmvidattn.online import StreamSession

N, L, A = 12, 5, 2
BACKBONE = dict(
    type='MAT', in_channels=dict(rgb=6, flow=4), embed_dims=8, num_heads=2,
    ffn_dims=12, long_memory_length=N, work_memory_length=L,
    num_anticipation_tokens=A, num_groups=3, num_queries=4,
    num_future_queries=6, num_future_tokens=9)


def pair_of(sizes=Sizes(), head=(), **backbone):
    """Return the reference and our model with the same weights, in float64."""
    weights = random_weights(sizes)
    model = build_detector(
        {**BACKBONE, **backbone}, 'MATHead', num_classes=5, **dict(head)
    ).double().eval()
    model.load_state_dict(convert('mat', weights))
    naive = NaiveMAT(weights, sizes)
    # Our positions are computed in float32.
    positions = naive.positions(L + A)
    assert relative(model.backbone.positions, positions) < 1e-6
    model.backbone.positions = positions
    return naive, model


def batch_of(*videos):
    return {name: torch.stack([video[name] for video in videos])
            for name in videos[0]}


@torch.no_grad()
@pytest.mark.parametrize('rounds, groups', [(1, 3), (2, 3), (3, 3), (2, 0)])
def test_matches_naive(rounds, groups):
    """In one batch, long memories are compressed in segments or as one."""
    naive, model = pair_of(
        Sizes(rounds=rounds, groups=groups), num_rounds=rounds,
        num_groups=groups, head=dict(work_weights=[1.] * (rounds + 1)))
    windows = [video_of(model, N + L, seed=seed) for seed in range(4)]
    padded = torch.arange(N) < torch.tensor([[0], [2], [3], [11]])
    stages = model.backbone.stages(
        dict(batch_of(*windows), padding_mask=padded))
    for i, window in enumerate(windows):
        for got, want in zip((stages.work, stages.future),
                             naive(window['rgb'], window['flow'], padded[i])):
            for a, b in zip(got, want, strict=True):
                assert relative(a[i], b) < 1e-12


@torch.no_grad()
def test_young_stream_matches_shorter_windows():
    naive, model = pair_of()
    sampling, length = (3, 2, False), 48
    video = video_of(model, length)
    got = StreamSession(
        model, *sampling[:2], stretch_long_memory=False).push(video)['action']
    assert got.shape == (length, 1 + A, 5)
    for t in 0, 1, 2, 3, 7, 8, 12, 30, 47:
        frames, padded, (place,) = windows_of(model.backbone, [t], *sampling)
        # Until the stream has enough steps, the window is shorter.
        window = frame_of(video, frames[0, :N + place + 1])
        works, _ = naive(window['rgb'], window['flow'], padded[0])
        want = naive.linear('classifier', works[-1][-1 - A:])
        assert (got[t] - want).abs().max() < 1e-11, t


def test_training_compresses_all_samples_of_a_batch_alike():
    """Like the released code, for a batch with much padding."""
    _, model = pair_of()
    inputs = batch_of(*[video_of(model, N + L)] * 2)
    alone = model.train().backbone({n: x[:1] for n, x in inputs.items()})
    for padded, training, equal in (
            (2, True, True), (3, True, False), (3, False, True)):
        got = model.train(training).backbone(dict(
            inputs, padding_mask=torch.arange(N) < torch.tensor(
                [[0], [padded]])))
        error = relative(got[:1], alone)
        assert error < 1e-12 if equal else error > 1e-3


def test_drop_rate_reaches_every_transformer():
    backbone = MODELS.build(dict(BACKBONE, drop_rate=0.37))
    for name in 'encoder', 'decoder', 'first_future', 'work_rounds':
        rates = {x.p for x in getattr(backbone, name).modules()
                 if isinstance(x, torch.nn.Dropout)}
        assert rates == {0.37}, name


@torch.no_grad()
def test_loss_weighs_all_rounds_as_released():
    sizes = Sizes(verbs=3, nouns=4)
    naive, model = pair_of(sizes, head=dict(num_verbs=3, num_nouns=4))
    window, padded = video_of(model, N + L), torch.zeros(N, dtype=torch.bool)
    gen = torch.Generator().manual_seed(1)
    classes = dict(action=5, verb=3, noun=4)
    targets = {f'gt_{kind}{name}': torch.randint(number, (rows, ),
                                                 generator=gen)
               for name, number in classes.items()
               for kind, rows in (('', L + A), ('future_', 9))}
    works, futures = naive(window['rgb'], window['flow'], padded)

    def entropy(x, name):
        layer = f'classifier_{name}'.replace('future_', '').removesuffix(
            '_action')
        return F.cross_entropy(naive.linear(layer, x), targets[f'gt_{name}'])

    # Six tokens stand for nine steps.
    spread = futures[0][[0, 0, 1, 2, 2, 3, 4, 4, 5]]
    want = dict(
        loss_action=sum(w * entropy(x, 'action')
                        for w, x in zip((0.2, 0.2, 1), works)),
        loss_verb=entropy(works[2], 'verb'),
        loss_noun=entropy(works[2], 'noun'),
        loss_future_action=0.1 * (entropy(spread, 'future_action') +
                                  entropy(futures[1], 'future_action')),
        loss_future_verb=0.1 * entropy(futures[1], 'future_verb'),
        loss_future_noun=0.1 * entropy(futures[1], 'future_noun'))
    got = model(batch_of(window), [targets], mode='loss')
    assert got.keys() == want.keys()
    for name, value in want.items():
        # Losses are computed in float32.
        assert got[name].item() == pytest.approx(value.item(), rel=1e-5), name
