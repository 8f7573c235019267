# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Reading checkpoints safely, and loading them strictly."""
import hashlib
import io
import os
import re
import zipfile
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlparse

import torch
from mmengine.dist import barrier, get_local_rank
from mmengine.runner.checkpoint import CheckpointLoader
from safetensors.torch import load_file
from torch import Tensor, nn

from .files import hash_file
from .hub import SCHEME, hub_file
from .printable import brief
from .safe_load import safe_load

# Reason of an error without a message.
EMPTY = 'it is empty'
# Where the tensors are in the files of the usual training programs.
WRAPPERS = ('state_dict', 'model', 'model_state', 'model_state_dict',
            'module')
MAX_NAMES = 3
# As mmengine and torch.hub name what they publish.
HASH_IN_NAME = re.compile(r'-([0-9a-fA-F]{8,64})\.[a-z]+$')
DATE = re.compile(r'(19|20)\d\d(0[1-9]|1[0-2])(0[1-9]|[12]\d|3[01])')


@CheckpointLoader.register_scheme(prefixes=r'.+\.safetensors$')
def load_from_safetensors(filename: str, map_location: Any) -> dict:
    """Lets ``load_from`` and ``Pretrained`` of a config take such a file."""
    if not Path(filename).is_file():
        raise FileNotFoundError(f'no file {filename}')
    return load_file(filename, device=str(map_location or 'cpu'))


@CheckpointLoader.register_scheme(prefixes=r'https?://.+\.safetensors$')
def load_from_safetensors_url(filename: str, map_location: Any) -> dict:
    """Lets them take the URL of such a file, which mmengine cannot read."""
    return load_from_safetensors(str(download(filename)), map_location)


@CheckpointLoader.register_scheme(prefixes=SCHEME)
def load_from_hub(filename: str, map_location: Any) -> dict:
    """Lets them take ``hf://OWNER/MODEL@REVISION``."""
    return load_from_safetensors(str(hub_file(filename)), map_location)


def is_url(path: str | Path) -> bool:
    """Tell whether a checkpoint lies on the web."""
    return str(path).startswith(('http://', 'https://', SCHEME))


def download(url: str, sha256: str | None = None) -> Path:
    """Download a file to torch's folder of checkpoints, once.

    A file that torch or mmengine has put there is taken, if its hash shows
    that it is this one.

    Args:
        url: With http or https, or ``hf://``, see :func:`hub_file`, which
            has a cache of its own. If the name ends as in
            ``-0123abcd.pth``, in at least 8 hexadecimal digits that are not a
            date, the file's SHA-256 must start so.
        sha256: What it must start with in any case.

    Raises:
        ValueError: If the file has another hash; it is not kept, unless the
            cache of the Hub has it.
        OSError: If it cannot be downloaded.
    """
    if url.startswith(SCHEME):
        path = hub_file(url)
        if sha256 and not hash_file(path).startswith(sha256.lower()):
            raise ValueError(f'{url} has the SHA-256 {hash_file(path)}, '
                             f'expected {sha256}...; it is not used')
        return path
    name = Path(urlparse(url).path).name
    named = HASH_IN_NAME.search(name)
    if named and DATE.fullmatch(named[1]):
        named = None
    wanted = [h.lower() for h in (sha256, named and named[1]) if h]
    shared = Path(torch.hub.get_dir(), 'checkpoints')
    if wanted and (shared / name).is_file():
        found = hash_file(shared / name)
        if all(found.startswith(h) for h in wanted):
            return shared / name
    # Another folder for each URL: many files are called model.pth.
    folder = shared / hashlib.sha256(url.encode()).hexdigest()[:8]
    path = folder / name
    # One process of each machine downloads for all.
    if get_local_rank() == 0 and not path.is_file():
        folder.mkdir(parents=True, exist_ok=True)
        torch.hub.download_url_to_file(url, str(path), progress=False)
    barrier()
    if wanted:
        found = hash_file(path)
        if not all(found.startswith(h) for h in wanted):
            path.unlink(missing_ok=True)
            raise ValueError(f'{url} has the SHA-256 {found}, expected '
                             f'{" and ".join(wanted)}...; it is not used')
    return path


