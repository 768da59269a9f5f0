"""Executes a student's cells and answers requests about what they defined.

The same class serves the worker process and the notebook's own kernel. A request is a dict of plain values and so is
the reply; the student's objects stay here and are named by handles. See `perform` for the requests.
"""

from __future__ import annotations

import contextlib
import dis
import functools
import linecache
import operator
import os
import sys
import traceback
import types
from typing import Any, ClassVar

import numpy as np

MAX_IDS = 100_000
MAX_MESSAGE = 600  # characters of an error's message
_AS_IT_IS = frozenset({int, str, float})  # most of what goes in and out: nothing to do, and done at once


class BadResult(Exception):
    """The student's function returned something that cannot be what was asked for."""


class Runtime:
    """A student's namespace and the objects that came out of it.

    interruptible: an interrupt from the keyboard is for whoever asked, and no error of the student's code.
    """

    # Kept as long as the process: a student may cache by id(), and a freed model's id comes again.
    _models: ClassVar[dict[str, Any]] = {}
    _given_out: ClassVar[list[Any]] = []

    def __init__(self, namespace: dict[str, Any], interruptible: bool = False):
        self.namespace = namespace
        self._interruptible = interruptible
        self._handles: dict[int, Any] = {}
        self._cells_hash = False

    def perform(self, request: dict[str, Any]) -> dict[str, Any]:
        """Answer one request: {"value": ...} or {"error": {...}}.

        `op` is one of: run_cell, defined, hashes, call, calls, method, attribute, length, make_cache, read_cache,
        release, read_file, write_file, file_exists.
        """
        try:
            return getattr(self, "_op_" + request["op"])(request)
        except BadResult as error:
            return {"error": {"kind": "bad-result", "type": "BadResult", "message": str(error)[:MAX_MESSAGE]}}
        except BaseException as error:
            if self._interruptible and isinstance(error, KeyboardInterrupt):
                raise
            return {"error": self._describe(error)}

    # Cells

    def _op_run_cell(self, request):
        from autograder.worker.cells import compile_cell

        label, source = request["label"], request["source"]
        filename = f"<{label}>"
        linecache.cache[filename] = (len(source), None, source.splitlines(keepends=True), filename)
        code = compile_cell(source, filename, self.namespace)
        self._cells_hash = self._cells_hash or _hashes(code)
        exec(code, self.namespace)
        return {"value": None}

    def _op_hashes(self, request):
        """Whether the student's code hashes, or makes sets: what may come out otherwise in another process."""
        if self._cells_hash:
            return {"value": True}
        found = [*self.namespace.values()]
        found += [v for c in found if isinstance(c, type) and c.__module__ == "__main__" for v in vars(c).values()]
        functions = [value.__wrapped__ if isinstance(value, _WRAPPERS) else value for value in found]
        functions = [value for value in functions if isinstance(value, types.FunctionType)]
        return {"value": any(_hashes(f.__code__) for f in functions if f.__globals__ is self.namespace)}

    # Calls

    def _op_call(self, request):
        name = request["name"]
        if name not in self.namespace:
            return {"error": {"kind": "missing", "type": "NameError", "message": f"{name} is not defined"}}
        return self._counted(request) if request.get("count") else self._invoke(self.namespace[name], request)

    def _op_calls(self, request):
        """Many calls of one function, each with arguments of its own; the first that raises ends them."""
        values: list[Any] = []
        changed = False
        for args, kwargs in request["calls"]:
            reply = self._op_call({**request, "args": args, "kwargs": kwargs})
            if "error" in reply:
                return reply
            values.append(reply["value"])
            changed = changed or bool(reply["changed"])
        return {"value": values, "changed": [0] if changed else []}

    def _counted(self, request):
        """A call, and the tokens that went through the model while it ran; None when no way of counting saw any."""
        from autograder.model import Weights
        from autograder.worker.counting import Meter

        meter = Meter()

        def noting(argument):
            if not isinstance(argument, Weights):
                return argument
            weights = meter.weights(argument)
            self._given_out.append(weights)
            return weights

        with meter.watching(self.namespace):
            reply = self._invoke(self.namespace[request["name"]], request, noting)
        return {**reply, "tokens": meter.tokens}

    def _op_method(self, request):
        return self._invoke(getattr(self._handles[request["handle"]], request["name"]), request)

    def _invoke(self, function, request, prepare=lambda argument: argument):
        args = [prepare(self._argument(a)) for a in request.get("args", [])]
        kwargs = {key: self._argument(a) for key, a in request.get("kwargs", {}).items()}
        given = (*args, *kwargs.values())
        before = [_snapshot(a) for a in given]
        with self._elsewhere() if request.get("elsewhere") else contextlib.nullcontext():
            result = function(*args, **kwargs)
        changed = [i for i, (a, b) in enumerate(zip(given, before, strict=True)) if not _unchanged(a, b)]
        value = _which(result, given) if request["returns"] == "entry" else self._give(result, request["returns"])
        return {"value": value, "changed": changed}

    @contextlib.contextmanager
    def _elsewhere(self):
        """As if in another process, where Python salts the hash of text with another secret."""
        own = {"hash": self.namespace["hash"]} if "hash" in self.namespace else {}
        if not own:
            self.namespace["hash"] = _hash_elsewhere
        try:
            yield
        finally:
            if not own:
                self.namespace.pop("hash", None)

    def _op_attribute(self, request):
        value = getattr(self._handles[request["handle"]], request["name"])
        return {"value": self._give(value, request["returns"])}

    def _op_length(self, request):
        return {"value": len(self._handles[request["handle"]])}

    # Caches

    def _op_make_cache(self, request):
        cache = self.namespace["ModelCache"](request["n_layer"])
        for layer, (keys, values) in zip(cache.layers, request["kv"], strict=True):
            if keys.shape[1]:
                layer.append(np.array(keys), np.array(values))
        return {"value": self._keep(cache)}

    def _op_read_cache(self, request):
        layers = list(self._handles[request["handle"]].layers)
        return {"value": [[_array(layer.keys, "keys"), _array(layer.values, "values")] for layer in layers]}

    def _op_release(self, request):
        for handle in request["handles"]:
            self._handles.pop(handle, None)
        return {"value": None}

    # Files in the working directory

    def _op_read_file(self, request):
        with open(request["path"], "rb") as file:
            return {"value": file.read()}

    def _op_write_file(self, request):
        os.makedirs(os.path.dirname(request["path"]) or ".", exist_ok=True)
        with open(request["path"], "wb") as file:
            file.write(request["data"])
        return {"value": None}

    def _op_file_exists(self, request):
        return {"value": os.path.isfile(request["path"])}

    # Values in and out

    def _argument(self, value):
        if type(value) in _AS_IT_IS:
            return value
        if type(value) is list and _AS_IT_IS.issuperset(map(type, value)):
            return list(value)
        if isinstance(value, dict):
            if "__handle__" in value:
                return self._handles[value["__handle__"]]
            if "__entry__" in value:
                return Entry(list(value["__entry__"]))
            if "__text__" in value:
                return _text(value["__text__"], value["form"])
            if "__tuple__" in value:
                return tuple(self._argument(v) for v in value["__tuple__"])
            if "__model__" in value:
                weights = self._model(value["__model__"], value.get("patches") or {})
                return _part(weights, value["part"]) if "part" in value else weights
            return {key: self._argument(v) for key, v in value.items()}
        if isinstance(value, (list, tuple)):
            return [self._argument(v) for v in value]
        if isinstance(value, np.ndarray):
            return value.copy()
        return value

    def _model(self, spec, patches):
        from autograder.model import GPT2Config, load_model, random_model
        from autograder.model.weights import replace_tensor

        key = repr(sorted(spec.items()))
        if key not in self._models:
            if "name" in spec:
                self._models[key] = load_model(spec["name"])
            else:
                self._models[key] = random_model(GPT2Config(**spec["config"]), spec["seed"])
        weights = self._models[key]
        for name, array in patches.items():
            weights = replace_tensor(weights, name, array)
            self._given_out.append(weights)
        return weights

    def _give(self, value, returns):
        if returns == "handle":
            return self._keep(value)
        if returns == "array":
            return _array(value, "the result")
        if returns == "ids":
            return _ids(value)
        if returns == "none":
            return None
        return _plain(value, depth=0)

    def _keep(self, value):
        handle = max(self._handles, default=0) + 1
        self._handles[handle] = value
        return handle

    # Errors

    def _describe(self, error: BaseException) -> dict[str, Any]:
        try:
            message = error.msg if isinstance(error, SyntaxError) else str(error)  # str names the place once more
        except BaseException:
            message = ""
        return {
            "kind": "raised",
            "type": type(error).__name__,
            "message": message[:MAX_MESSAGE],
            "loud": isinstance(error, (ValueError, IndexError)),
            "stub": isinstance(error, NotImplementedError),
            "where": self._where(error),
        }

    def _where(self, error: BaseException) -> dict[str, Any] | None:
        """The line of the student's code that the error came through last."""
        if isinstance(error, SyntaxError) and error.lineno:
            return {
                "cell": (error.filename or "").strip("<>"),
                "line": error.lineno,
                "text": (error.text or "").strip(),
            }
        place = None
        for frame, line in traceback.walk_tb(error.__traceback__):
            if frame.f_globals is self.namespace:
                place = (frame.f_code.co_filename, line, frame.f_code.co_name)
        if place is None:
            return None
        filename, line, function = place
        text = linecache.getline(filename, line).strip()
        if filename.startswith("<"):
            cell = filename.strip("<>")
        else:  # a kernel compiles each cell under the name of a temporary file, which tells nobody anything
            cell = f"the cell with {function}" if function.isidentifier() else "its cell"
        return {"cell": cell, "line": line, "text": text[:200], "function": function}


