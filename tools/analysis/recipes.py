# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Write configs/<family>/recipes.md, and model-index.yml.

    python tools/analysis/recipes.py
    python tools/analysis/recipes.py --check   # fail if a file is out of date

For maintainers. A page shows how each config trains and tests, followed by the
authors' settings from ``configs/<family>/recipes.yml``, with differences in
bold. ``model-index.yml`` lists the metafiles of all families.
"""
import argparse
from collections.abc import Sequence
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

from mmvidattn.apis import load_config
from mmvidattn.apis.runner import one_line_errors
from mmvidattn.commands.recipes import (
    COLUMNS,
    augmentation,
    is_different,
    read_recipes,
    recipe,
    start_of,
    text_of,
)

NOTE = '<!-- Written by python tools/analysis/recipes.py -->'
ROOT = Path(__file__).resolve().parents[2]
LEGEND = '''\
This table shows how each config trains and tests. The rows "released" and
"paper" below a config are the authors' settings, with differences in bold. `-`
means unknown, and `(?)` assumed.

* batch: clips per GPU x GPUs x accumulated batches.
* warm-up epochs: number, and the factor of the learning rate at the start.
* training clip: frames x stride, and the pipeline step that samples them. For
  feature streams: long memory + work memory + steps ahead, each as steps /
  sampling stride.
* training sides, test sides: pixels of resizing and cropping, in the order of
  the pipeline.
* views: clips x crops per test video.
* averaged: scores of the views, or their probabilities. `max` takes the
  largest score.'''


def _cells(authors: dict[str, Any], ours: dict[str, str]) -> list[str]:
    cells = ((key, text_of(authors.get(key, '-'))) for key in COLUMNS)
    return [f'**{cell}**' if is_different(authors, ours, key) else cell
            for key, cell in cells]


def table(folder: Path) -> str:
    """Return a family's table of recipes and its augmentations as Markdown.

    Args:
        folder: Folder of ``recipes.yml``, one level below the configs.

    Raises:
        ValueError: If ``recipes.yml`` has an unknown config or key.
    """
    names, content = read_recipes(folder)
    # 1. Write a row for each config, followed by its authors' settings.
    lines = [f'| | {" | ".join(COLUMNS.values())} |',
             '|' + '---|' * (len(COLUMNS) + 1)]
    ours_by_steps: dict[str, list[str]] = {}
    authors_by_steps: dict[str, list[str]] = {}
    for name in names:
        cfg = load_config(folder.parent / f'{name}.py')
        ours = recipe(cfg, start_of(
            name, content['start'], folder / 'recipes.yml'))
        lines.append(f'| `{name}` | {" | ".join(ours.values())} |')
        ours_by_steps.setdefault(augmentation(cfg), []).append(f'`{name}`')
        for row in content['authors']:
            if not fnmatch(name, row['config']):
                continue
            lines.append(f'| {row["of"]} | '
                         f'{" | ".join(_cells(row, ours))} |')
            if 'augmentation' in row:
                authors_by_steps.setdefault(
                    row['augmentation'], []).append(f'`{name}`')
    # 2. List the augmentations, grouped by equal steps.
    for title, by_steps in (
            ('Augmentations in training, in order:', ours_by_steps),
            ("The authors' augmentations:", authors_by_steps)):
        lines += ['', title, '']
        for steps, configs in by_steps.items():
            lines.append(f'* {", ".join(dict.fromkeys(configs))}: {steps}.')
    return '\n'.join([LEGEND, '', *lines])


def index(root: Path) -> str:
    """Return the text of model-index.yml."""
    files = sorted(root.glob('configs/*/metafile.yml'))
    lines = ['# Written by python tools/analysis/recipes.py', 'Import:']
    lines += [f'  - {path.relative_to(root).as_posix()}' for path in files]
    return '\n'.join(lines) + '\n'


def files(root: Path) -> dict[Path, str]:
    """Return the text of each file to write."""
    folders = sorted(path.parent for path in root.glob(
        'configs/*/recipes.yml'))
    if not folders:
        raise ValueError(f'{root} must be a checkout with '
                         'configs/*/recipes.yml')
    texts = {}
    for folder in folders:
        title = (folder / 'README.md').read_text('utf-8').splitlines()[0]
        texts[folder / 'recipes.md'] = (
            f'{title}: recipes\n\n{NOTE}\n\n{table(folder)}\n')
    texts[root / 'model-index.yml'] = index(root)
    return texts


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        '--root', type=Path, default=ROOT,
        help='folder of the checkout (default: %(default)s)')
    parser.add_argument(
        '--check', action='store_true',
        help='only check; exit with status 1 if a file is not current')
    args = parser.parse_args(argv)
    with one_line_errors():
        texts = files(args.root)
    stale = [path for path, text in texts.items()
             if not path.is_file() or path.read_text('utf-8') != text]
    if not args.check:
        for path in stale:
            path.write_text(texts[path], 'utf-8')
            print(f'wrote {path}')
    elif stale:
        raise SystemExit(f'not current: {", ".join(map(str, stale))}; run '
                         'python tools/analysis/recipes.py')


if __name__ == '__main__':
    main()
