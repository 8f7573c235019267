# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
from torch import Tensor, nn


class LayerInput:
    """Recorder of the input of a layer.

    Args:
        model: Network.
        layer: Name of the layer in it.

    Raises:
        ValueError: If the layer does not exist.
    """

    def __init__(self, model: nn.Module, layer: str) -> None:
        module = dict(model.named_modules()).get(layer)
        if module is None:
            raise ValueError(
                f'layer must be a module of the network, got {layer!r}; '
                'linear layers are '
                + ', '.join(n for n, m in model.named_modules()
                            if isinstance(m, nn.Linear)))
        self.layer = layer
        self._inputs: list[Tensor] = []
        module.register_forward_pre_hook(
            lambda module, args: self._inputs.append(args[0].detach()))

    def clear(self) -> None:
        """Discard the recorded inputs."""
        self._inputs.clear()

    def first(self) -> Tensor:
        """Return the first input since :meth:`clear`.

        Raises:
            RuntimeError: If the layer did not run.
        """
        if not self._inputs:
            raise RuntimeError(f'layer {self.layer} did not run')
        return self._inputs[0]
