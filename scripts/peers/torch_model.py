"""minillm's model in PyTorch: the modules, and their weights in and out of files. torch_minillm.py trains it.

`args` are the options of torch_minillm.py. Parameters have Hugging Face's Llama names.
Shapes: B sequences, T tokens a sequence, C model width, H heads, D head size, V vocabulary.
"""
import json
import math
import struct

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F


class RMSNorm(nn.Module):
    """y = x / sqrt(mean(x^2) + eps) * gain; zero-centered: the stored weight is gain - 1."""

    def __init__(self, width, zero_centered=False, eps=1e-6):
        super().__init__()
        self.zero_centered = zero_centered
        self.eps = eps
        self.weight = nn.Parameter(torch.zeros(width) if zero_centered else torch.ones(width))

    def forward(self, x):
        y = x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.eps)
        gain = 1 + self.weight if self.zero_centered else self.weight
        return y * gain


def make_norm(args, width):
    if args.norm == 'layer':
        return nn.LayerNorm(width, eps=1e-5)
    return RMSNorm(width, args.norm == 'zero_centered_rms')


def rope(x, cos, sin):
    """Rotates x [B, H, T, D]; pairs are (j, j + D/2), as in Hugging Face's Llama."""
    half = x.shape[-1] // 2
    x1 = x[..., :half]
    x2 = x[..., half:]
    return torch.cat([x1 * cos - x2 * sin, x2 * cos + x1 * sin], -1)


