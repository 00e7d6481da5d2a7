#!/usr/bin/env python3
"""Runs foreign programs against a node and a node against foreign forwarders.

Every case is a function named for what it shows; a failed one prints what the programs said.
Only the standard library is used here; the foreign libraries live in the programs it starts.
"""
import argparse
import contextlib
import hashlib
import json
import os
import random
import shutil
import socket
import subprocess
import sys
import tempfile
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


# python-ndn

def python_producers_register_and_both_classes_of_consumer_fetch(setup):
    with setup.node() as node:
        for producer in ('v1', 'v2'):
            with setup.python_peer('serve', producer, f'/py/{producer}', node=node.unix) as serving:
                serving.wait_for('ready')
                for consumer in ('v1', 'v2'):
                    said = setup.python_peer('fetch', consumer, f'/py/{producer}/{consumer}', node=node.unix).finish()
                    expect(said.startswith(f'{producer} '), said)


def python_fetches_what_onym_published_in_segments(setup):
    with setup.node() as node, Program([setup.onym, 'put', '/onym/file', setup.file, '--node', node.unix]) as put:
        put.wait_for('/onym/file')
        wait_until_served(setup, '/onym/file', node.unix)
        out = setup.folder / 'from-onym'
        setup.python_peer('segments', '/onym/file', out, node=node.unix).finish()
        setup.same(out)


def onym_fetches_what_python_published_in_segments(setup):
    with setup.node() as node, setup.python_peer('object', '/py/file', setup.file, node=node.unix) as serving:
        serving.wait_for('ready')
        out = setup.folder / 'from-python'
        setup.onym_run('get', '/py/file', '-o', out, node=node.unix)
        setup.same(out)


def python_manages_a_node(setup):
    with setup.node() as node:
        said = setup.python_peer('manage', node=node.unix).finish()
        for line in ('strategy-choice/set 200', 'strategy-choice/unset 200', 'status/general version'):
            expect(line in said, said)


def python_compiles_trust_schemas_to_the_same_octets(setup):
    folder, seed = setup.folder / 'schemas', random.randrange(1 << 32)
    folder.mkdir()
    cases = HERE / '../../spec/vectors/trust/lvs-cases.json'
    writer = HERE / 'python' / 'schemas.py'
    said = Program([setup.python, writer, cases, seed, 200, folder]).finish()
    print(f'  seed {seed}: {said}', flush=True)
    for text in folder.glob('*.lvs'):
        theirs, ours = text.with_suffix('.tlv'), text.with_suffix('.ours')
        compiled = subprocess.run([setup.onym, 'trust', 'compile', '--exact', text, '-o', ours],
                                  capture_output=True, text=True, timeout=DEADLINE_S)
        accepted = compiled.returncode == 0
        where = f'seed {seed}, {text.name}:\n{text.read_text()}\n{compiled.stderr}'
        expect(accepted == theirs.exists(), f'one of both refuses {where}')
        expect(not accepted or ours.read_bytes() == theirs.read_bytes(), f'other octets of {where}')


SITE = '''#KEY: "KEY"/_/_/_
#root: "site"/#KEY
#user: "site"/u/#KEY <= #root
#object: "site"/u/_
#segment: #object/_version/_segment <= #user
#meta: #object/"32=metadata"/_version/_segment <= #user
'''


