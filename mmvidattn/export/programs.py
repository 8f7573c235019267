# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Models as functions with named input and output tensors."""
import json
from collections.abc import Callable, Sequence
from typing import Literal

import torch
from mmaction.models import Recognizer3D
from torch import Tensor, nn

from ..apis.labels import find_labels
from ..online import make_stream_step
from ..recognizers import OnlineActionDetector
from ..utils.arguments import check_arguments
from ..version import __version__
from .metadata import describe_frames

Function = Callable[..., Sequence[Tensor]]
OUTPUTS = 'logits', 'probabilities'
DTYPES = dict(uint8=torch.uint8, float32=torch.float32)
# Dynamic axes of a clip [B, C, T, H, W].
AXES = dict(frames=(2, ), size=(3, 4))
AXIS_NAMES = 'batch', 'channels', 'frames', 'height', 'width'


class Program(nn.Module):
    """Model as a function from tensors to tensors."""
    model: nn.Module
    # One of OUTPUTS.
    output: str
    # Names of the arguments and of the results of ``forward``.
    input_names: tuple[str, ...]
    output_names: tuple[str, ...]
    # Names of each input's dynamic axes, by position.
    axes: tuple[dict[int, str], ...]

    def examples(self, batch_size: int, larger: bool = False
                 ) -> tuple[Tensor, ...]:
        """Return random inputs, ``larger`` also in the other dynamic axes."""
        raise NotImplementedError

    def try_out(self, function: Function, batch_size: int,
                larger: bool = False) -> dict[str, Tensor]:
        """Call a function on the same inputs; return its outputs by name."""
        inputs = self.examples(batch_size, larger)
        return dict(zip(self.output_names, function(*inputs)))

    def metadata(self) -> dict[str, str]:
        """Return the metadata of the file: texts, most of them JSON."""
        inputs = [
            dict(name=name, dtype=str(x.dtype).removeprefix('torch.'),
                 shape=[axes.get(i, n) for i, n in enumerate(x.shape)])
            for name, axes, x in zip(self.input_names, self.axes,
                                     self.examples(2))]
        return dict(
            mmvidattn_version=__version__, torch_version=torch.__version__,
            inputs=json.dumps(inputs), output=self.output,
            classes=json.dumps(find_labels(self.model)))

    @property
    def has_dynamic_sizes(self) -> bool:
        """True if other axes than the batch are dynamic."""
        return any(len(axes) > 1 for axes in self.axes)


@check_arguments
class ClipProgram(Program):
    """Recognizer from clips [B, C, T, H, W] to ``logits`` [B, K].

    Each view of a video is a separate clip; the caller averages over views.

    Args:
        model: ``Recognizer3D`` from :func:`mmvidattn.get_model`.
        shape: (T, H, W) of a clip.
        output: 'logits', or 'probabilities': the softmax of the logits
            (sigmoid for a head with ``multi_class``; verbs and nouns have
            separate softmaxes). Defaults to 'logits'.
        normalize: Type of clips with values 0 to 255, 'uint8' or 'float32',
            that the program normalizes like the config's
            ``data_preprocessor``. Defaults to None, for clips that are
            already normalized.
        dynamic: Dynamic sizes besides the batch: 'frames', 'size' or both.
            Defaults to ().
    """
    input_names = 'clips',

    def __init__(self,
                 model: nn.Module,
                 shape: Sequence[int],
                 output: Literal[OUTPUTS] = 'logits',
                 normalize: Literal[tuple(DTYPES)] | None = None,
                 dynamic: Sequence[Literal[tuple(AXES)]] = ()) -> None:
        super().__init__()
        if not isinstance(model, Recognizer3D):
            raise ValueError('model must be a Recognizer3D or an '
                             'OnlineActionDetector, got '
                             f'{type(model).__name__}')
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
            # [C, 1, 1] for images, [C, 1, 1, 1] for clips.
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
        inside = self.normalize is not None
        return super().metadata() | describe_frames(
            self.model, inside,
            # Pipelines decode to RGB, and `to_rgb` reverses the channels.
            color_order='bgr' if self.to_rgb and not inside else 'rgb',
            layout='[batch, channels, frames, height, width]',
            # Average over views: of logits before a softmax, or of
            # probabilities after it.
            average_views=dict(score='logits', prob='probabilities').get(
                getattr(self.model.cls_head, 'average_clips', None)))


