# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Models as functions of tensors that have names."""
import json
from collections.abc import Callable, Sequence
from typing import Any

import torch
from mmaction.models import Recognizer3D
from torch import Tensor, nn

from ..apis.predict import find_labels
from ..online import make_stream_step
from ..recognizers import OnlineActionDetector
from ..version import __version__

Function = Callable[..., Sequence[Tensor]]
OUTPUTS = 'logits', 'probabilities'
DTYPES = dict(uint8=torch.uint8, float32=torch.float32)
# Of a clip [B, C, T, H, W].
AXES = dict(frames=(2, ), size=(3, 4))
AXIS_NAMES = 'batch', 'channels', 'frames', 'height', 'width'


class Program(nn.Module):
    """A model as a function of tensors to tensors.

    Attributes:
        input_names: Of the arguments of ``forward``.
        output_names: Of what it returns.
        axes: Of each input, the names of the axes of any size.
    """
    input_names: tuple[str, ...]
    output_names: tuple[str, ...]
    axes: tuple[dict[int, str], ...]

    def examples(self, batch_size: int, larger: bool = False
                 ) -> tuple[Tensor, ...]:
        """Random inputs.

        Args:
            batch_size: B.
            larger: Increase the other axes of any size.
        """
        raise NotImplementedError

    def try_out(self, function: Function, batch_size: int,
                larger: bool = False) -> dict[str, Tensor]:
        """Call a function in the place of ``forward``, on the same inputs
        each time.

        Returns:
            Its outputs by name.
        """
        inputs = self.examples(batch_size, larger)
        return dict(zip(self.output_names, function(*inputs)))

    def metadata(self) -> dict[str, str]:
        """What a user of the file is to know: texts, most of them JSON."""
        return dict(
            mmvidattn_version=__version__, torch_version=torch.__version__,
            inputs=json.dumps(self._describe()))

    def _describe(self) -> list[dict[str, Any]]:
        return [
            dict(name=name, dtype=str(x.dtype).removeprefix('torch.'),
                 shape=[axes.get(i, n) for i, n in enumerate(x.shape)])
            for name, axes, x in zip(self.input_names, self.axes,
                                     self.examples(2))
        ]


class ClipProgram(Program):
    """A recognizer: clips [B, C, T, H, W] to ``logits`` [B, K].

    Views of a video are clips of their own; averaging is left to the caller.

    Args:
        model: Of :func:`mmvidattn.get_model`, a ``Recognizer3D``.
        shape: (T, H, W) of a clip.
        output: 'logits', or 'probabilities': their softmax (the sigmoid of a
            head with ``multi_class``; verbs and nouns each by themselves).
        normalize: None for clips that are normalized, or the type of clips
            that the program normalizes itself, as the config's
            ``data_preprocessor`` does: 'uint8' or 'float32', 0 to 255.
        dynamic: What else but the batch may be of any size: 'frames',
            'size', or both.

    Raises:
        ValueError: If an argument is not one of these, or the network takes
            clips of one length or size only.
    """
    input_names = 'clips',

    def __init__(self,
                 model: nn.Module,
                 shape: Sequence[int],
                 output: str = 'logits',
                 normalize: str | None = None,
                 dynamic: Sequence[str] = ()) -> None:
        super().__init__()
        if not isinstance(model, Recognizer3D):
            raise ValueError('what is exported must be a Recognizer3D or an '
                             f'OnlineActionDetector, got '
                             f'{type(model).__name__}')
        if output not in OUTPUTS:
            raise ValueError(f'output must be one of {", ".join(OUTPUTS)}, '
                             f'got {output!r}')
        if normalize is not None and normalize not in DTYPES:
            raise ValueError(f'normalize must be one of {", ".join(DTYPES)} '
                             f'or None, got {normalize!r}')
        check_dynamic(model.backbone, dynamic)
        self.model = model
        self.shape = tuple(shape)
        self.output = output
        self.normalize = normalize
        self.output_names = output,
        places = 0, *(i for name in dynamic for i in AXES[name])
        self.axes = {i: AXIS_NAMES[i] for i in sorted(places)},
        preprocessor = model.data_preprocessor
        self.to_rgb = getattr(preprocessor, 'to_rgb', False)
        for name in 'mean', 'std':
            # For images, [C, 1, 1], or clips, [C, 1, 1, 1].
            values = getattr(preprocessor, name, None)
            self.register_buffer(
                name, None if values is None else values.view(-1, 1, 1, 1))

    def forward(self, clips: Tensor) -> tuple[Tensor]:
        if self.normalize is not None:
            clips = clips.float()
            if self.to_rgb:
                clips = clips.flip(1)
            if self.mean is not None:
                clips = (clips - self.mean) / self.std
        y = self.model(clips.unsqueeze(1), mode='tensor', stage='head')
        if self.output == 'probabilities':
            y = probabilities(self.model.cls_head, y)
        return y,

    def examples(self, batch_size: int, larger: bool = False
                 ) -> tuple[Tensor]:
        frames, height, width = self.shape
        if larger:
            frames *= 2 if 2 in self.axes[0] else 1
            if 3 in self.axes[0]:
                height, width = height + 32, width + 64
        generator = torch.Generator().manual_seed(batch_size)
        shape = batch_size, 3, frames, height, width
        if self.normalize is None:
            clips = torch.randn(shape, generator=generator)
        else:
            clips = torch.randint(256, shape, generator=generator).to(
                DTYPES[self.normalize])
        return clips.to(next(self.model.parameters()).device),

    def metadata(self) -> dict[str, str]:
        return dict(
            super().metadata(), output=self.output,
            normalization=json.dumps(dict(
                inside=self.normalize is not None, to_rgb=self.to_rgb,
                mean=_listed(self.mean), std=_listed(self.std))),
            classes=json.dumps(find_labels(self.model)))


