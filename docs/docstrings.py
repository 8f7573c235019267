# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Convert Sphinx roles, links and blocks in docstrings to Markdown.

The names of a lazy package lead to the modules that it imports.
"""
import ast
import importlib
import re
import textwrap

from griffe import Alias, Docstring, Extension, Module, Object

ROLE = re.compile(r':\w+:`([^`]*)`')
FORMULA = re.compile(r'^( *)\.\. math:: +(.+(?:\n\1 +\S.*)*)$', re.MULTILINE)
# A literal block: a paragraph that ends with two colons, and indented lines.
BLOCK = re.compile(r'^( *)(.*):: *\n((?: *\n|\1 +.*\n?)+)', re.MULTILINE)
LINK = re.compile(r'`([^`<]+?)\s+<(https?://[^>]+)>`__?')


def language(code: str) -> str:
    """Return 'python', or 'text' if Python cannot read the code."""
    try:
        ast.parse(code)
    except SyntaxError:
        return 'text'
    return 'python'


def to_markdown(text: str) -> str:
    def name(match: re.Match) -> str:
        shown = match[1]
        if shown.startswith('~'):
            shown = shown.rpartition('.')[2]
        return f'`{shown}`'

    def block(match: re.Match) -> str:
        indent, before, code = match.groups()
        before = '' if before == '.. math' else f'{before}:'
        code = textwrap.dedent(code).strip('\n')
        return textwrap.indent(
            f'{before}\n\n```{language(code)}\n{code}\n```\n\n', indent)

    text = FORMULA.sub(r'\1```text\n\1\2\n\1```', text)
    text = BLOCK.sub(block, text)
    text = ROLE.sub(name, text)
    return LINK.sub(lambda m: f'[{" ".join(m[1].split())}]({m[2]})', text)


class SphinxToMarkdown(Extension):
    def on_instance(self, *, obj: Object, **kwargs: object) -> None:
        if isinstance(obj.docstring, Docstring):
            obj.docstring.value = to_markdown(obj.docstring.value)

    def on_module_members(self, *, mod: Module, **kwargs: object) -> None:
        if 'lazy_package' in mod.members and mod.is_init_module:
            modules = importlib.import_module(mod.path)._modules
            for module, names in modules.items():
                for name in names:
                    if name != module and module[0] != '.':
                        mod.set_member(
                            name, Alias(name, f'{mod.path}.{module}.{name}'))
