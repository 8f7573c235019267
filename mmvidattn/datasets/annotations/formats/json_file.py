# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Reader of JSON files whose errors name the line and path; a writer."""
import json
import math
import re
from bisect import bisect_right
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NoReturn

from ....utils.files import write_atomically
from ..video_segment import parse_number, read_text

_decode = json.JSONDecoder().raw_decode
_skip_blanks = re.compile(r'[ \t\n\r]*').match
# Characters of a value that an error shows.
MAX_SHOWN = 60


class JsonValue:
    """Value of a JSON file with its place.

    Args:
        value: Dict or list of :class:`JsonValue`, or a text, number, bool or
            None.
        line: Line of the file.
        file: The file.
        key: Key or index in ``parent``.
        parent: Dict or list that contains the value.
    """
    __slots__ = 'value', 'line', 'file', 'key', 'parent'

    def __init__(self, value: Any, line: int, file: str | Path,
                 key: str | int | None = None,
                 parent: 'JsonValue | None' = None) -> None:
        self.value = value
        self.line = line
        self.file = file
        self.key = key
        self.parent = parent

    @property
    def path(self) -> str:
        """Path inside of the file, such as ``[0].data.video``."""
        if self.parent is None:
            return ''
        if isinstance(self.key, int):
            return f'{self.parent.path}[{self.key}]'
        return f'{self.parent.path}.{self.key}'

    @property
    def where(self) -> str:
        """File, line and path, for error messages."""
        path = self.path.removeprefix('.')
        return f'{self.file}, line {self.line}' + f', {path}' * bool(path)

    def fail(self, message: str) -> NoReturn:
        """Raise a ``ValueError`` that names the place."""
        raise ValueError(f'{self.where}: {message}')

    def _expect(self, kind: type | tuple[type, ...], name: str) -> Any:
        if not isinstance(self.value, kind) or isinstance(self.value, bool):
            self.fail(f'expected {name}, got {self._shown()}')
        return self.value

    def _shown(self) -> str:
        if isinstance(self.value, dict):
            return 'an object'
        if isinstance(self.value, list):
            return 'a list'
        text = json.dumps(self.value, ensure_ascii=False)
        return text if len(text) <= MAX_SHOWN else text[:MAX_SHOWN] + '...'

    def get(self, key: str) -> 'JsonValue | None':
        """Return a value of an object; None if it is missing or null."""
        child = self._expect(dict, 'an object').get(key)
        return None if child is None or child.value is None else child

    def read(self, key: str, convert: Callable[['JsonValue'], Any],
             default: Any = None) -> Any:
        """Convert a value of an object, if it is neither missing nor null."""
        child = self.get(key)
        return default if child is None else convert(child)

    def __getitem__(self, key: str) -> 'JsonValue':
        child = self.get(key)
        if child is None:
            self.fail(f'expected an object with {key!r}, got '
                      + (', '.join(self.value) or 'an empty one'))
        return child

    def items(self) -> Iterator[tuple[str, 'JsonValue']]:
        """Yield the keys and values of an object."""
        yield from self._expect(dict, 'an object').items()

    def __iter__(self) -> Iterator['JsonValue']:
        yield from self._expect(list, 'a list')

    def __len__(self) -> int:
        return len(self._expect((list, dict), 'a list'))

    # An empty list is a value, too.
    def __bool__(self) -> bool:
        return True

    def text(self) -> str:
        """Return a text; a number is converted."""
        return str(self._expect((str, int, float), 'a text'))

    def name(self) -> str:
        """Return a text that is not empty, without blanks at its ends."""
        text = self.text().strip()
        if not text:
            self.fail('expected a text, got an empty one')
        return text

    def number(self) -> float:
        """Return a finite number; a text with a number is converted."""
        number = parse_number(self._expect((int, float, str), 'a number'))
        if math.isnan(number):
            self.fail(f'expected a number, got {self._shown()}')
        return number

    def positive(self) -> float:
        """Return a number above 0."""
        number = self.number()
        if number <= 0:
            self.fail(f'expected a positive number, got {number:g}')
        return number

    def integer(self) -> int:
        """Return an integer."""
        number = self.number()
        if number != int(number):
            self.fail(f'expected an integer, got {number:g}')
        return int(number)


def read_json_values(path: str | Path) -> JsonValue:
    """Read a JSON file.

    Raises:
        ValueError: If the file is missing, not valid JSON, nested too deeply,
            or an object has a key twice.
    """
    text = read_text(path)
    try:
        json.loads(text)
        return _Scanner(text, path).scan()
    except json.JSONDecodeError as error:
        raise ValueError(f'{path}, line {error.lineno}: invalid JSON: '
                         f'{error.msg} (column {error.colno})') from None
    except ValueError as error:
        # Python limits the digits of an integer.
        raise ValueError(f'{path}: {error}') from None
    except RecursionError:
        raise ValueError(f'{path}: the JSON is nested too deeply') from None


def write_json(path: Path, content: Any) -> None:
    """Write a JSON file."""
    write_atomically(
        path, json.dumps(content, indent=1, ensure_ascii=False) + '\n')


class _Scanner:
    """Scanner of valid JSON."""

    def __init__(self, text: str, file: str | Path) -> None:
        self._text = text
        self._file = file
        self._breaks = [match.start() for match in re.finditer('\n', text)]

    def scan(self) -> JsonValue:
        return self._value(self._next(0), None, None)[0]

    def _next(self, at: int) -> int:
        return _skip_blanks(self._text, at).end()

    def _value(self, at: int, key: str | int | None,
               parent: JsonValue | None) -> tuple[JsonValue, int]:
        """Return the value that starts at a character, and its end."""
        parsed = JsonValue(None, bisect_right(self._breaks, at) + 1,
                          self._file, key, parent)
        first = self._text[at]
        if first not in '{[':
            parsed.value, end = _decode(self._text, at)
            return parsed, end
        parsed.value = {} if first == '{' else []
        at = self._next(at + 1)
        while self._text[at] not in '}]':
            if first == '{':
                key, at = _decode(self._text, at)
                at = self._next(self._next(at) + 1)
                value, at = self._value(at, key, parsed)
                if key in parsed.value:
                    value.fail(f'the key {key!r} is already used in line '
                               f'{parsed.value[key].line}')
                parsed.value[key] = value
            else:
                value, at = self._value(at, len(parsed.value), parsed)
                parsed.value.append(value)
            at = self._next(at)
            if self._text[at] == ',':
                at = self._next(at + 1)
        return parsed, at + 1
