# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Workarounds for wrong results and for errors in training, testing and
decoding."""
import atexit
import difflib
import functools
import gc
import os
from typing import Any

from .registry import Overlay, replace, workaround, wrap

# Keys of a config that are not arguments.
RESERVED = {'type', '_scope_'}


def _on_cpu() -> bool:
    from mmengine.device import get_device
    return get_device() == 'cpu'


@workaround(after=['mmengine.optim'])
def train_amp_on_cpu() -> None:
    """Compute in bfloat16 without loss scaling on machines that lack a GPU.

    The checkpoint of such a run has an empty scaler, which a run on a GPU
    ignores.

    Symptom: `AmpOptimizerWrapper is only available training on gpu`
    Until: mmengine's `AmpOptimWrapper` runs on a CPU
    """
    import torch
    from mmengine.optim import AmpOptimWrapper, OptimWrapper

    def init(original, self, loss_scale='dynamic', dtype=None, use_fsdp=False,
             **kwargs):
        if not _on_cpu():
            return original(self, loss_scale, dtype, use_fsdp, **kwargs)
        if dtype not in (None, 'bfloat16', torch.bfloat16):
            raise ValueError('AmpOptimWrapper on a CPU computes in bfloat16: '
                             f"dtype must be None or 'bfloat16', got {dtype}")
        OptimWrapper.__init__(self, **kwargs)
        self._scale_update_param = None
        self.loss_scaler = torch.amp.GradScaler('cpu', enabled=False)
        self.cast_dtype = torch.bfloat16

    def load_state_dict(original, self, state_dict):
        if not state_dict.get('loss_scaler'):
            state_dict = {
                key: value
                for key, value in state_dict.items() if key != 'loss_scaler'
            }
        return original(self, state_dict)

    wrap(AmpOptimWrapper, '__init__', init)
    wrap(AmpOptimWrapper, 'load_state_dict', load_state_dict)


@workaround(after=['mmaction.models'])
def score_in_float32() -> None:
    """Convert bfloat16 scores of a head to float32 under autocast.

    Heads and metrics convert scores to numpy arrays, which do not support
    bfloat16.

    Symptom: `Got unsupported ScalarType BFloat16` under bfloat16 autocast
    Until: mmaction2 casts where it calls `numpy()`
    """
    import torch
    from mmaction.models.heads import BaseHead

    def widen(scores: Any) -> Any:
        if isinstance(scores, dict):
            return {key: widen(value) for key, value in scores.items()}
        if (torch.is_tensor(scores) and scores.dtype == torch.bfloat16
                and torch.is_autocast_enabled(scores.device.type)):
            return scores.float()
        return scores

    def call(original, self, *args, **kwargs):
        return widen(original(self, *args, **kwargs))

    wrap(BaseHead, '__call__', call)


@workaround(after=['mmengine.dist'])
def launch_on_cpu() -> None:
    """Launch with gloo and without a device on machines that lack a GPU.

    All launchers of mmengine select a CUDA device and ask for nccl.

    Symptom: `module 'torch._C' has no attribute '_cuda_setDevice'` at launch
    Until: mmengine's `init_dist` and `Runner` support the CPU
    """
    import torch
    from mmengine.dist import utils

    def set_device(device: Any) -> None:
        if torch.cuda.is_available():
            torch.cuda.set_device(device)

    def leave() -> None:
        if torch.distributed.is_initialized():
            # Delete models first: a DDP model that is deleted after its
            # process group can deadlock, because it ends gloo's thread while
            # it holds a lock that the thread may wait for.
            gc.collect()
            torch.distributed.destroy_process_group()

    def init_dist(original, backend, *args, **kwargs):
        if not _on_cpu():
            return original(backend, *args, **kwargs)
        original('gloo' if backend == 'nccl' else backend, *args, **kwargs)
        atexit.register(leave)

    replace(utils, 'torch', Overlay(
        torch, cuda=Overlay(torch.cuda, set_device=set_device)))
    for launcher in 'pytorch', 'mpi', 'slurm':
        wrap(utils, f'_init_dist_{launcher}', init_dist)


@workaround(after=['mmengine.model'])
def distribute_on_cpu() -> None:
    """Give DDP no device number for a model on a CPU.

    Symptom: `DistributedDataParallel device_ids and output_device arguments
        only work with single-device` in a distributed run on a CPU
    Until: mmengine's `Runner` supports the CPU
    """
    from mmengine.model import MMDistributedDataParallel

    def init_ddp(original, self, module, *args, **kwargs):
        if all(p.device.type == 'cpu' for p in module.parameters()):
            kwargs['device_ids'] = None
        return original(self, module, *args, **kwargs)

    wrap(MMDistributedDataParallel, '__init__', init_ddp)


def start_worker(worker_id: int, num_workers: int, rank: int, seed: int,
                 disable_subprocess_warning: bool = False,
                 each_epoch: bool = False) -> None:
    """Seed a worker of a data loader like mmengine.

    Unpickling this function imports mmvidattn, so a worker applies the
    workarounds even if it is not forked. See
    :func:`mmengine.dataset.worker_init_fn` for the other arguments.

    Args:
        each_epoch: Also use torch's seed of the worker, which differs in each
            epoch and is reproducible.
    """
    import torch
    from mmengine.dataset import worker_init_fn
    if each_epoch:
        seed = (seed + torch.initial_seed() - worker_id) % 2**31
    worker_init_fn(
        worker_id, num_workers, rank, seed, disable_subprocess_warning)


@workaround(after=['mmengine.runner'])
def reseed_workers_each_epoch() -> None:
    """Seed workers anew in each epoch, if they restart in each epoch.

    Their augmentations then differ from mmengine's for the same seed;
    persistent workers draw the same as mmengine's. All workers import
    mmvidattn.

    Symptom: With a seed, each epoch repeats the same augmentations, unless
        `persistent_workers=True`; workers that are not forked lack workarounds
    Until: mmengine seeds by the epoch
    """
    from mmengine.dataset import worker_init_fn
    from mmengine.runner import FlexibleRunner, Runner

    def build_dataloader(original, *args, **kwargs):
        loader = original(*args, **kwargs)
        init = loader.worker_init_fn
        if getattr(init, 'func', None) is worker_init_fn:
            loader.worker_init_fn = functools.partial(
                start_worker, **init.keywords,
                each_epoch=not loader.persistent_workers)
        return loader

    for owner in Runner, FlexibleRunner:
        wrap(owner, 'build_dataloader', build_dataloader)


@workaround(after=['mmaction.datasets'])
def refuse_files_that_decord_misreads() -> None:
    """Let ``DecordInit`` raise an error that recommends another backend.

    Files on disk are then read by decord in parts, and never loaded
    completely.

    Symptom: Wrong frames without an error from files with open groups of
        pictures, edit lists or no time stamps
    Until: decord seeks to the requested frame
    Upstream: dmlc/decord#54, #365
    """
    from mmaction.datasets import DecordInit
    from mmengine.fileio import FileClient

    def open_video(original, self, filename):
        from mmvidattn.utils.decord_check import open_decord
        if not os.path.splitext(filename)[1]:
            filename += '.mp4'
        if os.path.isfile(filename):
            return open_decord(filename, self.num_threads)
        if self.file_client is None:
            self.file_client = FileClient(self.io_backend, **self.kwargs)
        return open_decord(bytes(self.file_client.get(filename)),
                           self.num_threads)

    wrap(DecordInit, '_get_video_reader', open_video)


@workaround(after=['mmcv.transforms'])
def name_failed_transforms() -> None:
    """Add a note with the transform and the video to errors in pipelines.

    Symptom: `AssertionError` in a pipeline, without the step and the video
    Until: mmcv names them
    """
    from mmcv.transforms import BaseTransform

    def call(original, self, results):
        try:
            return original(self, results)
        except Exception as error:
            if isinstance(results, dict) and not hasattr(error, '__notes__'):
                file = results.get('filename') or results.get('frame_dir')
                # BaseException.add_note is not in Python 3.10.
                error.__notes__ = [f'{type(self).__name__} of {file}: '
                                   f'{error!r}']
            raise

    wrap(BaseTransform, '__call__', call)


@workaround(after=['mmengine.registry'])
def suggest_class_names() -> None:
    """Name the class or the option that is closest to an unknown one.

    An error gets the part of the config that failed as its attribute ``part``.

    Symptom: `LinearAttenton is not in the mmaction::model registry`, without
        a suggestion or the key in the config
    Until: mmengine suggests a name
    """
    from mmengine.registry import Registry

    def build(original, self, cfg, *args, **kwargs):
        try:
            return build_or_suggest(original, self, cfg, *args, **kwargs)
        except (ValueError, TypeError, LookupError) as error:
            error.part = getattr(error, 'part', cfg)
            raise

    def build_or_suggest(original, self, cfg, *args, **kwargs):
        # This module may be importing mmengine.
        from ..utils.arguments import suggest_argument
        try:
            built = original(self, cfg, *args, **kwargs)
            if self.name == 'transform' and isinstance(cfg, dict):
                # Some take any keyword.
                suggest_argument(type(built), cfg.keys() - RESERVED, .87)
            return built
        except (TypeError, AssertionError):
            kind = cfg.get('type') if isinstance(cfg, dict) else None
            if isinstance(kind, str):
                with self.switch_scope_and_registry(cfg.get('_scope_')) as one:
                    kind = one.get(kind)
            if isinstance(kind, type):
                suggest_argument(kind, cfg.keys() - RESERVED)
            raise
        except KeyError as error:
            name = cfg.get('type') if isinstance(cfg, dict) else None
            with self.switch_scope_and_registry(None) as one:
                if not isinstance(name, str) or '_scope_' in cfg or (
                        one.get(name)):
                    raise
                # Classes of this package may not be imported yet.
                known = {*one.module_dict, *getattr(one, 'names', list)(),
                         *getattr(one.parent, 'module_dict', ())}
            close = [one for one in known if one.lower() == name.lower()
                     ] or difflib.get_close_matches(name, sorted(known), 1)
            hint = (f'; did you mean {close[0]}?' if close else '.') + (
                ' A class of yours needs @register_module() and its module in '
                'custom_imports')
            raise KeyError(f'{name} is not in the registry {self.name!r}{hint}'
                           ) from error

    wrap(Registry, 'build', build)
