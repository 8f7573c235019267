# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Workarounds for checkpoints that run code when loaded, or do not load."""
import functools
import os
import pickle
import warnings
from typing import Any

from .registry import Overlay, changes, replace, workaround, wrap


@functools.cache
def _warn_once(message: str) -> None:
    warnings.warn(message, stacklevel=4)


@workaround(after=['torch'])
def load_own_checkpoints() -> None:
    """Add the classes of mmengine's checkpoints to torch's safe classes.

    These are the message hub's HistoryBuffer, and numpy's numbers and arrays,
    from numpy 1 and 2. ``getattr`` is allowed only on HistoryBuffer, whose
    statistics are stored in this way.

    Symptom: `Unsupported global: GLOBAL mmengine.logging...HistoryBuffer` on
        resume
    Until: mmengine's checkpoints are plain types
    Upstream: open-mmlab/mmengine#1655, #1650
    """
    import numpy as np
    import torch

    # Do not import from mmengine.logging, which may be importing torch.
    from mmengine.logging.history_buffer import HistoryBuffer

    def get_statistic(obj: Any, name: str) -> Any:
        if obj is not HistoryBuffer or name.startswith('_'):
            raise pickle.UnpicklingError(
                f'refused to load getattr({obj!r}, {name!r}) from a '
                'checkpoint: only the statistics of HistoryBuffer are allowed')
        return getattr(obj, name)

    # The unpickler of every torch reads these two attributes.
    def name_as(function: Any, module: str, name: str) -> Any:
        function.__module__ = module
        function.__name__ = function.__qualname__ = name
        return function

    scalar = np.float64(0).__reduce__()[0]
    dtypes = {type(np.dtype(code)) for code in '?bhilqBHILQefdFDUSmM'}
    allowed = [HistoryBuffer, np.ndarray, np.dtype, *dtypes,
               name_as(get_statistic, 'builtins', 'getattr')]
    for module in 'numpy.core.multiarray', 'numpy._core.multiarray':
        allowed += [
            # The state that follows has the shape and the data.
            name_as(lambda *args: np.ndarray(0, 'i1'), module,
                    '_reconstruct'),
            name_as(lambda *args: scalar(*args), module, 'scalar')]
    torch.serialization.add_safe_globals(allowed)
    changes.append('torch.serialization.get_safe_globals()')


@workaround(after=['mmengine.runner'])
def load_weights_only() -> None:
    """Load checkpoints with ``weights_only=True`` by default.

    By default, ``torch.hub`` and torch below 2.6 unpickle without checks. An
    explicit ``weights_only=False`` and ``TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD=1``
    still work, with one warning.

    Symptom: A checkpoint from the web runs code when it is loaded; with torch
        below 2.6, so does one on the disk
    Until: mmengine passes `weights_only` to torch
    """
    import torch
    from mmengine.runner import checkpoint
    from mmengine.utils import digit_version

    def load(original, *args, **kwargs):
        weights_only = kwargs.get('weights_only')
        if weights_only is None:
            forced = os.getenv('TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD', '0')
            weights_only = forced.lower() not in ('1', 'y', 'yes', 'true')
        if not weights_only:
            _warn_once('Checkpoints are loaded with weights_only=False: such '
                       'a file can run any code')
        return original(*args, **{**kwargs, 'weights_only': weights_only})

    wrap(checkpoint, 'load_url', load)
    if digit_version(torch.__version__) < digit_version('2.6'):
        replace(checkpoint, 'torch', Overlay(
            torch, load=functools.partial(load, torch.load)))


@workaround(after=['mmengine.runner'])
def leave_config_of_checkpoint() -> None:
    """Leave the config in a checkpoint unread.

    ``Runner.resume`` reads only its ``gpu_ids``, which mmengine never writes.

    Symptom: `--resume` runs the config text in a checkpoint
    Until: mmengine stops parsing it
    """
    import mmengine
    from mmengine.runner import runner
    replace(runner, 'mmengine', Overlay(mmengine, Config=Overlay(
        mmengine.Config, fromstring=lambda text, file_format: {})))
