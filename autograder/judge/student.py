"""The `student` that checks call: the student's functions, in this process or in a worker.

The student's own objects (caches, entries) never leave the process where they were made; a check holds `Handle`s to
them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from autograder.judge.answers import Room, described, expect_array, expect_ids, expect_plain, expect_string, tokens_of
from autograder.judge.bugs import INPUT_CHANGED, Bug
from autograder.judge.cases import JudgeModel
from autograder.judge.framework import Failure
from autograder.judge.reference import KV
from autograder.judge.student_error import NoAnswer, NotWritten, StudentError
from autograder.plain_text import one_line
from autograder.worker.arguments import AsTuple, Entry, Handle, wire
from autograder.worker.protocol import HEAD_BYTES, decode
from autograder.worker.runtime import Runtime

CACHE = {  # the student's methods that making and reading a cache calls
    "make_cache": ("ModelCache.__init__", "ModelCache.layers", "LayerCache.append"),
    "read_cache": ("ModelCache.layers", "LayerCache.keys", "LayerCache.values"),
}
MAX_LAYERS = 1000  # that are asked for, whatever a cache says
MAX_BYTES_TOGETHER = 4_000_000  # of the answers to many calls


class Student:
    """Sends requests to a Runtime through `perform`, which takes a request and returns the reply.

    renew: starts a new process in which the student's cells have run; with True, its strings have other hashes, and it
        has another date and another folder.
    known: what `once` has found in a submission's earlier checks.
    """

    def __init__(
        self,
        perform: Callable[[dict[str, Any]], dict[str, Any]],
        renew: Callable[[bool], None] | None = None,
        known: dict[str, Any] | None = None,
    ):
        self._perform = perform
        self._renew = renew
        self._held: list[int] = []
        self._replaced: int | None = None  # the handle that the next request releases
        self._room = Room()
        self.last: tuple[str, Any] | None = None  # the name and the value of the last reply
        self.gone: Exception | None = None  # the exception that reported the end of the process
        self._asked: list[str] = []  # in this check: functions, and methods with their class
        self._classes: dict[int, str] = {}  # of the objects behind handles
        self._raised: dict[str, NoAnswer] = {}  # in this check, by sentence
        self._known = {} if known is None else known
        self.watched: Collection[str] = ()  # functions that must not change their arguments
        self._elsewhere = False

    # Calls: the result in six forms

    def array(self, name: str, *args: Any, **kwargs: Any) -> np.ndarray:
        """The result as an array of numbers."""
        return expect_array(name, self._call(name, args, kwargs, "array"))

    def ids(self, name: str, *args: Any, **kwargs: Any) -> list[int]:
        """The result as a list of int."""
        return expect_ids(name, self._call(name, args, kwargs, "ids"))

    def counted_ids(self, name: str, *args: Any) -> tuple[list[int], float | None]:
        """The result as a list of int, and how many tokens went through the model; None if nothing was counted."""
        reply = self._reply(name, "call", args, {}, name=name, returns="ids", count=True)
        return expect_ids(name, reply.get("value")), tokens_of(reply)

    def counted_array(self, name: str, *args: Any) -> tuple[np.ndarray, float | None]:
        """The result as an array, and how many tokens went through the model; None if nothing was counted."""
        reply = self._reply(name, "call", args, {}, name=name, returns="array", count=True)
        return expect_array(name, reply.get("value")), tokens_of(reply)

    def handle(self, name: str, *args: Any, **kwargs: Any) -> Handle:
        """The result stays with the student's code."""
        return self._handle(self._call(name, args, kwargs, "handle"), name)

    def plain(self, name: str, *args: Any, **kwargs: Any) -> Any:
        """The result as None, bool, int, float, str, list, dict or array."""
        return expect_plain(name, self._call(name, args, kwargs, "plain"))

    def string(self, name: str, *args: Any, **kwargs: Any) -> str:
        """The result as a string."""
        return expect_string(name, self.plain(name, *args, **kwargs))

    def each_plain(self, name: str, calls: Sequence[tuple[Sequence[Any], dict[str, Any]]]) -> list[Any]:
        """The results of many calls, each with its (args, kwargs), as plain values, in one request."""
        wired = [[[wire(a) for a in args], {key: wire(a) for key, a in kwargs.items()}] for args, kwargs in calls]
        return self._each(name, "calls", wired)

    def entry(self, name: str, *args: Any, **kwargs: Any) -> int | None:
        """Which `Entry` among the arguments, including kept ones, was returned: an index over all of them, or None."""
        value = self._call(name, args, kwargs, "entry")
        lists = [arg.items if isinstance(arg, AsTuple) else arg for arg in args]
        n = sum(isinstance(item, (Entry, Handle)) for some in lists if isinstance(some, (list, tuple)) for item in some)
        if value is not None and not (type(value) is int and 0 <= value < n):
            raise StudentError(name, {"kind": "bad-result", "message": "the result is not one of the entries"})
        return value

    def keep(self, argument: Any) -> Handle:
        """An argument that is the same object in every call to which it is passed."""
        return self._handle(self._value("keep", "keep", value=wire(argument)), "keep")

    @contextmanager
    def elsewhere(self) -> Iterator[None]:
        """Calls in this context answer as in another Python process, where hash() of a string differs."""
        self._elsewhere = True
        try:
            yield
        finally:
            self._elsewhere = False

    def method(self, handle: Handle, name: str, *args: Any, returns: str = "plain", **kwargs: Any) -> Any:
        """handle.name(*args); returns is "plain", "array", "ids", "handle" or "none"."""
        value = self._value(name, "method", args, kwargs, handle=handle.number, name=name, returns=returns)
        return self._as(returns, name, value)

    def counted_method(
        self, handle: Handle, name: str, *args: Any, n_layer: int
    ) -> tuple[list[int], float | None, list[Any]]:
        """handle.name(*args) as ids, how many tokens went through the student's model functions, and how many had done
        so at each call of a NotesWork among the arguments."""
        counting = {"count": True, "n_layer": n_layer}
        reply = self._reply(name, "method", args, {}, handle=handle.number, name=name, returns="ids", **counting)
        noted = reply.get("noted")
        return expect_ids(name, reply.get("value")), tokens_of(reply), noted if isinstance(noted, list) else []

    def each_method(self, handle: Handle, calls: Sequence[tuple[str, Sequence[Any]]]) -> list[Any]:
        """The results of many calls of an object's methods, each with its (name, args), as plain values."""
        wired = [[name, [wire(a) for a in args]] for name, args in calls]
        names = ", ".join(dict.fromkeys(name for name, _ in calls))
        return self._each(names, "methods", wired, handle=handle.number)

    def attribute(self, handle: Handle, name: str, returns: str = "plain") -> Any:
        value = self._value(name, "attribute", handle=handle.number, name=name, returns=returns)
        return self._as(returns, name, value)

    def length(self, handle: Handle) -> int:
        return self._whole("len", "length", handle)

    def bytes_held(self, handle: Handle) -> int:
        """The bytes that can be reached from an object."""
        return self._whole("bytes_held", "bytes_held", handle)

    # Caches

    def make_cache(self, model: JudgeModel, kv: KV) -> Handle:
        """The student's ModelCache, filled through append with one (keys, values) per layer."""
        self._room.make_for(model)
        return self.cache_with(kv)

    def cache_with(self, kv: KV) -> Handle:
        """The same without a model."""
        arrays = [[np.asarray(k, np.float32), np.asarray(v, np.float32)] for k, v in kv]
        self._room.make_for(arrays)
        return self._handle(self._value("ModelCache", "make_cache", n_layer=len(kv), kv=arrays), "ModelCache")

    def layers(self, cache: Handle, n: int | None = None) -> list[Handle]:
        """The first n layers of a cache, or all."""
        layers = self.attribute(cache, "layers", returns="handle")
        n = min(self.length(layers), MAX_LAYERS) if n is None else n
        return [self.method(layers, "__getitem__", i, returns="handle") for i in range(n)]

    def read_cache(self, handle: Handle, name: str = "the saved cache") -> KV:
        """A copy of each layer's (keys, values), each an array of three axes."""
        value = self._value(name, "read_cache", handle=handle.number)
        well_formed = isinstance(value, list) and all(
            isinstance(pair, list)
            and len(pair) == 2
            and all(isinstance(a, np.ndarray) and a.ndim == 3 and a.dtype.kind == "f" for a in pair)
            for pair in value
        )
        if not well_formed:
            message = "keys and values are not float arrays [n_head, n_seq, head_dim] in every layer"
            raise StudentError(name, {"kind": "bad-result", "message": message})
        return [(k, v) for k, v in value]

    # Files in the student's working folder

    def read_file(self, path: str) -> bytes:
        value = self._value(path, "read_file", path=path)
        return value if isinstance(value, bytes) else b""

    def write_file(self, path: str, data: bytes) -> None:
        self._value(path, "write_file", path=path, data=data)

    def file_exists(self, path: str) -> bool:
        return self._value(path, "file_exists", path=path) is True

    # Processes

    def hashes(self) -> bool:
        """Whether the student's functions hash or make sets, so that results may differ between processes."""
        return self._value("hashes", "hashes") is True

    def begin_anew(self, other_hashes: bool | None = None) -> bool:
        """Continue in a new process, with another date and folder, without the handles and files of this one.

        other_hashes: whether strings have other hashes there; None means only if the student's code seems to hash.
        Returns False, and does nothing, if there can be no other process, as in a notebook's own kernel.
        """
        if self._renew is None:
            return False
        other_hashes = self.hashes() if other_hashes is None else other_hashes
        self._held = []
        self._renew(other_hashes)
        return True

    # Errors

    def expect_error(
        self,
        name: str,
        *args: Any,
        what: str,
        prop: str | None = None,
        bug: Bug | None = None,
        of: Handle | None = None,
    ) -> str:
        """The message of the ValueError or IndexError that the call must raise; raises Failure if it does not.

        bug: the bug to name if the call returns as if nothing were wrong, or has nothing to return. of: the object, for
        a method.
        """
        try:
            self.method(of, name, *args, returns="none") if of else self._call(name, args, {}, "none")
        except StudentError as error:
            if error.refusal:
                return error.message
            happened, bug = error.sentence[:-1], bug if error.type == "UnboundLocalError" else None
        else:
            happened = f"{name} returned as if nothing were wrong"
        raise Failure(f"For {what}, {happened}; a ValueError is expected.", bug, prop=prop)

    def once(self, what: str, expect: Callable[[], None]) -> None:
        """Call expect in the first check of a submission that asks for it; in later ones, raise what it raised."""
        if what not in self._known:
            before, error = len(self._asked), None
            try:
                expect()
            except (Failure, NoAnswer) as raised:
                error = raised
            self._known[what] = error, self._asked[before:]
        error, asked = self._known[what]
        if error is not None:
            self._asked += asked
            raise error

    # Inside

    def _call(self, name, args, kwargs, returns):
        return self._value(name, "call", args, kwargs, name=name, returns=returns)

    def _each(self, name, op, calls, **of):
        options = {"returns": "plain", "max_bytes": MAX_BYTES_TOGETHER, **of}
        values = self._value(name, op, name=name, calls=calls, **options)
        if not isinstance(values, list) or len(values) != len(calls):
            raise StudentError(name, {"kind": "bad-result", "message": "not every call has its result"})
        return [expect_plain(name, value) for value in values]

    def _whole(self, name, op, handle):
        value = self._value(name, op, handle=handle.number)
        if type(value) is not int:
            raise StudentError(name, {"kind": "bad-result", "message": "the result is not a whole number"})
        return value

    def _value(self, subject, op, args=None, kwargs=None, **request):
        return self._reply(subject, op, args, kwargs, **request).get("value")

    def _reply(self, subject, op, args=None, kwargs=None, **request):
        """The reply to a request; raises StudentError. args and kwargs: of a call. subject: what an error names."""
        request["op"] = op
        if args is not None:
            self._room.make_for((*args, *kwargs.values()))
            request["args"] = [wire(a) for a in args]
            request["kwargs"] = {key: wire(a) for key, a in kwargs.items()}
        if self._elsewhere:
            request["elsewhere"] = True
        request.setdefault("max_bytes", self._room.bytes_for(request))
        if self._replaced is not None and op in ("call", "keep", "make_cache"):  # these create an object
            request["replaced"], self._replaced = self._replaced, None
        try:
            reply = self._perform(request)
        except Exception as error:
            self.gone = error
            raise
        self.last = (subject, reply.get("value"))
        self._asked += self._asked_by(request)
        if "class" in reply and type(reply.get("value")) is int:
            self._classes[reply["value"]] = one_line(str(reply["class"]), 80)
        if isinstance(raised := reply.get("error"), dict):
            kind = NotWritten if raised.get("stub") is True or raised.get("kind") == "missing" else StudentError
            error = kind(_running(subject, request, raised.get("call")), raised)
            self._raised.setdefault(error.sentence, error)
            raise error
        if reply.get("changed") and subject in self.watched:  # harmless elsewhere: each call gets copies
            raise Failure(
                f"{subject} changed one of its arguments in place.",
                INPUT_CHANGED,
                prop="A function leaves its inputs as they were.",
            )
        return reply

    def _asked_by(self, request: dict[str, Any]) -> Iterator[str]:
        """The student's functions, methods and attributes that a request uses, with their class."""
        op, about = request["op"], self._classes.get(request.get("handle", 0), "")
        if op in ("make_cache", "read_cache"):
            yield from CACHE[op]
        elif op in ("call", "calls"):
            yield request["name"] + (".__init__" if request["name"][:1].isupper() else "")
        elif op == "length":
            yield f"{about}.__len__"
        elif op in ("method", "attribute") and request["name"] != "__setattr__":  # by which a check sets an attribute
            yield f"{about}.{request['name']}"
        elif op == "methods":
            yield from (f"{about}.{name}" for name, _ in request["calls"])

    def places(self, sentence: str, written: Collection[str], given: Collection[str]) -> list[str]:
        """The functions and methods that can be at fault: those that were called, the failure's subject first.

        written: the functions and classes of the stage. given: those of earlier stages, which are right.
        """
        asked = [name for name in dict.fromkeys(self._asked) if self._may_be_wrong(name, written, given)]
        subject = [*re.findall(r"\w+", sentence)[:3], *re.findall(r"(\w+) returned as if", sentence)]
        return sorted(asked, key=lambda name: name.rpartition(".")[2] not in subject)

    @staticmethod
    def _may_be_wrong(name: str, written: Collection[str], given: Collection[str]) -> bool:
        of_class, method = name.rpartition(".")[::2]
        return of_class in written if of_class or "." in name else method not in given

    def error_in(self, sentence: str) -> NoAnswer | None:
        """The error that a sentence of a failure quotes; None if it quotes none."""
        return next((error for quoted, error in self._raised.items() if quoted[:-1] in sentence), None)

    @property
    def last_answer(self) -> str:
        """The last answer, as the beginning of a sentence."""
        return f"{self.last[0]} returned {described(self.last[1])}" if self.last else "Nothing was returned"

    def _as(self, returns, name, value):
        """The value of a method or an attribute, in the form that was asked for."""
        if returns == "handle":
            return self._handle(value, name)
        if returns == "none":
            return None
        return {"array": expect_array, "ids": expect_ids, "plain": expect_plain}[returns](name, value)

    def _handle(self, value, name):
        if type(value) is not int:
            raise StudentError(name, {"kind": "bad-result", "message": "the result cannot be kept"})
        self._held.append(value)
        return Handle(value)

    def replace(self, handle: Handle) -> None:
        """Release an object just before the next one is made, so that Python gives the new one its id()."""
        self._held.remove(handle.number)
        self._replaced = handle.number

    def release_all(self) -> None:
        """Release every object; called after each check."""
        self._asked, self._raised, self._classes = [], {}, {}
        if self._replaced is not None:
            self._held.append(self._replaced)
            self._replaced = None
        if self._held:
            held, self._held = self._held, []
            try:
                self._perform({"op": "release", "handles": held})
            except Exception:
                return  # a worker that has ended holds nothing


def _running(name: str, request: dict[str, Any], call: Any) -> str:
    """What raised: of many methods called in one request, the one of the call that the process says."""
    known = request["op"] == "methods" and type(call) is int and 0 <= call < len(request["calls"])
    return request["calls"][call][0] if known else name


def local_student(namespace: dict[str, Any]) -> Student:
    """A student in this process, which is a notebook's kernel. Its answers are encoded as they are for a pipe."""
    runtime = Runtime(namespace, interruptible=True)
    as_in_the_notebook = np.geterr()

    def perform(request: dict[str, Any]) -> dict[str, Any]:
        with np.errstate(**as_in_the_notebook):
            return decode(runtime.answer(request)[HEAD_BYTES:])

    return Student(perform)
