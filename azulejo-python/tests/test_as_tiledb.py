"""An untouched ``tiledb`` on this engine. All of its own tests: ``cargo xtask as-tiledb``."""

import importlib.metadata
import os
import pathlib
import subprocess
import sys

import pytest

pytest.importorskip("tiledb")
pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="glibc's loader")

from azulejo_db import _elf  # noqa: E402 - numpy and the engine, not tiledb

PROGRAM = """
import multiprocessing, pathlib, sys
import numpy as np
{first}
import tiledb

def total(uri):
    import tiledb
    with tiledb.open(uri) as array:
        return int(array[:].sum()), ours()

def ours():
    maps = pathlib.Path("/proc/self/maps").read_text()
    return "tiledb.libs/libtiledb" not in maps and "azulejo" in maps

if __name__ == "__main__":
    uri = sys.argv[1]
    tiledb.from_numpy(uri, np.arange(10))
    with tiledb.open(uri, "w") as array:
        array.meta["unit"] = "mm"
    with multiprocessing.get_context("{method}").Pool(1) as pool:
        print(total(uri), pool.map(total, [uri]), tiledb.open(uri).meta["unit"])
"""
DONE = "(45, True) [(45, True)] mm\n"


def ran(*words, **environment):
    path = os.pathsep.join(filter(None, [*map(str, sys.path)]))
    done = subprocess.run(
        [sys.executable, *map(str, words)], capture_output=True, text=True, timeout=120,
        env=os.environ | {"PYTHONPATH": path} | environment,
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr
    return done.stdout


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_an_import_before_it(tmp_path, method):
    program = tmp_path / "program.py"
    program.write_text(PROGRAM.format(first="import azulejo_db.as_tiledb", method=method))
    assert ran(program, tmp_path / "a") == DONE


def test_a_program_that_cannot_be_edited(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(PROGRAM.format(first="", method="fork"))
    assert ran("-m", "azulejo_db.run", program, tmp_path / "a") == DONE
    # Without it the wheel's own library does the work, which now and then hangs in forked children.
    program.write_text(PROGRAM.format(first="", method="spawn"))
    assert "False" in ran(program, tmp_path / "b")


def test_the_environment_and_spawned_children(tmp_path):
    if not any("azulejo_db_as_tiledb.pth" in str(f) for f in _files()):
        pytest.skip("not installed from a wheel")
    program = tmp_path / "program.py"
    program.write_text(PROGRAM.format(first="", method="spawn"))
    assert ran(program, tmp_path / "a", AZULEJO_AS_TILEDB="1") == DONE
    assert ran("-m", "azulejo_db.run", program, tmp_path / "b") == DONE


def _files():
    try:
        return importlib.metadata.files("azulejo-db") or []
    except importlib.metadata.PackageNotFoundError:
        return []


def test_too_late_is_said(tmp_path):
    program = "import tiledb\ntry:\n    import azulejo_db.as_tiledb\nexcept ImportError as e: print(e)"
    assert "is loaded already; import this first" in ran("-c", program)


def test_a_part_of_its_own_tests(tmp_path):
    import tiledb

    tests = pathlib.Path(tiledb.__file__).parent / "tests"
    chosen = ["test_attribute.py", "test_enumeration.py", "test_fragments.py", "test_group.py", "test_domain_index.py"]
    (tmp_path / "pytest.ini").write_text("[pytest]\npython_classes = *Test*\n")
    out = ran(
        "-m", "azulejo_db.run", "-m", "pytest", "-q", "-c", tmp_path / "pytest.ini", "-p", "no:cacheprovider",
        "--import-mode=importlib", f"--rootdir={tests.parents[1]}", *(tests / name for name in chosen),
        "-k", "not pandas and not dataframe",
    )
    assert "passed" in out and "failed" not in out


def test_what_shared_objects_need():
    import tiledb

    folder = pathlib.Path(tiledb.__file__).parent
    found = [name for file in folder.glob("*.so") for name in _elf.needed(file)]
    assert any(name.startswith("libtiledb") for name in found)
    assert _elf.needed(__file__) == []


def test_objects_that_stand_in(tmp_path):
    made = tmp_path / "made.so"
    made.write_bytes(_elf.stand_in("libother.so.1", "/somewhere/library.so"))
    assert _elf.needed(made) == ["/somewhere/library.so"]
    for cut in range(0, made.stat().st_size, 7):
        (tmp_path / "cut.so").write_bytes(made.read_bytes()[:cut])
        assert set(_elf.needed(tmp_path / "cut.so")) <= {"/somewhere/library.so"}


ELSEWHERE = """
import os, sys
import numpy as np, tiledb

os.chdir(sys.argv[1])
os.mkdir("other")
tiledb.from_numpy("a", np.arange(6.0)).close()
domain = tiledb.Domain(tiledb.Dim("i", (0, 9), 5, dtype=np.int64))
tiledb.Array.create("s", tiledb.ArraySchema(domain, [tiledb.Attr("v", dtype=np.int32)], sparse=True))
with tiledb.open("s", "w") as s:
    s[[1, 2, 3]] = np.array([1, 2, 3], "i4")
tiledb.Group.create("g")
read, write, delete, group = tiledb.open("a"), tiledb.open("a", "w"), tiledb.open("s", "d"), tiledb.Group("g")
group.close()
os.chdir("other")
write[0:1] = np.array([7.0])
write.close()
read.reopen()
delete.query(cond="v > 2").submit()
delete.close()
group.open("w")
group.meta["k"] = 1
group.close()
os.chdir("..")
print(read[0], tiledb.open("s")[:]["v"], tiledb.Group("g").meta["k"], os.listdir("other"))
"""


def test_handles_stay_where_they_were_opened(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(ELSEWHERE)
    assert ran("-m", "azulejo_db.run", program, tmp_path) == "7.0 [1 2] 1 []\n"


IN_TWO_THREADS = """
import importlib.util, sys, threading, time
exec(open({hook!r}).read())
looking, find = threading.Event(), importlib.util.find_spec

def slow(*name):
    looking.set()
    time.sleep(0.5)
    return find(*name)

importlib.util.find_spec = slow

def first():
    import azulejo_db.as_tiledb

def second():
    looking.wait()
    import tiledb

threads = [threading.Thread(target=work, daemon=True) for work in (first, second)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join(60)
print([thread.is_alive() for thread in threads], bool(sys.modules["azulejo_db.as_tiledb"].names))
"""


def test_two_threads_that_import_it_and_a_package(tmp_path):
    """Each waited for the other, for ever."""
    hook = pathlib.Path(__file__).parents[1] / "data/platlib/azulejo_db_as_tiledb.py"
    program = tmp_path / "program.py"
    program.write_text(IN_TWO_THREADS.format(hook=str(hook)))
    assert ran(program) == "[False, False] True\n"


def test_nothing_is_imported_before_it_is_asked_for(tmp_path):
    """What Python imports as it starts must not bring numpy: a program may say first where its own lies."""
    hook = pathlib.Path(__file__).parents[1] / "data/platlib/azulejo_db_as_tiledb.py"
    program = (
        f"exec(open({str(hook)!r}).read())\n"
        "assert 'numpy' not in sys.modules and 'azulejo_db' not in sys.modules\n"
        "import tiledb\n"
        "print(bool(sys.modules['azulejo_db.as_tiledb'].names))"
    )
    assert ran("-c", program) == "True\n"
