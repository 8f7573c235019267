# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Memory of a training step, computed without allocating it."""
import math
import weakref
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import torch
from mmaction.registry import HOOKS, OPTIMIZERS
from mmengine.config import Config
from mmengine.hooks import EMAHook
from mmengine.structures import BaseDataElement
from torch import Tensor, nn

from ..engine.sharding import FullyShard
from ..ops.torch_private import TorchDispatchMode, tensors_without_data

# 'single' is one process without a wrapper.
Strategy = Literal['single', 'ddp', 'FullyShard']


class LiveBytes(TorchDispatchMode):
    """Count the bytes of all storages that operators created and still exist.

    A storage counts once, even if several tensors share it.

    Args:
        known: Tensors that exist before, and are not counted.

    Attributes:
        sums: Present bytes of each kind, 'gradient' and 'other'.
        timeline: Both sums after each new storage.
    """

    def __init__(self, known: Iterable[Tensor] = ()) -> None:
        super().__init__()
        self.timeline: list[tuple[int, int]] = []
        self.sums = dict(gradient=0, other=0)
        # For each storage, a reference that ends its count, and its kind.
        self._live: dict[int, list] = {}
        self._known = {x.untyped_storage()._cdata for x in known}

    def add(self, tensor: Tensor, kind: str = 'other') -> None:
        """Count the storage of a tensor, as a 'gradient' or 'other'."""
        storage = tensor.untyped_storage()
        key, size = storage._cdata, storage.nbytes()
        if key in self._known:
            return
        if key in self._live:
            self.sums[self._live[key][1]] -= size
            self._live[key][1] = kind
        else:
            entry = [None, kind]

            def remove(reference: weakref.ref) -> None:
                self.sums[entry[1]] -= size
                self._live.pop(key)

            entry[0] = weakref.ref(storage, remove)
            self._live[key] = entry
        self.sums[kind] += size
        self.timeline.append((self.sums['gradient'], self.sums['other']))

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        out = func(*args, **(kwargs or {}))
        for x in out if isinstance(out, (tuple, list)) else (out, ):
            if isinstance(x, Tensor) and (
                    x.untyped_storage()._cdata not in self._live):
                self.add(x)
        return out


