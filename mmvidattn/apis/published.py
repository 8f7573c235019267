# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Published weights by name: download, conversion and class names."""
import json
import os
import re
import sys
from pathlib import Path
from typing import NamedTuple

import torch
import yaml

from ..utils.checkpoint import read_checkpoint
from ..utils.config_folder import config_folder
from ..utils.files import replacing
from ..utils.remote_files import hub_file

# Value of ``checkpoint`` that selects the published weights of a config.
PUBLISHED = 'published'
WEIGHTS, LABELS = 'model.safetensors', 'config.json'
_SHA256 = re.compile(r'[0-9a-f]{64}')


class Published(NamedTuple):
    """Entry of ``configs/published.yml``."""
    # Name of the weights, and of their config if they have one.
    name: str
    # hf://OWNER/MODEL@REVISION.
    weights: str
    # Key of mmvidattn.convert.SOURCES.
    source: str
    license: str
    megabytes: int
    sha256: str | None = None


def list_published() -> dict[str, Published]:
    """Return all published weights by name."""
    path = config_folder() / 'published.yml'
    return {name: Published(name, **entry) for name, entry in yaml.safe_load(
        path.read_text('utf-8')).items()}


def published_checkpoint(name: str) -> Path:
    """Return the published weights as a checkpoint of this package.

    The first call shows the license, downloads a pinned revision to the cache
    of the Hub, checks its hash, converts it, and adds the class names. The
    result is in ``$XDG_CACHE_HOME/mmvidattn/published/NAME``. If this folder
    has copies of the two files of the Hub, nothing is downloaded.
    """
    entries = list_published()
    if name not in entries:
        raise ValueError(f'{PUBLISHED} weights must be one of '
                         f'{", ".join(entries)}, got {name}')
    entry = entries[name]
    cache = Path(os.environ.get('XDG_CACHE_HOME') or Path.home() / '.cache')
    folder = cache / 'mmvidattn' / PUBLISHED / name
    converted = folder / f'{entry.weights[-40:]}.pth'
    if not converted.is_file():
        from ..convert import convert

        weights, labels = _files(entry, folder)
        # The Hub names the files in its cache by their SHA-256.
        stored = _SHA256.fullmatch(weights.resolve().name)
        tensors = convert(entry.source, dict(read_checkpoint(
            weights, entry.sha256 or (stored and stored[0]))))
        meta = dict(source=entry.source, source_file=entry.weights,
                    license=entry.license)
        if 'cls_head.fc_cls.bias' in tensors:
            classes = json.loads(labels.read_text('utf-8'))['id2label']
            meta['dataset_meta'] = dict(classes=[
                classes[str(i)] for i in range(len(classes))])
        with replacing(converted, shared=True) as part:
            torch.save(dict(state_dict=tensors, meta=meta), part)
    return converted


def _files(entry: Published, folder: Path) -> list[Path]:
    """Find the weights and the class names, or download them."""
    copies = [folder / WEIGHTS, folder / LABELS]
    if all(path.is_file() for path in copies):
        return copies
    repository, _, revision = entry.weights.removeprefix('hf://').partition(
        '@')
    print(f'{entry.name}: {repository} of the Hugging Face Hub, '
          f'{entry.megabytes} MB, license {entry.license}', file=sys.stderr)
    try:
        return [hub_file(f'{entry.weights}/{path.name}') for path in copies]
    except (OSError, ImportError) as error:
        raise type(error)(
            f'{error}. Without a network, copy {WEIGHTS} and {LABELS} of '
            f'https://huggingface.co/{repository}/tree/{revision} to {folder}'
        ) from error
