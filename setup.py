# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import runpy
import shutil
from pathlib import Path

from setuptools import find_packages, setup
from setuptools.command.build_py import build_py

ROOT = Path(__file__).resolve().parent
MIM_FOLDERS = 'configs', 'tools'
MIM_FILE = 'model-index.yml'
SERVE = ['fastapi', 'uvicorn', 'websockets']
# decord, which mmaction2 requires, has wheels only for Linux and Windows on
# x86-64.
HAS_DECORD = ('platform_machine in "x86_64 AMD64" and '
              'sys_platform != "darwin"')
DECORD = f'decord; {HAS_DECORD}'
WEBHOOK = ['httpx>=0.27']
REMOTE = ['fsspec', 's3fs>=2025']
ONNX = ['onnx', 'onnxruntime', 'onnxscript']
# The last mkdocstrings for Python 3.10 fails with pymdown-extensions 12. ruff
# wraps long signatures.
DOCS = ['mkdocs-material', 'mkdocstrings[python]', 'pymdown-extensions!=12.*',
        'ruff']


class BuildWithMim(build_py):
    """Put configs and tools into the package, where mim looks for them.

    A build gets copies. An editable install gets links, so that edits take
    effect.
    """

    def run(self) -> None:
        super().run()
        lib = ROOT if self.editable_mode else Path(self.build_lib)
        mim = lib / 'mmvidattn' / '.mim'
        if mim.is_dir():
            shutil.rmtree(mim)
        mim.mkdir(parents=True)
        for name in *MIM_FOLDERS, MIM_FILE:
            source = ROOT / name
            if not source.exists():
                continue
            if self.editable_mode:
                (mim / name).symlink_to(Path('..', '..', name))
            elif source.is_dir():
                shutil.copytree(
                    source, mim / name,
                    ignore=shutil.ignore_patterns('__pycache__', '*.pyc'))
            else:
                shutil.copy(source, mim / name)


readme = ROOT / 'README.md'
setup(
    name='mmvidattn',
    version=runpy.run_path(str(ROOT / 'mmvidattn/version.py'))['__version__'],
    description='Efficient attention for video, an extension of mmaction2',
    long_description=readme.read_text('utf-8') if readme.exists() else '',
    long_description_content_type='text/markdown',
    license='Apache-2.0',
    license_files=['LICENSE'],
    # The command line, which lists its commands without importing the package.
    entry_points=dict(
        console_scripts=['mmvidattn = mmvidattn.commands:main']),
    packages=find_packages(include=['mmvidattn', 'mmvidattn.*']),
    package_data={
        'mmvidattn': ['weights/*/*'],
        'mmvidattn.live': ['page.html', 'page.js'],
    },
    cmdclass=dict(build_py=BuildWithMim),
    zip_safe=False,
    python_requires='>=3.10',
    install_requires=[
        # On platforms without a wheel of decord, install mmaction2 first,
        # without its dependencies: pip install --no-deps mmaction2==1.2.0
        f'mmaction2==1.2.0; {HAS_DECORD}',
        # Dependencies of mmaction2, on every platform.
        'einops',
        'matplotlib',
        'scipy',
        'mmengine>=0.10.5,<0.11',
        # mmengine imports pkg_resources, which setuptools 82 dropped.
        'setuptools<81',
        # mmaction2 imports it and does not declare it.
        'importlib_metadata',
        # The first torch with a list of types that are safe to unpickle.
        'torch>=2.4',
        # torch.save of 2.5 fails there.
        'torch>=2.6; python_version >= "3.13"',
        'numpy>=1.24',
        # mmaction2 and mmcv-lite each require another one of these packages,
        # which write the same files: their versions must be equal, and 5.1
        # exists of only one.
        'opencv-python<5.1',
        'opencv-contrib-python<5.1',
        'pillow',
        # Decodes live sources, and checks other decoders. From 17.1 on, it
        # closes files immediately.
        'av>=17.1',
        DECORD,
        'safetensors',
    ],
    extras_require=dict(
        # mmcv and mmcv-lite both provide the module mmcv: either will do.
        lite=['mmcv-lite==2.1.0'],
        # mmaction2 imports moviepy.editor, which moviepy 2 removed.
        vis=['moviepy>=1.0.3,<2', 'seaborn', 'tensorboard'],
        # mmvidattn export to ONNX; onnxruntime checks the exported file.
        onnx=ONNX,
        # Needs the torchvision that fits your torch.
        # Networks to inflate.
        timm=['timm'],
        # Weights by hf://OWNER/MODEL@REVISION.
        hub=['huggingface_hub'],
        # Files in object stores: s3://, http:// and, with further packages,
        # gs:// and az://.
        remote=REMOTE,
        # Scenic's checkpoints, for mmvidattn convert.
        flax=['msgpack'],
        # RULSTM's features, for tools/data/prepare.py.
        lmdb=['lmdb'],
        # Long lists of videos on a Ray cluster (--engine ray). Ray 2.64 will
        # remove the option max_retries of many_videos.py.
        ray=['ray[data]<2.64'],
        # The page of tools/stream.py --serve.
        serve=SERVE,
        # tools/stream.py --webhook.
        webhook=WEBHOOK,
        # The documentation site (mkdocs build).
        docs=DOCS,
        # selenium needs an installed Chromium; without one, its tests are
        # skipped.
        dev=['hypothesis', 'kubernetes-validate', 'lmdb', 'msgpack',
             'pympi-ling', 'pytest', 'pytest-xdist', 'scikit-learn',
             'selenium', 'transformers', *DOCS, *ONNX, *REMOTE, *SERVE,
             *WEBHOOK],
    ),
)
