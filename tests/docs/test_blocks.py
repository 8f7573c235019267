# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""The code blocks of the pages run; tests/doc_blocks.py has the rules."""
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import doc_blocks
import pytest


def name_of(page: Path) -> str:
    return str(page.relative_to(doc_blocks.ROOT))


@contextmanager
def at(block: doc_blocks.Block) -> Iterator[None]:
    """Add the place of the block to errors."""
    try:
        yield
    except (Exception, SystemExit) as error:
        raise AssertionError(f'{block.place}: {error!r}') from error


@pytest.fixture
def scratch(motion_dir, monkeypatch, tmp_path):
    scratch = doc_blocks.Scratch(tmp_path, motion_dir, monkeypatch)
    yield scratch
    scratch.forget()
    monkeypatch.undo()


def check_train(scratch, printed):
    assert (scratch.folder / 'prediction.png').stat().st_size > 1000
    assert len(scratch.names['result'].predictions) >= 3
    # The complexity of linear and of softmax attention.
    assert printed.count('linear_ff_tiny_motion') >= 2


def check_long_videos(scratch, printed):
    assert re.search(r'^all +\d+ +\d+\.\d', printed, re.M)
    assert re.search(r'^(red|yellow|green|blue) from \d+\.\d to', printed,
                     re.M)
    # TeSTra, step by step.
    for name in 'scores.mp4', 'scores.png':
        assert (scratch.folder / name).stat().st_size > 1000


def check_own_attention(scratch, printed):
    assert 'SquaredReLUAttention' in scratch.names['kinds']
    assert (scratch.folder / 'work_dirs/my_config/epoch_2.pth').is_file()


def check_paper_tables(scratch, printed):
    assert "kernel='elu" in (
        scratch.folder / 'linear_ff_table05_elu1.py').read_text()


# Checks of the results that the tutorials promise.
PROMISES = {name.removeprefix('check_'): check
            for name, check in globals().copy().items()
            if name.startswith('check_') and name != 'check_block'}


@pytest.mark.parametrize('page', [
    pytest.param(page, marks=[pytest.mark.slow] * (
        page.stem == 'long_videos'))
    for page in doc_blocks.pages_to_run()],
    ids=lambda page: name_of(page))
def test_blocks_of_a_page_run(page, scratch, capfd):
    for block in doc_blocks.read_blocks(page):
        with at(block):
            scratch.run(block)
    if page.stem in PROMISES:
        PROMISES[page.stem](scratch, capfd.readouterr().out)


@pytest.mark.parametrize('page', doc_blocks.pages_to_parse(), ids=name_of)
def test_commands_of_other_pages_are_known(page, monkeypatch):
    for block in doc_blocks.read_blocks(page, 'parse'):
        with at(block):
            doc_blocks.check_block(block, monkeypatch)
