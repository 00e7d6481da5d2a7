"""One unmodified python-ndn program: a producer or a consumer, with either application class.

peer.py serve  v1|v2 PREFIX            registers PREFIX, prints "ready", answers until its input ends
peer.py fetch  v1|v2 NAME              fetches one Data, prints its content
peer.py segments     NAME FILE         fetches a segmented object into FILE (python-ndn's own fetcher)
peer.py object       NAME FILE         registers NAME, serves FILE in segments with RDR metadata
peer.py signed       NAME FILE FOLDER  as object, signed by a key of NAME's first component's user; makes
                                       a root and its certificate, writes the root to FOLDER/root.ndncert
peer.py trusted      NAME SCHEMA ROOT  fetches one Data by a LightVerSec schema, prints "believed" or "refused"
peer.py manage                         face and route commands through python-ndn's own structures
"""
import asyncio
import base64
import sys
import threading
from datetime import datetime, timedelta, timezone
from pathlib import Path

import ndn.appv2
import ndn.encoding as enc
from ndn.app import NDNApp as AppV1
from ndn.app_support.nfd_mgmt import GeneralStatus, make_command, parse_response
from ndn.app_support.light_versec import Checker, compile_lvs, lvs_validator
from ndn.app_support.security_v2 import new_cert, self_sign
from ndn.app_support.segment_fetcher import segment_fetcher
from ndn.security import DigestSha256Signer, KeychainDigest, Sha256WithEcdsaSigner
from ndn.types import InterestNack, InterestTimeout, ValidationFailure
from Cryptodome.PublicKey import ECC


SEGMENT = 8000


def stop_at_end_of_input(app):
    """Shuts the application down once standard input is closed."""
    loop = asyncio.get_running_loop()

    def wait():
        sys.stdin.read()
        loop.call_soon_threadsafe(app.shutdown)

    threading.Thread(target=wait, daemon=True).start()


def serve_v1(prefix):
    app = AppV1(keychain=KeychainDigest())

    async def started():
        stop_at_end_of_input(app)

        def on_interest(name, param, _app_param):
            app.put_data(name, content=b'v1 ' + enc.Name.to_bytes(name), freshness_period=1000)

        if not await app.register(prefix, on_interest):
            sys.exit('v1: registration refused')
        print('ready', flush=True)

    app.run_forever(after_start=started())


def serve_v2(prefix):
    app = ndn.appv2.NDNApp()
    signer = DigestSha256Signer()

    def on_interest(name, _app_param, reply, _context):
        reply(app.make_data(name, b'v2 ' + enc.Name.to_bytes(name), signer=signer, freshness_period=1000))

    async def started():
        stop_at_end_of_input(app)
        app.attach_handler(prefix, on_interest)
        if not await app.register(prefix):
            sys.exit('v2: registration refused')
        print('ready', flush=True)

    app.run_forever(after_start=started())


def make_key(name):
    """A P-256 key: private and public half, both DER."""
    key = ECC.generate(curve='P-256')
    return enc.Name.from_str(name), key.export_key(format='DER', use_pkcs8=False), key.public_key().export_key(format='DER')


def serve_signed(name, path, folder):
    """The object, signed by a key that a root of the first component vouches for; both are served."""
    top = '/' + name.split('/')[1]
    root_name, root_key, root_public = make_key(f'{top}/KEY/root')
    root_name, root = self_sign(root_name, root_public, Sha256WithEcdsaSigner(root_name, root_key))
    user_name, user_key, user_public = make_key('/'.join(name.split('/')[:3]) + '/KEY/user')
    now = datetime.now(timezone.utc)
    issuer = enc.Component.from_str('root')
    user_name, user = new_cert(user_name, issuer, user_public, Sha256WithEcdsaSigner(root_name, root_key),
                               now - timedelta(days=1), now + timedelta(days=1))
    Path(folder, 'root.ndncert').write_text(base64.b64encode(bytes(root)).decode() + '\n')
    serve_object(name, path, Sha256WithEcdsaSigner(user_name, user_key), {enc.Name.to_str(user_name): bytes(user)})