def _part(weights, path):
    """A part of the weights by its path, such as "blocks.1.attn"."""
    for name in path.split("."):
        weights = weights[int(name)] if name.isdigit() else getattr(weights, name)
    return weights


class Entry:
    """What `lookup` ranks: an object with token_ids, as a store of saved prefixes holds.

    It has all that the notebook's Entry has, with the cache and the name that an Entry made of ids alone has there.
    """

    def __init__(self, token_ids: list[int]):
        self.token_ids = token_ids
        self.cache = None
        self.name = ""

    def __repr__(self) -> str:
        return f"Entry({len(self.token_ids)} token_ids)"


class _EntryBefore:
    """An entry's content before a call, to compare with."""

    def __init__(self, entry):
        self._token_ids = list(entry.token_ids)

    def __eq__(self, other):
        return isinstance(other, Entry) and other.token_ids == self._token_ids

    __hash__ = None


def _which(result, given):
    """The index of the entry that came back, counted over all entries among the arguments; None for none."""
    if result is None:
        return None
    entries = [e for a in given if isinstance(a, (list, tuple)) for e in a if isinstance(e, Entry)]
    for i, entry in enumerate(entries):
        if entry is result:
            return i
    raise BadResult(f"the result is neither one of the entries nor None but of type {type(result).__name__}")


