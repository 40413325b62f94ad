#!/usr/bin/python3
"""Writes what llm.c's CPU program needs to run offline: gpt2_124M.bin with random weights, and token files.

    llmc_random_model.py FOLDER [LAYERS HEADS CHANNELS VOCABULARY POSITIONS]      GPT-2 124M without the numbers

Matrices get random values of a magnitude from 1/64 to 1/32, like normal(0, 0.02) for what a step costs; norms start
at 1 and biases at 0.
"""
import argparse
import array
import os
import pathlib
import struct

from random_weights import random_floats

MODEL_MAGIC, TOKENS_MAGIC = 20240326, 20240520
CHUNK = 1 << 20
GPT2_124M = (12, 12, 768, 50257, 1024)


def write_header(file, *numbers):
    file.write(struct.pack('<256i', *numbers, *[0] * (256 - len(numbers))))


def write_model(path, layers, heads, channels, vocabulary, positions):
    padded = (vocabulary + 127) // 128 * 128
    matrix, norm, bias = random_floats, lambda n: struct.pack('<f', 1) * n, lambda n: bytes(4 * n)
    L, C = layers, channels
    tensors = [(matrix, padded * C), (matrix, positions * C), (norm, L * C), (bias, L * C), (matrix, L * 3 * C * C),
               (bias, L * 3 * C), (matrix, L * C * C), (bias, L * C), (norm, L * C), (bias, L * C),
               (matrix, L * 4 * C * C), (bias, L * 4 * C), (matrix, L * 4 * C * C), (bias, L * C), (norm, C), (bias, C)]
    with open(path, 'wb') as file:
        write_header(file, MODEL_MAGIC, 3, positions, vocabulary, layers, heads, channels, padded)
        for values, count in tensors:
            for first in range(0, count, CHUNK):
                file.write(values(min(CHUNK, count - first)))


def write_tokens(path, count, vocabulary):
    ids = array.array('H', os.urandom(2 * count))
    with open(path, 'wb') as file:
        write_header(file, TOKENS_MAGIC, 1, count)
        file.write(array.array('H', (token % vocabulary for token in ids)).tobytes())


def parse_arguments():
    """The folder and the five sizes; anything else ends with exit status 2."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('folder', metavar='FOLDER', type=pathlib.Path)
    parser.add_argument('sizes', metavar='SIZE', type=int, nargs='*', help='all five of them, or none')
    args = parser.parse_args()
    sizes = args.sizes or GPT2_124M
    if len(sizes) != len(GPT2_124M):
        parser.error(f'{len(sizes)} sizes, expected LAYERS HEADS CHANNELS VOCABULARY POSITIONS')
    if min(sizes) < 1 or sizes[3] > 65536 or sizes[2] % sizes[1] != 0:
        parser.error('sizes are at least 1, token ids have 16 bits, and the heads divide the channels')
    return args.folder, sizes


def main():
    folder, (layers, heads, channels, vocabulary, positions) = parse_arguments()
    data = folder / 'dev/data/tinyshakespeare'
    data.mkdir(parents=True, exist_ok=True)
    write_model(folder / 'gpt2_124M.bin', layers, heads, channels, vocabulary, positions)
    write_tokens(data / 'tiny_shakespeare_train.bin', 300000, vocabulary)
    write_tokens(data / 'tiny_shakespeare_val.bin', 32768, vocabulary)


if __name__ == '__main__':
    main()
