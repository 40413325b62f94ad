"""GPT-2 in plain Python and double, from the names and shapes that transformers' GPT2LMHeadModel has."""
import math

from plain_llama import softmax


def affine(x, matrix, bias):
    """transformers' Conv1D: the matrix is [in, out]."""
    return [sum(a * row[i] for a, row in zip(x, matrix)) + b for i, b in enumerate(bias)]


def layer_norm(x, gain, bias, eps):
    mean = sum(x) / len(x)
    scale = 1 / math.sqrt(sum((v - mean) ** 2 for v in x) / len(x) + eps)
    return [(v - mean) * scale * g + b for v, g, b in zip(x, gain, bias)]


def gelu_new(v):
    return 0.5 * v * (1 + math.tanh(math.sqrt(2 / math.pi) * (v + 0.044715 * v ** 3)))


def logits(config, tensors, ids):
    """The logits behind every one of ids; tensors: name -> rows, or values of a vector."""
    d, heads, eps = config["n_embd"], config["n_head"], config["layer_norm_epsilon"]
    width = d // heads

    def norm(x, name):
        return layer_norm(x, tensors[f"{name}.weight"], tensors[f"{name}.bias"], eps)

    def conv(x, name):
        return affine(x, tensors[f"{name}.weight"], tensors[f"{name}.bias"])

    stream = [[a + b for a, b in zip(tensors["transformer.wte.weight"][token], tensors["transformer.wpe.weight"][at])]
              for at, token in enumerate(ids)]
    for layer in range(config["n_layer"]):
        start = f"transformer.h.{layer}."
        qkv = [conv(norm(x, start + "ln_1"), start + "attn.c_attn") for x in stream]
        for at, x in enumerate(stream):
            attended = []
            for first in range(0, d, width):
                query = qkv[at][first:first + width]
                weights = softmax([sum(a * b for a, b in zip(query, qkv[t][d + first:d + first + width]))
                                   / math.sqrt(width) for t in range(at + 1)])
                attended += [sum(w * qkv[t][2 * d + first + i] for t, w in enumerate(weights)) for i in range(width)]
            x = [a + b for a, b in zip(x, conv(attended, start + "attn.c_proj"))]
            hidden = [gelu_new(v) for v in conv(norm(x, start + "ln_2"), start + "mlp.c_fc")]
            stream[at] = [a + b for a, b in zip(x, conv(hidden, start + "mlp.c_proj"))]
    head = tensors.get("lm_head.weight", tensors["transformer.wte.weight"])
    return [[sum(a * b for a, b in zip(row, norm(x, "transformer.ln_f"))) for row in head] for x in stream]


def mean_loss(config, tensors, ids):
    found = logits(config, tensors, ids[:-1])
    return -sum(math.log(softmax(row)[target]) for row, target in zip(found, ids[1:])) / (len(ids) - 1)
