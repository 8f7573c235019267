# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Model wrapper that shares parameters among processes (FSDP2)."""
from collections.abc import Mapping, Sequence
from typing import Any

import torch
import torch.distributed as dist
from mmengine.device import get_device
from mmengine.optim import OptimWrapper
from mmengine.registry import MODEL_WRAPPERS
from torch import Tensor, nn

from ...utils.arguments import check_arguments
from .shards import cut_axis, cut_on_load, local

# Options of torch's MixedPrecisionPolicy.
DTYPES = dict(float32=torch.float32, bfloat16=torch.bfloat16,
              float16=torch.float16)
PRECISION_KEYS = 'param_dtype', 'reduce_dtype'


@MODEL_WRAPPERS.register_module()
@check_arguments
class FullyShard(nn.Module):
    """Share parameters, gradients and optimizer state among all processes.

    Use this wrapper instead of ``MMDistributedDataParallel`` for models that
    are too large for one device. Each of n processes stores an n-th part of
    every tensor. A unit, usually a block of the backbone, is assembled shortly
    before it computes, and released afterwards. The results equal the results
    of DistributedDataParallel, up to the order of sums.

    The wrapper calls ``torch.distributed.fsdp.fully_shard`` (FSDP2). It needs
    :class:`~mmvidattn.engine.SafeRunner`, which initializes the weights before
    it shards them, and torch 2.6 or later. Without a launcher, the model is
    not wrapped.

    - Checkpoints are complete, like the checkpoints of one process: the first
      process gathers and writes them, unless ``sharded_checkpoints`` is set.
    - Gradients are reduced in each iteration, even if the optimizer wrapper
      accumulates them, so that they stay sharded.
    - ``AmpOptimWrapper`` (autocast) works without ``mixed_precision``, and
      sends float32 parameters. With ``mixed_precision``, the processes send
      half as many bytes.

    Args:
        module: Model.
        units: Names of the classes whose modules are units, such as
            ``['SwinTransformerBlock3D']``. The model must call such modules as
            a whole, not their parts. Defaults to the elements of each
            ``nn.ModuleList`` of this package's clip backbones. All other
            modules together are one more unit.
        mixed_precision: Types of the parameters and inputs of a unit while it
            computes, and of gradients while they are reduced:
            ``dict(param_dtype='bfloat16', reduce_dtype='float32')``.
            ``reduce_dtype`` defaults to ``param_dtype``. The head always
            computes in float32. Defaults to None: the types of the model.
        cpu_offload: Keep parameters, gradients and optimizer state in the
            memory of the CPU, and copy units to the device. Defaults to
            False.
        activation_checkpointing: Recompute each block in the backward pass, as
            ``with_cp`` of the backbone does. Defaults to False.
        sharded_checkpoints: Let each process write its part of a checkpoint to
            a folder beside the ``.pth`` file, see
            :mod:`mmvidattn.utils.shard_folder`. A run with any number of
            processes can load the file together with its folder. Defaults to
            False.

    Example::

        model_wrapper_cfg = dict(
            type='FullyShard',
            mixed_precision=dict(
                param_dtype='bfloat16', reduce_dtype='float32'))
    """

    def __init__(self,
                 module: nn.Module,
                 units: Sequence[str] | None = None,
                 mixed_precision: Mapping[str, str] | None = None,
                 cpu_offload: bool = False,
                 activation_checkpointing: bool = False,
                 sharded_checkpoints: bool = False) -> None:
        super().__init__()
        self.module = module
        self.units = units
        self.precision = _check_precision(mixed_precision)
        self.cpu_offload = cpu_offload
        self.sharded_checkpoints = sharded_checkpoints
        self.is_sharded = False
        if isinstance(units, str):
            raise ValueError(f'units must be a list of names, got {units!r}')
        self.num_units = len(self.find_units()) + 1
        if activation_checkpointing:
            backbones = [m for m in module.modules() if hasattr(m, 'with_cp')]
            if not backbones:
                raise ValueError(
                    'activation_checkpointing needs a backbone with the '
                    f'option with_cp, and {type(module).__name__} has none')
            for backbone in backbones:
                backbone.with_cp = True

    def find_units(self) -> list[nn.Module]:
        """Return the modules that are units, without the entire model.

        Raises:
            ValueError: If ``units`` names a class that the model lacks.
        """
        if self.units is None:
            # layer_groups is part of the interface of our clip backbones.
            return [*dict.fromkeys(
                unit for backbone in self.module.modules()
                if hasattr(backbone, 'layer_groups')
                for unit in _elements(backbone))]
        found = [m for m in self.module.modules()
                 if type(m).__name__ in self.units]
        names = {type(m).__name__ for m in self.module.modules()}
        missing = sorted(set(self.units) - names)
        if missing:
            raise ValueError(
                f'units must be classes of modules of '
                f'{type(self.module).__name__}, got {", ".join(missing)}; its '
                f'modules are {", ".join(sorted(names))}')
        return found

    def shard(self) -> None:
        """Keep only this process's part of each parameter.

        All processes must call it, with equal parameters.
        """
        try:
            from torch.distributed.fsdp import (
                CPUOffloadPolicy,
                MixedPrecisionPolicy,
                OffloadPolicy,
                fully_shard,
                register_fsdp_forward_method,
            )
            from torch.distributed.tensor import Shard
        except ImportError as error:
            raise ImportError(
                'FullyShard needs torch 2.6 or later, got '
                f'{torch.__version__}') from error
        mesh = self._mesh()
        on_gpu = mesh.device_type != 'cpu'
        options = dict(
            mesh=mesh,
            # The registered parameters are then always the shards, except
            # while a unit computes.
            reshard_after_forward=True,
            offload_policy=CPUOffloadPolicy(pin_memory=on_gpu)
            if self.cpu_offload else OffloadPolicy(),
            shard_placement_fn=lambda p: Shard(
                cut_axis(p.shape, mesh.size())))
        policy = MixedPrecisionPolicy(**self.precision)
        # Children come before the modules that contain them.
        for unit in reversed(self.find_units()):
            fully_shard(unit, mp_policy=policy, **options)
            if hasattr(unit, 'forward_causal'):
                register_fsdp_forward_method(unit, 'forward_causal')
        head = getattr(self.module, 'cls_head', None)
        if head is not None and self.precision:
            fully_shard(head, **options, mp_policy=MixedPrecisionPolicy(
                param_dtype=torch.float32, reduce_dtype=torch.float32))
        fully_shard(self.module, mp_policy=policy, **options)
        cut_on_load(self.module)
        self.is_sharded = True

    def _mesh(self) -> Any:
        from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
        device = torch.device(get_device()).type
        if self.cpu_offload and device != 'cpu':
            # Gradients on the CPU are clipped there, which nccl cannot do.
            group = dist.new_group(backend=f'cpu:gloo,{device}:nccl')
            return DeviceMesh.from_group(group, device)
        return init_device_mesh(device, (dist.get_world_size(), ))

    def count_parameters(self) -> tuple[int, int]:
        """Return the numbers of parameters of this process and of all."""
        parameters = list(self.module.parameters())
        return (sum(local(p).numel() for p in parameters),
                sum(p.numel() for p in parameters))

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Call the model."""
        return self.module(*args, **kwargs)

    def train_step(self, data: Any,
                   optim_wrapper: OptimWrapper) -> dict[str, Tensor]:
        """Train on a batch.

        Raises:
            RuntimeError: If :meth:`shard` was not called. The processes would
                then train without each other.
        """
        if not self.is_sharded:
            raise RuntimeError(
                'FullyShard must be sharded before training: set runner_type '
                "= 'SafeRunner', which calls shard()")
        return self.module.train_step(data, optim_wrapper)

    def val_step(self, data: Any) -> list:
        """Predict a batch of validation."""
        return self.module.val_step(data)

    def test_step(self, data: Any) -> list:
        """Predict a batch of a test."""
        return self.module.test_step(data)


def _elements(module: nn.Module) -> list[nn.Module]:
    """Return the outermost elements of all nested lists of modules."""
    found = []
    for child in module.children():
        if isinstance(module, nn.ModuleList) and not isinstance(
                child, nn.ModuleList):
            if any(True for _ in child.parameters()):
                found.append(child)
        else:
            found += _elements(child)
    return found


def _check_precision(
        options: Mapping[str, str] | None) -> dict[str, torch.dtype]:
    for name, value in (options or {}).items():
        if name not in PRECISION_KEYS or value not in DTYPES:
            raise ValueError(
                f'mixed_precision must be a dict with {PRECISION_KEYS} and '
                f'types {", ".join(DTYPES)}, got {dict(options)}')
    return {name: DTYPES[value] for name, value in (options or {}).items()}
