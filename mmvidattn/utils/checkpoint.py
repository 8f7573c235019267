# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Safe reading and strict loading of checkpoints."""
import hashlib
import io
import os
import re
import zipfile
from collections.abc import Callable, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.error import URLError
from urllib.parse import urlparse

import torch
from mmengine.dist import barrier, get_local_rank
from mmengine.runner.checkpoint import CheckpointLoader
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from .files import hash_file
from .printable import brief, first_few
from .remote_files import (
    HUB,
    STORES,
    download_file,
    hub_file,
    is_url,
    local_path,
)

# Keys under which common training programs store the tensors; the last three
# are V-JEPA's, whose probes are a list.
WRAPPERS = ('state_dict', 'model', 'model_state', 'model_state_dict',
            'module', 'ema_encoder', 'target_encoder', 'classifiers')
# End of the names of files that mmengine and torch.hub publish, but no date.
HASH_IN_NAME = re.compile(
    r'-(?!(?:19|20)\d\d(?:0[1-9]|1[0-2])(?:0[1-9]|[12]\d|3[01])\.)'
    r'([0-9a-fA-F]{8,64})\.[a-z]+$')


@CheckpointLoader.register_scheme(
    prefixes=[r'.+\.safetensors$', r'https?://.+\.safetensors$',
              *(f'{name}://' for name in STORES)], force=True)
def load_scheme(filename: str, map_location: Any) -> Any:
    """Let ``load_from`` and ``Pretrained`` of a config read more files.

    These are safetensors, their URLs, ``hf://OWNER/MODEL@REVISION``, and URLs
    of object stores, such as ``s3://``. The tensors are on the CPU.
    """
    return _load_file(
        str(download(filename) if is_url(filename) else filename))


def save_tensors(tensors: Mapping[str, Tensor], path: str | Path,
                 metadata: dict[str, str] | None = None) -> None:
    """Write a safetensors file.

    Users can read it as far as the umask permits. safetensors itself lets
    only the owner read it.
    """
    Path(path).touch()
    mode = os.stat(path).st_mode
    save_file(dict(tensors), path, metadata)
    os.chmod(path, mode)


def download(url: str, sha256: str | None = None) -> Path:
    """Download a file once, to torch's folder of checkpoints.

    Args:
        url: URL with http or https, ``hf://`` (see :func:`hub_file`, which
            has a separate cache), or of an object store (see
            :func:`~mmvidattn.utils.remote_files.local_path`). If the file
            name ends with 8 or more hexadecimal digits that are not a date,
            such as ``-0123abcd.pth``, the SHA-256 of the file must start with
            these digits.
        sha256: Required start of the SHA-256. Not checked by default.

    Raises:
        ValueError: If the hash does not match. A file in torch's folder is
            then deleted.
        OSError: If the file cannot be downloaded.
    """
    name = Path(urlparse(url).path).name
    named = HASH_IN_NAME.search(name)
    hashes = [h for h in (sha256, named and named[1]) if h]
    if not url.startswith(('http://', 'https://')):
        path = hub_file(url) if url.startswith(HUB) else local_path(
            url, latest=True)
        _check_hash(path, url, hashes)
        return path
    # One folder per URL, because many files are called model.pth.
    folder = Path(torch.hub.get_dir(), 'checkpoints',
                  hashlib.sha256(url.encode()).hexdigest()[:8])
    path = folder / name
    # Only one process per machine downloads.
    if get_local_rank() == 0 and not path.is_file():
        folder.mkdir(parents=True, exist_ok=True)
        # torch keeps a file that is cut off.
        try:
            if download_file(url, folder) is None:
                torch.hub.download_url_to_file(url, str(path), progress=False)
        except URLError as error:
            raise OSError(f'cannot download {url}: {error.reason}') from error
    barrier()
    try:
        _check_hash(path, url, hashes)
    except ValueError:
        path.unlink(missing_ok=True)
        raise
    return path


def _check_hash(path: str | Path, source: str, starts: list[str]) -> None:
    """Raise a ``ValueError`` unless the SHA-256 begins with each start."""
    sha256 = hash_file(path) if starts else ''
    if not all(sha256.startswith(start.lower()) for start in starts):
        raise ValueError(f'{source} has the SHA-256 {sha256}, expected '
                         f'{" and ".join(starts)}...; it is not used')


