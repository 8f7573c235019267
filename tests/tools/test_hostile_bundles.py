# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Bundles of a stranger: each key of each config replaced by an attack."""
import hashlib
import json
import sys
import zipfile

import pytest
import torch
from mmaction.registry import MODELS, TRANSFORMS

import mmvidattn
from mmvidattn.apis import load_bundle, load_config
from mmvidattn.apis.bundle_file import clean_config, write_bundle
from mmvidattn.apis.bundle_types import registry as bundle_types
from mmvidattn.apis.bundle_types.registry import BundleConfig, types_of

NAME = 'linear_ff_tiny_motion'
# Module that the attacks try to import. It writes the canary file.
CANARY = 'canary_module'
# Message for keys that a bundle's config does not keep.
DROPPED = 'the key is dropped'
EVENTS = ('os.system', 'os.exec', 'os.posix_spawn', 'os.spawn', 'os.fork',
          'subprocess.Popen')


class Watch:
    """Audit hook that collects what an attack causes, while it is armed."""

    def __init__(self, folder):
        self.folder = folder
        self.seen = None
        sys.addaudithook(self)

    def __call__(self, event, args):
        if self.seen is not None and (
                # Libraries start harmless programs, such as uname.
                event in EVENTS and 'canary' in str(args)
                or event == 'import' and CANARY in str(args[0])
                or event == 'exec' and CANARY in args[0].co_names
                or event == 'open' and 'outside' in str(args[0])):
            self.seen.append((event, str(args)))

    def call(self, function, *args):
        """Call a function, and check what it causes."""
        self.seen = []
        try:
            return function(*args)
        finally:
            seen, self.seen = self.seen, None
            assert seen == [] and CANARY not in sys.modules
            assert not (self.folder / 'canary').exists()

    def refused(self, function, *args):
        """Call a function that must refuse, and return its message."""
        with pytest.raises((ValueError, SystemExit)) as error:
            self.call(function, *args)
        message = str(error.value)
        assert message and message.isprintable(), message
        return message


@pytest.fixture(scope='module')
def watch(tmp_path_factory):
    folder = tmp_path_factory.mktemp('canary')
    (folder / f'{CANARY}.py').write_text(
        'import pathlib\n'
        f'run = pathlib.Path({str(folder / "canary")!r}).touch\nrun()\n')
    (folder / 'outside.txt').write_text('1')
    watch = Watch(folder)
    sys.path.insert(0, str(folder))
    yield watch
    sys.path.remove(str(folder))


def attacks(folder):
    run = f'touch {folder}/canary'
    return [dict(type='os.system', command=run),
            dict(type=f'{CANARY}.run'), f'{CANARY}.run',
            f'{folder}/outside.txt', '../outside.txt',
            f'1, 1)\nimport {CANARY}\n{CANARY}.run()\nprint(']


