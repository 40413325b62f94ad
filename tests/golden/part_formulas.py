"""Every part of a block from its paper's formula, with PyTorch's operations, sharing nothing with the program under
test. A formula is a function of (weights by name, x [B, T, D]); parts_golden.py records what they give."""
import math
import os
import sys

import numpy as np
import torch
import torch.nn.functional as F

# torch26.sh copies this folder's programs beside each other; elsewhere they stand there already.
sys.path.append(os.path.dirname(os.path.abspath(__file__)))
from torch_golden import golden_bits  # noqa: E402

B, T, D = 2, 5, 8


def uniform(name, count):
    """The first `count` values of stream `name`, in [-1, 1)."""
    return 2.0 * (golden_bits(name, count) >> np.uint64(40)).astype(np.float64) * 2.0**-24 - 1.0


class Weights:
    """Weights by name, made when first asked for; their gradients are read back at the end."""

    def __init__(self, gains_from_zero=False):
        self.tensors = {}
        self.gains_from_zero = gains_from_zero

    def __call__(self, name, *shape):
        if name not in self.tensors:
            values = uniform(name, math.prod(shape)).reshape(shape)
            if name.endswith('norm.weight'):
                values = values / 4 if self.gains_from_zero else 1 + values / 4
            elif name.endswith('bias'):
                values = values / 4
            else:
                values = values * 0.75
            self.tensors[name] = torch.tensor(values, dtype=torch.float64, requires_grad=True)
        return self.tensors[name]


# --- feed-forward networks -------------------------------------------------------------------------------------------

def gelu(x):
    return x * 0.5 * (1 + torch.erf(x / math.sqrt(2)))


