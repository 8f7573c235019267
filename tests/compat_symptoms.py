# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""The fault behind each workaround of ``mmvidattn.compat``.

A function has the name of its workaround, and raises an error if the fault is
present. Run as a program with the folder of mmvidattn, an empty folder and the
folder of the motion set, this file writes results.json: by the name of each
function, its errors with all workarounds, and with all except its own; and the
error of each check of ``new_process.py``. The stack is imported once, and each
trial runs in a fork, so that it takes milliseconds and cannot affect the next.
"""
import colorsys
import functools
import gc
import importlib
import importlib.util
import json
import logging
import multiprocessing
import os
import pickle
import sys
import tempfile
import traceback
import types
import warnings
import zipfile
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import cv2
import mmengine
import new_process
import numpy as np
import pytest
import torch
import torch.distributed as dist
from mmengine.config import Config
from mmengine.logging import HistoryBuffer, MessageHub
from mmengine.model import MMDistributedDataParallel
from mmengine.optim import AmpOptimWrapper
from mmengine.registry import init_default_scope
from mmengine.runner import CheckpointLoader, Runner

# For each workaround: its fault, a pattern of the error without it, and
# whether an import shows the fault.
SYMPTOMS: dict[str, tuple[Callable[[], None], str, bool]] = {}


def symptom(shows: str, at_import: bool = False) -> Callable:

    def register(run: Callable[[], None]) -> Callable[[], None]:
        SYMPTOMS[run.__name__] = run, shows, at_import
        return run

    return register


def fake_package(name: str, version: str, source: str) -> None:
    """Create a package that precedes all installed packages."""
    root = Path(tempfile.mkdtemp())
    (root / name).mkdir()
    (root / name / '__init__.py').write_text(source)
    info = root / f'{name}-{version}.dist-info'
    info.mkdir()
    (info / 'METADATA').write_text(
        f'Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n')
    sys.path.insert(0, str(root))
    importlib.invalidate_caches()


def apply_again(name: str) -> None:
    """Apply a workaround to a changed process, unless it is left out."""
    for one in COMPAT.WORKAROUNDS:
        one.is_applied &= one.name != name
    COMPAT.apply()


def init_gloo() -> None:
    dist.init_process_group('gloo', store=dist.HashStore(), rank=0,
                            world_size=1)


@symptom('(?s)MultiScaleDeformable.*GradScaler.*broadcast_buffers', True)
def quiet_warnings():
    code = 'import torch\ntorch.cuda.amp.GradScaler(enabled=False)'
    init_gloo()
    COMPAT.apply()
    with warnings.catch_warnings(record=True) as caught:
        # mmcv-lite lacks an operator.
        importlib.import_module('mmcv.cnn.bricks.transformer')
        exec(code, {'__name__': 'mmengine.part'})
        MMDistributedDataParallel(torch.nn.Linear(2, 2),
                                  broadcast_buffers=False)
    with pytest.warns(FutureWarning, match='GradScaler'):
        exec(code, {'__name__': 'users_own'})
    assert not caught, [str(warning.message) for warning in caught]


@symptom('ModuleNotFoundError.*mmcv', at_import=True)
def require_mmcv():
    find_spec = importlib.util.find_spec
    importlib.util.find_spec = lambda name, *args: (
        None if name == 'mmcv' else find_spec(name, *args))
    sys.modules['mmcv'] = None
    try:
        COMPAT.apply()
        importlib.import_module('mmaction.datasets')
    except ImportError as error:
        if 'pip install "mmvidattn[lite]"' not in str(error):
            raise


@symptom('torchvision::nms', at_import=True)
def hide_broken_torchvision():
    fake_package('torchvision', '0.28.0', 'import torchvision.ops\n')
    Path(sys.path[0], 'torchvision', 'ops.py').write_text(
        'raise RuntimeError("operator torchvision::nms does not exist")\n')
    with warnings.catch_warnings(record=True) as caught:
        COMPAT.apply()
    from mmengine.utils.dl_utils import collect_env
    collect_env()
    messages = [str(warning.message) for warning in caught]
    assert any('torchvision' in text and 'nms' in text
               for text in messages), messages


@symptom('localizers.drn', at_import=True)
def add_missing_drn():
    COMPAT.apply()
    from mmaction.registry import MODELS
    with pytest.raises(ImportError, match='missing from the wheel'):
        MODELS.build(dict(type='DRN'))


# timm, if it is installed, needs torchvision before.
@symptom('apply_chunking_to_forward|transformers|torchvision', at_import=True)
def leave_out_multimodal():
    fake_package('transformers', '4.56.1', '')
    COMPAT.apply()
    from mmaction.registry import MODELS
    with pytest.raises(ImportError, match='multi-modal'):
        MODELS.build(dict(type='VindLUVQA'))


@symptom('RuntimeError')
def know_frozen_modules():
    path = Path(tempfile.mkdtemp(), 'config.py')
    path.write_text(
        'import os.path as osp\nfrom os import sep\n'
        'from functools import partial\n'
        'from mmengine.config import read_base\n'
        'from mmaction.datasets import VideoDataset\n'
        "root = partial(osp.join, 'a')('b') + sep\n"
        'kind = dict(type=VideoDataset)\n')
    config = Config.fromfile(path, lazy_import=True)
    assert config.root == 'a/b/'
    from mmaction.datasets import VideoDataset
    assert config.kind.type is VideoDataset


@symptom('external package')
def find_our_base_configs():
    path = Path(tempfile.mkdtemp(), 'config.py')
    path.write_text("_base_ = 'mmvidattn::linear_ff_tiny_motion.py'\n"
                    'train_cfg = dict(max_epochs=3)\n')
    config = Config.fromfile(path)
    assert config.train_cfg.max_epochs == 3
    assert config.model.backbone.type == 'LinearVideoTransformer'


@symptom('import of decord halted')
def explain_missing_decord():
    from mmaction.datasets import DecordInit
    sys.modules['decord'] = None
    apply_again('explain_missing_decord')
    with pytest.raises(ImportError, match='video_backend=pyav'):
        DecordInit().transform(dict(filename=__file__))


@symptom('Please check whether')
def suggest_class_names():
    from mmaction.registry import MODELS, TRANSFORMS
    for registry, name, meant in (
            (MODELS, 'ResNet3dSlowOnli', 'ResNet3dSlowOnly'),
            (MODELS, 'Recogniser3D', 'Recognizer3D'),
            (TRANSFORMS, 'DecordInitt', 'DecordInit')):
        with pytest.raises(KeyError, match=f'{name} is .*mean {meant}\\?'):
            registry.build(dict(type=name))


def saved(obj: Any) -> str:
    path = Path(tempfile.mkdtemp(), 'epoch_1.pth')
    torch.save(obj, path)
    return str(path)


def training_checkpoint() -> dict:
    """Build a checkpoint like ``Runner.save_checkpoint`` of mmengine."""
    hub = MessageHub.get_instance('symptoms')
    hub.update_scalar('train/loss', 0.5)
    hub.update_scalar('train/lr', np.float64(0.25))
    hub.update_info('best_score', np.float32(0.75))
    hub.update_info('counts', np.arange(3))
    assert isinstance(hub.log_scalars['train/loss'], HistoryBuffer)
    return dict(
        state_dict=dict(weight=torch.ones(2)), message_hub=hub.state_dict())


def with_module(source: str, old: bytes, new: bytes) -> str:
    """Copy a checkpoint with one module of its pickle renamed."""
    target = Path(tempfile.mkdtemp(), 'renamed.pth')
    with zipfile.ZipFile(source) as zip_in, \
            zipfile.ZipFile(target, 'w') as zip_out:
        for item in zip_in.infolist():
            data = zip_in.read(item)
            if item.filename.endswith('data.pkl'):
                data = data.replace(old, new)
            zip_out.writestr(item.filename, data)
    return str(target)


class Payload:
    """Calls a function when unpickled."""

    def __init__(self, function: Callable, *args: Any) -> None:
        self.call = function, args

    def __reduce__(self):
        return self.call


@symptom('HistoryBuffer')
def load_own_checkpoints():
    load = CheckpointLoader.load_checkpoint
    path = saved(training_checkpoint())
    # Files of numpy 1 and 2.
    for old, new in ((b'numpy._core', b'numpy.core'),
                     (b'numpy.core', b'numpy._core')):
        hub = load(with_module(path, old, new))['message_hub']
        assert hub['log_scalars']['train/loss'].mean() == 0.5
        assert hub['log_scalars']['train/lr'].current() == 0.25
        assert hub['runtime_info']['best_score'] == np.float32(0.75)
        assert hub['runtime_info']['counts'].tolist() == [0, 1, 2]
    # Nothing else is taken from a HistoryBuffer.
    load(saved(Payload(getattr, HistoryBuffer, 'mean')))
    for payload, error in (
            (Payload(getattr, HistoryBuffer, '__init__'), 'refused to load'),
            (Payload(getattr, np.ndarray, 'tofile'), 'refused to load'),
            (Payload(os.getcwd), '(?i)unsupported global')):
        with pytest.raises(pickle.UnpicklingError, match=error):
            load(saved(payload))


@symptom('DID NOT RAISE')
def load_weights_only():
    os.environ['TORCH_HOME'] = tempfile.mkdtemp()
    folder = Path(torch.hub.get_dir(), 'checkpoints')
    folder.mkdir(parents=True)
    os.rename(saved(Payload(os.getcwd)), folder / 'evil.pth')
    os.rename(saved(training_checkpoint()), folder / 'good.pth')
    evil = 'https://example.org/evil.pth'
    with pytest.raises(pickle.UnpicklingError):
        CheckpointLoader.load_checkpoint(evil)
    CheckpointLoader.load_checkpoint('https://example.org/good.pth')
    from mmengine.runner.checkpoint import load_url

    # The explicit argument and torch's variable allow code.
    with pytest.warns(UserWarning, match='can run any code'):
        assert load_url(evil, weights_only=False) == os.getcwd()
    os.environ['TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD'] = 'True'
    assert CheckpointLoader.load_checkpoint(evil) == os.getcwd()
    with pytest.raises(pickle.UnpicklingError):
        load_url(evil, weights_only=True)
    del os.environ['TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD']

    # An older torch unpickles files without checks.
    def load_of_torch_2_5(*args, weights_only=False, **kwargs):
        return load(*args, weights_only=weights_only, **kwargs)

    load, torch.load = torch.load, load_of_torch_2_5
    torch.__version__ = '2.5.1'
    apply_again('load_weights_only')
    path = saved(Payload(os.getcwd))
    with pytest.raises(pickle.UnpicklingError):
        CheckpointLoader.load_checkpoint(path)
    from mmengine.runner import checkpoint
    assert checkpoint.torch.load(path, weights_only=False) == os.getcwd()


@symptom('it was run')
def leave_config_of_checkpoint():
    folder = Path(tempfile.mkdtemp())
    text = f'x = __import__("os").mkdir({str(folder / "made")!r})'
    path = saved(dict(meta=dict(epoch=1, iter=1, config=text), state_dict={}))
    runner = types.SimpleNamespace(
        model=torch.nn.Linear(1, 1), logger=logging.getLogger('stub'),
        _world_size=1, train_loop=types.SimpleNamespace(),
        call_hook=lambda *args, **kwargs: None)
    runner.load_checkpoint = functools.partial(Runner.load_checkpoint, runner)
    # This runner lacks most of its parts.
    with suppress(Exception):
        Runner.resume(runner, path)
    assert not (folder / 'made').exists(), 'it was run'


@symptom('Inf')
def run_on_numpy_2():
    from mmaction.datasets.transforms import PoseCompact
    from mmaction.evaluation import average_recall_at_avg_proposals
    from mmaction.evaluation.functional.multisports_utils import iou3dt_voc
    from mmaction.utils import frame_extract
    out = PoseCompact(threshold=1)(dict(
        keypoint=np.array([[[[2., 3.], [20., 30.]]]]), img_shape=(64, 64),
        clip_len=1))
    assert out['img_shape'][0] < 64
    proposals = dict(video=np.array([[0., 1., .9], [2., 3., .1]]))
    _, recall, x, auc = average_recall_at_avg_proposals(
        dict(video=np.array([[0., 1.]])), proposals, 2)
    area = sum((recall[i] + recall[i - 1]) / 2 * (x[i] - x[i - 1])
               for i in range(1, len(x)))
    assert auc == pytest.approx(100 * area / x[-1]) and auc > 0
    tube = np.array([[t, 10., 10., 50., 50.] for t in range(5)])
    assert iou3dt_voc(tube, tube) == 1.
    folder = tempfile.mkdtemp()
    path = str(Path(folder, 'video.avi'))
    writer = cv2.VideoWriter(path, cv2.VideoWriter_fourcc(*'MJPG'), 5,
                             (64, 48))
    writer.write(np.zeros((48, 64, 3), np.uint8))
    writer.release()
    _, (frame, ) = frame_extract(path, short_side=24, out_dir=folder)
    assert frame.shape == (24, 32, 3)


@symptom('OverflowError')
def shift_hue_in_range():
    from mmaction.datasets.transforms import ColorJitter
    red = np.full((2, 2, 3), (255, 0, 0), np.float32)
    for factor in np.linspace(-0.5, 0.5, 41):
        # Red has hue 0 of 180; the tolerance is four degrees.
        degrees = 2 * int(factor * 255)
        assert np.allclose(
            ColorJitter.adjust_hue(red, factor)[0, 0], 255 * np.array(
                colorsys.hsv_to_rgb(degrees / 360 % 1, 1, 1)), atol=5)


def amp_wrapper(**kwargs):
    model = torch.nn.Linear(4, 2)
    torch.nn.init.constant_(model.weight, 0.5)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5, momentum=0.9)
    return model, AmpOptimWrapper(optimizer=optimizer, **kwargs)


@symptom('AmpOptimizerWrapper')
def train_amp_on_cpu():
    model, wrapper = amp_wrapper(
        loss_scale='dynamic', accumulative_counts=2,
        clip_grad=dict(max_norm=0.25))
    before = model.weight.detach().clone()
    for step in range(2):
        with wrapper.optim_context(model):
            out = model(torch.ones(3, 4))
        assert out.dtype == torch.bfloat16
        wrapper.update_params(out.float().sum())
        assert torch.equal(before, model.weight) == (step == 0)
    assert (before - model.weight).norm() < 0.5 * 0.25 + 1e-6
    for dtype in 'float16', torch.float32:
        with pytest.raises(ValueError, match='bfloat16'):
            amp_wrapper(dtype=dtype)
    _, other = amp_wrapper(dtype='bfloat16')
    other.load_state_dict(wrapper.state_dict())
    assert other.optimizer.state_dict()['state'][0]['momentum_buffer'].norm()


@symptom('BFloat16')
def score_in_float32():
    from mmaction.evaluation import AccMetric
    from mmaction.models.heads import OmniHead, RGBPoseHead, TimeSformerHead
    from mmaction.structures import ActionDataSample

    def samples():
        return [ActionDataSample().set_gt_label(torch.tensor([i]))
                for i in range(2)]

    volume = torch.rand(2, 4, 1, 1, 1)
    for head, feats in (
            (TimeSformerHead(5, 4, average_clips='prob'), torch.rand(2, 4)),
            (OmniHead(5, 5, 4, video_nl_head=False, average_clips='prob'),
             volume),
            (RGBPoseHead(5, (4, 4), average_clips='prob'), (volume, volume))):
        with torch.autocast('cpu', torch.bfloat16):
            losses = head.loss(feats, samples())
            with torch.no_grad():
                predictions = head.predict(feats, samples())
        assert all(loss.isfinite() for loss in losses.values())
        metric = AccMetric()
        metric.process(None, [sample.to_dict() for sample in predictions])
        assert metric.compute_metrics(metric.results)


@symptom('_cuda_setDevice|NVIDIA|CUDA')
def launch_on_cpu():
    from mmengine.dist import init_dist
    os.environ.update(
        RANK='0', WORLD_SIZE='1', LOCAL_RANK='0', MASTER_ADDR='127.0.0.1',
        MASTER_PORT='0')
    init_dist('pytorch', backend='nccl')
    assert dist.get_backend() == 'gloo'


@symptom('device_ids')
def distribute_on_cpu():
    init_gloo()
    model = MMDistributedDataParallel(torch.nn.Linear(2, 2), device_ids=[0])
    model(torch.ones(1, 2)).sum().backward()


class Numbers:
    """Dataset that returns random numbers, like a random augmentation."""

    def __len__(self):
        return 4

    def __getitem__(self, index):
        return np.random.randint(2**31)


def draws(seed: int, persistent: bool = False) -> list[list[int]]:
    torch.manual_seed(seed)
    loader = Runner.build_dataloader(
        dict(dataset=Numbers(), batch_size=1, num_workers=1,
             persistent_workers=persistent,
             sampler=dict(type='DefaultSampler', shuffle=False)), seed=seed)
    return [[int(batch[0]) for batch in loader] for _ in range(2)]


@symptom('same augmentations')
def reseed_workers_each_epoch():
    first, second = draws(0)
    assert first != second, 'same augmentations in both epochs'
    assert [first, second] == draws(0)
    assert draws(1)[0] not in (first, second)
    # Persistent workers draw the same numbers as mmengine's.
    generator = np.random.RandomState(5)
    assert draws(5, persistent=True) == [
        [generator.randint(2**31) for _ in range(4)] for _ in range(2)]


@symptom('wrong frames')
def refuse_files_that_decord_misreads():
    from made_videos import numbers_of, write_video
    from mmaction.datasets import DecordDecode, DecordInit
    path = write_video(Path(tempfile.mkdtemp(), 'a.ts'), 'mpeg2video',
                       bf='2', g='12', b='4M')
    try:
        results = DecordInit()(dict(filename=str(path)))
    except ValueError as error:
        assert 'video_backend=pyav' in str(error)
        return
    results['frame_inds'] = np.array([5, 2, 7])
    got = numbers_of(np.stack(DecordDecode()(results)['imgs']))
    assert got == [5, 2, 7], f'wrong frames: {got}'


@symptom('__notes__')
def name_failed_transforms():
    from mmcv.transforms import BaseTransform

    class Bad(BaseTransform):
        def transform(self, results):
            raise AssertionError

    with pytest.raises(AssertionError) as error:
        Bad()(dict(filename='a.mp4'))
    assert error.value.__notes__ == ['Bad of a.mp4: AssertionError()']


def show_symptom(name: str, left_out: str) -> None:
    """Apply all workarounds except one, and look for a symptom."""
    os.environ[COMPAT.SKIP] = left_out
    run, _, at_import = SYMPTOMS[name]
    if not at_import:
        COMPAT.apply()
    run()


def caught(function: Callable, *args: Any) -> str | None:
    """Call a function; return its error."""
    try:
        function(*args)
    # Errors of pytest do not derive from Exception.
    except BaseException:
        return traceback.format_exc()


def error_of(*call: Any) -> str | None:
    """Call a function in a fork; return its error."""
    with ProcessPoolExecutor(1, multiprocessing.get_context('fork')) as pool:
        return pool.submit(caught, *call).result()


def unapplied(package: str) -> Any:
    """Import only ``mmvidattn.compat``, without applying a workaround.

    Args:
        package: Folder of mmvidattn.
    """
    parent = sys.modules['mmvidattn'] = types.ModuleType('mmvidattn')
    parent.__path__ = [package]
    return importlib.import_module('mmvidattn.compat')


def main(path: str, folder: str, motion: str) -> None:
    global COMPAT
    COMPAT = unapplied(path)
    torch.set_num_threads(1)
    # Several trials need these.
    for name in ('torch._dynamo', 'matplotlib.pyplot', 'scipy.stats',
                 'mmengine.analysis'):
        importlib.import_module(name)
    # These take most of the time of a short run.
    gc.freeze()
    mmengine.config.config.FormatCode = lambda text, **options: (text, True)
    mmengine.runner.runner.collect_env = dict
    result = {name: error_of(new_process.run, name, Path(folder), Path(motion))
              for name in new_process.CHECKS}
    for at_import in True, False:
        if not at_import:
            # Symptoms of these two are shown above.
            COMPAT.imports.add_missing_drn()
            COMPAT.imports.leave_out_multimodal()
            for part in 'models', 'datasets', 'evaluation', 'engine', 'utils':
                importlib.import_module(f'mmaction.{part}')
            init_default_scope('mmaction')
        for name, (*_, is_early) in SYMPTOMS.items():
            if is_early == at_import:
                result[name] = [error_of(show_symptom, name, left_out)
                                for left_out in ('', name)]
    Path(folder, 'results.json').write_text(json.dumps(result))


if __name__ == '__main__':
    main(*sys.argv[1:])
