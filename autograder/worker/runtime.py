"""Executes a student's cells and answers requests about what they defined.

The same class serves the worker process and the notebook's own kernel. Requests and replies are dicts of plain values;
the student's objects stay here, and handles name them. See `perform` for the requests.
"""

from __future__ import annotations

import contextlib
import functools
import linecache
import os
import sys
import traceback
import types
import weakref
from typing import Any, ClassVar

import numpy as np

from autograder.worker import protocol
from autograder.worker.arguments import arrived
from autograder.worker.hashing import hash_elsewhere, hashes
from autograder.worker.naming import seen_as
from autograder.worker.values import (
    BadResult,
    array_of,
    ids_of,
    plain,
    snapshot,
    unchanged,
    which_entry,
)

MAX_MESSAGE = 600  # characters of an error's message
MAX_LINE = 200  # characters of a line of code, and of a name
MAX_REPLY_BYTES = 100_000  # unless the request implies more
_WRAPPERS = (staticmethod, classmethod, type(functools.cache(len)))


class Runtime:
    """A student's namespace, and the objects that its functions returned.

    interruptible: pass an interrupt from the keyboard on to the caller, and do not treat it as the student's error.
    """

    # Kept as long as the process: a student may cache by id(), and the id of a freed model can be reused.
    _models: ClassVar[dict[str, Any]] = {}
    _given_out: ClassVar[list[Any]] = []
    _patched: ClassVar[tuple[Any, ...]] = ("", {}, None)  # the model patched last, the patches, and the result

    def __init__(self, namespace: dict[str, Any], interruptible: bool = False):
        self.namespace = namespace
        self._interruptible = interruptible
        self.handles: dict[int, Any] = {}
        self._returned: dict[str, tuple[Any, Any]] = {}  # by each function at its last call, with a copy
        self._cells_hash = False
        self._nth = 0  # which of many calls is running

    def answer(self, request: dict[str, Any]) -> bytes:
        """The frame of the reply to a request, at most "max_bytes" long, with the request's number."""
        number = {key: request.pop(key) for key in ("number",) if key in request}
        most = request.pop("max_bytes", MAX_REPLY_BYTES)
        reply = self.perform(request)
        try:
            frame = protocol.encode(reply | number)
            if len(frame) <= most:
                return frame
            message = f"the result takes {len(frame):,} bytes, where at most {most:,} are expected"
        except Exception as error:
            message = f"the result cannot be passed on ({_sayable(str(error), MAX_MESSAGE)})"
        return protocol.encode({"error": _bad_result(message)} | number)

    def perform(self, request: dict[str, Any]) -> dict[str, Any]:
        """Answer one request: {"value": ...} or {"error": {...}}.

        `op` is one of: run_cell, show_cell, hashes, call, calls, method, methods, attribute, length, bytes_held,
        keep, make_cache, read_cache, release, read_file, write_file, file_exists.
        """
        try:
            reply = getattr(self, "_op_" + request["op"])(request)
            if request["op"] == "make_cache" or request.get("returns") == "handle":
                reply["class"] = _sayable(type(self.handles.get(reply.get("value"))).__name__, MAX_LINE)
            return reply
        except BadResult as error:
            return {"error": {**_bad_result(_sayable(str(error), MAX_MESSAGE)), "call": self._nth}}
        except BaseException as error:
            if self._interruptible and isinstance(error, KeyboardInterrupt):
                raise
            return {"error": {**self._describe(error), "call": self._nth}}

    # Cells

    def _known_to_tracebacks(self, cell):
        """The name under which a cell is compiled."""
        source, filename = cell["source"], f"<{cell['label']}>"
        linecache.cache[filename] = (len(source), None, source.splitlines(keepends=True), filename)
        return filename

    def _op_run_cell(self, request):
        from autograder.worker.cells import compile_cell

        code = compile_cell(request["source"], self._known_to_tracebacks(request), self.namespace)
        self._cells_hash = self._cells_hash or hashes(code)
        exec(code, self.namespace)
        return {"value": None}

    def _op_show_cell(self, request):
        """Run a cell and return its outputs."""
        from autograder.worker.showing import show_cell

        filename = self._known_to_tracebacks(request)
        kept = show_cell(request["source"], filename, self.namespace)
        return {"value": {"outputs": kept.outputs, "cut": kept.cut}}

    def _op_go_elsewhere(self, request):
        from autograder.worker.elsewhere import go_elsewhere

        go_elsewhere()
        return {"value": None}

    def _op_hashes(self, request):
        """Whether the student's code hashes or makes sets, so that its results may differ in another process."""
        if self._cells_hash:
            return {"value": True}
        found = [*self.namespace.values()]
        found += [v for c in found if isinstance(c, type) and c.__module__ == "__main__" for v in vars(c).values()]
        functions = [value.__wrapped__ if isinstance(value, _WRAPPERS) else value for value in found]
        functions = [value for value in functions if isinstance(value, types.FunctionType)]
        return {"value": any(hashes(f.__code__) for f in functions if f.__globals__ is self.namespace)}

    # Calls

    def _op_call(self, request):
        name = request["name"]
        if name not in self.namespace:
            return _missing(name)
        return self._counted(request) if request.get("count") else self._invoke(self.namespace[name], request)

    def _expect_kept(self, name, result):
        """Raise BadResult if a call has overwritten what an earlier one returned."""
        if name in self._returned and not unchanged(*self._returned[name]):
            raise BadResult("this call has overwritten what an earlier one returned: make it anew each time")
        self._returned[name] = (result, snapshot(result))

    def _op_calls(self, request):
        """Many calls of one function, each with its own arguments; they stop at the first that raises."""
        return self._each(lambda call: self._op_call({**request, "args": call[0], "kwargs": call[1]}), request["calls"])

    def _counted(self, request):
        """Make a call, and count the tokens that go through the model; None if nothing recorded any."""
        from autograder.toolkit.model import Weights
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
        method = getattr(self.handles[request["handle"]], request["name"])
        if not request.get("count"):
            return self._invoke(method, request)
        from autograder.worker.counting import OF_A_CHAT_MODEL, Meter

        self.meter, self.noted = Meter(request["n_layer"], *OF_A_CHAT_MODEL), []
        with self.meter.watching(self.namespace):
            reply = self._invoke(method, request)
        return {**reply, "tokens": self.meter.tokens, "noted": self.noted}

    def _op_methods(self, request):
        """Many calls of one object's methods; they stop at the first that raises."""
        return self._each(lambda call: self._op_method({**request, "name": call[0], "args": call[1]}), request["calls"])

    def _each(self, answer, calls):
        values: list[Any] = []
        changed = False
        for self._nth, call in enumerate(calls):
            reply = answer(call)
            if "error" in reply:
                return reply
            values.append(reply["value"])
            changed = changed or bool(reply["changed"])
        return {"value": values, "changed": [0] if changed else []}

    def _op_bytes_held(self, request):
        from autograder.worker.holding import bytes_held

        return {"value": bytes_held(self.handles[request["handle"]])}

    def _invoke(self, function, request, prepare=lambda argument: argument):
        args = [prepare(arrived(a, self)) for a in request.get("args", [])]
        kwargs = {key: arrived(a, self) for key, a in request.get("kwargs", {}).items()}
        given = (*args, *kwargs.values())
        before = [snapshot(a) for a in given]
        with self._elsewhere() if request.get("elsewhere") else contextlib.nullcontext():
            self.handles.pop(request.get("replaced"), None)  # so that the next object gets its place
            result = function(*args, **kwargs)
        if request["op"] == "call" and request["returns"] in ("array", "ids"):
            self._expect_kept(request["name"], result)
        changed = [i for i, (a, b) in enumerate(zip(given, before, strict=True)) if not unchanged(a, b)]
        value = which_entry(result, given) if request["returns"] == "entry" else self._give(result, request["returns"])
        return {"value": value, "changed": changed}

    @contextlib.contextmanager
    def _elsewhere(self):
        """Run as if in another process, where Python salts the hashes of strings with another secret."""
        own = {"hash": self.namespace["hash"]} if "hash" in self.namespace else {}
        if not own:
            self.namespace["hash"] = hash_elsewhere
        try:
            yield
        finally:
            if not own:
                self.namespace.pop("hash", None)

    def _op_attribute(self, request):
        value = getattr(self.handles[request["handle"]], request["name"])
        return {"value": self._give(value, request["returns"])}

    def _op_length(self, request):
        return {"value": len(self.handles[request["handle"]])}

    def _op_keep(self, request):
        value = arrived(request["value"], self)
        kept = self.handles.pop(request.get("replaced"), None)
        # A new object often gets the id() of a released one. If nothing else refers to it, it stands for the new one.
        if kept is None or sys.getrefcount(kept) > 2 or weakref.getweakrefcount(kept):
            kept = object.__new__(type(value))
        kept.__dict__.clear()
        kept.__dict__.update(value.__dict__)
        return {"value": self._keep(kept)}

    # Caches

    def _op_make_cache(self, request):
        if "ModelCache" not in self.namespace:
            return _missing("ModelCache")
        self.handles.pop(request.get("replaced"), None)
        cache = self.namespace["ModelCache"](request["n_layer"])
        for layer, (keys, values) in zip(cache.layers, request["kv"], strict=True):
            if keys.shape[1]:
                layer.append(np.array(keys), np.array(values))
        return {"value": self._keep(cache)}

    def _op_read_cache(self, request):
        cache = self.handles[request["handle"]]
        if type(cache) in (type(None), np.ndarray, tuple, list):  # no return, or prefill's logits returned
            raise BadResult(f"the result is no ModelCache but of type {type(cache).__name__}")
        layers = list(cache.layers)
        return {"value": [[array_of(layer.keys, "keys"), array_of(layer.values, "values")] for layer in layers]}

    def _op_release(self, request):
        for handle in request["handles"]:
            self.handles.pop(handle, None)
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

    def model(self, spec, patches):
        """The weights of a model, made once, with tensors replaced."""
        if "llama" in spec:
            from autograder.toolkit.chat import LlamaConfig, random_llama
            from autograder.toolkit.chat.weights import replace_tensor
        else:
            from autograder.toolkit.model import GPT2Config, load_model, random_model
            from autograder.toolkit.model.weights import replace_tensor
        key = repr(sorted(spec.items()))
        if key not in self._models:
            if "name" in spec:
                self._models[key] = load_model(spec["name"])
            elif "llama" in spec:
                self._models[key] = random_llama(LlamaConfig(**spec["llama"]), spec["seed"])
            else:
                self._models[key] = random_model(GPT2Config(**spec["config"]), spec["seed"])
        weights = self._models[key]
        if not patches:
            return weights
        of, how, patched = self._patched
        if of == key and how.keys() == patches.keys() and all(np.array_equal(how[n], a) for n, a in patches.items()):
            return patched  # as in a notebook, where weights are one object in many calls
        for name, array in patches.items():
            weights = replace_tensor(weights, name, array)
        self._given_out.append(weights)
        Runtime._patched = (key, patches, weights)
        return weights

    def _give(self, value, returns):
        if returns == "handle":
            return self._keep(value)
        if returns == "array":
            return array_of(value, "the result")
        if returns == "ids":
            return ids_of(value)
        if returns == "none":
            return None
        return plain(value, depth=0)

    def _keep(self, value):
        handle = max(self.handles, default=0) + 1
        self.handles[handle] = value
        return handle

    # Errors

    def _describe(self, error: BaseException) -> dict[str, Any]:
        try:
            message = error.msg if isinstance(error, SyntaxError) else str(error)  # str would repeat the place
        except BaseException:
            message = ""
        return {
            "kind": "raised",
            "type": _sayable(type(error).__name__, MAX_LINE),
            "message": _sayable(message, MAX_MESSAGE),
            "refusal": isinstance(error, (ValueError, IndexError)),
            "stub": isinstance(error, NotImplementedError),
            "where": self._where(error),
        }

    def _where(self, error: BaseException) -> dict[str, Any] | None:
        """The innermost line of the student's code in the error's traceback."""
        if isinstance(error, SyntaxError) and error.lineno:
            return {
                "cell": _sayable((error.filename or "").strip("<>"), MAX_LINE),
                "line": error.lineno,
                "text": _sayable((error.text or "").strip(), MAX_LINE),
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
            cell = seen_as("".join(linecache.getlines(filename)), "its cell")
        cell, text, function = (_sayable(part, MAX_LINE) for part in (cell, text, function))
        return {"cell": cell, "line": line, "text": text, "function": function}


def _missing(name: str) -> dict[str, Any]:
    return {"error": {"kind": "missing", "type": "NameError", "message": f"name '{name}' is not defined"}}


def _bad_result(message: str) -> dict[str, Any]:
    return {"kind": "bad-result", "type": "BadResult", "message": message}


def _sayable(text: Any, most: int) -> str:
    """The beginning of a text, without lone surrogates, which UTF-8 cannot encode."""
    return str(text)[:most].encode("utf-8", "backslashreplace").decode()


def import_given(path: str | None) -> None:
    """Make `from given import ...` find the given.py at path, whatever the working directory is."""
    if path is None:
        return
    import importlib.util

    spec = importlib.util.spec_from_file_location("given", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules["given"] = module
    spec.loader.exec_module(module)
