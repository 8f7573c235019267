# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Bundles of a stranger: each key of each config replaced by an attack."""
import json
import sys
import zipfile
from pathlib import Path

import pytest
import torch
from config_cache import load_config
from mmaction.registry import MODELS, TRANSFORMS

import mmvidattn
from mmvidattn.apis import bundle_types, load_bundle
from mmvidattn.apis.bundle_file import clean_config, write_bundle
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
        if self.seen is None:
            return
        # Libraries start harmless programs, such as uname.
        if event in EVENTS and 'canary' in str(args):
            self.seen.append((event, str(args)))
        elif event == 'import' and CANARY in str(args[0]):
            self.seen.append((event, args[0]))
        elif event == 'exec' and CANARY in args[0].co_names:
            self.seen.append((event, args[0].co_filename))
        elif event == 'open' and 'outside' in str(args[0]):
            self.seen.append((event, args[0]))


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
    watch.seen = None


@pytest.fixture
def attacked(watch, monkeypatch):
    """Return a function that calls a function, and checks what it causes."""

    def call(function, *args):
        watch.seen = []
        try:
            with pytest.raises((ValueError, SystemExit)) as error:
                function(*args)
        finally:
            seen, watch.seen = watch.seen, None
        message = str(error.value)
        assert seen == [] and CANARY not in sys.modules
        assert not (watch.folder / 'canary').exists()
        assert message and message.isprintable(), message
        return message

    return call


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
        config = clean_config(load_config(name))
        for path in key_paths(config):
            keys = '.'.join('#' if isinstance(part, int) else part
                            for part in path)
            found.setdefault(keys, (name, path))
    return found


def hostile(folder, name, path, attack):
    """Write a bundle with an attack in place of a value."""
    config = clean_config(load_config(name))
    bundle = write_bundle(folder, name, config, [], dict(x=torch.ones(1)),
                          replace=True)
    content = json.loads((bundle / 'bundle.json').read_text())
    part = content['config']
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


def test_attacks_on_one_config(attacked, watch, run_main, motion_dir,
                               tmp_path):
    found = places([NAME])
    assert len(found) > 50
    for number, (keys, (name, path)) in enumerate(found.items()):
        for attack in attacks(watch.folder)[number % 2::2]:
            bundle = hostile(tmp_path / 'bundle', name, path, attack)
            message = attacked(load_without, bundle)
            last = [key for key in path if isinstance(key, str)][-1]
            assert last in message or 'is damaged' in message or (
                message == DROPPED), (keys, message)
    check_commands(attacked, run_main, motion_dir, bundle, tmp_path)


@pytest.mark.slow
def test_attacks_on_all_configs(attacked, watch, run_main, motion_dir,
                                tmp_path, capsys):
    """Attack each key of each config, with each command."""
    found = places(mmvidattn.list_models())
    assert len(found) > 180
    for name, path in found.values():
        for attack in attacks(watch.folder):
            bundle = hostile(tmp_path / 'bundle', name, path, attack)
            attacked(load_without, bundle)
            check_commands(attacked, run_main, motion_dir, bundle, tmp_path)
    with capsys.disabled():
        print(f'\n{len(found) * len(attacks(watch.folder))} hostile bundles')


def check_commands(attacked, run_main, motion_dir, bundle, tmp_path):
    video, table = motion_dir / 'val/000000.mp4', motion_dir / 'labels.csv'
    table.write_text('file,label\n' + ''.join(
        f'val/{i:06}.mp4,{"ab"[i % 2]}\n' for i in range(8)))
    for words in (
            ('predict', video, bundle),
            ('stream', video, bundle, '--events', tmp_path / 'x.jsonl'),
            ('export', bundle, tmp_path / 'x.pt2'),
            ('finetune', table, '--weights', bundle, '--model', NAME,
             '--work-dir', tmp_path / 'run')):
        message = attacked(run_main, *words)
        assert 'bundle' in message, (words, message)
    assert sorted(path.name for path in tmp_path.iterdir()) == ['bundle']


@pytest.mark.parametrize('part', ['name', 'versions', 'labels', 'weights'])
def test_other_keys_are_text(watch, part, tmp_path):
    """Names and versions are printed only, so any text loads as a text."""
    for attack in attacks(watch.folder):
        bundle = write_bundle(
            tmp_path / 'bundle', NAME, clean_config(load_config(NAME)), ['a'],
            dict(x=torch.ones(1)), replace=True)
        content = json.loads((bundle / 'bundle.json').read_text())
        content[part] = ([attack] if part == 'labels' else attack
                         if part == 'name' else dict(sha256=attack, x=attack))
        (bundle / 'bundle.json').write_text(json.dumps(content))
        watch.seen = []
        found = load_bundle(bundle)
        seen, watch.seen = watch.seen, None
        assert seen == []
        for text in found.name, *found.labels, *found.versions.values():
            assert text.isprintable()


