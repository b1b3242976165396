// Clients that do harm: each is refused in bounded time and memory, and the others are not disturbed.
import { connect, type Socket } from "node:net";
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { until } from "../waiting.ts";
import { send, sendSigned, signed, startSite, type Answered, type Site } from "./conformity-gateway.ts";

let site: Site;
let bucket = "";
beforeAll(async () => {
  site = await startSite();
  bucket = await site.newBucket();
  await put("good", "good");
});
afterAll(() => site.close());

const put = (key: string, body: string): Promise<Answered> =>
  sendSigned(site.port, { method: "PUT", path: `/${bucket}/${key}`, body });
const post = (query: Record<string, string>, body: string): Promise<Answered> =>
  sendSigned(site.port, { method: "POST", path: `/${bucket}`, query, body });

/** Another client is answered, whatever the hostile ones do. */
async function othersAreServed(): Promise<void> {
  expect((await sendSigned(site.port, { path: `/${bucket}/good` })).text).toBe("good");
  expect((await put("another", "x")).status).toBe(200);
}

/** How much more memory is used after `work`, with what is collected taken away as far as it can be. */
async function growthOf(work: () => Promise<void>): Promise<number> {
  const before = process.memoryUsage().rss;
  await work();
  return process.memoryUsage().rss - before;
}
const growthMax = 64 * 1024 * 1024;

async function open(): Promise<Socket> {
  const socket = connect(site.port, "127.0.0.1");
  socket.on("error", () => undefined);
  onTestFinished(() => void socket.destroy());
  await new Promise((resolve) => socket.once("connect", resolve));
  return socket;
}

/** What comes back until its headers are there, or the connection is closed. */
async function answerOn(socket: Socket, text: string): Promise<string> {
  let answer = "";
  let isOver = false;
  socket.on("data", (piece) => void (answer += piece.toString()));
  socket.once("close", () => void (isOver = true));
  socket.write(text);
  await until(() => isOver || answer.includes("\r\n\r\n"));
  return answer;
}

describe("documents", () => {
  const bombs: Readonly<Record<string, string>> = {
    "an entity bomb": `<!DOCTYPE d [<!ENTITY a "${"a".repeat(1000)}"><!ENTITY b "${"&a;".repeat(1000)}">]><Delete>&b;</Delete>`,
    "an external entity":
      '<!DOCTYPE d [<!ENTITY x SYSTEM "file:///etc/passwd">]><Delete><Object><Key>&x;</Key></Object></Delete>',
    "a document type": "<!DOCTYPE Delete><Delete><Object><Key>a</Key></Object></Delete>",
    "a deep tree": "<a>".repeat(100_000),
    "a wide tree": `<Delete>${"<a/>".repeat(100_000)}</Delete>`,
    "text outside of the root": "<Delete><Object><Key>a</Key></Object></Delete>x",
    "half a document": "<Delete><Object>",
    "no document": "\u0000\u0001",
  };
  it.each(Object.entries(bombs))("with %s are malformed", async (_, body) => {
    expect(await post({ delete: "" }, body)).toMatchObject({ status: 400, code: "MalformedXML" });
    await othersAreServed();
  });

  it("are refused before they are read if they are too large", async () => {
    const huge = `<Delete>${" ".repeat(64 * 1024 * 1024)}</Delete>`;
    const grown = await growthOf(async () => {
      const socket = await open();
      const { path, headers = {} } = await signed(site.port, {
        method: "POST",
        path: `/${bucket}`,
        query: { delete: "" },
      });
      const lines = Object.entries({ ...headers, "content-length": String(huge.length) }).map(
        ([name, value]) => `${name}: ${value}`,
      );
      const answer = await answerOn(socket, `POST ${path} HTTP/1.1\r\n${lines.join("\r\n")}\r\n\r\n`);
      expect(answer).toMatch(/^HTTP\/1\.1 400 /);
    });
    expect(grown).toBeLessThan(growthMax);
    await othersAreServed();
  });
});

