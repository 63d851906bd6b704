"""Runs the engine of a wheel for musl, for which there is no Python here: a small program of C loads its
library. Python's own functions, which the library asks for, are there by name and without code: the
engine calls none of them.

usage: wheel_host.py WHEEL ARCHITECTURE; zig compiles the program, which needs the loader of musl.
"""

import io
import pathlib
import subprocess
import sys
import tempfile
import zipfile

from elftools.elf.elffile import ELFFile


def main(wheel, arch):
    here = pathlib.Path(__file__).parent
    with tempfile.TemporaryDirectory() as folder, zipfile.ZipFile(wheel) as files:
        folder = pathlib.Path(folder)
        (name,) = (name for name in files.namelist() if name.endswith(".so"))
        library = folder / "library.so"
        library.write_bytes(files.read(name))
        symbols = ELFFile(io.BytesIO(library.read_bytes())).get_section_by_name(".dynsym").iter_symbols()
        wanted = {s.name for s in symbols if s["st_shndx"] == "SHN_UNDEF" and s.name.lstrip("_").startswith("Py")}
        (folder / "python.c").write_text("".join(f"void *{name}[64];\n" for name in sorted(wanted)))
        program = folder / "host"
        subprocess.run(
            [sys.executable, "-m", "ziglang", "cc", "-O2", "-w", "-dynamic", "-rdynamic", "-target", f"{arch}-linux-musl",
             "-o", program, here / "wheel_host.c", folder / "python.c"],
            check=True,
        )
        subprocess.run([program, library, folder / "array"], check=True, timeout=300)


main(*sys.argv[1:])
