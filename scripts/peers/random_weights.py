"""Weights of models whose speed alone counts."""
import os
import struct


def random_floats(count):
    """float32 with random sign and mantissa; the exponent is that of 1/64. Bits of a whole chunk are set at once."""
    sign_and_mantissa = int.from_bytes(struct.pack('<I', 0x807fffff) * count, 'little')
    exponent = int.from_bytes(struct.pack('<I', 0x3c800000) * count, 'little')
    bits = int.from_bytes(os.urandom(4 * count), 'little') & sign_and_mantissa | exponent
    return bits.to_bytes(4 * count, 'little')