def python_and_onym_believe_each_other_by_one_trust_schema(setup):
    """Chains of three (anchor, user, segment), ECDSA: each side's objects by the other's check."""
    folder = setup.folder / 'site'
    folder.mkdir()
    schema, root = folder / 'site.lvs', folder / 'root.ndncert'
    schema.write_text(SITE)

    def onym(*arguments, code=0):
        done = subprocess.run([setup.onym, *map(str, arguments)], capture_output=True, text=True, timeout=DEADLINE_S,
                              env={**os.environ, 'ONYM_KEYSTORE': str(folder / 'keys')})
        expect(done.returncode == code, f'{arguments}: {done.returncode} {done.stderr}')
        return done.stderr

    with setup.node() as node:
        with setup.python_peer('signed', '/site/py/file', setup.file, folder, node=node.unix) as serving:
            serving.wait_for('ready')
            out = folder / 'out'
            judged = ('--trust', schema, '--anchor', root, '--node', node.unix)
            onym('get', '/site/py/file', '-o', out, *judged)
            setup.same(out)
            narrow = folder / 'narrow.lvs'
            narrow.write_text(SITE.replace('"site"/u/#KEY <= #root', '"site"/u/#KEY & {u: "onym"} <= #root'))
            refused = onym('get', '/site/py/file', '-o', out, '--trust', narrow, *judged[2:], code=1)
            expect('/site/py' in refused, refused)
    with setup.node() as node:
        for identity in ('/site', '/site/onym', '/site/other'):
            onym('key', 'new', identity, '--type', 'ecdsa')
        onym('cert', 'export', '/site', '-o', root)
        for user in ('onym', 'other'):
            onym('cert', 'export', f'/site/{user}', '-o', folder / user)
            onym('cert', 'issue', folder / user, '--signer', '/site', '-o', folder / f'{user}.ndncert')
            onym('cert', 'install', folder / f'{user}.ndncert')
        environment = {'ONYM_KEYSTORE': str(folder / 'keys')}
        put = [setup.onym, 'put', '/site/onym/file', setup.file, '--version', '7', '--node', node.unix]
        foreign = [setup.onym, 'put', '/site/stranger/file', setup.file, '--version', '7', '--key', '/site/other',
                   '--node', node.unix]
        with Program([*put, '--trust', schema, '--anchor', root], **environment) as one, \
                Program(foreign, **environment) as two, \
                Program([setup.onym, 'cert', 'serve', '--node', node.unix], **environment) as three:
            for program in (one, two, three):
                program.wait_for('ready')
            for owner, said in (('onym', 'believed'), ('stranger', 'refused')):
                name = f'/site/{owner}/file/v=7/seg=0'
                heard = setup.python_peer('trusted', name, schema, root, node=node.unix).finish()
                expect(said in heard, f'{name}: {heard}')


@contextlib.contextmanager
def preset_network(setup, preset):
    """A preset on free ports, made by one command: where consumers connect, and producers."""
    text = Program([setup.onym, 'net', 'preset', preset, '--print']).finish()
    ports = {was: free_port() for was in (6362, 6363, 6372, 6373)}
    for was, now in ports.items():
        text = text.replace(f':{was}"', f':{now}"')
    description = setup.folder / f'{preset}.toml'
    description.write_text(text)
    manager = Program([setup.onym, 'manager', '--network', description, '--listen', '127.0.0.1:0',
                       '--state', setup.folder / preset])
    with manager:
        url = json.loads(manager.wait_for('ready {').removeprefix('ready '))['url']
        # The consumer of one router and the producer of the other, where there are two.
        consumer = ports[6363 if preset == 'nfd' else 6362]
        producer = ports[6373 if preset == 'interlinked' else 6363]
        try:
            yield f'tcp://127.0.0.1:{consumer}', f'tcp://127.0.0.1:{producer}'
        finally:
            Program([setup.onym, 'net', '--manager', url, 'down']).finish()


def python_fetches_a_file_through_each_preset_of_services(setup):
    for preset in ('nfd', 'minimal', 'interlinked', 'scaling', 'poisoning'):
        with preset_network(setup, preset) as (asks, answers):
            with setup.python_peer('object', '/py/file', setup.file, node=answers) as serving:
                serving.wait_for('ready')
                # A route reaches the other router a moment after its producer was answered.
                wait_until_served(setup, '/py/file', asks)
                out = setup.folder / f'through-{preset}'
                setup.python_peer('segments', '/py/file', out, node=asks).finish()
                setup.same(out)


# NDNts

def ndnts_registers_serves_and_fetches_over_the_unix_socket(setup):
    ndnts_serves_and_fetches(setup, lambda node: node.unix, {})


def ndnts_registers_serves_and_fetches_over_websocket(setup):
    ndnts_serves_and_fetches(setup, lambda node: node.ws, {'rib.localhop': 'true', 'rib.localhop_anchors': '["any"]'})


def ndnts_serves_and_fetches(setup, address, settings):
    with setup.node(**settings) as node:
        with setup.ndnts_peer('serve', '/ts/one', node=address(node)) as serving:
            serving.wait_for('ready')
            said = setup.ndnts_peer('fetch', '/ts/one/a', node=address(node)).finish()
            expect(said.startswith('ndnts '), said)
        with setup.ndnts_peer('object', '/ts/file', setup.file, node=address(node)) as serving:
            serving.wait_for('ready')
            out = setup.folder / 'from-ndnts'
            setup.onym_run('get', '/ts/file', '-o', out, node=node.unix)
            setup.same(out)
            again = setup.folder / 'ndnts-to-ndnts'
            said = setup.ndnts_peer('segments', '/ts/file', again, node=address(node)).finish()
            expect('found by metadata' in said, said)
            setup.same(again)


