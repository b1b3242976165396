// `holdfast s3`: what it prints can be pasted, its key pairs have the rights that they were given, and its own pages
// tell how it does.
import { execFileSync } from "node:child_process";
import { once } from "node:events";
import { existsSync, writeFileSync } from "node:fs";
import { get } from "node:https";
import { connect, createServer, type AddressInfo } from "node:net";
import { join } from "node:path";
import { runInNewContext } from "node:vm";
import * as s3 from "@aws-sdk/client-s3";
import { getSignedUrl } from "@aws-sdk/s3-request-presigner";
import parsePrometheus from "parse-prometheus-text-format";
import { describe, expect, onTestFinished, test } from "vitest";
import { runCommandLine } from "../../src/cli/program.ts";
import { openStore } from "../../src/index.ts";
import { clientOf } from "../s3/gateway-process.ts";
import { makeScratch } from "../sites/scratch.ts";
import { until } from "../waiting.ts";

interface Finished {
  readonly exitCode: number;
  readonly stdout: string;
  readonly stderr: string;
}

class Running {
  readonly written: { stdout: string; stderr: string } = { stdout: "", stderr: "" };
  readonly finished: Promise<Finished>;
  readonly #stop = new AbortController();

  constructor(...args: readonly string[]) {
    const write = (name: "stdout" | "stderr") => (text: string | Uint8Array, onWritten?: () => void) => {
      this.written[name] += Buffer.from(text).toString();
      onWritten?.();
    };
    const pipes = { stdout: { write: write("stdout") }, stderr: { write: write("stderr") } };
    this.finished = runCommandLine(["s3", ...args], pipes, this.#stop.signal).then((exitCode) => ({
      exitCode,
      ...this.written,
    }));
    onTestFinished(() => void this.stop());
  }

  /** What it says first. */
  async introduction(): Promise<string> {
    let isOver = false;
    void this.finished.then(() => (isOver = true));
    await until(() => this.written.stdout !== "" || isOver);
    if (isOver) throw new Error(this.written.stderr);
    return this.written.stdout;
  }

  async started(): Promise<{ url: string; accessKeyId: string; secretAccessKey: string; buckets: string[] }> {
    return JSON.parse((await this.introduction()).split("\n", 1)[0] ?? "") as never;
  }

  async stop(): Promise<Finished> {
    this.#stop.abort();
    return await this.finished;
  }
}

const pairFlags = ["--access-key", "ME", "--secret-key", "my-secret"];
const me = { accessKeyId: "ME", secretAccessKey: "my-secret" };

async function nameOfFailure(call: Promise<unknown>): Promise<string> {
  return await call.then(
    () => "no failure",
    (error: unknown) => (error as Error).name,
  );
}

test("--connections limits how many are open, and is a whole number from 1", async () => {
  const running = new Running("--memory", "--port", "0", "--json", "--connections", "2", ...pairFlags);
  const { url } = await running.started();
  let open = 0;
  for (let count = 0; count < 10; count++) {
    const socket = connect(Number(new URL(url).port), "127.0.0.1");
    socket.on("error", () => undefined).once("connect", () => open++);
    socket.resume().once("close", () => open--);
    onTestFinished(() => void socket.destroy());
    await once(socket, "connect");
  }
  await until(() => open <= 2);
  expect((await fetch(`${url}/-/health`)).status).toBe(200);
  for (const wrong of ["0", "-1", "x", "1.5"]) {
    const { exitCode, stderr } = await new Running("--memory", "--connections", wrong).finished;
    expect([exitCode, stderr]).toEqual([2, expect.stringContaining("Write a whole number from 1.")]);
  }
});

