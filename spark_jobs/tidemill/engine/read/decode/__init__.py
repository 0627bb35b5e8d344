"""Decoders: from the bytes of a record to a typed row."""

from tidemill.engine.read.decode.registry import decoder_for
from tidemill.engine.read.decode.rows import Decoded, Decoder

__all__ = ["Decoded", "Decoder", "decoder_for"]
