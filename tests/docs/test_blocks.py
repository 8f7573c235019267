# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""The code blocks of the pages run; tests/doc_blocks.py has the rules."""
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from doc_blocks import (
    ROOT,
    Block,
    Scratch,
    check_block,
    pages_to_parse,
    pages_to_run,
    read_blocks,
)


def name_of(page: Path) -> str:
    return str(page.relative_to(ROOT))


@contextmanager
def at(block: Block) -> Iterator[None]:
    """Add the place of the block to errors."""
    try:
        yield
    except (Exception, SystemExit) as error:
        raise AssertionError(f'{block.place}: {error!r}') from error


@pytest.fixture
def scratch(tmp_path, motion_dir, monkeypatch):
    scratch = Scratch(tmp_path, motion_dir, monkeypatch)
    yield scratch
    scratch.forget()


@pytest.mark.parametrize('page', pages_to_run(), ids=name_of)
def test_blocks_of_a_page_run(page, scratch):
    for block in read_blocks(page):
        with at(block):
            scratch.run(block)


@pytest.mark.parametrize('page', pages_to_parse(), ids=name_of)
def test_commands_of_other_pages_are_known(page, monkeypatch):
    for block in read_blocks(page, 'parse'):
        with at(block):
            check_block(block, monkeypatch)
