"""python-ndn and a node of ours."""
import contextlib
import json
import os
import random
import subprocess

from programs import DEADLINE_S, HERE, Program, expect, free_port, wait_until_served


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


#: What must be on PATH, and the case.
CASES = [
    (None, python_producers_register_and_both_classes_of_consumer_fetch),
    (None, python_fetches_what_onym_published_in_segments),
    (None, onym_fetches_what_python_published_in_segments),
    (None, python_manages_a_node),
    (None, python_compiles_trust_schemas_to_the_same_octets),
    (None, python_and_onym_believe_each_other_by_one_trust_schema),
    (None, python_fetches_a_file_through_each_preset_of_services),
]
