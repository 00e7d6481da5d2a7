// The scheme `ndn:` for Shaka, as players of NDNts have it: each URI is the name of a file; its
// metadata say the version, its segments are fetched and verified.
import { Forwarder } from "@ndn/fw";
import { digestSigning, Name } from "@ndn/packet";
import { retrieveMetadata } from "@ndn/rdr";
import { fetch } from "@ndn/segmented-object";
import { WsTransport } from "@ndn/ws-transport";

const RETRIES = 10;

/** Lets Shaka load `ndn:` over a WebSocket of a node. */
export async function register(shaka, node) {
  await WsTransport.createFace({ fw: Forwarder.getDefault() }, node);
  shaka.net.NetworkingEngine.registerScheme("ndn", (uri) => {
    const abort = new AbortController();
    const load = async () => {
      const begun = Date.now();
      const signal = abort.signal;
      try {
        const file = new Name(decodeURI(uri).replace(/^ndn:\/*/, "/"));
        const { name } = await retrieveMetadata(file, { retx: RETRIES, signal, verifier: digestSigning });
        const content = await fetch(name, { retxLimit: RETRIES, signal, verifier: digestSigning });
        const data = content.buffer.slice(content.byteOffset, content.byteOffset + content.byteLength);
        return { uri, originalUri: uri, data, headers: {}, status: 200, timeMs: Date.now() - begun };
      } catch (error) {
        const { Error: Fault } = shaka.util;
        throw new Fault(Fault.Severity.RECOVERABLE, Fault.Category.NETWORK, Fault.Code.BAD_HTTP_STATUS,
          uri, 503, String(error), {}, 0, uri);
      }
    };
    return new shaka.util.AbortableOperation(load(), async () => abort.abort());
  });
}
