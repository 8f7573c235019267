# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
from pathlib import Path

import matplotlib.image
import numpy as np

DOCS = Path(__file__).resolve().parents[2] / 'docs'


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
