// The servers that are compared, each a process of its own with the bucket "bench" in it.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { cpuUsOf } from "../cpu.mjs";
import { signedRequest } from "./signing.mjs";

const here = (name) => fileURLToPath(new URL(name, import.meta.url));
const gateway = here("../../dist/cli/bin.cjs");

/** s3rver knows this pair and no other; so the others get it too. */
export const pair = { accessKeyId: "S3RVER", secretAccessKey: "S3RVER" };

export const peers = { floor: "node:http, fsync, rename: no signature", s3rver: "s3rver", holdfast: "holdfast s3" };

export async function openServers(directory) {
  const env = {
    ...process.env,
    HOLDFAST_S3_ACCESS_KEY: pair.accessKeyId,
    HOLDFAST_S3_SECRET_KEY: pair.secretAccessKey,
  };
  const servers = {
    floor: await start([here("floor.mjs"), `${directory}/floor`]),
    s3rver: await start([here("s3rver.mjs"), `${directory}/s3rver`]),
    holdfast: await start([gateway, "s3", `${directory}/holdfast`, "--port", "0", "--json", "--bucket", "bench"], env),
  };
  await enableVersions(servers.holdfast.url);
  return servers;
}

async function start(args, env = process.env) {
  const child = spawn(process.execPath, args, { stdio: ["ignore", "pipe", "inherit"], env });
  const [line] = await Promise.race([
    once(createInterface({ input: child.stdout }), "line"),
    once(child, "exit").then(() => Promise.reject(new Error(`${args[0]} did not start`))),
  ]);
  return {
    url: JSON.parse(line).url,
    /** User and system time so far, in microseconds. Linux only. */
    cpuUs: () => cpuUsOf(child.pid),
    close: async () => {
      child.kill("SIGKILL");
      if (child.exitCode === null && child.signalCode === null) await once(child, "exit");
    },
  };
}

/** What is measured keeps all versions. */
async function enableVersions(url) {
  const body = "<VersioningConfiguration><Status>Enabled</Status></VersioningConfiguration>";
  const { path, headers } = signedRequest(pair, { method: "PUT", url, path: "/bench", query: "versioning=", body });
  const answer = await fetch(url + path, { method: "PUT", headers, body });
  if (!answer.ok) throw new Error(await answer.text());
}