@pytest.mark.parametrize('change', [
    lambda model: model.update(data_preprocessor=dict(
        type='MultiModalDataPreprocessor',
        preprocessors=dict(video_backend=dict(type='os.system', command='')))),
    lambda model: model.backbone.update(norm_cfg=dict(type='os.system'))])
def test_lookup_refuses_without_the_check(change, attacked):
    """The registries of a bundle do not import names, wherever they occur."""
    config = BundleConfig(clean_config(load_config('testra_tiny_synthetic')))
    model = BundleConfig(dict(model=dict(
        type='Recognizer3D', backbone=dict(type='ResNet3d', depth=18),
        cls_head=dict(type='I3DHead', num_classes=2, in_channels=512)))).model
    change(model)

    def build():
        with types_of(config):
            return MODELS.build(model)

    assert 'a bundle may not contain' in attacked(build)


@pytest.mark.parametrize('step, key', [
    (dict(type='DecordInit', io_backend='memcached', sys_path='x'),
     'io_backend|sys_path'),
    (dict(type='DecordInit', sys_path='x'), 'sys_path'),
    (dict(type='Resize', scale=8, resize_type='Resize'), 'resize_type'),
    (dict(type='PackActionInputs', collect_keys=['x']), 'collect_keys'),
    (dict(type='RawFrameDecode', decoding_backend='x'), 'decoding_backend')])
def test_steps_have_listed_options_only(step, key):
    with pytest.raises(ValueError, match=rf'b is refused: steps\[0\].{key}'):
        bundle_types.check_config(dict(steps=[step]), 'b')


def test_list_is_what_configs_use():
    """Each class of a config is listed, and each listed one of ours exists."""
    used, kinds = set(), set()
    for name in mmvidattn.list_models():
        config = clean_config(load_config(name))
        for path in key_paths(config):
            value = config
            for key in path:
                value = value[key]
            if path[-1] == 'type':
                used.add(value if isinstance(value, str) else value.__name__)
    listed = bundle_types.MODEL_NAMES | {*bundle_types.STEPS}
    assert used <= listed
    for registry in MODELS, TRANSFORMS:
        node = registry
        while node is not None:
            node.import_from_location()
            kinds |= {*node.module_dict}
            node = node.parent
    assert listed <= kinds


@pytest.mark.parametrize('file', ['bundle.json', 'model.safetensors'])
def test_links_out_of_a_bundle_are_refused(file, tmp_path):
    bundle = write_bundle(
        tmp_path / 'bundle', NAME, clean_config(load_config(NAME)), [],
        dict(x=torch.ones(1)))
    (bundle / file).rename(tmp_path / file)
    (bundle / file).symlink_to(tmp_path / file)
    with pytest.raises(ValueError, match=f'{file} .* is a link to .*: copy'):
        load_bundle(bundle).load_weights()
    # A link to the entire bundle is fine.
    (bundle / file).unlink()
    (tmp_path / file).rename(bundle / file)
    (tmp_path / 'link').symlink_to(bundle)
    assert load_bundle(tmp_path / 'link').load_weights()


def test_links_at_the_output_keep_other_files(tmp_path):
    config = clean_config(load_config(NAME))
    weights = dict(x=torch.ones(1))
    other = tmp_path / 'other'
    other.mkdir()
    (other / 'kept').write_text('x')
    # The temporary folder of an interrupted or hostile run.
    (tmp_path / '.bundle.part').symlink_to(other)
    write_bundle(tmp_path / 'bundle', NAME, config, [], weights)
    (tmp_path / 'link').symlink_to(tmp_path / 'bundle')
    write_bundle(tmp_path / 'link', NAME, config, ['a'], weights,
                 replace=True)
    assert (tmp_path / 'link').is_symlink()
    assert load_bundle(tmp_path / 'bundle').labels == ['a']
    assert [path.name for path in other.iterdir()] == ['kept']


def test_zip_files_read_two_names_only(tmp_path):
    path = write_bundle(
        tmp_path / 'a.zip', NAME, clean_config(load_config(NAME)), [],
        dict(x=torch.ones(1)))
    with zipfile.ZipFile(path, 'a') as archive:
        archive.writestr('../outside.txt', 'x')
        archive.writestr('/outside.txt', 'x')
    assert load_bundle(path).load_weights()
    assert [path.name for path in tmp_path.iterdir()] == ['a.zip']
    assert not (Path(tmp_path).parent / 'outside.txt').exists()
