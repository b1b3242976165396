// Clients that are too slow: a request that waits for its client may wait for a while, and not for
// ever. A request that the gateway itself is slow with is never counted.
import type { IncomingMessage, ServerResponse } from "node:http";

export interface PaceLimits {
  readonly windowMs: number;
  /** Fewer bytes than this in a window, while the gateway waits for them: the client is too slow. */
  readonly bytesMin: number;
}

/** Of a body that comes, and of an answer that is taken. A player that pauses takes its time. */
export interface Pace {
  readonly body: PaceLimits;
  readonly answer: PaceLimits;
}

export const defaultPace: Pace = {
  body: { windowMs: 30_000, bytesMin: 4096 },
  answer: { windowMs: 120_000, bytesMin: 65_536 },
};

interface Watched {
  readonly incoming: IncomingMessage;
  readonly response: ServerResponse;
  /** False while the client waits for `100 Continue`. */
  readonly isWaitingForBody: () => boolean;
  readonly onSlow: (what: keyof Pace) => void;
  readonly since: Record<keyof Pace, Mark>;
}

interface Mark {
  readonly atMs: number;
  readonly bytes: number;
}

export class PaceKeeper {
  readonly #pace: Pace;
  readonly #watched = new Set<Watched>();
  readonly #timer: NodeJS.Timeout;

  constructor(pace: Pace) {
    this.#pace = pace;
    const everyMs = Math.min(pace.body.windowMs, pace.answer.windowMs) / 3;
    this.#timer = setInterval(() => this.#look(), everyMs).unref();
  }

  /** Until the function that it gives is called. */
  watch(exchange: Omit<Watched, "since">): () => void {
    const mark = (what: keyof Pace): Mark => ({ atMs: performance.now(), bytes: moved(exchange, what) });
    const watched = { ...exchange, since: { body: mark("body"), answer: mark("answer") } };
    this.#watched.add(watched);
    return () => void this.#watched.delete(watched);
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  #look(): void {
    for (const watched of this.#watched)
      for (const what of ["body", "answer"] as const) {
        const { windowMs, bytesMin } = this.#pace[what];
        const { atMs, bytes } = watched.since[what];
        const now = { atMs: performance.now(), bytes: moved(watched, what) };
        // A window begins when the wait begins: what came before it says nothing.
        if (!isWaiting(watched, what) || now.bytes - bytes >= bytesMin) watched.since[what] = now;
        else if (now.atMs - atMs >= windowMs) {
          this.#watched.delete(watched);
          watched.onSlow(what);
          break;
        }
      }
  }
}

function isWaiting({ incoming, response, isWaitingForBody }: Omit<Watched, "since">, what: keyof Pace): boolean {
  if (what === "answer") return response.writableLength > 0;
  return !incoming.complete && incoming.readableLength === 0 && isWaitingForBody();
}

function moved({ incoming: { socket } }: Omit<Watched, "since">, what: keyof Pace): number {
  return what === "body" ? socket.bytesRead : socket.bytesWritten - socket.writableLength;
}
