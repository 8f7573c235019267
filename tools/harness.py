# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Options, machine line, report and resuming of all programs in tools/.

This module imports only the standard library, because matrix.py runs without
installed packages.
"""
import argparse
import json
import os
import platform
import re
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]


# Options

def parser_of(doc: str, **kwargs: Any) -> argparse.ArgumentParser:
    """Return a parser that shows the whole docstring of a program."""
    return argparse.ArgumentParser(
        description=doc, formatter_class=argparse.RawDescriptionHelpFormatter,
        **kwargs)


def positive(text: str) -> float:
    """Parse a number above 0."""
    value = float(text)
    if not value > 0:
        raise argparse.ArgumentTypeError(f'must be above 0, got {text}')
    return value


def count(text: str) -> int:
    """Parse a positive integer."""
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f'must be at least 1, got {text}')
    return value


def add_counts(parser: argparse.ArgumentParser,
               **options: tuple[int, str]) -> None:
    """Add positive-integer options, given as name=(default, help)."""
    for name, (default, text) in options.items():
        parser.add_argument(
            f'--{name.replace("_", "-")}', type=count, default=default,
            help=f'{text} (default: {default})')


def add_outputs(parser: argparse.ArgumentParser) -> None:
    """Add the options of a soak's files."""
    parser.add_argument(
        '--folder', type=Path,
        help='working folder (default: a temporary folder)')
    parser.add_argument(
        '--out', type=Path, help='append the results to this file, as JSON')


def run_program(program: str, *args: object) -> None:
    """Run a program of tools/ with its output on standard error."""
    subprocess.run([sys.executable, ROOT / 'tools' / program,
                    *map(str, args)], check=True, stdout=sys.stderr)


# Machine line

def machine(device: Any = 'cpu') -> str:
    """Describe a device, its capability, Python and torch in one line."""
    import torch

    from mmvidattn.ops.processor import (
        capability,
        is_emulated,
        processor_name,
    )
    hardware = processor_name(device)
    label = str(capability(device))
    if torch.device(device).type == 'cpu':
        hardware = (f'{torch.get_num_threads()} threads on {os.cpu_count()} '
                    f'cores of {hardware}')
        label += ', emulated' * is_emulated()
    return (f'{hardware}, Python {platform.python_version()}, torch '
            f'{torch.__version__}, {label}')


# Report

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


def append_json(path: Path | None, result: Mapping[str, Any]) -> None:
    """Append a line of JSON to a file, unless `path` is None."""
    if path is not None:
        with path.open('a') as file:
            file.write(json.dumps(result) + '\n')


def finish(failures: Sequence[str]) -> None:
    """Print failures and exit with 1 if there are any."""
    for line in failures:
        print(f'wrong: {line}')
    print('failed' if failures else 'passed')
    raise SystemExit(bool(failures))


# Resuming

def require_same(path: Path, actual: Mapping[str, Any],
                 expected: Mapping[str, Any]) -> None:
    """Raise an error that names the options in which two runs differ.

    Raises:
        ValueError: If an option differs.
    """
    differing = {key: (actual.get(key), expected.get(key))
                 for key in sorted({*actual, *expected})
                 if actual.get(key) != expected.get(key)}
    if differing:
        changes = ', '.join(f'({key} was {a!r}, now {b!r})'
                            for key, (a, b) in differing.items())
        raise ValueError(f'{path} has results for different options '
                         f'{changes}; use the same options, or choose '
                         'another path')


def prepare_once(folder: Path, settings: Mapping[str, Any],
                 write: Callable[[], Any]) -> Any:
    """Write generated data into a folder, unless an earlier call has.

    Args:
        folder: Folder of the data.
        settings: All values that the data depend on.
        write: Function that writes the data, and returns facts about them
            that JSON can store.

    Returns:
        The facts, from this call or the earlier one.

    Raises:
        ValueError: If the folder has data with other settings.
    """
    from mmvidattn.utils.files import write_atomically
    settings = json.loads(json.dumps(settings))
    file = folder / 'facts.json'
    if file.is_file():
        meta = json.loads(file.read_text())
        require_same(file, meta['settings'], settings)
        return meta['facts']
    folder.mkdir(parents=True, exist_ok=True)
    facts = write()
    write_atomically(file, json.dumps(dict(settings=settings, facts=facts)))
    return facts


class Results:
    """Results of named runs in a folder, so that a program can resume.

    A program that starts again with the same options reuses the results.

    Args:
        folder: Folder that is empty, missing, or from an earlier start.
        options: All values that the results depend on, except the names of
            the runs.

    Raises:
        ValueError: If the folder has results for different options, or other
            files.
    """

    def __init__(self, folder: Path, options: Mapping[str, Any]) -> None:
        self.folder = folder / 'results'
        options = json.loads(json.dumps(options, default=str))
        file = folder / 'options.json'
        if file.is_file():
            require_same(file, json.loads(file.read_text()), options)
        elif folder.exists() and (
                not folder.is_dir() or any(folder.iterdir())):
            raise ValueError(f'{folder} is not empty and lacks options.json; '
                             'choose a folder that is empty or does not exist')
        self._write(file, options)

    def get(self, name: str) -> Any:
        """Return the result of a run, or None if it has not finished."""
        file = self.folder / f'{name}.json'
        return json.loads(file.read_text()) if file.is_file() else None

    def put(self, name: str, result: Any) -> Any:
        """Store the result of a run."""
        self._write(self.folder / f'{name}.json', result)
        return self.get(name)

    def once(self, name: str, compute: Callable[[], Any]) -> Any:
        """Return the stored result of a run, or compute and store it."""
        result = self.get(name)
        return self.put(name, compute()) if result is None else result

    @staticmethod
    def _write(file: Path, content: Any) -> None:
        from mmvidattn.utils.files import write_atomically
        write_atomically(file, json.dumps(content, indent=1))