_WRAPPERS = (staticmethod, classmethod, type(functools.cache(len)))
_HASHING = frozenset({"hash", "__hash__", "set", "frozenset", "id"})
_SET_CODES = frozenset(dis.opmap[name] for name in ("BUILD_SET", "SET_ADD", "SET_UPDATE"))


def _hashes(code):
    """Whether a function's code names what hashes or makes a set, in functions inside it too."""
    inside = [constant for constant in code.co_consts if isinstance(constant, types.CodeType)]
    return (
        not _HASHING.isdisjoint(code.co_names)
        or not _SET_CODES.isdisjoint(code.co_code[::2])
        or any(map(_hashes, inside))
    )


class _SaltedText(str):
    """A text with the hash that it might have in another process."""

    salt = 0  # of all such texts; one call is made at a time

    def __hash__(self):
        return hash((self.salt, str(self)))


def _text(text, form):
    """The text as an object of its own, as the one object that all equal texts are, or salted with a number."""
    if form == "own":
        return "".join(list(text))
    if form == "one":
        return sys.intern(text)
    _SaltedText.salt = form
    return _SaltedText(text)


def _hash_elsewhere(value):
    """hash(), except that text hashes as it might in another process."""
    if isinstance(value, (str, bytes)):
        return hash((1, value))
    if isinstance(value, tuple):
        return hash(tuple(_hash_elsewhere(v) for v in value))
    if isinstance(value, frozenset):
        return hash(frozenset(_hash_elsewhere(v) for v in value))
    return hash(value)


