"""Trust schemas: recorded models, pairs and packets, and what must be refused.

Chains need the package `cryptography`; with ONYM set to the path of the `onym` program objects are
exchanged with it, too.
"""

import asyncio
import contextlib
import importlib.util
import json
import os
import subprocess
import tempfile
import unittest
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from onym._tlv import MalformedError, element, elements, nni
from onym.sync import Face, name, uri
from onym.sync._packet import write_data
from onym.trust import (
    Certificate,
    NoSignerError,
    Schema,
    SchemaError,
    Signer,
    UntrustedError,
    Validator,
    fetch,
    publish,
    signer_for,
)

VECTORS = Path(__file__).parents[3] / "spec/vectors/trust"
CASES = json.loads((VECTORS / "lvs-cases.json").read_text())
MODEL = bytes.fromhex(next(case["hex"] for case in CASES if case["name"] == "min"))
HAS_CRYPTOGRAPHY = importlib.util.find_spec("cryptography") is not None
PROGRAM = os.environ.get("ONYM")
FUNCTIONS = {
    "$len4": lambda value, _: len(value) == 6,
    "$len6": lambda value, _: len(value) == 8,
}


def recorded() -> dict[str, bytes]:
    """Packets of `basic.txt`: root, user, and a Data of the user."""
    found = {}
    for line in (VECTORS / "basic.txt").read_text().splitlines():
        words = line.split()
        if words and words[0] in ("CERT", "CERT2", "DATA"):
            found[words[0]] = bytes.fromhex(words[-1])
    return found


