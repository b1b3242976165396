// Answers of a console: the headers of every answer, JSON, the page and downloads.
import type { ServerResponse } from "node:http";
import { pipeline } from "node:stream/promises";
import { Readable } from "node:stream";
import type { RequestError } from "./request-error.ts";

/**
 * Forbids scripts, styles and images of other hosts, inline scripts, and frames around the page.
 */
const policy =
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; " +
  "form-action 'none'; base-uri 'none'; frame-ancestors 'none'";

const everyAnswer = {
  "Content-Security-Policy": policy,
  "X-Content-Type-Options": "nosniff",
  "Referrer-Policy": "no-referrer",
  "Cross-Origin-Opener-Policy": "same-origin",
  "Cross-Origin-Resource-Policy": "same-origin",
  "Cache-Control": "no-store",
};

/** A file to save, in chunks. */
export interface Download {
  readonly name: string;
  readonly size?: number;
  readonly body: AsyncIterable<Uint8Array>;
}

export function sendHead(response: ServerResponse, status: number, headers: Readonly<Record<string, string>>): void {
  response.writeHead(status, { ...everyAnswer, ...headers });
}

export function sendText(
  response: ServerResponse,
  status: number,
  type: string,
  text: string,
  headers: Readonly<Record<string, string>> = {},
): void {
  const body = Buffer.from(text);
  sendHead(response, status, {
    ...headers,
    "Content-Type": `${type}; charset=utf-8`,
    "Content-Length": String(body.length),
  });
  response.end(body);
}

export function sendJson(response: ServerResponse, value: unknown, status = 200): void {
  sendText(response, status, "application/json", JSON.stringify(value));
}

export function sendError(response: ServerResponse, { status, code, message }: RequestError): void {
  sendJson(response, { error: { code, message } }, status);
}

/** Sends a file to save, never a page: users control its content. */
export async function sendDownload(response: ServerResponse, { name, size, body }: Download): Promise<void> {
  const iterator = body[Symbol.asyncIterator]();
  // Read the first chunk before sending the head, so that a missing file is reported as an error.
  const first = await iterator.next();
  const fallback = name.replaceAll(/[^ -~]|["\\%]/g, "_");
  sendHead(response, 200, {
    "Content-Security-Policy": "default-src 'none'; sandbox",
    "Content-Type": "application/octet-stream",
    "Content-Disposition": `attachment; filename="${fallback}"; filename*=UTF-8''${encoded(name)}`,
    ...(size === undefined ? {} : { "Content-Length": String(size) }),
  });
  const rest = async function* (): AsyncGenerator<Uint8Array> {
    try {
      for (let item = first; item.done !== true; item = await iterator.next()) yield item.value;
    } finally {
      await iterator.return?.();
    }
  };
  await pipeline(Readable.from(rest()), response);
}

function encoded(name: string): string {
  const whole = Buffer.from(name).toString();
  return encodeURIComponent(whole).replaceAll(/['()*]/g, (each) => `%${each.charCodeAt(0).toString(16)}`);
}
