# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Hooks of mkdocs: pages that do not lie in docs/.

A page of a family or of a folder lies where GitHub shows it, and is told of
once. On the site it has another address, so links are rewritten: those between
pages to each other, those to other files to a copy of the file. The pages of
the reference have a heading for each public name of a package.
"""
import ast
import os
import posixpath
import re
from functools import cache
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files, InclusionLevel
from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parent.parent
# Where a page stands on the site, by the pattern of its path here.
PLACES = {
    'README.md': 'index.md',
    'configs/*.md': '{stem}.md',
    'configs/*/README.md': 'models/{folder}.md',
    'configs/*/ablations/README.md': 'models/{above}_ablations.md',
    'mmvidattn/ops/README.md': 'more/kernels.md',
    'mmvidattn/ops/gpu.md': 'more/kernels_gpu.md',
    'tools/*/README.md': 'more/{folder}.md',
    'tools/data/*/README.md': 'more/data_{folder}.md',
    'tools/studies/results/*/report.md': 'more/study_{folder}.md',
}
PACKAGES = (
    'apis', 'backbones', 'layers', 'ops', 'heads', 'losses', 'recognizers',
    'online', 'live', 'datasets', 'datasets.transforms', 'evaluation',
    'engine', 'visualization', 'export', 'convert')
# What of a package without a list of names is public.
FUNCTIONS = {'utils': ('config.change', )}
# Code, in which nothing is a link; or a link's end.
LINK = re.compile(r'(^```.*?^```$|`[^`\n]+`)|(?<=\]\()([^)\s]+)(?=\))',
                  re.DOTALL | re.MULTILINE)


@cache
def find_pages() -> dict[str, str]:
    """Where each page that lies elsewhere stands, by its path here."""
    found = {}
    for pattern, place in PLACES.items():
        for path in sorted(ROOT.glob(pattern)):
            name = path.relative_to(ROOT).as_posix()
            found[name] = place.format(
                stem=path.stem, folder=path.parent.name,
                above=path.parent.parent.name)
    return found


def public_names(package: str) -> list[str]:
    """The names in ``__all__`` of a package of ours, without importing it.

    One that is imported only when it is wanted is of another package.
    """
    path = ROOT / 'mmvidattn' / package.replace('.', '/') / '__init__.py'
    body = ast.parse(path.read_text('utf-8')).body
    imported = {alias.asname or alias.name for node in body
                if isinstance(node, ast.ImportFrom) for alias in node.names}
    public, = (ast.literal_eval(node.value) for node in body
               if isinstance(node, ast.Assign)
               and ast.unparse(node.targets[0]) == '__all__')
    return [name for name in public if name in imported]


def make_reference() -> dict[str, str]:
    """Pages of the reference, by where they stand."""
    pages = {}
    names = {package: public_names(package) for package in PACKAGES}
    # On the page of the smaller package.
    names['datasets'] = [name for name in names['datasets']
                         if name not in names['datasets.transforms']]
    for package, found in {**names, **FUNCTIONS}.items():
        title = f'mmvidattn.{package}'
        pages[f'reference/{package}.md'] = f'# {title}\n\n' + '\n'.join(
            f'::: {title}.{name}\n' for name in found)
    return pages


def add_file(files: Files, file: File) -> None:
    if file.src_uri not in files.src_uris:
        files.append(file)


def on_files(files: Files, config: MkDocsConfig) -> Files:
    for name, place in find_pages().items():
        add_file(files, File.generated(
            config, place, abs_src_path=str(ROOT / name)))
    for place, text in make_reference().items():
        add_file(files, File.generated(config, place, content=text))
    for name in [*find_pages(), *written_here(files)]:
        for _, link in LINK.findall((ROOT / name).read_text('utf-8')):
            target = target_of(link, name)[0]
            if target:
                add_target(files, target, config)
    config.nav = [fill(entry, files) for entry in config.nav]
    return files


def add_target(files: Files, target: str, config: MkDocsConfig) -> None:
    """Put what a page links to beside the pages, if it is none."""
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
    """The pages in docs/, by their paths here."""
    return [f'docs/{file.src_uri}' for file in files.documentation_pages()
            if not file.generated_by]


def fill(entry: dict | str, files: Files) -> dict | str:
    """An entry of the navigation, with the pages below a folder."""
    if isinstance(entry, dict):
        (title, content), = entry.items()
        if isinstance(content, str) and content.endswith('/'):
            return {title: sorted(
                uri for uri in files.src_uris
                if uri.startswith(content) and uri.endswith('.md'))}
    return entry


def target_of(link: str, name: str) -> tuple[str | None, str]:
    """What a page links to: its path here (of the web: None), the anchor."""
    path, _, anchor = link.partition('#')
    if not path or '://' in path or path.startswith('mailto:'):
        return None, anchor
    return posixpath.normpath(
        posixpath.join(posixpath.dirname(name), path)), anchor


def place_of(target: str) -> str:
    """Where a file or folder here stands on the site."""
    pages = find_pages()
    if f'{target}/README.md' in pages:
        # As GitHub shows a folder.
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
