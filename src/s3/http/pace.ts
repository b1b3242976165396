// Limits for slow clients: a request may wait for its client for a while, but not forever. Time
// that the gateway itself takes never counts.
import type { IncomingMessage, ServerResponse } from "node:http";

export interface PaceLimits {
  readonly windowMs: number;
  /**
   * A client is too slow if it moves fewer bytes than this in a window in which the gateway waits
   * for it.
   */
  readonly bytesMin: number;
}

/**
 * Limits for receiving a body and for sending a response. A media player that pauses gets more
 * time.
 */
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

  /** Watches the exchange until the returned function is called. */
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
        // A window begins when the gateway begins to wait. Earlier traffic does not count.
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
