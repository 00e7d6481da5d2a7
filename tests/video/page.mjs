// The page: one player for each address of its query, side by side.
//   ?hls=URL (hls.js), ?shaka=URI (Shaka Player); any number of both; ?node=ws://… for ndn: URIs
import Hls from "hls.js";
import shaka from "shaka-player/dist/shaka-player.compiled.js";
import { register } from "./ndn.mjs";

const words = new URLSearchParams(location.search);
const players = [];
window.players = players;

function element(source) {
  const video = document.createElement("video");
  const player = { source, video, errors: [], stalls: 0 };
  video.muted = true;
  video.autoplay = true;
  video.addEventListener("waiting", () => { player.stalls += video.currentTime > 0 ? 1 : 0; });
  document.body.append(video);
  players.push(player);
  return player;
}

for (const source of words.getAll("hls")) {
  const player = element(source);
  const hls = new Hls({ enableWorker: false, liveSyncDurationCount: 2 });
  hls.on(Hls.Events.ERROR, (_, { type, details, fatal }) => player.errors.push(`${type} ${details} ${fatal}`));
  hls.loadSource(source);
  hls.attachMedia(player.video);
}

const sources = words.getAll("shaka");
if (sources.some((source) => source.startsWith("ndn:"))) {
  await register(shaka, words.get("node"));
}
for (const source of sources) {
  const player = element(source);
  const one = new shaka.Player();
  one.addEventListener("error", ({ detail }) => player.errors.push(`${detail.code} ${detail.data}`));
  await one.attach(player.video);
  one.configure({ manifest: { dash: { ignoreMinBufferTime: true } }, streaming: { rebufferingGoal: 0.5 } });
  one.load(source).catch((error) => player.errors.push(`load: ${error.code} ${error.data}`));
}
