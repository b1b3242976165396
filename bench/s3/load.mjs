// So many clients that put or get objects of one size, each over a connection of its own.
import { Agent, request } from "node:http";
import { sized } from "../settings.mjs";
import { signedRequest } from "./signing.mjs";
import { pair } from "./contestants.mjs";

/** Keys are written again and again: most objects of a busy store are not new. */
const keysMax = sized(256, 4);
const bodies = new Map();

function bodyOf(size) {
  if (!bodies.has(size)) bodies.set(size, Buffer.alloc(size, "holdfast "));
  return bodies.get(size);
}

/** Requests per second, for so long and at least so many. */
export async function load(url, { method, size, clients, forMs, requestsMin = 0 }) {
  const agent = new Agent({ keepAlive: true, maxSockets: clients });
  let count = 0;
  const start = performance.now();
  await Promise.all(
    Array.from({ length: clients }, async () => {
      while (performance.now() - start < forMs || count < requestsMin)
        await once(agent, url, { method, size, key: count++ % keysMax });
    }),
  );
  const tookMs = performance.now() - start;
  agent.destroy();
  return { rate: (1000 * count) / tookMs, count };
}

/** So that there is something to get. */
export async function fill(url, size) {
  const agent = new Agent({ keepAlive: true });
  for (let key = 0; key < keysMax; key++) await once(agent, url, { method: "PUT", size, key });
  agent.destroy();
}

function once(agent, url, { method, size, key }) {
  const body = method === "PUT" ? bodyOf(size) : "";
  const { path, headers } = signedRequest(pair, { method, url, path: `/bench/${size}-${key}`, body });
  if (method === "PUT") headers["content-length"] = size;
  return new Promise((resolve, reject) => {
    const sent = request(`${url}${path}`, { method, headers, agent }, (answer) => {
      let length = 0;
      answer.on("data", (piece) => (length += piece.length));
      answer.once("error", reject);
      answer.once("end", () => {
        if (answer.statusCode === 200 && (method === "PUT" || length === size)) resolve();
        else reject(new Error(`${method} ${url}${path}: ${answer.statusCode}, ${length} bytes`));
      });
    });
    sent.once("error", reject);
    sent.end(body);
  });
}
