# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Cures for mmaction2 1.2 and mmengine 0.10 on a current Python and PyTorch.

Each function of :data:`CURES` heals one quirk; its docstring tells the
symptom, the upstream issue (``#n`` is one of open-mmlab/mmaction2) and when
the function can go. A cure changes the library where the quirk lives, so that
mmaction2's own tools are healed as well once a config imports this package.
"""
from __future__ import annotations

import atexit
import codecs
import collections
import functools
import gc
import importlib
import importlib.util
import math
import pickle
import sys
import types
import warnings
from pathlib import Path
from typing import Any, Callable


class _Overlay(types.ModuleType):
    """A module with some names replaced; all others are looked up in it."""

    def __init__(self, module: types.ModuleType, **names: Any) -> None:
        super().__init__(module.__name__)
        self.__dict__.update(names, _module=module)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._module, name)


def _wrap(owner: Any, name: str, wrapper: Callable[..., Any]) -> None:
    """Let ``owner.name(...)`` run ``wrapper(original, ...)``, once."""
    original = getattr(owner, name)
    if getattr(original, 'healed_by', None) == __name__:
        return

    @functools.wraps(original)
    def healed(*args, **kwargs):
        return wrapper(original, *args, **kwargs)

    healed.healed_by = __name__
    setattr(owner, name, healed)


def _on_cpu() -> bool:
    from mmengine.device import get_device
    return get_device() == 'cpu'


def _numpy_core() -> types.ModuleType:
    import numpy as np
    name = 'numpy._core' if int(np.__version__.split('.')[0]) > 1 else \
        'numpy.core'
    for part in 'multiarray', 'numeric':
        importlib.import_module(f'{name}.{part}')
    return sys.modules[name]


def quiet_warnings() -> None:
    """Warnings that every process prints and no user can act on.

    They are about upstream's own calls: ``torch.cuda.amp.GradScaler`` and
    DDP's ``broadcast_buffers`` (deprecated in torch), ``pkg_resources``
    (deprecated in setuptools, mmengine imports it; open-mmlab/mmcv#3325), the
    missing CUDA operator of mmcv-lite, and the strides that torch itself gives
    to the gradient of a depth-wise convolution under DDP. They can go with an
    mmengine that stopped calling these, respectively with mmcv-lite.
    """
    for message in (r'`torch\.cuda\.amp\.GradScaler\(args\.\.\.\)` is depr',
                    r'`broadcast_buffers` is deprecated',
                    r'pkg_resources is deprecated as an API',
                    r'Deprecated call to `pkg_resources\.declare_namespace',
                    r'Grad strides do not match bucket view strides',
                    r'Fail to import ``MultiScaleDeformableAttention``'):
        warnings.filterwarnings('ignore', message=message)


def require_mmcv() -> None:
    """``No module named 'mmcv'`` from deep inside an import of mmaction2.

    Both ``mmcv`` and ``mmcv-lite`` provide the module, so that neither can be
    a hard requirement; say how to get one. Stays as long as that is so.
    """
    if importlib.util.find_spec('mmcv') is None:
        raise ImportError('mmvidattn needs mmcv: install it with `pip install '
                          '"mmvidattn[lite]"` (mmcv-lite is enough).')


def hide_broken_torchvision() -> None:
    """``operator torchvision::nms does not exist`` when a Runner is built.

    A torchvision of another build than torch fails on import, with an error
    that mmengine's environment report does not expect. Nothing here needs
    torchvision, so it is treated as absent. Can go when ``collect_env``
    survives it.
    """
    try:
        import torchvision  # noqa: F401
    except ModuleNotFoundError:
        return
    except Exception as error:
        for name in [n for n in sys.modules if n.startswith('torchvision.')]:
            del sys.modules[name]
        sys.modules['torchvision'] = None
        warnings.warn('torchvision is installed but broken, and is treated '
                      f'as absent: {type(error).__name__}: {error}')


def add_missing_drn() -> None:
    """``No module named 'mmaction.models.localizers.drn'``; #2714.

    The folder has no ``__init__.py``, so mmaction2's wheel lacks it. Its only
    class is replaced by one that says so when built. Can go with the first
    release that ships the folder.
    """
    name = 'mmaction.models.localizers.drn'
    package = importlib.util.find_spec('mmaction').submodule_search_locations
    folder = Path(package[0], 'models', 'localizers', 'drn')
    if name in sys.modules or (folder / 'drn.py').exists():
        return
    from mmaction.registry import MODELS

    class DRN:

        def __init__(self, *args, **kwargs) -> None:
            raise ImportError('DRN is missing from the wheel of mmaction2 '
                              '1.2.0; install mmaction2 from its sources to '
                              'use it')

    MODELS.register_module(module=DRN)
    parent, child = types.ModuleType(name), types.ModuleType(f'{name}.drn')
    parent.__path__, parent.drn, child.DRN = [], child, DRN
    sys.modules.update({name: parent, f'{name}.drn': child})


def leave_out_multimodal() -> None:
    """``cannot import name ... from 'transformers'`` with transformers 5.

    mmaction2's multimodal models import names that transformers 5 removed,
    which breaks the import of all models. They are treated as absent, as
    without transformers. Can go when VindLU runs on transformers 5.
    """
    from mmaction.utils import dependency
    if dependency.satisfy_requirement('transformers>=5.0.0.dev0'):
        dependency.WITH_MULTIMODAL = False


def load_weights_only() -> None:
    """``Unsupported global: HistoryBuffer`` on resume; mmengine#1655, #1650.

    mmengine's checkpoints hold its message hub and numpy numbers, which
    ``torch.load(weights_only=True)`` refuses. Just these are allowed;
    ``getattr``, by which a HistoryBuffer names its statistics, only on that
    class. The same safe loading is enforced on torch below 2.6 and for
    checkpoints from the web, which mmengine unpickles unchecked. Can go when
    mmengine's checkpoints are plain types and it passes ``weights_only``.
    """
    import numpy as np
    import torch
    from mmengine.logging import HistoryBuffer
    from mmengine.runner import checkpoint

    # The unpickler goes by these two attributes, on every version of torch.
    def allow_as(function: Callable, module: str, name: str) -> Callable:

        def stand_in(*args):
            return function(*args)

        stand_in.__module__ = module
        stand_in.__name__ = stand_in.__qualname__ = name
        return stand_in

    def get_statistic(obj: Any, name: str) -> Any:
        if obj is not HistoryBuffer or name.startswith('_'):
            raise pickle.UnpicklingError(
                f'refused to load getattr({obj!r}, {name!r}) from a '
                'checkpoint: only the statistics of HistoryBuffer are allowed')
        return getattr(obj, name)

    multiarray = _numpy_core().multiarray
    allowed = [
        HistoryBuffer, np.ndarray, np.dtype,
        allow_as(get_statistic, 'builtins', 'getattr')
    ]
    allowed += {type(np.dtype(code)) for code in '?bBhHiIlLqQefdUS'}
    for module in 'numpy.core.multiarray', 'numpy._core.multiarray':
        for name in '_reconstruct', 'scalar':
            allowed.append(
                allow_as(getattr(multiarray, name), module, name))
    torch.serialization.add_safe_globals(allowed)

    def load(*args, **kwargs):
        return torch.load(*args, **{**kwargs, 'weights_only': True})

    def load_url(original, *args, **kwargs):
        return original(*args, **{**kwargs, 'weights_only': True})

    checkpoint.torch = _Overlay(torch, load=load)
    _wrap(checkpoint, 'load_url', load_url)


def load_data_as_data() -> None:
    """A pickle or a YAML file runs code when ``mmengine.load`` reads it.

    Annotations of mmaction2's datasets may be such files. Of pickles, plain
    types, numpy's arrays and torch's tensors are loaded, and nothing else; of
    YAML what its safe loader takes. Can go when mmengine does so.
    """
    import io

    import numpy as np
    import torch
    import yaml
    from mmengine.fileio.handlers import pickle_handler, yaml_handler

    def load_storage(data: bytes) -> Any:
        return torch.load(io.BytesIO(data), 'cpu', weights_only=True)

    # A pickle of protocol 2, mmengine's default, has the name of Python 2.
    plain = {f'{module}.{t.__name__}': t
             for module in ('builtins', '__builtin__') for t in (
                 set, frozenset, complex, bytearray, range, slice, list, dict,
                 tuple, str, int, float, bool, bytes)}
    plain |= {
        'collections.OrderedDict': collections.OrderedDict,
        '_codecs.encode': codecs.encode,
        'numpy.ndarray': np.ndarray,
        'numpy.dtype': np.dtype,
        'torch._utils._rebuild_tensor_v2': torch._utils._rebuild_tensor_v2,
        'torch.storage._load_from_bytes': load_storage,
        'torch.Size': torch.Size,
    }
    core = _numpy_core()
    for old in 'numpy.core', 'numpy._core':
        for name in '_reconstruct', 'scalar':
            plain[f'{old}.multiarray.{name}'] = getattr(core.multiarray, name)
        plain[f'{old}.numeric._frombuffer'] = core.numeric._frombuffer

    class Unpickler(pickle.Unpickler):

        def find_class(self, module: str, name: str) -> Any:
            try:
                return plain[f'{module}.{name}']
            except KeyError:
                raise pickle.UnpicklingError(
                    f'refused: loading it would call {module}.{name}, which '
                    'is not data') from None

    def load(file: Any, **kwargs: Any) -> Any:
        return Unpickler(file, **kwargs).load()

    pickle_handler.pickle = _Overlay(pickle, load=load)
    yaml_handler.Loader = getattr(yaml, 'CSafeLoader', yaml.SafeLoader)


def leave_config_of_checkpoint() -> None:
    """``--resume`` runs the text that a checkpoint has for its config.

    ``Runner.resume`` parses ``meta['config']`` as Python, to look for
    ``gpu_ids``, which no config of today has. It is not handed to it. Can go
    when mmengine stops to ask for it.
    """
    from mmengine.runner import Runner

    def load_checkpoint(original, *args, **kwargs):
        checkpoint = original(*args, **kwargs)
        if isinstance(checkpoint.get('meta'), dict):
            checkpoint['meta'].pop('config', None)
        return checkpoint

    _wrap(Runner, 'load_checkpoint', load_checkpoint)


def run_on_numpy_2() -> None:
    """``np.Inf was removed in the NumPy 2.0 release``, and its like.

    Pose transforms, frame extraction and the metrics of ActivityNet, AVA and
    retrieval use names that numpy 2 dropped; MultiSports' metric makes an int
    of an array of one element. These modules get what they ask for; numpy
    itself is left alone. Can go when mmaction2 supports numpy 2.
    """
    import numpy as np
    from mmaction.evaluation.functional import multisports_utils

    names = dict(
        Inf=np.inf,
        NAN=np.nan,
        trapz=getattr(np, 'trapezoid', None) or np.trapz,
        in1d=lambda *args, **kwargs: np.isin(*args, **kwargs).ravel())
    for name in ('datasets.transforms.pose_transforms',
                 'evaluation.functional.accuracy',
                 'evaluation.functional.ava_evaluation.metrics',
                 'evaluation.metrics.multimodal_metric', 'utils.misc'):
        module = importlib.import_module(f'mmaction.{name}')
        module.np = _Overlay(np, **names)
    multisports_utils.int = lambda value: int(np.asarray(value).item())


def shift_hue_in_range() -> None:
    """``OverflowError`` in half of the calls of ``ColorJitter``.

    ``ColorJitter.adjust_hue`` adds a negative int to uint8 pixels, and
    ``mmcv.adjust_hue`` casts one to uint8; numpy 2 refuses both. (A positive
    one overflows in the former on any numpy, silently.) Can go when mmaction2
    and mmcv support numpy 2.
    """
    import cv2
    import mmcv
    import numpy as np
    from mmaction.datasets.transforms import ColorJitter

    def jitter_hue(img: np.ndarray, factor: float) -> np.ndarray:
        img = np.clip(img, 0, 255).astype(np.uint8)
        hsv = cv2.cvtColor(img, cv2.COLOR_RGB2HSV)
        hue = hsv[..., 0].astype(np.int16) + int(factor * 255)
        hsv[..., 0] = hue % 180
        return cv2.cvtColor(hsv, cv2.COLOR_HSV2RGB).astype(np.float32)

    class CyclicFactor(float):

        def __mul__(self, scale):
            return int(float(self) * scale) % 256

    def adjust_hue(original, img, hue_factor, backend=None):
        return original(img, CyclicFactor(hue_factor), backend)

    ColorJitter.adjust_hue = staticmethod(jitter_hue)
    for module in mmcv, mmcv.image, mmcv.image.photometric:
        _wrap(module, 'adjust_hue', adjust_hue)


def train_amp_on_cpu() -> None:
    """``AmpOptimizerWrapper is only available training on gpu``.

    Without an accelerator ``--amp`` means bfloat16 and no loss scaling. The
    checkpoint of such a run has an empty scaler, which a run on a GPU ignores.
    Can go when mmengine's ``AmpOptimWrapper`` runs on a CPU.
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

    _wrap(AmpOptimWrapper, '__init__', init)
    _wrap(AmpOptimWrapper, 'load_state_dict', load_state_dict)


def score_in_float32() -> None:
    """``Got unsupported ScalarType BFloat16`` under bfloat16 autocast.

    Heads and metrics turn the scores into numpy arrays, which know no
    bfloat16. Whatever a classification head returns is made float32. Can go
    when mmaction2 casts where it calls ``numpy()``.
    """
    import torch
    from mmaction.models.heads import BaseHead

    def widen(scores: Any) -> Any:
        if isinstance(scores, dict):
            return {key: widen(value) for key, value in scores.items()}
        is_half = torch.is_tensor(scores) and scores.dtype in (torch.bfloat16,
                                                               torch.float16)
        return scores.float() if is_half else scores

    def call(original, self, *args, **kwargs):
        return widen(original(self, *args, **kwargs))

    _wrap(BaseHead, '__call__', call)


def average_views_by_default() -> None:
    """``all the input arrays must have same number of dimensions`` in val.

    A head whose config has no ``average_clips`` keeps an axis of views that
    no metric can read. Probabilities are averaged then, as every config of
    mmaction2 asks. ``FeatureHead`` needs the axis and keeps it. Can go when
    the default of ``BaseHead`` is 'prob'.
    """
    from mmaction.models.heads import BaseHead, FeatureHead

    def average_clip(original, self, cls_scores, num_segs=1):
        if self.average_clips is None and not isinstance(self, FeatureHead):
            return cls_scores.unflatten(
                0, (-1, num_segs)).softmax(dim=2).mean(dim=1)
        return original(self, cls_scores, num_segs)

    _wrap(BaseHead, 'average_clip', average_clip)


def launch_on_cpu() -> None:
    """``module 'torch._C' has no attribute '_cuda_setDevice'`` at launch.

    All launchers of mmengine select a CUDA device, ask for nccl, and hand DDP
    the number of that device. Without an accelerator: gloo, and no device.
    Can go when mmengine's ``init_dist`` and ``Runner`` know the CPU.
    """
    import torch
    from mmengine.dist import utils
    from mmengine.model import MMDistributedDataParallel

    def set_device(device: Any) -> None:
        if torch.cuda.is_available():
            torch.cuda.set_device(device)

    def leave() -> None:
        if torch.distributed.is_initialized():
            torch.distributed.destroy_process_group()
            gc.collect()

    def init_dist(original, backend, *args, **kwargs):
        if backend == 'nccl' and _on_cpu():
            backend = 'gloo'
        original(backend, *args, **kwargs)
        atexit.register(leave)

    def init_ddp(original, self, module, *args, **kwargs):
        if all(p.device.type == 'cpu' for p in module.parameters()):
            kwargs['device_ids'] = None
        return original(self, module, *args, **kwargs)

    utils.torch = _Overlay(
        torch, cuda=_Overlay(torch.cuda, set_device=set_device))
    for launcher in 'pytorch', 'mpi', 'slurm':
        _wrap(utils, f'_init_dist_{launcher}', init_dist)
    _wrap(MMDistributedDataParallel, '__init__', init_ddp)


def chunk_views_of_any_batch() -> None:
    """``max_testing_views is only compatible with batch_size == 1``; #1440.

    The option makes validation fail, whose batches are larger. The views of
    all videos become those of one, which changes nothing else: a recognizer
    flattens both axes at once. Can go when ``Recognizer3D`` does not ask.
    """
    from mmaction.models.recognizers import Recognizer3D

    def extract_feat(original, self, inputs, stage='neck', data_samples=None,
                     test_mode=False):
        if test_mode and (self.test_cfg or {}).get('max_testing_views'):
            inputs = inputs.flatten(0, 1)[None]
        return original(self, inputs, stage, data_samples, test_mode)

    _wrap(Recognizer3D, 'extract_feat', extract_feat)


def count_fused_attention() -> None:
    """``get_flops`` counts nothing for ``scaled_dot_product_attention``.

    The two products are counted, as for attention written with ``@``. Can go
    when mmengine's FLOP counter knows the operator.
    """
    from mmengine.analysis import complexity_analysis

    def count(inputs: list, outputs: list) -> int:
        query, key, value = (x.type().sizes() for x in inputs[:3])
        rows = math.prod(outputs[0].type().sizes()[:-1])
        return rows * key[-2] * (query[-1] + value[-1])

    complexity_analysis._DEFAULT_SUPPORTED_FLOP_OPS.setdefault(
        'aten::scaled_dot_product_attention', count)


def name_replacements_of_augmenters() -> None:
    """``Install pytorchvideo``, although it is; facebookresearch/
    pytorchvideo#251.

    The packages behind three wrappers of mmaction2 are abandoned or need a
    torchvision that matches; the errors hide the cause. They now tell it, and
    which transforms of ours take their place. Can go with the wrappers.
    """
    from mmaction.datasets import transforms

    def init(needed, original, self, *args, **kwargs):
        try:
            importlib.import_module(needed)
        except Exception as error:
            raise ImportError(
                f'{type(self).__name__} cannot import {needed} '
                f'({type(error).__name__}: {error}). Use `RandAugment` or '
                '`AutoAugment` of mmvidattn in its place, which need no other '
                "package, e.g. dict(type='RandAugment')") from error
        original(self, *args, **kwargs)

    for name, needed in (('PytorchVideoWrapper', 'pytorchvideo.transforms'),
                         ('TorchVisionWrapper', 'torchvision.transforms'),
                         ('ImgAug', 'imgaug.augmenters')):
        _wrap(getattr(transforms, name), '__init__',
              functools.partial(init, needed))


def decay_rate_by_layer_depth() -> None:
    """``NotImplementedError`` without a word, from the layer-wise rates.

    ``LearningRateDecayOptimizerConstructor`` knows two backbones by name. Any
    other one whose ``get_layer_depth(name) -> (depth, num_depths)`` tells, as
    in mmpretrain, is served too. Can go when mmaction2 asks the backbone.
    """
    from mmaction.engine.optimizers import (
        LearningRateDecayOptimizerConstructor as Constructor,
    )

    def add_params(original, self, params, module, **kwargs):
        backbone = getattr(module, 'backbone', None)
        if not hasattr(backbone, 'get_layer_depth'):
            return original(self, params, module, **kwargs)
        groups = {}
        for name, param in module.named_parameters():
            if not param.requires_grad:
                continue
            depth, num_depths = backbone.get_layer_depth(name, 'backbone.')
            if not name.startswith('backbone.'):
                depth = num_depths - 1
            with_decay = param.ndim > 1 and not name.endswith('.bias')
            scale = self.paramwise_cfg['decay_rate']**(num_depths - 1 - depth)
            group = groups.setdefault(
                (depth, with_decay),
                dict(params=[], param_names=[], lr_scale=scale,
                     lr=scale * self.base_lr,
                     weight_decay=self.base_wd if with_decay else 0.))
            group['params'].append(param)
            group['param_names'].append(name)
        params.extend(groups.values())

    _wrap(Constructor, 'add_params', add_params)


def reseed_workers_each_epoch() -> None:
    """With a seed, each epoch repeats the same augmentations.

    mmengine seeds a data loader's worker from constants, so workers that are
    started anew for each epoch start alike. torch's own seed of the worker,
    new in each epoch and reproducible, is added. Can go when mmengine does so.
    """
    import torch
    from mmengine.runner import runner

    def init(original, worker_id, num_workers, rank, seed, *args, **kwargs):
        epoch_seed = torch.initial_seed() - worker_id
        seed = (seed + epoch_seed) % 2**31
        original(worker_id, num_workers, rank, seed, *args, **kwargs)

    _wrap(runner, 'default_worker_init_fn', init)


CURES = (quiet_warnings, require_mmcv, hide_broken_torchvision,
         add_missing_drn, leave_out_multimodal, load_weights_only,
         load_data_as_data, leave_config_of_checkpoint,
         run_on_numpy_2, shift_hue_in_range, train_amp_on_cpu,
         score_in_float32, average_views_by_default, launch_on_cpu,
         chunk_views_of_any_batch, count_fused_attention,
         name_replacements_of_augmenters, decay_rate_by_layer_depth,
         reseed_workers_each_epoch)


def heal() -> None:
    """Apply every cure; a second call changes nothing."""
    for cure in CURES:
        cure()
