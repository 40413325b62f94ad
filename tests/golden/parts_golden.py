#!/usr/bin/python3
"""Writes tests/golden/parts.json: output and gradients of every part of a block, in float64, by PyTorch.

  scripts/peers/torch26.sh tests/golden/parts_golden.py > tests/golden/parts.json

The formulas are those of part_formulas.py. Inputs and weights are formulas over integers (C++: golden_weights.h);
README.md in this folder describes them and the fields.
"""
import json
import os
import sys

import torch

sys.path.append(os.path.dirname(os.path.abspath(__file__)))
from part_formulas import (  # noqa: E402
    B, D, T, Weights, attention, attnres_stack, batchnorm, clamp_unit, gated_deltanet, gated_ffn, gated_stack, gelu,
    gelu_tanh, latent_attention, layernorm, learned, mhc_stack, mixture, oai_unit, plain_ffn, plain_stack, rmsnorm,
    scalenorm, silu, sinusoidal, situ_unit, uniform, zero_centered)

CONFIG = ['model.vocab_size=11', 'model.d_model=8', 'model.n_heads=2', 'model.d_ff=6', 'model.max_seq_len=5',
          'data.seq_len=5']

# --- the list --------------------------------------------------------------------------------------------------------

# (kind of part, name, config overrides, formula)
PARTS = [
    ('ffn', 'swiglu', ['model.ffn=swiglu'], gated_ffn(lambda g, u: silu(g) * u)),
    ('ffn', 'swiglu_bias', ['model.ffn=swiglu', 'model.bias=true'], gated_ffn(lambda g, u: silu(g) * u, bias=True)),
    ('ffn', 'geglu', ['model.ffn=geglu'], gated_ffn(lambda g, u: gelu(g) * u)),
    ('ffn', 'reglu', ['model.ffn=reglu'], gated_ffn(lambda g, u: torch.relu(g) * u)),
    ('ffn', 'glu', ['model.ffn=glu'], gated_ffn(lambda g, u: torch.sigmoid(g) * u)),
    ('ffn', 'bilinear', ['model.ffn=bilinear'], gated_ffn(lambda g, u: g * u)),
    ('ffn', 'gelu', ['model.ffn=gelu'], plain_ffn(gelu)),
    ('ffn', 'gelu_tanh_bias', ['model.ffn=gelu_tanh', 'model.bias=true'], plain_ffn(gelu_tanh, bias=True)),
    ('ffn', 'relu', ['model.ffn=relu'], plain_ffn(torch.relu)),
    ('ffn', 'silu', ['model.ffn=silu'], plain_ffn(silu)),
    ('ffn', 'swiglu_clamp', ['model.ffn=swiglu_clamp', 'model.ffn_limit=0.7'], gated_ffn(clamp_unit(0.7))),
    ('ffn', 'swiglu_oai', ['model.ffn=swiglu_oai', 'model.ffn_limit=0.7'], gated_ffn(oai_unit(0.7))),
    ('ffn', 'situ_glu', ['model.ffn=situ_glu', 'model.ffn_gate_bound=0.7', 'model.ffn_up_bound=1.1'],
     gated_ffn(situ_unit(0.7, 1.1))),
    ('norm', 'rmsnorm', ['model.norm=rmsnorm', 'model.norm_eps=1e-3'], rmsnorm),
    ('norm', 'zero_centered_rmsnorm', ['model.norm=zero_centered_rmsnorm', 'model.norm_eps=1e-3'], zero_centered),
    ('norm', 'layernorm', ['model.norm=layernorm', 'model.norm_eps=1e-3'], layernorm),
    ('norm', 'scalenorm', ['model.norm=scalenorm', 'model.norm_eps=1e-3'], scalenorm),
    ('norm', 'batchnorm', ['model.norm=batchnorm', 'model.norm_eps=1e-3'], batchnorm),
    ('norm', 'none', ['model.norm=none'], lambda w, x: x),
    ('position', 'sinusoidal', ['model.position=sinusoidal'], sinusoidal),
    ('position', 'learned', ['model.position=learned', 'model.max_seq_len=7'], learned(7)),
    ('mixer', 'full', ['model.attention=full'], attention()),
    ('mixer', 'full_mqa_bias', ['model.n_kv_heads=1', 'model.bias=true'], attention(kv_heads=1, bias=True)),
    ('mixer', 'partial_rope', ['model.head_dim=8', 'model.rope_fraction=0.5'], attention(hd=8, rotated=0.5)),
]
GDN = ['model.attention=gdn', 'model.gdn_value_heads=4', 'model.gdn_key_heads=2', 'model.gdn_key_dim=3',
       'model.gdn_value_dim=2']