class Attention(nn.Module):
    def __init__(self, args):
        super().__init__()
        self.heads = args.heads
        self.kv_heads = args.kv_heads or args.heads
        self.head_dim = args.dim // args.heads
        self.gate = args.gate
        self.qk_norm = args.qk_norm
        self.rope = args.position == 'rope'
        q_width = self.heads * self.head_dim
        kv_width = self.kv_heads * self.head_dim
        q_rows = 2 * q_width if self.gate == 'elementwise' else q_width
        self.q_proj = nn.Linear(args.dim, q_rows, bias=args.bias)
        self.k_proj = nn.Linear(args.dim, kv_width, bias=args.bias)
        self.v_proj = nn.Linear(args.dim, kv_width, bias=args.bias)
        self.o_proj = nn.Linear(q_width, args.dim, bias=args.bias)
        self.o_proj.is_residual_out = True
        if self.gate == 'headwise':
            self.gate_proj = nn.Linear(args.dim, self.heads, bias=False)
        if self.qk_norm:
            zero_centered = args.norm == 'zero_centered_rms'
            self.q_norm = RMSNorm(self.head_dim, zero_centered)
            self.k_norm = RMSNorm(self.head_dim, zero_centered)

    def forward(self, x, cos, sin, mask):
        B, T, _ = x.shape
        q = self.q_proj(x)
        if self.gate == 'elementwise':  # each head's rows: D of query, then D of gate
            q, gate = q.view(B, T, self.heads, 2 * self.head_dim).chunk(2, -1)
            gate = gate.reshape(B, T, -1)
        q = q.reshape(B, T, self.heads, self.head_dim).transpose(1, 2)
        k = self.k_proj(x).view(B, T, self.kv_heads, self.head_dim).transpose(1, 2)
        v = self.v_proj(x).view(B, T, self.kv_heads, self.head_dim).transpose(1, 2)
        if self.qk_norm:
            q = self.q_norm(q)
            k = self.k_norm(k)
        if self.rope:
            q = rope(q, cos, sin)
            k = rope(k, cos, sin)
        if self.kv_heads != self.heads:
            k = k.repeat_interleave(self.heads // self.kv_heads, 1)
            v = v.repeat_interleave(self.heads // self.kv_heads, 1)
        if hasattr(F, 'scaled_dot_product_attention'):
            y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        else:
            scores = (q @ k.transpose(-2, -1)) * (1 / math.sqrt(self.head_dim))
            y = (scores + mask).softmax(-1) @ v
        y = y.transpose(1, 2)
        if self.gate == 'headwise':
            y = y * torch.sigmoid(self.gate_proj(x))[..., None]
        y = y.reshape(B, T, -1)
        if self.gate == 'elementwise':
            y = y * torch.sigmoid(gate)
        return self.o_proj(y)


class MLP(nn.Module):
    def __init__(self, args):
        super().__init__()
        self.kind = args.ffn
        if self.kind == 'swiglu':
            self.gate_proj = nn.Linear(args.dim, args.hidden, bias=args.bias)
        self.up_proj = nn.Linear(args.dim, args.hidden, bias=args.bias)
        self.down_proj = nn.Linear(args.hidden, args.dim, bias=args.bias)
        self.down_proj.is_residual_out = True

    def forward(self, x):
        up = self.up_proj(x)
        if self.kind == 'swiglu':
            return self.down_proj(F.silu(self.gate_proj(x)) * up)
        if self.kind == 'relu':
            return self.down_proj(F.relu(up))
        approximate = 'tanh' if self.kind == 'gelu_tanh' else 'none'
        return self.down_proj(F.gelu(up, approximate=approximate))


class Block(nn.Module):
    def __init__(self, args):
        super().__init__()
        self.place = args.place
        self.residual = not args.no_residual
        self.has_ffn = args.ffn != 'none'
        self.input_layernorm = make_norm(args, args.dim)
        self.self_attn = Attention(args)
        if self.has_ffn:
            self.post_attention_layernorm = make_norm(args, args.dim)
            self.mlp = MLP(args)

    def sublayer(self, x, norm, f):
        if self.place == 'post':
            return norm(x + f(x)) if self.residual else norm(f(x))
        y = norm(f(x)) if self.place == 'sublayer_output' else f(norm(x))
        return x + y if self.residual else y

    def forward(self, x, cos, sin, mask):
        x = self.sublayer(x, self.input_layernorm, lambda y: self.self_attn(y, cos, sin, mask))
        if self.has_ffn:
            x = self.sublayer(x, self.post_attention_layernorm, self.mlp)
        return x


class Model(nn.Module):
    """Next-token loss of a decoder; parameters are registered under Hugging Face's Llama names."""

    def __init__(self, args):
        super().__init__()
        self.embed_tokens = nn.Embedding(args.vocab, args.dim)
        self.learned_positions = args.position == 'learned'
        if self.learned_positions:
            self.embed_positions = nn.Embedding(args.seq, args.dim)
        self.untied = args.untied
        if self.untied:
            self.lm_head = nn.Linear(args.dim, args.vocab, bias=False)
        self.layers = nn.ModuleList(Block(args) for _ in range(args.layers))
        self.norm = nn.Identity() if args.place == 'post' else make_norm(args, args.dim)
        self.init_weights(args.layers)
        self.register_tables(args)

    def init_weights(self, layers):
        for module in self.modules():
            if isinstance(module, nn.Embedding):
                nn.init.normal_(module.weight, 0, 0.02)
            if isinstance(module, nn.Linear):
                is_residual_out = getattr(module, 'is_residual_out', False)
                nn.init.normal_(module.weight, 0, 0.02 / math.sqrt(2 * layers) if is_residual_out else 0.02)
                if module.bias is not None:
                    nn.init.zeros_(module.bias)

    def register_tables(self, args):
        head_dim = args.dim // args.heads
        frequency = 1.0 / (10000 ** (torch.arange(0, head_dim, 2).double() / head_dim))
        angle = torch.arange(args.seq).double()[:, None] * frequency[None]
        real = torch.float64 if args.double else torch.float32
        self.register_buffer('cos', angle.cos().to(real), persistent=False)
        self.register_buffer('sin', angle.sin().to(real), persistent=False)
        mask = torch.full((args.seq, args.seq), -1e30).triu(1)
        self.register_buffer('mask', mask, persistent=False)

    def forward(self, x, y, reduction='mean'):
        """Mean loss in nats of predicting y [B, T] from x [B, T]; reduction 'none' gives [B*T] losses."""
        T = x.shape[1]
        h = self.embed_tokens(x)
        if self.learned_positions:
            h = h + self.embed_positions.weight[:T]
        for block in self.layers:
            h = block(h, self.cos[:T], self.sin[:T], self.mask[:T, :T])
        head = self.lm_head.weight if self.untied else self.embed_tokens.weight
        logits = F.linear(self.norm(h), head)
        return F.cross_entropy(logits.view(-1, logits.shape[-1]), y.reshape(-1), reduction=reduction)


# --- weights in and out ----------------------------------------------------------------------------------------------


def named_weights(model):
    """{Hugging Face name: parameter}."""
    return {name if name.startswith('lm_head') else 'model.' + name: p for name, p in model.named_parameters()}


def set_weights(model, values):
    """Copies {name: array} into the model; names and shapes must match exactly."""
    weights = named_weights(model)
    if weights.keys() != values.keys():
        raise SystemExit(f'weights do not match the model: {sorted(weights.keys() ^ values.keys())}')
    with torch.no_grad():
        for name, p in weights.items():
            value = torch.as_tensor(values[name])
            if value.shape != p.shape:
                raise SystemExit(f'{name}: the model has {tuple(p.shape)}, the file {tuple(value.shape)}')
            p.copy_(value)


def save_safetensors(path, model):
    header = {}
    blobs = []
    offset = 0
    for name, p in named_weights(model).items():
        blob = p.detach().float().contiguous().numpy().tobytes()
        header[name] = {'dtype': 'F32', 'shape': list(p.shape), 'data_offsets': [offset, offset + len(blob)]}
        offset += len(blob)
        blobs.append(blob)
    head = json.dumps(header).encode()
    head += b' ' * (-len(head) % 8)
    with open(path, 'wb') as out:
        out.write(struct.pack('<Q', len(head)) + head + b''.join(blobs))


def load_safetensors(path):
    with open(path, 'rb') as file:
        content = file.read()
    size = struct.unpack('<Q', content[:8])[0]
    values = {}
    for name, entry in json.loads(content[8:8 + size]).items():
        if name == '__metadata__':
            continue
        if entry['dtype'] != 'F32':
            raise SystemExit(f'{path}: {name} is {entry["dtype"]}, only F32 is read')
        begin, end = entry['data_offsets']
        flat = np.frombuffer(content[8 + size + begin:8 + size + end], dtype='<f4')
        values[name] = flat.reshape(entry['shape']).copy()
    return values