describe("what it says", () => {
  test("one key pair is made and shown once, with examples that work as they stand there", async () => {
    const directory = makeScratch();
    const running = new Running(directory, "--port", "0", "--bucket", "docs", "--bucket", "photos");
    const text = await running.introduction();
    const [, line = ""] = /^ {2}(const client = new S3Client.*)$/m.exec(text) ?? [];
    const client = runInNewContext(`${line} client;`, { S3Client: s3.S3Client }) as s3.S3Client;
    const { Buckets = [] } = await client.send(new s3.ListBucketsCommand({}));
    expect(Buckets.map(({ Name }) => Name)).toEqual(["docs", "photos"]);
    client.destroy();
    const { accessKeyId, secretAccessKey } = (await client.config.credentials()) as typeof me;
    expect(accessKeyId).toMatch(/^HF[A-Z2-7]{18}$/);
    expect(secretAccessKey).toMatch(/^[A-Za-z0-9]{40}$/);
    const shell = `aws() { :; }; ${/^ {2}(export AWS.*)$/m.exec(text)?.[1] ?? ""}; printf %s "$AWS_SECRET_ACCESS_KEY"`;
    expect(execFileSync("sh", ["-c", shell], { encoding: "utf8" })).toBe(secretAccessKey);
    const { exitCode, stdout, stderr } = await running.stop();
    expect({ exitCode, stderr }).toEqual({
      exitCode: 0,
      stderr: "holdfast: taking no new requests, and finishing what runs\n",
    });
    expect(stdout).toBe(text);
  });

  test("a pair that was given is not shown, and buckets that are there stay as they are", async () => {
    const directory = makeScratch();
    const first = new Running(directory, "--port", "0", "--json", "--bucket", "docs", ...pairFlags);
    const { url } = await first.started();
    const client = clientOf(url, me);
    await client.send(new s3.PutObjectCommand({ Bucket: "docs", Key: "k", Body: "1" }));
    const second = new Running(directory, "--port", "0", "--bucket", "docs", ...pairFlags);
    expect(await second.introduction()).not.toContain("my-secret");
    expect(await first.started()).toMatchObject({ accessKeyId: "ME", buckets: ["docs"] });
    expect(first.written.stdout).not.toContain("my-secret");
    expect((await client.send(new s3.ListObjectsV2Command({ Bucket: "docs" }))).KeyCount).toBe(1);
    client.destroy();
  });

  test("--print-env gives a shell what clients need, and --memory keeps nothing", async () => {
    const running = new Running("--memory", "--port", "0", "--print-env", "--bucket", "docs");
    const text = await running.introduction();
    const ask = `${text}printf '%s\\n' "$AWS_ENDPOINT_URL_S3" "$AWS_ACCESS_KEY_ID" "$AWS_SECRET_ACCESS_KEY" "$AWS_REGION"`;
    const answer = execFileSync("sh", ["-c", ask], { encoding: "utf8" });
    const [url = "", accessKeyId = "", secretAccessKey = "", region] = answer.split("\n");
    expect(region).toBe("us-east-1");
    const client = clientOf(url, { accessKeyId, secretAccessKey });
    await client.send(new s3.PutObjectCommand({ Bucket: "docs", Key: "k", Body: "1" }));
    client.destroy();
  });

  test("the objects of a store are those that a program of it sees", async () => {
    const directory = join(makeScratch(), "store");
    await using store = await openStore(directory);
    const bucket = await (await store.objects()).createBucket("docs");
    await bucket.put("k", "from the program");
    const { url } = await new Running(directory, "--port", "0", "--json", ...pairFlags).started();
    const client = clientOf(url, me);
    const { Body } = await client.send(new s3.GetObjectCommand({ Bucket: "docs", Key: "k" }));
    expect(await Body?.transformToString()).toBe("from the program");
    client.destroy();
    expect(existsSync(join(directory, "objects.json"))).toBe(false);
  });
});

