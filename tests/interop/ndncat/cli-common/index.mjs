// The uplink of ndncat: the Unix socket that NDN_CLIENT_TRANSPORT names.
import { Forwarder } from "@ndn/fw";
import { UnixTransport } from "@ndn/node-transport";
import { digestSigning } from "@ndn/packet";

const faces = [];
export const exitClosers = [];

export async function openUplinks() {
  const uri = new URL(process.env.NDN_CLIENT_TRANSPORT);
  faces.push(await UnixTransport.createFace({ fw: Forwarder.getDefault() }, uri.pathname));
}

export async function getSigner() {
  return digestSigning;
}

export function exitHandler() {
  for (const one of [...exitClosers, ...faces]) {
    one.close();
  }
}
