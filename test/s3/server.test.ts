// The HTTP side by itself, over real sockets: slow clients, clients that are refused while they send, and the end.
import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import type { S3AccessEntry } from "../../src/s3/http/access-entry.ts";
import { emptyAnswer, type Answer } from "../../src/s3/http/answer.ts";
import type { Answerer } from "../../src/s3/http/exchange.ts";
import type { Pace } from "../../src/s3/http/pace.ts";
import { S3Error } from "../../src/s3/http/s3-error.ts";
import { HttpServer } from "../../src/s3/http/server.ts";

interface Served {
  readonly server: HttpServer;
  readonly port: number;
  readonly url: string;
  readonly entries: S3AccessEntry[];
}

async function serve(answer: Answerer, pace?: Pace, connectionsMax?: number): Promise<Served> {
  const entries: S3AccessEntry[] = [];
  const onAnswered = (entry: S3AccessEntry): void => void entries.push(entry);
  const server = new HttpServer({ answer, pace, connectionsMax, onAnswered });
  const { port } = await server.listen(0, "127.0.0.1");
  onTestFinished(() => server.close(0));
  return { server, port, url: `http://127.0.0.1:${port}`, entries };
}

function dial(port: number): Socket {
  const socket = connect(port, "127.0.0.1");
  socket.on("error", () => undefined);
  onTestFinished(() => void socket.destroy());
  return socket;
}

/** All that comes until the other side ends. */
async function hear(socket: Socket): Promise<string> {
  let text = "";
  socket.setEncoding("latin1").on("data", (piece: string) => (text += piece));
  await once(socket, "close");
  return text;
}

const readAll: Answerer = async ({ incoming }) => {
  let length = 0;
  for await (const piece of incoming) length += (piece as Uint8Array).length;
  return { status: 200, headers: {}, body: String(length) };
};

const quick: Pace = { body: { windowMs: 150, bytesMin: 1000 }, answer: { windowMs: 150, bytesMin: 1000 } };
const head = (length: number, more = ""): string =>
  `PUT /b/k HTTP/1.1\r\nhost: x\r\ncontent-length: ${length}\r\n${more}\r\n`;

describe("a slow client", () => {
  it("that trickles its body is refused and disconnected, and others are served meanwhile", async () => {
    const { port, url, entries } = await serve(readAll, quick);
    const slow = dial(port);
    slow.write(head(1_000_000));
    const trickle = setInterval(() => slow.write("x"), 20);
    onTestFinished(() => clearInterval(trickle));
    const heard = hear(slow);
    expect(await (await fetch(url, { method: "PUT", body: "12345" })).text()).toBe("5");
    const text = await heard;
    expect(text).toMatch(/^HTTP\/1\.1 400 /);
    expect(text).toContain("<Code>RequestTimeout</Code>");
    // Which of the two ends first is a matter of the machine.
    await expect.poll(() => new Set(entries.map(({ code }) => code))).toEqual(new Set([undefined, "RequestTimeout"]));
  });

  it("that does not read its response is cut off, and its files are closed", async () => {
    let isClosed = false;
    async function* endless(): AsyncGenerator<Uint8Array> {
      try {
        for (;;) yield Buffer.alloc(100_000);
      } finally {
        isClosed = true;
      }
    }
    const { port, entries } = await serve(async () => ({ status: 200, headers: {}, body: endless() }), quick);
    const slow = dial(port);
    slow.write("GET /b/k HTTP/1.1\r\nhost: x\r\n\r\n");
    slow.pause();
    await expect.poll(() => entries.length, { timeout: 10_000 }).toBe(1);
    expect(isClosed).toBe(true);
    expect(entries[0]).toMatchObject({ status: 200, isWhole: false });
  });

  it("is not one whose gateway is slow", async () => {
    const { url } = await serve(async () => {
      // Time passes: this is a gateway that is slower than its clients may be.
      await new Promise((resolve) => setTimeout(resolve, 3 * quick.body.windowMs));
      return emptyAnswer(200);
    }, quick);
    expect((await fetch(url)).status).toBe(200);
  });

  it("is not one that waits for 100 Continue", async () => {
    const { port } = await serve(async (exchange) => {
      // Time passes: this is a gateway that is slower than its clients may be.
      await new Promise((resolve) => setTimeout(resolve, 3 * quick.body.windowMs));
      exchange.continue();
      return await readAll(exchange);
    }, quick);
    const client = dial(port);
    client.write(head(5, "expect: 100-continue\r\nconnection: close\r\n"));
    client.once("data", () => client.write("12345"));
    const heard = hear(client);
    expect(await heard).toMatch(/^HTTP\/1\.1 100 Continue\r\n\r\nHTTP\/1\.1 200 OK/);
  });
});

