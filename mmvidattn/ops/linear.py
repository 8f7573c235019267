# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Linear layers through the faster library on a CPU."""
import platform
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor


def _is_intel() -> bool:
    cpuinfo = Path('/proc/cpuinfo')
    vendor = cpuinfo.read_text() if cpuinfo.exists() else platform.processor()
    return 'GenuineIntel' in vendor


_ONEDNN = torch.backends.mkldnn.is_available() and not _is_intel()


def linear(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """``x W^T + b``, as ``torch.nn.functional.linear``.

    In float32 on a CPU that function calls MKL and adds the bias in a pass of
    its own. oneDNN, which torch reaches through convolutions, does both at
    once. On AMD's processors it is some 10 % faster on tokens by the
    thousand, so such a product runs there as a 1x1 convolution; on Intel's,
    MKL is faster, in the backward pass above all.

    Args:
        x: [*, C].
        weight: [K, C].
        bias: [K] or None.

    Returns:
        [*, K].
    """
    if not _through_onednn(x, weight):
        return F.linear(x, weight, bias)
    image = x.reshape(1, 1, -1, x.shape[-1]).permute(0, 3, 1, 2)
    y = F.conv2d(image, weight[:, :, None, None], bias)
    return y.permute(0, 2, 3, 1).reshape(*x.shape[:-1], len(weight))


def _through_onednn(x: Tensor, weight: Tensor) -> bool:
    return (_ONEDNN and not torch.compiler.is_compiling()
            and x.device.type == 'cpu' and x.dtype == torch.float32
            # With one thread torch's own, slow convolution would run.
            and torch.get_num_threads() > 1 and x.numel() >= 64 * x.shape[-1]
            and min(weight.shape) >= 32
            and not torch.is_autocast_enabled('cpu')
            and not torch.onnx.is_in_onnx_export())