class SchemaTest(unittest.TestCase):
    def test_a_recorded_model_judges_each_pair_as_python_ndn_does(self) -> None:
        pairs = 0
        for case in CASES:
            schema = Schema(bytes.fromhex(case["hex"]), FUNCTIONS)
            for test in case["tests"]:
                if test["python"] not in ("true", "false"):
                    continue
                pairs += 1
                with self.subTest(case=case["name"], **test):
                    allowed = schema.allows(name(test["packet"]), name(test["key"]))
                    self.assertEqual(allowed, test["python"] == "true")
        self.assertEqual(pairs, 59)

    def test_a_model_that_does_not_hold_together_is_refused(self) -> None:
        def changed(before: str, after: str) -> bytes:
            self.assertIn(before, MODEL.hex())
            return bytes.fromhex(MODEL.hex().replace(before, after, 1))

        bad = {
            "another version": changed("610400011000", "610400011001"),
            "start beyond the nodes": changed("250100690101", "250163690101"),
            "a value edge beyond the nodes": changed("51082501012103", "51082501632103"),
            "a pattern edge beyond the nodes": changed("5306250106230101", "5306250163230101"),
            "another parent": changed("630e250102570101", "630e250102570100"),
            "an edge back to the start": changed("5306250103230102", "5306250100230102"),
            "an id that is not the position": changed("630e250102", "630e250103"),
            "a signer beyond the nodes": changed("550105", "550163"),
            "a rule that signs itself": changed("550105", "55010a"),
            "an unknown critical element": MODEL + bytes([0x75, 0]),
        }
        for what, model in bad.items():
            with self.subTest(what), self.assertRaises(SchemaError):
                Schema(model)
        for cut in range(1, len(MODEL)):
            # What is behind the last node are names of variables.
            if cut != len(MODEL) - 8:
                with self.subTest(cut=cut), self.assertRaises(SchemaError):
                    Schema(MODEL[:cut])
        self.assertTrue(Schema(MODEL + bytes([0x76, 0])).allows(name("/a/x/1"), USER_KEY))

    def test_a_function_that_nobody_has_is_refused_and_one_that_raises_says_no(self) -> None:
        model = bytes.fromhex(
            "6104000110002501006901016315250100531025010123010143084106310427022466630a25010157010029"
            "0223616706230101290178"
        )
        with self.assertRaises(SchemaError):
            Schema(model)
        self.assertFalse(Schema(model, {"$f": lambda *_: 1 / 0}).allows(name("/x"), name("/x")))

    def test_a_question_without_end_ends_with_no(self) -> None:
        def edge(dest: int) -> bytes:
            return element(0x53, element(0x25, nni(dest)) + element(0x23, nni(100 + dest)))

        # A binary tree of variables: each name leads to all of its leaves.
        count, body = (1 << 15) - 1, b""
        for at in range(count):
            node = element(0x25, nni(at)) + (element(0x57, nni((at - 1) // 2)) if at else b"")
            if 2 * at + 2 < count:
                node += edge(2 * at + 1) + edge(2 * at + 2)
            body += element(0x63, node)
        head = element(0x61, (0x11000).to_bytes(4, "big")) + element(0x25, nni(0))
        schema = Schema(head + element(0x69, nni(0)) + body)
        self.assertFalse(schema.allows(name("/a" * 14), name("/a" * 14)))


USER_KEY = name("/a/x/KEY/k/i/v=1")


class World:
    """Certificates by name, in place of a network."""

    def __init__(self) -> None:
        self.packets: list[bytes] = []
        self.asked: list[str] = []

    async def request_packet(self, wanted: bytes, *, newest: bool = False) -> bytes:
        self.asked.append(uri(wanted))
        for packet in self.packets:
            named = dict(elements(next(elements(packet))[1]))[7]
            if named == wanted or (newest and named.startswith(wanted)):
                return packet
        raise UntrustedError(f"nobody has {uri(wanted)}")


@unittest.skipUnless(HAS_CRYPTOGRAPHY, "the package `cryptography` is not there")
class ChainTest(unittest.TestCase):
    NOW = 1_800_000_000.0

    def judge(self, wire: bytes, now: float = NOW, **packets: bytes) -> list[Certificate]:
        world = World()
        world.packets = list({**recorded(), **packets}.values())
        anchor = Certificate(packets.get("anchor", recorded()["CERT"]))
        validator = Validator(Schema(MODEL), [anchor])
        return asyncio.run(validator.judge(wire, world, now))

    def test_a_recorded_data_leads_over_its_certificate_to_the_anchor(self) -> None:
        chain = self.judge(recorded()["DATA"])
        named = [uri(certificate.name) for certificate in chain]
        self.assertEqual(named, ["/a/u/KEY/k2/a/v=1700000000000", "/a/KEY/k1/self/v=1700000000000"])

    def test_a_chain_is_fetched_once(self) -> None:
        world = World()
        world.packets = list(recorded().values())
        validator = Validator(Schema(MODEL), [Certificate(recorded()["CERT"])])
        for _ in range(3):
            asyncio.run(validator.judge(recorded()["DATA"], world, self.NOW))
        self.assertEqual(world.asked, ["/a/u/KEY/k2/a/v=1700000000000"])

    def test_what_is_expired_or_not_valid_yet_is_refused_cached_or_not(self) -> None:
        for now, why in ((1_600_000_000.0, "not valid yet"), (2_100_000_000.0, "expired")):
            with self.assertRaisesRegex(UntrustedError, why):
                self.judge(recorded()["DATA"], now)
        world = World()
        world.packets = list(recorded().values())
        validator = Validator(Schema(MODEL), [Certificate(recorded()["CERT"])])
        asyncio.run(validator.judge(recorded()["DATA"], world, self.NOW))
        with self.assertRaisesRegex(UntrustedError, "expired"):
            asyncio.run(validator.judge(recorded()["DATA"], world, 2_100_000_000.0))

    def test_each_damaged_octet_is_refused(self) -> None:
        wire = recorded()["DATA"]
        for at in range(len(wire)):
            damaged = wire[:at] + bytes([wire[at] ^ 1]) + wire[at + 1 :]
            with self.subTest(at=at), self.assertRaises((UntrustedError, MalformedError)):
                self.judge(damaged)

    def test_an_anchor_is_known_by_its_key_and_not_by_its_name(self) -> None:
        other = made("/a/KEY/k1/self/v=1700000000000")
        with self.assertRaisesRegex(UntrustedError, "signature is wrong"):
            self.judge(recorded()["DATA"], anchor=other.certificate.wire)

    def test_a_digest_proves_nothing_and_other_names_are_not_the_keys(self) -> None:
        with self.assertRaisesRegex(UntrustedError, "names no key"):
            self.judge(write_data(name("/a/u/7"), b"x"))
        user = made("/a/u/KEY/k2/a/v=1700000000000")
        with self.assertRaisesRegex(UntrustedError, "no rule"):
            self.judge(user.data(name("/a/w/7"), b"x"))
        stranger = made("/a/u/KEY/k9/self/v=1")
        with self.assertRaisesRegex(UntrustedError, "no rule|self-signed"):
            self.judge(stranger.data(name("/a/u/7"), b"x"), stranger=stranger.certificate.wire)

    def test_certificates_that_vouch_for_each_other_are_a_loop(self) -> None:
        # #k: "k"/_ "KEY"…, each signed by any of them, is a circle that no model has; by hand the
        # names alone must end it.
        one = made("/a/u/KEY/k2/a/v=1700000000000", signed_by="/a/KEY/k1/self/v=9")
        two = made("/a/KEY/k1/self/v=9", signed_by="/a/u/KEY/k2/a/v=1700000000000")
        with self.assertRaises(UntrustedError):
            self.judge(one.data(name("/a/u/7"), b"x"), CERT2=one.certificate.wire, two=two.certificate.wire)

    def test_the_schema_chooses_the_signer_and_says_why_none_fits(self) -> None:
        schema = Schema(MODEL)
        root, user = made("/a/KEY/r/self/v=1"), made("/a/u/KEY/k/a/v=1")
        chosen = signer_for(schema, [root, user], name("/a/u/7"), self.NOW)
        self.assertIs(chosen, user)
        with self.assertRaisesRegex(NoSignerError, "no rule lets /a/KEY/r/self/v=1"):
            signer_for(schema, [root, user], name("/a/w/7"), self.NOW)
        with self.assertRaisesRegex(NoSignerError, "expired"):
            signer_for(schema, [user], name("/a/u/7"), 5e9)


def made(named: str, signed_by: str | None = None) -> Signer:
    """A key of its own with a certificate of this name, whose signature is its own."""
    from cryptography.hazmat.primitives import serialization  # noqa: PLC0415
    from cryptography.hazmat.primitives.asymmetric import ed25519  # noqa: PLC0415

    key = ed25519.Ed25519PrivateKey.generate()
    raw = serialization.Encoding
    spki = key.public_key().public_bytes(raw.DER, serialization.PublicFormat.SubjectPublicKeyInfo)
    private = key.private_bytes(
        raw.DER, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    period = element(0xFE, b"20240101T000000") + element(0xFF, b"20340101T000000")
    locator = name(signed_by or named)
    info = element(0x1B, b"\5") + element(0x1C, element(7, locator)) + element(0xFD, period)
    meta = element(0x14, element(0x18, b"\2") + element(0x19, nni(3_600_000)))
    signed = element(7, name(named)) + meta + element(0x15, spki) + element(0x16, info)
    return Signer(private, Certificate(element(6, signed + element(0x17, key.sign(signed)))))


@contextmanager
def node(folder: str) -> Iterator[dict[str, str]]:
    """A daemon, and the environment of commands beside it."""
    path = f"{folder}/node.sock"
    words = ["--set", f'faces.unix.path="{path}"']
    for face in ("udp", "tcp", "websocket"):
        words += ["--set", f"faces.{face}.listen=[]"]
    surroundings = os.environ | {
        "ONYM_KEYSTORE": f"{folder}/keys",
        "NDN_CLIENT_TRANSPORT": f"unix://{path}",
    }
    with subprocess.Popen(
        [PROGRAM or "onym", "daemon", *words], stderr=subprocess.PIPE, text=True
    ) as daemon:
        try:
            assert daemon.stderr is not None
            for line in daemon.stderr:
                if "ready" in line:
                    break
            yield surroundings
        finally:
            daemon.terminate()


SITE = """
#root: "a"/#KEY
#user: "a"/u/#KEY <= #root
#data: "a"/u/_ <= #user
#KEY: "KEY"/_/_/_
"""


@unittest.skipUnless(PROGRAM and HAS_CRYPTOGRAPHY, "ONYM or the package `cryptography` is not there")
class ProgramTest(unittest.TestCase):
    def test_objects_of_python_and_of_onym_follow_one_schema(self) -> None:
        with tempfile.TemporaryDirectory() as folder, node(folder) as surroundings:

            def onym(*words: str) -> str:
                done = subprocess.run(
                    [PROGRAM or "onym", *words],
                    cwd=folder, env=surroundings, capture_output=True, text=True, timeout=60,
                )
                self.assertEqual(done.returncode, 0, f"{words}: {done.stderr}")
                return done.stdout

            Path(folder, "site.lvs").write_text(SITE)
            onym("trust", "compile", "site.lvs", "-o", "site.tlv")
            for identity in ("/a", "/a/x", "/mallory"):
                onym("key", "new", identity)
            onym("cert", "export", "/a", "-o", "root.cert")
            onym("cert", "export", "/a/x", "-o", "x.req")
            onym("cert", "issue", "x.req", "--signer", "/a", "-o", "x.cert")
            onym("cert", "install", "x.cert")
            onym("key", "export", "/a/x", "--as", "pem", "-o", "x.pem")
            Path(folder, "in").write_bytes(os.urandom(20_000))
            asyncio.run(self.exchange(folder, surroundings, onym))

    async def exchange(self, folder: str, surroundings: dict[str, str], onym) -> None:  # noqa: ANN001
        schema = Schema.load(f"{folder}/site.tlv", objects=True)
        trust = Validator(schema, [Certificate.load(f"{folder}/root.cert")])
        signer = Signer.load(f"{folder}/x.pem", f"{folder}/x.cert")
        content = Path(folder, "in").read_bytes()
        face = await Face.open(surroundings["NDN_CLIENT_TRANSPORT"])
        try:
            await self.with_face(face, folder, surroundings, onym, trust, signer, content)
        finally:
            await face.close()

    async def with_face(  # noqa: PLR0913, PLR0917
        self, face: Face, folder: str, surroundings: dict[str, str], onym, trust: Validator,  # noqa: ANN001
        signer: Signer, content: bytes,
    ) -> None:
        rules = ["--trust", "site.lvs", "--objects", "--anchor", "root.cert"]
        with contextlib.ExitStack() as running:

            def start(*words: str) -> None:
                process = running.enter_context(
                    subprocess.Popen(
                        [PROGRAM or "onym", *words],
                        cwd=folder, env=surroundings, stdout=subprocess.PIPE,
                        stderr=subprocess.STDOUT, text=True,
                    )
                )
                running.callback(process.terminate)
                assert process.stdout is not None
                for line in process.stdout:
                    if "ready" in line:
                        return
                self.fail(f"{words} did not come up")

            start("cert", "serve")
            start("put", "/a/x/film", "in", *rules)
            start("put", "/a/y/film", "in", "--key", "/a/x")
            self.assertEqual(await fetch(face, "/a/x/film", trust), content)
            with self.assertRaisesRegex(UntrustedError, "no rule"):
                await fetch(face, "/a/y/film", trust)
            await publish(face, "/a/x/python", content, trust, [signer])
            with self.assertRaises(NoSignerError):
                await publish(face, "/a/w/python", content, trust, [signer])
            await asyncio.to_thread(onym, "get", "/a/x/python", "-o", "out", *rules)
            self.assertEqual(Path(folder, "out").read_bytes(), content)


if __name__ == "__main__":
    unittest.main()