MLA = ['model.attention=mla', 'model.mla_kv_rank=3', 'model.rope_fraction=0.5']
PARTS += [
    ('ffn', 'moe', ['model.ffn=moe', 'model.moe_experts=4', 'model.moe_top_k=2'], mixture(4, 2)),
    ('ffn', 'moe_bias', ['model.ffn=moe', 'model.moe_experts=3', 'model.bias=true'], mixture(3, 2, bias=True)),
    ('ffn', 'moe_shared', ['model.ffn=moe', 'model.moe_experts=3', 'model.moe_top_k=1', 'model.moe_shared_d_ff=5'],
     mixture(3, 1, 5)),
    ('ffn', 'moe_gated_oai', ['model.ffn=moe', 'model.moe_experts=3', 'model.moe_unit=swiglu_oai',
                              'model.moe_shared_d_ff=5', 'model.moe_shared_gate=true'],
     mixture(3, 2, 5, unit=oai_unit(7.0), shared_gate=True)),
    ('mixer', 'qk_norm', ['model.qk_norm=true', 'model.n_kv_heads=1'], attention(kv_heads=1, norms='qk')),
    ('mixer', 'qk_norm_width', ['model.qk_norm=true', 'model.qk_norm_over=width', 'model.n_kv_heads=1'],
     attention(kv_heads=1, norms='qk', over='width')),
    ('mixer', 'qk_norm_width_gated', ['model.qk_norm=true', 'model.qk_norm_over=width',
                                      'model.attention_gate=elementwise'],
     attention(norms='qk', over='width', gate='elementwise')),
    ('mixer', 'qk_norm_zero_centered', ['model.norm=zero_centered_rmsnorm', 'model.qk_norm=true', 'model.n_kv_heads=1'],
     attention(kv_heads=1, norms='qk', gains_from_zero=True)),
    ('mixer', 'qkv_norm', ['model.qkv_norm=true'], attention(norms='qkv')),
    ('mixer', 'qkv_norm_width', ['model.qkv_norm=true', 'model.qk_norm_over=width'],
     attention(norms='qkv', over='width')),
    ('mixer', 'qwen_full', ['model.norm=zero_centered_rmsnorm', 'model.qk_norm=true', 'model.n_heads=4',
                            'model.n_kv_heads=2', 'model.head_dim=16', 'model.rope_fraction=0.25',
                            'model.attention_gate=elementwise'],
     attention(kv_heads=2, heads=4, hd=16, rotated=0.25, gate='elementwise', norms='qk', gains_from_zero=True)),
    ('mixer', 'encoder', ['model.causal=false', 'data.objective=masked'], attention(causal=False)),
    ('mixer', 'mla', MLA, latent_attention()),
    ('mixer', 'mla_q_rank', MLA + ['model.mla_q_rank=5'], latent_attention(q_rank=5)),
    ('mixer', 'gated_mla', ['model.attention=mla', 'model.mla_kv_rank=3', 'model.position=none',
                            'model.attention_gate=elementwise'], latent_attention(rotated=0, gate='elementwise')),
    ('mixer', 'gdn', GDN, gated_deltanet(2, 4, 3, 2, 'silu')),
    ('mixer', 'gdn_recurrent', GDN + ['model.gdn_form=recurrent'], gated_deltanet(2, 4, 3, 2, 'silu')),
    ('mixer', 'gdn_sigmoid', ['model.attention=gdn', 'model.gdn_gate=sigmoid', 'model.gdn_key_heads=2'],
     gated_deltanet(2, 2, 4, 4, 'sigmoid')),
    ('stack', 'plain', ['model.residual=plain'], plain_stack),
    ('stack', 'mhc', ['model.residual=mhc', 'model.residual_streams=3'], mhc_stack),
    ('stack', 'gated', ['model.residual=gated', 'model.residual_streams=3', 'model.residual_rank=2'], gated_stack),
    ('stack', 'attnres', ['model.residual=attnres'], attnres_stack(0)),
    ('stack', 'attnres_blocks', ['model.residual=attnres', 'model.residual_block=3'], attnres_stack(3)),
]
for gate in ('elementwise', 'headwise'):
    for position in ('attended', 'q', 'k', 'v', 'output'):
        PARTS.append(('mixer', f'gate_{gate}_{position}',
                      ['model.n_kv_heads=1', f'model.attention_gate={gate}',
                       f'model.attention_gate_position={position}'],
                      attention(kv_heads=1, gate=gate, position=position)))
    PARTS.append(('mixer', f'gate_{gate}_silu',
                  ['model.n_kv_heads=1', f'model.attention_gate={gate}', 'model.attention_gate_activation=silu'],
                  attention(kv_heads=1, gate=gate, gate_activation=silu)))


def record(kind, name, overrides, formula):
    w = Weights('model.norm=zero_centered_rmsnorm' in overrides)
    x = torch.tensor(2 * uniform('x', B * T * D).reshape(B, T, D), requires_grad=True)
    y = formula(w, x)
    y.backward(torch.tensor(uniform('dy', B * T * D).reshape(B, T, D)))
    gradients = {tensor: p.grad.flatten().tolist() for tensor, p in w.tensors.items()}
    return {'kind': kind, 'name': name, 'overrides': overrides, 'y': y.flatten().tolist(),
            'dx': x.grad.flatten().tolist(), 'gradients': gradients}


def main():
    torch.set_num_threads(1)
    parts = [record(*part) for part in PARTS]
    print('{"torch": %s, "config": %s, "parts": [' % (json.dumps(torch.__version__), json.dumps(CONFIG)))
    print(',\n'.join(json.dumps(part) for part in parts))
    print(']}')


if __name__ == '__main__':
    main()
