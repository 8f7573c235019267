# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""The site of the pages: built once, without a warning."""
import importlib
import re
import sys
import zlib
from pathlib import Path

import mmaction.registry
import mmengine.registry
import pytest
import yaml
from doc_blocks import ROOT, pages_to_parse, pages_to_run
from mmengine.registry import Registry

import mmvidattn
from mmvidattn.commands import find_commands

REPOSITORY = 'https://example.org/mmvidattn'
LINK = re.compile(r'\]\(([^)#\s]+)')


@pytest.fixture(scope='module')
def site(tmp_path_factory) -> Path:
    pytest.importorskip('mkdocstrings_handlers.python',
                        reason='mkdocs-material or mkdocstrings is missing')
    pytest.importorskip('material',
                        reason='mkdocs-material or mkdocstrings is missing')
    from mkdocs.__main__ import cli
    out = tmp_path_factory.mktemp('site')
    with pytest.MonkeyPatch.context() as patch:
        # A search index, and a process that wraps each signature, take a third
        # of the time.
        patch.setitem(sys.modules, 'ruff', None)
        for name, value in dict(NO_MKDOCS_2_WARNING='1', REPO_URL=REPOSITORY,
                                SITE_SEARCH='false').items():
            patch.setenv(name, value)
        cli(['build', '--strict', '-f', str(ROOT / 'mkdocs.yml'), '-d',
             str(out)], standalone_mode=False)
    return out


@pytest.fixture(scope='module')
def documented(site) -> set[str]:
    """Return the names that have a heading in the reference."""
    header, data = (site / 'objects.inv').read_bytes().split(
        b'using zlib.\n', 1)
    return {line.split(' ', 1)[0]
            for line in zlib.decompress(data).decode().splitlines()}


def test_site_has_every_page(site):
    built = {path.relative_to(site).as_posix()
             for path in site.rglob('*.html')}
    for page in (ROOT / 'docs').rglob('*.md'):
        name = page.relative_to(ROOT / 'docs').with_suffix('.html')
        assert name.as_posix() in built
    assert {'index.html', 'start_weights.html', 'models/testra.html',
            'models/linear_ff_ablations.html', 'claims.html',
            'reference/layers.html'} <= built
    commands = (site / 'reference/commands.html').read_text('utf-8')
    for name in find_commands():
        assert f'mmvidattn {name}' in commands
    assert commands.count('usage: ') >= len(find_commands()) - 2
    assert 'pages.html' not in built
    assert not (site / 'pages.py').exists()


def test_links_lead_to_pages_or_copies(site):
    """Check that links lead to existing pages, or to the copy of a file."""
    text = (site / 'models/vivit.html').read_text('utf-8')
    assert '<h1 id="vivit">ViViT' in text
    assert 'href="../distill.html"' in text
    assert 'href="vivit_ablations.html"' in text
    text = (site / 'models/vivit_ablations.html').read_text('utf-8')
    config = 'configs/vivit/ablations/vivit.py'
    assert f'href="../files/{config}"' in text
    assert (site / 'files' / config).read_bytes() == (
        ROOT / config).read_bytes()


def test_nothing_is_fetched_from_other_hosts(site):
    """Only links may lead to other hosts; scripts, fonts and pictures not."""
    for path in site.rglob('*.html'):
        text = path.read_text('utf-8')
        for tag in re.findall(r'<(?:script|link|img|iframe)\b[^>]*>', text):
            assert not re.search(r'(?:src|href)="(?:https?:)?//', tag) \
                or 'rel="canonical"' in tag, f'{path}: {tag}'
        assert 'fonts.g' not in text
    for path in site.rglob('*.css'):
        assert not re.search(r'url\(["\']?(?:https?:)?//',
                             path.read_text('utf-8'))


def test_reference_has_the_public_names(documented):
    for name in mmvidattn.__all__:
        value = getattr(mmvidattn, name)
        if callable(value):
            assert f'{value.__module__}.{name}' in documented or (
                f'{value.__module__.rpartition(".")[0]}.{name}' in documented)
        elif name not in ('__version__', 'compat'):
            package = importlib.import_module(f'mmvidattn.{name}')
            names = {f'mmvidattn.{name}.{public}'
                     for public in package.__all__
                     if callable(getattr(package, public))}
            assert names <= documented


def test_reference_lists_all_registered_classes(documented):
    short = {name.rpartition('.')[2] for name in documented}
    results = {
        cls.__name__
        for module in (mmaction.registry, mmengine.registry)
        for registry in vars(module).values()
        if isinstance(registry, Registry)
        for cls in registry.module_dict.values()
        if getattr(cls, '__module__', '').startswith('mmvidattn.')
        and not cls.__module__.startswith('mmvidattn.compat')}
    assert len(results) > 60
    assert results <= short


def test_navigation_has_every_page():
    """Check the pages in docs/; folders include the other pages."""
    # Two tags are not plain YAML.
    text = re.sub(r'!!python/\S+|!ENV', '', (ROOT / 'mkdocs.yml').read_text())
    listed = re.findall(r"'([^']+\.md)'", str(yaml.safe_load(text)['nav']))
    there = {path.relative_to(ROOT / 'docs').as_posix()
             for path in (ROOT / 'docs').rglob('*.md')}
    assert there <= {*listed}
    assert {*listed} - there == {
        'index.md', 'start_weights.md', 'export.md', 'changelog.md',
        'contributing.md', 'security.md'}


@pytest.mark.parametrize('page', [*pages_to_run(), *pages_to_parse()],
                         ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere_as_github_shows_them(page):
    text = re.sub(r'^```.*?^```', '', page.read_text('utf-8'),
                  flags=re.DOTALL | re.MULTILINE)
    text = re.sub(r'`[^`\n]+`', '', text)
    for link in LINK.findall(text):
        if '://' not in link:
            assert (page.parent / link).exists(), link
