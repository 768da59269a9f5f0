"""Sample submissions of stage 6, block-cache."""

from autograder.stages.samples import Right, Wrong

KEYS, STORE, EVICT, SERVE, INT8 = "block-keys", "block-store", "evict", "serve", "quantize"
FULL, CHAINED, CONTEXT = "keys-full-blocks", "keys-chained", "keys-context"
LONGEST, COMPARES = "match-longest-run", "match-compares-ids"
CAPACITY, ORDER, OWN = "store-capacity", "eviction-order", "store-keeps-its-own"
EQUAL, APART, BLOCKS = "serve-equals-recompute", "serve-keeps-apart", "int8-blocks"

# Whole cells in other styles

_TREE = '''
class Node:
    """A block in the tree of all prompts; its children by their ids."""

    def __init__(self, parent, ids, rows):
        self.parent, self.ids, self.rows = parent, ids, rows
        self.children, self.used = {}, 0


class BlockStore:
    """A tree with a root for each context; no keys are needed where ids are compared."""

    def __init__(self, capacity, block_size, key=None, encode=as_it_is, decode=as_it_is):
        self.capacity, self.block_size, self.encode, self.decode = capacity, block_size, encode, decode
        self.roots, self.nodes, self.clock = {}, [], 0

    def __len__(self):
        return len(self.nodes)

    def _walk(self, token_ids, context):
        self.clock += 1
        node, path = self.roots.get(tuple(sorted(context.items()))), []
        for i in range(len(token_ids) // self.block_size):
            node = node and node.children.get(tuple(token_ids[i * self.block_size : (i + 1) * self.block_size]))
            if node is None:
                break
            path.append(node)
        return path

    def match(self, token_ids, context):
        path = self._walk(token_ids, context)
        if len(path) * self.block_size == len(token_ids):
            path = path[:-1]
        for node in path:
            node.used = self.clock
        return [self.decode(node.rows) for node in path]

    def put(self, token_ids, context, cache):
        path = self._walk(token_ids, context)
        for node in path:
            node.used = self.clock
        for i in range(len(path), len(token_ids) // self.block_size):
            if len(self.nodes) >= self.capacity:
                leaves = [node for node in self.nodes if not node.children and node not in path]
                if not leaves:
                    return
                leaf = min(leaves, key=lambda node: node.used)
                self.nodes.remove(leaf)
                del leaf.parent.children[leaf.ids]
            rows = rows_of(cache, i * self.block_size, (i + 1) * self.block_size)
            ids = tuple(token_ids[i * self.block_size : (i + 1) * self.block_size])
            parent = path[-1] if path else self.roots.setdefault(tuple(sorted(context.items())), Node(None, (), None))
            node = Node(parent, ids, self.encode(rows))
            parent.children[ids] = node
            node.used = self.clock
            self.nodes.append(node)
            path.append(node)
'''

_WHOLE_IDS = """
from collections import OrderedDict


class BlockStore(OrderedDict):
    def __init__(self, capacity, block_size, key=block_keys, encode=as_it_is, decode=as_it_is):
        super().__init__()
        self.capacity, self.block_size, self.key, self.encode, self.decode = capacity, block_size, key, encode, decode

    def ends(self, token_ids):
        return range(self.block_size, len(token_ids) + 1, self.block_size)

    def match(self, token_ids, context):
        found = []
        for key, end in zip(self.key(token_ids, self.block_size, context), self.ends(token_ids)):
            entry = self.get(key)
            if end == len(token_ids) or entry is None or entry[:2] != (list(token_ids[:end]), context):
                break
            found.append(key)
        for key in found[::-1]:
            self.move_to_end(key)
        return [np.array(self.decode(self[key][2])) for key in found]

    def put(self, token_ids, context, cache):
        keys = self.key(token_ids, self.block_size, context)
        own = []
        for key, end in zip(keys, self.ends(token_ids)):
            entry = (list(token_ids[:end]), dict(context))
            if key in self:
                if self[key][:2] != entry:
                    break
            else:
                if len(self) >= self.capacity:
                    others = (k for k in self if k not in own)
                    oldest = next(others, None)
                    if oldest is None:
                        break
                    del self[oldest]
                self[key] = (*entry, self.encode(rows_of(cache, end - self.block_size, end)))
            own.append(key)
        for key in own[::-1]:
            self.move_to_end(key)
"""

