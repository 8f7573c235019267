# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Configs: find one by its name, load it, and apply options.

A name is the path of a config file or of a bundle, ``mmvidattn::FILE``, or the
name of a config in the folder of configs: of a file there, of a feature
extractor in ``_base_/features``, or of a row of an ablation table. The dict
``rows`` of ``<family>/ablations/<family>.py`` has an entry for each row: its
base (a config or another row), and options in the form of ``--cfg-options``.
"""
import ast
import difflib
import inspect
import runpy
import sys
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from fnmatch import fnmatch
from pathlib import Path
from traceback import extract_tb
from typing import Any, NamedTuple

from mmengine.config import Config
from mmengine.runner import Runner

from ..utils.config_folder import config_folder, find_base
from ..utils.printable import describe_error
from ..utils.video_backend import apply_video_backend
from .bundle_file import is_bundle, load_bundle

CHECKPOINT_SUFFIXES = ('.pth', '.pt', '.pyth', '.ckpt', '.bin', '.pkl',
                       '.safetensors')
ABLATIONS = 'ablations'

# Options that take the value of a variable at the top level of a config.
NUMBERS = dict(
    num_classes=('num_classes', 'gt_action'),
    num_nouns=('num_nouns', 'gt_noun'),
    num_verbs=('num_verbs', 'gt_verb'),
    num_frames=('num_frames', 'clip_len'),
    img_size=('img_size', 'size', 'crop_size', 'input_size'))
# Options in pixels, in proportion to img_size.
SCALED = 'scale', 'scale_range'
PIPELINES = 'train_pipeline', 'val_pipeline', 'test_pipeline'
VARIABLES = 'data_root', *NUMBERS
# Model options that are equivalent to a variable.
MODEL_VARIABLES = {
    'model.backbone.num_frames': 'num_frames',
    'model.backbone.img_size': 'img_size',
    'model.cls_head.num_classes': 'num_classes'
}
# Top-level keys that the runner, mmvidattn or mmaction2 read.
KNOWN_KEYS = {
    *inspect.signature(Runner).parameters, 'activation_checkpointing',
    'compile', 'console_log_level', 'custom_imports', 'efficient_conv_bn_eval',
    'find_unused_parameters', 'model_wrapper_cfg', 'online', 'runner_type',
    'sync_bn', 'test_pipeline', 'tta_model', 'tta_pipeline', 'val_pipeline',
    'video_backend'
}
MAX_SUGGESTIONS = 3


def list_models(pattern: str = '*', ablations: bool = False) -> list[str]:
    """List the names of all models, sorted.

    Args:
        pattern: Shell pattern, e.g. ``'linear_ff_*'``. Defaults to ``'*'``.
        ablations: Include the rows of the papers' ablation tables, such as
            ``linear_ff_table05_relu``. Defaults to False.
    """
    folder = config_folder()
    names = [path.stem for path in folder.glob('*.py')]
    if ablations:
        names += [row.name for row in list_rows()]
    return sorted(name for name in names if fnmatch(name, pattern))


class Row(NamedTuple):
    """Row of an ablation table, which is a config."""
    name: str
    # File that defines the row.
    file: Path
    # Number of the table in the paper, e.g. 'Table 3', and title in the table.
    table: str
    row: str
    # Name of the inherited config or row, and changes as for --cfg-options.
    base: str
    options: dict[str, Any] = {}
    # Results that the paper reports, and a remark on them.
    paper: str = ''
    note: str = ''


def list_rows() -> Iterator[Row]:
    """List the rows of all ablation tables."""
    for file in sorted(config_folder().glob(f'*/{ABLATIONS}/*.py')):
        for name, row in runpy.run_path(str(file))['rows'].items():
            yield Row(name, file, **row)


def find_row(name: str) -> Row | None:
    """Find a row of an ablation table, or return None."""
    return next((row for row in list_rows() if row.name == name), None)


def find_config(name: str | Path) -> Path:
    """Find the path of a config by its name or path; see above.

    For a row of an ablation table, it is the virtual path ``<row>.py`` beside
    the table, which :func:`load_config` can read.

    Raises:
        FileNotFoundError: If ``name`` is a path that does not exist.
        ValueError: If ``name`` is not the name of a model.
    """
    package, _, inner = str(name).partition('::')
    if package == 'mmvidattn' and inner:
        return find_base(inner)
    path = Path(name)
    if is_checkpoint(name):
        raise ValueError(f'{name} is a checkpoint, where a config is expected')
    if path.is_file() or is_bundle(path):
        return path
    is_path = path.suffix or len(path.parts) > 1
    if not is_path:
        for place in config_folder(), config_folder() / '_base_/features':
            if (place / f'{name}.py').is_file():
                return place / f'{name}.py'
    if not is_path or path.suffix == '.py' and path.parent.name == ABLATIONS:
        row = find_row(path.stem)
        if row is not None:
            return row.file.with_name(f'{row.name}.py')
    if is_path:
        raise FileNotFoundError(
            f'the folder {name} is not a bundle: it has no bundle.json'
            if path.is_dir() else f'no config file {name}' + ''.join(
                f'; did you mean {path.with_name(each)}?' for each in
                difflib.get_close_matches(path.name, [
                    one.name for one in path.parent.glob('*.py')], 1)))
    close = difflib.get_close_matches(
        str(name), list_models(ablations=True), cutoff=0.4)
    raise ValueError(
        f'no model {str(name)!r}; '
        + (f'did you mean {" or ".join(close)}? ' if close else '')
        + 'mmvidattn.list_models() lists all models')


def is_checkpoint(name: Any) -> bool:
    """Return True if a path or URL has the suffix of a checkpoint."""
    return str(name).endswith(CHECKPOINT_SUFFIXES)


def is_config(name: Any) -> bool:
    """Return True for the name or the path of a config, except a bundle."""
    try:
        return find_config(name).suffix == '.py'
    except (ValueError, FileNotFoundError):
        return False


def name_of(config: str | Path | Config) -> str:
    """Return the name or the path of a config, for errors."""
    return str(config.filename if isinstance(config, Config) else config)


def load_config(name: str | Path | Config,
                cfg_options: dict[str, Any] | None = None) -> Config:
    """Load a config.

    Args:
        name: Name or path; see :func:`find_config`. A bundle contains only the
            part of its config that predictions need. A loaded config is
            changed in place and returned.
        cfg_options: Options to change in the config, by dotted keys; see
            :func:`apply_options`.

    Raises:
        ValueError: If the ``video_backend`` is invalid, or if the file is a
            table of ablations.
    """
    if isinstance(name, Config):
        cfg = name
    elif is_bundle(path := find_config(name)):
        cfg = load_bundle(path).config
    elif path.is_file():
        cfg = _load_file(path)
    else:
        row = find_row(path.stem)
        cfg = load_config(row.base, row.options)
        cfg = Config(cfg.to_dict(), row.file.read_text('utf-8'), path)
    if cfg_options:
        apply_options(cfg, cfg_options)
    apply_video_backend(cfg)
    return cfg


def _load_file(path: Path) -> Config:
    # As for a script, the modules beside a config can be imported.
    folder = str(path.parent.resolve())
    if folder not in sys.path and not path.is_relative_to(config_folder()):
        sys.path.append(folder)
    try:
        if path.suffix == '.py':
            # mmengine's errors do not name the file.
            ast.parse(path.read_bytes(), path)
        cfg = Config.fromfile(path)
    except (SyntaxError, NameError) as error:
        # Or in a module that the config imports.
        file = Path(getattr(error, 'filename', None) or path)
        raise ValueError(str(file) + ' is not a config' * (
            file.name == path.name) + f': {error}') from error
    except FileNotFoundError as error:
        if '::' in str(error) or '.mim' in str(error):
            raise
        raise FileNotFoundError(
            f'{path}: {describe_error(error)}. Configs of this package are '
            "named like _base_ = 'mmvidattn::linear_ff_ssv2.py'") from error
    except ImportError as error:
        # mmengine raises two other errors after the cause.
        cause = getattr(error.__cause__, '__context__', None) or error
        raise ImportError(
            f'{path}: {cause}. The modules of custom_imports are searched '
            f'beside the config ({folder}), and in PYTHONPATH') from error
    except RuntimeError as error:
        if str(error):
            raise
        # mmengine's placeholder of an imported name was called.
        raise ValueError(
            f'{path} is not a config: it has code, and is perhaps a module '
            'that a config imports') from error
    if 'rows' in cfg and 'model' not in cfg:
        raise ValueError('a table of ablations is not a config; give the name '
                         f'of a row: {", ".join(cfg["rows"])}')
    return cfg


def apply_options(cfg: Config, options: Mapping[str, Any]) -> None:
    """Change options of a config, and all values that depend on them.

    * ``data_root``, ``num_classes``, ``num_nouns``, ``num_verbs``,
      ``num_frames`` and ``img_size`` at the top level of the config also
      change all values computed from them; see :func:`dependent_options`.
    * ``model.backbone.num_frames``, ``model.backbone.img_size`` and
      ``model.cls_head.num_classes`` also change the top-level variable, if it
      had the same value.
    * ``train_pipeline``, ``val_pipeline`` and ``test_pipeline`` also change
      the pipeline of the data loader, if both were equal.
    * ``video_backend`` changes every step that opens or decodes videos; see
      :func:`~mmvidattn.utils.video_backend.apply_video_backend`.

    An explicit option for a dependent value takes precedence. An unused
    option triggers a warning that suggests the closest valid one.

    The config changes in place. Options are values by dotted keys, in which a
    number is an index into a list.
    """
    before = cfg.to_dict()
    leaves = dict(leaves_of(before))
    # 1. Set variables and the values computed from them.
    variables = {key: options[key] for key in VARIABLES if key in options}
    for key, name in MODEL_VARIABLES.items():
        if key in options and name not in options and before.get(
                name) == leaves.get(key) is not None:
            variables[name] = options[key]
    used = set()
    for name, value in variables.items():
        if before.get(name) is None:
            continue
        if name == 'data_root':
            variables[name] = value = str(value).rstrip('/')
        changes = dependent_options(leaves, name, value)
        cfg.merge_from_dict({**changes, name: value})
        if {key.partition('.')[0] for key in changes} & KNOWN_KEYS:
            used.add(name)
    # 2. Repeat changes of a pipeline in its data loader.
    repeated = {}
    for key, value in options.items():
        pipeline, _, rest = key.partition('.')
        copy = f'{pipeline.split("_")[0]}_dataloader.dataset.pipeline'
        if pipeline in PIPELINES and pipeline in before and leaves.get(
                copy) == before[pipeline]:
            repeated['.'.join(filter(None, (copy, rest)))] = value
            used.add(key)
    # 3. Merge the options, which take precedence.
    cfg.merge_from_dict({
        **repeated, **options,
        **{name: variables[name] for name in used & variables.keys()}})
    for key in options:
        # Constructors reject unknown arguments.
        if key not in used and key.partition('.')[0] not in KNOWN_KEYS:
            names = ' or '.join(_suggest(key, leaves)[:MAX_SUGGESTIONS])
            warnings.warn(
                f'option {key} has no effect: nothing reads it'
                + (f'; did you mean {names}?' if names else ''), stacklevel=3)


def dependent_options(leaves: Mapping[str, Any], name: str, value: Any
                      ) -> dict[str, Any]:
    """Return the new values of all options that were set from a variable.

    * ``data_root``: every path at or below the old root moves to the new
      one: datasets, annotation files, classes, subsets and counts.
    * Numbers: all options in :data:`NUMBERS` that have the old value.
    * ``img_size``: also the scales of pipelines, in proportion.

    ``leaves`` are the options of the config by dotted keys.
    """
    old = leaves[name]

    def changed(key: str, item: Any) -> Any:
        if isinstance(item, (list, tuple)):
            return type(item)([changed(key, one) for one in item])
        if name == 'data_root':
            is_inside = isinstance(item, str) and f'{item}/'.startswith(
                f'{old.rstrip("/")}/')
            return value + item[len(old.rstrip('/')):] if is_inside else item
        if key in NUMBERS[name] and item == old:
            return value
        if name == 'img_size' and key in SCALED and type(item) is int:
            return item if item < 0 else round(item * value / old)
        return item

    found = {}
    for key, item in leaves.items():
        last = key.rpartition('.')[2]
        # Items of lists change with their list.
        if key != name and not last.isdigit() and (
                new := changed(last, item)) != item:
            found[key] = new
    return found


def _suggest(key: str, leaves: dict[str, Any]) -> list[str]:
    """Return valid keys with an unused key's value, or a similar name."""
    first, _, rest = key.partition('.')
    used = [name for name in leaves if name.partition('.')[0] in KNOWN_KEYS]
    value = leaves.get(first)
    # Numbers may be equal by chance.
    if isinstance(value, (str, dict, list)) and value:
        same = ['.'.join(filter(None, (name, rest)))
                for name in used if leaves[name] == value]
        if same:
            return same
    last = key.rpartition('.')[2]
    return [name for name in used
            if name.rpartition('.')[2] == last] or difflib.get_close_matches(
                key, KNOWN_KEYS.union(used), cutoff=0.7)


