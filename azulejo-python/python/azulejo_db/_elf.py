"""Shared objects of Linux, as far as one engine can stand in for another: what they need, and
another name for one.

glibc takes what a shared object needs from what is loaded already if its SONAME is the name. An
object of a few hundred bytes with nothing in it but such a name and one dependency therefore
stands for that dependency.
"""

from __future__ import annotations

import ctypes
import os
import platform
import struct
import sys
import tempfile
from collections.abc import Iterator

_MAGIC = b"\x7fELF\x02\x01\x01"  # 64-bit, little endian, version 1
_MACHINES = {"x86_64": 62, "aarch64": 183, "riscv64": 243, "ppc64le": 21}
_LOAD, _DYNAMIC, _STACK = 1, 2, 0x6474E551
_NEEDED, _HASH, _STRTAB, _SYMTAB, _STRSZ, _SYMENT, _SONAME = 1, 4, 5, 6, 10, 11, 14
_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
_SEGMENT = struct.Struct("<IIQQQQQQ")
_DYN = struct.Struct("<qQ")
_SYMBOL = 24

#: Files that must stay open: the loader knows an object by its path, which is that of a file
#: descriptor, and would take another one of the same number for it.
_open: list[int] = []


def needed(path: str | os.PathLike) -> list[str]:
    """The names of the libraries that a shared object asks for; none if it is no such object."""
    with open(path, "rb") as file:
        image = file.read()
    try:
        return list(_needed(image))
    except (struct.error, StopIteration, ValueError, UnicodeDecodeError):
        return []


def _needed(image: bytes) -> Iterator[str]:
    if not image.startswith(_MAGIC[:6]):
        return
    _, _, _, _, _, start, _, _, _, size, count, *_ = _HEADER.unpack_from(image)
    segments = [_SEGMENT.unpack_from(image, start + i * size) for i in range(count)]
    dynamic = [s for s in segments if s[0] == _DYNAMIC]
    if not dynamic:
        return
    _, _, offset, _, _, length, *_ = dynamic[0]
    entries = [_DYN.unpack_from(image, offset + at) for at in range(0, length, _DYN.size)]
    address = next(value for tag, value in entries if tag == _STRTAB)
    strings = next(
        s[2] + address - s[3] for s in segments if s[0] == _LOAD and s[3] <= address < s[3] + s[5]
    )
    for tag, value in entries:
        if tag == _NEEDED:
            yield image[strings + value : image.index(b"\0", strings + value)].decode()


def stand_in(soname: str, library: str) -> bytes:
    """The image of a shared object of the name ``soname`` that needs ``library``, a path."""
    names = b"\0" + os.fsencode(soname) + b"\0" + os.fsencode(library) + b"\0"
    dynamic = _HEADER.size + 3 * _SEGMENT.size
    symbols = dynamic + 8 * _DYN.size
    table = symbols + _SYMBOL
    strings = table + 16
    size = strings + len(names)
    machine = _MACHINES[platform.machine()]
    entries = [
        (_SONAME, 1), (_NEEDED, 2 + len(os.fsencode(soname))), (_HASH, table), (_STRTAB, strings),
        (_SYMTAB, symbols), (_STRSZ, len(names)), (_SYMENT, _SYMBOL), (0, 0),
    ]
    shared = 3
    return b"".join([
        _HEADER.pack(_MAGIC, shared, machine, 1, 0, _HEADER.size, 0, 0, _HEADER.size, _SEGMENT.size, 3, 64, 0, 0),
        # Writable: the loader notes addresses in the dynamic section.
        _SEGMENT.pack(_LOAD, 6, 0, 0, 0, size, size, 1 << 16),
        _SEGMENT.pack(_DYNAMIC, 6, dynamic, dynamic, dynamic, symbols - dynamic, symbols - dynamic, 8),
        _SEGMENT.pack(_STACK, 6, 0, 0, 0, 0, 0, 16),
        *(_DYN.pack(*entry) for entry in entries),
        bytes(_SYMBOL),
        struct.pack("<IIII", 1, 1, 0, 0),  # a hash table with nothing in it
        names,
    ])


def load_as(soname: str, library: str) -> None:
    """Makes whatever needs ``soname`` from now on get ``library``."""
    image = stand_in(soname, library)
    try:
        file = os.memfd_create(soname)
    except OSError:
        # Barred here: a file that is gone once it is loaded.
        with tempfile.NamedTemporaryFile(prefix="azulejo-", suffix=".so") as named:
            named.write(image)
            named.flush()
            ctypes.CDLL(named.name, mode=os.RTLD_NOW)
        return
    os.write(file, image)
    ctypes.CDLL(f"/proc/self/fd/{file}", mode=os.RTLD_NOW)
    _open.append(file)


def refusal() -> str | None:
    """Why this cannot be done here, if it cannot."""
    if not sys.platform.startswith("linux"):
        return f"this needs the loader of Linux, not that of {sys.platform}"
    if platform.machine() not in _MACHINES:
        return f"not known for machines of the kind {platform.machine()}"
    if platform.libc_ver()[0] != "glibc":
        return "this needs glibc, whose loader looks at the names of what is loaded"
    return None