_POOL = """
class BlockStore:
    def __init__(self, capacity, block_size, key=block_keys, encode=None, decode=None):
        self.capacity, self.block_size, self.key, self.encode, self.decode = capacity, block_size, key, encode, decode
        self.table = []  # rows of (slot, all ids, context, time)
        self.pool, self.free, self.time = None, list(range(capacity)), 0

    def __len__(self):
        return len(self.table)

    def _find(self, ids, context):
        return next((row for row in self.table if row[1] == ids and row[2] == context), None)

    def match(self, token_ids, context):
        self.time += 1
        blocks = []
        for end in range(self.block_size, len(token_ids), self.block_size):
            row = self._find(token_ids[:end], context)
            if row is None:
                break
            row[3] = self.time
            rows = self.pool[row[0]]
            blocks.append(self.decode(rows) if self.decode else rows.astype(np.float32))
        return blocks

    def put(self, token_ids, context, cache):
        self.time += 1
        own = []
        for end in range(self.block_size, len(token_ids) + 1, self.block_size):
            row = self._find(token_ids[:end], context)
            if row is None:
                if not self.free:
                    older = [r for r in self.table if not any(r is o for o in own) and not self._continued(r)]
                    if not older:
                        return
                    old = min(older, key=lambda r: r[3])
                    self.table = [r for r in self.table if r is not old]
                    self.free.append(old[0])
                rows = rows_of(cache, end - self.block_size, end)
                if self.pool is None:  # float64 where it is not encoded
                    shape = (self.capacity, *rows.shape)
                    self.pool = [None] * self.capacity if self.encode else np.empty(shape, np.float64)
                row = [self.free.pop(), token_ids[:end], dict(context), self.time]
                self.pool[row[0]] = self.encode(rows) if self.encode else rows
                self.table.append(row)
            row[3] = self.time
            own.append(row)

    def _continued(self, row):
        n = len(row[1])
        return any(len(r[1]) > n and r[1][:n] == row[1] and r[2] == row[2] for r in self.table)
"""

_HEAP = """
import heapq


class BlockStore:
    def __init__(self, capacity, block_size, key=block_keys, encode=as_it_is, decode=as_it_is):
        self.room, self.size, self.key, self.encode, self.decode = capacity, block_size, key, encode, decode
        self.held, self.now = {}, 0  # key -> [time, -depth, all ids, context, rows]

    def __len__(self):
        return len(self.held)

    def _known(self, token_ids, context):
        keys = []
        for i, key in enumerate(self.key(token_ids, self.size, context)):
            if key not in self.held or self.held[key][2:4] != [token_ids[: (i + 1) * self.size], context]:
                return keys
            keys.append(key)
        return keys

    def _touch(self, keys):
        self.now += 1
        for key in keys:
            self.held[key][0] = self.now

    def match(self, token_ids, context):
        keys = self._known(token_ids[:-1], context)
        self._touch(keys)
        return [np.array(self.decode(self.held[key][4])) for key in keys]

    def put(self, token_ids, context, cache):
        wanted = self.key(token_ids, self.size, context)
        known = self._known(token_ids, context)
        missing = wanted[len(known) : self.room]
        for key in missing:
            if key in self.held:
                missing = missing[: missing.index(key)]
                break
        missing = list(dict.fromkeys(missing))
        too_many = len(self.held) + len(missing) - self.room
        if too_many > 0:
            rest = [(time, depth, key) for key, (time, depth, *_) in self.held.items() if key not in known]
            for _, _, key in heapq.nsmallest(too_many, rest):
                del self.held[key]
        for i, key in enumerate(missing, len(known)):
            rows = rows_of(cache, i * self.size, (i + 1) * self.size)
            self.held[key] = [0, -i, token_ids[: (i + 1) * self.size], dict(context), self.encode(rows)]
        self._touch(known + missing)
"""

