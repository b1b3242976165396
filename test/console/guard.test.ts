// Who may talk to a console: the token, the host, the origin; and what every answer says to a browser.
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createConsole, startConsole, type ConsoleOptions, type RunningConsole } from "../../src/console/index.ts";
import { openStore, type Store } from "../../src/index.ts";
import { act, ask, makeSuiteScratch, signIn } from "./pages.ts";

const directory = makeSuiteScratch();
let store: Store;
let running: RunningConsole;
let cookie: string;
let port: number;

beforeAll(async () => {
  store = await openStore(directory);
  await (await store.events("main")).append({ type: "Sold", data: {} });
  running = await startConsole(store, { port: 0, hosts: ["shop.example"] });
  ({ port, cookie } = await signIn(running.url));
});

afterAll(async () => {
  await running.close();
  await store.close();
});

describe("the token", () => {
  test("becomes a cookie that no script can read and no other site can send, and leaves the address", async () => {
    const reply = await ask(port, `/?token=${running.token}`);
    expect(reply.status).toBe(303);
    expect(reply.headers.location).toBe("/");
    expect(reply.headers["set-cookie"]?.[0]).toMatch(
      /^holdfast-console-\w+=[\w-]{43}; Path=\/; HttpOnly; SameSite=Strict$/,
    );
    expect(reply.headers["set-cookie"]?.[0]).not.toContain(running.token);
  });

  test("is needed for data, for the stream and for actions, but the page itself is public", async () => {
    for (const path of ["/api/me", "/api/overview", "/api/stream", "/api/file-content?path=x"])
      expect([path, (await ask(port, path)).status]).toEqual([path, 401]);
    expect((await act(port, "", "pause", {})).status).toBe(401);
    expect((await ask(port, "/api/me", { headers: { cookie: `${cookie}x` } })).status).toBe(401);
    expect((await ask(port, "/")).status).toBe(200);
    expect((await ask(port, "/api/me", { headers: { cookie } })).json).toMatchObject({ allowActions: false });
  });

  test("of another console opens nothing", async () => {
    expect((await ask(port, "/?token=AAAA")).status).toBe(401);
  });
});

describe("a request", () => {
  test("under a foreign host name is refused, as after DNS rebinding", async () => {
    const statusOf = async (host: string): Promise<number> =>
      (await ask(port, "/api/me", { headers: { cookie, host } })).status;
    expect(await statusOf(`evil.example:${port}`)).toBe(421);
    expect(await statusOf("127.0.0.1.evil.example")).toBe(421);
    for (const host of [`localhost:${port}`, `127.0.0.1:${port}`, `[::1]:${port}`, "shop.example", "SHOP.example:80"])
      expect([host, await statusOf(host)]).toEqual([host, 200]);
  });

  test("of another site's page is refused, although the browser sent the cookie along", async () => {
    const post = async (headers: Record<string, string>): Promise<number> =>
      (await ask(port, "/api/verify", { method: "POST", headers: { cookie, ...headers }, body: "{}" })).status;
    const json = { "content-type": "application/json" };
    const own = { origin: `http://127.0.0.1:${port}` };
    expect(await post({ ...json })).toBe(403);
    expect(await post({ ...json, origin: "https://evil.example" })).toBe(403);
    expect(await post({ ...json, origin: "null" })).toBe(403);
    expect(await post({ ...json, origin: `http://127.0.0.1:${port + 1}` })).toBe(403);
    expect(await post({ ...json, ...own, "sec-fetch-site": "cross-site" })).toBe(403);
    expect(await post({ ...own, "content-type": "text/plain" })).toBe(415);
    expect(await post({ ...json, ...own, "sec-fetch-site": "same-origin" })).toBe(200);
    const read = async (site: string): Promise<number> =>
      (await ask(port, "/api/me", { headers: { cookie, "sec-fetch-site": site } })).status;
    expect([await read("cross-site"), await read("same-site"), await read("none")]).toEqual([403, 403, 200]);
  });

  test("that changes something is refused by a console that only shows", async () => {
    const reply = await act(port, cookie, "pause", { box: "labels" });
    expect([reply.status, reply.json]).toMatchObject([403, { error: { code: "READ_ONLY" } }]);
  });

  test("for what does not exist is answered with the reason, and creates nothing", async () => {
    const before = await (await openStore(store.location, { readOnly: true })).holders();
    const statusOf = async (path: string): Promise<number> =>
      (await ask(port, `/api/${path}`, { headers: { cookie } })).status;
    expect(await statusOf("nothing")).toBe(404);
    expect(await statusOf("constructor")).toBe(404);
    expect(await statusOf("events?log=other")).toBe(404);
    expect(await statusOf("events?log=..%2F..%2Fetc")).toBe(404);
    expect(await statusOf("tickets?box=none&state=error")).toBe(404);
    expect(await statusOf("keys?bucket=none")).toBe(404);
    expect(await statusOf("event?log=main&position=99")).toBe(404);
    expect(await statusOf("event?log=main&position=-1")).toBe(400);
    expect(await statusOf("events")).toBe(400);
    expect(await statusOf(`events?log=${"x".repeat(5000)}`)).toBe(400);
    expect((await store.holders()).length).toBe(before.length);
  });
});

