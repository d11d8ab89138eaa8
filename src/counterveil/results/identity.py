"""What tells one learner, function or setting from another, as JSON that is the same in every process.

A request id stands for one request. Two functions of one name, or two models of one class with other parameters, are
two requests. An object is identified by its class, the version of the package that has it, and what a copy of it is
made of; folds work on such copies. A function is identified by its compiled code, constants, defaults, closure and
the global values that it names. What a function reads elsewhere, such as a file, is not seen.
"""

from __future__ import annotations

import dis
import hashlib
import json
import math
import sys
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from functools import partial
from pathlib import Path
from types import BuiltinFunctionType, CodeType, FunctionType, MappingProxyType, MethodType, ModuleType
from typing import Any

import numpy as np

from counterveil.errors import refusal

_DEEPEST, _MOST = 40, 200_000
_PLAIN = (str, bool, int, type(None))
# Of a class only what it does counts, not where it stands.
_CLASS_EXTRAS = {"__doc__", "__dict__", "__weakref__", "__module__", "__qualname__", "__annotations__"}
_CLASS_EXTRAS |= {"__firstlineno__", "__static_attributes__", "_abc_impl", "__abstractmethods__", "__hash__"}
_CLASS_EXTRAS |= {"__dataclass_fields__", "__dataclass_params__", "__match_args__"}
_GLOBAL = {"LOAD_GLOBAL", "LOAD_NAME"}


class _UnidentifiedError(Exception):
    """Something in an object cannot be told from another."""


def described(value: Any, request_id: str | None = None) -> Any:
    """Return a setting as JSON: plain values as they are, objects by name and hash.

    An object that cannot be identified is refused (CV-C010) where a request id would stand for it.
    """
    if value is None or isinstance(value, str | bool | int):
        return value
    if isinstance(value, np.generic):
        return described(value.item(), request_id)
    if isinstance(value, float):
        return value if math.isfinite(value) else repr(value)
    if isinstance(value, Fraction | Decimal):
        return str(value)
    if isinstance(value, list | tuple):
        return [described(item, request_id) for item in value]
    if isinstance(value, Mapping) and all(isinstance(key, str) for key in value):
        return {key: described(item, request_id) for key, item in value.items()}
    if is_dataclass(value) and type(value).__module__.partition(".")[0] == "counterveil":
        return {"is": type(value).__name__} | settings_described(value, request_id)
    return _named(value, request_id)


def settings_described(settings: Any, request_id: str | None) -> Any:
    """Return a method's settings field by field, None where there are none."""
    if settings is None:
        return None
    return {field.name: described(getattr(settings, field.name), request_id) for field in fields(settings)}


def _named(value: Any, request_id: str | None) -> dict[str, str]:
    own = value if isinstance(value, FunctionType | type) else type(value)
    name = f"{own.__module__}.{own.__qualname__}"[:200]
    try:
        text = json.dumps(_Writer().write(value, 0), sort_keys=True)
    except Exception as error:
        # Whatever a foreign object does when it is taken apart, it is the same as not being identified.
        if request_id is None:
            return {"is": name, "sha256": "not identified"}
        got = str(error) if isinstance(error, _UnidentifiedError) else type(error).__name__
        raise refusal("CV-C010", name=name, got=got) from None
    return {"is": name, "sha256": hashlib.sha256(text.encode()).hexdigest()}