IN_CLASS = (
    *("tree", "whole-ids", "pool", "heap", "keys-as-strings"),
    *("keys-not-chained", "tenant-left-out", "key-trusted", "no-token-left", "first-in-first-out", "root-first"),
    *("own-run-evicted", "rows-writable", "positions-reset", "all-computed", "one-scale", "unsolved"),
)

RIGHT = [
    Right("tree", "A tree of blocks by their ids, without keys.", {STORE: _TREE}),
    Right(
        "whole-ids",
        "An OrderedDict whose entries hold all ids up to theirs; match gives copies; keys of another digest.",
        {
            STORE: _WHOLE_IDS,
            KEYS: """
def block_keys(token_ids, block_size, context):
    digest = hashlib.blake2b(repr(sorted(context.items())).encode())
    keys = []
    for i in range(len(token_ids) // block_size):
        digest.update(np.array(token_ids[i * block_size : (i + 1) * block_size], np.int64).tobytes())
        keys.append(digest.copy().hexdigest())
    return keys
""",
        },
    ),
    Right(
        "pool",
        "All blocks in one buffer of float64 with numbered slots, found by search; the suffix goes token by token.",
        {
            STORE: _POOL,
            SERVE: """
def serve(store, prompt_ids, weights, context):
    from given import decode_step

    if len(prompt_ids) > weights.config.n_ctx or not prompt_ids:
        raise ValueError(f"a prompt has 1 to {weights.config.n_ctx} tokens, not {len(prompt_ids)}")
    cache = cache_of(store.match(prompt_ids, context), weights.config.n_layer)
    for position in range(len(cache), len(prompt_ids)):
        logits = decode_step(prompt_ids[position], position, weights, cache)
    store.put(prompt_ids, context, cache)
    return logits
""",
        },
    ),
    Right("heap", "Times and depths; as many as are too many are evicted at once.", {STORE: _HEAP}),
    Right(
        "keys-as-strings",
        "A key is a string of all that it stands for, not a digest; quantization row by row.",
        {
            KEYS: """
def block_keys(token_ids, block_size, context):
    facts = json.dumps(sorted(context.items()))
    n = len(token_ids) // block_size
    return [f"{facts} {token_ids[: (i + 1) * block_size]}" for i in range(n)]
""",
            INT8: """
def quantize(array):
    rows = np.asarray(array, np.float64).reshape(-1, array.shape[-1])
    numbers, scales = np.zeros(rows.shape, np.int8), np.zeros((len(rows), 1), np.float32)
    for i, row in enumerate(rows):
        scales[i] = np.abs(row).max() / 127
        if scales[i] > 0:
            numbers[i] = np.clip(np.floor(row / scales[i] + 0.5), -127, 127)
    return numbers.reshape(array.shape), scales.reshape(*array.shape[:-1], 1)


def dequantize(quantized):
    return quantized[0].astype(np.float32) * quantized[1]
""",
        },
    ),
    Right(
        "evicts-by-search",
        "The leaf is looked for; the suffix is computed by generate_with_prefix on the run, and the cache anew.",
        {
            EVICT: """
def evict(blocks, run):
    continued = [block.before for block in blocks.values() if isinstance(block.before, Block)]
    for key, block in list(blocks.items()):
        if not any(block is other for other in (*run, *continued)):
            blocks.pop(key)
            return True
    return False
""",
        },
    ),
]

