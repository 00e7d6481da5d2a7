"""Does its worst in a folder that it may write: swaps files, folders and links to what is not its own,
keeps a lease, makes pipes and very many entries. Says "ready" when everything is there."""

import ctypes
import fcntl
import os
import signal
import sys

signal.signal(signal.SIGIO, signal.SIG_IGN)
os.setgroups([])
os.setgid(54323)
os.setuid(54323)
os.chdir(sys.argv[1])
secret = sys.argv[2]


def write(path, octets):
    with open(path, "wb") as out:
        out.write(octets)


os.mkdir("inner")
write("inner/secret", b"mine")
write("inner/file", b"mine")
os.symlink(os.path.dirname(secret), "way")
os.symlink(secret, "link")
write("file", b"mine")
os.mkfifo("pipe")
os.mkdir("many")
for n in range(60_000):
    os.mkfifo(f"many/{n}")
write("leased", b"mine")
leased = os.open("leased", os.O_RDWR)
fcntl.fcntl(leased, fcntl.F_SETLEASE, fcntl.F_WRLCK)
try:
    os.link(secret, "hard")
    print("linked", flush=True)
except PermissionError:
    print("refused", flush=True)
libc = ctypes.CDLL(None)
AT_FDCWD, EXCHANGE = -100, 2


def exchange(a, b):
    assert libc.renameat2(AT_FDCWD, a, AT_FDCWD, b, EXCHANGE) == 0


print("ready", flush=True)
n = 0
while True:
    exchange(b"inner", b"way")
    exchange(b"file", b"link")
    exchange(b"file", b"pipe")
    n += 1
    with open("grows", "wb") as out:
        out.truncate(n % 3 * 20_000)
