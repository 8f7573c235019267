# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""File formats of captured programs: how to write, read and run them."""
import logging
import warnings
import zipfile
from pathlib import Path

import torch
from torch import Tensor
from torch.export import ExportedProgram

from .programs import Function, Program

FORMATS = 'pt2', 'onnx'
# Template for the names of metadata files inside a .pt2 file.
METADATA = 'mmvidattn_{}'
# Size limit of Protocol Buffers, and thus of an ONNX file.
MAX_BYTES = 2**31


def choose_format(path: Path) -> str:
    """Return the name of a file's format, which is its suffix."""
    if path.suffix[1:] not in FORMATS:
        raise ValueError(f'{path} must end with .pt2 or .onnx')
    return path.suffix[1:]


def check_format(path: Path) -> None:
    """Raise a ``ValueError`` if this machine cannot write such a file."""
    if choose_format(path) == 'onnx':
        for needed in 'onnx', 'onnxscript', 'onnxruntime':
            try:
                __import__(needed)
            except ImportError as error:
                raise ValueError(f'format onnx needs {needed}: pip install '
                                 '"mmvidattn[onnx]"') from error
        if not hasattr(torch.onnx.ONNXProgram, 'rename_axes'):
            raise ValueError('format onnx needs a newer torch, such as 2.13, '
                             f'got {torch.__version__}')


def write_program(exported: ExportedProgram, program: Program,
                  metadata: dict[str, str], path: Path) -> None:
    """Write a program with metadata; a ValueError if ONNX cannot have it."""
    if choose_format(path) == 'pt2':
        torch.export.save(exported, path, extra_files={
            METADATA.format(name): text for name, text in metadata.items()})
        return
    import onnx

    size = sum(x.numel() * x.element_size()
               for x in exported.state_dict.values())
    if size > MAX_BYTES:
        raise ValueError(f'the weights take {size / 2**30:.1f} GiB, but an '
                         'ONNX file is limited to 2; use a .pt2 file')
    # The exporter warns about its own code.
    before = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter('ignore')
            converted = torch.onnx.export(
                exported, input_names=program.input_names,
                output_names=program.output_names, dynamo=True,
                verbose=False)
    except Exception as error:
        raise ValueError('ONNX cannot represent this model: '
                         f'{one_line(error)}') from error
    finally:
        logging.disable(before)
    names = {}
    for value, axes in zip(converted.model.graph.inputs, program.axes):
        names |= {value.shape[i]: name for i, name in axes.items()}
    converted.rename_axes(names)
    converted.model.metadata_props.update(metadata)
    converted.save(path)
    onnx.checker.check_model(path)


def one_line(error: BaseException) -> str:
    """Return the start of the message of an error's first cause."""
    while error.__cause__ is not None:
        error = error.__cause__
    return ' '.join((str(error) or type(error).__name__).split())[:400]


def load_program(path: str | Path) -> Function:
    """Load a file as a function from tensors to a tuple of tensors.

    ONNX files run on the CPU with onnxruntime.
    """
    if choose_format(Path(path)) == 'pt2':
        return torch.export.load(path).module()
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


def read_metadata(path: str | Path) -> dict[str, str]:
    """Read the metadata written by :func:`mmvidattn.export.export_program`.

    Values are texts, most of them JSON, such as ``classes``.
    """
    if choose_format(Path(path)) == 'onnx':
        import onnx

        model = onnx.load(path, load_external_data=False)
        return {x.key: x.value for x in model.metadata_props}
    start = '/' + METADATA.format('')
    with zipfile.ZipFile(path) as archive:
        return {name.rpartition(start)[2]: archive.read(name).decode()
                for name in archive.namelist() if start in name}
