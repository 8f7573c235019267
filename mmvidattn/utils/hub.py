# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Checkpoints of the Hugging Face Hub, by name."""
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
        name: ``hf://OWNER/MODEL@REVISION``, or with ``/FILE`` behind it for
            another file than model.safetensors. The revision is the 40
            hexadecimal digits of a commit: branches and tags can be moved.

    Raises:
        ValueError: If the name is no such, or of no .safetensors file: others
            can run code.
        ImportError: If huggingface_hub is not installed.
        OSError: If the Hub does not have it, or cannot be reached and the
            cache does not have it.
    """
    match = _parse(name)
    file = match['file'] or _DEFAULT_FILE
    if not file.endswith('.safetensors'):
        raise ValueError(f'{name!r} must be of a .safetensors file, got '
                         f'{file!r}')
    return _download(name, match, file)


def hub_model(name: str) -> Path:
    """Find a whole model in the cache of the Hub, or download it there.

    Args:
        name: ``hf://OWNER/MODEL@REVISION``.

    Returns:
        A folder with config.json, model.safetensors and, where the model has
        it, preprocessor_config.json.

    Raises:
        ValueError, ImportError, OSError: See :func:`hub_file`.
    """
    match = _parse(name)
    if match['file']:
        raise ValueError(f'{name!r} must be a whole model, '
                         f'hf://OWNER/MODEL@REVISION, got /{match["file"]}')
    paths = [_download(name, match, file)
             for file in ('config.json', _DEFAULT_FILE)]
    try:
        _download(name, match, 'preprocessor_config.json')
    except OSError:
        # Models of timm have none; what it would say has to be given then.
        pass
    return paths[0].parent


def _parse(name: str) -> re.Match:
    match = _NAME.fullmatch(name)
    if match is None:
        raise ValueError(f'{name!r} must be hf://OWNER/MODEL@REVISION, or '
                         'that and /FILE.safetensors')
    if not _COMMIT.fullmatch(match['revision'] or ''):
        raise ValueError(
            f'{name!r} must name the revision that is meant, by the 40 '
            f"hexadecimal digits of a commit (the model's page has them under "
            f"'Files', 'History'), got {match['revision']!r}")
    return match


def _download(name: str, match: re.Match, file: str) -> Path:
    try:
        from huggingface_hub import hf_hub_download
    except ImportError as error:
        raise ImportError(f'{name} needs huggingface_hub: pip install '
                          'huggingface_hub') from error
    try:
        # Of several processes it has one download, behind a lock.
        return Path(hf_hub_download(match['repo'], file,
                                    revision=match['revision']))
    except (OSError, ValueError) as error:
        words = ' '.join(str(error).split())[:200]
        raise OSError(f'{name} cannot be had from the Hugging Face Hub: '
                      f'{type(error).__name__}: {words}') from error