class StreamProgram(Program):
    """A step of streams, with their state as inputs and outputs.

    Inputs are the features of a frame, ``{modality}`` [B, channels], and
    ``state_{name}`` [B, ...] of each tensor of the state; outputs are
    ``action`` [B, 1 + A, K], ``verb`` and ``noun`` where the head has them,
    ``bad_frame`` [B], and ``new_state_{name}``. See
    :func:`mmvidattn.online.make_stream_step`. A stream begins with the
    state that the metadata ``state`` tell: each tensor has one value.

    Args:
        step: Of streams.
        output: 'logits' or 'probabilities', those of the head.

    Raises:
        ValueError: If the output is not one of these.
    """
    # Of a trial.
    num_steps = 12

    def __init__(self, step: nn.Module, output: str = 'logits') -> None:
        super().__init__()
        if output not in OUTPUTS:
            raise ValueError(f'output must be one of {", ".join(OUTPUTS)}, '
                             f'got {output!r}')
        self.step = step
        self.output = output
        self.channels = dict(step.model.backbone.in_channels)
        self.state_names = tuple(step.initial_state())
        scores = [name for name in ('action', 'verb', 'noun')
                  if name == 'action'
                  or hasattr(step.model.cls_head, f'fc_{name}')]
        self.input_names = (
            *self.channels, *(f'state_{name}' for name in self.state_names))
        self.output_names = (
            *scores, 'bad_frame',
            *(f'new_state_{name}' for name in self.state_names))
        self.axes = ({0: 'batch'}, ) * len(self.input_names)

    def forward(self, *tensors: Tensor) -> tuple[Tensor, ...]:
        features = dict(zip(self.channels, tensors))
        # The step writes into the state that it is given.
        state = {name: x.clone() for name, x in zip(
            self.state_names, tensors[len(self.channels):])}
        scores, state = self.step(features, state)
        bad = scores.pop('bad_frame')
        if self.output == 'probabilities':
            scores = self.step.model.cls_head.probabilities(scores)
        return (*scores.values(), bad, *state.values())

    def examples(self, batch_size: int, larger: bool = False
                 ) -> tuple[Tensor, ...]:
        state = self.step.initial_state(batch_size)
        return (*self.frames(batch_size, 1)[0], *state.values())

    def frames(self, batch_size: int, number: int
               ) -> list[tuple[Tensor, ...]]:
        """Random features, of so many frames of each stream."""
        generator = torch.Generator().manual_seed(batch_size)
        return [
            tuple(torch.randn(batch_size, channels, generator=generator).to(
                self.step.example) for channels in self.channels.values())
            for _ in range(number)
        ]

    def try_out(self, function: Function, batch_size: int,
                larger: bool = False) -> dict[str, Tensor]:
        """See :class:`Program`; of some steps, each from the state that the
        one before returned: all scores and the last state."""
        state = tuple(self.step.initial_state(batch_size).values())
        scores = []
        for features in self.frames(batch_size, self.num_steps):
            outputs = function(*features, *state)
            state = tuple(outputs[-len(state):])
            scores.append(outputs[:-len(state)])
        stacked = map(torch.stack, zip(*scores))
        return dict(zip(self.output_names, (*stacked, *state)))

    def metadata(self) -> dict[str, str]:
        step = self.step
        state = {
            name: dict(value=str(x.flatten()[0].item()),
                       dtype=str(x.dtype).removeprefix('torch.'),
                       shape=list(x.shape[1:]))
            for name, x in step.initial_state().items()
        }
        options = dict(
            long_memory_sample_rate=step.long_rate,
            work_memory_sample_rate=step.work_rate, kernel=step.kernel,
            stretch_long_memory=step.stretch_long_memory)
        return dict(
            super().metadata(), output=self.output, state=json.dumps(state),
            stream=json.dumps(options),
            classes=json.dumps(find_labels(step.model)))


