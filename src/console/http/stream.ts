// The stream of a page: sends samples and activity as server-sent events while the page is visible.
import type { ServerResponse } from "node:http";
import type { Sampler, SamplerUpdate } from "../watch/sampler.ts";
import { sendHead } from "./answer.ts";

/** Sent this often, so that proxies keep a quiet stream open. */
const aliveMs = 15_000;
/**
 * A page that does not read is disconnected at this size. It reconnects and gets the newest sample.
 */
const unreadBytesMax = 1024 * 1024;

export class Streams {
  readonly #open = new Set<ServerResponse>();

  /** How many pages are connected. */
  get count(): number {
    return this.#open.size;
  }

  start(response: ServerResponse, sampler: Sampler): void {
    sendHead(response, 200, { "Content-Type": "text/event-stream; charset=utf-8", "X-Accel-Buffering": "no" });
    const send = (event: string, data: unknown): void => {
      if (response.writableLength > unreadBytesMax) response.destroy();
      else response.write(`event: ${event}\ndata: ${JSON.stringify(data)}\n\n`);
    };
    response.write("retry: 1000\n\n");
    send("start", { history: sampler.history, activity: sampler.activity });
    const stop = sampler.listen(({ sample, activity }: SamplerUpdate) => {
      send("sample", { sample, point: sampler.history.at(-1) });
      if (activity.length > 0) send("activity", activity);
    });
    const timer = setInterval(() => response.write(": alive\n\n"), aliveMs);
    this.#open.add(response);
    response.once("close", () => {
      clearInterval(timer);
      stop();
      this.#open.delete(response);
    });
  }

  close(): void {
    for (const response of this.#open) response.end();
  }
}
