# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Format of bundles: a trained model as one folder or one zip file.

A bundle has two files. ``model.safetensors`` contains the weights.
``bundle.json`` contains the config, the class names, the thresholds, the
versions of packages that wrote it, and the SHA-256 of the weights. Reading a
bundle runs no code from it, and its config can only name the classes of
:mod:`~mmvidattn.apis.bundle_types.registry`.
"""
import hashlib
import json
import platform
import shutil
import tempfile
import zipfile
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load, save
from torch import Tensor

from ..utils.lock import lock_folder
from ..utils.printable import printable
from ..version import __version__
from .bundle_types.registry import BundleConfig, check_config

FORMAT = 1
MANIFEST = 'bundle.json'
WEIGHTS = 'model.safetensors'
# Config keys that predictions need. Training, data sets and custom imports are
# dropped.
CONFIG_KEYS = ('model', 'val_pipeline', 'test_pipeline', 'test_dataloader',
               'online', 'video_backend', 'num_classes', 'num_frames',
               'img_size')
DATASET_KEYS = ('pipeline', 'feature_rate', 'frame_rate', 'long_rate',
                'work_rate', 'ignore_index', 'stretch_long_memory')
ONLINE_KEYS = 'events', 'max_gap', 'seconds', 'stride'
# Recognizers that differ from Recognizer3D only in training, and the options
# that prediction needs.
TRAINERS = ('DistilledRecognizer3D', 'FineTunedRecognizer3D',
            'TokenLabelRecognizer3D')
RECOGNIZER_KEYS = 'backbone', 'neck', 'cls_head', 'data_preprocessor'
LOSSES = 'loss_cls', 'loss_verb', 'loss_noun'
# Options that read other files, or only matter in training.
DROPPED = 'init_cfg', 'pretrained', 'pretrained2d', 'blending', *LOSSES
TUPLE = 'tuple'


@dataclass(frozen=True)
class Bundle:
    """Content of a bundle, except the weights; see :func:`load_bundle`."""
    # Folder or zip file, and name of the model's config.
    path: Path
    name: str
    # Config of the model, without training and data sets.
    config: BundleConfig
    # Class names; empty if they are unknown.
    labels: list[str]
    # SHA-256 of the weights.
    sha256: str

    def load_weights(self) -> dict[str, Tensor]:
        """Read the weights.

        Raises:
            ValueError: If the file is missing, damaged or has another hash.
        """
        data = _read(self.path, WEIGHTS)
        digest = hashlib.sha256(data).hexdigest()
        if digest != self.sha256:
            raise ValueError(
                f'{WEIGHTS} of the bundle {self.path} was changed or damaged: '
                f'its SHA-256 must be {self.sha256}, got {digest}. Copy the '
                'bundle again')
        try:
            return load(data)
        except SafetensorError as error:
            raise ValueError(f'{WEIGHTS} of the bundle {self.path} is not a '
                             f'safetensors file: {error}') from error


def is_bundle(path: Any) -> bool:
    """Return True for a folder with ``bundle.json``, or a zip file."""
    if not isinstance(path, (str, Path)):
        return False
    path = Path(path)
    return (path / MANIFEST).is_file() or (
        path.suffix == '.zip' and path.is_file())


def load_bundle(path: str | Path) -> Bundle:
    """Read a bundle, without its weights.

    No code of the bundle is run, so bundles from untrusted sources are safe to
    open.

    Args:
        path: Folder or zip file from :func:`mmvidattn.apis.save_bundle`.

    Raises:
        FileNotFoundError: If the path does not exist.
        ValueError: If it is not a bundle, is damaged, has a newer format, or
            contains anything that
            :mod:`~mmvidattn.apis.bundle_types.registry` does not list.
    """
    path = Path(path)
    if not path.exists():
        raise FileNotFoundError(f'no bundle {path}')
    try:
        text = _read(path, MANIFEST).decode()
        content = json.loads(text, object_hook=_to_tuple)
        if content['format'] > FORMAT:
            raise ValueError(
                f'the bundle {path} has format {content["format"]}, and '
                f'mmvidattn {__version__} reads formats up to {FORMAT}: '
                'update mmvidattn')
        config = clean_config(content['config'])
        check_config(config, f'the bundle {path}')
        return Bundle(
            path, printable(str(content['name'])), BundleConfig({
                # Bundles of version 0.1 lack this key.
                'video_backend': 'pyav', **config,
                'default_scope': 'mmaction'}, text, path),
            [printable(str(name)) for name in content['labels']],
            str(content['weights']['sha256']))
    except (KeyError, TypeError, AttributeError, RecursionError,
            json.JSONDecodeError, UnicodeDecodeError) as error:
        raise ValueError(printable(
            f'{MANIFEST} of the bundle {path} is damaged: '
            f'{type(error).__name__}: {error}')) from error


def write_bundle(out: str | Path, name: str, config: Mapping[str, Any],
                 labels: list[str], weights: Mapping[str, Tensor],
                 replace: bool = False) -> Path:
    """Write a bundle completely or not at all.

    Arguments and errors as in :func:`mmvidattn.apis.save_bundle`, with a
    config from :func:`clean_config`, its name, and tensors by name.
    """
    out = Path(out)
    if out.exists() and not (replace and is_bundle(out)):
        raise FileExistsError(f'{out} exists; choose another name' + (
            ', or replace it with --force' if is_bundle(out) else ''))
    # safetensors needs contiguous tensors that do not share memory.
    data = save({key: value.detach().cpu().clone().contiguous()
                 for key, value in weights.items()})
    content = dict(
        format=FORMAT, name=name,
        versions=dict(mmvidattn=__version__, torch=torch.__version__,
                      python=platform.python_version()),
        weights=dict(file=WEIGHTS, sha256=hashlib.sha256(data).hexdigest()),
        labels=labels, config=_to_json(config))
    check_config(content['config'], f'the bundle {out}')
    files = {MANIFEST: json.dumps(content, indent=1).encode(), WEIGHTS: data}
    # The target of a link is replaced.
    place = out.resolve()
    place.parent.mkdir(parents=True, exist_ok=True)
    # A killed writer leaves this folder, and the next one removes it.
    folder = place.with_name(f'.{place.name}.part')
    if folder.is_symlink():
        folder.unlink()
    with lock_folder(folder):
        for left in folder.glob('[!.]*'):
            shutil.rmtree(left, ignore_errors=True)
        part = Path(tempfile.mkdtemp(dir=folder), place.name)
        try:
            if out.suffix == '.zip':
                with zipfile.ZipFile(part, 'w') as archive:
                    for file, text in files.items():
                        archive.writestr(file, text)
            else:
                part.mkdir()
                for file, text in files.items():
                    (part / file).write_bytes(text)
            if place.is_dir():
                shutil.rmtree(place)
            part.replace(place)
        finally:
            shutil.rmtree(part.parent, ignore_errors=True)
    with suppress(OSError):
        folder.rmdir()
    return out


def clean_config(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return the part of a config that predictions need, as plain types."""
    def part(source: Mapping[str, Any], keys: tuple[str, ...]) -> dict:
        return {key: source[key] for key in keys if key in source}

    kept = {key: config[key] for key in CONFIG_KEYS if config.get(key)}
    model = kept['model']
    if model.get('type') in TRAINERS:
        kept['model'] = dict(type='Recognizer3D',
                             **part(model, RECOGNIZER_KEYS))
        if model.get('pool_clips', 1) > 1:
            kept['model'].update(part(model, ('type', 'pool_clips')))
    kept['test_dataloader'] = dict(dataset=part(kept.get(
        'test_dataloader', {}).get('dataset') or {}, DATASET_KEYS))
    kept['online'] = part(kept.get('online', {}), ONLINE_KEYS)
    head = model.get('cls_head') or {}
    kept = _without(kept, DROPPED)
    if kept['model'].get('type') == 'OnlineActionDetector':
        # Probabilities leave out the class that a loss ignores.
        kept['model']['cls_head'].update({
            name: dict(type='MultiClassCrossEntropyLoss',
                       ignore_index=head[name]['ignore_index'])
            for name in LOSSES
            if (head.get(name) or {}).get('ignore_index') is not None})
    return kept


