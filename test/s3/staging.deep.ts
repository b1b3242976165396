// Gateways that cannot write for a while, and gateways that slept past their lease in the middle of a put: they
// acknowledge what has been linked, and nothing else; all else is 503 SlowDown, after which the same put can be made again.
import { spawnSync } from "node:child_process";
import { once } from "node:events";
import { chmodSync, mkdirSync, readdirSync, rmSync, statSync } from "node:fs";
import { request, type ClientRequest } from "node:http";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, it, onTestFinished } from "vitest";
import { openStore } from "../../src/index.ts";
import { openStorage } from "../../src/objects/bucket/open-objects.ts";
import { openObjects, type ObjectStore } from "../../src/objects/index.ts";
import { DirectoryObjects } from "../../src/objects/objects.ts";
import { startS3Gateway } from "../../src/s3/index.ts";
import { asOrdinaryUser, makeScratch } from "../sites/scratch.ts";
import { local, World } from "../sites/world.ts";
import { until } from "../waiting.ts";
import { owner, sendSigned, signed, type Answered } from "./conformity-gateway.ts";
import { GatewayProcess, program } from "./gateway-process.ts";

const small = "small";
/** Also half of it does not fit into the slot of its version. */
const large = "large ".repeat(40_000);

/** What a put of a body is answered, and what a get gives afterwards. */
class Client {
  readonly port: number;
  constructor(url: string) {
    this.port = Number(new URL(url).port);
  }
  async makeBucket(): Promise<void> {
    expect((await sendSigned(this.port, { method: "PUT", path: "/bucket" })).status).toBe(200);
  }
  put(key: string, body: string): Promise<Answered> {
    return sendSigned(this.port, { method: "PUT", path: `/bucket/${key}`, body });
  }
  get(key: string): Promise<Answered> {
    return sendSigned(this.port, { path: `/bucket/${key}` });
  }
}

async function serve(objects: ObjectStore): Promise<Client> {
  const gateway = await startS3Gateway(objects, { port: 0, credentials: [owner] });
  onTestFinished(() => gateway.close({ drainMs: 0 }));
  return new Client(gateway.url);
}