def _snapshot(value):
    """What to compare an argument with after the call; None for an object of the student's, whatever it inherits from.

    A cache may well be a list with a constructor and a clone() of its own.
    """
    if type(value) is np.ndarray:
        return value.copy()
    if type(value) in (list, tuple, dict):
        return _copy_plain(value)
    return None


def _copy_plain(value):
    if type(value) in _AS_IT_IS:
        return value
    if type(value) is list and _AS_IT_IS.issuperset(map(type, value)):
        return list(value)
    if type(value) in (list, tuple):
        return type(value)(_copy_plain(v) for v in value)
    if isinstance(value, Entry):
        return _EntryBefore(value)
    if type(value) is dict:
        return {k: _copy_plain(v) for k, v in value.items()}
    return value


def _unchanged(value, before):
    if isinstance(before, np.ndarray):
        return value.shape == before.shape and value.tobytes() == before.tobytes()
    if isinstance(before, (list, tuple, dict)):
        return value == before
    return True


def _array(value, what):
    try:
        array = np.array(value, copy=True, subok=False)
    except Exception as error:
        raise BadResult(f"{what} is not an array ({type(value).__name__}: {error})") from None
    if array.dtype.kind == "f" and array.dtype.itemsize > 8:
        array = array.astype(np.float64)  # a longdouble is a float like any other
    if array.dtype.kind not in "fiub" or array.dtype.itemsize > 8:
        kind, why = type(value).__name__, ""
        if value is None:
            why = " (a function without a return gives None)"
        elif callable(value):
            why = " (is the line @property missing above it?)"
        raise BadResult(f"{what} is not an array of numbers but {kind} of dtype {array.dtype}{why}")
    return array


def _ids(value):
    ids = []
    for item in _iterated(value):
        one = item.item() if isinstance(item, (np.ndarray, np.generic)) and item.size == 1 else item
        try:
            ids.append(operator.index(one))
        except TypeError:
            shape = f" and shape {list(item.shape)}" if isinstance(item, np.ndarray) else ""
            kind = f"of type {type(item).__name__}{shape}"
            raise BadResult(f"the result is not a list of token ids: its element {len(ids)} is {kind}") from None
        if len(ids) > MAX_IDS:
            raise BadResult(f"the result has more than {MAX_IDS:,} ids")
    return ids


def _iterated(value):
    try:
        return iter(value)
    except TypeError:
        raise BadResult(f"the result is not a list of token ids but {type(value).__name__}") from None


def _plain(value, depth):
    if type(value) is str:
        return value
    if depth > 20:
        raise BadResult("the result is nested too deeply")
    if isinstance(value, int) and not -(2**63) <= value < 2**64:
        raise BadResult("the result is a whole number of more than 64 bits")
    if value is None or isinstance(value, (bool, int, float, str, bytes)):
        for kind in (bool, int, float, str, bytes):  # a subclass is reduced to its base
            if isinstance(value, kind):
                return kind(value)
        return None
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, np.ndarray):
        return _array(value, "the result")
    if isinstance(value, (list, tuple)):
        return [_plain(v, depth + 1) for v in value]
    if isinstance(value, (set, frozenset)):
        return sorted((_plain(v, depth + 1) for v in value), key=repr)
    if isinstance(value, dict):
        return {str(k): _plain(v, depth + 1) for k, v in value.items()}
    raise BadResult(f"the result is of type {type(value).__name__}, which is not a plain value")


def import_given(path: str | None) -> None:
    """Make `from given import ...` find the given.py at path, whatever the working directory is."""
    if path is None:
        return
    import importlib.util

    spec = importlib.util.spec_from_file_location("given", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules["given"] = module
    spec.loader.exec_module(module)
