# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""List trained weights."""
import argparse
import json
import os
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import yaml
from rich.console import Console
from rich.table import Table

from ..apis.bundle_file import WEIGHTS
from ..apis.models import DEFAULTS, config_folder, published_weights
from ..utils.printable import echo

HUB = 'https://huggingface.co'
SECONDS = 5
# Meaning of `sources: image` in the list.
IMAGE = 'linear_ff_image, vivit_image, xvit_image'


def run(args: argparse.Namespace) -> None:
    echo('With the package, as the checkpoint `default` of these models:\n')
    for folder in sorted(path for path in DEFAULTS.iterdir()
                         if path.is_dir()):
        size = (folder / WEIGHTS).stat().st_size / 1e6
        echo(f'  {folder.name}  {size:.1f} MB, Apache-2.0; {folder}/README.md')
    echo('\nPublished for configs of this package (CHECKPOINT, --weights):\n')
    published = published_weights()
    for name, url in published.items():
        echo(f'  {name}  {url}')
    if not published:
        echo('  none')
    echo('\nFree weights of other models to start from, on the Hugging Face '
         'Hub. Convert them, then use\n--weights FILE:\n\n'
         '  mmvidattn convert SOURCE hf://NAME@REVISION FILE\n')
    models = yaml.safe_load(
        (config_folder() / 'start_weights.yml').read_text('utf-8'))
    states = ['']
    if args.check:
        with ThreadPoolExecutor(len(models)) as pool:
            states = [*pool.map(hub_state, (one['name'] for one in models))]
    print_models(models, states)
    echo(f'\nimage: {IMAGE}. Licenses are as the publishers state them: read '
         "the model's page before you\nuse it. See configs/start_weights.md.")


def print_models(models: list[dict[str, Any]], states: list[str]) -> None:
    """Print a table with a row per model, as wide as its contents."""
    table = Table(box=None, pad_edge=False)
    names = 'NAME', 'model', 'size', 'license', 'SOURCE', 'revision'
    for name in names[:6 if any(states) else 5]:
        table.add_column(name, no_wrap=True)
    for i, one in enumerate(models):
        row = [one['name'], one['about'], f'{one["mb"]} MB', one['license'],
               one['sources']]
        table.add_row(*row, *states[i:i + 1] if any(states) else ())
    Console(width=250, markup=False, highlight=False).print(table)


def hub_state(name: str) -> str:
    """Return the current revision of a model on the Hub, or an error."""
    host = os.environ.get('HF_ENDPOINT', HUB)
    try:
        with urllib.request.urlopen(
                f'{host}/api/models/{name}', timeout=SECONDS) as response:
            model = json.load(response)
    except (OSError, ValueError) as error:
        return f'not reachable: {getattr(error, "reason", error)}'
    files = [one['rfilename'] for one in model.get('siblings', ())]
    is_safe = any(file.endswith('.safetensors') for file in files)
    return f'{model.get("sha")}{"" if is_safe else ", without safetensors"}'
