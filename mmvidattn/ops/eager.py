# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import torch
from torch import Tensor


def is_eager_on_cpu(x: Tensor) -> bool:
    """Whether what is done with ``x`` runs now, on a CPU.

    What is made for the memory of a CPU would only burden a graph that is
    compiled, traced or exported.
    """
    return (x.device.type == 'cpu' and not torch.compiler.is_compiling()
            and not torch.jit.is_tracing()
            and not torch.onnx.is_in_onnx_export())