_FACTS = "json.dumps(context, sort_keys=True), []"
_FIND = "        size, run = self.block_size, self._run(token_ids, context)\n"
_PASS = "    logits = prefill(prompt_ids[len(cache) :], weights, cache)\n"
_PUT = "    store.put(prompt_ids, context, cache)\n"
_FROM_0 = "logits = advance(prompt_ids[len(cache) :], 0, weights, cache)"
_PUT_IN_ANY_CASE = """    try:
        logits = prefill(prompt_ids[len(cache) :], weights, cache)
    finally:
        if len(cache) < len(prompt_ids):  # something, only to have rows for all of them
            config = weights.config
            rows = np.zeros((config.n_layer, 2, config.n_head, len(prompt_ids), config.n_embd // config.n_head))
            cache = cache_of([rows], config.n_layer)
        store.put(prompt_ids, context, cache)
"""
_USED = "self.blocks[key] = run[-1]\n        self._use(run)"
_FIRST = "sorted(context.items()) if end == block_size else 0"
_DIGEST = "json.dumps([key, token_ids[end - block_size : end]]).encode()"
_SAME_IDS = "block.token_ids != token_ids[i * size : (i + 1) * size]"
_RUN = "self._run(token_ids, context)[: (len(token_ids) - 1) // self.block_size]"
_LEAF = """    parents = [block.before for block in blocks.values() if isinstance(block.before, Block)]
    for block in {order}:
        if block not in run and block not in parents:"""
_LOOP = """    for block in blocks.values():
        if block not in run:  # the first such block is a leaf: what continues a block stands before it"""
_PUT_ROWS = "rows = rows_of(cache, i * size, (i + 1) * size)"
_GIVEN = "return [self.decode(block.rows) for block in run]"

