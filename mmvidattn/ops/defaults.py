# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Measured gains of backends, which determine the default choice."""
from typing import NamedTuple


class Measurement(NamedTuple):
    """Speed of a backend relative to the plain code on one machine.

    Attributes:
        op: Name of the op.
        backend: Name of the backend.
        mode: 'inference' or 'training'.
        dtype: Dtype of the computation.
        eager: Gain in eager mode; None if not measured.
        compiled: Gain under torch.compile; None if not measured.
    """
    op: str
    backend: str
    mode: str
    dtype: str
    eager: float | None
    compiled: float | None


class Machine(NamedTuple):
    """Measurements on one machine.

    Attributes:
        capability: See :func:`mmvidattn.ops.processor.capability`.
        name: Processor and conditions of the measurement.
        measurements: Measured gains.
    """
    capability: str
    name: str
    measurements: tuple[Measurement, ...]


# Most gains are from the output of `mmvidattn tune`, see the tables in
# ops/README.md. Other machines name their source.
MACHINES = (
    Machine(
        'AMD AVX512 bfloat16',
        'EPYC, Zen 5, 2 cores, torch 2.13; single products and layers of '
        'DualFormer-T, lowest gain of each range in earlier tables (packed '
        'weights: geometric mean of 1 to 2,048 rows)', (
            Measurement('linear', 'oneDNN', 'inference', 'float32',
                        1.3, None),
            Measurement('linear', 'oneDNN', 'training', 'float32',
                        1.2, None),
            Measurement('packed_linear', 'oneDNN', 'inference', 'float32',
                        1.14, None),
            Measurement('packed_linear', 'oneDNN', 'inference', 'bfloat16',
                        1.32, None),
            Measurement('patch_conv', 'product', 'training', 'float32',
                        None, 1.3),
            Measurement('patch_conv', 'product', 'inference', 'bfloat16',
                        None, 1.6),
            Measurement('depthwise_conv', 'frame by frame', 'training',
                        'float32', None, 6.))),
    Machine(
        'AMD AVX512 bfloat16',
        'EPYC, Zen 4 (family 25 model 17), 1 thread of 2 cores, torch 2.13; '
        '`mmvidattn tune --seconds 1`, geometric mean of two runs that differ '
        'by up to a quarter; compiled `depthwise_conv` from a later run', (
            Measurement('linear', 'oneDNN', 'inference', 'float32',
                        1.10, 1.12),
            Measurement('linear', 'oneDNN', 'training', 'float32',
                        1.04, 1.03),
            Measurement('packed_linear', 'oneDNN', 'inference', 'float32',
                        1.26, None),
            Measurement('packed_linear', 'oneDNN', 'inference', 'bfloat16',
                        1.30, None),
            Measurement('patch_conv', 'product', 'inference', 'bfloat16',
                        1.27, 0.99),
            Measurement('patch_conv', 'product', 'training', 'float32',
                        1.15, 1.40),
            Measurement('depthwise_conv', 'frame by frame', 'training',
                        'float32', 2.94, 4.54))),
    Machine(
        'AMD AVX2',
        'Zen 3, 2 cores; three products between 64x1024->1024 and '
        '3136x512->1536, of which the lowest gain is noted for every mode', (
            Measurement('linear', 'oneDNN', 'inference', 'float32',
                        0.77, 0.77),
            Measurement('linear', 'oneDNN', 'training', 'float32',
                        0.77, 0.77))),
    Machine(
        'AMD AVX2',
        'emulated by environment variables on the EPYC, Zen 4, above, where '
        'MKL ignores its variable; compiled `depthwise_conv` from a later '
        'run', (
            Measurement('linear', 'oneDNN', 'inference', 'float32',
                        0.93, 0.94),
            Measurement('linear', 'oneDNN', 'training', 'float32',
                        0.97, 0.87),
            Measurement('packed_linear', 'oneDNN', 'inference', 'float32',
                        1.12, None),
            Measurement('patch_conv', 'product', 'training', 'float32',
                        2.55, 2.34),
            Measurement('depthwise_conv', 'frame by frame', 'training',
                        'float32', 2.17, 3.91))),
    Machine(
        'Intel AVX512 bfloat16',
        'Xeon with AMX (family 6 model 167), 1 thread of 2 cores, torch 2.13; '
        '`mmvidattn tune --seconds 1`, geometric mean of two runs that differ '
        'by at most 8 %', (
            Measurement('linear', 'oneDNN', 'inference', 'float32',
                        0.96, 0.95),
            Measurement('linear', 'oneDNN', 'training', 'float32',
                        0.79, 0.81),
            Measurement('packed_linear', 'oneDNN', 'inference', 'float32',
                        1.25, None),
            Measurement('packed_linear', 'oneDNN', 'inference', 'bfloat16',
                        1.42, None),
            Measurement('patch_conv', 'product', 'inference', 'bfloat16',
                        3.49, 2.33),
            Measurement('patch_conv', 'product', 'training', 'float32',
                        1.32, 1.64),
            Measurement('patch_conv', 'product', 'training', 'bfloat16',
                        8.81, 17.2),
            Measurement('depthwise_conv', 'frame by frame', 'training',
                        'float32', 2.15, 4.55),
            Measurement('depthwise_conv', 'frame by frame', 'training',
                        'bfloat16', 3.50, 3.27))),
    Machine(
        'Intel AVX2',
        'emulated by environment variables on the Xeon above; same commands; '
        'two runs differ by at most 15 %; eager inference: '
        '`linear` in the shapes of TeSTra, and `packed_linear` in its steps, '
        'where gains are lower', (
            Measurement('linear', 'oneDNN', 'inference', 'float32',
                        0.96, 1.05),
            Measurement('linear', 'oneDNN', 'training', 'float32',
                        0.89, 0.89),
            Measurement('packed_linear', 'oneDNN', 'inference', 'float32',
                        0.94, None),
            Measurement('patch_conv', 'product', 'training', 'float32',
                        2.33, 2.46),
            Measurement('depthwise_conv', 'frame by frame', 'training',
                        'float32', 2.25, 3.80))),
)


def default_gains(capability: str | None) -> dict[str, float]:
    """Return the smallest measured gain of each backend and condition.

    A gain is the speed relative to the plain code. A key consists of the op,
    the backend, the mode, the dtype and the compiler.

    If several machines with this capability were measured, the smallest gain
    counts, so a backend that is slower on any of them is not used by default.
    """
    gains: dict[str, float] = {}
    for machine in MACHINES:
        if machine.capability != capability:
            continue
        for op, backend, mode, dtype, *by_compiler in machine.measurements:
            for compiler, gain in zip(('eager', 'compiled'), by_compiler):
                key = f'{op}/{backend}/{mode}/{dtype}/{compiler}'
                if gain is not None:
                    gains[key] = min(gain, gains.get(key, gain))
    return gains
