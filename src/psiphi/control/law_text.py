"""The text of a Python function, as a syntax tree: certain to be what runs.

The function's file is compiled again, and one of the functions in it must come out as the one that is asked about: text that
was edited since, or that lambdas of one line share, is no text of it.
"""

from __future__ import annotations

import ast
import linecache
from collections.abc import Iterator
from functools import lru_cache
from types import CodeType, FunctionType

FUNCTIONS = (ast.FunctionDef, ast.Lambda)
FILES = 8  # parsed files that are remembered


def text_of(function: FunctionType) -> ast.FunctionDef | ast.Lambda | None:
    """The function's syntax tree; None where its text is not at hand, or not for certain its own."""
    code = function.__code__
    try:
        tree, codes = _file("".join(linecache.getlines(code.co_filename, function.__globals__)))
    except (SyntaxError, ValueError, RecursionError):
        return None
    names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    same = [
        node
        for node in ast.walk(tree)
        if isinstance(node, FUNCTIONS)
        and (_first(node), _name(node), _arguments(node)) == (code.co_firstlineno, code.co_name, names)
    ]
    return same[0] if len(same) == 1 and code in codes else None


@lru_cache(FILES)
def _file(text: str) -> tuple[ast.Module, list[CodeType]]:
    tree = ast.parse(text)
    return tree, list(_codes(compile(tree, "", "exec", dont_inherit=True)))


def _codes(code: CodeType) -> Iterator[CodeType]:
    """The code and all that is defined in it."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _codes(constant)


def _first(node: ast.FunctionDef | ast.Lambda) -> int:
    """Its first line, decorators among them."""
    return min(x.lineno for x in (node, *getattr(node, "decorator_list", ())))


def _name(node: ast.FunctionDef | ast.Lambda) -> str:
    return getattr(node, "name", "<lambda>")


def _arguments(node: ast.FunctionDef | ast.Lambda) -> tuple[str, ...]:
    return tuple(x.arg for x in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs))
