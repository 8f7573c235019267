# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Check the installation: packages, devices, backends, and a self-test.

    mmvidattn doctor
    mmvidattn doctor --json > report.json

Each line is a finding with its remedy. A problem means that something fails;
the exit status is then 1. A note means that an optional part is missing or
works differently. The self-test takes about a minute.

The console command runs this file without importing the package, because that
import may fail. This file therefore imports only the standard library. Other
packages are imported in a separate process, which may crash.
"""
import argparse
import glob
import importlib
import importlib.metadata
import importlib.util
import json
import os
import platform
import re
import runpy
import shutil
import subprocess
import sys
import tempfile
import threading
import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[1]
# Packages whose versions are reported.
NAMES = (
    'mmvidattn', 'mmaction2', 'mmengine', 'mmcv', 'mmcv-lite', 'torch',
    'torchvision', 'triton', 'numpy', 'opencv-python',
    'opencv-python-headless', 'opencv-contrib-python',
    'opencv-contrib-python-headless', 'decord', 'eva-decord', 'torchcodec',
    'av', 'safetensors', 'setuptools', 'importlib_metadata', 'transformers',
    'timm', 'moviepy', 'onnx', 'onnxruntime', 'onnxscript', 'grad-cam',
    'onedl-mmengine', 'onedl-mmcv', 'onedl-mmaction2', 'mmpretrain', 'mmdet',
    'mmpose', 'openmim')
# Prefixes of environment variables that change the behavior.
VARIABLES = ('MMVIDATTN_', 'TRITON_', 'CUDA_', 'OMP_', 'MKL_', 'ATEN_',
             'ONEDNN_', 'TORCH_FORCE_', 'TORCHINDUCTOR_', 'LD_LIBRARY_PATH')
# Variables that limit the instructions of a CPU.
LIMITS = ('ATEN_CPU_CAPABILITY', 'ONEDNN_MAX_CPU_ISA',
          'MKL_ENABLE_INSTRUCTIONS')
OPENCV = [name for name in NAMES if name.startswith('opencv-')]
# Distributions that can replace each other.
INTERCHANGEABLE = {*OPENCV, 'decord', 'eva-decord'}
# Modules in import order, with the package to install. mmvidattn comes last,
# because it imports the others.
REQUIRED = dict(
    numpy='"numpy>=1.24"', torch='torch', cv2='opencv-python',
    av='"av>=17.1"', pkg_resources='"setuptools<81"',
    mmengine='"mmengine>=0.10.5,<0.11"', mmcv='mmcv-lite==2.1.0',
    mmvidattn='"mmvidattn[lite]"')
# Video decoders, with the consequence if one is missing.
DECODERS = dict(
    decord='configs need --cfg-options video_backend=torchcodec (or pyav, or '
    'opencv)',
    torchcodec='configs cannot use video_backend=torchcodec')
OPTIONAL = 'torchvision', 'triton', *DECODERS
ONE_MMCV = ('pip uninstall -y mmcv mmcv-lite onedl-mmcv && '
            'pip install mmcv-lite==2.1.0')
# First version of a package that does not work, with level, fault and remedy
# of the finding.
TOO_NEW = dict(
    setuptools=((82, ), 'problem', 'has no pkg_resources, which mmengine '
                'imports', '"setuptools<81"'),
    moviepy=((2, ), 'note', "has no moviepy.editor: mmaction2's gifs and mp4 "
             'output fail', '"moviepy<2"'),
    transformers=((4, 56), 'note', "breaks mmaction2's multimodal models, "
                  'which mmvidattn leaves out so that the others import',
                  '"transformers<4.56" if you want VindLU'))
# Patterns of import errors, with their remedies.
REMEDIES = (
    (r'lib(GL|EGL|gthread|glib|SM|Xext|xcb)[\w.-]*\.so',
     'apt-get install libgl1 libglib2.0-0; or, without a display: pip '
     f'uninstall -y {" ".join(OPENCV)} && pip install opencv-python-headless'),
    (r"No module named '?pkg_resources", 'pip install "setuptools<81"'),
    (r'libtorchcodec',
     "install ffmpeg's libraries (apt-get install ffmpeg, conda install "
     'ffmpeg or brew install ffmpeg) and the torchcodec of your torch (for '
     '2.13: pip install torchcodec==0.13.0)'),
    (r'torchvision(::|.*undefined symbol)|cuda version.*torchvision',
     'pip install --force-reinstall --no-deps the torchvision that '
     'https://pytorch.org lists for your torch, from the same index; or pip '
     'uninstall torchvision, which only Grad-CAM needs'),
    (r'compiled using NumPy 1|numpy\.core\.multiarray failed|_ARRAY_API|'
     r'numpy\.dtype size changed|Numpy is not available',
     'it was built for numpy 1: upgrade it (pip install -U), or pip install '
     '"numpy<2"'),
    (r'MMCV==\S+ is used but incompatible', ONE_MMCV),
    (r'MMEngine==\S+ is used but incompatible',
     'pip install "mmengine>=0.10.5,<0.11"'),
    (r"module 'cv2' has no attribute|cv2.*circular import",
     f'pip uninstall -y {" ".join(OPENCV)} && rm -rf what is left of cv2 in '
     'site-packages && pip install opencv-python'),
    (r'lib(cu|nv|nccl)\w*[\w.-]*\.so',
     'the CUDA libraries of torch are missing or of another version: unset '
     'LD_LIBRARY_PATH, or pip install --force-reinstall torch'),
    (r'GLIBC(XX)?_[\d.]+',
     'the wheel is made for a newer system: install an older version of it, '
     'or use a newer system or conda'),
    (r"No module named '([\w.]+)'", r'pip install \1'),
)


def finding(level: str, topic: str, text: str, remedy: str = '') -> dict:
    """Return a finding about a topic.

    Args:
        level: 'ok', 'note' or 'problem'.
        topic: Package, device or other subject.
        text: Description of the state or the problem, in one line.
        remedy: Action that solves the problem. Defaults to ''.
    """
    return dict(level=level, topic=topic, text=one_line(text), remedy=remedy)


def one_line(text: str, width: int = 400) -> str:
    """Join the lines of a text and replace the home folder by ``~``."""
    text = ' '.join(text.split())
    home = str(Path.home())
    if home != os.sep:
        text = text.replace(home, '~')
    return text if len(text) <= width else text[:width - 3] + '...'


def versions() -> dict[str, str]:
    """Return the versions of installed packages in ``NAMES``."""
    packages = {}
    for name in NAMES:
        try:
            packages[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return packages


def numbers(version: str) -> tuple[int, ...]:
    return tuple(map(int, re.findall(r'\d+', version.partition('+')[0])[:3]))


def check_packages(packages: dict[str, str]) -> Iterator[dict]:
    """Return known conflicts and unmet requirements."""
    conflicts = [*find_conflicts(packages)]
    yield from conflicts
    reported = {item['topic'] for item in conflicts}
    yield from (item for item in check_requirements(packages)
                if item['topic'] not in reported)


def find_conflicts(packages: dict[str, str]) -> Iterator[dict]:
    """Return known conflicts among the installed versions."""
    if numbers(platform.python_version()) < (3, 10):
        yield finding('problem', 'python', 'mmvidattn needs Python 3.10 or '
                      f'newer, and this is {platform.python_version()}',
                      'make an environment with a newer Python')
    both = [name for name in ('mmcv', 'mmcv-lite', 'onedl-mmcv')
            if name in packages]
    if len(both) > 1:
        yield finding(
            'problem', 'mmcv',
            f'{" and ".join(both)} are both installed, and write to the same '
            'folder mmcv', ONE_MMCV)
    for name in both:
        if not (2, 0, 0) <= numbers(packages[name]) < (2, 2, 0):
            yield finding(
                'problem', 'mmcv',
                f'mmaction2 refuses {name} {packages[name]}; it takes 2.0.0 '
                'to 2.1.0', ONE_MMCV)
    for name in 'onedl-mmengine', 'onedl-mmaction2':
        if name in packages:
            original = name.removeprefix('onedl-')
            beside = f' beside {original}' if original in packages else ''
            yield finding(
                'problem' if beside else 'note', original,
                f'{name} {packages[name]} is installed{beside}: a fork that '
                f'provides the same module as {original}, and is not tested '
                'here', f'pip uninstall -y {name} {original} && pip install '
                + ('mmaction2==1.2.0' if original == 'mmaction2' else
                   '"mmengine>=0.10.5,<0.11"'))
    opencv = {name: packages[name] for name in OPENCV if name in packages}
    if len({*opencv.values()}) > 1:
        listed = ', '.join(f'{k} {v}' for k, v in opencv.items())
        yield finding(
            'problem', 'opencv',
            f'{listed} are of several versions, and write to the same folder '
            'cv2', f'pip uninstall -y {" ".join(opencv)} && pip install '
            + ' '.join(f'{name}=={max(opencv.values(), key=numbers)}'
                       for name in opencv))
    old = [f'{k} {v}' for k, v in opencv.items() if numbers(v) < (4, 10)]
    if old and numbers(packages.get('numpy', '0')) >= (2, ):
        yield finding(
            'problem', 'numpy', f'{old[0]} is built for numpy 1, and numpy is '
            f'{packages["numpy"]}', 'pip install -U '
            f'{" ".join(opencv)}; or pip install "numpy<2"')
    for name, (first, level, fault, remedy) in TOO_NEW.items():
        if numbers(packages.get(name, '0')) >= first:
            yield finding(level, name, f'{name} {packages[name]} {fault}',
                          f'pip install {remedy}')


def check_requirements(packages: dict[str, str]) -> Iterator[dict]:
    """Return requirements of installed packages that are not met."""
    try:
        from packaging.requirements import Requirement
    except ImportError:
        yield finding('note', 'packaging', 'it is not installed, so that '
                      'requirements were not checked', 'pip install packaging')
        return
    if 'mmvidattn' not in packages:
        yield finding('note', 'mmvidattn', 'it is not installed but found in '
                      f'{PACKAGE.parent}, so that its requirements were not '
                      'checked', 'pip install -e ".[lite]" in the checkout')
    for owner in 'mmvidattn', 'mmaction2', 'mmengine', 'torch', 'torchvision':
        if owner not in packages:
            continue
        for line in importlib.metadata.requires(owner) or ():
            needed = Requirement(line)
            if needed.marker and not needed.marker.evaluate({'extra': ''}):
                continue
            try:
                version = importlib.metadata.version(needed.name)
            except importlib.metadata.PackageNotFoundError:
                if needed.name in INTERCHANGEABLE:
                    # A later check reports missing modules.
                    continue
                version = None
            # Local builds of a version, such as +cpu, are accepted.
            if version and needed.specifier.contains(
                    version.partition('+')[0], prereleases=True):
                continue
            needed.marker = None
            yield finding(
                'problem', needed.name, f'{owner} {packages[owner]} needs '
                f'{needed}, and ' + (f'{version} is installed' if version else
                                     'it is not installed'),
                f'pip install "{needed}"' if owner != 'torchvision' else
                'pip install the torchvision of your torch, or pip uninstall '
                'torchvision')


def check_machine() -> Iterator[dict]:
    """Describe the system and its programs."""
    yield finding('ok', 'python', f'{platform.python_version()} in '
                  f'{sys.prefix}')
    yield finding('ok', 'system', f'{platform.platform()}, '
                  f'{os.cpu_count()} processors')
    path = shutil.which('ffmpeg')
    output = path and run([path, '-version'])
    if output:
        yield finding('ok', 'ffmpeg', output.splitlines()[0])
    else:
        yield finding(
            'note', 'ffmpeg', 'this program is not installed: mmvidattn does '
                              'not need it, but other tools use it to convert '
                              'and cut videos',
            'apt-get install ffmpeg')
    shared = Path('/dev/shm')
    if hasattr(os, 'statvfs') and shared.is_dir():
        stat = os.statvfs(shared)
        size = stat.f_blocks * stat.f_frsize / 2**30
        if size < 1:
            yield finding(
                'note', 'shared memory', f'/dev/shm has {size:.2f} GiB, too '
                'little for workers that load clips ("bus error")',
                'docker run --shm-size=8g, or num_workers=0')


def run(command: list[str]) -> str | None:
    """Return the output of a program, or None if it fails."""
    try:
        return subprocess.run(
            command, capture_output=True, text=True, timeout=60,
            check=True).stdout
    except (OSError, subprocess.SubprocessError):
        return None


# The functions below run in the separate process.


def try_numpy() -> None:
    import numpy
    numpy.linalg.inv(numpy.eye(2))


def try_torch() -> None:
    import numpy
    import torch
    torch.from_numpy(numpy.ones(2)).numpy()


def try_cv2() -> None:
    import cv2
    import numpy
    cv2.resize(numpy.zeros((4, 4, 3), numpy.uint8), (2, 2))


def try_torchvision() -> None:
    import torch
    import torchvision
    torchvision.ops.nms(torch.ones(1, 4), torch.ones(1), 0.5)


def try_mmvidattn() -> None:
    # `import mmvidattn` is light: it imports mmaction2 only when it is used.
    importlib.import_module('mmaction.registry')


TRIALS = dict(numpy=try_numpy, torch=try_torch, cv2=try_cv2,
              torchvision=try_torchvision, mmvidattn=try_mmvidattn)


def check_module(name: str) -> Iterator[dict]:
    """Import a module and use it."""
    if importlib.util.find_spec(name) is None:
        if name in REQUIRED:
            yield finding('problem', name, f'there is no module {name}',
                          f'pip install {REQUIRED[name]}')
        elif name in DECODERS:
            yield finding('note', name, f'there is no module {name}: '
                          f'{DECODERS[name]}', f'pip install {name}')
        return
    try:
        module = importlib.import_module(name)
        TRIALS.get(name, lambda: None)()
    except BaseException as error:
        # Report both ends of the chain: the last exception may come from a
        # workaround, the first one is the cause.
        chain = [error]
        while chain[-1].__cause__ or chain[-1].__context__:
            chain.append(chain[-1].__cause__ or chain[-1].__context__)
        texts = [f'{type(e).__name__}: {e}' for e in chain]
        yield finding('problem', name, 'it cannot be imported: '
                      + ', from '.join(texts[:2]), remedy_of(texts))
        return
    if module.__file__ is None:
        yield finding(
            'problem', name, 'only an empty folder of this package remains in '
            f'{[*module.__path__][0]}', 'remove that folder, and pip install '
            f'--force-reinstall {REQUIRED.get(name, name)}')
        return
    version = getattr(module, '__version__', '')
    yield finding('ok', name, ' '.join(filter(None, (
        version, f'in {Path(module.__file__).parent}'))))
    yield from FURTHER.get(name, tuple)()


def check_workarounds() -> Iterator[dict]:
    """Report the workarounds that importing mmvidattn applied."""
    from mmvidattn import compat

    compat.apply_all()
    left_out = [one.name for one in compat.WORKAROUNDS
                if one.skipped and compat.SKIP in one.skipped]
    applied = sum(not one.skipped for one in compat.WORKAROUNDS)
    yield finding('ok', 'workarounds',
                  f'{applied} of {len(compat.WORKAROUNDS)} workarounds for '
                  'the OpenMMLab stack are needed and applied; mmvidattn '
                  'compat lists them')
    if left_out:
        yield finding('note', 'workarounds', f'{", ".join(left_out)} left out',
                      f'unset {compat.SKIP}')


def remedy_of(errors: Sequence[str]) -> str:
    """Return the remedy for the errors of an import."""
    for pattern, remedy in REMEDIES:
        for error in errors:
            match = re.search(pattern, error, re.DOTALL)
            if match:
                return match.expand(remedy)
    return ('see the problems above; if there are none, report it with the '
            'output of mmvidattn doctor --json')


def check_devices() -> Iterator[dict]:
    """Return the devices that torch can use."""
    import torch

    yield finding('ok', 'cpu', f'threads: {torch.get_num_threads()}, '
                  f'{torch.backends.cpu.get_cpu_capability()}'
                  + ''.join(f', {name}={os.environ[name]}' for name in LIMITS
                            if name in os.environ))
    for i in range(torch.cuda.device_count()):
        facts = torch.cuda.get_device_properties(i)
        yield finding(
            'ok', f'cuda:{i}', f'{facts.name}, '
            f'{facts.total_memory / 2**30:.0f} GiB, compute capability '
            f'{facts.major}.{facts.minor}, CUDA {torch.version.cuda}')
        capability = f'{facts.major}{facts.minor}'
        made_for = torch.cuda.get_arch_list()
        if made_for and torch.version.hip is None and not any(
                name.startswith('compute_') or name[3:-1] == capability[:-1]
                for name in made_for):
            yield finding(
                'problem', f'cuda:{i}', f'torch {torch.__version__} is made '
                f'for {", ".join(made_for)}, and not for this device',
                'pip install a torch whose CUDA supports it')
    if torch.backends.mps.is_available():
        yield finding('ok', 'mps', 'torch computes on it; not tested here')
    cards = run(['nvidia-smi', '-L'])
    if not torch.cuda.is_available() and (
            cards or glob.glob('/dev/nvidia[0-9]*')):
        if torch.version.cuda is None:
            yield finding(
                'note', 'cuda', 'there is a GPU, and torch '
                f'{torch.__version__} is a build without CUDA',
                'pip install the torch for CUDA that https://pytorch.org '
                'lists')
        else:
            try:
                torch.cuda.init()
                reason = 'torch.cuda.is_available() is false'
            except Exception as error:
                reason = str(error)
            yield finding(
                'problem', 'cuda', f'there is a GPU, and torch '
                f'{torch.__version__} cannot use it: {reason}',
                'update the driver, or install a torch for an older CUDA; in '
                'a container: docker run --gpus all')


# Checks that run after a module is imported.
FURTHER = dict(torch=check_devices, mmvidattn=check_workarounds)


def environment() -> dict[str, str]:
    """Return the environment as mmengine's runner logs it."""
    from mmengine.utils.dl_utils import collect_env
    return {key: str(value) for key, value in collect_env().items()}


