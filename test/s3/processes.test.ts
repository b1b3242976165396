// Three gateways as processes on one folder: together they are one S3, also when one of them is killed or stopped in
// the middle of uploads.
import { createHash, randomBytes } from "node:crypto";
import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Readable } from "node:stream";
import * as s3 from "@aws-sdk/client-s3";
import { beforeAll, describe, expect, it } from "vitest";
import { until } from "../waiting.ts";
import { clientOf, GatewayProcess } from "./gateway-process.ts";

let directory = "";
let gateways: GatewayProcess[] = [];
let clients: s3.S3Client[] = [];

beforeAll(async () => {
  directory = mkdtempSync(join(tmpdir(), "holdfast-test-"));
  gateways = await Promise.all([0, 1, 2].map(() => GatewayProcess.start([directory, "--bucket", "plain"])));
  clients = gateways.map(({ url }) => clientOf(url));
  await clients[0]?.send(new s3.CreateBucketCommand({ Bucket: "versioned" }));
  const VersioningConfiguration = { Status: "Enabled" } as const;
  await clients[1]?.send(new s3.PutBucketVersioningCommand({ Bucket: "versioned", VersioningConfiguration }));
  return async () => {
    for (const each of clients) each.destroy();
    for (const each of gateways) each.kill("SIGKILL");
    await Promise.all(gateways.map((gateway) => gateway.ended));
    rmSync(directory, { recursive: true, force: true });
  };
});

const client = (index: number): s3.S3Client => clients[index % 3] as s3.S3Client;

/** The name of the error, or "done". */
async function outcomeOf(call: Promise<unknown>): Promise<string> {
  return await call.then(
    () => "done",
    (error: unknown) => (error as Error).name,
  );
}

async function bytesOf(index: number, input: s3.GetObjectCommandInput): Promise<Uint8Array> {
  const { Body } = await client(index).send(new s3.GetObjectCommand(input));
  return (await Body?.transformToByteArray()) ?? new Uint8Array();
}

