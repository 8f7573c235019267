# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Generated pages and their tables."""
import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]


def write_or_check(path: Path, text: str, check: bool, command: str) -> None:
    """Write a generated page, or check that the file of the page is current.

    Args:
        path: File of the page.
        text: Newly generated text of the page.
        check: Write nothing, and exit with an error if the file has other
            text.
        command: Command that writes the page, which the error names.
    """
    if not check:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    elif not path.is_file() or path.read_text() != text:
        raise SystemExit(f'{path} is stale; run {command}')


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """Format a Markdown table, one line per row."""
    return [f'| {" | ".join(line)} |'
            for line in (head, ['---'] * len(head), *rows)]


def replace_rows(text: str, head: Sequence[str], rows: Iterable[str],
                 key: Callable[[str], Any]) -> str:
    """Add lines to a Markdown table of a page, in place of older ones.

    Args:
        text: Text of the page.
        head: Titles of the table's columns, which identify the table.
        rows: New lines of the table. Lines with other keys stay.
        key: Function that returns the key of a line. A new line replaces the
            line with the same key, and the table is sorted by key.

    Returns:
        New text of the page.

    Raises:
        ValueError: If the table is missing.
    """
    title = re.escape(f'| {" | ".join(head)} |')
    match = re.search(rf'(?<={title}\n)(\|[ |-]+\n)((?:\|.*\n)*)', text)
    if not match:
        raise ValueError(f'the page lacks the table of {", ".join(head)}')
    lines = {key(line): line for line in (*match[2].splitlines(), *rows)}
    new = ''.join(f'{lines[name]}\n' for name in sorted(lines))
    return text[:match.start(2)] + new + text[match.end(2):]
