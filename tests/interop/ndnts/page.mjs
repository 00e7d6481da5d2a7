// The page of browser.mjs: fetches the object `name` over `uri`, and says at its server what it found.
import { H3Transport } from "@ndn/quic-transport";
import { retrieveMetadata } from "@ndn/rdr";
import { fetch as fetchObject } from "@ndn/segmented-object";
import { fromHex, toHex } from "@ndn/util";
import { WsTransport } from "@ndn/ws-transport";

const asked = new URLSearchParams(location.search);

async function connect(uri) {
  if (!uri.startsWith("https:")) return WsTransport.createFace({}, uri);
  const value = fromHex(asked.get("hash").toUpperCase());
  return H3Transport.createFace({}, uri, { serverCertificateHashes: [{ algorithm: "sha-256", value }] });
}

async function find() {
  const face = await connect(asked.get("uri"));
  const { name } = await retrieveMetadata(asked.get("name"));
  const started = performance.now();
  const octets = await fetchObject(name);
  const milliseconds = performance.now() - started;
  const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", octets));
  face.close();
  return { octets: octets.length, sha256: toHex(digest).toLowerCase(), milliseconds };
}

const found = await find().catch((error) => ({ error: `${error}` }));
await fetch("/", { method: "POST", body: JSON.stringify(found) });