def probe(arguments: Sequence[str]) -> None:
    """Run checks; print a JSON line at the start of each and per finding.

    Args:
        arguments: 'quick' or 'full', then the names of checks to skip.
    """
    warnings.simplefilter('ignore')
    level, *done = arguments
    out = os.fdopen(os.dup(1), 'w', buffering=1, encoding='utf-8')
    # Redirect what other packages print, to keep it out of the report.
    os.dup2(2, 1)

    def say(**kwargs) -> None:
        print(json.dumps(kwargs), file=out)

    def do(steps: dict[str, Callable]) -> None:
        for name, step in steps.items():
            if name in done:
                continue
            say(begin=name)
            try:
                for result in step():
                    say(finding=result)
            except Exception as error:
                say(finding=finding(
                    'problem', name, f'{type(error).__name__}: {error}',
                    remedy_of([str(error)])))

    *dependencies, ours = REQUIRED
    do({name: lambda n=name: check_module(n)
        for name in (*dependencies, *OPTIONAL, ours)})
    if 'environment' not in done and 'mmengine' in sys.modules:
        say(begin='environment')
        try:
            say(environment=environment())
        except Exception as error:
            # Best effort; only used in the report.
            say(environment=dict(error=repr(error)))
    # mmvidattn was imported in this process, or in one that crashed later.
    if ours in sys.modules or ours in done[:-1]:
        from mmvidattn.apis import self_test
        checks = self_test.list_checks(quick=level == 'quick')
        do({name: lambda c=check: (finding(*result) for result in c())
            for name, check in checks.items()})


