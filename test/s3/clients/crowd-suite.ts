// Many slow clients, and gateways that die and sleep again and again: what others see of it.
import { createHash, randomBytes } from "node:crypto";
import { connect } from "node:net";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import * as s3 from "@aws-sdk/client-s3";
import { describe, expect, it, onTestFinished } from "vitest";
import { until } from "../../waiting.ts";
import { clientOf, GatewayProcess } from "../gateway-process.ts";

const rounds = Number(process.env["HOLDFAST_S3_ROUNDS"] ?? 10);
const timeoutMs = 1_800_000;

async function newFolder(): Promise<string> {
  const directory = mkdtempSync(join(tmpdir(), "holdfast-test-"));
  onTestFinished(() => rmSync(directory, { recursive: true, force: true }));
  return directory;
}

async function start(directory: string): Promise<GatewayProcess> {
  const gateway = await GatewayProcess.start([directory, "--bucket", "plain"]);
  onTestFinished(async () => {
    gateway.kill("SIGKILL");
    await gateway.ended;
  });
  return gateway;
}

describe("slow clients", () => {
  it(
    "by the hundred neither block others nor fill the memory, and are disconnected",
    { timeout: timeoutMs },
    async () => {
      const gateway = await start(await newFolder());
      const port = Number(new URL(gateway.url).port);
      let open = 0;
      const sockets = Array.from({ length: 500 }, (_, index) => {
        const socket = connect(port, "127.0.0.1");
        socket.on("error", () => undefined).on("data", () => undefined);
        socket.once("connect", () => open++).once("close", () => open--);
        // Half of them never end their head; the others never begin their body.
        const head = "PUT /plain/x HTTP/1.1\r\nhost: x\r\ncontent-length: 1000000\r\n";
        socket.write(index % 2 === 0 ? head : `${head}\r\n`);
        return socket;
      });
      await until(() => open > 400);
      const client = clientOf(gateway.url);
      const startMs = performance.now();
      for (let count = 0; count < 50; count++)
        await client.send(new s3.PutObjectCommand({ Bucket: "plain", Key: `k${count}`, Body: "1" }));
      expect(performance.now() - startMs).toBeLessThan(20_000);
      await until(() => open === 0);
      const memory = readFileSync(`/proc/${gateway.pid}/status`, "utf8");
      expect(Number(/VmHWM:\s+(\d+) kB/.exec(memory)?.[1])).toBeLessThan(400 * 1024);
      for (const socket of sockets) socket.destroy();
      client.destroy();
    },
  );
});

describe("three gateways", () => {
  it("lose nothing acknowledged while one is killed or stopped in each round", { timeout: timeoutMs }, async () => {
    const directory = await newFolder();
    const gateways = await Promise.all([0, 1, 2].map(() => start(directory)));
    const digests = new Map<string, string>();
    const acknowledged = new Set<string>();
    let count = 0;
    for (let round = 0; round < rounds; round++) {
      const victim = gateways[round % 3] as GatewayProcess;
      let isOver = false;
      const worker = async (index: number): Promise<void> => {
        const client = clientOf((gateways[index % 3] as GatewayProcess).url);
        while (!isOver) {
          const body = randomBytes(1 + ((count * 7919) % 300_000));
          const Key = `k${count++}`;
          digests.set(Key, createHash("md5").update(body).digest("hex"));
          const isDone = await client.send(new s3.PutObjectCommand({ Bucket: "plain", Key, Body: body })).then(
            () => true,
            () => false,
          );
          if (isDone) acknowledged.add(Key);
          else if (index % 3 === round % 3) break;
        }
        client.destroy();
      };
      const workers = Array.from({ length: 9 }, (_, index) => worker(index));
      const goal = acknowledged.size + 30;
      await until(() => acknowledged.size >= goal);
      victim.kill(round % 2 === 0 ? "SIGKILL" : "SIGSTOP");
      await until(() => acknowledged.size >= goal + 30);
      victim.kill("SIGCONT");
      isOver = true;
      await Promise.all(workers);
      if (round % 2 === 0) gateways[round % 3] = await start(directory);
    }
    const client = clientOf((gateways[0] as GatewayProcess).url);
    const listed: string[] = [];
    for await (const page of s3.paginateListObjectsV2({ client }, { Bucket: "plain" }))
      listed.push(...(page.Contents ?? []).map(({ Key = "" }) => Key));
    expect([...acknowledged].filter((key) => !listed.includes(key))).toEqual([]);
    for (const Key of listed) {
      const { Body } = await client.send(new s3.GetObjectCommand({ Bucket: "plain", Key }));
      const bytes = (await Body?.transformToByteArray()) ?? new Uint8Array();
      expect(createHash("md5").update(bytes).digest("hex"), Key).toBe(digests.get(Key));
    }
    client.destroy();
  });
});
