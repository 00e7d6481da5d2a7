"""One unmodified python-ndn program: a producer or a consumer, with either application class.

peer.py serve  v1|v2 PREFIX            registers PREFIX, prints "ready", answers until its input ends
peer.py fetch  v1|v2 NAME              fetches one Data, prints its content
peer.py segments     NAME FILE         fetches a segmented object into FILE (python-ndn's own fetcher)
peer.py object       NAME FILE         registers NAME, serves FILE in segments with RDR metadata
peer.py manage                         face and route commands through python-ndn's own structures
"""
import asyncio
import sys
import threading

import ndn.appv2
import ndn.encoding as enc
from ndn.app import NDNApp as AppV1
from ndn.app_support.nfd_mgmt import GeneralStatus, make_command, parse_response
from ndn.app_support.segment_fetcher import segment_fetcher
from ndn.security import DigestSha256Signer, KeychainDigest


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


def serve_object(name, path):
    app = ndn.appv2.NDNApp()
    signer = DigestSha256Signer()
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