@check_arguments
class StreamProgram(Program):
    """Step of a batch of streams, with explicit state.

    The inputs are, first, the features of a frame, ``{modality}`` [B,
    channels], or the frame itself, ``frames`` [B, 3, H, W] and ``elapsed`` [B]
    (:class:`~mmvidattn.online.online_video_encoder.VideoStep`), then the
    tensors of the state, ``state_{name}`` [B, ...]. The outputs are the scores
    ``action`` [B, 1 + A, K], with ``verb`` and ``noun`` if the head has them;
    ``bad_frame`` [B]; and the new state, ``new_state_{name}``. The metadata
    ``state`` contains the start value of each tensor of the state.

    Args:
        step: Module from :func:`mmvidattn.online.make_stream_step`.
        output: 'logits', or 'probabilities' as the head computes them.
            Defaults to 'logits'.
        frame_rate: Frames per second for the metadata of a network that
            reads frames. Defaults to None.
    """
    # Number of steps in a trial.
    num_steps = 12

    def __init__(self, step: nn.Module, output: Literal[OUTPUTS] = 'logits',
                 frame_rate: float | None = None) -> None:
        super().__init__()
        self.step = step
        # The step has the model's parameters.
        self.__dict__['model'] = step.model
        self.output = output
        self.frame_rate = frame_rate
        self.frame_names = tuple(step.frame_shapes)
        self.state_dtypes = {
            name: x.dtype for name, x in step.initial_state().items()}
        self.state_names = tuple(self.state_dtypes)
        scores = [name for name in ('action', 'verb', 'noun')
                  if name == 'action'
                  or hasattr(self.model.cls_head, f'fc_{name}')]
        self.input_names = (
            *self.frame_names, *(f'state_{name}' for name in self.state_names))
        self.output_names = (
            *scores, 'bad_frame',
            *(f'new_state_{name}' for name in self.state_names))
        self.axes = ({0: 'batch'}, ) * len(self.input_names)

    def forward(self, *tensors: Tensor) -> tuple[Tensor, ...]:
        features = dict(zip(self.frame_names, tensors))
        # The step changes the state in place.
        state = {
            name: x.to(self.state_dtypes[name], copy=True) for name, x in zip(
                self.state_names, tensors[len(self.frame_names):])}
        scores, state = self.step(features, state)
        bad = scores.pop('bad_frame')
        if self.output == 'probabilities':
            scores = self.model.cls_head.probabilities(scores)
        return (*scores.values(), bad, *map(_as_numpy_can, state.values()))

    def examples(self, batch_size: int, larger: bool = False
                 ) -> tuple[Tensor, ...]:
        return (*self.frames(batch_size, 1)[0], *self.states(batch_size))

    def states(self, batch_size: int) -> tuple[Tensor, ...]:
        """Return the state at the start of streams."""
        return tuple(map(_as_numpy_can, self.step.initial_state(
            batch_size).values()))

    def frames(self, batch_size: int, number: int
               ) -> list[tuple[Tensor, ...]]:
        """Return ``number`` random frames of each stream."""
        generator = torch.Generator().manual_seed(batch_size)
        return [tuple(self.step.random_frames(batch_size, generator).values())
                for _ in range(number)]

    def try_out(self, function: Function, batch_size: int,
                larger: bool = False) -> dict[str, Tensor]:
        """Run steps; return all scores and the last state, by name."""
        state = self.states(batch_size)
        scores = []
        for features in self.frames(batch_size, self.num_steps):
            outputs = function(*features, *state)
            state = tuple(outputs[-len(state):])
            scores.append(outputs[:-len(state)])
        stacked = map(torch.stack, zip(*scores))
        # Do not compare the carried rounding errors, which may differ between
        # programs. The other outputs must agree.
        return {name: x for name, x in zip(
            self.output_names, (*stacked, *state))
            if not name.endswith('.carry')}

    def metadata(self) -> dict[str, str]:
        state = {
            name: dict(value=str(x.flatten()[0].item()),
                       dtype=str(x.dtype).removeprefix('torch.'),
                       shape=list(x.shape[1:]))
            for name, x in zip(self.state_names, self.states(1))}
        entries, options = super().metadata(), self.step.options
        if 'frames' in self.frame_names:
            options = dict(frame_rate=self.frame_rate)
            entries |= describe_frames(
                self.model, True, color_order='rgb',
                layout='[batch, channels, height, width]')
        return dict(entries, state=json.dumps(state),
                    stream=json.dumps(options))


def program_of(model: nn.Module,
               shape: Sequence[int] | None = None,
               output: str = 'logits',
               normalize: str | None = None,
               dynamic: Sequence[str] = (),
               kernel: str | None = None) -> Program:
    """Build the program of a model: a clip program or a stream program.

    A stream program samples at the rates of the config's test dataset.

    Args:
        model: Model from :func:`mmvidattn.get_model`.
        shape, normalize, dynamic: See :class:`ClipProgram`; only for clip
            models.
        output: 'logits' or 'probabilities'. Defaults to 'logits'.
        kernel: See :class:`mmvidattn.online.StreamSession`; only for stream
            models.

    Raises:
        ValueError: If an option is not supported by the model.
    """
    is_stream = isinstance(model, OnlineActionDetector)
    unused = dict(normalize=normalize, dynamic=dynamic) if is_stream else (
        dict(kernel=kernel))
    for name, value in unused.items():
        if value:
            raise ValueError(f'{name}={value!r} is not for a '
                             f'{type(model).__name__}')
    if not is_stream:
        return ClipProgram(model, shape, output, normalize, dynamic)
    dataset = (model.cfg.get('test_dataloader') or {}).get('dataset') or {}
    return StreamProgram(make_stream_step(
        model, dataset.get('long_rate', 4), dataset.get('work_rate', 1),
        kernel, stretch_long_memory=dataset.get('stretch_long_memory')),
        output, dataset.get('frame_rate'))


def probabilities(head: nn.Module, logits: Tensor) -> Tensor:
    """Convert a head's logits [B, K] to probabilities."""
    if getattr(head, 'multi_class', False):
        return logits.sigmoid()
    splits = getattr(head, 'splits', None)
    if splits is None:
        return logits.softmax(-1)
    return torch.cat([x.softmax(-1) for x in logits.split(
        tuple(splits.values()), -1)], -1)


def _as_numpy_can(x: Tensor) -> Tensor:
    """Convert bfloat16, which numpy and thus onnxruntime lack, to float32."""
    return x.float() if x.dtype == torch.bfloat16 else x
