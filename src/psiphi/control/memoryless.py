"""Whether a user's function is one of its arguments alone: read before it is called, so that one that is not stays undisturbed.

The text is followed as it would run, both ways where it branches, by what each value may be (`law_words.py`). Only what is made
in the call may be changed; called are only NumPy's functions, Python's mathematics, psiphi's robots and controllers, and
functions that are read in turn. What was there before may be numbers, texts and arrays, and containers of these. All else is a
doubt, and said in words.

What others change meanwhile, threads or functions that are called beside it, is not seen here.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from functools import partial, reduce
from inspect import CO_VARARGS, CO_VARKEYWORDS
from types import FunctionType, MemberDescriptorType, MethodType, ModuleType
from typing import Any

import numpy as np

from psiphi.catalogue.dynamics import CATALOGUE
from psiphi.closed.system import System
from psiphi.control.law import is_lawful
from psiphi.control.law_text import text_of
from psiphi.control.law_words import (
    ATTRIBUTES,
    CALLED,
    CHANGING,
    MADE,
    METHODS,
    VIEW,
    Existing,
    Found,
    Unsure,
    Usage,
    Value,
    answer,
    computed,
    either,
    found,
    holding,
    is_plain,
    part,
)
from psiphi.functions.robot import Robot

FIELDS = (MemberDescriptorType, type(vars(Usage)["most"]))  # of slots and named tuples


def doubt(function: Any) -> str:
    """What may make a function of (t, q, v) answer otherwise another time, in words; empty where nothing can."""
    try:
        Reader().call(function, [MADE, VIEW, VIEW], {}, "it")
    except (Unsure, RecursionError) as reason:
        return str(reason)
    return ""


class Reader:
    """All that is read of one function: a function that it calls is read once for arguments of one kind."""

    def __init__(self) -> None:
        self.read: dict[tuple, Reading] = {}

    def call(self, f: Any, given: list[Value], named: Mapping[str, Value], text: str) -> Value:
        """What a call of a known object answers."""
        usage = _usage(f, text)
        if usage is not None:
            return answer(usage, given, named, text)
        if type(f) is partial:
            given, named = [*map(Existing, f.args), *given], {**{k: Existing(x) for k, x in f.keywords.items()}, **named}
            return self.call(f.func, given, named, text)
        if type(f) is MethodType:
            f, given = f.__func__, [Existing(f.__self__), *given]
        elif callable(f) and type(f) is not FunctionType:
            f, given = type(f).__call__, [Existing(f), *given]
        if type(f) is not FunctionType:  # nothing to be read
            raise Unsure(f"{text} calls what may remember or vary")
        values = _bound(f, given, named)
        key = (f, *((name, id(x.value) if isinstance(x, Existing) else x) for name, x in values.items()))
        if key not in self.read:
            self.read[key] = Reading(self, f, values)
            self.read[key].run_all()
        return self.read[key].answer

    def attribute(self, x: Any, name: str, text: str) -> Value:
        """The attribute of a known object, where looking at it runs no unknown code."""
        kind, kinds = type(x), type(x).__mro__
        if _is_ours(x):
            return _looked_up(x, name, text)
        if issubclass(kind, ModuleType) and name in vars(x):
            return Existing(vars(x)[name])
        usual = kind.__getattribute__ in (object.__getattribute__, tuple.__getattribute__) and not hasattr(kind, "__getattr__")
        own = getattr(x, "__dict__", {}) if usual else vars(x) if kind is type else {}
        place = next((vars(k) for k in kinds if usual and name in vars(k)), {})
        if not (name in place or name in own):
            raise Unsure(f"{text} is not known")
        there = place.get(name)
        if isinstance(there, FIELDS):
            return _looked_up(x, name, text)
        if isinstance(there, property):
            return self.call(there.fget, [Existing(x)], {}, text)
        if name in own and not hasattr(type(there), "__set__"):
            return Existing(own[name])
        if isinstance(there, FunctionType | staticmethod):
            return Existing(there.__func__ if isinstance(there, staticmethod) else MethodType(there, x))
        if hasattr(type(there), "__get__"):
            raise Unsure(f"{text} is found by a {type(there).__name__}")
        return Existing(there)


def _usage(f: Any, text: str) -> Usage | None:
    """How to call what is known of NumPy, of Python, of psiphi."""
    if type(f) is np.ufunc:
        return Usage(f.nin) if getattr(np, f.__name__, None) is f else None
    if is_lawful(f):
        if f.reference is not None and getattr(f.reference, "constant", None) is None:
            raise Unsure(f"{text} follows a reference in time")
        return Usage(3, VIEW)
    if type(f) is MethodType and isinstance(f.__self__, Robot | System) and _is_ours(f.__self__):
        known = f.__name__ in CATALOGUE and getattr(type(f.__self__), f.__name__, None) is f.__func__
        return Usage(5) if known else None
    return CALLED.get(id(f))


def _looked_up(x: Any, name: str, text: str) -> Existing:
    try:
        return Existing(getattr(x, name))
    except Exception:
        raise Unsure(f"{text} is not there") from None


def _is_ours(x: Any) -> bool:
    """Whether it is an object of psiphi's own."""
    return type(x).__module__.partition(".")[0] == "psiphi"


