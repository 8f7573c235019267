# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Download of checkpoints from the Hugging Face Hub."""
import re
from pathlib import Path

SCHEME = 'hf://'
_NAME = re.compile(
    r'hf://(?P<repo>[\w.-]+/[\w.-]+?)(@(?P<revision>[^/]*))?(/(?P<file>.+))?')
_COMMIT = re.compile(r'[0-9a-f]{40}')
_DEFAULT_FILE = 'model.safetensors'


def hub_file(name: str) -> Path:
    """Find a checkpoint in the cache of the Hub, or download it there.

    Args:
        name: ``hf://OWNER/MODEL@REVISION``, followed by ``/FILE`` for a file
            other than model.safetensors. The revision is the 40 hexadecimal
            digits of a commit, because branches and tags can move.

    Raises:
        ValueError: If the name has another form, or the file is not a
            .safetensors file; other formats can run code.
        ImportError: If huggingface_hub is not installed.
        OSError: If the Hub does not have the file, or cannot be reached and
            the file is not in the cache.
    """
    match = _parse(name)
    file = match['file'] or _DEFAULT_FILE
    if not file.endswith('.safetensors'):
        raise ValueError(f'{name!r} must name a .safetensors file, got '
                         f'{file!r}')
    return _download(name, match, file)


def hub_model(name: str) -> Path:
    """Find a model folder in the cache of the Hub, or download it there.

    Args:
        name: ``hf://OWNER/MODEL@REVISION``.

    Returns:
        Folder with config.json, model.safetensors and, if the model has one,
        preprocessor_config.json.

    Raises:
        ValueError, ImportError, OSError: As in :func:`hub_file`.
    """
    match = _parse(name)
    if match['file']:
        raise ValueError(f'{name!r} must name a model without a file, '
                         f'hf://OWNER/MODEL@REVISION, got /{match["file"]}')
    paths = [_download(name, match, file)
             for file in ('config.json', _DEFAULT_FILE)]
    try:
        _download(name, match, 'preprocessor_config.json')
    except OSError:
        # timm's models lack this file; the caller has its values.
        pass
    return paths[0].parent


def _parse(name: str) -> re.Match:
    match = _NAME.fullmatch(name)
    if match is None:
        raise ValueError(f'{name!r} must be hf://OWNER/MODEL@REVISION, '
                         'optionally followed by /FILE.safetensors')
    if not _COMMIT.fullmatch(match['revision'] or ''):
        raise ValueError(
            f'{name!r} must have a revision of 40 hexadecimal digits, a '
            f"commit (on the page of the model under 'Files', 'History'), got "
            f'{match["revision"]!r}')
    return match


def _download(name: str, match: re.Match, file: str) -> Path:
    try:
        from huggingface_hub import hf_hub_download
    except ImportError as error:
        raise ImportError(f'{name} needs huggingface_hub: pip install '
                          'huggingface_hub') from error
    try:
        # hf_hub_download locks the file, so only one process downloads it.
        return Path(hf_hub_download(match['repo'], file,
                                    revision=match['revision']))
    except (OSError, ValueError) as error:
        message = ' '.join(str(error).split())[:200]
        raise OSError(f'{name} cannot be loaded from the Hugging Face Hub: '
                      f'{type(error).__name__}: {message}') from error
