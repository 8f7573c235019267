# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Mutation operators for faults of omission and confusion.

cosmic-ray replaces operators, numbers and truth values. The operators here
produce typical mistakes of programmers: a missing call, keyword or check, two
swapped values, or an early return.
"""
import ast
from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

# Nodes that can be swapped with a node of the same type.
FORMS = ast.Name, ast.Attribute, ast.Subscript, ast.Call, ast.Constant
# Calls in which the order of values does not matter.
UNORDERED = 'isinstance', 'issubclass', 'min', 'max'
LEAVES = ast.Raise, ast.Return, ast.Continue, ast.Break


class Edit(NamedTuple):
    """Replacement of the bytes [start, stop) of a source file."""
    line: int
    column: int
    start: int
    stop: int
    text: str

    def apply(self, source: str) -> str:
        """Return the changed source."""
        data = source.encode()
        return (data[:self.start] + self.text.encode()
                + data[self.stop:]).decode()


def find_edits(source: str) -> dict[str, list[Edit]]:
    """List the edits of each operator, in a fixed order."""
    module = _Module(source)
    edits: dict[str, list[Edit]] = {name: [] for name in OPERATORS}
    for node, parent in _nodes(module.tree):
        for name, operator in OPERATORS.items():
            edits[name] += operator(node, parent, module)
    return edits


class _Module:
    """Parsed source file with the text of its nodes."""

    def __init__(self, source: str) -> None:
        self.tree = ast.parse(source)
        self.imported = {
            (alias.asname or alias.name).partition('.')[0]
            for node in ast.walk(self.tree)
            if isinstance(node, (ast.Import, ast.ImportFrom))
            for alias in node.names}
        self._data = source.encode()
        self._starts = [0]
        for line in self._data.splitlines(keepends=True):
            self._starts.append(self._starts[-1] + len(line))

    def span(self, node: ast.AST) -> tuple[int, int]:
        return (self._starts[node.lineno - 1] + node.col_offset,
                self._starts[node.end_lineno - 1] + node.end_col_offset)

    def text(self, node: ast.AST) -> str:
        return self._data[slice(*self.span(node))].decode()

    def between(self, first: ast.AST, second: ast.AST) -> str:
        return self._data[
            self.span(first)[1]:self.span(second)[0]].decode()

    def replace(self, node: ast.AST, text: str, *,
                last: ast.AST | None = None,
                place: ast.AST | None = None) -> Edit:
        """Replace ``node``, or the text from ``node`` to ``last``.

        The edit has the line and column of ``place``, which defaults to
        ``node``.
        """
        place = place or node
        return Edit(place.lineno, place.col_offset, self.span(node)[0],
                    self.span(last or node)[1], text)


def _nodes(node: ast.AST, parent: ast.AST | None = None
           ) -> Iterator[tuple[ast.AST, ast.AST | None]]:
    """Yield the nodes that run, except decorators and parts of f-strings."""
    yield node, parent
    if isinstance(node, ast.JoinedStr):
        return  # parts have no positions before Python 3.12
    for name, value in ast.iter_fields(node):
        if name in ('annotation', 'returns', 'decorator_list'):
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST):
                yield from _nodes(child, node)


def remove_call(node, parent, module) -> Iterator[Edit]:
    """Remove a call: ``f(x)`` becomes ``pass``, or ``x`` within a value."""
    if isinstance(node, ast.Expr):
        if isinstance(node.value, (ast.Call, ast.Await)):
            yield module.replace(node, 'pass')
    elif isinstance(node, ast.Call) and not isinstance(
            parent, (ast.Expr, ast.Raise, ast.Await)):
        value = _passed_through(node, module)
        if value is not None:
            yield module.replace(node, f'({module.text(value)})')


def _passed_through(call: ast.Call, module: _Module) -> ast.AST | None:
    """Return the input of a call: its object or its first argument."""
    root = call.func
    while isinstance(root, (ast.Attribute, ast.Subscript, ast.Call)):
        root = getattr(root, 'value', None) or root.func
    name = getattr(root, 'id', '')
    known = name in (*module.imported, 'self', 'cls', 'super')
    if isinstance(call.func, ast.Attribute) and not known:
        return call.func.value
    if call.args and not isinstance(
            call.args[0], (ast.Starred, ast.GeneratorExp)):
        return call.args[0]
    return None


def drop_keyword(node, parent, module) -> Iterator[Edit]:
    """Drop a keyword: ``f(x, a=1)`` becomes ``f(x)``."""
    if not isinstance(node, ast.Call):
        return
    for keyword in node.keywords:
        if keyword.arg is not None:
            kept = sorted((x for x in (*node.args, *node.keywords)
                           if x is not keyword), key=module.span)
            yield module.replace(
                node, f'{module.text(node.func)}'
                f'({", ".join(map(module.text, kept))})', place=keyword)


def swap_values(node, parent, module) -> Iterator[Edit]:
    """Swap neighbors of the same form: ``f(a, b)`` becomes ``f(b, a)``."""
    values = []
    if isinstance(node, ast.Call):
        if getattr(node.func, 'id', None) in UNORDERED:
            return
        values = [node.args, [x.value for x in node.keywords if x.arg]]
    elif isinstance(node, ast.Tuple) and not (
            isinstance(parent, (ast.Compare, ast.ExceptHandler))
            or isinstance(parent, ast.Call)
            and getattr(parent.func, 'id', None) in UNORDERED):
        values = [node.elts]
    for group in values:
        for a, b in pairwise(group):
            if _same_form(a, b) and module.text(a) != module.text(b):
                yield module.replace(
                    a, module.text(b) + module.between(a, b) + module.text(a),
                    last=b)


def _same_form(a: ast.AST, b: ast.AST) -> bool:
    return type(a) is type(b) and isinstance(a, FORMS) and type(
        getattr(a, 'value', None)) is type(getattr(b, 'value', None))


def return_early(node, parent, module) -> Iterator[Edit]:
    """Return from a function early, before each of its statements."""
    if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
        return
    last, value, names = node.body[-1], '', set()
    generates = any(isinstance(x, (ast.Yield, ast.YieldFrom))
                    for x in ast.walk(node))
    if isinstance(last, ast.Return) and last.value and not generates:
        value = f' ({module.text(last.value)})'
        names = _names(last.value, ast.Load)
    # Returning before these are assigned would be a trivial NameError.
    later = names & _names(node, ast.Store) - {
        x.arg for x in ast.walk(node.args) if isinstance(x, ast.arg)}
    for statement in node.body:
        if not later and not _is_text(statement) and not isinstance(
                statement, (ast.Return, ast.Raise, ast.FunctionDef)):
            start, _ = module.span(statement)
            indent = ' ' * statement.col_offset
            yield Edit(statement.lineno, statement.col_offset, start, start,
                       f'return{value}\n{indent}')
        later -= _names(statement, ast.Store)


def _names(node: ast.AST, context: type) -> set[str]:
    return {x.id for x in ast.walk(node)
            if isinstance(x, ast.Name) and isinstance(x.ctx, context)}


def _is_text(statement: ast.AST) -> bool:
    return isinstance(statement, ast.Expr) and isinstance(
        statement.value, ast.Constant)


def remove_check(node, parent, module) -> Iterator[Edit]:
    """Remove a check: ``if a: raise``, or ``a`` of ``a and b``."""
    if isinstance(node, ast.If) and isinstance(node.body[-1], LEAVES):
        yield module.replace(node.test, 'False', place=node)
    if isinstance(node, ast.BoolOp):
        word = ' and ' if isinstance(node.op, ast.And) else ' or '
        for value in node.values:
            kept = [f'({module.text(x)})' for x in node.values
                    if x is not value]
            yield module.replace(
                node, f'({word.join(kept)})', place=value)
    if isinstance(node, ast.BinOp) and isinstance(
            node.op, (ast.BitAnd, ast.BitOr)):
        for kept, gone in pairwise((node.left, node.right, node.left)):
            yield module.replace(
                node, f'({module.text(kept)})', place=gone)


OPERATORS = {
    'fault/RemoveCall': remove_call,
    'fault/DropKeyword': drop_keyword,
    'fault/SwapValues': swap_values,
    'fault/ReturnEarly': return_early,
    'fault/RemoveCheck': remove_check,
}