def read_checkpoint(path: str | Path,
                    sha256: str | None = None) -> dict[str, Any]:
    """Read a checkpoint of tensors and plain types, to the CPU.

    Nothing in it is run, whatever ``TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD`` says.

    Args:
        path: A file of ``torch.save`` or of safetensors, or a URL of the
            kinds that mmengine knows.
        sha256: What the SHA-256 of the file must start with, in hexadecimal.

    Raises:
        FileNotFoundError: If there is no such file.
        ValueError: If it is no checkpoint, would run code when loaded, or has
            another hash.
    """
    path = str(path)
    if is_url(path):
        path = str(download(path, sha256))
    elif sha256 and Path(path).is_file():
        found = hash_file(path)
        if not found.startswith(sha256.lower()):
            raise ValueError(
                f'{path} has the SHA-256 {found}, expected {sha256}...')
    try:
        checkpoint = _load_weights_only(path)
    except FileNotFoundError:
        raise FileNotFoundError(f'no checkpoint file {path}') from None
    except Exception as error:
        # A file of another kind can fail in any way.
        names = re.findall(r'GLOBAL (\S+)', str(error))
        if not names:
            raise ValueError(
                f'{path} is not a checkpoint: {brief(error, EMPTY)}'
            ) from error
        raise ValueError(
            f'{path} is refused: loading it would call {names[0]}. If you '
            'trust it, load it with the program that wrote it and save its '
            "tensors alone: torch.save(checkpoint['state_dict'], FILE)"
        ) from error
    if not isinstance(checkpoint, Mapping):
        raise ValueError(f'{path} is not a checkpoint: it holds a '
                         f'{type(checkpoint).__name__}')
    return checkpoint


def _load_weights_only(path: str) -> Any:
    if '://' in path:
        if os.environ.get('TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD'):
            raise ValueError('unset TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD: with it '
                             'mmengine would run what is in it')
        return CheckpointLoader.load_checkpoint(path, 'cpu', 'silent')
    if path.endswith('.safetensors'):
        return load_from_safetensors(path, 'cpu')
    return safe_load(Path(path).expanduser())


def load_state_dict_file(path: str | Path) -> dict[str, Tensor]:
    """The tensors of a checkpoint, out of their usual wrappers.

    See :func:`read_checkpoint` for the arguments and errors.
    """
    return _unwrap(read_checkpoint(path), path)


def load_checkpoint(model: nn.Module, path: str | Path,
                    sha256: str | None = None,
                    optional: str | None = None) -> dict[str, Any]:
    """Load a checkpoint of exactly this model.

    Args:
        model: The model. After an error it may have part of the weights.
        path: See :func:`read_checkpoint`.
        sha256: See :func:`read_checkpoint`.
        optional: Prefix of tensors that are not read from it, and may be
            missing or of another shape.

    Returns:
        What the checkpoint tells of itself, its ``meta``.

    Raises:
        ValueError: If the checkpoint is of another model.
    """
    checkpoint = read_checkpoint(path, sha256)
    state_dict = _unwrap(checkpoint, path)
    if optional:
        kept = {name: value for name, value in model.state_dict().items()
                if name.startswith(optional)}
        state_dict = {name: value for name, value in state_dict.items()
                      if not name.startswith(optional)} | kept
    load_exactly(model, state_dict, path)
    return checkpoint.get('meta', {})


def require_overlap(model: nn.Module, path: str | Path) -> str:
    """Check that a checkpoint to start from has something for the backbone.

    Returns:
        What of it fits the model, and what does not.

    Raises:
        ValueError: If no tensor of the backbone is in it, by name and shape.
    """
    found = load_state_dict_file(path)
    wanted = {
        name: value.shape
        for name, value in model.state_dict().items()
        if name.startswith('backbone.') or not hasattr(model, 'backbone')
    }
    if not any(found[name].shape == shape
               for name, shape in wanted.items() if name in found):
        raise ValueError(
            f'{path} has nothing for the backbone of {_describe(model)}: it '
            f'has {_some(found)}; expected {_some(wanted)}')
    return (f'{_describe(model)} starts from {path}: '
            + report_fit(model, found) + _new_classifier(model, found))


def _new_classifier(model: nn.Module,
                    state_dict: Mapping[str, Tensor]) -> str:
    """Say so if the last layer is of another number of classes."""
    for name, own in model.state_dict().items():
        found = state_dict.get(name)
        if name.startswith('cls_head.') and found is not None and (
                found.shape[1:] == own.shape[1:] and len(found) != len(own)):
            return (f'. The classifier starts anew: {len(found)} classes '
                    f'there, {len(own)} here')
    return ''


def load_exactly(model: nn.Module, state_dict: Mapping[str, Tensor],
                 path: str | Path) -> None:
    """Load tensors that must match a model exactly.

    Args:
        model: The model. After an error it may have some of the tensors.
        state_dict: The tensors, by name.
        path: Source of the tensors, for the error.

    Raises:
        ValueError: If a tensor is missing, unexpected or has the wrong shape.
    """
    try:
        model.load_state_dict(state_dict)
    except RuntimeError as error:
        text = str(error)
        raise ValueError(
            f'{path} is not of this model, {_describe(model)}: ' + report_fit(
                model, state_dict, lambda name: f'"{name}"' in text
                or f'size mismatch for {name}:' in text)) from None


