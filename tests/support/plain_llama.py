"""Llama's kind of decoder in plain Python and double, and a reader of llama2.c's files. Written from the formats'
descriptions, not from our code: rotary positions as each format's own programs turn them.

A model is a dict: "config" (dim, hidden, layers, heads, kv_heads, head_dim, vocab, eps, theta, pairs, ...), "embed" and
"head" as rows, "norm", and "layers", each with "attn_norm", "ffn_norm", "wq", "wk", "wv", "wo", "w1", "w2", "w3".
"""
import math
import struct

# Which elements of a head turn together.
NEIGHBOURS = "2j and 2j + 1"
HALVES = "j and j + head/2"


def rows_of(values, rows, columns):
    return [values[row * columns:(row + 1) * columns] for row in range(rows)]


def llama2c_sizes(content):
    """The seven numbers of a model.bin of version 0."""
    return struct.unpack("<7i", content[:28])


def read_llama2c(content):
    """A model.bin of version 0, in the order of run.c's memory_map_weights."""
    dim, hidden, layers, heads, kv_heads, vocab, seq_len = llama2c_sizes(content)
    tied, vocab = vocab > 0, abs(vocab)
    head_dim = dim // heads
    values = struct.unpack(f"<{(len(content) - 28) // 4}f", content[28:])
    at = 0

    def take(rows, columns):
        nonlocal at
        at += rows * columns
        return rows_of(values[at - rows * columns:at], rows, columns)

    embed = take(vocab, dim)
    kv_dim = kv_heads * head_dim
    names = (("attn_norm", 1, dim), ("wq", dim, dim), ("wk", kv_dim, dim), ("wv", kv_dim, dim), ("wo", dim, dim),
             ("ffn_norm", 1, dim), ("w1", hidden, dim), ("w2", dim, hidden), ("w3", hidden, dim))
    parts = {name: [take(rows, columns) for _ in range(layers)] for name, rows, columns in names}
    norm = take(1, dim)[0]
    at += seq_len * head_dim  # cosines and sines, half a head wide each
    head = embed if tied else take(vocab, dim)
    if at != len(values):
        raise ValueError(f"{at} of {len(values)} values")
    return {
        "config": {"dim": dim, "heads": heads, "kv_heads": kv_heads, "head_dim": head_dim, "vocab": vocab, "eps": 1e-5,
                   "theta": 10000.0, "pairs": NEIGHBOURS, "seq_len": seq_len, "tied": tied},
        "embed": embed, "head": head, "norm": norm,
        "layers": [{name: stack[layer][0] if "norm" in name else stack[layer] for name, stack in parts.items()}
                   for layer in range(layers)]}


def read_llama2c_tokenizer(content, vocab):
    """(longest, [(score, bytes)]) of a tokenizer.bin."""
    longest = struct.unpack("<I", content[:4])[0]
    at, pieces = 4, []
    for _ in range(vocab):
        score, length = struct.unpack("<fi", content[at:at + 8])
        pieces.append((score, content[at + 8:at + 8 + length]))
        at += 8 + length
    if at != len(content):
        raise ValueError(f"{len(content) - at} bytes behind the last piece")
    return longest, pieces


def product(matrix, x):
    return [sum(w * v for w, v in zip(row, x)) for row in matrix]


def rms_norm(x, gain, eps):
    scale = 1 / math.sqrt(sum(v * v for v in x) / len(x) + eps)
    return [v * scale * g for v, g in zip(x, gain)]


def rotate(x, position, config):
    """Each head of x turned, in place."""
    head_dim = config["head_dim"]
    for start in range(0, len(x), head_dim):
        for j in range(head_dim // 2):
            a, b = (start + 2 * j, start + 2 * j + 1) if config["pairs"] == NEIGHBOURS else (
                start + j, start + j + head_dim // 2)
            angle = position * config["theta"] ** (-2 * j / head_dim)
            cosine, sine = math.cos(angle), math.sin(angle)
            x[a], x[b] = x[a] * cosine - x[b] * sine, x[a] * sine + x[b] * cosine


def softmax(scores):
    largest = max(scores)
    weights = [math.exp(score - largest) for score in scores]
    total = sum(weights)
    return [weight / total for weight in weights]


class Decoder:
    """Reads one token after another; `step` gives the logits that follow."""

    def __init__(self, model):
        self.model = model
        self.cache = [([], []) for _ in model["layers"]]
        self.position = 0

    def head_norm(self, x, gain):
        config = self.model["config"]
        if gain is None:
            return x
        if len(gain) == len(x):  # over all heads at once
            return rms_norm(x, gain, config["eps"])
        width = config["head_dim"]
        return [v for start in range(0, len(x), width) for v in rms_norm(x[start:start + width], gain, config["eps"])]

    def attend(self, layer, cache, x):
        config = self.model["config"]
        width, shared = config["head_dim"], config["heads"] // config["kv_heads"]
        q, k, v = (product(layer[name], x) for name in ("wq", "wk", "wv"))
        q, k = self.head_norm(q, layer.get("q_norm")), self.head_norm(k, layer.get("k_norm"))
        rotate(q, self.position, config)
        rotate(k, self.position, config)
        keys, values = cache
        keys.append(k)
        values.append(v)
        out = []
        for head in range(config["heads"]):
            start = head // shared * width
            query = q[head * width:(head + 1) * width]
            weights = softmax([sum(a * b for a, b in zip(query, key[start:start + width])) / math.sqrt(width)
                               for key in keys])
            out += [sum(weight * value[start + i] for weight, value in zip(weights, values)) for i in range(width)]
        return product(layer["wo"], out)

    def feed(self, layer, x):
        gate, up = product(layer["w1"], x), product(layer["w3"], x)
        return product(layer["w2"], [g / (1 + math.exp(-g)) * u for g, u in zip(gate, up)])

    def step(self, token):
        model, eps = self.model, self.model["config"]["eps"]
        x = list(model["embed"][token])
        for layer, cache in zip(model["layers"], self.cache):
            if "attn_norm" in layer:  # before the sublayers, else on what they give
                x = [a + b for a, b in zip(x, self.attend(layer, cache, rms_norm(x, layer["attn_norm"], eps)))]
                x = [a + b for a, b in zip(x, self.feed(layer, rms_norm(x, layer["ffn_norm"], eps)))]
            else:
                x = [a + b for a, b in zip(x, rms_norm(self.attend(layer, cache, x), layer["attn_out_norm"], eps))]
                x = [a + b for a, b in zip(x, rms_norm(self.feed(layer, x), layer["ffn_out_norm"], eps))]
        self.position += 1
        return product(model["head"], rms_norm(x, model["norm"], eps))


def mean_loss(model, ids):
    """Of predicting ids[1:], in nats."""
    decoder, total = Decoder(model), 0.0
    for token, target in zip(ids, ids[1:]):
        total -= math.log(softmax(decoder.step(token))[target])
    return total / (len(ids) - 1)


def greedy(model, first, count, end=()):
    """The most likely tokens behind `first`, up to one of `end` or `count` of them."""
    decoder, token, found = Decoder(model), first, []
    while len(found) < count:
        logits = decoder.step(token)
        token = logits.index(max(logits))
        if token in end:
            break
        found.append(token)
    return found