test("every answer forbids foreign content, frames, sniffing, referrers and caches", async () => {
  for (const path of ["/", "/console.js", "/api/me", "/nothing"]) {
    const { headers } = await ask(port, path, { headers: { cookie } });
    expect(headers["content-security-policy"]).toContain("default-src 'none'; script-src 'self'; style-src 'self'");
    expect(headers["content-security-policy"]).toContain("frame-ancestors 'none'");
    expect(headers["content-security-policy"]).not.toContain("unsafe");
    expect(headers).toMatchObject({
      "x-content-type-options": "nosniff",
      "referrer-policy": "no-referrer",
      "cross-origin-opener-policy": "same-origin",
      "cache-control": "no-store",
    });
  }
});

test("a host beyond this machine demands TLS or a proxy with TLS in front", async () => {
  await expect(startConsole(store, { port: 0, host: "0.0.0.0" })).rejects.toThrow(/tls/);
  await expect(startConsole(store, { port: 0, host: "127.0.0.1.example" })).rejects.toThrow(/tls/);
  await using behind = await startConsole(store, { port: 0, host: "0.0.0.0", behindProxy: true });
  const { search } = new URL(behind.url);
  expect((await ask(behind.port, `/${search}`)).headers["set-cookie"]?.[0]).toContain("; Secure");
});

/** A server of another program with the console under a path. */
async function mounted(options: ConsoleOptions): Promise<{ port: number; token: string; close: () => Promise<void> }> {
  const { handler, token, close } = createConsole(store, { path: "/console", ...options });
  const server = createServer(handler);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const end = async (): Promise<void> => {
    await close();
    await new Promise((resolve) => server.close(resolve));
  };
  return { port: (server.address() as AddressInfo).port, token, close: end };
}

test("a program mounts it under a path, and its cookie is for that path alone", async () => {
  const { port: at, token, close } = await mounted({});
  expect((await ask(at, "/console")).headers.location).toBe("/console/");
  const reply = await ask(at, `/console/?token=${token}`);
  expect(reply.headers.location).toBe("/console/");
  expect(reply.headers["set-cookie"]?.[0]).toContain("Path=/console/;");
  expect((await ask(at, "/elsewhere")).status).toBe(404);
  await close();
});

test("a program's own login takes the place of the token", async () => {
  const authorize = ({ headers }: { headers: { [name: string]: unknown } }): string | undefined =>
    headers["x-user"] === "ada" ? "ada" : undefined;
  const { port: at, close } = await mounted({ authorize });
  expect((await ask(at, "/console/api/me")).status).toBe(401);
  expect((await ask(at, "/console/api/me", { headers: { "x-user": "ada" } })).json).toMatchObject({ user: "ada" });
  await close();
});

test("a store in memory has no console, and a misspelt option is named", async () => {
  await using memory = await openStore("memory:");
  expect(() => createConsole(memory)).toThrow(TypeError);
  expect(() => createConsole(store, { allowAction: true } as ConsoleOptions)).toThrow(/allowAction/);
});