def probe_in_process(level: str, limit: int) -> Iterator[dict]:
    """Yield the lines of :func:`probe`, restarting it after each crash.

    Args:
        level: 'quick' or 'full'.
        limit: Time limit of a process, in seconds.
    """
    start = ('import runpy, sys; sys.path[:] = filter(None, sys.path); '
             'runpy.run_path(sys.argv[1])["probe"](sys.argv[2:])')
    # Pass on the search path, which a new process may lack.
    env = dict(os.environ, PYTHONPATH=os.pathsep.join(
        [*filter(None, sys.path), str(PACKAGE.parent)]),
        PYTHONIOENCODING='utf-8')
    done: list[str] = []
    while True:
        step = None
        with tempfile.TemporaryFile() as errors:
            process = subprocess.Popen(
                [sys.executable, '-c', start, __file__, level, *done],
                stdout=subprocess.PIPE, stderr=errors, env=env,
                encoding='utf-8')
            timer = threading.Timer(limit, process.kill)
            timer.start()
            for line in process.stdout:
                message = json.loads(line)
                if 'begin' in message:
                    step = message['begin']
                    done.append(step)
                else:
                    yield message
            code = process.wait()
            timed_out = not timer.is_alive()
            timer.cancel()
            errors.seek(0)
            tail = errors.read().decode(errors='replace').strip()
        if code == 0:
            return
        why = (f'it took more than {limit} s' if timed_out else
               f'the process crashed with status {code}')
        last = tail.splitlines()[-1] if tail else ''
        package = 'decord' if step == 'decoding' else step
        yield dict(finding=finding(
            'problem', step or 'python', f'{why}: {last}' if last else why,
            'pip install --force-reinstall '
            f'{REQUIRED.get(package, package)}'
            if package in (*REQUIRED, *OPTIONAL) else remedy_of([tail])))
        if step is None or timed_out:
            return


