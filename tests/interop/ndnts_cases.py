"""NDNts and a node of ours."""
import json
import os
import random
import shutil
import socket

from programs import HERE, Program, expect, free_port, wait_until_served


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


#: What must be on PATH, and the case.
CASES = [
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
]
