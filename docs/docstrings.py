# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Convert Sphinx roles and links in docstrings to Markdown."""
import re

from griffe import Docstring, Extension, Object

ROLE = re.compile(r':\w+:`([^`]*)`')
LINK = re.compile(r'`([^`<]+?)\s+<(https?://[^>]+)>`__?')


def to_markdown(text: str) -> str:
    def name(match: re.Match) -> str:
        shown = match[1]
        if shown.startswith('~'):
            shown = shown.rpartition('.')[2]
        return f'`{shown}`'

    text = ROLE.sub(name, text)
    return LINK.sub(lambda m: f'[{" ".join(m[1].split())}]({m[2]})', text)


class SphinxToMarkdown(Extension):
    def on_instance(self, *, obj: Object, **kwargs: object) -> None:
        if isinstance(obj.docstring, Docstring):
            obj.docstring.value = to_markdown(obj.docstring.value)