describe("three gateways on one folder", () => {
  it.each([5, 64])("%i concurrent puts of one key are as many versions, each with its body", async (count) => {
    const Key = `contended-${count}`;
    const put = async (index: number): Promise<string> => {
      const command = new s3.PutObjectCommand({ Bucket: "versioned", Key, Body: `body ${index}` });
      return (await client(index).send(command)).VersionId ?? "";
    };
    const ids = await Promise.all(Array.from({ length: count }, (_, index) => put(index)));
    expect(new Set(ids).size).toBe(count);
    const list = new s3.ListObjectVersionsCommand({ Bucket: "versioned", Prefix: Key });
    const { Versions = [] } = await client(1).send(list);
    expect(Versions).toHaveLength(count);
    expect(new Set(Versions.map(({ VersionId }) => VersionId))).toEqual(new Set(ids));
    const bodies = await Promise.all(
      ids.map((VersionId, index) => bytesOf(index + 1, { Bucket: "versioned", Key, VersionId })),
    );
    expect(bodies.map((bytes) => Buffer.from(bytes).toString())).toEqual(ids.map((_, index) => `body ${index}`));
  });

  it("exactly one of many puts with the same condition succeeds", async () => {
    const put = (index: number, condition: Partial<s3.PutObjectCommandInput>): Promise<string> => {
      // No two bodies are equal: equal ones have the same ETag, and then two can follow one state.
      const Body = JSON.stringify({ index, condition });
      return outcomeOf(
        client(index).send(new s3.PutObjectCommand({ Bucket: "plain", Key: "once", Body, ...condition })),
      );
    };
    const race = async (condition: Partial<s3.PutObjectCommandInput>): Promise<void> => {
      const outcomes = await Promise.all(Array.from({ length: 12 }, (_, index) => put(index, condition)));
      expect(outcomes.filter((outcome) => outcome === "done")).toHaveLength(1);
      const others = outcomes.filter((outcome) => outcome !== "done");
      expect(others.every((name) => ["PreconditionFailed", "ConditionalRequestConflict"].includes(name))).toBe(true);
    };
    await race({ IfNoneMatch: "*" });
    const { ETag } = await client(2).send(new s3.HeadObjectCommand({ Bucket: "plain", Key: "once" }));
    await race({ IfMatch: ETag });
  });

  it("a gateway that is killed during uploads leaves no partial object and loses nothing acknowledged", async () => {
    const victim = await GatewayProcess.start([directory]);
    const toVictim = clientOf(victim.url);
    const digests = new Map<string, string>();
    const acknowledged = new Set<string>();
    const upload = async (index: number): Promise<void> => {
      const body = randomBytes(200_000);
      const Key = `crash/${index}`;
      digests.set(Key, createHash("md5").update(body).digest("hex"));
      await toVictim.send(new s3.PutObjectCommand({ Bucket: "plain", Key, Body: body }));
      acknowledged.add(Key);
    };
    // Eight at a time, without an end: it is killed while all of them are under way.
    let count = 0;
    const uploader = async (): Promise<void> => {
      for (;;) await upload(count++);
    };
    const uploads = Array.from({ length: 8 }, () => outcomeOf(uploader()));
    await until(() => acknowledged.size >= 10);
    victim.kill("SIGKILL");
    await victim.ended;
    await Promise.all(uploads);
    toVictim.destroy();
    const { Contents = [] } = await client(1).send(new s3.ListObjectsV2Command({ Bucket: "plain", Prefix: "crash/" }));
    const listed = new Set(Contents.map(({ Key = "" }) => Key));
    expect([...acknowledged].filter((key) => !listed.has(key))).toEqual([]);
    for (const Key of listed) {
      const bytes = await bytesOf(2, { Bucket: "plain", Key });
      expect(createHash("md5").update(bytes).digest("hex")).toBe(digests.get(Key));
    }
    // What it had staged is swept by those that live on; they go on meanwhile.
    await client(0).send(new s3.PutObjectCommand({ Bucket: "plain", Key: "after", Body: "1" }));
  });

  it("a stopped gateway does not block the others, and continues where it was", async () => {
    const [sleeper] = gateways as [GatewayProcess];
    const body = randomBytes(2_000_000);
    const slow = client(0).send(new s3.PutObjectCommand({ Bucket: "versioned", Key: "sleeper", Body: body }));
    sleeper.kill("SIGSTOP");
    for (const index of [1, 2])
      await client(index).send(new s3.PutObjectCommand({ Bucket: "versioned", Key: "sleeper", Body: `${index}` }));
    sleeper.kill("SIGCONT");
    const { VersionId } = await slow;
    expect(Buffer.compare(await bytesOf(1, { Bucket: "versioned", Key: "sleeper", VersionId }), body)).toBe(0);
    const list = new s3.ListObjectVersionsCommand({ Bucket: "versioned", Prefix: "sleeper" });
    expect((await client(2).send(list)).Versions).toHaveLength(3);
  });

  it("has threads for all requests that may wait for a share", () => {
    if (process.platform !== "linux") return;
    const [first] = gateways as [GatewayProcess];
    expect(readdirSync(`/proc/${first.pid}/task`).length).toBeGreaterThan(64);
  });

  it("finishes running requests on SIGTERM, accepts no new ones, and exits with success", async () => {
    const gateway = await GatewayProcess.start([directory, "--metrics"]);
    const last = clientOf(gateway.url);
    let release: () => void = () => undefined;
    const released = new Promise<void>((resolve) => (release = resolve));
    async function* body(): AsyncGenerator<Buffer> {
      yield Buffer.alloc(100_000, 1);
      await released;
      yield Buffer.alloc(100_000, 2);
    }
    const put = new s3.PutObjectCommand({
      Bucket: "plain",
      Key: "last",
      Body: Readable.from(body()),
      ContentLength: 200_000,
    });
    const putting = last.send(put);
    // The put, and the one that asks.
    await until(async () => (await textOf(`${gateway.url}/-/metrics`)).includes("holdfast_s3_requests_under_way 2"));
    const ending = gateway.stop();
    await until(() =>
      fetch(`${gateway.url}/-/health`).then(
        ({ status }) => status === 503,
        () => true,
      ),
    );
    release();
    await putting;
    last.destroy();
    expect(await ending).toMatchObject({ exitCode: 0, signal: null });
    expect(await bytesOf(1, { Bucket: "plain", Key: "last" })).toHaveLength(200_000);
  });
});

async function textOf(url: string): Promise<string> {
  return await (await fetch(url)).text();
}