describe("a gateway that cannot write", () => {
  // Full, and read-only or another user's.
  it.each(["ENOSPC", "EACCES"])("because of %s answers 503, whichever call fails first", async (label) => {
    const world = new World({ volume: local });
    await world.ports("maker").disk.mkdir("/objects");
    const ports = world.ports("gateway");
    const client = await serve(new DirectoryObjects(await openStorage(ports, "/objects", { leaseMs: 1_000_000 })));
    await client.makeBucket();
    for (const body of [small, large]) {
      const told = new Set<number>();
      for (let at = 1, hasCome = true; hasCome; at++) {
        const key = `${body.slice(0, 5)}-${at}`;
        let answer: Answered | undefined;
        hasCome = await world.withFault({ process: "gateway", at, label, lasting: true }, async () => {
          answer = await client.put(key, body);
        });
        if (answer?.status !== 200) expect(answer).toMatchObject({ status: 503, code: "SlowDown" });
        told.add(answer?.status ?? 0);
        // Whole or not at all; and what was acknowledged is there.
        const { status, text } = await client.get(key);
        expect([200, 404]).toContain(status);
        if (answer?.status === 200) expect(status).toBe(200);
        if (status === 200) expect(text === body).toBe(true);
        expect((await client.put(key, body)).status).toBe(200);
      }
      expect(told).toEqual(new Set([503, 200]));
    }
  });

  it("because its directories are read-only answers 503, keeps reading, and writes again when they are writable", async () => {
    const directory = makeScratch();
    const objects = await openObjects(join(directory, "objects"), { durability: "none" });
    onTestFinished(() => objects.close());
    const client = await serve(objects);
    await client.makeBucket();
    expect((await client.put("before", small)).status).toBe(200);
    setModes(directory, 0o555);
    await asOrdinaryUser(async () => {
      for (const body of [small, large])
        expect(await client.put("key", body)).toMatchObject({ status: 503, code: "SlowDown" });
      expect((await client.get("before")).text).toBe(small);
      expect((await client.get("key")).status).toBe(404);
    });
    setModes(directory, 0o755);
    expect((await client.put("key", large)).status).toBe(200);
    expect((await client.get("key")).text === large).toBe(true);
  });

  const apart = ["--map-root-user", "--mount"];
  const hasNamespaces = process.platform === "linux" && spawnSync("unshare", [...apart, "true"]).status === 0;
  it.skipIf(!hasNamespaces)(
    "because its disk is full answers 503, can delete, and writes again when there is room",
    async () => {
      const directory = makeScratch();
      // A disk of its own, which no other process sees, with a file on it that can go.
      const script = `mount -t tmpfs -o size=3m tmpfs "$1" && head -c 1000000 /dev/zero > "$1/filler" && exec "$2" "$3" s3 "$1/objects" --port 0 --json`;
      const command = ["unshare", ...apart, "sh", "-c", script, "sh", directory, process.execPath, program] as const;
      const credentials = { HOLDFAST_S3_ACCESS_KEY: owner.accessKeyId, HOLDFAST_S3_SECRET_KEY: owner.secretAccessKey };
      const gateway = await GatewayProcess.run(command[0], command.slice(1), credentials);
      onTestFinished(async () => {
        gateway.kill("SIGKILL");
        await gateway.ended;
      });
      const client = new Client(gateway.url);
      await client.makeBucket();
      const kept: string[] = [];
      for (const body of [large, small])
        for (let count = 0; ; count++) {
          const key = `${body.slice(0, 5)}-${count}`;
          const answer = await client.put(key, body);
          if (answer.status === 200) kept.push(key);
          else expect(answer).toMatchObject({ status: 503, code: "SlowDown" });
          if (answer.status !== 200) break;
        }
      expect(kept.length).toBeGreaterThan(2);
      for (const key of kept) {
        const { status, text } = await client.get(key);
        expect([status, text === (key.startsWith("large") ? large : small)]).toEqual([200, true]);
      }
      for (const key of [kept.at(-1), kept[0]])
        expect((await sendSigned(client.port, { method: "DELETE", path: `/bucket/${key}` })).status).toBe(204);
      expect((await client.put("replacement", large)).status).toBe(200);
      rmSync(`/proc/${gateway.pid}/root${directory}/filler`);
      expect((await client.put("again", large)).status).toBe(200);
      expect((await client.get("again")).text === large).toBe(true);
    },
  );
});

function setModes(directory: string, mode: number): void {
  chmodSync(directory, mode);
  for (const name of readdirSync(directory)) {
    const path = join(directory, name);
    if (statSync(path).isDirectory()) setModes(path, mode);
  }
}