def ndnts_fetches_what_onym_published_in_segments(setup):
    with setup.node() as node, Program([setup.onym, 'put', '/onym/file', setup.file, '--node', node.unix]) as put:
        put.wait_for('/onym/file')
        wait_until_served(setup, '/onym/file', node.unix)
        for name, address in (('unix', node.unix), ('ws', node.ws)):
            out = setup.folder / f'ndnts-{name}'
            said = setup.ndnts_peer('segments', '/onym/file', out, node=address).finish()
            expect('found by metadata' in said, said)
            setup.same(out)


def certified(folder, name):
    """A certificate for this machine that `openssl` signs by itself, and its key."""
    chain, key = folder / f'{name}.pem', folder / f'{name}.key'
    Program(['openssl', *'req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 3'.split(),
             '-subj', f'/CN={name}', '-addext', 'subjectAltName=IP:127.0.0.1', '-out', chain, '-keyout', key]).finish()
    return chain, key


def ndnts_fetches_over_tls_by_the_certificate_of_now(setup):
    shown = setup.folder / 'shown.pem', setup.folder / 'shown.key'
    port = free_port()
    settings = {'faces.websocket.tls_listen': f'["127.0.0.1:{port}"]',
                'faces.websocket.tls_certificate': f'"{shown[0]}"', 'faces.websocket.tls_key': f'"{shown[1]}"'}
    both = [certified(setup.folder, name) for name in ('before', 'after')]

    def show(files):
        for of, to in zip(files, shown):
            shutil.copyfile(of, to)

    show(both[0])
    with setup.node(**settings) as node, Program([setup.onym, 'put', '/onym/file', setup.file, '--node', node.unix]) as put:
        put.wait_for('/onym/file')
        wait_until_served(setup, '/onym/file', node.unix)
        for files in both:
            show(files)
            out = setup.folder / f'by-{files[0].name}'
            setup.ndnts_peer('segments', '/onym/file', out, node=f'wss://127.0.0.1:{port}/',
                             NODE_EXTRA_CA_CERTS=str(files[0])).finish()
            setup.same(out)


def ndnts_pages_in_chromium_fetch_over_tls_and_webtransport(setup):
    chain, key = certified(setup.folder, 'pages')
    tls, quic = free_port(), free_port(socket.SOCK_DGRAM)
    settings = {'faces.websocket.tls_listen': f'["127.0.0.1:{tls}"]',
                'faces.websocket.tls_certificate': f'"{chain}"', 'faces.websocket.tls_key': f'"{key}"',
                'faces.quic.listen': f'["127.0.0.1:{quic}"]',
                'faces.quic.certificate': f'"{chain}"', 'faces.quic.key': f'"{key}"'}
    with setup.node(**settings) as node, Program([setup.onym, 'put', '/onym/file', setup.file, '--node', node.unix]) as put:
        put.wait_for('/onym/file')
        wait_until_served(setup, '/onym/file', node.unix)
        for uri in (f'wss://127.0.0.1:{tls}/', f'https://127.0.0.1:{quic}/ndn'):
            said = Program(['node', HERE / 'ndnts/browser.mjs', uri, '/onym/file', chain]).finish()
            found = json.loads(said.splitlines()[-1])
            expect(found['sha256'] == setup.digest(setup.file), said)
            print(f'  {uri}: {found["octets"] / found["milliseconds"] / 1000:.2f} MB/s', flush=True)


def ndnts_manages_a_node(setup):
    with setup.node() as node:
        said = setup.ndnts_peer('manage', node=node.unix).finish()
        for line in ('strategy-choice/set 200', 'strategy-choice/unset 200', 'faces/list true', 'cs/info true',
                     'faces/create 200'):
            expect(line in said, said)


def ndnts_chats_with_onym_by_state_vector_sync(setup):
    with setup.node() as node:
        ours = Program([setup.onym, 'chat', '/chat', '--as', '/onym', '--node', node.unix])
        with ours, setup.ndnts_peer('chat', '/chat', '/ndnts', node=node.unix) as theirs:
            ours.wait_for('ready')
            theirs.wait_for('ready')
            ours.say('hello from onym')
            theirs.wait_for('/8=onym: hello from onym')
            theirs.say('hello from NDNts')
            ours.wait_for('/ndnts: hello from NDNts')
            ours.say('once more')
            theirs.wait_for('/8=onym: once more')


