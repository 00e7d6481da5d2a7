// NDNCERT with NDNts, over the Unix socket that NDN_CLIENT_TRANSPORT names.
//
// certificates.mjs request CA-CERT-FILE SUBJECT   asks for a certificate: prints "need code" and takes it from
//                                               standard input, then prints "issued NAME"
// certificates.mjs authority PREFIX CERT-FILE     an authority with the challenges pin and possession: writes its
//                                               certificate, prints "ready", "code CODE" for each request
import { produce } from "@ndn/endpoint";
import { Forwarder } from "@ndn/fw";
import { Certificate, generateSigningKey } from "@ndn/keychain";
import {
  CaProfile, ClientPinChallenge, requestCertificate, retrieveCaProfile, Server, ServerPinChallenge,
  ServerPossessionChallenge,
} from "@ndn/ndncert";
import { enableNfdPrefixReg } from "@ndn/nfdmgmt";
import { UnixTransport } from "@ndn/node-transport";
import { Data, digestSigning, Name } from "@ndn/packet";
import { Decoder, Encoder } from "@ndn/tlv";
import { readFile, writeFile } from "node:fs/promises";
import { createInterface } from "node:readline";

const uri = new URL(process.env.NDN_CLIENT_TRANSPORT);
const face = await UnixTransport.createFace({ fw: Forwarder.getDefault() }, uri.pathname);

async function readCertificate(file) {
  const wire = Buffer.from((await readFile(file, "utf8")).replaceAll(/\s/g, ""), "base64");
  return Certificate.fromData(Decoder.decode(wire, Data));
}

const commands = {
  async request(file, subject) {
    const authority = await readCertificate(file);
    const profile = await retrieveCaProfile({ caCertFullName: await authority.data.computeFullName() });
    const [privateKey, publicKey] = await generateSigningKey(subject);
    const lines = createInterface(process.stdin)[Symbol.asyncIterator]();
    const prompt = async ({ challengeStatus }) => {
      console.log(`need code: ${challengeStatus}`);
      return (await lines.next()).value;
    };
    const issued = await requestCertificate({
      profile, privateKey, publicKey, challenges: [new ClientPinChallenge(prompt)],
    });
    console.log(`issued ${issued.name}`);
    process.exit(0);
  },
  async authority(prefix, file) {
    const [signer, verifier] = await generateSigningKey(prefix);
    const cert = await Certificate.selfSign({ privateKey: signer, publicKey: verifier });
    await writeFile(file, Buffer.from(Encoder.encode(cert.data)).toString("base64"));
    const profile = await CaProfile.build({
      prefix: new Name(prefix), info: "NDNts", probeKeys: [], maxValidityPeriod: 86_400_000, cert, signer,
    });
    const pin = new ServerPinChallenge();
    pin.addEventListener("newpin", ({ pin: code }) => console.log(`code ${code}`));
    const issued = new Map();
    produce(prefix, async (interest) => {
      // Its name ends with a digest.
      for (const data of issued.values()) {
        if (await data.canSatisfy(interest)) {
          return data;
        }
      }
      return undefined;
    });
    Server.create({
      profile, signer, challenges: [pin, new ServerPossessionChallenge(verifier)],
      repo: { insert: async (data) => { issued.set(data.name.toString(), data); } },
    });
    enableNfdPrefixReg(face, { signer: digestSigning });
    // NDNts registers in the background.
    setTimeout(() => console.log("ready"), 1000);
    process.stdin.on("end", () => process.exit(0)).resume();
  },
};

const [command, ...rest] = process.argv.slice(2);
await commands[command](...rest);