def gelu_tanh(x):
    return 0.5 * x * (1 + torch.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


def silu(x):
    return x / (1 + torch.exp(-x))


def linear(w, name, x, out, bias):
    y = x @ w(name + '.weight', out, x.shape[-1]).T
    return y + w(name + '.bias', out) if bias else y


def gated_ffn(unit, bias=False, width=6):
    def run(w, x):
        gate = linear(w, 'mlp.gate_proj', x, width, bias)
        up = linear(w, 'mlp.up_proj', x, width, bias)
        return linear(w, 'mlp.down_proj', unit(gate, up), D, bias)
    return run


def plain_ffn(activation, bias=False, width=6):
    def run(w, x):
        return linear(w, 'mlp.down_proj', activation(linear(w, 'mlp.up_proj', x, width, bias)), D, bias)
    return run


def clamp_unit(limit):
    return lambda g, u: silu(torch.clamp(g, max=limit)) * torch.clamp(u, -limit, limit)


def oai_unit(limit, alpha=1.702):
    def unit(g, u):
        g = torch.clamp(g, max=limit)
        return g * torch.sigmoid(alpha * g) * (torch.clamp(u, -limit, limit) + 1)
    return unit


def situ_unit(gate_bound, up_bound):
    def unit(g, u):
        return gate_bound * torch.tanh(g / gate_bound) * torch.sigmoid(g) * up_bound * torch.tanh(u / up_bound)
    return unit


# --- norms -----------------------------------------------------------------------------------------------------------

EPS = 1e-3  # large enough to show when it is forgotten


def rms(x):
    return torch.sqrt((x * x).mean(-1, keepdim=True) + EPS)


def rmsnorm(w, x):
    return x / rms(x) * w('norm.weight', D)


def zero_centered(w, x):
    return x / rms(x) * (1 + w('norm.weight', D))


def layernorm(w, x):
    return F.layer_norm(x, (D,), w('norm.weight', D), w('norm.bias', D), EPS)


def batchnorm(w, x):
    """In training: over batch and positions, channel by channel."""
    return F.batch_norm(x.reshape(-1, D), None, None, w('norm.weight', D), w('norm.bias', D), True, 0.1,
                        EPS).reshape(x.shape)


def scalenorm(w, x):
    """g x / |x|, eps standing under the root as in the other norms: d eps is added to |x|^2."""
    return w('norm.weight', 1) * x / torch.sqrt((x * x).sum(-1, keepdim=True) + D * EPS)


def unit_rms(x, eps):
    return x / torch.sqrt((x * x).mean(-1, keepdim=True) + eps)


# --- positions -------------------------------------------------------------------------------------------------------

def sinusoidal(w, x):
    """PE(t, 2i) = sin(t / 10000^(2i / D)), PE(t, 2i + 1) = cos of the same."""
    angle = torch.arange(T, dtype=torch.float64)[:, None] / \
        10000.0 ** (torch.arange(0, D, 2, dtype=torch.float64) / D)
    return x + torch.stack([torch.sin(angle), torch.cos(angle)], -1).reshape(T, D)


def learned(longest):
    return lambda w, x: x + w('embed_positions.weight', longest, D)[:T]


# --- attention -------------------------------------------------------------------------------------------------------

def rope(x, fraction=1.0):
    """x [B, T, heads, head_dim]: half-split pairs of the first 2 floor(fraction head_dim / 2) elements."""
    hd = x.shape[-1]
    pairs = int(fraction * hd / 2)
    angle = torch.arange(x.shape[1], dtype=torch.float64)[:, None] * \
        10000.0 ** (-2 * torch.arange(pairs, dtype=torch.float64) / hd)
    cos, sin = torch.cos(angle)[:, None], torch.sin(angle)[:, None]
    a, b, rest = x[..., :pairs], x[..., pairs:2 * pairs], x[..., 2 * pairs:]
    return torch.cat([a * cos - b * sin, a * sin + b * cos, rest], -1)


def attend(q, k, v, causal=True):
    """q [B, T, heads, hd], k and v with as many heads or a divisor of them -> [B, T, heads, hd]."""
    share = q.shape[2] // k.shape[2]
    k, v = k.repeat_interleave(share, 2), v.repeat_interleave(share, 2)
    scores = torch.einsum('bthd,buhd->bhtu', q, k) / math.sqrt(q.shape[-1])
    if causal:
        scores = scores.masked_fill(torch.ones(T, T, dtype=torch.bool).triu(1), -math.inf)
    return torch.einsum('bhtu,buhd->bthd', torch.softmax(scores, -1), v)


def attention(kv_heads=2, heads=2, hd=4, rotated=1.0, gate='none', position='attended', gate_activation=torch.sigmoid,
              bias=False, norms='', over='head', gains_from_zero=False, causal=True):
    """`rotated` is RoPE's share of a head; `norms` says which of q, k and v are normalised, `over` whether by head or
    over the whole width."""
    in_q_proj = gate == 'elementwise' and position == 'attended' and gate_activation is torch.sigmoid

    def run(w, x):
        def normed(part, which):
            if which not in norms:
                return part
            whole = over == 'width'
            flat = part.reshape(B, T, -1) if whole else part
            gain = w(f'self_attn.{which}_norm.weight', flat.shape[-1]) + (1 if gains_from_zero else 0)
            return (unit_rms(flat, 1e-6) * gain).reshape(part.shape)

        def gated(part, where):
            """part [B, T, n, width], multiplied when the gate stands at `where`."""
            if gate == 'none' or position != where or in_q_proj:
                return part
            n, width = part.shape[2:]
            factors = 1 if gate == 'headwise' else width
            logits = x @ w('self_attn.gate_proj.weight', n * factors, D).T
            return part * gate_activation(logits.reshape(B, T, n, factors))

        q = linear(w, 'self_attn.q_proj', x, heads * hd * (2 if in_q_proj else 1), bias).reshape(B, T, heads, -1)
        q, gate_logits = q[..., :hd], q[..., hd:]
        k = linear(w, 'self_attn.k_proj', x, kv_heads * hd, bias).reshape(B, T, kv_heads, hd)
        v = linear(w, 'self_attn.v_proj', x, kv_heads * hd, bias).reshape(B, T, kv_heads, hd)
        q, k, v = normed(gated(q, 'q'), 'q'), normed(gated(k, 'k'), 'k'), normed(gated(v, 'v'), 'v')
        out = attend(rope(q, rotated), rope(k, rotated), v, causal)
        if in_q_proj:
            out = out * torch.sigmoid(gate_logits)
        out = gated(out, 'attended').reshape(B, T, heads * hd)
        out = linear(w, 'self_attn.o_proj', out, D, bias)
        return gated(out[:, :, None], 'output')[:, :, 0]
    return run


def latent_attention(heads=2, hd=4, rotated=2, kv_rank=3, q_rank=0, gate='none'):
    def run(w, x):
        def norm(name, c):
            return unit_rms(c, 1e-6) * w(f'self_attn.{name}.weight', c.shape[-1])

        if q_rank > 0:
            q = norm('q_a_layernorm', linear(w, 'self_attn.q_a_proj', x, q_rank, False))
            q = linear(w, 'self_attn.q_b_proj', q, heads * hd, False)
        else:
            q = linear(w, 'self_attn.q_proj', x, heads * hd, False)
        latent = linear(w, 'self_attn.kv_a_proj', x, kv_rank + rotated, False)
        kv = linear(w, 'self_attn.kv_b_proj', norm('kv_a_layernorm', latent[..., :kv_rank]),
                    heads * (2 * hd - rotated), False).reshape(B, T, heads, -1)
        shared = latent[..., None, kv_rank:].expand(B, T, heads, rotated)
        k = torch.cat([shared, kv[..., :hd - rotated]], -1)
        q = q.reshape(B, T, heads, hd)
        if rotated > 0:
            q, k = rope(q, rotated / hd), rope(k, rotated / hd)
        out = attend(q, k, kv[..., hd - rotated:])
        if gate == 'headwise':
            out = out * torch.sigmoid(x @ w('self_attn.gate_proj.weight', heads, D).T)[..., None]
        if gate == 'elementwise':
            out = out * torch.sigmoid(x @ w('self_attn.gate_proj.weight', heads * hd, D).T).reshape(B, T, heads, hd)
        return linear(w, 'self_attn.o_proj', out.reshape(B, T, heads * hd), D, False)
    return run


def gated_deltanet(key_heads, value_heads, dk, dv, gate):
    """A position at a time, a head at a time."""
    def run(w, x):
        share = value_heads // key_heads
        group = linear(w, 'linear_attn.in_proj_qkvz', x, key_heads * 2 * (dk + share * dv), False)
        group = group.reshape(B, T, key_heads, -1)
        ba = linear(w, 'linear_attn.in_proj_ba', x, 2 * value_heads, False).reshape(B, T, key_heads, 2 * share)
        mixed = torch.cat([group[..., :dk].reshape(B, T, -1), group[..., dk:2 * dk].reshape(B, T, -1),
                           group[..., 2 * dk:2 * dk + share * dv].reshape(B, T, -1)], -1)
        z = group[..., 2 * dk + share * dv:].reshape(B, T, value_heads, dv)
        taps = w('linear_attn.conv1d.weight', mixed.shape[-1], 1, 4)
        mixed = silu(F.conv1d(F.pad(mixed.transpose(1, 2), (3, 0)), taps, groups=mixed.shape[-1]).transpose(1, 2))
        q = mixed[..., :key_heads * dk].reshape(B, T, key_heads, dk)
        k = mixed[..., key_heads * dk:2 * key_heads * dk].reshape(B, T, key_heads, dk)
        v = mixed[..., 2 * key_heads * dk:].reshape(B, T, value_heads, dv)
        q = q / torch.sqrt((q * q).sum(-1, keepdim=True) + 1e-6) / math.sqrt(dk)
        k = k / torch.sqrt((k * k).sum(-1, keepdim=True) + 1e-6)
        beta = torch.sigmoid(ba[..., :share].reshape(B, T, value_heads))
        a = ba[..., share:].reshape(B, T, value_heads)
        g = -torch.exp(w('linear_attn.A_log', value_heads)) * F.softplus(a + w('linear_attn.dt_bias', value_heads))
        heads = []
        for h in range(value_heads):
            S = torch.zeros(B, dk, dv, dtype=torch.float64)
            outputs = []
            for t in range(T):
                key, query = k[:, t, h // share], q[:, t, h // share]
                S = torch.exp(g[:, t, h])[:, None, None] * S
                delta = beta[:, t, h, None] * (v[:, t, h] - torch.einsum('bkv,bk->bv', S, key))
                S = S + torch.einsum('bk,bv->bkv', key, delta)
                outputs.append(torch.einsum('bkv,bk->bv', S, query))
            heads.append(torch.stack(outputs, 1))
        o = unit_rms(torch.stack(heads, 2), 1e-6) * w('linear_attn.norm.weight', dv)
        o = o * (torch.sigmoid(z) if gate == 'sigmoid' else silu(z))
        return linear(w, 'linear_attn.out_proj', o.reshape(B, T, value_heads * dv), D, False)
    return run


def mixture(experts, k, shared=0, width=6, bias=False, unit=lambda gate, up: silu(gate) * up, shared_gate=False):
    """Every expert works on every token; the chosen ones count."""
    def run(w, x):
        def of_experts(name, x, equation, out):
            y = torch.einsum(equation, x, w(f'mlp.experts.{name}.weight', experts, out, D if out == width else width))
            return y + w(f'mlp.experts.{name}.bias', experts, out) if bias else y

        p = torch.softmax(linear(w, 'mlp.router', x, experts, False), -1)
        best, chosen = torch.topk(p, k)
        best = best if k == 1 else best / best.sum(-1, keepdim=True)
        shares = torch.zeros_like(p).scatter(-1, chosen, best)
        hidden = unit(of_experts('gate_proj', x, 'btd,efd->btef', width),
                      of_experts('up_proj', x, 'btd,efd->btef', width))
        y = torch.einsum('bte,bted->btd', shares, of_experts('down_proj', hidden, 'btef,edf->bted', D))
        if shared > 0:
            h = unit(linear(w, 'mlp.shared_expert.gate_proj', x, shared, False),
                     linear(w, 'mlp.shared_expert.up_proj', x, shared, False))
            gate = torch.sigmoid(linear(w, 'mlp.shared_expert_gate', x, 1, False)) if shared_gate else 1
            y = y + gate * linear(w, 'mlp.shared_expert.down_proj', h, D, False)
        return y
    return run


# --- residual connections: a stack of two blocks --------------------------------------------------------------------

OWN_STREAM = 1  # what mHC adds to the mixing logits' diagonal


class Sub:
    """The weights of one place in the model."""

    def __init__(self, w, prefix):
        self.w, self.prefix = w, prefix

    def __call__(self, name, *shape):
        return self.w(self.prefix + name, *shape)


def sublayers(w, normed=True):
    """(place, F(N(x))) of both blocks in order."""
    for layer in range(2):
        for residual, norm, run in (('attention_residual', 'input_layernorm', attention()),
                                    ('mlp_residual', 'post_attention_layernorm',
                                     gated_ffn(lambda g, u: silu(g) * u))):
            place = Sub(w, f'layers.{layer}.')

            def f(x, place=place, norm=norm, run=run):
                x = unit_rms(x, 1e-6) * place(norm + '.weight', D) if normed else x
                return run(place, x)
            yield Sub(w, f'layers.{layer}.{residual}.'), f


def plain_stack(w, x):
    for _, f in sublayers(w):
        x = x + f(x)
    return x


def mhc_stack(w, x, n=3):
    def split(place, X, rows):
        u = unit_rms(X.reshape(B, T, n * D), 1e-6)
        return u @ place('weight', rows, n * D).T, place('base', rows), place('scale', 1 if rows == n else 3)

    X = x[:, :, None].repeat(1, 1, n, 1)
    for place, f in sublayers(w):
        logits, base, scale = split(place, X, 2 * n + n * n)
        pre = torch.sigmoid(scale[0] * logits[..., :n] + base[:n]) + 1e-6
        post = 2 * torch.sigmoid(scale[1] * logits[..., n:2 * n] + base[n:2 * n])
        comb = (scale[2] * logits[..., 2 * n:] + base[2 * n:]).reshape(B, T, n, n) + OWN_STREAM * torch.eye(n)
        comb = torch.softmax(comb, -1) + 1e-6
        comb = comb / (comb.sum(-2, keepdim=True) + 1e-6)
        for _ in range(19):
            comb = comb / (comb.sum(-1, keepdim=True) + 1e-6)
            comb = comb / (comb.sum(-2, keepdim=True) + 1e-6)
        written = f(torch.einsum('btj,btjd->btd', pre, X))
        X = post[..., None] * written[:, :, None] + torch.einsum('btjk,btjd->btkd', comb, X)
    logits, base, scale = split(Sub(w, 'stream.'), X, n)
    return torch.einsum('btj,btjd->btd', torch.sigmoid(scale * logits + base) + 1e-6, X)


def gated_stack(w, x, C=3, rank=2):
    def normalised(place, X):
        gain = place('norm.weight', C * D)
        return (unit_rms(X, 1e-6) * (1 + gain.reshape(C, D))).reshape(B, T, C * D)

    def read(place, n):
        t = silu(n / C @ place('down_proj.weight', rank, C * D).T)
        r = torch.sigmoid(t @ place('up_proj.weight', C * D, rank).T)
        return (r * n).reshape(B, T, C, D).sum(2) / C

    X = x[:, :, None].repeat(1, 1, C, 1)
    for place, f in sublayers(w, normed=False):
        n = normalised(place, X)
        s = 2 * torch.sigmoid(n / C @ place('inject_proj.weight', C, C * D).T)
        X = X + s[..., None] * f(read(place, n))[:, :, None]
    place = Sub(w, 'stream.')
    return read(place, normalised(place, X))


def attnres_stack(block):
    def run(w, x):
        def attend_depth(place, sources):
            scores = torch.stack([unit_rms(v, 1e-6) @ place('weight', D) for v in sources], -1)
            return sum(a[..., None] * v for a, v in zip(torch.softmax(scores, -1).unbind(-1), sources))

        sources = [x]
        for i, (place, f) in enumerate(sublayers(w)):
            written = f(attend_depth(place, sources))
            if block == 0 or i % block == 0:
                sources.append(written)
            else:
                sources[-1] = sources[-1] + written
        return attend_depth(Sub(w, 'stream.'), sources)
    return run
