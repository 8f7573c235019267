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
    match = _NAME.fullmatch(name)
    if match is None:
        raise ValueError(f'{name!r} must be hf://OWNER/MODEL@REVISION, '
                         'optionally followed by /FILE.safetensors')
    if not _COMMIT.fullmatch(match['revision'] or ''):
        raise ValueError(
            f'{name!r} must have a revision of 40 hexadecimal digits, a '
            f"commit (on the page of the model under 'Files', 'History'), got "
            f'{match["revision"]!r}')
    file = match['file'] or _DEFAULT_FILE
    if not file.endswith('.safetensors'):
        raise ValueError(f'{name!r} must name a .safetensors file, got '
                         f'{file!r}')
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