describe("a gateway that slept past its lease in the middle of a put", () => {
  const leaseMs = 1_000;
  const library = (name: string): string => fileURLToPath(new URL(`../../dist/${name}`, import.meta.url));
  const sleeper = `
    import { openStore } from ${JSON.stringify(library("index.js"))};
    import { startS3Gateway } from ${JSON.stringify(library("s3/index.js"))};
    const store = await openStore(process.argv[1], { leaseMs: ${leaseMs} });
    const credentials = [${JSON.stringify(owner)}];
    const { url } = await startS3Gateway(await store.objects(), { port: 0, credentials });
    console.log(JSON.stringify({ url }));`;

  interface Night {
    readonly directory: string;
    readonly client: Client;
    readonly gateway: GatewayProcess;
    /** Another process on the same folder. */
    readonly other: ObjectStore;
    /** Until the others have taken it for dead, and swept what it had staged. */
    readonly sleep: () => Promise<void>;
  }

  async function begin(): Promise<Night> {
    const directory = join(makeScratch(), "store");
    mkdirSync(directory);
    const store = await openStore(directory, { leaseMs });
    onTestFinished(() => store.close());
    const other = await store.objects();
    const gateway = await GatewayProcess.run(process.execPath, ["--input-type=module", "-e", sleeper, directory]);
    onTestFinished(async () => {
      gateway.kill("SIGKILL");
      await gateway.ended;
    });
    const client = new Client(gateway.url);
    await client.makeBucket();
    // A collection looks after those that have left something.
    expect((await client.put("first", large)).status).toBe(200);
    const temps = join(directory, "ground/temp");
    const before = new Set(readdirSync(temps));
    const sleep = async (): Promise<void> => {
      gateway.kill("SIGSTOP");
      await until(async () => {
        await other.collect();
        return readdirSync(temps).length < before.size;
      });
    };
    return { directory, client, gateway, other, sleep };
  }

  /** A put of which the gateway has the first half. */
  async function beginPut(
    { client: { port }, directory }: Night,
    key: string,
    body: string,
    headers: Record<string, string> = {},
  ): Promise<{ readonly end: () => Promise<number> }> {
    const { path, headers: all = {} } = await signed(port, { method: "PUT", path: `/bucket/${key}`, headers });
    const own = { ...all, "content-length": String(body.length) };
    const putting: ClientRequest = request({
      port,
      host: "127.0.0.1",
      method: "PUT",
      path,
      headers: own,
      agent: false,
    });
    const answered = once(putting, "response") as Promise<[{ statusCode: number }]>;
    // It is told when it is awaited.
    answered.catch(() => undefined);
    putting.write(body.slice(0, body.length / 2));
    // The one that was put first has a file, too.
    await until(() => body === small || findBodies(directory).length > 1);
    return {
      end: async () => {
        putting.end(body.slice(body.length / 2));
        const [{ statusCode }] = await answered;
        return statusCode;
      },
    };
  }

  it("answers 503 for a body whose file was swept, and stores it when it is sent again", async () => {
    const night = await begin();
    const put = await beginPut(night, "key", large);
    await night.sleep();
    night.gateway.kill("SIGCONT");
    const status = await put.end();
    const bucket = await night.other.bucket("bucket");
    expect(status).toBe(503);
    await expect(bucket.get("key")).rejects.toMatchObject({ code: "NO_SUCH_KEY" });
    expect((await night.client.put("key", large)).status).toBe(200);
    await using object = await bucket.get("key");
    expect((await object.text()) === large).toBe(true);
  });

  it.each([small, large])("never acknowledges a put with If-None-Match * that lost", async (body) => {
    const night = await begin();
    const put = await beginPut(night, "once", body, { "if-none-match": "*" });
    await night.sleep();
    const bucket = await night.other.bucket("bucket");
    await bucket.put("once", "of the other", { ifNoneMatch: "*" });
    night.gateway.kill("SIGCONT");
    expect([412, 503]).toContain(await put.end());
    await using object = await bucket.get("once");
    expect(await object.text()).toBe("of the other");
    // It has begun a new life, and works on.
    expect((await night.client.put("after", body)).status).toBe(200);
  });

  it("has stored every concurrent put that it acknowledges after waking up", async () => {
    const night = await begin();
    const bodyOf = (index: number): string => `${index} ${index % 2 === 0 ? small : large}`;
    const puts = Array.from({ length: 20 }, (_, index) => night.client.put(`many-${index}`, bodyOf(index)));
    await night.sleep();
    night.gateway.kill("SIGCONT");
    const bucket = await night.other.bucket("bucket");
    for (const [index, answer] of (await Promise.all(puts)).entries()) {
      expect([200, 503]).toContain(answer.status);
      if (answer.status !== 200) continue;
      await using object = await bucket.get(`many-${index}`);
      expect((await object.text()) === bodyOf(index)).toBe(true);
    }
    expect(
      (await bucket.list({ prefix: "many-" })).objects.every(
        ({ size, key }) => size === bodyOf(Number(key.slice(5))).length,
      ),
    ).toBe(true);
  });
});

function findBodies(directory: string): string[] {
  const names = readdirSync(directory, { recursive: true, encoding: "utf8" });
  return names.filter((name) => /\bbodies\/[^/]+\/[^/]+$/.test(name.replaceAll("\\", "/")));
}
