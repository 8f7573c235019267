# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
from pathlib import Path

import matplotlib.image
import numpy as np

from tools import causal_picture

DOCS = Path(__file__).resolve().parents[2] / 'docs'


def test_weights_decay_with_age():
    linear, softmax = (x.numpy() for x in causal_picture.frame_weights())
    T, W = causal_picture.FRAMES, causal_picture.WINDOW
    age = np.arange(T)[:, None] - np.arange(T)
    want = np.where(age >= 0, .5**(age / causal_picture.HALF_LIFE), 0)
    want /= want.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(linear, want, rtol=0, atol=1e-6)
    want = ((age >= 0) & (age < W)).astype(float)
    want /= want.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(softmax, want, rtol=0, atol=1e-12)


def test_picture_of_the_page_is_current(tmp_path, run_main):
    page = (DOCS / 'causal.md').read_text()
    assert '](causal.png)' in page
    assert '`python tools/causal_picture.py docs/causal.png`' in page
    run_main('causal_picture.py', str(tmp_path / 'new.png'))
    new, old = (matplotlib.image.imread(path) for path in (
        tmp_path / 'new.png', DOCS / 'causal.png'))
    assert new.shape == old.shape
    # Fonts may differ between machines.
    assert np.abs(new - old).mean() < .02
