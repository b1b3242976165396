// Requests to a console, as a browser sends them.
import { mkdtempSync, rmSync } from "node:fs";
import { request, type IncomingHttpHeaders } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll } from "vitest";

/** A new directory for all tests of a file. */
export function makeSuiteScratch(): string {
  const directory = mkdtempSync(join(tmpdir(), "holdfast-console-"));
  // A large store takes a while.
  afterAll(() => rmSync(directory, { recursive: true, force: true }), 300_000);
  return directory;
}

export interface Reply {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
  readonly json: unknown;
}

export interface Asked {
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
}

export async function ask(
  port: number,
  path: string,
  { method = "GET", headers = {}, body }: Asked = {},
): Promise<Reply> {
  return await new Promise((resolve, reject) => {
    const sent = request({ host: "127.0.0.1", port, path, method, headers }, (answer) => {
      const chunks: Uint8Array[] = [];
      answer.on("data", (chunk: Uint8Array) => chunks.push(chunk));
      answer.on("end", () => {
        const text = Buffer.concat(chunks).toString();
        const isJson = answer.headers["content-type"]?.startsWith("application/json") === true;
        const json: unknown = isJson ? JSON.parse(text) : undefined;
        resolve({ status: answer.statusCode ?? 0, headers: answer.headers, text, json });
      });
      answer.on("error", reject);
    });
    sent.on("error", reject);
    sent.end(body);
  });
}

/** Opens the printed address, and returns the cookie that the browser keeps. */
export async function signIn(url: string): Promise<{ readonly port: number; readonly cookie: string }> {
  const { port, pathname, search } = new URL(url);
  const { headers } = await ask(Number(port), `${pathname}${search}`);
  return { port: Number(port), cookie: (headers["set-cookie"]?.[0] ?? "").split(";")[0] ?? "" };
}

/** Asks for an action as the page does. */
export async function act(port: number, cookie: string, name: string, body: object): Promise<Reply> {
  const headers = { cookie, origin: `http://127.0.0.1:${port}`, "content-type": "application/json" };
  return await ask(port, `/api/actions/${name}`, { method: "POST", headers, body: JSON.stringify(body) });
}
