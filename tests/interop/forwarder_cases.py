"""Other forwarders and their tools, where they are on PATH, and a node of ours."""
import contextlib
import socket
import time
from pathlib import Path

from programs import DEADLINE_S, Failed, Program, expect, free_port, wait_until_served


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


#: What must be on PATH, and the case.
CASES = [
    ('ndnd', ndnd_tools_work_through_our_node),
    ('ndnd', our_tools_work_through_ndnd),
    ('ndnd', a_chain_ours_theirs_ours_carries_a_segmented_file_both_ways),
    ('ndnd', ndnd_commands_manage_our_node),
    ('ndnd', ndnd_keeps_the_packet_scripts_for_any_forwarder),
    ('nfdc', nfdc_manages_our_node),
]
