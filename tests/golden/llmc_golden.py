#!/usr/bin/python3
"""Writes tests/golden/llmc_golden.json: the loss of a small GPT-2 of llm.c, computed in PyTorch from the file's bytes.

  scripts/peers/torch26.sh tests/golden/llmc_golden.py > tests/golden/llmc_golden.json

The checkpoint is made here too, from formulas and without other packages, so that tests write the same file
(tests/e2e/import_test.py). Layout and mathematics are those of train_gpt2.py and train_gpt2.c; nothing comes from
minillm.
"""
import hashlib
import json
import math
import struct

MAGIC = 20240326
FLOAT32, BFLOAT16 = 3, 5  # versions
# No two sizes are equal, so that no transposed or shifted tensor passes for the right one.
POSITIONS, VOCABULARY, LAYERS, HEADS, CHANNELS, PADDED = 10, 23, 2, 3, 12, 29
WINDOWS = 3
TOKENS = [(5 * i * i + 3 * i + i // 4) % VOCABULARY for i in range(WINDOWS * POSITIONS + 1)]


def layout():
    """(name, values, shape) in the order of the file."""
    C, L = CHANNELS, LAYERS
    shapes = [('wte', (PADDED, C)), ('wpe', (POSITIONS, C)), ('ln1w', (L, C)), ('ln1b', (L, C)),
              ('qkvw', (L, 3 * C, C)), ('qkvb', (L, 3 * C)), ('attprojw', (L, C, C)), ('attprojb', (L, C)),
              ('ln2w', (L, C)), ('ln2b', (L, C)), ('fcw', (L, 4 * C, C)), ('fcb', (L, 4 * C)),
              ('fcprojw', (L, C, 4 * C)), ('fcprojb', (L, C)), ('lnfw', (C,)), ('lnfb', (C,))]
    return [(name, math.prod(shape), shape) for name, shape in shapes]


def weights():
    """Every value of the file, in order: spread over [-0.5, 0.5), gains around 1. Embeddings are a tenth of that, so
    that the norms' epsilon shows, the last gain is ten times that, so that the logits differ; the padding is large."""
    values = []
    for name, count, _ in layout():
        for i in range(count):
            spread = ((len(values) + 1) * 2654435761 % 2**32) / 2**32 - 0.5
            is_padding = name == 'wte' and i >= VOCABULARY * CHANNELS
            if name in ('wte', 'wpe'):
                spread = 100 if is_padding else spread / 10
            elif name in ('ln1w', 'ln2w'):
                spread += 1
            elif name == 'lnfw':
                spread = 10 * (spread + 1)
            values.append(spread)
    return values


def bfloat16_bits(value):
    """The upper half of the float32, rounded to nearest, ties to even."""
    bits = struct.unpack('<I', struct.pack('<f', value))[0]
    return (bits + 0x7FFF + (bits >> 16 & 1)) >> 16


def header(version=FLOAT32, **changes):
    """The 1024 bytes; `changes` by name, for files that must be refused."""
    words = {'magic': MAGIC, 'version': version, 'max_seq_len': POSITIONS, 'vocab_size': VOCABULARY,
             'num_layers': LAYERS, 'num_heads': HEADS, 'channels': CHANNELS, 'padded_vocab_size': PADDED}
    words.update(changes)
    return struct.pack('<256i', *words.values(), *[0] * (256 - len(words)))


def checkpoint(version):
    """The whole file."""
    values = weights()
    if version == BFLOAT16:
        return header(version) + struct.pack(f'<{len(values)}H', *map(bfloat16_bits, values))
    return header(version) + struct.pack(f'<{len(values)}f', *values)


def read(content):
    """{name: float64 tensor} of a file's bytes."""
    version = struct.unpack_from('<2i', content)[1]
    tensors, at = {}, 1024
    for name, count, shape in layout():
        if version == BFLOAT16:
            halves = struct.unpack_from(f'<{count}H', content, at)
            values = struct.unpack(f'<{count}f', struct.pack(f'<{count}I', *(half << 16 for half in halves)))
        else:
            values = struct.unpack_from(f'<{count}f', content, at)
        tensors[name] = torch.tensor(values, dtype=torch.float64).reshape(shape)
        at += count * (2 if version == BFLOAT16 else 4)
    assert at == len(content), 'the file ends with its last tensor'
    return tensors


def layernorm(x, weight, bias):
    centred = x - x.mean(-1, keepdim=True)
    return centred / (centred.square().mean(-1, keepdim=True) + 1e-5).sqrt() * weight + bias


def gelu(x):
    return 0.5 * x * (1 + torch.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


def attention(qkv):
    """qkv [T, 3C]: queries, keys, values side by side, each head by head."""
    T, size = qkv.shape[0], CHANNELS // HEADS
    q, k, v = (part.reshape(T, HEADS, size).transpose(0, 1) for part in qkv.split(CHANNELS, dim=1))  # [heads, T, size]
    scores = q @ k.transpose(1, 2) / math.sqrt(size)
    future = torch.ones(T, T).triu(1).bool()
    return (scores.masked_fill(future, -math.inf).softmax(-1) @ v).transpose(0, 1).reshape(T, CHANNELS)


def loss(p, inputs, targets):
    """Mean nats a token of one window."""
    x = p['wte'][inputs] + p['wpe'][:len(inputs)]
    for l in range(LAYERS):
        normed = layernorm(x, p['ln1w'][l], p['ln1b'][l])
        attended = attention(normed @ p['qkvw'][l].T + p['qkvb'][l])
        x = x + attended @ p['attprojw'][l].T + p['attprojb'][l]
        normed = layernorm(x, p['ln2w'][l], p['ln2b'][l])
        x = x + gelu(normed @ p['fcw'][l].T + p['fcb'][l]) @ p['fcprojw'][l].T + p['fcprojb'][l]
    logits = layernorm(x, p['lnfw'], p['lnfb']) @ p['wte'][:VOCABULARY].T
    return -logits.log_softmax(-1)[range(len(targets)), targets].mean().item()


def window_losses(content):
    starts = range(0, WINDOWS * POSITIONS, POSITIONS)
    parameters = read(content)
    return [loss(parameters, TOKENS[s:s + POSITIONS], TOKENS[s + 1:s + POSITIONS + 1]) for s in starts]


def main():
    files = {}
    for name, version in (('float32', FLOAT32), ('bfloat16', BFLOAT16)):
        content = checkpoint(version)
        files[name] = {'sha256': hashlib.sha256(content).hexdigest(), 'losses': window_losses(content)}
    print(json.dumps({'format': 'minillm golden llm.c 1', 'program': 'tests/golden/llmc_golden.py',
                      'torch': torch.__version__, **files}, indent=1))


if __name__ == '__main__':
    import torch
    main()
