"""Sizes as a person writes them."""

from __future__ import annotations

import re

from seasoned.errors import InputError, excerpt

__all__ = ["size_bytes"]

_BYTES = {"": 1, "k": 10**3, "M": 10**6, "G": 10**9, "T": 10**12, "Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40}


def size_bytes(option: str, text: str) -> int:
    """Return a size in bytes: a whole number of them, or of k, M, G, T (thousands), Ki, Mi, Gi, Ti (1024s).

    Raises:
        InputError: it is none; the message names the option.

    Example:
        >>> size_bytes("--bytes", "4k"), size_bytes("--bytes", "1.5Mi"), size_bytes("--bytes", "512")
        (4000, 1572864, 512)
    """
    found = re.fullmatch(r"([0-9]{1,15}(?:\.[0-9]{1,6})?) ?([kKMGT]?|[KkMGT]i)B?", text.strip(), re.ASCII)
    unit = "" if not found else found[2].replace("K", "k") if len(found[2]) < 2 else found[2].replace("k", "K")
    if not found or (not unit and "." in found[1]):
        raise InputError(
            f"{option} {excerpt(text)}",
            "a size must be a number of bytes, or of k, M, G (1000s) or Ki, Mi, Gi (1024s)",
            "Write it like 4096, 4k, 20M or 1.5Gi.",
        )
    return int(float(found[1]) * _BYTES[unit]) if "." in found[1] else int(found[1]) * _BYTES[unit]
