#!/usr/bin/python3
"""Writes tests/golden/torch_curves.json: short float64 trainings of twelve small models in PyTorch.

  scripts/peers/torch26.sh tests/golden/torch_golden.py > tests/golden/torch_curves.json

Neither weights nor tokens are stored: both are formulas over integers that any language computes to the same bits
(C++: golden_weights.h). README.md in this folder describes the formulas, the settings and the fields.
"""
import json
import math
import os
import sys

import numpy as np
import torch

# torch26.sh copies the peer beside this program; elsewhere it is taken from the source tree.
sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', '..', 'scripts', 'peers'))
import torch_minillm as peer  # noqa: E402
from torch_model import named_weights, set_weights  # noqa: E402

STD = 0.08
TRAIN_TOKENS = 648    # 40 windows of 16: twelve steps of four come back to the first eight
VAL_FIRST = 10000     # validation tokens are the formula's values from here on
VAL_TOKENS = 166      # 10 windows of 16: the last evaluation batch is half full

SETTINGS = ['--vocab', '97', '--dim', '32', '--layers', '2', '--heads', '4', '--hidden', '48', '--seq', '16', '--batch',
            '4', '--steps', '12', '--lr', '1e-2', '--warmup', '4', '--clip', '1.0', '--wd', '0.1', '--double']

# The same settings and variants as keys of a minillm config; the test applies them as they stand.
CONFIG = ['model.vocab_size=97', 'model.d_model=32', 'model.n_layers=2', 'model.n_heads=4', 'model.d_ff=48',
          'data.seq_len=16', 'data.order=sequential', 'train.batch_size=4', 'train.steps=12', 'train.dtype=float64',
          'optim.lr=0.01', 'optim.warmup_steps=4', 'optim.grad_clip=1.0', 'optim.weight_decay=0.1']

VARIANTS = [
    ('baseline', [], []),
    ('layernorm', ['--norm', 'layer'], ['model.norm=layernorm']),
    ('gelu', ['--ffn', 'gelu', '--hidden', '72'], ['model.ffn=gelu', 'model.d_ff=72']),
    ('post_ln', ['--norm', 'layer', '--place', 'post'], ['model.norm=layernorm', 'model.norm_position=post']),
    ('sublayer_output', ['--place', 'sublayer_output'], ['model.norm_position=sublayer_output']),
    ('no_residual', ['--no-residual'], ['model.residual=none']),
    ('no_ffn', ['--ffn', 'none', '--layers', '4'], ['model.ffn=none', 'model.n_layers=4']),
    ('gqa', ['--kv-heads', '2', '--hidden', '56'], ['model.n_kv_heads=2', 'model.d_ff=56']),
    ('zero_centered', ['--norm', 'zero_centered_rms'], ['model.norm=zero_centered_rmsnorm']),
    ('learned_bias_untied', ['--position', 'learned', '--bias', '--untied'],
     ['model.position=learned', 'model.bias=true', 'model.tie_embeddings=false']),
    ('qk_norm', ['--qk-norm'], ['model.qk_norm=true']),
    ('gate', ['--gate', 'elementwise', '--hidden', '40'], ['model.attention_gate=elementwise', 'model.d_ff=40']),
]