def read_checkpoint(path: str | Path,
                    sha256: str | None = None) -> dict[str, Any]:
    """Read a checkpoint of tensors and plain types to the CPU.

    No code in the file is run, even if the environment variable
    ``TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD`` is set.

    Args:
        path: File of ``torch.save`` or safetensors, or a URL that mmengine
            supports.
        sha256: Start of the file's SHA-256, in hexadecimal. Not checked by
            default.

    Raises:
        FileNotFoundError: If the file does not exist.
        ValueError: If the file is not a checkpoint, would run code when
            loaded, or has another hash.
    """
    path = str(path)
    if is_url(path):
        path = str(download(path, sha256))
    elif sha256 and Path(path).is_file():
        _check_hash(path, path, [sha256])
    try:
        checkpoint = _load_file(path)
    except FileNotFoundError:
        raise FileNotFoundError(f'no checkpoint file {path}') from None
    except Exception as error:
        # A file of a different format can raise any error.
        names = re.findall(r'GLOBAL (\S+)', str(error))
        if not names:
            # Unlike torch's errors, ours say what to do.
            reason = f' ({error})' if isinstance(error, ValueError) else ''
            raise ValueError(
                f'{path} is not a checkpoint of torch or safetensors, or it '
                f'is damaged{reason}') from error
        raise ValueError(
            f'{path} is refused: loading it would call {names[0]}. If you '
            'trust it, load it with the program that wrote it and save only '
            "its tensors: torch.save(checkpoint['state_dict'], FILE)"
        ) from error
    if not isinstance(checkpoint, Mapping):
        raise ValueError(f'{path} is not a checkpoint: it contains a '
                         f'{type(checkpoint).__name__}')
    return checkpoint


def _load_file(path: str) -> Any:
    if '://' in path:
        if os.environ.get('TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD'):
            raise ValueError('unset TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD: it lets '
                             'mmengine run code from the checkpoint')
        return CheckpointLoader.load_checkpoint(path, 'cpu', 'silent')
    if path.endswith('.safetensors'):
        return load_file(path)
    return load_weights_only(Path(path).expanduser())


def load_weights_only(source: str | Path | bytes, mmap: bool = False) -> Any:
    """Read a file of ``torch.save`` to the CPU, without running its code.

    Args:
        source: The file, or its contents.
        mmap: Read the tensors of a file when they are used. Defaults to False.

    Raises:
        ValueError: If a checksum of the archive is wrong; torch ignores them.
        Exception: Any error of ``torch.load``.
    """
    with closing(io.BytesIO(source) if isinstance(source, bytes) else
                 open(source, 'rb')) as file:
        if zipfile.is_zipfile(file):
            with zipfile.ZipFile(file) as archive:
                if damaged := archive.testzip():
                    raise ValueError(f'{damaged} is damaged')
        elif mmap:
            raise ValueError('it is not a complete zip archive of torch.save')
        file.seek(0)
        if not mmap:
            return torch.load(file, 'cpu', weights_only=True)
    return torch.load(str(source), 'cpu', weights_only=True, mmap=True)


def load_state_dict_file(path: str | Path) -> dict[str, Tensor]:
    """Read the tensors of a checkpoint, without their usual wrappers.

    See :func:`read_checkpoint` for the arguments and errors.
    """
    return _unwrap(read_checkpoint(path), path)


def load_checkpoint(model: nn.Module, path: str | Path,
                    optional: str | None = None) -> dict[str, Any]:
    """Load a checkpoint that must match a model exactly, and return its meta.

    See :func:`read_checkpoint` and :func:`load_tensors` for the arguments and
    errors.
    """
    checkpoint = read_checkpoint(path)
    load_tensors(model, _unwrap(checkpoint, path), path, optional)
    return checkpoint.get('meta', {})


def load_tensors(model: nn.Module, state_dict: Mapping[str, Tensor],
                 path: str | Path, optional: str | None = None) -> None:
    """Load tensors that must match a model exactly.

    Args:
        model: Model. After an error, it may have some of the tensors.
        state_dict: The tensors, by name.
        path: Source of the tensors, for the error.
        optional: Prefix of tensors that are not loaded. They may be missing or
            have another shape.

    Raises:
        ValueError: If a tensor is missing, unexpected or has the wrong shape.
    """
    if optional:
        kept = {name: value for name, value in model.state_dict().items()
                if name.startswith(optional)}
        state_dict = {name: value for name, value in state_dict.items()
                      if not name.startswith(optional)} | kept
    try:
        model.load_state_dict(state_dict)
    except RuntimeError as error:
        text = str(error)
        raise ValueError(
            f'{path} does not fit the model {_describe(model)}: ' + report_fit(
                model, state_dict, lambda name: f'"{name}"' in text
                or f'size mismatch for {name}:' in text)) from None


def require_overlap(model: nn.Module, path: str | Path) -> str:
    """Check that start weights fit a tensor of the backbone; report all fits.

    Raises:
        ValueError: If no tensor of the backbone matches in name and shape.
    """
    tensors = load_state_dict_file(path)
    expected = {
        name: value.shape
        for name, value in model.state_dict().items()
        if name.startswith('backbone.') or not hasattr(model, 'backbone')
    }
    if not any(tensors[name].shape == shape
               for name, shape in expected.items() if name in tensors):
        raise ValueError(
            f'{path} fits no tensor of the backbone of {_describe(model)}: it '
            f'has {_shapes(tensors) or "no tensors"}; expected '
            f'{_shapes(expected)}')
    return (f'{_describe(model)} starts from {path}: '
            + report_fit(model, tensors))