def leaves_of(value: Any, name: str = '') -> Iterator[tuple[str, Any]]:
    """Yield all nested values with dotted keys; containers before items."""
    if name:
        yield name, value
    items = value.items() if isinstance(value, dict) else enumerate(
        value) if isinstance(value, list) else ()
    for key, item in items:
        yield from leaves_of(item, f'{name}.{key}' if name else str(key))


def key_of(cfg: Config, error: Exception) -> str:
    """Return the start of an error: ``model.backbone: ``, or ''."""
    part = getattr(error, 'part', None)
    # The owner of a part may have added options.
    parts = {f'{key}: ': len(each) for key, each in leaves_of(cfg.to_dict())
             if isinstance(part, dict) and isinstance(each, dict)
             and 'type' in each and each.items() <= {**part}.items()}
    key = max(parts, key=parts.get, default='')
    # A loop builds its loader.
    return key.replace('_cfg: ', '_dataloader: ') if any(
        one.name == 'build_dataloader' for one in extract_tb(
            error.__traceback__)) else key


@contextmanager
def located_errors(cfg: Config) -> Iterator[None]:
    """Let errors of a class start with its key in the config."""
    try:
        yield
    except (ValueError, TypeError, LookupError) as error:
        key = key_of(cfg, error)
        if not key:
            raise
        raise ValueError(key + describe_error(error)) from error
