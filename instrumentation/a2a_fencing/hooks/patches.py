"""Putting wrappers on SDK methods and taking them off again, whoever wrapped them meanwhile."""

from __future__ import annotations

import copy
import functools
import importlib
import inspect
import operator
import types
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import wrapt

from a2a_fencing import internal_errors

Wrapper = Callable[[Callable[..., Any], Any, tuple[Any, ...], dict[str, Any]], Any]
"""A wrapt wrapper: ``(wrapped, instance, args, kwargs) -> result``."""

Owner = type | types.ModuleType

_INIT_SUBCLASS = "__init_subclass__"
_NO_METHODS = (
    classmethod,
    property,
    type,
    types.BuiltinMethodType,
    types.MethodDescriptorType,
    types.WrapperDescriptorType,
)


class _Switch(list[None]):
    """On while it holds something: wrapt asks before every call, and to ask a list takes no call."""


class _Bound(wrapt.BoundFunctionWrapper):  # type: ignore[type-arg]
    """A hooked method of an object, which can be copied and pickled like any method."""

    def __copy__(self) -> Any:
        return self

    def __deepcopy__(self, memo: Any) -> Any:
        owner = self._self_instance
        return self if owner is None else getattr(copy.deepcopy(owner, memo), self.__name__)

    def __reduce_ex__(self, protocol: Any) -> Any:
        if self._self_instance is None:
            return _named, (self.__module__, self.__qualname__)
        return getattr, (self._self_instance, self.__name__)


class _Hook(wrapt.FunctionWrapper):  # type: ignore[type-arg]
    """A hooked function in a class."""

    __bound_function_wrapper__ = _Bound

    def __copy__(self) -> Any:
        return self

    def __deepcopy__(self, memo: Any) -> Any:
        return self


_functions: weakref.WeakKeyDictionary[Any, _Switch] = weakref.WeakKeyDictionary()
"""Hooks that are plain functions, and their switches. What wrapt makes can stand for anything; where
that is a function, a function costs a fraction of it.
"""


def _coroutine_function(original: types.FunctionType, wrapper: Wrapper, switch: _Switch) -> Any:
    """A hooked coroutine function, which is one itself for whoever asks."""

    @functools.wraps(original)
    async def hook(instance: Any, /, *args: Any, **kwargs: Any) -> Any:
        if not switch:
            return await original(instance, *args, **kwargs)
        return await wrapper(types.MethodType(original, instance), instance, args, kwargs)

    _functions[hook] = switch
    return hook


def _function(original: types.FunctionType, wrapper: Wrapper, switch: _Switch) -> Any:
    """A hooked function. Of a coroutine function it gives what is to be awaited and is none itself: for
    private methods, which nobody asks what they are.
    """

    @functools.wraps(original)
    def hook(instance: Any, /, *args: Any, **kwargs: Any) -> Any:
        if not switch:
            return original(instance, *args, **kwargs)
        return wrapper(types.MethodType(original, instance), instance, args, kwargs)

    _functions[hook] = switch
    return hook


def _named(module: str, qualname: str) -> Any:
    return operator.attrgetter(qualname)(importlib.import_module(module))