def ndncat_copies_folders_from_serve_and_from_a_repository(setup):
    """NDNts's file client, the program, goes through folders and fetches files, their times included."""
    shelf, store = setup.folder / 'shelf', setup.folder / 'store'
    (shelf / 'deep/er').mkdir(parents=True)
    shutil.copy(setup.file, shelf / 'long')
    (shelf / 'none').write_bytes(b'')
    (shelf / 'deep/one.txt').write_text('one\n')
    (shelf / 'deep/er/a b=c').write_bytes(random.Random(7).randbytes(6145))
    for at, path in enumerate(found for found in shelf.rglob('*') if found.is_file()):
        os.utime(path, (1_700_000_000 + at, 1_700_000_000 + at))

    def tree(folder):
        files = (path for path in folder.rglob('*') if path.is_file())
        return {str(path.relative_to(folder)): (path.read_bytes(), path.stat().st_mtime) for path in files}

    onym = setup.onym
    Program([onym, 'repo', 'add', shelf, '--store', store, '--as', '/kept/shelf']).finish()
    with setup.node() as node, Program([onym, 'serve', shelf, '/made/shelf', '--node', node.unix]) as serve, \
            Program([onym, 'repo', 'run', '--store', store, '--name', '/kept', '--serve', '/kept/shelf',
                     '--node', node.unix]) as repo:
        for program in (serve, repo):
            program.wait_for('ready')
        for name in ('/made/shelf', '/kept/shelf'):
            out = setup.folder / f'of{name.replace("/", "-")}'
            said = setup.ndncat('file-client', name, out, node=node.unix)
            expect(f'FOLDER {out} folders=1 files=2' in said, said)
            expect(tree(out) == tree(shelf), f'{name}: not the same files\n{said}')


def ndnts_gets_a_certificate_from_our_authority(setup):
    keys, anchor = setup.folder / 'keys', setup.folder / 'ca.ndncert'
    with setup.node() as node:
        ours = {'node': node.unix, 'ONYM_KEYSTORE': str(keys)}
        Program([setup.onym, 'key', 'new', '/ca'], **ours).finish()
        Program([setup.onym, 'cert', 'export', '/ca', '-o', anchor], **ours).finish()
        with Program([setup.onym, 'cert', 'authority', '/ca'], **ours) as authority:
            authority.wait_for('ready: /ca')
            with setup.ndnts_certificates('request', anchor, '/ca/ndnts', node=node.unix) as client:
                client.wait_for('need code: need-code')
                code = authority.wait_for(' for /ca/ndnts').split()[1]
                client.say('000000')
                client.wait_for('need code: wrong-code')
                client.say(code)
                client.wait_for('issued /8=ca/8=ndnts/8=KEY/')
                client.finish()
            authority.wait_for('issued: /ca/ndnts/KEY/')


def onym_gets_and_renews_a_certificate_from_the_authority_of_ndnts(setup):
    anchor, codes = setup.folder / 'ndnts.ndncert', setup.folder / 'code'
    os.mkfifo(codes)
    with setup.node() as node:
        ours = {'node': node.unix, 'ONYM_KEYSTORE': str(setup.folder / 'keys')}
        with setup.ndnts_certificates('authority', '/ts', anchor, node=node.unix) as authority:
            authority.wait_for('ready')
            arguments = ['cert', 'request', anchor, '--for', '/ts/onym', '--code-file', codes]
            with Program([setup.onym, *arguments], **ours) as client:
                code = authority.wait_for('code ').split()[1]
                codes.write_text(f'{code}\n')
                client.wait_for('/ts/onym/KEY/')
                client.finish()
            # By possession of the certificate, without a code.
            renewed = Program([setup.onym, 'cert', 'renew', anchor, '--now'], **ours).finish()
            expect('renewed: /ts/onym/KEY/' in renewed, renewed)


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


# ndnd, when it is on PATH

class NdndNode:
    def __init__(self, setup, name='theirs', mtu=1420):
        path = setup.folder / f'{name}.sock'
        self.udp_port = free_port(socket.SOCK_DGRAM)
        config = setup.folder / f'{name}.yml'
        config.write_text(f"""
core: {{log_level: WARN}}
faces:
  udp: {{enabled_unicast: true, enabled_multicast: false, port_unicast: {self.udp_port}, default_mtu: {mtu}}}
  tcp: {{enabled: false}}
  unix: {{enabled: true, socket_path: {path}}}
  websocket: {{enabled: false}}
fw: {{threads: 2}}
mgmt: {{allow_localhop: true}}
tables:
  content_store: {{capacity: 20000}}
""")
        self.program = Program(['ndnd', 'fw', 'run', config])
        self.path = path
        self.unix = f'unix://{path}'
        self.udp = f'udp4://127.0.0.1:{self.udp_port}'

    def __enter__(self):
        end = time.monotonic() + DEADLINE_S
        while not self.path.exists():
            if time.monotonic() > end:
                raise Failed(f'ndnd did not start: {self.program.said()}')
            time.sleep(0.05)
        return self

    def __exit__(self, *_):
        self.program.stop()


