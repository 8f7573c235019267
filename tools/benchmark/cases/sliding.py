# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Clip model on a sliding window, compared with recomputing each window.

Both compute the class scores of a window after the next tubelet, or the next
frame for networks without tubelets. "sliding" encodes only the new frames,
with the part of the network that encodes frames independently
(``mmvidattn.online.WindowEncoder``). "anew" runs the model on the entire clip.

The models have the sizes of the papers, except for ``--layers`` (Model 2 of
ViViT has a third as many temporal layers), with random weights and random
frames. A model is only measured if both agree on several windows, to 1e-5.

With ``--causal``, the case measures the causal linear video transformer
instead: a step for one frame, at frame 16 and at frame ``--history``, the step
of ``--streams`` streams in one batch, and the clip of 16 frames of the
bidirectional network. A step is only measured if a stream agrees with the
causal network on the entire clip, to 1e-5.
"""
import argparse
from collections.abc import Callable

import torch
from mmaction.registry import MODELS as REGISTRY
from mmengine.registry import init_default_scope
from torch import Tensor, nn

from mmvidattn.backbones import (
    LinearVideoTransformer,
    Visformer,
    ViViT,
    XViT,
)
from mmvidattn.heads import (
    LAPSHead,
    LinearVideoTransformerHead,
    ViViTHead,
    XViTHead,
)
from mmvidattn.online import StreamSession, WindowEncoder
from tools.benchmark.measure import (
    agreement_line,
    measure,
    relative,
    require_agreement,
    settings_of,
    title,
)

NUM_CLASSES = 400
TOLERANCE = 1e-5
CHECKED_WINDOWS = 3


def vivit(args: argparse.Namespace, **options) -> nn.Module:
    return _model(
        ViViT(num_frames=args.frames or 32, img_size=args.size,
              num_layers=args.layers, **options), ViViTHead(NUM_CLASSES))


def fact_encoder(args: argparse.Namespace) -> nn.Module:
    return vivit(args, model='fact_encoder',
                 num_temporal_layers=max(1, args.layers // 3))


def xvit(args: argparse.Namespace) -> nn.Module:
    return _model(
        XViT(num_frames=args.frames or 16, img_size=args.size,
             num_layers=args.layers), XViTHead(NUM_CLASSES))


def linear_ff(args: argparse.Namespace) -> nn.Module:
    return _model(
        LinearVideoTransformer(
            num_frames=args.frames or 16, img_size=args.size,
            num_layers=args.layers), LinearVideoTransformerHead(NUM_CLASSES))


def visformer(args: argparse.Namespace) -> nn.Module:
    return _model(Visformer(num_frames=args.frames or 8, img_size=args.size),
                  LAPSHead(NUM_CLASSES, 768))


MODELS = {
    'vivit, fact_encoder': fact_encoder,
    'vivit, joint': vivit,
    'xvit': xvit,
    'linear_ff': linear_ff,
    'laps_visformer': visformer,
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        '--models', nargs='+', choices=MODELS, default=list(MODELS))
    parser.add_argument(
        '--layers', type=int, default=12, help='layers of all networks except '
        'Visformer (default: 12, as in the papers)')
    parser.add_argument('--size', type=int, default=224)
    parser.add_argument(
        '--frames', type=int,
        help='frames of the window (default: as in the papers)')
    parser.add_argument(
        '--causal', action='store_true',
        help='measure steps of the causal linear video transformer')
    parser.add_argument(
        '--history', type=int, default=10_000,
        help='frames before the late step of --causal (default: 10000)')
    parser.add_argument(
        '--streams', type=int, default=64,
        help='streams in the batch of --causal (default: 64)')


def _model(backbone: nn.Module, head: nn.Module) -> nn.Module:
    model = nn.Sequential(backbone, head)
    for part in model:
        part.init_weights()
    for p in model.parameters():
        # Parameters that start at zero would hide their effect.
        if not p.any():
            nn.init.normal_(p, std=0.02)
    return model.eval()


class Stream:
    """Sliding window on random frames, which moves by one group of frames.

    Args:
        model: Backbone and head.
        size: Height and width of the frames.
        device: Device of the frames.

    Attributes:
        stride: Frames from a window to the next.
    """

    def __init__(self, model: nn.Module, size: int,
                 device: torch.device) -> None:
        self.backbone, self.head = model
        self.num_frames = self.backbone.num_frames
        self.stride = self.backbone.frame_groups(self.num_frames)[1][0]
        self.encoder = WindowEncoder(self.backbone)
        # More frames than a window, so that all frames of a window differ.
        self._frames = torch.randn(
            3, self.num_frames + self.stride, size, size, device=device)
        self._start = -self.stride

    def load(self, numbers: list[int]) -> Tensor:
        """Return frames by their numbers, [C, n, H, W]."""
        return self._frames[:, [i % self._frames.shape[1] for i in numbers]]

    @torch.no_grad()
    def slide(self) -> Tensor:
        """Return the scores of the next window."""
        self._start += self.stride
        self.encoder.forget(self._start)
        return self.head(self.encoder.features(
            self.encoder.encode(self._window(), self.load)))

    @torch.no_grad()
    def anew(self) -> Tensor:
        """Return the scores of the same window without cached encodings."""
        return self.head(self.backbone(self.load(self._window())[None]))

    def _window(self) -> list[int]:
        return [*range(self._start, self._start + self.num_frames)]


def causal_detector(args: argparse.Namespace) -> nn.Module:
    """Build an online detector with random weights."""
    init_default_scope('mmaction')
    detector = REGISTRY.build(dict(
        type='OnlineActionDetector',
        backbone=dict(
            type='OnlineVideoEncoder',
            encoder=dict(
                type='LinearVideoTransformer', img_size=args.size,
                num_layers=args.layers, pattern='causal',
                decay=dict(half_life=(8, 512)))),
        cls_head=dict(
            type='OnlineActionHead', num_classes=NUM_CLASSES,
            in_channels=512)))
    detector.backbone.encoder.init_weights()
    return detector.eval()


def run_causal(args: argparse.Namespace) -> dict:
    """Measure steps of causal streams."""
    device = torch.device(args.device)
    torch.manual_seed(0)
    clip_model = linear_ff(args).to(device)
    num_frames = clip_model[0].num_frames
    detector = causal_detector(args).to(device)
    frames = torch.randn(num_frames, 3, args.size, args.size, device=device)
    clip = frames.transpose(0, 1)[None]
    early = StreamSession(detector)
    late, *further = (early.spawn() for _ in range(1 + args.streams))
    scores = early.push(dict(frames=frames))['action'][:, 0]
    with torch.no_grad():
        whole = detector.cls_head(
            detector.backbone(dict(frames=clip)))['action'][0]
    agreement = dict(linear_ff_causal=relative(scores, whole))
    require_agreement(agreement, TOLERANCE)
    for i in range(args.history):
        late.push(dict(frames=frames[i % num_frames]))
    one = dict(frames=frames[0])

    @torch.no_grad()
    def bidirectional() -> Tensor:
        return clip_model(clip)

    steps = {
        f'clip of {num_frames} frames': bidirectional,
        f'step at frame {num_frames}': lambda: early.push(one),
        f'step at frame {args.history}': lambda: late.push(one),
    }
    seconds = measure(steps, args.repeats, device)
    batch = f'step of {args.streams} streams'
    seconds |= measure({batch: lambda: StreamSession.push_many(
        further, [one] * args.streams)}, args.repeats, device)
    state = early.state_dict()['state']
    shifted = sum(x.nbytes for name, x in state.items() if 'shifts' in name)
    return settings_of(
        args, size=args.size, layers=args.layers, agreement=agreement,
        seconds=seconds, state_bytes=early.num_bytes, shift_bytes=shifted,
        throughput=args.streams * list(seconds.values())[1] / seconds[batch])


def report_causal(result: dict) -> str:
    clip = next(iter(result['seconds'].values()))
    return '\n'.join([
        title(result, f'{result["size"]} x {result["size"]}',
              f'{result["layers"]} layers'),
        agreement_line(result['agreement']),
        *(f'{name:24}{s:9.4f} s, {s / clip:7.4f} of the clip'
          for name, s in result['seconds'].items()),
        f'frames per second of the batch: {result["throughput"]:.2f} times '
        'those of one stream',
        f'state: {result["state_bytes"] / 1e6:.2f} MB, of which '
        f'{result["shift_bytes"] / 1e6:.2f} MB are channels of the previous '
        'frame for the shift'])


def run(args: argparse.Namespace) -> dict:
    if args.causal:
        return run_causal(args)
    device = torch.device(args.device)
    result = settings_of(
        args, size=args.size, layers=args.layers, frames={}, stride={},
        agreement={}, seconds={}, speedup={})
    for name in args.models:
        torch.manual_seed(0)
        stream = Stream(MODELS[name](args).to(device), args.size, device)
        result['agreement'][name] = max(
            relative(stream.slide(), stream.anew())
            for _ in range(CHECKED_WINDOWS))
        require_agreement({name: result['agreement'][name]}, TOLERANCE)
        ways: dict[str, Callable] = dict(
            sliding=stream.slide, anew=stream.anew)
        seconds = measure(ways, args.repeats, device)
        result['frames'][name] = stream.num_frames
        result['stride'][name] = stream.stride
        result['seconds'][name] = seconds
        result['speedup'][name] = seconds['anew'] / seconds['sliding']
    return result


def report(result: dict) -> str:
    if 'state_bytes' in result:
        return report_causal(result)
    lines = [
        title(result, f'{result["size"]} x {result["size"]}',
              f'{result["layers"]} layers'),
        agreement_line(result['agreement']),
        f'{"":22}{"frames":>8}{"stride":>8}{"anew s":>10}{"sliding s":>11}'
        f'{"speed-up":>10}']
    for name, seconds in result['seconds'].items():
        lines.append(
            f'{name:22}{result["frames"][name]:8}{result["stride"][name]:8}'
            f'{seconds["anew"]:10.3f}{seconds["sliding"]:11.3f}'
            f'{result["speedup"][name]:9.2f}x')
    return '\n'.join(lines)