describe("a response", () => {
  const untouched = async (): Promise<void> => undefined;
  const readALittle = async (incoming: AsyncIterable<unknown>): Promise<void> => {
    for await (const _piece of incoming) return;
  };
  it.each([
    ["at once", untouched],
    ["in the middle", readALittle],
  ])("reaches a client that is refused %s while it sends a large body", async (_when, read) => {
    const { port } = await serve(async ({ incoming }) => {
      await read(incoming);
      throw new S3Error("AccessDenied");
    });
    const client = dial(port);
    const heard = hear(client);
    client.write(head(8_000_000));
    for (let count = 0; count < 80; count++)
      if (!client.write(Buffer.alloc(100_000))) await Promise.race([once(client, "drain"), once(client, "close")]);
    const text = await heard;
    expect(text).toMatch(/^HTTP\/1\.1 403 /);
    expect(text).toMatch(/<Code>AccessDenied<\/Code>.*<\/Error>$/);
    expect(text.toLowerCase()).toContain("connection: close");
  });

  it("whose stream fails is an error if it is small, and is cut off if it has begun", async () => {
    async function* failing(): AsyncGenerator<Uint8Array> {
      yield Buffer.alloc(1000);
      throw new Error("the disk is broken");
    }
    const answer = (length: number): Answer => ({
      status: 200,
      headers: { "content-length": String(length) },
      body: failing(),
    });
    const { url, entries } = await serve(async ({ incoming }) => answer(incoming.url === "/small" ? 2000 : 2_000_000));
    const small = await fetch(`${url}/small`);
    expect(small.status).toBe(500);
    expect(await small.text()).not.toContain("the disk is broken");
    await expect(fetch(`${url}/large`).then((large) => large.arrayBuffer())).rejects.toThrow();
    expect(entries.map(({ error }) => (error as Error).message)).toEqual(["the disk is broken", "the disk is broken"]);
  });

  it("with a header that cannot be sent becomes an error, and its stream is closed", async () => {
    let isClosed = false;
    async function* body(): AsyncGenerator<Uint8Array> {
      try {
        yield Buffer.alloc(100_000);
      } finally {
        isClosed = true;
      }
    }
    const { url, entries } = await serve(async () => {
      const opened = body();
      await opened.next();
      return { status: 200, headers: { "x-odd": "a\nb", "content-length": "100000" }, body: opened };
    });
    const answer = await fetch(url);
    expect([answer.status, await answer.text()]).toEqual([500, expect.stringContaining("<Code>InternalError</Code>")]);
    expect([isClosed, entries[0]?.status]).toEqual([true, 500]);
  });

  it.each(["//", "/%", "*", "/b/k?x=%zz", "http://[", "/\u00ff"])("is sent for the target %s", async (target) => {
    const { port, entries } = await serve(async () => {
      throw new S3Error("InvalidURI");
    });
    const client = dial(port);
    client.end(Buffer.from(`OPTIONS ${target} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n`, "latin1"));
    expect(await hear(client)).toMatch(/^HTTP\/1\.1 400 /);
    expect(entries.length).toBeLessThanOrEqual(1);
  });

  it("is logged with a presigned URL without its signature", async () => {
    const { url, entries } = await serve(async () => emptyAnswer(200));
    await fetch(`${url}/b/k?X-Amz-Expires=60&X-Amz-Signature=abc&x=1`);
    expect(entries[0]?.target).toBe("/b/k?X-Amz-Expires=60&X-Amz-Signature=-&x=1");
  });
});

