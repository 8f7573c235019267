# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Check the installation: versions, imports, devices and one prediction.

    mmvidattn doctor
    mmvidattn doctor --json > report.json

Each line is a finding. A problem means that something fails; the exit status
is then 1. A note means that an optional part is missing.

Each check runs in a separate process, which may crash.
"""
import argparse
import importlib.metadata
import json
import os
import platform
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from ..utils.printable import printable

PACKAGE = Path(__file__).resolve().parents[1]
OPENCV = ('opencv-python', 'opencv-contrib-python', 'opencv-python-headless',
          'opencv-contrib-python-headless')
# Packages whose versions are reported.
NAMES = ('mmvidattn', 'mmaction2', 'mmengine', 'mmcv', 'mmcv-lite', 'torch',
         'torchvision', 'numpy', *OPENCV, 'av', 'decord', 'eva-decord',
         'safetensors', 'setuptools', 'onnx', 'onnxruntime')
# A check of an import also uses the module, because an empty folder that an
# uninstalled package left behind can be imported.
CHECKS = dict(
    numpy='import numpy; print(numpy.__version__)',
    cv2='import cv2, numpy; cv2.resize(numpy.zeros((4, 4)), (2, 2)); '
        'print(cv2.__version__)',
    av='import av; print(av.__version__)',
    torch='''
import shutil
import subprocess
import sys
import torch
torch.ones(2).numpy()
found = [f'{torch.__version__}, CPU with {torch.get_num_threads()} threads, '
         + torch.backends.cpu.get_cpu_capability()]
for i in range(torch.cuda.device_count()):
    facts = torch.cuda.get_device_properties(i)
    # Fails if this torch is not made for the device.
    torch.ones(2, device=f'cuda:{i}').sum().item()
    found.append(f'cuda:{i} {facts.name}, {facts.total_memory / 2**30:.0f} '
                 f'GiB, CUDA {torch.version.cuda}')
if torch.backends.mps.is_available():
    found.append('mps')
if len(found) == 1 and shutil.which('nvidia-smi') and not subprocess.run(
        ['nvidia-smi', '-L'], capture_output=True).returncode:
    if torch.version.cuda:
        sys.exit('torch cannot use the GPU that nvidia-smi lists: see the '
                 'CUDA versions of its driver and of torch')
    found.append('no GPU, because this torch is a build for CPUs')
print('; '.join(found))
''',
    mmcv='import mmcv, mmengine; '
         'print(f"{mmcv.__version__}, mmengine {mmengine.__version__}")',
    mmvidattn='import mmvidattn; print(mmvidattn.__version__)',
    # A square that moves to the right is a class of this model.
    prediction='''
import av
import mmvidattn
import numpy
with av.open('square.mp4', 'w') as file:
    stream = file.add_stream('mpeg4', rate=10)
    stream.width = stream.height = 64
    for i in range(16):
        frame = numpy.full((64, 64, 3), 60, numpy.uint8)
        frame[20:44, 2 * i + 4:2 * i + 28] = 220
        file.mux(stream.encode(av.VideoFrame.from_ndarray(frame, 'rgb24')))
    file.mux(stream.encode())
classifier = mmvidattn.VideoClassifier('linear_ff_tiny_motion', 'default')
best = classifier('square.mp4').predictions[0]
assert best.label == 'move right', f'expected move right, got {best}'
print(f'{best.label}, probability {best.score:.2f}')
''')


def check_versions(versions: dict[str, str]) -> Iterator[tuple[str, str, str]]:
    """Yield the level, topic and text of findings about versions."""
    yield 'ok', 'python', f'{platform.python_version()} in {sys.prefix}'
    yield 'ok', 'system', f'{platform.platform()}, {os.cpu_count()} processors'
    yield 'ok', 'packages', ', '.join(' '.join(x) for x in versions.items())
    for names, folder in (
            (OPENCV, 'cv2'), (('mmcv', 'mmcv-lite', 'onedl-mmcv'), 'mmcv')):
        found = {name: versions[name] for name in names if name in versions}
        # Equal versions of OpenCV write equal files.
        if len({*found.values()}) > 1 or folder == 'mmcv' and len(found) > 1:
            listed = ' and '.join(' '.join(x) for x in found.items())
            yield 'problem', folder, (
                f'{listed} write to the same folder {folder}; see '
                'docs/install.md')
    from packaging.requirements import Requirement
    if 'mmvidattn' not in versions:
        yield 'note', 'mmvidattn', (
            f'not installed, but found in {PACKAGE.parent}: its requirements '
            'are not checked')
    # Another package may provide the module.
    replaceable = OPENCV + ('decord', ) * ('eva-decord' in versions)
    for owner, line in [
            (owner, line) for owner in ('mmvidattn', 'mmaction2', 'mmengine')
            if owner in versions
            for line in importlib.metadata.requires(owner) or ()]:
        needed = Requirement(line)
        if needed.marker and not needed.marker.evaluate({'extra': ''}):
            continue
        needed.marker = None
        version = find_version(needed.name)
        # Builds such as 2.13.0+cpu meet a requirement of 2.13.0.
        if not (needed.specifier.contains(
                version.partition('+')[0], prereleases=True) if version
                else needed.name in replaceable):
            yield 'problem', needed.name, (
                f'{owner} needs {needed}, found {version or "none"}: pip '
                f'install "{needed}"')


def find_version(name: str) -> str | None:
    """Return the installed version of a package; None if not installed."""
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def run_check(name: str, code: str, limit: int = 600) -> tuple[str, str, str]:
    """Run code whose last line is a finding, for at most ``limit`` seconds."""
    # Pass on the search path, which a new process may lack. An empty working
    # directory has no modules.
    path = os.pathsep.join([*filter(None, sys.path), str(PACKAGE.parent)])
    env = dict(os.environ, PYTHONIOENCODING='utf-8', PYTHONPATH=path)
    with tempfile.TemporaryDirectory() as folder:
        try:
            done = subprocess.run(
                [sys.executable, '-c', code], cwd=folder, env=env,
                capture_output=True, encoding='utf-8', errors='replace',
                stdin=subprocess.DEVNULL, timeout=limit)
        except subprocess.TimeoutExpired:
            return 'problem', name, f'it took more than {limit} s'
    output = done.stderr if done.returncode else done.stdout
    text = ['', *output.strip().splitlines()][-1]
    if not done.returncode:
        return 'ok', name, text
    return 'problem', name, f'exit status {done.returncode}: {text}'


def collect() -> Iterator[tuple[str, str, str]]:
    """Yield all findings in order."""
    versions = {name: version for name in (*NAMES, 'onedl-mmcv')
                if (version := find_version(name))}
    yield from check_versions(versions)
    for name, code in CHECKS.items():
        yield run_check(name, code)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        '--json', action='store_true',
        help='print a report for a bug report as JSON')


def run(args: argparse.Namespace) -> None:
    findings = []
    for level, topic, text in collect():
        # Do not publish the user's name. The home folder of a service is /.
        text = re.sub(rf'{re.escape(str(Path.home()))}(?=[/\\])', '~', text)
        findings.append(dict(level=level, topic=topic, text=text))
        if not args.json:
            print(printable(f'{level:8} {topic}: {text}'), flush=True)
    count = sum(item['level'] == 'problem' for item in findings)
    print(json.dumps(dict(ok=not count, findings=findings), indent=2)
          if args.json else f'{count or "no"} problem{"s" * (count != 1)}')
    raise SystemExit(bool(count))
