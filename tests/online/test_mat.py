# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""MAT: comparison with the naive reference, windows and streams."""
from functools import partial

import pytest
import torch
from helpers import relative
from online.naive_mat import NaiveMAT, Sizes, random_weights
from online.networks import build_detector, frame_of, video_like, window_of

from mmvidattn.convert import convert
from mmvidattn.online import StreamSession

N, L, A = 12, 5, 2
video_of = partial(video_like, dict(rgb=6, flow=4))


def pair_of(sizes=Sizes(), **kwargs):
    """Return the reference and our model with the same weights, in float64."""
    weights = random_weights(sizes)
    model = build_detector('mat', **kwargs).double().eval()
    model.load_state_dict(convert('mat', weights))
    naive = NaiveMAT(weights, sizes)
    # Our positions are computed in float32.
    positions = naive.positions(L + A)
    assert relative(model.backbone.positions, positions) < 1e-6
    model.backbone.positions = positions
    return naive, model


def window_at(model, video, t, *rates):
    """Return the features up to frame t in the dataset's window of it."""
    long, padded, start, place = window_of(model.backbone, t, *rates)
    frames = torch.cat([long, start + rates[1] * torch.arange(place + 1)])
    return frame_of(video, frames), padded


@torch.no_grad()
@pytest.mark.parametrize('rounds', [1, 2, 3])
def test_matches_naive(rounds):
    """In one batch, long memories are compressed in segments or as one."""
    naive, model = pair_of(Sizes(rounds=rounds), num_rounds=rounds,
                           head=dict(work_weights=[1.] * (rounds + 1)))
    windows = [video_of(N + L, seed=seed) for seed in range(4)]
    padded = torch.arange(N) < torch.tensor([[0], [2], [3], [11]])
    stages = model.backbone.stages(dict(
        {name: torch.stack([w[name] for w in windows])
         for name in windows[0]}, padding_mask=padded))
    for i, window in enumerate(windows):
        works, futures = naive(window['rgb'], window['flow'], padded[i])
        assert len(stages.work) == len(works) == rounds + 1
        assert len(stages.future) == len(futures) == rounds
        for got, want in zip((*stages.work, *stages.future),
                             (*works, *futures)):
            assert relative(got[i], want) < 1e-12


@torch.no_grad()
def test_no_groups_compress_the_memory_as_one():
    naive, model = pair_of(Sizes(groups=0), num_groups=0)
    window, padded = video_of(N + L), torch.arange(N) < 2
    stages = model.backbone.stages(dict(
        {name: x[None] for name, x in window.items()},
        padding_mask=padded[None]))
    works, _ = naive(window['rgb'], window['flow'], padded)
    for got, want in zip(stages.work, works):
        assert relative(got[0], want) < 1e-12


@torch.no_grad()
def test_young_stream_matches_shorter_windows():
    naive, model = pair_of()
    long_rate, work_rate, stretch, length = 3, 2, False, 54
    video = video_of(length)
    got = StreamSession(
        model, long_rate, work_rate, stretch_long_memory=stretch).push(
            video)['action']
    assert got.shape == (length, 1 + A, 5)
    for t in 0, 1, 2, 3, 7, 8, 12, 30, 53:
        window, padded = window_at(
            model, video, t, long_rate, work_rate, stretch)
        # Until the stream has enough steps, the window is shorter.
        want = model({**{name: x[None] for name, x in window.items()},
                      'padding_mask': padded[None]})['action'][0, -1 - A:]
        assert (got[t] - want).abs().max() < 1e-12, t
        if t in (3, 12, 30):
            works, _ = naive(window['rgb'], window['flow'], padded)
            want = naive.linear('classifier', works[-1][-1 - A:])
            assert (got[t] - want).abs().max() < 1e-11, t