describe("key pairs", () => {
  test("of a file have the rights that stand there", async () => {
    const directory = makeScratch();
    const keys = join(directory, "keys.json");
    const reader = { accessKeyId: "READER", secretAccessKey: "r" };
    const guest = { accessKeyId: "GUEST", secretAccessKey: "g" };
    writeFileSync(
      keys,
      JSON.stringify([
        { ...reader, rights: "read-only" },
        { ...guest, rights: "read-write", only: ["docs/guest/"] },
      ]),
    );
    const flags = [join(directory, "objects"), "--port", "0", "--json", "--bucket", "docs", "--keys", keys];
    const { url } = await new Running(...flags, ...pairFlags).started();
    const put = (credentials: typeof me, Key: string): Promise<string> => {
      const client = clientOf(url, credentials);
      const sent = client.send(new s3.PutObjectCommand({ Bucket: "docs", Key, Body: "1" }));
      return nameOfFailure(sent).finally(() => client.destroy());
    };
    expect(await put(me, "k")).toBe("no failure");
    expect(await put(reader, "k")).toBe("AccessDenied");
    expect(await put(guest, "guest/k")).toBe("no failure");
    expect(await put(guest, "k")).toBe("AccessDenied");
    expect(await put({ ...me, secretAccessKey: "wrong" }, "k")).toBe("SignatureDoesNotMatch");
  });

  test.each([
    ["not JSON", "{", 2, "is not JSON"],
    ["no list", "{}", 2, "must be a list of key pairs"],
    ["a right that there is not", '[{"accessKeyId":"a","secretAccessKey":"b","rights":"all"}]', 1, "rights is one of"],
    ["a misspelt name", '[{"accessKeyId":"a","secretAccessKey":"b","right":"owner"}]', 1, 'no option "right"'],
    [
      "two of one id",
      '[{"accessKeyId":"a","secretAccessKey":"b"},{"accessKeyId":"a","secretAccessKey":"c"}]',
      1,
      "two key pairs",
    ],
  ])("of a file with %s are refused before anything is served", async (_what, text, exitCode, message) => {
    const directory = makeScratch();
    writeFileSync(join(directory, "keys.json"), text);
    const running = new Running("--memory", "--port", "0", "--keys", join(directory, "keys.json"));
    const end = await running.finished;
    expect(end).toMatchObject({ exitCode, stdout: "" });
    expect(end.stderr).toContain(message);
    expect(end.stderr).not.toContain("please report");
  });
});

describe("TLS", () => {
  test("is spoken with --cert and --key", async () => {
    const directory = makeScratch();
    const [cert, key] = ["tls.crt", "tls.key"].map((name) => join(directory, name)) as [string, string];
    const subject = ["-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1"];
    const curve = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1"];
    execFileSync("openssl", ["req", "-x509", ...curve, "-nodes", "-keyout", key, "-out", cert, ...subject], {
      stdio: "ignore",
    });
    const { url } = await new Running("--memory", "--port", "0", "--json", "--cert", cert, "--key", key).started();
    expect(url).toMatch(/^https:/);
    const ca = execFileSync("cat", [cert]);
    const [answer] = (await once(get(`${url}/-/health`, { ca, agent: false }), "response")) as [{ statusCode: number }];
    expect(answer.statusCode).toBe(200);
    const wrong = new Running("--memory", "--port", "0", "--cert", cert, "--key", cert);
    expect(await wrong.finished).toMatchObject({ exitCode: 1 });
    expect(wrong.written.stderr).toContain("the gateway cannot start");
  });
});

