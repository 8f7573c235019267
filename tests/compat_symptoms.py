# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""A function for each fault that ``mmvidattn.compat`` works around.

The function raises an error if the fault is present. Run as a program with
the folder of mmvidattn, an empty folder and the folder of the motion set, this
file writes results.json: by the name of each function, its errors with all
workarounds, and with all except its own; and the error of each check of
``new_process.py``. The stack is imported once, and each trial runs in a fork,
so that a trial takes milliseconds and cannot affect the next one.
"""
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
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import mmengine.analysis  # noqa: F401
import new_process
import numpy as np
import pytest
import scipy.stats  # noqa: F401
import torch

# Optimizers and wrapped models import it, which takes more than a second.
import torch._dynamo  # noqa: F401
import torch.distributed as dist
from mmengine.config import Config
from mmengine.logging import HistoryBuffer, MessageHub
from mmengine.model import MMDistributedDataParallel
from mmengine.optim import AmpOptimWrapper
from mmengine.registry import init_default_scope
from mmengine.runner import CheckpointLoader, Runner


class Symptom(NamedTuple):
    """A fault: its workaround, and the error without the workaround."""
    run: Callable[[], None]
    workaround: str
    shows: str
    at_import: bool


SYMPTOMS: dict[str, Symptom] = {}


def symptom_of(workaround: str, shows: str,
               at_import: bool = False) -> Callable:

    def register(run: Callable[[], None]) -> Callable[[], None]:
        SYMPTOMS[run.__name__] = Symptom(run, workaround, shows, at_import)
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


def init_gloo() -> None:
    file = Path(tempfile.mkdtemp(), 'store')
    dist.init_process_group(
        'gloo', init_method=f'file://{file}', rank=0, world_size=1)


def apply_all() -> None:
    """Import all installed modules that workarounds wait for."""
    COMPAT.apply()
    for one in COMPAT.WORKAROUNDS:
        for name in one.waits_for:
            if importlib.util.find_spec(name.partition('.')[0]) is not None:
                importlib.import_module(name)


def assert_quiet(action: Callable[[], Any]) -> None:
    with warnings.catch_warnings(record=True) as caught:
        action()
    assert not caught, [str(warning.message) for warning in caught]


def explains(text: str, action: Callable[[], Any]) -> None:
    """Call a function, and check the text of its ImportError."""
    try:
        action()
    except ImportError as error:
        if text not in str(error):
            raise
    else:
        raise AssertionError('no error')


def run_in_mmengine(code: str) -> None:
    assert_quiet(lambda: exec(code, {'__name__': 'mmengine.part'}))
    if 'Scaler' in code:
        with pytest.warns(FutureWarning, match='GradScaler'):
            exec(code, {'__name__': 'users_own'})


def samples(size: int) -> list:
    from mmaction.structures import ActionDataSample
    return [
        ActionDataSample().set_gt_label(torch.tensor([i])) for i in range(size)
    ]


@symptom_of('quiet_warnings', 'MultiScaleDeformableAttention', at_import=True)
def mmcv_lite_warns_about_an_operator():
    assert_quiet(apply_all)


@symptom_of('quiet_warnings', 'GradScaler')
def scaler_warns_about_its_name():
    run_in_mmengine('import torch\ntorch.cuda.amp.GradScaler(enabled=False)')


@symptom_of('quiet_warnings', 'broadcast_buffers')
def wrapped_model_warns_about_its_argument():
    init_gloo()
    assert_quiet(lambda: MMDistributedDataParallel(
        torch.nn.Linear(2, 2), broadcast_buffers=False))


@symptom_of('require_mmcv', 'ModuleNotFoundError.*mmcv', at_import=True)
def missing_mmcv_is_not_explained():
    find_spec = importlib.util.find_spec
    importlib.util.find_spec = lambda name, *args: (
        None if name == 'mmcv' else find_spec(name, *args))
    sys.modules['mmcv'] = None
    explains('pip install "mmvidattn[lite]"', apply_all)


@symptom_of('hide_broken_torchvision', 'torchvision::nms', at_import=True)
def broken_torchvision_stops_the_runner():
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


@symptom_of('add_missing_drn', 'localizers.drn', at_import=True)
def models_cannot_be_imported():
    COMPAT.apply()
    from mmaction.registry import MODELS
    with pytest.raises(ImportError, match='missing from the wheel'):
        MODELS.build(dict(type='DRN'))


@symptom_of('explain_missing_decord', 'Please run "pip install decord"',
            at_import=True)
def missing_decord_is_reported_per_sample():
    sys.modules['decord'] = None
    COMPAT.apply()
    from mmaction.datasets import DecordInit
    explains('video_backend=pyav', lambda: DecordInit().transform(
        dict(filename='a.mp4')))


@symptom_of('refuse_files_that_decord_misreads', 'wrong frames')
def frames_of_transport_streams_are_wrong():
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


@symptom_of('leave_out_multimodal', 'apply_chunking_to_forward|transformers',
            at_import=True)
def transformers_4_56_breaks_the_import_of_models():
    fake_package('transformers', '4.56.1', '')
    COMPAT.apply()
    from mmaction.registry import MODELS
    with pytest.raises(ImportError, match='multi-modal'):
        MODELS.build(dict(type='VindLUVQA'))


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


def saved(obj: Any, name: str = 'epoch_1.pth') -> str:
    path = Path(tempfile.mkdtemp(), name)
    torch.save(obj, path)
    return str(path)


@symptom_of('load_own_checkpoints', 'HistoryBuffer')
def checkpoint_of_a_run_does_not_load():
    hub = CheckpointLoader.load_checkpoint(
        saved(training_checkpoint()))['message_hub']
    assert hub['log_scalars']['train/loss'].mean() == 0.5
    assert hub['log_scalars']['train/lr'].current() == 0.25
    assert hub['runtime_info']['best_score'] == np.float32(0.75)
    assert hub['runtime_info']['counts'].tolist() == [0, 1, 2]


@symptom_of('leave_config_of_checkpoint', 'it was run')
def checkpoint_runs_its_config():
    folder = Path(tempfile.mkdtemp())
    text = f'x = __import__("os").mkdir({str(folder / "made")!r})'
    path = saved(dict(meta=dict(epoch=1, iter=1, config=text), state_dict={}))

    class Stub:
        model = torch.nn.Linear(1, 1)
        logger = logging.getLogger('stub')
        _world_size = 1

        class train_loop:
            pass

        def call_hook(self, *args, **kwargs):
            pass

        def load_checkpoint(self, *args, **kwargs):
            return Runner.load_checkpoint(self, *args, **kwargs)

    try:
        Runner.resume(Stub(), path)
    except Exception:
        # The stub lacks most parts of a runner.
        pass
    assert not (folder / 'made').exists(), 'it was run'


@symptom_of('load_own_checkpoints', 'multiarray')
def checkpoint_of_the_other_numpy_does_not_load():
    path = Path(
        saved(
            dict(
                score=np.float64(0.75),
                counts=np.arange(3),
                hub=training_checkpoint()['message_hub'])))
    for new, old in ((b'numpy._core', b'numpy.core'),
                     (b'numpy.core', b'numpy._core')):
        renamed = Path(tempfile.mkdtemp(), 'renamed.pth')
        rewrite_pickle(path, renamed, new, old)
        loaded = CheckpointLoader.load_checkpoint(str(renamed))
        assert loaded['score'] == 0.75
        assert loaded['counts'].tolist() == [0, 1, 2]


def rewrite_pickle(source: Path, target: Path, old: bytes, new: bytes) -> None:
    """Copy a checkpoint with one module of its pickle renamed."""
    import zipfile
    with zipfile.ZipFile(source) as zip_in, \
            zipfile.ZipFile(target, 'w') as zip_out:
        for item in zip_in.infolist():
            data = zip_in.read(item)
            if item.filename.endswith('data.pkl'):
                data = data.replace(old, new)
            zip_out.writestr(item.filename, data)


class Payload:
    """Runs a command when unpickled."""

    def __init__(self, function: Callable, *args: Any) -> None:
        self.call = function, args

    def __reduce__(self):
        return self.call


@symptom_of('load_own_checkpoints', 'GLOBAL getattr')
def only_statistics_are_taken_from_a_history():

    CheckpointLoader.load_checkpoint(
        saved(Payload(getattr, HistoryBuffer, 'mean')))
    for args in (HistoryBuffer, '__init__'), (np.ndarray, 'tofile'):
        with pytest.raises(pickle.UnpicklingError, match='refused to load'):
            CheckpointLoader.load_checkpoint(saved(Payload(getattr, *args)))
    with pytest.raises(pickle.UnpicklingError, match='(?i)unsupported global'):
        CheckpointLoader.load_checkpoint(saved(Payload(os.getcwd)))


@symptom_of('load_weights_only', 'DID NOT RAISE')
def checkpoint_from_the_web_is_unpickled_unchecked():

    os.environ['TORCH_HOME'] = tempfile.mkdtemp()
    folder = Path(torch.hub.get_dir(), 'checkpoints')
    folder.mkdir(parents=True)
    os.rename(saved(Payload(os.getcwd)), folder / 'evil.pth')
    os.rename(saved(training_checkpoint()), folder / 'good.pth')
    with pytest.raises(pickle.UnpicklingError):
        CheckpointLoader.load_checkpoint('https://example.org/evil.pth')
    CheckpointLoader.load_checkpoint('https://example.org/good.pth')
    from mmengine.runner.checkpoint import load_url
    evil = 'https://example.org/evil.pth'
    # The explicit argument and torch's variable allow code.
    with pytest.warns(UserWarning, match='can run any code'):
        assert load_url(evil, weights_only=False) == os.getcwd()
    os.environ['TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD'] = 'True'
    assert CheckpointLoader.load_checkpoint(evil) == os.getcwd()
    with pytest.raises(pickle.UnpicklingError):
        load_url(evil, weights_only=True)


@symptom_of('load_weights_only', 'DID NOT RAISE', at_import=True)
def an_older_torch_unpickles_unchecked():

    load = torch.load

    def load_of_torch_2_5(*args, weights_only=False, **kwargs):
        return load(*args, weights_only=weights_only, **kwargs)

    torch.load = load_of_torch_2_5
    torch.__version__ = '2.5.1'
    COMPAT.apply()
    from mmengine.runner import checkpoint
    path = saved(Payload(os.getcwd))
    with pytest.raises(pickle.UnpicklingError):
        CheckpointLoader.load_checkpoint(path)
    with pytest.warns(UserWarning, match='can run any code'):
        assert checkpoint.torch.load(path, weights_only=False) == os.getcwd()


@symptom_of('know_frozen_modules', 'RuntimeError')
def config_in_the_new_style_cannot_join_paths():
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


@symptom_of('find_our_base_configs', 'external package')
def config_cannot_inherit_from_this_package():
    path = Path(tempfile.mkdtemp(), 'config.py')
    path.write_text("_base_ = 'mmvidattn::linear_ff_tiny_motion.py'\n"
                    'train_cfg = dict(max_epochs=3)\n')
    config = Config.fromfile(path)
    assert config.train_cfg.max_epochs == 3
    assert config.model.backbone.type == 'LinearVideoTransformer'


@symptom_of('run_on_numpy_2', 'Inf')
def poses_cannot_be_compacted():
    from mmaction.datasets.transforms import PoseCompact
    keypoint = np.array([[[[2., 3.], [20., 30.]]]])
    out = PoseCompact(threshold=1)(
        dict(keypoint=keypoint, img_shape=(64, 64), clip_len=1))
    assert out['img_shape'][0] < 64


@symptom_of('extract_frames_on_numpy_2', 'Inf')
def frames_cannot_be_extracted():
    import cv2
    from mmaction.utils import frame_extract
    folder = tempfile.mkdtemp()
    path = str(Path(folder, 'video.avi'))
    writer = cv2.VideoWriter(path, cv2.VideoWriter_fourcc(*'MJPG'), 5,
                             (64, 48))
    writer.write(np.zeros((48, 64, 3), np.uint8))
    writer.release()
    _, (frame, ) = frame_extract(path, short_side=24, out_dir=folder)
    assert frame.shape == (24, 32, 3)


@symptom_of('run_on_numpy_2', 'trapz')
def recall_of_proposals_has_no_area():
    from mmaction.evaluation import average_recall_at_avg_proposals
    proposals = dict(video=np.array([[0., 1., .9], [2., 3., .1]]))
    _, recall, x, auc = average_recall_at_avg_proposals(
        dict(video=np.array([[0., 1.]])), proposals, 2)
    area = sum((recall[i] + recall[i - 1]) / 2 * (x[i] - x[i - 1])
               for i in range(1, len(x)))
    assert auc == pytest.approx(100 * area / x[-1]) and auc > 0


@symptom_of('run_on_numpy_2', '0-dimensional')
def tubes_cannot_be_compared():
    from mmaction.evaluation.functional.multisports_utils import iou3dt_voc
    tube = np.array([[t, 10., 10., 50., 50.] for t in range(5)])
    assert iou3dt_voc(tube, tube) == 1.


@symptom_of('shift_hue_in_range', 'OverflowError')
def colours_cannot_be_jittered():
    from mmaction.datasets.transforms import ColorJitter
    red = np.full((2, 2, 3), (255, 0, 0), np.float32)
    for factor in np.linspace(-0.5, 0.5, 41):
        shifted = ColorJitter.adjust_hue(red, factor)[0, 0]
        # Red has hue 0 of 180; the tolerance is four degrees.
        assert np.allclose(shifted, rgb_of_hue(2 * int(factor * 255)), atol=5)


def rgb_of_hue(degrees: float) -> np.ndarray:
    import colorsys
    return 255 * np.array(colorsys.hsv_to_rgb(degrees / 360 % 1, 1, 1))


def amp_wrapper(**kwargs):
    model = torch.nn.Linear(4, 2)
    torch.nn.init.constant_(model.weight, 0.5)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5, momentum=0.9)
    return model, AmpOptimWrapper(optimizer=optimizer, **kwargs)


@symptom_of('train_amp_on_cpu', 'AmpOptimizerWrapper')
def amp_needs_an_accelerator():
    model, wrapper = amp_wrapper(
        loss_scale='dynamic',
        accumulative_counts=2,
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


@symptom_of('score_in_float32', 'BFloat16')
def heads_cannot_score_in_bfloat16():
    from mmaction.evaluation import AccMetric
    from mmaction.models.heads import OmniHead, RGBPoseHead, TimeSformerHead
    x = torch.rand(2, 4)
    volume = torch.rand(2, 4, 1, 1, 1)
    heads = (TimeSformerHead(5, 4, average_clips='prob'), x), (OmniHead(
        5, 5, 4, video_nl_head=False, average_clips='prob'), volume), (
            RGBPoseHead(5, (4, 4), average_clips='prob'), (volume, volume))
    for head, feats in heads:
        with torch.autocast('cpu', torch.bfloat16):
            losses = head.loss(feats, samples(2))
            with torch.no_grad():
                predictions = head.predict(feats, samples(2))
        assert all(loss.isfinite() for loss in losses.values())
        metric = AccMetric()
        metric.process(None, [sample.to_dict() for sample in predictions])
        assert metric.compute_metrics(metric.results)


@symptom_of('launch_on_cpu', '_cuda_setDevice|NVIDIA|CUDA')
def launcher_selects_a_cuda_device():
    from mmengine.dist import init_dist
    os.environ.update(
        RANK='0', WORLD_SIZE='1', LOCAL_RANK='0', MASTER_ADDR='127.0.0.1')
    os.environ['MASTER_PORT'] = free_port()
    init_dist('pytorch', backend='nccl')
    assert dist.get_backend() == 'gloo'


@symptom_of('distribute_on_cpu', 'device_ids')
def wrapped_model_asks_for_a_cuda_device():
    init_gloo()
    model = MMDistributedDataParallel(torch.nn.Linear(2, 2), device_ids=[0])
    model(torch.ones(1, 2)).sum().backward()


def free_port() -> str:
    import socket
    with socket.socket() as server:
        server.bind(('127.0.0.1', 0))
        return str(server.getsockname()[1])


class Numbers:
    """Dataset that returns random numbers, like a random augmentation."""

    def __len__(self):
        return 4

    def __getitem__(self, index):
        return np.random.randint(2**31)


def draws(seed: int, persistent: bool = False) -> list[list[int]]:
    torch.manual_seed(seed)
    loader = Runner.build_dataloader(
        dict(
            dataset=Numbers(),
            batch_size=1,
            num_workers=1,
            persistent_workers=persistent,
            sampler=dict(type='DefaultSampler', shuffle=False)),
        seed=seed)
    return [[int(batch[0]) for batch in loader] for _ in range(2)]


@symptom_of('reseed_workers_each_epoch', 'same augmentations')
def every_epoch_repeats_the_augmentations():
    first, second = draws(0)
    assert first != second, 'same augmentations in both epochs'
    assert [first, second] == draws(0)
    assert draws(1)[0] not in (first, second)
    # Persistent workers draw the same numbers as mmengine's.
    generator = np.random.RandomState(5)
    assert draws(5, persistent=True) == [
        [generator.randint(2**31) for _ in range(4)] for _ in range(2)]


def show_symptom(symptom: Symptom, left_out: str | None) -> None:
    """Apply all workarounds except one, and look for a symptom."""
    os.environ[COMPAT.SKIP] = left_out or ''
    if not symptom.at_import:
        COMPAT.apply()
    symptom.run()


def error_of(function: Callable, *args: Any) -> str | None:
    """Call a function in a fork; return its error."""
    context = multiprocessing.get_context('fork')
    queue = context.SimpleQueue()

    def call() -> None:
        try:
            function(*args)
        # Errors of pytest do not derive from Exception.
        except BaseException:
            queue.put(traceback.format_exc())
        else:
            queue.put(None)

    process = context.Process(target=call)
    process.start()
    process.join()
    return queue.get() if not queue.empty() else f'died: {process.exitcode}'


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
        for name, symptom in SYMPTOMS.items():
            if symptom.at_import == at_import:
                result[name] = [error_of(show_symptom, symptom, left_out)
                                for left_out in (None, symptom.workaround)]
    Path(folder, 'results.json').write_text(json.dumps(result))


if __name__ == '__main__':
    main(*sys.argv[1:])