def serve_object(name, path, signer=None, certificates=None):
    app = ndn.appv2.NDNApp()
    signer = signer or DigestSha256Signer()
    with open(path, 'rb') as file:
        content = file.read()
    versioned = enc.Name.from_str(name) + [enc.Component.from_version(7)]
    last = enc.Component.from_segment(max(0, (len(content) - 1) // SEGMENT))
    meta_name = enc.Name.from_str(name) + ['32=metadata', enc.Component.from_version(1), enc.Component.from_segment(0)]

    def on_interest(interest, _app_param, reply, _context):
        final = enc.Component.get_type(interest[-1])
        if any(bytes(c) == bytes(enc.Component.from_str('32=metadata')) for c in interest):
            reply(app.make_data(meta_name, enc.Name.to_bytes(versioned), signer=signer, freshness_period=10,
                                final_block_id=meta_name[-1]))
            return
        # A discovery Interest is answered with the first segment of the only version.
        if final != enc.Component.TYPE_SEGMENT:
            interest = versioned + [enc.Component.from_segment(0)]
        at = enc.Component.to_number(interest[-1]) * SEGMENT
        if at <= len(content):
            reply(app.make_data(interest, content[at:at + SEGMENT], signer=signer, freshness_period=10000,
                                final_block_id=last))

    async def started():
        stop_at_end_of_input(app)
        app.attach_handler(name, on_interest)
        if not await app.register(name):
            sys.exit('object: registration refused')
        for certificate, wire in (certificates or {}).items():
            def on_certificate(_name, _app_param, reply, _context, wire=wire):
                reply(wire)
            key = enc.Name.from_str(certificate)[:-2]
            app.attach_handler(key, on_certificate)
            if not await app.register(key):
                sys.exit('certificate: registration refused')
        print('ready', flush=True)

    app.run_forever(after_start=started())


def fetch_v1(name):
    app = AppV1(keychain=KeychainDigest())

    async def main():
        try:
            _, _, content = await app.express_interest(name, must_be_fresh=True, lifetime=4000)
            print(bytes(content).decode('latin-1'), flush=True)
        finally:
            app.shutdown()

    app.run_forever(after_start=main())


def fetch_v2(name):
    app = ndn.appv2.NDNApp()

    async def main():
        try:
            _, content, _ = await app.express(name, ndn.appv2.pass_all, must_be_fresh=True, lifetime=4000)
            print(bytes(content).decode('latin-1'), flush=True)
        finally:
            app.shutdown()

    app.run_forever(after_start=main())


def fetch_segments(name, path):
    app = AppV1(keychain=KeychainDigest())

    async def main():
        try:
            with open(path, 'wb') as file:
                async for part in segment_fetcher(app, name):
                    file.write(part)
        finally:
            app.shutdown()

    app.run_forever(after_start=main())


def fetch_trusted(name, schema, root):
    app = AppV1(keychain=KeychainDigest())
    checker = Checker(compile_lvs(Path(schema).read_text()), {})
    validator = lvs_validator(checker, app, base64.b64decode(Path(root).read_text()))

    async def main():
        try:
            await app.express_interest(name, must_be_fresh=False, lifetime=4000, validator=validator)
            print('believed', flush=True)
        except ValidationFailure:
            print('refused', flush=True)
        except (InterestNack, InterestTimeout) as error:
            print(type(error).__name__, flush=True)
        finally:
            app.shutdown()

    app.run_forever(after_start=main())


def manage():
    """strategy-choice/set and unset, a status dataset: python-ndn's own encoder and decoder."""
    app = AppV1(keychain=KeychainDigest())

    async def command(module, verb, **parameters):
        name = make_command(module, verb, app.face, **parameters)
        _, _, content = await app.express_interest(name, lifetime=1000, can_be_prefix=True, must_be_fresh=True)
        return parse_response(content)

    async def main():
        try:
            answer = await command('strategy-choice', 'set', name='/py/strategy',
                                   strategy='/localhost/nfd/strategy/multicast')
            print('strategy-choice/set', answer['status_code'], flush=True)
            answer = await command('strategy-choice', 'unset', name='/py/strategy')
            print('strategy-choice/unset', answer['status_code'], flush=True)
            _, _, content = await app.express_interest('/localhost/nfd/status/general', lifetime=1000,
                                                       can_be_prefix=True, must_be_fresh=True)
            status = GeneralStatus.parse(content)
            print('status/general', 'version', str(status.nfd_version), flush=True)
        finally:
            app.shutdown()

    app.run_forever(after_start=main())


def main(arguments):
    match arguments:
        case ['serve', 'v1', prefix]:
            serve_v1(prefix)
        case ['serve', 'v2', prefix]:
            serve_v2(prefix)
        case ['signed', name, path, folder]:
            serve_signed(name, path, folder)
        case ['trusted', name, schema, root]:
            fetch_trusted(name, schema, root)
        case ['fetch', 'v1', name]:
            fetch_v1(name)
        case ['fetch', 'v2', name]:
            fetch_v2(name)
        case ['segments', name, path]:
            fetch_segments(name, path)
        case ['object', name, path]:
            serve_object(name, path)
        case ['manage']:
            manage()
        case _:
            sys.exit(__doc__)


if __name__ == '__main__':
    main(sys.argv[1:])
