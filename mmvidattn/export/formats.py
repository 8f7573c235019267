# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Files that hold a captured program: how each is written, read and run."""
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

# Of a .pt2, beside the program.
METADATA = 'mmvidattn_{}'
KEYS = ('classes', 'config', 'inputs', 'mmvidattn_version', 'normalization',
        'output', 'outputs', 'state', 'stream', 'torch_version')
# Of a file of Protocol Buffers.
MOST_BYTES = 2**31


class Format(NamedTuple):
    """A kind of file.

    Attributes:
        suffix: What its names end with.
        write: Takes the captured program, the program, its metadata and a
            path.
        load: Takes a path; returns the function.
        metadata: Takes a path; returns what was written.
        check: Raises a ``ValueError`` if it cannot be written here.
    """
    suffix: str
    write: Callable[[ExportedProgram, Program, dict[str, str], Path], None]
    load: Callable[[Path], Function]
    metadata: Callable[[Path], dict[str, str]]
    check: Callable[[], None]


def _check_nothing() -> None:
    """Torch alone is enough."""


def _write_pt2(exported: ExportedProgram, program: Program,
               metadata: dict[str, str], path: Path) -> None:
    torch.export.save(exported, path, extra_files={
        METADATA.format(name): text for name, text in metadata.items()})


def _load_pt2(path: Path) -> Function:
    return torch.export.load(path).module()


def _metadata_of_pt2(path: Path) -> dict[str, str]:
    files = {METADATA.format(key): '' for key in KEYS}
    torch.export.load(path, extra_files=files)
    found = {key: files[METADATA.format(key)] for key in KEYS}
    return {key: x if isinstance(x, str) else x.decode()
            for key, x in found.items() if x}


def _check_onnx() -> None:
    for name in 'onnx', 'onnxscript', 'onnxruntime':
        try:
            __import__(name)
        except ImportError as error:
            raise ValueError(f'format onnx needs {name}: pip install '
                             '"mmvidattn[onnx]"') from error
    if not hasattr(torch.onnx.ONNXProgram, 'rename_axes'):
        raise ValueError('format onnx needs a newer torch (2.13 does), this '
                         f'is {torch.__version__}')


def _write_onnx(exported: ExportedProgram, program: Program,
                metadata: dict[str, str], path: Path) -> None:
    import onnx

    size = sum(x.numel() * x.element_size()
               for x in exported.state_dict.values())
    if size > MOST_BYTES:
        raise ValueError(f'the weights have {size / 2**30:.1f} GiB, and a '
                         'file of ONNX holds 2; take another format')
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
    """Without what the exporter says of its own code."""
    before = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter('ignore')
            yield
    finally:
        logging.disable(before)


def _unsupported(error: Exception, exported: ExportedProgram) -> str:
    """Which operators ONNX lacks and where, or what else went wrong."""
    causes = [error]
    while causes[-1].__cause__ is not None:
        causes.append(causes[-1].__cause__)
    texts = [str(cause) for cause in causes]
    for text in texts:
        found = re.search(r"No ONNX function found for <OpOverload\(op='"
                          r"([\w.]+)', overload='(\w+)'\)>", text)
        if found is None:
            continue
        # As torch's own name of the operator.
        op = f'{found[1]}.{found[2]}'.replace('.', '::', 1).removesuffix(
            '.default')
        where = [module_of(node) for node in
                 exported.run_decompositions().graph.nodes
                 if is_operator(node.target)
                 and node.target.name() == op]
        return f'ONNX has no operator for {op}' + (
            f', in {where[0]}' if where else '')
    return f'ONNX cannot have this program: {texts[-1].splitlines()[0][:200]}'


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
    pt2=Format('.pt2', _write_pt2, _load_pt2, _metadata_of_pt2,
               _check_nothing),
    onnx=Format('.onnx', _write_onnx, _load_onnx, _metadata_of_onnx,
                _check_onnx))


def choose_format(path: Path) -> str:
    """The name of a file's format, by its suffix.

    Raises:
        ValueError: If there is no such format.
    """
    for name, format in FORMATS.items():
        if path.suffix == format.suffix:
            return name
    suffixes = ' or '.join(x.suffix for x in FORMATS.values())
    raise ValueError(f'{path} must end with {suffixes}')


def load_program(path: str | Path) -> Function:
    """The function in a file: tensors in, a tuple of tensors out.

    ONNX runs on the CPU, by onnxruntime.
    """
    path = Path(path)
    return FORMATS[choose_format(path)].load(path)


def read_metadata(path: str | Path) -> dict[str, str]:
    """What :func:`mmvidattn.export.export_program` wrote beside a program:
    ``classes`` and others, texts and JSON."""
    path = Path(path)
    return FORMATS[choose_format(path)].metadata(path)
