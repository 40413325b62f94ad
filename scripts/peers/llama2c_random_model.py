#!/usr/bin/python3
"""Writes what llama2.c's programs need to run offline, with random weights: model.bin for `run` (version 0), and
model_q80.bin (version 2) for `runq`, of other numbers and in the largest groups up to 64 that its program can divide
the rows into; tokenizer.bin with made-up pieces.

    llama2c_random_model.py FOLDER DIM HIDDEN LAYERS HEADS KV_HEADS VOCABULARY POSITIONS

The head is the embedding. Norms are 1, matrices of a magnitude near 1/64.
"""
import argparse
import math
import os
import pathlib
import struct
from dataclasses import dataclass

from random_weights import random_floats

MAGIC, MOST_GROUP = 0x616b3432, 64
CHUNK = 1 << 20


@dataclass
class Sizes:
    dim: int
    hidden: int
    layers: int
    heads: int
    kv_heads: int
    vocabulary: int
    positions: int

    def header(self):
        return struct.pack('<7i', self.dim, self.hidden, self.layers, self.heads, self.kv_heads, self.vocabulary,
                           self.positions)

    def layer_matrices(self):
        """Elements of q, k, v, o over all layers, and of w1, w2, w3."""
        square = self.layers * self.dim * self.dim
        narrow = square // self.heads * self.kv_heads
        return [square, narrow, narrow, square], [self.layers * self.dim * self.hidden] * 3


    def group(self):
        return math.gcd(MOST_GROUP, self.dim, self.hidden)


def write_floats(file, count):
    for first in range(0, count, CHUNK):
        file.write(random_floats(min(CHUNK, count - first)))


def write_groups(file, count, group):
    """Codes and one factor for each group of them; -128 is none of runq's codes."""
    file.write(os.urandom(count).replace(b'\x80', b'\x81'))
    file.write(struct.pack('<f', 1 / 64 / 127) * (count // group))


def ones(count):
    return struct.pack('<f', 1) * count


def write_float_model(path, sizes):
    attention, ffn = sizes.layer_matrices()
    with open(path, 'wb') as file:
        file.write(sizes.header())
        write_floats(file, sizes.vocabulary * sizes.dim)
        file.write(ones(sizes.layers * sizes.dim))
        for count in attention:
            write_floats(file, count)
        file.write(ones(sizes.layers * sizes.dim))
        for count in ffn:
            write_floats(file, count)
        file.write(ones(sizes.dim))
        file.write(bytes(4 * sizes.positions * (sizes.dim // sizes.heads)))  # cosines and sines, which nobody reads


def write_int8_model(path, sizes):
    attention, ffn = sizes.layer_matrices()
    with open(path, 'wb') as file:
        header = struct.pack('<Ii', MAGIC, 2) + sizes.header() + struct.pack('<bi', 1, sizes.group())
        file.write(header.ljust(256, b'\0'))
        file.write(ones((2 * sizes.layers + 1) * sizes.dim))
        for count in [sizes.vocabulary * sizes.dim, *attention, *ffn]:
            write_groups(file, count, sizes.group())


def write_tokenizer(path, vocabulary):
    pieces = [f'<{token:x}>'.encode() for token in range(vocabulary)]
    with open(path, 'wb') as file:
        file.write(struct.pack('<i', max(map(len, pieces))))
        for piece in pieces:
            file.write(struct.pack('<fi', 0, len(piece)) + piece)


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('folder', metavar='FOLDER', type=pathlib.Path)
    for name in Sizes.__dataclass_fields__:
        parser.add_argument(name, metavar=name.upper(), type=int)
    args = vars(parser.parse_args())
    folder = args.pop('folder')
    sizes = Sizes(**args)
    if min(args.values()) < 1 or sizes.dim % sizes.heads or sizes.heads % sizes.kv_heads:
        parser.error('sizes are at least 1, heads divide the width, and key heads the heads')
    return folder, sizes


def main():
    folder, sizes = parse_arguments()
    folder.mkdir(parents=True, exist_ok=True)
    write_float_model(folder / 'model.bin', sizes)
    write_int8_model(folder / 'model_q80.bin', sizes)
    write_tokenizer(folder / 'tokenizer.bin', sizes.vocabulary)


if __name__ == '__main__':
    main()