def golden_bits(name, count):
    """splitmix64 of (FNV-1a of the name) + (i + 1) * golden ratio, for i = 0 .. count-1, as uint64."""
    mask = (1 << 64) - 1
    key = 0xCBF29CE484222325
    for byte in name.encode():
        key = ((key ^ byte) * 0x100000001B3) & mask
    with np.errstate(over='ignore'):
        z = np.uint64(key) + np.arange(1, count + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return z ^ (z >> np.uint64(31))


def golden_values(name, count, zero_centered):
    """The first `count` initial values of a tensor, row-major; float32 values held in float64."""
    u = (golden_bits(name, count) >> np.uint64(40)).astype(np.float64) * 2.0**-24  # in [0, 1), exact
    signed = 2.0 * u - 1.0                                                          # in [-1, 1), exact
    if name.endswith('norm.weight'):
        values = signed / 8.0 if zero_centered else 1.0 + signed / 8.0
    elif name.endswith('.bias'):
        values = signed / 16.0
    else:
        values = (STD * math.sqrt(3.0)) * signed
    return values.astype(np.float32).astype(np.float64)


def golden_tokens(first, count):
    i = torch.arange(first, first + count, dtype=torch.int64)
    return (7 * i * i + 3 * i + 11 * (i // 5)) % 97


def set_golden_weights(model, zero_centered):
    values = {}
    for name, p in named_weights(model).items():
        values[name] = golden_values(name, p.numel(), zero_centered).reshape(tuple(p.shape))
    set_weights(model, values)


def first_gradients(model, args, tokens):
    """{name: L2 norm of the gradient of step 0's loss}: tells which tensor is wrong when a curve is."""
    x, y = peer.window_batch(tokens, range(args.batch), args.seq)
    model.zero_grad()
    model(x, y).backward()
    return {name: p.grad.norm().item() for name, p in named_weights(model).items()}


def run_variant(name, peer_options, overrides):
    args = peer.build_parser().parse_args(SETTINGS + peer_options)
    model = peer.make_model(args)
    set_golden_weights(model, args.norm == 'zero_centered_rms')
    train_tokens = golden_tokens(0, TRAIN_TOKENS)
    gradients = first_gradients(model, args, train_tokens)
    losses, norms, _ = peer.train(args, model, train_tokens, args.steps)
    window_losses = peer.evaluate(args, model, golden_tokens(VAL_FIRST, VAL_TOKENS))
    tensors = {}
    for tensor, p in named_weights(model).items():
        tensors[tensor] = [gradients[tensor], p.sum().item(), p.square().sum().item()]
    return {'name': name, 'overrides': overrides, 'parameters': sum(p.numel() for p in model.parameters()),
            'loss': losses, 'grad_norm': norms, 'val_loss': sum(window_losses) / len(window_losses),
            'tensors': tensors}


def formula_samples():
    """A few values of the formulas, for other implementations to compare with, bit for bit."""
    cases = [('model.embed_tokens.weight', 0, False), ('model.embed_tokens.weight', 3103, False),
             ('model.layers.1.mlp.down_proj.weight', 17, False), ('lm_head.weight', 1, False),
             ('model.norm.weight', 0, False), ('model.norm.weight', 0, True),
             ('model.layers.0.self_attn.q_norm.weight', 5, False), ('model.layers.0.self_attn.k_proj.bias', 31, False)]
    return [[name, i, zero_centered, golden_values(name, i + 1, zero_centered)[i]] for name, i, zero_centered in cases]


def to_json(golden):
    """One line a list or a tensor, so that differences between two versions can be read."""
    lines = ['{']
    for key in ('format', 'program', 'torch', 'config', 'formula_samples', 'tokens'):
        lines.append(f' "{key}": {json.dumps(golden[key])},')
    lines.append(' "variants": [')
    for n, variant in enumerate(golden['variants']):
        lines.append('  {')
        for key, value in variant.items():
            if key != 'tensors':
                lines.append(f'   "{key}": {json.dumps(value)},')
        lines.append('   "tensors": {')
        rows = [f'    "{name}": {json.dumps(values)}' for name, values in variant['tensors'].items()]
        lines.append(',\n'.join(rows) + '}')
        lines.append('  }' if n + 1 == len(golden['variants']) else '  },')
    lines.append(' ]\n}')
    return '\n'.join(lines)


def main():
    torch.set_num_threads(1)
    golden = {'format': 'minillm golden curves 1', 'program': 'tests/golden/torch_golden.py',
              'torch': torch.__version__, 'config': CONFIG, 'formula_samples': formula_samples(),
              'tokens': {'train_first': 0, 'train_count': TRAIN_TOKENS, 'val_first': VAL_FIRST, 'val_count': VAL_TOKENS,
                         'first': golden_tokens(0, 20).tolist(), 'val': golden_tokens(VAL_FIRST, 20).tolist()},
              'variants': [run_variant(*variant) for variant in VARIANTS]}
    text = to_json(golden)
    assert json.loads(text) == golden, 'the hand-laid JSON reads back to something else'
    print(text)


if __name__ == '__main__':
    main()
