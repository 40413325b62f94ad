#!/usr/bin/python3
"""The reference peer: minillm's model and training loop in PyTorch, written apart from the C++ to check it.

It runs with Debian's python3-torch (1.13 of Debian 12; 2.6 of Debian 13 through torch26.sh) and serves two purposes:

  curve   torch_minillm.py --data data.h5 --steps 20 --init-out init.safetensors --curve-out curve.json
          writes the initial weights under Hugging Face's names, then the loss and gradient norm of each step on
          windows taken in order: sequence b of step s is window (s*B + b) mod W, W = (tokens - 1) // T, window w
          has inputs tokens[w*T : w*T + T] and targets one further. `minillm train ... --init init.safetensors
          data.order=sequential` must give the same numbers.
  speed   torch_minillm.py --bench 20
          tokens per second of PyTorch on the same work, random tokens.

The model is in torch_model.py. Shapes: B sequences, T tokens a sequence.
"""
import argparse
import json
import math
import resource
import time

import numpy as np
import torch

from torch_model import Model, load_safetensors, save_safetensors, set_weights

TORCH_VERSION = tuple(int(part) for part in torch.__version__.split('.')[:2])


def build_parser():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)

    model = parser.add_argument_group('model')
    model.add_argument('--vocab', type=int, default=2048,
                       help='vocabulary size (default %(default)s); 0: what the file of --data says')
    model.add_argument('--dim', type=int, default=256, help='model width (default %(default)s)')
    model.add_argument('--layers', type=int, default=4, help='blocks (default %(default)s)')
    model.add_argument('--heads', type=int, default=8, help='query heads (default %(default)s)')
    model.add_argument('--kv-heads', type=int, default=0, help='key and value heads (default: as --heads)')
    model.add_argument('--hidden', type=int, default=688, help='width of the FFN (default %(default)s)')
    model.add_argument('--norm', default='rms', choices=['rms', 'layer', 'zero_centered_rms'])
    model.add_argument('--place', default='pre', choices=['pre', 'post', 'sublayer_output'])
    model.add_argument('--ffn', default='swiglu', choices=['swiglu', 'gelu', 'gelu_tanh', 'relu', 'none'],
                       help='gelu is the erf form')
    model.add_argument('--position', default='rope', choices=['rope', 'learned', 'none'])
    model.add_argument('--bias', action='store_true', help='biases in attention and FFN projections')
    model.add_argument('--untied', action='store_true', help='an output matrix of its own')
    model.add_argument('--no-residual', action='store_true', help='x = F(N(x)) instead of x + F(N(x))')
    model.add_argument('--qk-norm', action='store_true', help='RMSNorm of each query and key head, before RoPE')
    model.add_argument('--gate', default='none', choices=['none', 'elementwise', 'headwise'],
                       help='sigmoid gate on the attention output')

    data = parser.add_argument_group('data')
    data.add_argument('--data', help='HDF5 file of `minillm prepare` (needs h5py): /train, and /val for --eval')
    data.add_argument('--tokens', help='training tokens as raw little-endian u16, instead of --data')
    data.add_argument('--eval-tokens', help='validation tokens as raw little-endian u16, instead of --data')
    data.add_argument('--eval', action='store_true', help='validation loss over the whole /val split at the end')
    data.add_argument('--batch', type=int, default=16, help='sequences a step (default %(default)s)')
    data.add_argument('--seq', type=int, default=256, help='tokens a sequence (default %(default)s)')

    optim = parser.add_argument_group('optimizer')
    optim.add_argument('--steps', type=int, default=100, help='updates (default %(default)s)')
    optim.add_argument('--lr', type=float, default=1e-3, help='peak learning rate (default %(default)s)')
    optim.add_argument('--warmup', type=int, default=100, help='linear warm-up steps (default %(default)s)')
    optim.add_argument('--min-lr-ratio', type=float, default=0.1, help='cosine goes down to lr times this')
    optim.add_argument('--wd', type=float, default=0.1, help='decoupled weight decay of matrices')
    optim.add_argument('--clip', type=float, default=1.0, help='largest global gradient norm')
    optim.add_argument('--beta2', type=float, default=0.95)

    run = parser.add_argument_group('run')
    run.add_argument('--double', action='store_true', help='float64 throughout (initial weights are float32 values)')
    run.add_argument('--seed', type=int, default=1337, help='of the initial weights')
    run.add_argument('--init-in', help='start from this safetensors file instead of random weights')
    run.add_argument('--init-out', help='write the initial weights (safetensors, F32)')
    run.add_argument('--curve-out', help='write losses, gradient norms and settings (JSON)')
    run.add_argument('--threads', type=int, default=2, help='of PyTorch (default %(default)s)')
    run.add_argument('--compile', action='store_true', help='torch.compile')
    run.add_argument('--bench', type=int, default=0, help='time this many steps and print tokens per second')
    return parser


# --- data ------------------------------------------------------------------------------------------------------------


