"""Programs that a case starts, and the node of ours that they meet."""
import contextlib
import hashlib
import os
import random
import socket
import subprocess
import threading
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
DEADLINE_S = 20


class Failed(Exception):
    """A case that did not show what it should."""


class Program:
    """A program that was started, with its output collected line by line."""

    def __init__(self, arguments, node=None, **environment):
        env = dict(os.environ, **environment)
        if node is not None:
            env['NDN_CLIENT_TRANSPORT'] = node
        self.arguments = [str(a) for a in arguments]
        self.lines = []
        self.changed = threading.Condition()
        self.process = subprocess.Popen(self.arguments, env=env, text=True, errors='replace', stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()

    def _read(self):
        for line in self.process.stdout:
            with self.changed:
                self.lines.append(line.rstrip('\n'))
                self.changed.notify_all()
        with self.changed:
            self.changed.notify_all()

    def said(self):
        return '\n'.join(self.lines)

    def wait_for(self, text):
        """Waits until a line contains `text`, and returns that line."""
        end = time.monotonic() + DEADLINE_S
        with self.changed:
            while True:
                for line in self.lines:
                    if text in line:
                        return line
                left = end - time.monotonic()
                if left <= 0 or (self.process.poll() is not None and not self.reader.is_alive()):
                    raise Failed(f'{self.arguments} did not say {text!r}:\n{self.said()}')
                self.changed.wait(min(left, 0.2))

    def say(self, line):
        """Gives the program a line of standard input."""
        self.process.stdin.write(f'{line}\n')
        self.process.stdin.flush()

    def finish(self, timeout=60):
        """Waits for the end and returns what was said; a non-zero status is a failure."""
        try:
            status = self.process.wait(timeout)
        except subprocess.TimeoutExpired:
            self.stop()
            raise Failed(f'{self.arguments} did not end within {timeout} s:\n{self.said()}') from None
        self.reader.join(5)
        if status != 0:
            raise Failed(f'{self.arguments} ended with {status}:\n{self.said()}')
        return self.said()

    def stop(self):
        if self.process.stdin and not self.process.stdin.closed:
            with contextlib.suppress(OSError):
                self.process.stdin.close()
        if self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(5)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        self.reader.join(2)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()


def free_port(kind=socket.SOCK_STREAM):
    with socket.socket(socket.AF_INET, kind) as probe:
        probe.bind(('127.0.0.1', 0))
        return probe.getsockname()[1]


def expect(condition, message):
    if not condition:
        raise Failed(message)


class Setup:
    """Where the programs are, and a folder for one run."""

    def __init__(self, arguments, folder):
        self.onym = Path(arguments.onym).resolve()
        self.python = Path(arguments.python)
        self.folder = Path(folder)
        self.file = self.folder / 'content'
        generator = random.Random(20)
        self.file.write_bytes(generator.randbytes(1_000_000))

    def digest(self, path):
        return hashlib.sha256(Path(path).read_bytes()).hexdigest()

    def same(self, path):
        expect(self.digest(path) == self.digest(self.file), f'{path} differs from what was published')

    def node(self, name='n', **settings):
        """A node of ours with a Unix socket, UDP, TCP and WebSocket on free ports."""
        return OnymNode(self, name, settings)

    def onym_run(self, *arguments, node):
        return Program([self.onym, *arguments, '--node', node]).finish()

    def python_peer(self, *arguments, node):
        return Program([self.python, HERE / 'python/peer.py', *arguments], node=node,
                       HOME=str(self.folder))

    def ndncat(self, *arguments, node):
        return Program(['node', HERE / 'ndncat/node_modules/@ndn/cat/cli.cjs', *arguments], node=node).finish()

    def ndnts_certificates(self, *arguments, node):
        return Program(['node', HERE / 'ndnts/certificates.mjs', *arguments], node=node)

    def ndnts_peer(self, *arguments, node, **environment):
        return Program(['node', HERE / 'ndnts/peer.mjs', *arguments], node=node, **environment)


class OnymNode:
    def __init__(self, setup, name, settings):
        path = setup.folder / f'{name}.sock'
        self.udp_port = free_port(socket.SOCK_DGRAM)
        self.tcp_port = free_port()
        self.ws_port = free_port()
        settings = {
            'faces.unix.path': f'"{path}"',
            'faces.udp.listen': f'["127.0.0.1:{self.udp_port}"]',
            'faces.tcp.listen': f'["127.0.0.1:{self.tcp_port}"]',
            'faces.websocket.listen': f'["127.0.0.1:{self.ws_port}"]',
            'faces.websocket.local': 'true',
            **settings,
        }
        flags = [word for key, value in settings.items() for word in ('--set', f'{key}={value}')]
        self.program = Program([setup.onym, 'daemon', *flags])
        self.unix = f'unix://{path}'
        self.udp = f'udp4://127.0.0.1:{self.udp_port}'
        self.ws = f'ws://127.0.0.1:{self.ws_port}/'

    def __enter__(self):
        self.program.wait_for('ready')
        return self

    def __exit__(self, *_):
        self.program.stop()


def wait_until_served(setup, name, node):
    """Waits until a producer's registration took effect: its metadata is answered."""
    end = time.monotonic() + DEADLINE_S
    while True:
        arguments = [setup.onym, 'peek', f'{name}/32=metadata', '--can-be-prefix', '--must-be-fresh', '--node', node]
        probe = Program(arguments)
        with contextlib.suppress(Failed):
            probe.finish()
            return
        if time.monotonic() > end:
            raise Failed(f'{name} was never served: {probe.said()}')
