# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import pytest
import torch

from mmvidattn.recognizers.token_label_store import TokenLabelStore

NAMES = ['/data/run/a.mp4', '/data/run/b.mp4', '/data/jump/a.mp4']
SHAPE = 2, 3, 4, 5


def _labels(seed=0):
    generator = torch.Generator().manual_seed(seed)
    values = torch.randn(*SHAPE, generator=generator)
    return values, torch.randint(0, 400, SHAPE, generator=generator)


def test_reads_labels_of_moved_videos(tmp_path):
    store = TokenLabelStore.create(tmp_path, NAMES, 2, SHAPE)
    store.write(2, 1, *_labels())
    got = TokenLabelStore(tmp_path).read('/elsewhere/jump/a.mp4', 1)
    for a, b in zip(got, _labels()):
        assert torch.equal(a, b)


def test_keeps_unicode_names(tmp_path):
    names = ['run/a\u2028b.mp4', 'springen/höher.mp4']
    store = TokenLabelStore.create(tmp_path, names, 1, SHAPE)
    store.write(1, 0, *_labels())
    got = TokenLabelStore(tmp_path).read(names[1], 0)
    assert torch.equal(got[0], _labels()[0])


def test_continues_after_interruption(tmp_path):
    store = TokenLabelStore.create(tmp_path, NAMES, 2, SHAPE, seed=1)
    store.write(0, 1, *_labels())
    del store
    again = TokenLabelStore.create(tmp_path, NAMES, 2, SHAPE, seed=1)
    assert list(again.missing()) == [(0, 0), (1, 0), (1, 1), (2, 0), (2, 1)]
    assert torch.equal(again.read(NAMES[0], 1)[0], _labels()[0])


def test_rejects_different_settings(tmp_path):
    TokenLabelStore.create(tmp_path, NAMES, 2, SHAPE, seed=1)
    with pytest.raises(ValueError, match='other settings: seed 1, now 2'):
        TokenLabelStore.create(tmp_path, NAMES, 2, SHAPE, seed=2)
    with pytest.raises(ValueError, match='other videos'):
        TokenLabelStore.create(tmp_path, NAMES[:2], 2, SHAPE, seed=1)


def test_rejects_missing_and_ambiguous_names(tmp_path):
    with pytest.raises(FileNotFoundError, match='token_labels.py'):
        TokenLabelStore(tmp_path)
    with pytest.raises(ValueError, match='several videos.*run/a.mp4'):
        TokenLabelStore.create(tmp_path, [*NAMES, '/x/run/a.mp4'], 1, SHAPE)
    store = TokenLabelStore.create(tmp_path, NAMES, 1, SHAPE)
    for name, view in ((NAMES[0], 0), (NAMES[0], 1), ('x/c.mp4', 0)):
        with pytest.raises(ValueError, match=f'lacks labels for view {view} '):
            store.read(name, view)