@dataclass(frozen=True)
class StepMemory:
    """Bytes of a training step in a process that has the entire model.

    Attributes:
        batch_size: Number of samples.
        parameters: Parameters.
        buffers: Buffers.
        averages: Copy of parameters and buffers by ``EMAHook``.
        optimizer: State of the optimizer.
        gradients: All gradients.
        activations: Tensors at the start of the backward pass: tensors that
            autograd saves, clips, and copies of parameters by autocast.
        timeline: Bytes of all other tensors than the first four after each
            operator, [N, 2]: gradients and temporaries of the optimizer, which
            processes can share, and tensors that they cannot share.
        root: Parameters outside of units of :class:`FullyShard`.
        unit: Parameters of the largest unit.
    """
    batch_size: int
    parameters: int
    buffers: int
    averages: int
    optimizer: int
    gradients: int
    activations: int
    timeline: np.ndarray
    root: int
    unit: int

    def parts(self, strategy: Strategy, processes: int) -> dict[str, int]:
        """Return the bytes of a process by name.

        Gradients and activations are not complete at the same time.
        """
        n = processes if strategy == 'FullyShard' else 1
        parts = {
            'parameters': -(-self.parameters // n),
            'buffers': self.buffers,
            'optimizer state': -(-self.optimizer // n),
            'EMA': -(-self.averages // n),
            'gradients': -(-self.gradients // n),
            'activations': self.activations}
        if strategy == 'ddp':
            parts['buckets of gradients'] = self.gradients
        if strategy == 'FullyShard':
            # Parameters outside of units, of a unit and of the next unit,
            # which is fetched early; and two copies of a unit's gradients, one
            # of them for communication.
            parts['assembled units'] = self.root + 2 * self.unit + 2 * max(
                self.root, self.unit)
        return parts

    def usage(self, strategy: Strategy, processes: int) -> np.ndarray:
        """Return all bytes of a process after each operator, [N]."""
        n = processes if strategy == 'FullyShard' else 1
        parts = self.parts(strategy, processes)
        del parts['gradients'], parts['activations']
        return sum(parts.values()) + self.timeline @ [1 / n, 1]

    def peak(self, strategy: Strategy, processes: int) -> int:
        """Return the largest number of bytes of a process at any time."""
        return math.ceil(self.usage(strategy, processes).max())


def largest_batch(smaller: StepMemory, larger: StepMemory, capacity: float,
                  strategy: Strategy, processes: int) -> int:
    """Return the largest batch of a process whose step fits into a device.

    Each tensor either grows linearly with the batch or not at all, so two
    batches determine the memory of any batch.

    Args:
        smaller: Memory of a step.
        larger: Memory of a step with more samples.
        capacity: Bytes of the device.
        strategy: How the processes share the model.
        processes: Number of processes.

    Returns:
        Number of samples; 0 if not even one fits.
    """
    low, high = (x.usage(strategy, processes) for x in (smaller, larger))
    if len(low) != len(high):
        # The model has a loop over samples.
        low, high = low.max(keepdims=True), high.max(keepdims=True)
    slope = (high - low) / (larger.batch_size - smaller.batch_size)
    start = low - slope * smaller.batch_size
    if start.max() > capacity:
        return 0
    grows = slope > 0
    return math.floor(((capacity - start[grows]) / slope[grows]).min())


class _BackwardOnly:
    """Stand-in for an optimizer wrapper that computes gradients."""

    def __init__(self, autocast: AbstractContextManager,
                 before: Callable[[], None]) -> None:
        self.autocast, self.before = autocast, before

    def optim_context(self, model: nn.Module) -> AbstractContextManager:
        return self.autocast

    def update_params(self, loss: Tensor) -> None:
        self.before()
        loss.backward()


def compute_step(build: Callable[[], nn.Module],
                 make_batch: Callable[[nn.Module, int], dict], cfg: Config,
                 batch_size: int, like_gpu: bool = True) -> StepMemory:
    """Compute the memory of a training step without allocating it.

    The step runs on tensors without data. torch's operators of the CPU
    determine which tensors are saved.

    Args:
        build: Function that returns the model; called on the meta device.
        make_batch: Function that returns a batch for the model, given the
            model and the number of samples.
        cfg: Config with ``optim_wrapper``; optionally ``custom_hooks`` and
            ``model_wrapper_cfg.units``.
        batch_size: Number of samples.
        like_gpu: Let the optimizer update all parameters at once, as on a GPU,
            instead of one by one, as on a CPU. Defaults to True.

    Raises:
        ValueError: If the step depends on the values of tensors.
    """
    with torch.device('meta'):
        model = build()
    saved = 0
    with tensors_without_data():
        model = model.to_empty(device='cpu').train()
        batch = make_batch(model, batch_size)
        live = LiveBytes([*model.parameters(), *model.buffers()])
        for x in nested_tensors(batch):
            live.add(x)

        def before_backward() -> None:
            nonlocal saved
            saved = live.sums['other']

        def add_gradient(parameter: Tensor) -> None:
            live.add(parameter.grad, 'gradient')

        for parameter in model.parameters():
            if parameter.requires_grad:
                parameter.register_post_accumulate_grad_hook(add_gradient)
        step = _BackwardOnly(_autocast(cfg), before_backward)
        # With accumulation, gradients exist before most steps.
        accumulates = cfg.optim_wrapper.get('accumulative_counts', 1) > 1
        with live:
            for _ in range(1 + accumulates):
                live.timeline.clear()
                model.train_step(batch, step)
    gradients = live.timeline[-1][0]
    parameters = _bytes(model.parameters())
    buffers = _bytes(model.buffers())
    state, temporary = _optimizer_bytes(model, cfg, like_gpu)
    units = [_bytes(x.parameters()) for x in FullyShard(
        model, (cfg.get('model_wrapper_cfg') or {}).get('units')
    ).find_units()]
    return StepMemory(
        batch_size, parameters, buffers,
        parameters + buffers if has_average(cfg) else 0, state, gradients,
        saved, np.array([*live.timeline, (gradients + temporary, 0)]),
        parameters - sum(units), max(units, default=0))


def _autocast(cfg: Config) -> AbstractContextManager:
    options = cfg.optim_wrapper
    if options.get('type') != 'AmpOptimWrapper':
        return nullcontext()
    dtype = options.get('dtype') or torch.float16
    return torch.autocast(
        'cpu', getattr(torch, dtype) if isinstance(dtype, str) else dtype)


def _optimizer_bytes(model: nn.Module, cfg: Config,
                     like_gpu: bool) -> tuple[int, int]:
    """Return the bytes of an optimizer's state and of its temporaries.

    It updates a tensor of each shape in the model, twice.
    """
    trained = [p for p in model.parameters() if p.requires_grad]
    kinds = {(p.shape, p.dtype) for p in trained}
    examples = {kind: nn.Parameter(torch.zeros(kind[0], dtype=kind[1]))
                for kind in kinds}
    for example in examples.values():
        example.grad = torch.zeros_like(example)
    optimizer = OPTIMIZERS.build(dict(
        cfg.optim_wrapper.optimizer, params=[*examples.values()]))
    for group in optimizer.param_groups:
        if like_gpu and group.get('foreach', 0) is None:
            group['foreach'] = True
    optimizer.step()
    state = {kind: _bytes(nested_tensors(optimizer.state[example]))
             for kind, example in examples.items()}
    known = [*examples.values(), *(p.grad for p in examples.values()),
             *nested_tensors([*optimizer.state.values()])]
    with LiveBytes(known) as live:
        optimizer.step()
    temporary = max((other for _, other in live.timeline), default=0)
    if like_gpu:
        temporary *= _bytes(trained) / _bytes(examples.values())
    return (sum(state[p.shape, p.dtype] for p in trained),
            math.ceil(temporary))


def has_average(cfg: Config) -> bool:
    """Return True if a config has an ``EMAHook``."""
    for hook in cfg.get('custom_hooks') or []:
        kind = hook['type']
        kind = HOOKS.get(kind) if isinstance(kind, str) else kind
        if kind is not None and issubclass(kind, EMAHook):
            return True
    return False


def _bytes(tensors: Iterable[Tensor]) -> int:
    """Return the bytes of tensors, each storage once."""
    storages = {x.untyped_storage()._cdata: x.untyped_storage().nbytes()
                for x in tensors}
    return sum(storages.values())


def nested_tensors(value: Any) -> list[Tensor]:
    """Return all tensors in nested containers and data samples."""
    if isinstance(value, Tensor):
        return [value]
    if isinstance(value, BaseDataElement):
        value = dict(value.items())
    if isinstance(value, Mapping):
        value = list(value.values())
    if isinstance(value, (list, tuple)):
        return [x for item in value for x in nested_tensors(item)]
    return []