def report_fit(model: nn.Module, state_dict: Mapping[str, Tensor],
               is_fault: Callable[[str], bool] = lambda name: True,
               limit: int | None = MAX_NAMES, separator: str = '. ') -> str:
    """Report which tensors fit a model by name and shape.

    Args:
        model: The model. Its hooks may rename and resize more tensors as it
            loads.
        state_dict: The tensors, by name.
        is_fault: Returns False for a name that fits nevertheless.
        limit: Names to list of each kind; None for all.
        separator: Text between the kinds.
    """
    own = model.state_dict()
    missing = [n for n in own if n not in state_dict and is_fault(n)]
    unexpected = [n for n in state_dict if n not in own and is_fault(n)]
    shapes = [f'{n} {tuple(state_dict[n].shape)}, expected '
              f'{tuple(own[n].shape)}' for n in own if n in state_dict
              and state_dict[n].shape != own[n].shape and is_fault(n)]
    matched = len(own) - len(missing) - len(shapes)
    return separator.join(
        [f'{matched} of {len(own)} tensors match'] + [
            f'{kind} {len(names)}: {_some(names, "; ", limit)}'
            for kind, names in (('missing', missing),
                                ('unexpected', unexpected),
                                ('of another shape', shapes)) if names])


def check_opens(source: str | Path | bytes) -> Any:
    """Check that a checkpoint is whole and safe.

    Args:
        source: A file of ``torch.save``, or what is in it.

    Returns:
        What it holds; tensors of a file stay there until they are used.

    Raises:
        ValueError: If it cannot be opened with ``weights_only=True``, or its
            checksums are not those of its contents.
    """
    is_data = isinstance(source, bytes)
    name = 'the checkpoint' if is_data else str(source)
    try:
        if not zipfile.is_zipfile(io.BytesIO(source) if is_data else source):
            raise ValueError('it is no archive, with checksums')
        return safe_load(source, mmap=not is_data)
    except Exception as error:
        # A damaged file can fail in any way.
        raise ValueError(
            f'{name} does not open: {brief(error, EMPTY)}') from error


def find_resumable(work_dir: str | Path
                   ) -> tuple[Path | None, list[tuple[Path, str]]]:
    """Find the newest checkpoint that opens and that has all to train on.

    Args:
        work_dir: The folder of the run. Where its ``last_checkpoint`` points
            is searched as well.

    Returns:
        The checkpoint, or None; and each newer file, with why it is not it.
    """
    work_dir = Path(work_dir)
    folders, pointer = [work_dir], work_dir / 'last_checkpoint'
    paths = set()
    if pointer.is_file():
        target = Path(pointer.read_text('utf-8', 'replace').strip())
        # A crash of the system may have left something else in it.
        if target.suffix and _may_be_there(target):
            paths.add(target)
            folders.append(target.parent)
    for folder in folders:
        paths.update(folder.glob('*.pth'))
    files = {path.resolve(): path for path in paths if path.is_file()}
    passed = []
    for path in sorted(files.values(), reverse=True,
                       key=lambda path: path.stat().st_mtime_ns):
        if path.name.startswith('best_'):
            continue
        try:
            keys = check_opens(path)
            if not isinstance(keys, Mapping) or not {
                    'meta', 'optimizer', 'message_hub'} <= keys.keys():
                raise ValueError('it has weights only')
        except ValueError as error:
            passed.append((path, str(error)))
            continue
        return path, passed
    return None, passed


def _may_be_there(path: Path) -> bool:
    try:
        path.stat()
    except FileNotFoundError:
        return True
    except (OSError, ValueError):
        # No file has a name as long as that, or with a zero.
        return False
    return True


def _unwrap(checkpoint: Mapping, path: str | Path) -> dict[str, Tensor]:
    wrapped = [checkpoint[key] for key in WRAPPERS
               if isinstance(checkpoint.get(key), Mapping)]
    state_dict = dict((wrapped or [checkpoint])[0])
    others = [name for name, value in state_dict.items()
              if not torch.is_tensor(value)]
    if others or not state_dict:
        raise ValueError(
            f'{path} is not a checkpoint: expected tensors by name, or these '
            f'under {" or ".join(map(repr, WRAPPERS))}, got {_some(others)}')
    nans = [name for name, value in state_dict.items()
            if value.is_floating_point() and value.isnan().any()]
    if nans:
        raise ValueError(
            f'{path} is refused: {len(nans)} of its {len(state_dict)} tensors '
            f'have values that are not a number: {_some(nans)}')
    if all(name.startswith('module.') for name in state_dict):
        return {name[len('module.'):]: v for name, v in state_dict.items()}
    return state_dict


def _describe(model: nn.Module) -> str:
    parts = [type(getattr(model, name)).__name__
             for name in ('backbone', 'cls_head') if hasattr(model, name)]
    name = type(model).__name__
    return f'{name}({", ".join(parts)})' if parts else name


def _some(names: Iterable[str], separator: str = ', ',
          limit: int | None = MAX_NAMES) -> str:
    names = list(names)
    limit = len(names) if limit is None else limit
    shown = names[:limit] + ['...'] * (len(names) > limit)
    return separator.join(shown) or 'nothing'
