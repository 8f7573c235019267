# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""File formats of captured programs: how to write, read and run them."""
import logging
import re
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor
from torch.export import ExportedProgram

from ..ops.torch_private import is_operator
from .capture import module_of
from .programs import Function, Program

# Template for the names of metadata files inside a .pt2 file.
METADATA = 'mmvidattn_{}'
KEYS = ('classes', 'config', 'inputs', 'mmvidattn_version', 'normalization',
        'output', 'outputs', 'preprocessing', 'script', 'state', 'stream',
        'torch_version')
# Size limit of Protocol Buffers, and thus of an ONNX file.
MAX_BYTES = 2**31


class Format(NamedTuple):
    """File format.

    Attributes:
        suffix: Suffix of its files.
        write: Function that writes a captured program with its metadata to a
            path.
        load: Function that loads a file as a function of tensors.
        metadata: Function that reads the metadata of a file.
        check: Function that raises a ``ValueError`` if this machine cannot
            write the format.
    """
    suffix: str
    write: Callable[[ExportedProgram, Program, dict[str, str], Path], None]
    load: Callable[[Path], Function]
    metadata: Callable[[Path], dict[str, str]]
    check: Callable[[], None]


def _write_pt2(exported: ExportedProgram, program: Program,
               metadata: dict[str, str], path: Path) -> None:
    torch.export.save(exported, path, extra_files={
        METADATA.format(name): text for name, text in metadata.items()})


def _metadata_of_pt2(path: Path) -> dict[str, str]:
    files = {METADATA.format(key): '' for key in KEYS}
    torch.export.load(path, extra_files=files)
    entries = {key: files[METADATA.format(key)] for key in KEYS}
    return {key: x if isinstance(x, str) else x.decode()
            for key, x in entries.items() if x}


def _check_onnx() -> None:
    for name in 'onnx', 'onnxscript', 'onnxruntime':
        try:
            __import__(name)
        except ImportError as error:
            raise ValueError(f'format onnx needs {name}: pip install '
                             '"mmvidattn[onnx]"') from error
    if not hasattr(torch.onnx.ONNXProgram, 'rename_axes'):
        raise ValueError('format onnx needs a newer torch, such as 2.13, got '
                         f'{torch.__version__}')


def _write_onnx(exported: ExportedProgram, program: Program,
                metadata: dict[str, str], path: Path) -> None:
    import onnx

    size = sum(x.numel() * x.element_size()
               for x in exported.state_dict.values())
    if size > MAX_BYTES:
        raise ValueError(f'the weights take {size / 2**30:.1f} GiB, but an '
                         'ONNX file is limited to 2; use a .pt2 file')
    try:
        with _quiet():
            converted = torch.onnx.export(
                exported, input_names=program.input_names,
                output_names=program.output_names, dynamo=True,
                verbose=False)
    except Exception as error:
        raise ValueError(_unsupported(error, exported)) from error
    names = {}
    for value, axes in zip(converted.model.graph.inputs, program.axes):
        names |= {value.shape[i]: name for i, name in axes.items()}
    converted.rename_axes(names)
    converted.model.metadata_props.update(metadata)
    converted.save(path)
    onnx.checker.check_model(path)


@contextmanager
def _quiet() -> Iterator[None]:
    """Silence warnings of the ONNX exporter about its own code."""
    before = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter('ignore')
            yield
    finally:
        logging.disable(before)


def _unsupported(error: Exception, exported: ExportedProgram) -> str:
    """Explain which operator ONNX lacks, and in which module."""
    causes = [error]
    while causes[-1].__cause__ is not None:
        causes.append(causes[-1].__cause__)
    texts = [str(cause) for cause in causes]
    for text in texts:
        match = re.search(r"No ONNX function found for <OpOverload\(op='"
                          r"([\w.]+)', overload='(\w+)'\)>", text)
        if match is None:
            continue
        # Build torch's name of the operator.
        op = f'{match[1]}.{match[2]}'.replace('.', '::', 1).removesuffix(
            '.default')
        where = [module_of(node) for node in
                 exported.run_decompositions().graph.nodes
                 if is_operator(node.target)
                 and node.target.name() == op]
        return f'ONNX has no operator for {op}' + (
            f', in {where[0]}' if where else '')
    return ('ONNX cannot represent this program: '
            f'{texts[-1].splitlines()[0][:200]}')


def _load_onnx(path: Path) -> Function:
    import onnxruntime

    session = onnxruntime.InferenceSession(
        path, providers=['CPUExecutionProvider'])
    names = [x.name for x in session.get_inputs()]

    def run(*tensors: Tensor) -> tuple[Tensor, ...]:
        outputs = session.run(
            None, {name: x.detach().cpu().numpy()
                   for name, x in zip(names, tensors)})
        return tuple(map(torch.from_numpy, outputs))

    return run


def _metadata_of_onnx(path: Path) -> dict[str, str]:
    import onnx

    model = onnx.load(path, load_external_data=False)
    return {x.key: x.value for x in model.metadata_props if x.key in KEYS}


FORMATS = dict(
    pt2=Format(
        '.pt2', _write_pt2, lambda path: torch.export.load(path).module(),
        _metadata_of_pt2, check=lambda: None),
    onnx=Format(
        '.onnx', _write_onnx, _load_onnx, _metadata_of_onnx, _check_onnx))


def choose_format(path: Path) -> str:
    """Return the name of a file's format, by its suffix.

    Raises:
        ValueError: If no format has the suffix.
    """
    for name, format in FORMATS.items():
        if path.suffix == format.suffix:
            return name
    suffixes = ' or '.join(x.suffix for x in FORMATS.values())
    raise ValueError(f'{path} must end with {suffixes}')


def load_program(path: str | Path) -> Function:
    """Load a file as a function from tensors to a tuple of tensors.

    ONNX files run on the CPU with onnxruntime.
    """
    path = Path(path)
    return FORMATS[choose_format(path)].load(path)


def read_metadata(path: str | Path) -> dict[str, str]:
    """Read the metadata written by :func:`mmvidattn.export.export_program`.

    Values are texts, most of them JSON, such as ``classes``.
    """
    path = Path(path)
    return FORMATS[choose_format(path)].metadata(path)