def program_of(model: nn.Module,
               shape: Sequence[int] | None = None,
               output: str = 'logits',
               normalize: str | None = None,
               dynamic: Sequence[str] = (),
               kernel: str | None = None) -> Program:
    """The program of a whole model.

    Args:
        model: Of :func:`mmvidattn.get_model`.
        shape: See :class:`ClipProgram`, also for the three that follow. Not
            for streams.
        output: Likewise.
        normalize: Likewise; not for streams.
        dynamic: Likewise; not for streams.
        kernel: Of :class:`mmvidattn.online.StreamSession`; of streams only.
            Their rates are the config's.

    Raises:
        ValueError: If the options do not fit the model.
    """
    if not isinstance(model, OnlineActionDetector):
        if kernel is not None:
            raise ValueError(f'kernel={kernel!r} is of streams, and the '
                             f'model is a {type(model).__name__}')
        return ClipProgram(model, shape, output, normalize, dynamic)
    for name, value in dict(normalize=normalize, dynamic=dynamic).items():
        if value:
            raise ValueError(f'{name}={value!r} is of clips, and the model '
                             'reads streams of features')
    dataset = (model.cfg.get('test_dataloader') or {}).get('dataset') or {}
    return StreamProgram(
        make_stream_step(
            model,
            dataset.get('long_rate', 4),
            dataset.get('work_rate', 1),
            kernel,
            stretch_long_memory=dataset.get('stretch_long_memory')), output)


def probabilities(head: nn.Module, logits: Tensor) -> Tensor:
    """Logits [B, K] of clips to probabilities."""
    if getattr(head, 'multi_class', False):
        return logits.sigmoid()
    splits = getattr(head, 'splits', None)
    if splits is None:
        return logits.softmax(-1)
    return torch.cat([x.softmax(-1) for x in logits.split(
        tuple(splits.values()), -1)], -1)


def check_dynamic(backbone: nn.Module, dynamic: Sequence[str]) -> None:
    """Raise a ``ValueError`` if a network cannot have these dynamic."""
    kind = type(backbone).__name__
    for name in dynamic:
        if name not in AXES:
            raise ValueError(f'dynamic must be of {", ".join(AXES)}, got '
                             f'{name!r}')
    frames = getattr(backbone, 'num_frames', None)
    if 'frames' in dynamic and frames is not None and not getattr(
            backbone, 'any_length', False):
        raise ValueError(f'{kind} takes clips of num_frames={frames} only: '
                         "dynamic cannot have 'frames'")
    for table, grid in getattr(backbone, 'position_grids', {}).items():
        if 'size' in dynamic and tuple(grid[1:]) != (1, 1):
            raise ValueError(
                f'{kind} has a table of positions, {table}, of a grid of '
                f"{tuple(grid[1:])}: dynamic cannot have 'size'")


def _listed(values: Tensor | None) -> list[float] | None:
    return None if values is None else values.flatten().tolist()