def collect(quick: bool, limit: int) -> Iterator[dict]:
    """Yield all findings and the other parts of a report in order."""
    packages = versions()
    yield dict(packages=packages, variables={
        name: one_line(value) for name, value in os.environ.items()
        if name.startswith(VARIABLES)})
    for part in check_machine(), check_packages(packages):
        for item in part:
            yield dict(finding=item)
    yield from probe_in_process('quick' if quick else 'full', limit)


def describe(item: dict) -> str:
    line = f'{item["level"]:8} {item["topic"]}: {item["text"]}'
    return line + (f' -> {item["remedy"]}' if item['remedy'] else '')


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        '--quick', action='store_true', help='leave out the self-test')
    parser.add_argument(
        '--json', action='store_true',
        help='print everything as JSON, for a bug report')
    parser.add_argument(
        '--time-limit', type=int, default=600, metavar='SECONDS',
        help='time limit of a check (default: 600)')
    args = parser.parse_args(argv)
    printable = runpy.run_path(
        str(PACKAGE / 'utils/printable.py'))['printable']
    report = dict(
        mmvidattn=runpy.run_path(str(PACKAGE / 'version.py'))['__version__'],
        python=sys.version, platform=platform.platform(), findings=[])
    for message in collect(args.quick, args.time_limit):
        if 'finding' in message:
            report['findings'].append(message['finding'])
            if not args.json:
                print(printable(describe(message['finding']), '\n'),
                      flush=True)
        else:
            report.update(message)
    problems, notes = (
        sum(item['level'] == level for item in report['findings'])
        for level in ('problem', 'note'))
    if args.json:
        print(json.dumps(dict(report, ok=not problems), indent=2))
    else:
        print(f'{problems or "no"} problem{"s" * (problems != 1)}, '
              f'{notes or "no"} note{"s" * (notes != 1)}')
    raise SystemExit(bool(problems))