class Patches:
    """Every wrapper this project has put somewhere, so that all of them can be undone."""

    def __init__(self) -> None:
        self._switch = _Switch([None])
        self._applied: list[tuple[Owner, str, Any, Any]] = []
        self._watched: list[tuple[type, Any, Any]] = []
        self._adopters: dict[tuple[type, str], weakref.WeakSet[type]] = {}

    def wrap(self, owner: Owner, name: str, wrapper: Wrapper) -> None:
        """Wraps the method or function that `owner` itself defines under `name`.

        Raises:
            KeyError: `owner` defines no such method.
        """
        original = owner.__dict__[name]
        is_method = isinstance(owner, type) and type(original) is types.FunctionType
        if not is_method or inspect.isasyncgenfunction(original):
            ours: Any = _Hook(original, wrapper, self._switch)  # type: ignore[arg-type]
        elif inspect.iscoroutinefunction(original) and not name.startswith("_"):
            ours = _coroutine_function(original, wrapper, self._switch)
        else:
            ours = _function(original, wrapper, self._switch)
        setattr(owner, name, ours)
        self._applied.append((owner, name, original, ours))

    def wrap_all(self, *targets: tuple[Owner | None, str, str, Wrapper]) -> list[str]:
        """Wraps what is there, and returns ``Class.method`` of each target that is not.

        Args:
            *targets: Class or module (None when the SDK has no such thing), its name, method, wrapper.
        """
        missing = []
        for owner, owner_name, method, wrapper in targets:
            if owner is None or method not in owner.__dict__:
                missing.append(f"{owner_name}.{method}")
            elif not _is_ours(owner.__dict__[method]):
                self.wrap(owner, method, wrapper)
        return missing

    def wrap_overrides(self, base: type, name: str, wrapper: Wrapper) -> None:
        """Wraps `name` in `base` and in every class derived from it, now and later.

        Abstract methods stay as they are: nobody calls them but a subclass that is wrapped itself.
        """
        for cls in _family(base):
            self._wrap_override(cls, name, wrapper)
        self._watch(base, functools.partial(self._wrap_override, name=name, wrapper=wrapper))

    def adopt(self, cls: type, name: str, wrapper: Wrapper) -> None:
        """Wraps `name` for objects of a class that derives from no SDK base.

        It may inherit the method from a class that others use for something else: these are let alone.
        """
        owner = next((ancestor for ancestor in cls.__mro__ if name in ancestor.__dict__), None)
        if owner is None:
            return
        known = self._adopters.get((owner, name))
        if known is not None:
            known.add(cls)
            return
        adopters = self._adopters[owner, name] = weakref.WeakSet((cls,))

        def for_adopters(wrapped: Any, instance: Any, args: Any, kwargs: Any) -> Any:
            if any(adopter in type(instance).__mro__ for adopter in adopters):
                return wrapper(wrapped, instance, args, kwargs)
            return wrapped(*args, **kwargs)

        self._wrap_override(owner, name, for_adopters)

    def undo(self) -> None:
        """Restores what is still ours; what others wrapped since is made to pass straight through."""
        self._switch.clear()
        for owner, name, original, ours in reversed(self._applied):
            if owner.__dict__.get(name) is ours:
                setattr(owner, name, original)
            else:
                _splice(owner.__dict__.get(name), ours, original)
        for base, original, ours in reversed(self._watched):
            if base.__dict__.get(_INIT_SUBCLASS) is not ours:
                continue  # somebody wrapped it since; ours only calls on while disabled
            if original is None:
                delattr(base, _INIT_SUBCLASS)
            else:
                setattr(base, _INIT_SUBCLASS, original)
        self._applied.clear()
        self._watched.clear()
        self._adopters.clear()

    def _wrap_override(self, cls: type, name: str, wrapper: Wrapper) -> None:
        method = cls.__dict__.get(name)
        if (
            _is_method(method)
            and not _is_ours(method)
            and not getattr(method, "__isabstractmethod__", False)
        ):
            self.wrap(cls, name, wrapper)

    def _watch(self, base: type, on_new_class: Callable[[type], None]) -> None:
        original: Any = base.__dict__.get(_INIT_SUBCLASS)

        def init_subclass(cls: Any, /, **kwargs: Any) -> None:
            if original is None:
                super(base, cls).__init_subclass__(**kwargs)  # type: ignore[arg-type]
            else:
                original.__get__(None, cls)(**kwargs)
            if self._switch:
                try:
                    on_new_class(cls)
                except Exception as error:
                    internal_errors.report("new subclass", error)

        ours: Any = classmethod(init_subclass)
        setattr(base, _INIT_SUBCLASS, ours)
        self._watched.append((base, original, ours))


def _is_method(method: Any) -> bool:
    """Whether a class attribute becomes a method of the class's instances: a function, or what stands
    for one (``partialmethod``, a decorator's object).
    """
    if inspect.isfunction(inspect.unwrap(method, stop=_is_ours) if callable(method) else method):
        return True
    binds = hasattr(type(method), "__get__") and not isinstance(method, _NO_METHODS)
    return binds and (callable(method) or isinstance(method, functools.partialmethod))


def _is_ours(method: Any) -> bool:
    """Whether it is a hook that is on. One that is off may be left where a class took it over."""
    if type(method) is types.FunctionType:
        return bool(_functions.get(method))
    switch: Any = method._self_enabled if isinstance(method, wrapt.FunctionWrapper) else None
    return isinstance(switch, _Switch) and bool(switch)


def _family(base: type) -> Iterator[type]:
    """`base` and all classes derived from it, each once."""
    seen: set[type] = set()
    pending = [base]
    while pending:
        cls = pending.pop()
        if cls not in seen:
            seen.add(cls)
            yield cls
            pending.extend(cls.__subclasses__())


def _splice(outer: Any, ours: Any, original: Any) -> None:
    """Takes `ours` out of a chain of wrappers, where the wrapper around it lets us."""
    seen: set[int] = set()
    while outer is not None and id(outer) not in seen:
        seen.add(id(outer))
        inner = getattr(outer, "__wrapped__", None)
        if inner is ours:
            if isinstance(outer, wrapt.FunctionWrapper | wrapt.ObjectProxy):
                outer.__wrapped__ = original
            return
        outer = inner