def load_tokens(args):
    """(training tokens, validation tokens or None) as int64; sets args.vocab where the file knows it."""
    if args.data:
        import h5py  # needed for --data alone
        with h5py.File(args.data, 'r') as file:
            args.vocab = args.vocab or int(file.attrs['vocab_size'])
            train = file['train'][:]
            val = file['val'][:] if args.eval else None
    elif args.tokens:
        train = np.fromfile(args.tokens, dtype='<u2')
        val = np.fromfile(args.eval_tokens, dtype='<u2') if args.eval_tokens else None
    else:
        count = args.batch * args.seq * 64 + 1
        return torch.randint(0, args.vocab, (count,)), None
    val = None if val is None else torch.from_numpy(val.astype(np.int64))
    return torch.from_numpy(train.astype(np.int64)), val


def window_batch(tokens, windows, T):
    """Inputs and targets [B, T] of the windows' numbers."""
    x = torch.stack([tokens[w * T:w * T + T] for w in windows])
    y = torch.stack([tokens[w * T + 1:w * T + T + 1] for w in windows])
    return x, y


# --- training --------------------------------------------------------------------------------------------------------


def learning_rate(args, step, steps):
    """Linear warm-up, then half a cosine down to lr * min_lr_ratio."""
    if step < args.warmup:
        return args.lr * (step + 1) / args.warmup
    phase = (step - args.warmup) / max(1, steps - args.warmup)
    return args.lr * (args.min_lr_ratio + (1 - args.min_lr_ratio) * 0.5 * (1 + math.cos(math.pi * phase)))


def make_optimizer(args, model):
    """AdamW; matrices decay, vectors do not. In double the plain loop is taken, whose every formula is written out."""
    matrices = [p for p in model.parameters() if p.dim() >= 2]
    vectors = [p for p in model.parameters() if p.dim() < 2]
    groups = [{'params': matrices, 'weight_decay': args.wd}, {'params': vectors, 'weight_decay': 0.0}]
    if args.double:
        implementation = {'foreach': False}
    elif TORCH_VERSION >= (2, 4):
        implementation = {'fused': True}
    else:
        implementation = {}
    return torch.optim.AdamW(groups, lr=args.lr, betas=(0.9, args.beta2), eps=1e-8, **implementation)


def train(args, model, tokens, steps, report=None):
    """Runs `steps` updates; returns (losses, gradient norms before clipping, seconds), one of each a step."""
    optimizer = make_optimizer(args, model)
    step_model = torch.compile(model) if args.compile else model
    B, T = args.batch, args.seq
    window_count = (len(tokens) - 1) // T
    losses, norms, seconds = [], [], []
    for step in range(steps):
        start = time.perf_counter()
        windows = [(step * B + b) % window_count for b in range(B)]
        x, y = window_batch(tokens, windows, T)
        for group in optimizer.param_groups:
            group['lr'] = learning_rate(args, step, steps)
        loss = step_model(x, y)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        norm = torch.nn.utils.clip_grad_norm_(model.parameters(), args.clip)
        optimizer.step()
        losses.append(loss.item())
        norms.append(float(norm))
        seconds.append(time.perf_counter() - start)
        if report:
            report(step, losses[-1], norms[-1], seconds[-1])
    return losses, norms, seconds


def evaluate(args, model, tokens):
    """Mean loss of each whole window of the split, in order; the last batch may be smaller."""
    B, T = args.batch, args.seq
    window_count = (len(tokens) - 1) // T
    losses = []
    with torch.no_grad():
        for first in range(0, window_count, B):
            windows = range(first, min(first + B, window_count))
            x, y = window_batch(tokens, windows, T)
            token_losses = model(x, y, reduction='none').double()
            losses += token_losses.view(len(windows), T).mean(1).tolist()
    return losses


def make_model(args):
    """The model with its initial weights; these are float32 values in double too, so that a file can hold them."""
    torch.manual_seed(args.seed)
    model = Model(args)
    if args.init_in:
        set_weights(model, load_safetensors(args.init_in))
    if args.init_out:
        save_safetensors(args.init_out, model)
    return model.double() if args.double else model


def main():
    args = build_parser().parse_args()
    torch.set_num_threads(args.threads)
    train_tokens, val_tokens = load_tokens(args)
    model = make_model(args)
    tokens_per_step = args.batch * args.seq

    def report(step, loss, norm, seconds):
        if not args.bench and step % 20 == 0:
            print(f'step {step} loss {loss:.4f} gnorm {norm:.3f} {tokens_per_step / seconds:.0f} tok/s', flush=True)

    steps = args.bench + 3 if args.bench else args.steps  # three steps of warm-up are not timed
    losses, norms, seconds = train(args, model, train_tokens, steps, report)
    timed = sorted(seconds[3:] or seconds)
    out = {'params': sum(p.numel() for p in model.parameters()),
           'tokens_per_s': tokens_per_step / timed[len(timed) // 2] if timed else None,
           'torch': torch.__version__}
    if val_tokens is not None:
        window_losses = evaluate(args, model, val_tokens)
        out['val_loss'] = sum(window_losses) / len(window_losses)
        out['val_windows'] = len(window_losses)
    if losses and not args.bench:
        out['final'] = losses[-1]
        out['gnorm_max_100'] = max(norms[:100])
    if args.curve_out:
        with open(args.curve_out, 'w') as file:
            json.dump({'args': vars(args), 'loss': losses, 'grad_norm': norms, **out}, file)
    out['peak_mib'] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps(out))


if __name__ == '__main__':
    main()