def test_training_compresses_all_samples_of_a_batch_alike():
    """Like the released code, for a batch with much padding."""
    _, model = pair_of()
    window = video_of(N + L)
    inputs = {name: torch.stack([x, x]) for name, x in window.items()}
    some = torch.arange(N) < torch.tensor([[0], [2]])
    many = torch.arange(N) < torch.tensor([[0], [3]])
    model.train()
    alone = model.backbone({n: x[:1] for n, x in inputs.items()})
    in_segments = model.backbone(dict(inputs, padding_mask=some))
    whole = model.backbone(dict(inputs, padding_mask=many))
    assert relative(in_segments[:1], alone) < 1e-12
    assert relative(whole[:1], alone) > 1e-3
    tested = model.eval().backbone(dict(inputs, padding_mask=many))
    assert relative(tested[:1], alone) < 1e-12


def test_drop_rate_reaches_every_transformer():
    backbone = build_detector('mat', drop_rate=0.37).backbone
    for name in 'encoder', 'decoder', 'first_future', 'work_rounds':
        rates = {x.p for x in getattr(backbone, name).modules()
                 if isinstance(x, torch.nn.Dropout)}
        assert rates == {0.37}, name


@torch.no_grad()
def test_loss_weighs_all_rounds_as_released():
    sizes = Sizes(verbs=3, nouns=4)
    naive, model = pair_of(sizes, head=dict(num_verbs=3, num_nouns=4))
    window, padded = video_of(N + L), torch.zeros(N, dtype=torch.bool)
    gen = torch.Generator().manual_seed(1)
    classes = dict(action=5, verb=3, noun=4)
    targets = {
        f'gt_{kind}{name}': torch.randint(classes[name], (rows, ),
                                          generator=gen)
        for name in classes
        for kind, rows in (('', L + A), ('future_', 9))
    }
    works, futures = naive(window['rgb'], window['flow'], padded)

    def entropy(x, name, kind):
        layer = 'classifier' if name == 'action' else f'classifier_{name}'
        logits = naive.linear(layer, x)
        rows = torch.arange(len(logits))
        return -logits.log_softmax(1)[rows, targets[f'gt_{kind}{name}']].mean()

    # Six tokens stand for nine steps.
    spread = futures[0][[0, 0, 1, 2, 2, 3, 4, 4, 5]]
    want = dict(
        loss_action=sum(w * entropy(x, 'action', '')
                        for w, x in zip((0.2, 0.2, 1), works)),
        loss_verb=entropy(works[2], 'verb', ''),
        loss_noun=entropy(works[2], 'noun', ''),
        loss_future_action=0.1 * (entropy(spread, 'action', 'future_') +
                                  entropy(futures[1], 'action', 'future_')),
        loss_future_verb=0.1 * entropy(futures[1], 'verb', 'future_'),
        loss_future_noun=0.1 * entropy(futures[1], 'noun', 'future_'))
    got = model({name: x[None] for name, x in window.items()}, [targets],
                mode='loss')
    assert got.keys() == want.keys()
    for name, value in want.items():
        # Losses are computed in float32.
        assert got[name].item() == pytest.approx(value.item(), rel=1e-5), name


def test_rejects_inputs_and_options():
    _, model = pair_of()
    window = {name: x[None] for name, x in video_of(N + L + 1).items()}
    with pytest.raises(ValueError, match=r"inputs\['rgb'\] .*13 <= T <= 17"):
        model(window)
    with pytest.raises(ValueError, match=r'\[B, T, 6\].* got nothing'):
        model({})
    with pytest.raises(ValueError, match='13 <= T .* got .1, 12, 6'):
        model({name: x[:, :N] for name, x in window.items()})
    window = {name: x[:, :-1] for name, x in window.items()}
    with pytest.raises(ValueError, match="inputs\\['padding_mask'] must be"):
        model(dict(window, padding_mask=torch.zeros(1, 3, dtype=torch.bool)))
    for options, message in (
        (dict(num_groups=5), 'num_groups must divide'),
        (dict(num_groups=4), r'at least num_groups \*\* 2 = 16, got 12'),
        (dict(anticipation_rate=5), 'num_future_tokens must be at least'),
        (dict(share=0.), 'share'), (dict(share=1.5), 'share'),
        (dict(long_memory_length=0), 'long_mem')):
        with pytest.raises(ValueError, match=message):
            build_detector('mat', **options)
    with pytest.raises(ValueError, match='work_weights must have'):
        build_detector('mat', num_rounds=3)(
            {name: x.float() for name, x in window.items()}, [{}],
            mode='loss')
