# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""mkdocs hooks that add pages from outside of docs/.

The page of a model family or folder lies where GitHub shows it. Its address
on the site differs, so its links are rewritten: a link to a page leads to the
page, and a link to a file leads to a copy of the file. The reference has a
page for each package, with a heading for each public name, and a page with the
options of all commands.
"""
import ast
import importlib
import os
import posixpath
import re
import sys
from functools import cache
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files, InclusionLevel
from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))
# Path of a page on the site, by the pattern of its path in the repository.
PLACES = {
    'README.md': 'index.md',
    'CHANGELOG.md': 'changelog.md',
    'CONTRIBUTING.md': 'contributing.md',
    'SECURITY.md': 'security.md',
    'configs/*.md': '{stem}.md',
    'configs/*/README.md': 'models/{folder}.md',
    'configs/*/recipes.md': 'models/{folder}_recipes.md',
    'configs/*/ablations/README.md': 'models/{above}_ablations.md',
    'mmvidattn/weights/*/README.md': 'more/weights_{folder}.md',
    'tools/*/README.md': 'more/{folder}.md',
    'tools/data/*/README.md': 'more/data_{folder}.md',
}
PACKAGES = (
    'apis', 'backbones', 'layers', 'ops', 'heads', 'losses', 'recognizers',
    'online', 'live', 'datasets', 'datasets.transforms', 'evaluation',
    'engine', 'visualization', 'export', 'convert')
# A code block or code span, which contains no links; or the target of a link.
LINK = re.compile(r'(^```.*?^```$|`[^`\n]+`)|(?<=\]\()([^)\s]+)(?=\))',
                  re.DOTALL | re.MULTILINE)


@cache
def find_pages() -> dict[str, str]:
    """Return the site path of each page outside of docs/, by its path."""
    pages = {}
    for pattern, place in PLACES.items():
        for path in sorted(ROOT.glob(pattern)):
            name = path.relative_to(ROOT).as_posix()
            pages[name] = place.format(
                stem=path.stem, folder=path.parent.name,
                above=path.parent.parent.name)
    return pages


def public_names(package: str) -> list[str]:
    """Return the names in ``__all__`` of a package, without importing them.

    Names of a different package are left out.
    """
    path = ROOT / 'mmvidattn' / package.replace('.', '/') / '__init__.py'
    body = ast.parse(path.read_text('utf-8')).body
    if any(ast.unparse(node).startswith('lazy_package(') for node in body):
        modules = importlib.import_module(f'mmvidattn.{package}')._modules
        return sorted(name for module, names in modules.items()
                      if module[0] != '.' for name in names)
    present = {alias.asname or alias.name for node in body
               if isinstance(node, ast.ImportFrom) for alias in node.names}
    present |= {node.name for node in body
                if isinstance(node, (ast.FunctionDef, ast.ClassDef))}
    public, = (ast.literal_eval(node.value) for node in body
               if isinstance(node, ast.Assign)
               and ast.unparse(node.targets[0]) == '__all__')
    return [name for name in public if name in present]


def make_reference() -> dict[str, str]:
    """Return the pages of the reference by their paths on the site."""
    pages = {}
    names = {package: public_names(package) for package in PACKAGES}
    for package, members in names.items():
        title = f'mmvidattn.{package}'
        pages[f'reference/{package}.md'] = f'# {title}\n\n' + '\n'.join(
            f'::: {title}.{name}\n' for name in members)
    return pages


def make_commands() -> str:
    """Return the page with the help texts of all commands."""
    # The modules of the commands import argparse and nothing heavy.
    from mmvidattn.commands import find_commands, make_parser

    parts = ['# Commands\n']
    before = os.environ.get('COLUMNS')
    os.environ['COLUMNS'] = '84'
    for name in find_commands():
        help_text = make_parser(name).format_help().strip()
        parts.append(f'## mmvidattn {name}\n\n```text\n{help_text}\n```\n')
    os.environ.pop('COLUMNS')
    if before is not None:
        os.environ['COLUMNS'] = before
    return '\n'.join(parts)


def add_file(files: Files, file: File) -> None:
    if file.src_uri not in files.src_uris:
        files.append(file)


def on_files(files: Files, config: MkDocsConfig) -> Files:
    for name, place in find_pages().items():
        add_file(files, File.generated(
            config, place, abs_src_path=str(ROOT / name)))
    made = {**make_reference(), 'reference/commands.md': make_commands()}
    for place, text in made.items():
        add_file(files, File.generated(config, place, content=text))
    for name in [*find_pages(), *written_here(files)]:
        for _, link in LINK.findall((ROOT / name).read_text('utf-8')):
            target = target_of(link, name)[0]
            if target:
                add_target(files, target, config)
    config.nav = [fill(entry, files) for entry in config.nav]
    return files


def add_target(files: Files, target: str, config: MkDocsConfig) -> None:
    """Copy the target of a link to the site unless it is a page."""
    path, place = ROOT / target, place_of(target)
    if not place.startswith('files/') or place in files.src_uris:
        return
    if path.is_dir():
        inside = sorted(child.name for child in path.glob('[!_.]*'))
        for name in inside:
            add_target(files, f'{target}/{name}', config)
        files.append(File.generated(
            config, place, inclusion=InclusionLevel.NOT_IN_NAV,
            content=f'# {target}\n\n' + ''.join(
                f'* [{name}]({name})\n' for name in inside)))
    elif path.is_file():
        files.append(File.generated(
            config, place, abs_src_path=str(path)))


def written_here(files: Files) -> list[str]:
    """Return the repository paths of the pages in docs/."""
    return [f'docs/{file.src_uri}' for file in files.documentation_pages()
            if not file.generated_by]


def fill(entry: dict | str, files: Files) -> dict | str:
    """Replace a folder in the navigation by the pages below it."""
    if isinstance(entry, dict):
        (title, content), = entry.items()
        if isinstance(content, str) and content.endswith('/'):
            return {title: sorted(
                uri for uri in files.src_uris
                if uri.startswith(content) and uri.endswith('.md'))}
    return entry


def target_of(link: str, name: str) -> tuple[str | None, str]:
    """Return path (None for web addresses) and anchor of a link."""
    path, _, anchor = link.partition('#')
    if not path or '://' in path or path.startswith('mailto:'):
        return None, anchor
    return posixpath.normpath(
        posixpath.join(posixpath.dirname(name), path)), anchor


def place_of(target: str) -> str:
    """Return the site path of a file or folder."""
    pages = find_pages()
    if f'{target}/README.md' in pages:
        # GitHub shows the README for a folder.
        target += '/README.md'
    if target in pages:
        return pages[target]
    if target.startswith('docs/'):
        return target.removeprefix('docs/')
    if (ROOT / target).is_dir():
        target += '/index.md'
    return f'files/{target}'


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig,
                     files: Files) -> str:
    file = page.file
    if file.generated_by is None:
        name = f'docs/{file.src_uri}'
    elif file.abs_src_path and Path(file.abs_src_path).is_relative_to(ROOT):
        name = Path(file.abs_src_path).relative_to(ROOT).as_posix()
    else:
        return markdown

    def rewrite(match: re.Match) -> str:
        if match[1]:
            return match[1]
        target, anchor = target_of(match[2], name)
        if target is None:
            return match[2]
        link = os.path.relpath(
            place_of(target), posixpath.dirname(file.src_uri) or '.')
        return link + (f'#{anchor}' if anchor else '')

    return LINK.sub(rewrite, markdown)