describe("too many connections", () => {
  const get = "GET /b/k HTTP/1.1\r\nhost: x\r\n";

  /** Connections that the server has accepted; how many of them are open. */
  async function crowd({ port }: Served, count: number, max: number, text = ""): Promise<() => number> {
    let open = 0;
    for (let index = 0; index < count; index++) {
      const socket = dial(port);
      socket.once("connect", () => open++).once("close", () => open--);
      socket.resume().write(text);
    }
    await vi.waitFor(() => expect(open).toBe(max));
    return () => open;
  }

  it("that are idle, or never finish their head, keep no client out and stay limited", async () => {
    const served = await serve(readAll, undefined, 20);
    for (const text of ["", "GET /b/k HTTP/1.1\r\nx: "]) {
      const open = await crowd(served, 200, 20, text);
      expect(await (await fetch(served.url, { method: "PUT", body: "12345" })).text()).toBe("5");
      expect(served.server.connections).toBeLessThanOrEqual(20);
      expect(open()).toBeLessThanOrEqual(20);
    }
  });

  it("close the longest idle one, and none with a request", async () => {
    let release: () => void = () => undefined;
    const released = new Promise<void>((resolve) => (release = resolve));
    const served = await serve(
      async ({ incoming: { url } }) => {
        if (url === "/b/k") await released;
        return emptyAnswer(200);
      },
      undefined,
      3,
    );
    const busy = dial(served.port);
    busy.write(`${get}connection: close\r\n\r\n`);
    await vi.waitFor(() => expect(served.server.requestsUnderWay).toBe(1));
    const heard = hear(busy);
    const [first, second] = [dial(served.port), dial(served.port)];
    await vi.waitFor(() => expect(served.server.connections).toBe(3));
    // A request makes it younger.
    first.write("GET /quick HTTP/1.1\r\nhost: x\r\n\r\n");
    await once(first, "data");
    const closed = once(second, "close");
    dial(served.port);
    await closed;
    expect(first.destroyed).toBe(false);
    expect(served.server.connections).toBe(3);
    release();
    expect(await heard).toMatch(/^HTTP\/1\.1 200 /);
  });

  it("that all have a request get 503 SlowDown, and are served as soon as one ends", async () => {
    let release: () => void = () => undefined;
    const released = new Promise<void>((resolve) => (release = resolve));
    const served = await serve(
      async () => {
        await released;
        return emptyAnswer(200);
      },
      undefined,
      5,
    );
    await crowd(served, 5, 5, `${get}\r\n`);
    await vi.waitFor(() => expect(served.server.requestsUnderWay).toBe(5));
    const refused = await fetch(served.url, { method: "PUT", body: "x".repeat(100_000) });
    expect(refused.status).toBe(503);
    expect(refused.headers.get("connection")).toBe("close");
    expect(await refused.text()).toContain("<Code>SlowDown</Code>");
    expect((await fetch(served.url, { method: "HEAD" })).status).toBe(503);
    expect(served.server.connections).toBe(5);
    release();
    await vi.waitFor(async () => expect((await fetch(served.url)).status).toBe(200));
  });

  it("are not needed for an attack: one with hundreds of pipelined requests is closed", async () => {
    const served = await serve(() => new Promise(() => undefined));
    const flood = dial(served.port);
    const closed = new Promise((resolve) => flood.resume().once("close", resolve));
    let most = 0;
    const look = setInterval(() => (most = Math.max(most, served.server.requestsUnderWay)), 1);
    onTestFinished(() => clearInterval(look));
    flood.write(`${get}\r\n`.repeat(10_000));
    await closed;
    expect(most).toBeLessThanOrEqual(100);
    expect(served.server.connections).toBe(0);
  });

  it("beyond those that get a response are closed at once", async () => {
    const served = await serve(() => new Promise(() => undefined), undefined, 1);
    dial(served.port).write(`${get}\r\n`);
    await vi.waitFor(() => expect(served.server.requestsUnderWay).toBe(1));
    let open = 0;
    let closed = 0;
    for (let index = 0; index < 150; index++)
      dial(served.port)
        .once("connect", () => open++)
        .once("close", () => closed++);
    await vi.waitFor(() => expect([open, closed]).toEqual([150, 50]));
  });
});

describe("closing the gateway", () => {
  it("waits for running requests, not for idle connections, and announces it in responses", async () => {
    let release: () => void = () => undefined;
    const released = new Promise<void>((resolve) => (release = resolve));
    const { server, port } = await serve(async () => {
      await released;
      return emptyAnswer(200);
    });
    const idle = dial(port);
    const busy = dial(port);
    await Promise.all([once(idle, "connect"), once(busy, "connect")]);
    busy.write("GET / HTTP/1.1\r\nhost: x\r\n\r\n");
    await expect.poll(() => [server.connections, server.requestsUnderWay]).toEqual([2, 1]);
    const heard = hear(busy);
    const idleEnd = once(idle, "close");
    let isClosed = false;
    const closing = server.close(60_000).then(() => (isClosed = true));
    await idleEnd;
    expect(isClosed).toBe(false);
    release();
    await closing;
    expect((await heard).toLowerCase()).toContain("connection: close");
    expect(server.connections).toBe(0);
  });

  it("cuts off requests that run too long, and aborts their signal", async () => {
    const { server, port } = await serve(
      ({ signal }) =>
        new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason as Error))),
    );
    const busy = dial(port);
    busy.write("GET / HTTP/1.1\r\nhost: x\r\n\r\n");
    await expect.poll(() => server.requestsUnderWay).toBe(1);
    await server.close(50);
    await expect.poll(() => server.requestsUnderWay).toBe(0);
  });
});
