"""Ctrl-C ends the call under way, at once, and no other."""

import subprocess
import sys

import pytest

#: What every program begins with: ``interrupted`` says after how many seconds Ctrl-C has ended work.
BEGINNING = """
import os, signal, socket, sys, threading, time
import numpy as np, azulejo_db as az

def interrupted(work, after=0.3):
    sent = []
    def send():
        sent.append(time.monotonic())
        os.kill(os.getpid(), signal.SIGINT)
    threading.Timer(after, send).start()
    try:
        while True:
            work()
    except KeyboardInterrupt:
        return time.monotonic() - sent[0]

uri = sys.argv[1]
"""

LOCAL = """
cells = np.random.default_rng(1).random(1500000)
a = az.write(uri, cells, tiles=(30000,), filters=["bzip2"], name="v")
work = {
    "read": lambda: a[...], "agg": lambda: a.agg(mean="v", where="v > 0.5"),
    "write": lambda: az.write(uri + "-other", cells, mode="w", filters=["bzip2"]),
    "consolidate": lambda: b.consolidate(),
}[sys.argv[2]]
if sys.argv[2] == "consolidate":
    b = az.write(uri + "-b", cells, tiles=(30000,), filters=["bzip2"])
    for i in range(3):
        b[i : i + 1000000] = cells[i : i + 1000000]
found, going, done = [], threading.Event(), threading.Event()
def read():
    while not done.is_set():
        # Of the very array that is read in the main thread. The engine's threads do one piece of work
        # after another: a large one would have to end first.
        at = 150000 * (len(found) % 10)
        found.append((a[at : at + 150000] == cells[at : at + 150000]).all() and a.agg("count") == cells.size)
        going.set()
other = threading.Thread(target=read)
other.start()
going.wait()
waited = interrupted(work)
done.set()
other.join()
print(all(found), a[0] == cells[0], waited < 1, waited)
"""

NETWORK = """
def answer(connection):
    asked = connection.recv(65536)
    if b"slow" in asked:
        time.sleep(1)
        connection.sendall(b"HTTP/1.1 404 Not Found\\r\\nContent-Length: 0\\r\\nConnection: close\\r\\n\\r\\n")
        connection.close()
    else:
        kept.append(connection)  # and never answers

def serve():
    while True:
        threading.Thread(target=answer, args=(server.accept()[0],), daemon=True).start()

kept, server = [], socket.create_server(("127.0.0.1", 0))
threading.Thread(target=serve, daemon=True).start()
place = f"http://127.0.0.1:{server.getsockname()[1]}"
s3 = {
    "vfs.s3.endpoint_override": place.removeprefix("http://"), "vfs.s3.scheme": "http", "vfs.s3.region": "r",
    "vfs.s3.use_virtual_addressing": "false", "vfs.s3.aws_access_key_id": "a", "vfs.s3.aws_secret_access_key": "b",
}
work = {
    "open": lambda: az.open(place + "/silent"),
    "write": lambda: az.write("s3://bucket/silent", np.arange(5), config=s3),
}[sys.argv[2]]
found = []
def other():
    try:
        az.open(place + "/slow")
    except az.AzulejoError as error:
        found.append(type(error).__name__)
thread = threading.Thread(target=other)
thread.start()
waited = interrupted(work)
thread.join()
# It has got its answer: there is no listing.
print(found == ["UnsupportedError"], True, waited < 1, waited)
"""


def told(program, *words):
    done = subprocess.run(
        [sys.executable, "-c", BEGINNING + program, *map(str, words)], capture_output=True, text=True, timeout=120
    )
    assert done.stdout, done.stderr
    return done.stdout.split()


@pytest.mark.parametrize("work", ["read", "agg", "write", "consolidate"])
def test_on_a_disk(tmp_path, work):
    assert told(LOCAL, tmp_path / "a", work)[:3] == ["True"] * 3


@pytest.mark.parametrize("work", ["open", "write"])
def test_over_a_network(tmp_path, work):
    assert told(NETWORK, tmp_path / "a", work)[:3] == ["True"] * 3