describe("paths", () => {
  const tricks = [
    "/../etc/passwd",
    "/%2e%2e/%2e%2e/etc/passwd",
    "//etc/passwd",
    "/bucket-1/../../x",
    "/%00",
    "/%ff",
    "/%",
    "/bucket-1/%zz",
    "*",
    "/..%2f..%2fx",
  ];
  it.each(tricks)("like %s reach nothing and break nothing", async (path) => {
    const { status } = await send(site.port, { path });
    expect([400, 403, 404, 405]).toContain(status);
    await othersAreServed();
  });

  it("are object names if they are signed, and stay in their bucket", async () => {
    for (const key of ["../../escape", "..", "a/../b", "./x", "a//b", "con", "x\u0000y"]) {
      const path = `/${bucket}/${encodeURIComponent(key).replaceAll("%2F", "/")}`;
      expect((await sendSigned(site.port, { method: "PUT", path, body: key })).status).toBe(200);
      expect((await sendSigned(site.port, { path })).text).toBe(key);
    }
    const long = await sendSigned(site.port, { method: "PUT", path: `/${bucket}/${"x".repeat(1025)}`, body: "" });
    expect(long).toMatchObject({ status: 400, code: "KeyTooLongError" });
  });
});

describe("headers", () => {
  it("are refused if there are too many", async () => {
    const socket = await open();
    const flood = `GET / HTTP/1.1\r\nhost: x\r\n${Array.from({ length: 5000 }, (_, index) => `x-${index}: ${"y".repeat(20)}\r\n`).join("")}`;
    const grown = await growthOf(async () => {
      expect(await answerOn(socket, flood)).toMatch(/^(HTTP\/1\.1 431 |$)/);
    });
    expect(grown).toBeLessThan(growthMax);
    await othersAreServed();
  });

  it("are refused with two lengths or an invalid length", async () => {
    for (const lines of [
      "content-length: 5\r\ncontent-length: 6",
      "content-length: -1",
      "content-length: 5\r\ntransfer-encoding: chunked",
      "content-length: x",
    ]) {
      const answer = await answerOn(await open(), `PUT /${bucket}/x HTTP/1.1\r\nhost: x\r\n${lines}\r\n\r\nhello`);
      expect(answer).toMatch(/^HTTP\/1\.1 (400|403|411) /);
    }
    await othersAreServed();
  });
});

describe("bodies", () => {
  const streaming = "STREAMING-UNSIGNED-PAYLOAD-TRAILER";
  it("with a wrong chunk size end in bounded memory, and nothing is stored", async () => {
    const lies = [
      "ffffffffffff\r\nabc",
      `${"5".repeat(100_000)}\r\nabc`,
      "5;x=y\r\nhello\r\n0\r\n\r\n",
      "-5\r\nhello\r\n0\r\n\r\n",
      "5\r\nhello",
      "0\r\n\r\n",
      `5\r\nhello\r\n0\r\n${"x: y\r\n".repeat(10_000)}\r\n`,
    ];
    const grown = await growthOf(async () => {
      for (const body of lies) {
        const { status, code } = await sendSigned(site.port, {
          method: "PUT",
          path: `/${bucket}/lies`,
          payload: streaming,
          headers: { "x-amz-decoded-content-length": "5" },
          body,
        });
        expect([status, code].join(" ")).toMatch(/^400 (IncompleteBody|MalformedTrailerError)$/);
      }
    });
    expect(grown).toBeLessThan(growthMax);
    expect((await sendSigned(site.port, { path: `/${bucket}/lies` })).status).toBe(404);
    await othersAreServed();
  });

  it("that are declared larger than an object can be are refused before they are read", async () => {
    for (const length of ["5368709121", "99999999999999999999999", "-1", "x"]) {
      const headers = { "x-amz-decoded-content-length": length };
      const answer = await sendSigned(site.port, {
        method: "PUT",
        path: `/${bucket}/huge`,
        payload: streaming,
        headers,
        body: "0\r\n\r\n",
      });
      expect(answer).toMatchObject({ status: 400, code: "EntityTooLarge" });
    }
  });

  it("that stop in the middle block no other client and leave nothing", async () => {
    const halves: Socket[] = [];
    for (let count = 0; count < 50; count++) {
      const socket = await open();
      const { path, headers = {} } = await signed(site.port, { method: "PUT", path: `/${bucket}/half-${count}` });
      const lines = Object.entries({ ...headers, "content-length": "1000000" }).map(
        ([name, value]) => `${name}: ${value}`,
      );
      socket.write(`PUT ${path} HTTP/1.1\r\n${lines.join("\r\n")}\r\n\r\nhalf`);
      halves.push(socket);
    }
    for (let count = 0; count < 100; count++) (await open()).write("GET / HT");
    await othersAreServed();
    for (const socket of halves) socket.destroy();
    await othersAreServed();
    const { text } = await sendSigned(site.port, { path: `/${bucket}`, query: { prefix: "half-" } });
    expect(text).not.toContain("<Key>");
  });
});