def ndnd_run(*arguments, node):
    return Program(['ndnd', *arguments], node=node).finish()


def ndnd_tools_work_through_our_node(setup):
    with setup.node() as node:
        with Program(['ndnd', 'pingserver', '/their/ping'], node=node.unix) as server:
            end = time.monotonic() + DEADLINE_S
            while True:
                ping = Program(['ndnd', 'ping', '/their/ping', '-c', '3', '-i', '100'], node=node.unix)
                with contextlib.suppress(Failed):
                    said = ping.finish()
                    if '0% packet loss' in said or 'content from' in said:
                        break
                expect(time.monotonic() < end, f'{ping.said()}\n{server.said()}')
            setup.onym_run('ping', '/their/ping', '-c', '3', '-i', '100', node=node.unix)
        with put_by_ndnd(setup, '/their/file', node.unix):
            wait_until_served(setup, '/their/file', node.unix)
            out = setup.folder / 'ours-gets-theirs'
            setup.onym_run('get', '/their/file', '-o', out, node=node.unix)
            setup.same(out)
        with Program([setup.onym, 'put', '/our/file', setup.file, '--node', node.unix]) as put:
            put.wait_for('/our/file')
            wait_until_served(setup, '/our/file', node.unix)
            out = setup.folder / 'theirs-gets-ours'
            cat_by_ndnd('/our/file', out, node.unix)
            setup.same(out)


def our_tools_work_through_ndnd(setup):
    with NdndNode(setup) as node, Program([setup.onym, 'put', '/our/file', setup.file, '--node', node.unix]) as put:
        put.wait_for('/our/file')
        wait_until_served(setup, '/our/file', node.unix)
        out = setup.folder / 'through-theirs'
        setup.onym_run('get', '/our/file', '-o', out, node=node.unix)
        setup.same(out)
        setup.onym_run('route', 'list', node=node.unix)


def a_chain_ours_theirs_ours_carries_a_segmented_file_both_ways(setup):
    with setup.node('left') as left, NdndNode(setup) as middle, setup.node('right') as right:
        setup.onym_run('face', 'create', middle.udp, node=left.unix)
        setup.onym_run('face', 'create', middle.udp, node=right.unix)
        setup.onym_run('route', 'add', '/at/right', '--via', middle.udp, node=left.unix)
        setup.onym_run('route', 'add', '/at/left', '--via', middle.udp, node=right.unix)
        ndnd_run('fw', 'route-add', 'prefix=/at/right', f'face={right.udp}', node=middle.unix)
        ndnd_run('fw', 'route-add', 'prefix=/at/left', f'face={left.udp}', node=middle.unix)
        for name, producer, consumer in (('/at/right/file', right, left), ('/at/left/file', left, right)):
            with Program([setup.onym, 'put', name, setup.file, '--node', producer.unix]) as put:
                put.wait_for(name)
                wait_until_served(setup, name, consumer.unix)
                out = setup.folder / 'chain'
                setup.onym_run('get', name, '-o', out, node=consumer.unix)
                setup.same(out)


def ndnd_commands_manage_our_node(setup):
    with setup.node() as node:
        for command in (['status'], ['face-list'], ['face-create', 'remote=udp4://127.0.0.1:7777'],
                        ['route-add', 'prefix=/x', 'face=udp4://127.0.0.1:7777', 'cost=7'], ['route-list'],
                        ['fib-list'], ['cs-info'], ['strategy-list'],
                        ['strategy-set', 'prefix=/x', 'strategy=/localhost/nfd/strategy/multicast'],
                        ['strategy-unset', 'prefix=/x'], ['route-remove', 'prefix=/x', 'face=udp4://127.0.0.1:7777']):
            said = ndnd_run('fw', *command, node=node.unix)
            expect('error' not in said.lower(), f'{command}: {said}')


def put_by_ndnd(setup, name, node):
    program = Program(['sh', '-c', f'exec ndnd put --expose {name} < {setup.file}'], node=node)
    return program


