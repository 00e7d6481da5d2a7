// One unmodified NDNts program over the transport that NDN_CLIENT_TRANSPORT names (unix:// or ws://).
//
// peer.mjs serve PREFIX      registers PREFIX, prints "ready", answers until standard input ends
// peer.mjs fetch NAME        fetches one Data, prints its content
// peer.mjs object NAME FILE  serves FILE in segments with version discovery and RDR metadata
// peer.mjs segments NAME FILE  discovers the version and fetches a segmented object into FILE
// peer.mjs chat GROUP MEMBER   joins a group by State Vector Sync 3: publishes lines of standard input, prints
//                            those of others
// peer.mjs manage            status, faces, a strategy choice, through NDNts's own structures
import { consume, produce } from "@ndn/endpoint";
import { Forwarder } from "@ndn/fw";
import { enableNfdPrefixReg, CsInfo, FaceStatus, getPrefix, invoke, list, RibEntry } from "@ndn/nfdmgmt";
import { UnixTransport } from "@ndn/node-transport";
import { Component, Data, digestSigning, Interest, Name } from "@ndn/packet";
import { Metadata, retrieveMetadata, serveMetadata } from "@ndn/rdr";
import { BufferChunkSource, discoverVersion, fetch, serveVersioned } from "@ndn/segmented-object";
import { SvSync } from "@ndn/svs";
import { fromUtf8, toUtf8 } from "@ndn/util";
import { WsTransport } from "@ndn/ws-transport";
import { readFile, writeFile } from "node:fs/promises";
import { createInterface } from "node:readline";

const uri = new URL(process.env.NDN_CLIENT_TRANSPORT);
const face = uri.protocol === "unix:"
  ? await UnixTransport.createFace({ fw: Forwarder.getDefault() }, uri.pathname)
  : await WsTransport.createFace({ fw: Forwarder.getDefault() }, uri.href);
const prefix = getPrefix(uri.protocol === "unix:");

/** Resolves once the producers' prefixes are registered, then says so. */
function announceReady(producer) {
  enableNfdPrefixReg(face, { signer: digestSigning });
  // NDNts registers in the background; the readvertised name answers once it is done.
  const check = async (attempt) => {
    if (await registered(producer)) {
      console.log("ready");
    } else if (attempt < 100) {
      setTimeout(() => check(attempt + 1), 100);
    } else {
      console.error("registration did not complete");
      process.exit(1);
    }
  };
  void check(0);
}

/** The node's route list holds the producer's name: over a face that may ask for it. */
async function registered(name) {
  if (uri.protocol !== "unix:") {
    return new Promise((resolve) => { setTimeout(() => resolve(true), 1000); });
  }
  const entries = await list(RibEntry, { prefix });
  return entries.some((entry) => entry.name.equals(name));
}

/** A name component of type `type` that holds a number in its shortest form. */
function numbered(type, n) {
  const octets = Buffer.alloc(4);
  octets.writeUInt32BE(n);
  return new Component(type, octets.subarray(n < 0x100 ? 3 : n < 0x10000 ? 2 : 0));
}

const commands = {
  async serve(name) {
    produce(name, async (interest) =>
      new Data(interest.name, Data.FreshnessPeriod(1000), toUtf8(`ndnts ${interest.name}`)));
    announceReady(new Name(name));
  },
  async fetch(name) {
    const data = await consume(new Interest(name, Interest.MustBeFresh, Interest.Lifetime(4000)));
    console.log(fromUtf8(data.content));
    face.close();
  },
  async object(name, file) {
    const server = serveVersioned(name, new BufferChunkSource(await readFile(file)), {
      announcement: new Name(name),
      freshnessPeriod: 10000,
    });
    serveMetadata(new Metadata(server.prefix), { prefix: name, signer: digestSigning, pOpts: { announcement: false } });
    announceReady(new Name(name));
  },
  async segments(name, file) {
    // Which way the version was found is said, so that a test sees when one of them is broken.
    let versioned;
    try {
      ({ name: versioned } = await retrieveMetadata(name));
      console.log("found by metadata");
    } catch {
      versioned = await discoverVersion(new Name(name));
      console.log("found by discovery");
    }
    await writeFile(file, await fetch(versioned));
    face.close();
  },
  async chat(group, member) {
    const groupName = new Name(group);
    const publication = (id, seq) => groupName.append(...id.name.comps, numbered(0x38, id.boot),
      numbered(0x3A, seq), numbered(0x36, 0), numbered(0x32, 0));
    const syncPrefix = groupName.append(new Component(0x20, "svs"));
    const sync = await SvSync.create({ syncPrefix, svs3: true, signer: digestSigning });
    const lines = new Map();
    const me = sync.add(new Name(member));
    produce(groupName.append(...me.id.name.comps), async (interest) => {
      const line = lines.get(interest.name.toString());
      return line && new Data(interest.name, Data.FreshnessPeriod(1000), Data.FinalBlock, toUtf8(line));
    });
    sync.addEventListener("update", async ({ id, loSeqNum, hiSeqNum }) => {
      for (let seq = loSeqNum; seq <= hiSeqNum; ++seq) {
        const data = await consume(new Interest(publication(id, seq), Interest.Lifetime(2000)), { retx: 3 });
        console.log(`${id.name}: ${fromUtf8(data.content)}`);
      }
    });
    createInterface(process.stdin).on("line", (line) => {
      lines.set(publication(me.id, me.seqNum + 1).toString(), line);
      ++me.seqNum;
    });
    announceReady(syncPrefix);
  },
  async manage() {
    const set = await invoke("strategy-choice/set", {
      name: new Name("/ndnts/strategy"),
      strategy: new Name("/localhost/nfd/strategy/multicast"),
    }, { prefix });
    console.log("strategy-choice/set", set.statusCode);
    const unset = await invoke("strategy-choice/unset", { name: new Name("/ndnts/strategy") }, { prefix });
    console.log("strategy-choice/unset", unset.statusCode);
    const faces = await list(FaceStatus, { prefix });
    console.log("faces/list", faces.length > 0);
    const [cs] = await list(CsInfo, { prefix });
    console.log("cs/info", cs.capacity > 0);
    const created = await invoke("faces/create", { uri: "udp4://127.0.0.1:7777" }, { prefix });
    console.log("faces/create", created.statusCode);
    face.close();
  },
};

const [command, ...rest] = process.argv.slice(2);
if (command === "serve" || command === "object" || command === "chat") {
  process.stdin.on("end", () => process.exit(0));
  if (command !== "chat") {
    process.stdin.resume();
  }
}
await commands[command](...rest);