def key_paths(value, path=()):
    """Yield the paths of all keys of a config, and of one item per list."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield (*path, key)
            yield from key_paths(item, (*path, key))
    elif isinstance(value, list):
        for number, item in enumerate(value):
            yield from key_paths(item, (*path, number))


def places(names):
    """Return one config and path for each distinct path of keys."""
    found = {}
    for name in names:
        for path in key_paths(clean_config(load_config(name))):
            keys = '.'.join('#' if isinstance(part, int) else part
                            for part in path)
            found.setdefault(keys, (name, path))
    return found.values()


def plain_bundle(out, name=NAME, labels=(), **options):
    return write_bundle(out, name, clean_config(load_config(name)), [*labels],
                        dict(x=torch.ones(1)), **options)


def hostile(out, name, path, attack):
    """Write a bundle with an attack in place of a value."""
    bundle = plain_bundle(out, name, ['a'], replace=True)
    content = part = json.loads((bundle / 'bundle.json').read_text())
    for key in path[:-1]:
        part = part[key]
    part[path[-1]] = attack
    (bundle / 'bundle.json').write_text(json.dumps(content))
    return bundle


def load_without(bundle):
    """Load a bundle that must be refused, or else lose the attack."""
    config = str(load_bundle(bundle).config)
    assert 'os.system' not in config and CANARY not in config
    assert 'outside' not in config
    raise ValueError(DROPPED)


@pytest.mark.parametrize('names, least', [
    ([NAME], 50), pytest.param(mmvidattn.list_models(), 180,
                               marks=pytest.mark.slow)],
    ids=['one config', 'all configs'])
def test_attacks_on_each_key(watch, run_main, motion_dir, tmp_path, names,
                             least):
    """All commands refuse the bundles, for one config only the last one."""
    found = places(names)
    assert len(found) > least
    video, table = motion_dir / 'val/000000.mp4', motion_dir / 'labels.csv'
    table.write_text('file,label\n' + ''.join(
        f'val/{i:06}.mp4,{"ab"[i % 2]}\n' for i in range(8)))

    def check_commands():
        for words in (
                ('predict', video, bundle),
                ('stream', video, bundle, '--events', tmp_path / 'x.jsonl'),
                ('export', bundle, tmp_path / 'x.pt2'),
                ('finetune', table, '--weights', bundle, '--model', NAME,
                 '--work-dir', tmp_path / 'run')):
            message = watch.refused(run_main, *words)
            assert 'bundle' in message, (words, message)
        assert [path.name for path in tmp_path.iterdir()] == ['bundle']

    for number, (name, path) in enumerate(found):
        mine = attacks(watch.folder)
        for attack in mine if len(names) > 1 else mine[number % 2::2]:
            bundle = hostile(tmp_path / 'bundle', name, ('config', *path),
                             attack)
            message = watch.refused(load_without, bundle)
            last = [key for key in path if isinstance(key, str)][-1]
            assert last in message or 'is damaged' in message or (
                message == DROPPED), (path, message)
            if len(names) > 1:
                check_commands()
    check_commands()


def test_other_keys_are_text(watch, tmp_path):
    """Names and versions are printed only, so any text loads as a text."""
    for path in ('name', ), ('versions', 'torch'), ('labels', 0):
        for attack in attacks(watch.folder):
            found = watch.call(load_bundle, hostile(
                tmp_path / 'bundle', NAME, path, attack))
            for text in found.name, *found.labels:
                assert text.isprintable()


@pytest.mark.parametrize('change', [
    lambda model: model.update(data_preprocessor=dict(
        type='MultiModalDataPreprocessor',
        preprocessors=dict(video_backend=dict(type='os.system', command='')))),
    lambda model: model.backbone.update(norm_cfg=dict(type='os.system'))])
def test_lookup_refuses_without_the_check(change, watch):
    """The registries of a bundle do not import names, wherever they occur."""
    cfg = BundleConfig(dict(model=dict(
        type='Recognizer3D', backbone=dict(type='ResNet3d', depth=18),
        cls_head=dict(type='I3DHead', num_classes=2, in_channels=512))))
    change(cfg.model)

    def build():
        with types_of(cfg):
            return MODELS.build(cfg.model)

    assert 'a bundle may not contain' in watch.refused(build)


def test_listed_classes_exist():
    for name in bundle_types.MODEL_NAMES | {*bundle_types.STEPS}:
        assert any(bundle_types.find_class(registry, name)
                   for registry in (MODELS, TRANSFORMS)), name


@pytest.mark.parametrize('file', ['bundle.json', 'model.safetensors'])
def test_links_out_of_a_bundle_are_refused(file, tmp_path):
    bundle = plain_bundle(tmp_path / 'bundle')
    (bundle / file).rename(tmp_path / file)
    (bundle / file).symlink_to(tmp_path / file)
    with pytest.raises(ValueError, match=f'{file} .* is a link to .*: copy'):
        load_bundle(bundle).load_weights()
    # A link to the entire bundle is fine.
    (bundle / file).unlink()
    (tmp_path / file).rename(bundle / file)
    (tmp_path / 'link').symlink_to(bundle)
    assert load_bundle(tmp_path / 'link').load_weights()


def test_weights_that_are_no_safetensors_are_refused(watch, tmp_path):
    bundle = plain_bundle(tmp_path / 'bundle')
    (bundle / 'model.safetensors').write_bytes(b'junk')
    content = json.loads((bundle / 'bundle.json').read_text())
    content['weights']['sha256'] = hashlib.sha256(b'junk').hexdigest()
    (bundle / 'bundle.json').write_text(json.dumps(content))
    assert 'is not a safetensors file' in watch.refused(
        load_bundle(bundle).load_weights)


def test_links_at_the_output_keep_other_files(tmp_path):
    other = tmp_path / 'other'
    other.mkdir()
    (other / 'kept').write_text('x')
    # The temporary folder of an interrupted or hostile run.
    (tmp_path / '.bundle.part').symlink_to(other)
    plain_bundle(tmp_path / 'bundle')
    (tmp_path / 'link').symlink_to(tmp_path / 'bundle')
    plain_bundle(tmp_path / 'link', labels=['a'], replace=True)
    assert (tmp_path / 'link').is_symlink()
    assert load_bundle(tmp_path / 'bundle').labels == ['a']
    assert [path.name for path in other.iterdir()] == ['kept']


def test_zip_files_read_two_names_only(tmp_path):
    path = plain_bundle(tmp_path / 'a.zip')
    with zipfile.ZipFile(path, 'a') as archive:
        archive.writestr('../outside.txt', 'x')
        archive.writestr('/outside.txt', 'x')
    assert load_bundle(path).load_weights()
    assert [path.name for path in tmp_path.iterdir()] == ['a.zip']
    assert not (tmp_path.parent / 'outside.txt').exists()