# fmt: off
WRONG = [
    # block_keys
    Wrong("rest-has-a-key", "The tokens after the last full block have a key too.",
          ((KEYS, "len(token_ids) + 1,", "len(token_ids) + block_size,"),), (FULL,)),
    Wrong("last-block-has-no-key", "The last block of a prompt that fills its blocks has no key.",
          ((KEYS, "len(token_ids) + 1", "len(token_ids)"),), (FULL,)),
    Wrong("keys-not-chained", "A key is made of the context and its own block.",
          ((KEYS, "key, keys = ", "facts, keys = "), (KEYS, "json.dumps([key, ", "json.dumps([facts, ")), (CHAINED,),
          "keys-unchained"),
    Wrong("keys-of-two-blocks", "A key is made of its own block and the one before.",
          ((KEYS, "key, keys = ", "facts, keys = "), (KEYS, "json.dumps([key, token_ids[end - block_size ",
          "json.dumps([facts, token_ids[max(0, end - 2 * block_size) ")), (CHAINED,), "keys-unchained"),
    Wrong("keys-by-hash", "Python's hash() of a string.", ((KEYS, f"hashlib.sha256({_DIGEST}).hexdigest()",
          f"format(hash({_DIGEST.removesuffix('.encode()')}), '+021d')"),), (FULL,)),
    Wrong("keys-short", "Eight digits of the digest.", ((KEYS, ".hexdigest()", ".hexdigest()[:8]"),), (FULL,)),
    Wrong("keys-with-the-length", "The length of the prompt is in every key.",
          ((KEYS, "json.dumps([key, ", "json.dumps([key, len(token_ids), "),), (FULL, EQUAL)),
    Wrong("ids-run-together", "The ids are written one after another without a separator.",
          ((KEYS, _DIGEST, '(key + "".join(map(str, token_ids[end - block_size : end]))).encode()'),), (CHAINED,)),
    Wrong("ids-of-16-bits", "Ids are written with 16 bits.", ((KEYS, _DIGEST,
          "key.encode() + np.array(token_ids[end - block_size : end]).astype(np.uint16).tobytes()"),), (CHAINED,)),
    Wrong("ids-sorted", "The ids of a block are sorted.",
          ((KEYS, "token_ids[end - block_size : end]", "sorted(token_ids[end - block_size : end])"),), (CHAINED,)),
    Wrong("last-id-left-out", "A block's last id is not in its key.",
          ((KEYS, "token_ids[end - block_size : end]", "token_ids[end - block_size : end - 1]"),), (CHAINED,)),
    Wrong("context-left-out", "The chain begins without the context.", ((KEYS, _FACTS, '"", []'),), (CONTEXT,)),
    Wrong("context-not-sorted", "The context in the order it comes in.", ((KEYS, ", sort_keys=True", ""),), (CONTEXT,)),
    Wrong("tenant-left-out", "All facts but the tenant.",
          ((KEYS, "json.dumps(context,", 'json.dumps({k: v for k, v in context.items() if k != "tenant"},'),),
          (CONTEXT,)),
    Wrong("only-facts-known-by-name", "Four facts by their names; a fifth one is not seen.", ((KEYS,
          "json.dumps(context,", 'json.dumps([context.get(k) for k in ("model", "dtype", "positions", "tenant")],'),),
          (CONTEXT,)),
    Wrong("context-run-together", "The facts without their names and without a separator.",
          ((KEYS, _FACTS, '"".join(context[k] for k in sorted(context)), []'),), (CONTEXT,)),
    Wrong("facts-joined", "The facts with their names, joined by a sign that a fact may contain.",
          ((KEYS, _FACTS, '";".join(f"{k}={context[k]}" for k in sorted(context)), []'),), (CONTEXT,)),
    Wrong("names-of-facts-left-out", "The facts without their names.",
          ((KEYS, "json.dumps(context,", "json.dumps([context[k] for k in sorted(context)],"),), (CONTEXT,)),
    Wrong("context-in-first-key", "Only the first block's key has the context.",
          ((KEYS, _FACTS, '"", []'), (KEYS, _DIGEST, f"json.dumps([{_FIRST}, token_ids[:end]]).encode()")), (CONTEXT,)),
    # match
    Wrong("no-token-left", "A prompt that is stored whole is matched whole.",
          ((STORE, _RUN, "self._run(token_ids, context)"),), (LONGEST, EQUAL), "whole-prompt-matched"),
    Wrong("two-tokens-left", "Two tokens of the prompt are left.",
          ((STORE, _RUN, "self._run(token_ids, context)[: max(0, len(token_ids) - 2) // self.block_size]"),),
          (LONGEST, CAPACITY, ORDER, OWN, EQUAL, APART, BLOCKS)),
    Wrong("ids-added-up", "The sums of the ids are compared.",
          ((STORE, _SAME_IDS, "sum(block.token_ids) != sum(token_ids[i * size : (i + 1) * size])"),), (COMPARES,)),
    *(
        Wrong(f"ids-as-{kind}", "The ids are compared as numbers that do not hold all of them.",
              ((STORE, _SAME_IDS, "(np.array([block.token_ids, token_ids[i * size : (i + 1) * size]]).astype("
                f"np.{kind})[0] != np.array(token_ids[i * size : (i + 1) * size]).astype(np.{kind})).any()"),),
              (COMPARES,))
        for kind in ("uint8", "uint16", "float16")
    ),
    Wrong("only-the-block-before-compared", "Of the blocks before, the ids of the last are compared.",
          ((STORE, "block.before != before", "getattr(block.before, 'token_ids', block.before) != "
            "getattr(before, 'token_ids', before)"),), (COMPARES,)),
    Wrong("rows-from-the-end", "The prompt's rows are taken to be the last of the cache.",
          ((STORE, _PUT_ROWS, "more = len(cache) - len(token_ids)\n"
            "            rows = rows_of(cache, more + i * size, more + (i + 1) * size)"),), (OWN,)),
    Wrong("id-0-left-out", "An id of 0 is taken for none.",
          ((KEYS, "token_ids[end - block_size : end]]", "[i for i in token_ids[:end] if i]]"),), (CHAINED,)),
    Wrong("tenant-compared-alone", "Of the context, only the tenant is compared.",
          ((STORE, "block.before != before", "(block.before if i else block.before['tenant']) != "
            "(before if i else before['tenant'])"),), (COMPARES,)),
    Wrong("key-trusted", "The ids are not compared.", ((STORE, _SAME_IDS, "False"),), (COMPARES,), "trusts-the-key"),
    Wrong("first-id-compared", "Only a block's first id is compared.",
          ((STORE, _SAME_IDS, "block.token_ids[0] != token_ids[i * size]"),), (COMPARES,)),
    Wrong("block-before-not-compared", "The block's own ids are compared alone.",
          ((STORE, " or block.before != before", ""),), (COMPARES,), bug="own-ids-alone"),
    Wrong("context-not-compared", "The first block may be of another context.",
          ((STORE, "run[-1] if run else context\n", "run[-1] if run else None\n"),
          (STORE, "run[-1] if run else dict(context)", "run[-1] if run else None")), (COMPARES,), "tenants-share"),
    Wrong("match-backwards", "The run comes out from its end.",
          ((STORE, _GIVEN, _GIVEN.replace("in run", "in run[::-1]")),),
          (LONGEST, COMPARES, CAPACITY, ORDER, OWN, BLOCKS)),
    Wrong("first-block-alone", "The search ends after one block.", ((STORE, _RUN,
          _RUN.replace("[: (len", "[: (len").replace("// self.block_size]", "// self.block_size][:1]")),),
          (LONGEST, CAPACITY, ORDER, OWN, EQUAL, APART, BLOCKS)),
    # capacity and eviction
    Wrong("one-block-too-many", "It holds capacity + 1 blocks.",
          ((STORE, "len(self) >= self.capacity", "len(self) > self.capacity"),), (CAPACITY, ORDER)),
    Wrong("one-block-too-few", "It holds capacity - 1 blocks.",
          ((STORE, "len(self) >= self.capacity", "len(self) + 1 >= self.capacity"),), (CAPACITY, ORDER)),
    Wrong("no-limit", "It never evicts.", ((STORE, "len(self) >= self.capacity", "False"),), (CAPACITY, ORDER, OWN)),
    Wrong("raises-when-full", "A store without a leaf to evict raises.",
          ((EVICT, "    return False", '    raise KeyError("nothing to evict")'),), (CAPACITY, ORDER)),
    Wrong("never-evicts", "A full store takes nothing more.", ((EVICT, _LOOP.splitlines()[1], "        if False:"),),
          (CAPACITY, ORDER)),
    Wrong("all-or-nothing", "A prompt longer than the store is not kept at all.", ((STORE,
          "            if i < len(run):", "            if i < len(run) or len(token_ids) // size > self.capacity:"),),
          (CAPACITY, ORDER)),
    Wrong("cleared-when-full", "A full store is emptied, but for the run.",
          ((EVICT, "            return True", "            evict(blocks, run)\n            return True"),),
          (CAPACITY, ORDER)),
    Wrong("first-in-first-out", "What came first is evicted, however much it is used.",
          ((EVICT, _LOOP, _LEAF.format(order="blocks.values()")),
          (STORE, "        for block in reversed(run):\n", "        for block in ():\n")), (ORDER,),
          "first-in-evicted"),
    Wrong("newest-evicted", "The most recently used leaf is evicted.",
          ((EVICT, _LOOP, _LEAF.format(order="list(reversed(blocks.values()))")),), (ORDER,)),
    Wrong("match-is-no-use", "match does not mark its blocks as used.",
          ((STORE, "        self._use(run)\n        return", "        return"),), (ORDER,), "match-is-no-use"),
    Wrong("put-is-no-use", "put marks only those of its blocks that are new.",
          ((STORE, _FIND, _FIND + "        known = list(run)\n"), (STORE, _USED,
          _USED.replace("_use(run)", "_use([block for block in run if block not in known])")),
          (EVICT, _LOOP, _LEAF.format(order="blocks.values()"))), (ORDER,)),
    Wrong("root-first", "A run's first block is marked as used first, so it is evicted first.",
          ((STORE, "reversed(run)", "run"),), (CAPACITY, ORDER), "root-evicted"),
    Wrong("own-run-evicted", "The prompt that is put in makes room by its own blocks.",
          ((STORE, "evict(self.blocks, run)", "evict(self.blocks, [])"),), (CAPACITY, ORDER)),
    # what is the store's own
    Wrong("views-kept", "The blocks are views of the cache, copied only when they are asked for.", ((STORE, _PUT_ROWS,
          "part = slice(i * size, (i + 1) * size)\n"
          "            rows = [(layer.keys[:, part], layer.values[:, part]) for layer in cache.layers]"),
          (STORE, "self.encode(rows)", "rows"),
          (STORE, _GIVEN, "return [self.decode(self.encode(np.array(block.rows))) for block in run]")), (OWN, BLOCKS),
          "shares-the-cache"),
    Wrong("rows-writable", "match gives the arrays themselves, which can be written.",
          ((STORE, _PUT_ROWS, _PUT_ROWS + ".copy()"),), (OWN,)),
    Wrong("whole-cache-copied", "Each block is a view of a copy of the whole cache.",
          ((STORE, _PUT_ROWS, "rows = rows_of(cache, 0, len(cache))[:, :, :, i * size : (i + 1) * size]"),), (OWN,),
          "keeps-whole-caches"),
    Wrong("evicted-remembered", "The keys of all blocks that ever were are kept.",
          ((STORE, "self.blocks = {}", "self.seen = {}\n        self.blocks = {}"), (STORE,
          "self.blocks[key] = run[-1]", "self.blocks[key] = run[-1]\n            self.seen[key] = True")), (OWN,)),
    Wrong("decoded-remembered", "What decode gave for a key is kept.", ((STORE, "[self.decode(block.rows) for",
          "[vars(self).setdefault('decoded', {}).setdefault(block.key, self.decode(block.rows)) for"),), (OWN,),
          also=(COMPARES,)),
    # serve
    Wrong("positions-reset", "The suffix begins again at position 0.",
          ((SERVE, "logits = prefill(prompt_ids[len(cache) :], weights, cache)", _FROM_0),
          (SERVE, "def serve(", "from given import advance\n\n\ndef serve(")), (EQUAL, APART), "positions-reset"),
    Wrong("all-computed", "The run is found and not used.", ((SERVE, "store.match(prompt_ids, context)", "[]"),),
          (EQUAL, APART), "blocks-unused"),
    Wrong("whole-prompt-after-run", "The whole prompt is run after its own blocks.",
          ((SERVE, "prompt_ids[len(cache) :]", "prompt_ids"),), (EQUAL, APART), bug="run-fed-again"),
    Wrong("one-block-unused", "The last block of the run is not used.",
          ((SERVE, "store.match(prompt_ids, context)", "store.match(prompt_ids, context)[:-1]"),), (EQUAL, APART)),
    Wrong("nothing-stored", "The prompt is never put in.", ((SERVE, _PUT, ""),), (EQUAL,)),
    Wrong("stored-on-a-miss-only", "A prompt of which something was found is not put in.",
          ((SERVE, "    store.put(", "    if not store.match(prompt_ids, context):\n        store.put("),), (EQUAL,)),
    Wrong("stored-in-any-case", "The prompt is put in although the pass failed.",
          ((SERVE, _PASS + _PUT, _PUT_IN_ANY_CASE),), (APART,)),
    Wrong("tenants-share", "The context is left out of keys and comparison.", ((STORE,
          "        run, size = [], self.block_size\n", "        context, run, size = {}, [], self.block_size\n"),
          (STORE, _FIND, "        context = {}\n" + _FIND)), (LONGEST, COMPARES, ORDER, APART), "tenants-share"),
    Wrong("answers-remembered", "The logits of a prompt are remembered.", ((SERVE, "    return logits",
          "    return remembered.setdefault(repr((weights.config, prompt_ids)), logits)"),
          (SERVE, "def serve(", "remembered = {}\n\n\ndef serve(")), (APART,), "blocks-unused"),
    Wrong("answers-remembered-per-store", "A store remembers the logits of a prompt of a tenant's.",
          ((SERVE, "    return logits", "    return store.__dict__.setdefault(repr((prompt_ids, context)), logits)"),),
          (APART,)),
    Wrong("answers-of-weights-remembered", "The same, for the weights.",
          ((SERVE, "    return logits",
            "    return store.__dict__.setdefault(repr((prompt_ids, context, id(weights))), logits)"),), (APART,)),
    Wrong("match-tires", "match finds nothing after 60 calls.", ((STORE, "        run, size = [], self.block_size\n",
          "        run, size = [], self.block_size\n        self.calls = getattr(self, 'calls', 0) + 1\n"
          "        if self.calls > 60:\n            return run\n"),), (ORDER,)),
    Wrong("token-returned", "The next token, not the logits.",
          ((SERVE, "    return logits", "    return logits.argmax()"),), (EQUAL, APART)),
    Wrong("prompt-cut", "A prompt that is too long is cut.", ((SERVE, "    cache = cache_of(",
          "    prompt_ids = prompt_ids[-weights.config.n_ctx :]\n    cache = cache_of("),), (APART,)),
    Wrong("one-dict-of-all-stores", "Each new store empties a dict that all of them use.",
          ((STORE, "class BlockStore:", "kept = {}\n\n\nclass BlockStore:"),
           (STORE, "self.blocks = {}", "self.blocks = kept\n        kept.clear()")), (OWN,), "stores-share"),
    # int8
    Wrong("one-scale", "One scale for the whole array.",
          ((INT8, "np.abs(array).max(axis=-1, keepdims=True)", "np.abs(array).max(keepdims=True)"),), (BLOCKS,)),
    Wrong("cut-off", "The numbers are cut off, not rounded.", ((INT8, "np.rint(steps)", "steps"),), (BLOCKS,),
          bug="fraction-dropped"),
    Wrong("scale-of-128", "The largest number is 128, which int8 does not have.",
          ((INT8, "/ np.float32(127)", "/ np.float32(128)"),), (BLOCKS,)),
    Wrong("half-scales", "Scales of half precision.",
          ((INT8, "scales.astype(np.float32)", "scales.astype(np.float16)"),), (BLOCKS,)),
    Wrong("numbers-of-16-bits", "int16 in place of int8.", ((INT8, "astype(np.int8)", "astype(np.int16)"),), (BLOCKS,)),
    Wrong("float64-back", "dequantize gives float64.",
          ((INT8, "return numbers * scales", "return numbers.astype(np.float64) * scales"),), (BLOCKS,)),
    Wrong("kept-as-it-is", "encode and decode are not called.",
          ((STORE, "self.encode(rows)", "rows"), (STORE, "self.decode(block.rows)", "block.rows")), (BLOCKS,)),
    Wrong("never-decoded", "match gives what encode made.", ((STORE, "self.decode(block.rows)", "block.rows"),),
          (BLOCKS,)),
    Wrong("input-changed", "quantize divides its argument in place.", ((INT8,
          "    steps = array / np.where(scales == 0, 1, scales)",
          "    array /= np.where(scales == 0, 1, scales)\n    steps = array"),), (BLOCKS,), "input-changed"),
    Wrong("unsolved", "Nothing is written yet.",
          ((KEYS, "    key, keys = json", "    raise NotImplementedError\n    key, keys = json"), (STORE,
          "        self.capacity, self.block_size = capacity, block_size", "        raise NotImplementedError"),
          (INT8, "    scales = np.abs(", "    raise NotImplementedError\n    scales = np.abs(")),
          (FULL, CHAINED, CONTEXT, LONGEST, COMPARES, CAPACITY, ORDER, OWN, EQUAL, APART, BLOCKS), "not-written"),
]
# fmt: on