def _shapes(tensors: Mapping[str, Any]) -> str:
    return first_few(f'{name} {tuple(getattr(x, "shape", x))}'
                     for name, x in tensors.items())


def report_fit(model: nn.Module, state_dict: Mapping[str, Tensor],
               is_fault: Callable[[str], bool] = lambda name: True,
               limit: int | None = 3) -> str:
    """Report which tensors fit a model by name and shape.

    Args:
        model: Model. Its hooks may rename and resize further tensors on
            loading.
        state_dict: The tensors, by name.
        is_fault: Function that returns False for names of tensors that a hook
            adapts. By default, all mismatches are reported.
        limit: Number of names to list per kind of mismatch; None for all.
            Defaults to 3.
    """
    expected = model.state_dict()
    missing = [n for n in expected if n not in state_dict and is_fault(n)]
    unexpected = [n for n in state_dict if n not in expected and is_fault(n)]
    shapes = [f'{n} {tuple(state_dict[n].shape)}, expected '
              f'{tuple(expected[n].shape)}' for n in expected
              if n in state_dict and state_dict[n].shape != expected[n].shape
              and is_fault(n)]
    matched = len(expected) - len(missing) - len(shapes)
    return '. '.join(
        [f'{matched} of {len(expected)} tensors match'] + [
            f'{kind} {len(names)}: {first_few(names, "; ", limit)}'
            for kind, names in (('missing', missing),
                                ('unexpected', unexpected),
                                ('of another shape', shapes)) if names])


def check_opens(source: str | Path | bytes) -> Any:
    """Open a file of ``torch.save``, or its contents, if complete and safe.

    Tensors of a file are read when they are used.

    Raises:
        ValueError: If the checkpoint cannot be opened with
            ``weights_only=True``, or a checksum is wrong.
    """
    is_data = isinstance(source, bytes)
    name = 'the checkpoint' if is_data else str(source)
    try:
        return load_weights_only(source, mmap=not is_data)
    except Exception as error:
        # A damaged file can raise any error.
        raise ValueError(f'{name} does not open: {brief(error)}') from error


def find_resumable(work_dir: str | Path
                   ) -> tuple[Path | None, list[tuple[Path, str]]]:
    """Find the newest checkpoint that training can resume from.

    Args:
        work_dir: Folder of the run. The folder of the file that
            ``last_checkpoint`` names is searched as well.

    Returns:
        Path of the checkpoint, or None; and all newer files, each with the
        reason why it cannot be used.
    """
    work_dir = Path(work_dir)
    folders, pointer = [work_dir], work_dir / 'last_checkpoint'
    if pointer.is_file():
        target = Path(pointer.read_text('utf-8', 'replace').strip())
        # The file may contain garbage after a system crash.
        if target.suffix and os.path.isdir(target.parent):
            folders.append(target.parent)
    files = {path.resolve(): path for folder in folders
             for path in folder.glob('*.pth') if path.is_file()}
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


def _unwrap(checkpoint: Mapping, path: str | Path) -> dict[str, Tensor]:
    values = [checkpoint.get(key) for key in WRAPPERS]
    wrapped = [value for value in (
        value[0] if isinstance(value, list) and value else value
        for value in values) if isinstance(value, Mapping)]
    state_dict = dict((wrapped or [checkpoint])[0])
    if wrapped and isinstance(checkpoint.get('predictor'), Mapping):
        # The second network in V-JEPA's files.
        state_dict |= {f'predictor.{name}': value for name, value in
                       checkpoint['predictor'].items()
                       if torch.is_tensor(value)}
    wrong = [name for name, value in state_dict.items()
             if not torch.is_tensor(value)]
    if wrong or not state_dict:
        raise ValueError(
            f'{path} is not a checkpoint: expected tensors by name, at the '
            f'top or under {" or ".join(map(repr, WRAPPERS))}, got '
            f'{first_few(wrong) or "nothing"}')
    nans = [name for name, value in state_dict.items()
            if value.is_floating_point() and value.isnan().any()]
    if nans:
        raise ValueError(
            f'{path} is refused: {len(nans)} of its {len(state_dict)} tensors '
            f'have NaN values: {first_few(nans)}')
    if all(name.startswith('module.') for name in state_dict):
        return {name[len('module.'):]: v for name, v in state_dict.items()}
    return state_dict


def _describe(model: nn.Module) -> str:
    parts = [type(getattr(model, name)).__name__
             for name in ('backbone', 'cls_head') if hasattr(model, name)]
    name = type(model).__name__
    return f'{name}({", ".join(parts)})' if parts else name