def _bound(f: FunctionType, given: list[Value], named: Mapping[str, Value]) -> dict[str, Value]:
    """What a function's parameters are in a call."""
    code, count, defaults = f.__code__, f.__code__.co_argcount, f.__defaults__ or ()
    names = code.co_varnames[: count + code.co_kwonlyargcount]
    values: dict[str, Value] = dict(zip(names[count - len(defaults) : count], map(Existing, defaults), strict=True))
    values |= {name: Existing(x) for name, x in (f.__kwdefaults__ or {}).items()}
    values |= {**dict(zip(names, given, strict=False)), **named}
    if len(given) > count or set(values) != set(names) or code.co_flags & (CO_VARARGS | CO_VARKEYWORDS):
        raise Unsure(f"{f.__name__} takes other arguments")
    return values


class Reading:
    """One function read, for arguments of which so much is known."""

    def __init__(self, reader: Reader, function: FunctionType, values: dict[str, Value]):
        self.reader, self.function, self.values, self.given = reader, function, dict(values), values
        self.returned: list[Value] = []
        self.is_read = False
        text = text_of(function)
        if text is None:
            raise Unsure(f"the text of {function.__name__} is not at hand")
        self.body: list[ast.stmt] = text.body if isinstance(text, ast.FunctionDef) else [ast.Return(text.body)]

    def run_all(self) -> None:
        """A name has one value for all places: the text is read again until that is true."""
        before = None
        while before != self.values:
            before, self.returned = dict(self.values), []
            self.run(self.body)
        self.is_read = True

    @property
    def answer(self) -> Value:
        if not self.is_read:
            raise Unsure(f"{self.function.__name__} calls itself")
        return reduce(either, self.returned) if self.returned else Existing(None)

    # statements

    def run(self, body: list[ast.stmt]) -> None:
        for statement in body:
            getattr(self, f"run_{type(statement).__name__}", self.strange)(statement)

    def strange(self, node: ast.AST) -> Any:
        raise Unsure(f"{_words(node)} is beyond what is read")

    def run_Pass(self, node: ast.AST) -> None:
        pass

    run_Break = run_Continue = run_Pass

    def run_Expr(self, node: ast.Expr) -> None:
        self.value(node.value)

    def run_Return(self, node: ast.Return) -> None:
        self.returned.append(Existing(None) if node.value is None else self.value(node.value))

    def run_Assign(self, node: ast.Assign) -> None:
        value = self.value(node.value)
        for target in node.targets:
            pairs = _pairs(target, node.value)
            for one, other in pairs:
                self.bind(one, self.value(other))
            if not pairs:
                self.bind(target, value)

    def run_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value is not None:
            self.bind(node.target, self.value(node.value))

    def run_AugAssign(self, node: ast.AugAssign) -> None:
        """An array changes in place, and so does what a list holds; a number does not."""
        self.number(node.value)
        target, item = node.target, isinstance(node.target, ast.Subscript)
        of = self.number(target.value if isinstance(target, ast.Subscript) else target)
        if not of.made or (item and not of.array):
            raise Unsure(f"{_words(node)} may change what was there before")
        self.bind(target, of)

    def run_If(self, node: ast.If | ast.While) -> None:
        self.number(node.test)
        self.run(node.body)
        self.run(node.orelse)

    run_While = run_If

    def run_For(self, node: ast.For) -> None:
        self.bind(node.target, part(self.number(node.iter)))
        self.run(node.body)
        self.run(node.orelse)

    def bind(self, target: ast.expr, value: Value) -> None:
        """A value gets a name, or a place in what is made here."""
        if isinstance(target, ast.Name):
            self.values[target.id] = either(self.values.get(target.id, value), value)
        elif isinstance(target, ast.Starred):
            self.bind(target.value, value)
        elif isinstance(target, ast.Tuple | ast.List):
            for element in target.elts:
                self.bind(element, part(found(value)))
        elif isinstance(target, ast.Subscript):
            of = self.number(target.value)
            self.number(target.slice)
            if not of.made or not (found(value).numeric or of.array):
                raise Unsure(f"{_words(target)} was there before, or may hold what was, and is changed")
        else:
            raise Unsure(f"{_words(target)} was there before, and is changed")

    # expressions

    def value(self, node: ast.expr) -> Value:
        return getattr(self, f"value_{type(node).__name__}", self.strange)(node)

    def number(self, node: ast.expr) -> Found:
        """The value of an expression that is computed with."""
        return found(self.value(node))

    def numbers(self, *nodes: ast.expr | None) -> list[Found]:
        return [self.number(node) for node in nodes if node is not None]

    def value_Constant(self, node: ast.Constant) -> Value:
        return Existing(node.value)

    def value_Name(self, node: ast.Name) -> Value:
        name, code = node.id, self.function.__code__
        if name in self.values:
            return self.values[name]
        if name in code.co_freevars:
            return _looked_up((self.function.__closure__ or ())[code.co_freevars.index(name)], "cell_contents", name)
        for place in (self.function.__globals__, self.function.__builtins__):
            if name in place and name not in (*code.co_varnames, *code.co_cellvars) and name[:2] != "__":
                return Existing(place[name])
        raise Unsure(f"{name} is not there yet")

    def value_Attribute(self, node: ast.Attribute) -> Value:
        of = self.value(node.value)
        if isinstance(of, Existing) and not is_plain(of.value):
            return self.reader.attribute(of.value, node.attr, _words(node))
        return ATTRIBUTES.get(node.attr) or self.strange(node)

    def value_Subscript(self, node: ast.Subscript) -> Value:
        of, at = self.value(node.value), self.value(node.slice)
        found(at)
        if isinstance(of, Existing) and isinstance(at, Existing) and type(of.value) in (dict, list, tuple):
            try:
                return Existing(of.value[at.value])
            except (LookupError, TypeError):
                return self.strange(node)
        return part(found(of))

    def value_Call(self, node: ast.Call) -> Value:
        text = _words(node)
        if any(isinstance(x, ast.Starred) for x in node.args) or any(x.arg is None for x in node.keywords):
            return self.strange(node)
        given, named = [self.value(x) for x in node.args], {str(x.arg): self.value(x.value) for x in node.keywords}
        if isinstance(node.func, ast.Attribute):
            of, name = self.value(node.func.value), node.func.attr
            if isinstance(of, Found) or is_plain(of.value):
                copied = {"copy": Usage(0, found(of)._replace(made=True))}
                changing = CHANGING if found(of).made and all(found(x).numeric for x in given) else {}
                usage = (METHODS | copied | changing).get(name)
                return answer(usage, given, named, text) if usage else self.strange(node)
        f = self.value(node.func)
        if isinstance(f, Found):
            raise Unsure(f"{text} calls what is not known")
        return self.reader.call(f.value, given, named, text)

    def value_BinOp(self, node: ast.BinOp) -> Value:
        return computed(self.numbers(node.left, node.right))

    def value_UnaryOp(self, node: ast.UnaryOp) -> Value:
        return computed(self.numbers(node.operand))

    def value_Compare(self, node: ast.Compare) -> Value:
        return computed(self.numbers(node.left, *node.comparators))

    def value_List(self, node: ast.Tuple | ast.List) -> Value:
        return holding(self.numbers(*(x.value if isinstance(x, ast.Starred) else x for x in node.elts)))

    value_Tuple = value_List

    def value_Dict(self, node: ast.Dict) -> Value:
        return holding(self.numbers(*node.keys, *node.values))

    def value_Slice(self, node: ast.Slice) -> Value:
        return holding(self.numbers(node.lower, node.upper, node.step))

    def value_BoolOp(self, node: ast.BoolOp) -> Value:
        return reduce(either, map(self.number, node.values))

    def value_IfExp(self, node: ast.IfExp) -> Value:
        self.number(node.test)
        return either(self.value(node.body), self.value(node.orelse))

    def value_ListComp(self, node: ast.ListComp | ast.GeneratorExp) -> Value:
        outside = dict(self.values)
        for one in node.generators:
            self.bind(one.target, part(self.number(one.iter)))
            self.numbers(*one.ifs)
        made = holding(self.numbers(node.elt))
        self.values = outside
        return made

    value_GeneratorExp = value_ListComp


def _pairs(target: ast.expr, value: ast.expr) -> list[tuple[ast.expr, ast.expr]]:
    """a, b = x, y: name by name."""
    if not isinstance(target, ast.Tuple) or not isinstance(value, ast.Tuple) or len(target.elts) != len(value.elts):
        return []
    starred = any(isinstance(x, ast.Starred) for x in (*target.elts, *value.elts))
    return [] if starred else list(zip(target.elts, value.elts, strict=True))


def _words(node: ast.AST, most: int = 50) -> str:
    text = ast.unparse(node).partition("\n")[0]
    return f"`{text if len(text) <= most else text[: most - 3] + '...'}`"