class _Writer:
    """Takes an object apart; what was met before is named by its place, so that cycles end."""

    def __init__(self) -> None:
        self._places: dict[int, int] = {}
        self._kept: list[Any] = []

    def write(self, value: Any, depth: int) -> Any:
        """Return nested lists of plain values that two objects share only if they are alike."""
        plain = _plain(value)
        if plain is not None:
            return plain
        if id(value) in self._places:
            return ["met before", self._places[id(value)]]
        if depth > _DEEPEST or len(self._kept) > _MOST:
            raise _UnidentifiedError("an object that is too large or too deep")
        self._places[id(value)] = len(self._kept)
        self._kept.append(value)
        return self._parts(value, depth + 1)

    def _parts(self, value: Any, depth: int) -> Any:
        if isinstance(value, list | tuple):
            return [type(value).__name__, *(self.write(item, depth) for item in value)]
        if isinstance(value, set | frozenset):
            return ["set", *sorted(json.dumps(self.write(item, depth), sort_keys=True) for item in value)]
        if isinstance(value, dict | MappingProxyType):
            return [
                "dict",
                *([self.write(key, depth), self.write(item, depth)] for key, item in value.items()),
            ]
        if isinstance(value, np.ndarray) and value.dtype != object:
            content = hashlib.sha256(np.ascontiguousarray(value).tobytes()).hexdigest()
            return ["array", value.dtype.str, list(value.shape), content]
        if isinstance(value, ModuleType):
            return ["module", value.__name__, _origin(value.__name__)]
        if isinstance(value, type):
            return self._class(value, depth)
        if isinstance(value, FunctionType):
            return self._function(value, depth)
        if isinstance(value, CodeType):
            return self._code(value, depth)
        return self._object(value, depth)

    def _object(self, value: Any, depth: int) -> Any:
        if isinstance(value, MethodType):
            return ["method", self.write(value.__self__, depth), self.write(value.__func__, depth)]
        if isinstance(value, staticmethod | classmethod):
            return [type(value).__name__, self.write(value.__func__, depth)]
        if isinstance(value, property):
            return ["property", *(self.write(part, depth) for part in (value.fget, value.fset, value.fdel))]
        if isinstance(value, partial):
            return [
                "partial",
                *(self.write(part, depth) for part in (value.func, value.args, value.keywords)),
            ]
        if isinstance(value, BuiltinFunctionType | np.ufunc):
            bound = getattr(value, "__self__", None)
            named = ["built in", value.__name__, _origin(getattr(value, "__module__", None) or "builtins")]
            return named if isinstance(bound, ModuleType) else [*named, self.write(bound, depth)]
        try:
            parts = value.__reduce_ex__(4)
        except Exception:
            raise _UnidentifiedError(
                f"an object of type {type(value).__name__} that cannot be copied"
            ) from None
        if isinstance(parts, str):
            return ["global", str(getattr(value, "__module__", "")), parts, self.write(type(value), depth)]
        # Items of lists and dictionaries come as iterators.
        made = [part if index < 3 or part is None else list(part) for index, part in enumerate(parts[:5])]
        return ["object", self.write(type(value), depth), *(self.write(part, depth) for part in made)]

    def _class(self, value: type, depth: int) -> Any:
        named = ["class", value.__module__, value.__qualname__]
        if _installed(value.__module__):
            return [*named, _origin(value.__module__)]
        own = sorted((name, part) for name, part in vars(value).items() if name not in _CLASS_EXTRAS)
        parts = [[name, self.write(part, depth)] for name, part in own]
        return [*named, [self.write(base, depth) for base in value.__bases__], parts]

    def _function(self, value: FunctionType, depth: int) -> Any:
        if _installed(value.__module__) and "<" not in value.__qualname__:
            return ["function", value.__module__, value.__qualname__, _origin(value.__module__)]
        cells = [] if value.__closure__ is None else [cell.cell_contents for cell in value.__closure__]
        globals_ = {
            name: value.__globals__[name] for name in _globals_of(value.__code__) if name in value.__globals__
        }
        parts = (value.__code__, value.__defaults__, value.__kwdefaults__, cells, globals_)
        return ["function", *(self.write(part, depth) for part in parts)]

    def _code(self, value: CodeType, depth: int) -> Any:
        counts = (value.co_argcount, value.co_kwonlyargcount, value.co_posonlyargcount, value.co_flags)
        spelled = (value.co_names, value.co_varnames, value.co_freevars, value.co_cellvars)
        code = hashlib.sha256(value.co_code + value.co_exceptiontable).hexdigest()
        return ["code", code, *(self.write(part, depth) for part in (counts, spelled, value.co_consts))]


def _plain(value: Any) -> Any:
    """Return a plain value with its kind, None for what has parts."""
    if type(value) in _PLAIN:
        return [type(value).__name__, value]
    if isinstance(value, float | complex | bytes | Fraction | Decimal | np.generic | range | slice):
        return [type(value).__name__, repr(value)]
    if isinstance(value, Enum):
        return [type(value).__qualname__, value.name]
    return [repr(value)] if value is Ellipsis or value is NotImplemented else None


def _globals_of(code: CodeType) -> list[str]:
    """Return the global names that a function reads, those of functions inside it included."""
    found = {step.argval for step in dis.get_instructions(code) if step.opname in _GLOBAL}
    for part in code.co_consts:
        if isinstance(part, CodeType):
            found |= set(_globals_of(part))
    return sorted(found)


def _installed(module: str) -> bool:
    """Return whether a module belongs to a package with a version, which then stands for its text."""
    return _version(module) is not None


def _version(module: str) -> str | None:
    """Return the version of the package that a module is in, None where it has none."""
    top = module.partition(".")[0]
    if top in sys.stdlib_module_names and top != "__main__":
        return f"python {sys.version_info.major}.{sys.version_info.minor}"
    version = getattr(sys.modules.get(top), "__version__", None)
    return f"{top} {version}" if isinstance(version, str) else None


def _origin(module: str) -> str | None:
    """Return which text a module is: the version of its package, or the hash of its file; None where neither is."""
    version = _version(module)
    if version is not None:
        return version
    file = getattr(sys.modules.get(module), "__file__", None)
    if file is None or module == "__main__":
        return None
    return f"file {hashlib.sha256(Path(file).read_bytes()).hexdigest()}"
