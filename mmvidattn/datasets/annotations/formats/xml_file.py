# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Reader of XML files whose errors name the line, and a writer."""
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import NoReturn
from xml.etree import ElementTree
from xml.parsers import expat

from ..video_segment import parse_number


@dataclass
class XmlElement:
    """Element of an XML file with its place.

    Attributes:
        tag: Name.
        attributes: Attributes by name.
        line: Line of the start tag.
        file: The file.
        children: Child elements.
        text: Text before the first child.
    """
    tag: str
    attributes: Mapping[str, str]
    line: int
    file: str | Path
    children: list['XmlElement'] = field(default_factory=list)
    text: str = ''

    @property
    def where(self) -> str:
        """File and line, for error messages."""
        return f'{self.file}, line {self.line}'

    def fail(self, message: str) -> NoReturn:
        """Raise a ``ValueError`` that names the line."""
        raise ValueError(f'{self.where}: {message}')

    def all(self, *tags: str) -> Iterator['XmlElement']:
        """Yield the children with any of the names."""
        return (child for child in self.children if child.tag in tags)

    def find(self, tag: str) -> 'XmlElement | None':
        """Return the first child with a name; None if it is missing."""
        return next(self.all(tag), None)

    def words(self, tag: str) -> str:
        """Return the text of a child without blanks at its ends, or ''."""
        element = self.find(tag)
        return '' if element is None else element.text.strip()

    def __getitem__(self, name: str) -> str:
        if name not in self.attributes:
            self.fail(f'<{self.tag}> needs the attribute {name}')
        return self.attributes[name]

    def number(self, name: str) -> float:
        """Return an attribute as a finite number."""
        number = parse_number(self[name])
        if math.isnan(number):
            self.fail(f'{name} must be a number, got {self[name]!r}')
        return number


def read_xml(path: str | Path, root: str) -> XmlElement:
    """Read an XML file with the root element ``root``.

    Raises:
        ValueError: If the file is missing, not valid XML, has another root,
            or has a document type, which could define entities.
    """
    if not Path(path).is_file():
        raise ValueError(f'file not found: {path}')
    parser = expat.ParserCreate()
    parser.buffer_text = True
    document = XmlElement('', {}, 1, path)
    stack = [document]

    def refuse_doctype(*args: object) -> None:
        raise ValueError('a document type (<!DOCTYPE>) is not allowed')

    def start(tag: str, attributes: dict[str, str]) -> None:
        element = XmlElement(tag, attributes, parser.CurrentLineNumber, path)
        stack[-1].children.append(element)
        stack.append(element)

    def end(tag: str) -> None:
        stack.pop()

    def characters(text: str) -> None:
        if not stack[-1].children:
            stack[-1].text += text

    parser.StartDoctypeDeclHandler = refuse_doctype
    parser.StartElementHandler = start
    parser.EndElementHandler = end
    parser.CharacterDataHandler = characters
    try:
        parser.Parse(Path(path).read_bytes(), True)
    except expat.ExpatError as error:
        raise ValueError(f'{path}, line {error.lineno}: invalid XML: '
                         f'{expat.ErrorString(error.code)}') from None
    except (LookupError, ValueError) as error:
        # Also an encoding that Python or expat does not know.
        raise ValueError(f'{path}, line {parser.CurrentLineNumber}: {error}'
                         ) from None
    top = document.children[0]
    if top.tag != root:
        top.fail(f'expected <{root}>, got <{top.tag}>')
    return top


def add(parent: ElementTree.Element, tag: str, text: object = None,
        **attributes: object) -> ElementTree.Element:
    """Add a child element with a text and attributes."""
    child = ElementTree.SubElement(
        parent, tag, {name: str(value) for name, value in attributes.items()})
    if text is not None:
        child.text = str(text)
    return child


def format_xml(root: ElementTree.Element) -> str:
    """Format an XML file."""
    ElementTree.indent(root)
    return ('<?xml version="1.0" encoding="UTF-8"?>\n'
            + ElementTree.tostring(root, encoding='unicode') + '\n')