describe("how it does", () => {
  test("the log has a line for each request, with what was done and by which key, and without signatures", async () => {
    const running = new Running("--memory", "--port", "0", "--json", "--bucket", "docs", "--access-log", ...pairFlags);
    const { url } = await running.started();
    const client = clientOf(url, me);
    await client.send(new s3.PutObjectCommand({ Bucket: "docs", Key: "k", Body: "12345" }));
    const presigned = await getSignedUrl(client, new s3.GetObjectCommand({ Bucket: "docs", Key: "k" }));
    await (await fetch(presigned)).text();
    await (await fetch(`${url}/docs/k`)).text();
    client.destroy();
    const linesOf = (): Record<string, unknown>[] =>
      running.written.stdout
        .split("\n")
        .slice(1, -1)
        .map((line) => JSON.parse(line) as Record<string, unknown>);
    await until(() => linesOf().length === 3);
    expect(linesOf()).toMatchObject([
      { method: "PUT", operation: "PutObject", accessKeyId: "ME", status: 200, bytesIn: 5 },
      { method: "GET", operation: "GetObject", accessKeyId: "ME", status: 200, bytesOut: 5 },
      { method: "GET", target: "/docs/k", operation: "GetObject", status: 403, code: "AccessDenied" },
    ]);
    expect(linesOf()[1]?.["target"]).toMatch(/X-Amz-Signature=-(&|$)/);
    expect(linesOf()[2]).not.toHaveProperty("accessKeyId");
    const [, signature = "none"] = /X-Amz-Signature=(\w+)/.exec(presigned) ?? [];
    expect(running.written.stdout).not.toContain(signature);
  });

  test("health and metrics are told without a signature, and nothing about what is stored", async () => {
    const flags = ["--memory", "--port", "0", "--json", "--bucket", "secret-name", ...pairFlags];
    const { url } = await new Running(...flags, "--metrics").started();
    const client = clientOf(url, me);
    await client.send(new s3.PutObjectCommand({ Bucket: "secret-name", Key: "secret-key", Body: "12345" }));
    await nameOfFailure(client.send(new s3.GetObjectCommand({ Bucket: "secret-name", Key: "no" })));
    client.destroy();
    const health = await fetch(`${url}/-/health`);
    expect([health.status, await health.text()]).toEqual([200, "ok\n"]);
    expect((await fetch(`${url}/-/health`, { method: "POST" })).status).toBe(405);
    const answer = await fetch(`${url}/-/metrics`);
    expect(answer.headers.get("content-type")).toContain("version=0.0.4");
    const text = await answer.text();
    expect(text).not.toMatch(/secret|ME/);
    const metrics = new Map(parsePrometheus(text).map((metric) => [metric.name, metric] as const));
    const requests = metrics.get("holdfast_s3_requests_total")?.metrics ?? [];
    expect(requests).toContainEqual({ value: "1", labels: { operation: "PutObject", status: "200", code: "" } });
    expect(requests).toContainEqual({
      value: "1",
      labels: { operation: "GetObject", status: "404", code: "NoSuchKey" },
    });
    expect(metrics.get("holdfast_s3_received_bytes_total")?.metrics).toEqual([{ value: "5" }]);
    expect(metrics.get("holdfast_s3_request_duration_seconds")?.type).toBe("HISTOGRAM");
    expect(text).toMatch(/holdfast_s3_request_duration_seconds_bucket\{operation="PutObject",le="\+Inf"\} 1/);

    const { url: quiet } = await new Running(...flags).started();
    expect((await fetch(`${quiet}/-/metrics`)).ok).toBe(false);
  });
});

describe("wrong usage", () => {
  test.each([
    [[], "name the directory, or give --memory"],
    [["d", "--memory"], "name the directory, or give --memory"],
    [["d", "--access-key", "x"], "--access-key and --secret-key go together"],
    [["d", "--cert", "x"], "--cert and --key go together"],
    [["d", "--port", "70000"], "Write a port from 0 to 65535."],
    [["d", "--access-log", "--print-env"], "cannot be used with"],
  ])("%j is refused, and nothing is made", async (args, message) => {
    const running = new Running(...args);
    expect(await running.finished).toMatchObject({ exitCode: 2, stdout: "" });
    expect(running.written.stderr).toContain(message);
    expect(existsSync("d")).toBe(false);
  });

  test("a port that another program has is told with what to do", async () => {
    const other = createServer().listen(0, "127.0.0.1");
    await once(other, "listening");
    onTestFinished(() => void other.close());
    const { port } = other.address() as AddressInfo;
    const running = new Running("--memory", "--port", String(port), "--json");
    expect(await running.finished).toMatchObject({ exitCode: 1, stdout: "" });
    expect(JSON.parse(running.written.stderr)).toMatchObject({ error: { code: "EADDRINUSE", exitCode: 1 } });
  });
});