def _without(value: Any, keys: tuple[str, ...]) -> Any:
    if isinstance(value, Mapping):
        return {key: _without(item, keys) for key, item in value.items()
                if key not in keys}
    if isinstance(value, (list, tuple)):
        return type(value)(_without(item, keys) for item in value)
    return value


def _to_json(value: Any) -> Any:
    """Convert a value to types of JSON; a tuple becomes a marked list."""
    if isinstance(value, Mapping):
        return {str(key): _to_json(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        items = [_to_json(item) for item in value]
        return {TUPLE: items} if isinstance(value, tuple) else items
    return value.__name__ if isinstance(value, type) else value


def _to_tuple(value: dict) -> Any:
    return tuple(value[TUPLE]) if [*value] == [TUPLE] else value


def _read(path: Path, file: str) -> bytes:
    """Read a file of a bundle."""
    try:
        if path.is_dir():
            if (path / file).resolve() != path.resolve() / file:
                raise ValueError(f'{file} of the bundle {path} is a link to '
                                 f'{(path / file).resolve()}: copy this file '
                                 'into the bundle')
            return (path / file).read_bytes()
        with zipfile.ZipFile(path) as archive:
            if archive.getinfo(file).compress_type != zipfile.ZIP_STORED:
                raise ValueError(f'{file} of the bundle {path} is compressed; '
                                 'bundles are not')
            return archive.read(file)
    except (FileNotFoundError, KeyError):
        raise ValueError(f'{path} is not a complete bundle: it lacks {file}'
                         ) from None
    except (zipfile.BadZipFile, RuntimeError, OSError) as error:
        # RuntimeError: a file has a password.
        raise ValueError(f'the bundle {path} is damaged: {error}') from error