def cat_by_ndnd(name, out, node):
    return Program(['sh', '-c', f'exec ndnd cat {name} > {out}'], node=node).finish()


# NFD and ndn-tools, when they are on PATH

def ndnd_keeps_the_packet_scripts_for_any_forwarder(setup):
    testkit = Path(setup.onym).with_name('onym-testkit')
    if not testkit.exists():
        raise Failed(f'{testkit} is not built: cargo build --release --package onym-testkit')
    for by in ('unix', 'udp'):
        with NdndNode(setup, name=f'scripts-{by}', mtu=8800) as theirs:
            udp = f'127.0.0.1:{theirs.udp_port}'
            subject = f'unix:{theirs.path}' if by == 'unix' else f'udp:{udp}'
            said = Program([testkit, '--subject', subject, '--udp', udp, '--deviations', 'ndnd', '--threads', 2, '--brief']).finish(180)
            print('\n'.join(f'         by {by}: {line}' for line in said.splitlines()), flush=True)


def nfdc_manages_our_node(setup):
    with setup.node() as node:
        for command in (['status', 'report'], ['face', 'create', 'udp4://127.0.0.1:7777'], ['route', 'add', '/x', 'udp4://127.0.0.1:7777'],
                        ['strategy', 'set', '/x', '/localhost/nfd/strategy/asf'], ['cs', 'info'], ['route', 'remove', '/x', 'udp4://127.0.0.1:7777']):
            Program(['nfdc', *command], node=node.unix, HOME=str(setup.folder)).finish()


CASES = {
    'python': [
        (None, python_producers_register_and_both_classes_of_consumer_fetch),
        (None, python_fetches_what_onym_published_in_segments),
        (None, onym_fetches_what_python_published_in_segments),
        (None, python_manages_a_node),
        (None, python_compiles_trust_schemas_to_the_same_octets),
        (None, python_and_onym_believe_each_other_by_one_trust_schema),
        (None, python_fetches_a_file_through_each_preset_of_services),
    ],
    'ndnts': [
        (None, ndnts_registers_serves_and_fetches_over_the_unix_socket),
        (None, ndnts_registers_serves_and_fetches_over_websocket),
        (None, ndnts_fetches_what_onym_published_in_segments),
        (None, ndnts_fetches_over_tls_by_the_certificate_of_now),
        ('chromium', ndnts_pages_in_chromium_fetch_over_tls_and_webtransport),
        (None, ndnts_manages_a_node),
        (None, ndnts_chats_with_onym_by_state_vector_sync),
        (None, ndncat_copies_folders_from_serve_and_from_a_repository),
        (None, ndnts_gets_a_certificate_from_our_authority),
        (None, onym_gets_and_renews_a_certificate_from_the_authority_of_ndnts),
    ],
    'foreign': [
        ('ndnd', ndnd_tools_work_through_our_node),
        ('ndnd', our_tools_work_through_ndnd),
        ('ndnd', a_chain_ours_theirs_ours_carries_a_segmented_file_both_ways),
        ('ndnd', ndnd_commands_manage_our_node),
        ('ndnd', ndnd_keeps_the_packet_scripts_for_any_forwarder),
        ('nfdc', nfdc_manages_our_node),
    ],
}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('group', choices=[*CASES, 'all'])
    parser.add_argument('--onym', required=True)
    parser.add_argument('--python', default=sys.executable)
    parser.add_argument('--only', help='run the cases whose name contains this')
    arguments = parser.parse_args()
    groups = list(CASES) if arguments.group == 'all' else [arguments.group]
    passed = failed = skipped = 0
    for needs, case in (case for group in groups for case in CASES[group]):
        if arguments.only and arguments.only not in case.__name__:
            continue
        if needs and not shutil.which(needs):
            print(f'skipped  {case.__name__} ({needs} is not on PATH)', flush=True)
            skipped += 1
            continue
        started = time.monotonic()
        with tempfile.TemporaryDirectory() as folder:
            try:
                case(Setup(arguments, folder))
            except Failed as reason:
                failed += 1
                print(f'FAILED   {case.__name__}\n{reason}', flush=True)
            else:
                passed += 1
                print(f'passed   {case.__name__} ({time.monotonic() - started:.1f} s)', flush=True)
    print(f'interop: {passed} passed, {failed} failed, {skipped} skipped')
    return 1 if failed else 0


if __name__ == '__main__':
    sys.exit(main())
