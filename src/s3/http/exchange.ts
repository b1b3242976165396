// One request and its response: how operations see the request, and how the response is sent.
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import type { IncomingMessage, ServerResponse } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";
import { asS3Error, errorAnswer, type Answer } from "./answer.ts";
import { withoutSignature, type AccessFacts, type S3AccessEntry } from "./access-entry.ts";
import { S3Error } from "./s3-error.ts";

export interface Exchange {
  readonly id: string;
  readonly incoming: IncomingMessage;
  readonly continue: () => void;
  readonly signal: AbortSignal;
  /** Sets whether a new connection may replace this one until its body has arrived. */
  readonly giveWay: (mayGiveWay: boolean) => void;
  /** Adds facts to the access log entry. */
  readonly note: (facts: AccessFacts) => void;
}

export type Answerer = (exchange: Exchange) => Promise<Answer>;

/** A body up to this size is collected and sent at once: most objects are small. */
const smallBytesMax = 64 * 1024;
/** How long, and how much, a client may keep sending after the response. */
const lingerMs = 2_000;
const lingerBytesMax = 16 * 1024 * 1024;

export class RequestExchange {
  readonly incoming: IncomingMessage;
  readonly response: ServerResponse;
  readonly #id = newRequestId();
  readonly #gone = new AbortController();
  readonly #at = new Date();
  readonly #startMs = performance.now();
  #facts: AccessFacts = {};
  #hasContinued: boolean;
  #bytesOut = 0;
  #isClosing: () => boolean;
  #giveWay: Exchange["giveWay"];

  constructor(
    incoming: IncomingMessage,
    response: ServerResponse,
    {
      waits,
      isClosing,
      giveWay,
    }: { readonly waits: boolean; readonly isClosing: () => boolean; readonly giveWay: Exchange["giveWay"] },
  ) {
    this.incoming = incoming;
    this.response = response;
    this.#hasContinued = !waits;
    this.#isClosing = isClosing;
    this.#giveWay = giveWay;
    // The default iterator destroys the connection if it is left early, and then the response
    // cannot be sent.
    const iterator = (): AsyncIterator<unknown> => incoming.iterator({ destroyOnReturn: false });
    Object.defineProperty(incoming, Symbol.asyncIterator, { value: iterator });
    response.once("close", () => {
      // Aborted only if needed: an abort calls listeners and creates an error.
      if (!response.writableFinished) this.abort(new Error("The client has gone away."));
    });
  }

  /** False while the client waits for permission to send its body. */
  get hasContinued(): boolean {
    return this.#hasContinued;
  }

  abort(reason: Error): void {
    this.#gone.abort(reason);
  }

  /** Runs the operation and sends its response. Never rejects. */
  async run(answer: Answerer): Promise<S3AccessEntry> {
    let failure: S3Error | undefined;
    let answered: Answer;
    try {
      answered = await answer({
        id: this.#id,
        incoming: this.incoming,
        continue: () => this.#continue(),
        signal: this.#gone.signal,
        giveWay: this.#giveWay,
        note: (facts) => void (this.#facts = { ...this.#facts, ...facts }),
      });
      // The first chunk is read before anything is sent, so that a failure can still be reported.
      if (isSmallStream(answered)) answered = { ...answered, body: await gather(answered.body) };
    } catch (error) {
      failure = asS3Error(error);
      answered = this.#errorAnswer(failure);
    }
    try {
      await this.#send(answered);
    } catch (error) {
      failure ??= asS3Error(error);
      answered = await this.#giveUp(answered, failure);
    }
    return this.#entry(answered.status, failure);
  }

  /** Refuses a client that is too slow, if no response was sent yet, and closes its connection. */
  refuseSlow(what: "body" | "answer"): void {
    const { socket } = this.incoming;
    const error = new S3Error("RequestTimeout");
    if (what === "answer" || this.response.headersSent) socket.destroy();
    else {
      const { status, headers, body } = this.#errorAnswer(error);
      this.response.writeHead(status, { ...headers, connection: "close", "x-amz-request-id": this.#id });
      // Without this, a reader of the body would wait forever: for Node, a sent response ends the
      // request.
      this.response.once("close", () => this.incoming.destroy(error));
      this.response.end(body);
      socket.destroySoon();
    }
    this.abort(error);
  }

  /** Handles a response that could not be sent. Returns the response that the client got instead. */
  async #giveUp(answered: Answer, failure: S3Error): Promise<Answer> {
    const isTold = this.response.headersSent || this.response.destroyed;
    // Part of the response was sent. Closing the connection is the only way to show the client that
    // it is incomplete.
    if (isTold) this.response.destroy();
    if (isTold) return answered;
    const instead = this.#errorAnswer(failure);
    await discard(answered.body).catch(() => undefined);
    await this.#send(instead).catch(() => this.response.destroy());
    return instead;
  }

  #errorAnswer(error: S3Error): Answer {
    const { url = "" } = this.incoming;
    const query = url.indexOf("?");
    return errorAnswer(error, query < 0 ? url : url.slice(0, query), this.#id);
  }

  #continue(): void {
    if (!this.#hasContinued) this.response.writeContinue();
    this.#hasContinued = true;
  }

  async #send({ status, headers, body }: Answer): Promise<void> {
    const { incoming, response } = this;
    // The client disconnected, or was too slow and already has its response.
    if (response.destroyed || response.writableEnded) return await discard(body);
    const isHead = incoming.method === "HEAD";
    // Otherwise the rest of the body would be taken for the client's next request.
    const isUnread = !incoming.readableEnded && hasBody(incoming);
    const bytes = typeof body === "string" || body instanceof Uint8Array ? body : undefined;
    const isBare = isHead || status === 304 || body === undefined;
    // Sends headers and body in one call, Node's fastest path.
    response.writeHead(status, {
      "x-amz-request-id": this.#id,
      server: "Holdfast",
      ...(isUnread || this.#isClosing() ? { connection: "close" } : {}),
      ...given(headers),
      // Set after Content-Disposition: once Node knows the length, it refuses non-ASCII characters
      // in that header.
      ...(body === undefined && !isHead && status !== 204 && status !== 304 ? { "content-length": 0 } : {}),
      ...(bytes === undefined || isBare ? {} : { "content-length": Buffer.byteLength(bytes) }),
    });
    if (isBare) await discard(body);
    else if (bytes === undefined) for await (const piece of body as AsyncIterable<Uint8Array>) await this.#write(piece);
    else if (isUnread) await this.#write(bytes);
    else {
      this.#bytesOut = Buffer.byteLength(bytes);
      return void response.end(bytes);
    }
    if (isUnread) {
      this.#giveWay(true);
      if (isBare) response.flushHeaders();
      await this.#linger();
    }
    response.end();
  }

  /** Waits until the client reads on. */
  async #write(bytes: string | Uint8Array): Promise<void> {
    this.#bytesOut += Buffer.byteLength(bytes);
    if (this.response.write(bytes)) return;
    const signal = this.#gone.signal;
    signal.throwIfAborted();
    await once(this.response, "drain", { signal });
  }

  /**
   * If the gateway closed the connection while the client sends, the connection would be reset and
   * the response lost.
   */
  async #linger(): Promise<void> {
    const { incoming } = this;
    if (!this.#hasContinued) return;
    const { socket } = incoming;
    const most = socket.bytesRead + lingerBytesMax;
    incoming.on("data", () => {
      if (socket.bytesRead > most) incoming.destroy();
    });
    incoming.resume();
    const over = new AbortController();
    const signal = AbortSignal.any([over.signal, this.#gone.signal]);
    const ended = ["end", "close", "error"].map((name) => once(incoming, name, { signal }));
    await Promise.race([...ended, sleep(lingerMs, undefined, { signal, ref: false })]).catch(() => undefined);
    for (const each of ended) each.catch(() => undefined);
    over.abort();
  }

  #entry(status: number, failure: S3Error | undefined): S3AccessEntry {
    const { method = "", url = "", headers, socket } = this.incoming;
    const isGone = this.#gone.signal.aborted && !this.response.writableFinished;
    return {
      id: this.#id,
      at: this.#at,
      remote: socket.remoteAddress ?? "",
      method,
      target: withoutSignature(url),
      status,
      bytesIn: Number(headers["content-length"] ?? 0),
      bytesOut: this.#bytesOut,
      durationMs: performance.now() - this.#startMs,
      isWhole: !isGone,
      ...this.#facts,
      ...(failure === undefined ? {} : { code: failure.code }),
      ...(failure?.cause !== undefined && isOperators(failure) && !isGone ? { error: failure.cause } : {}),
    };
  }
}

/** True if the operator should see the cause. */
function isOperators({ status, isReported }: S3Error): boolean {
  return status >= 500 || isReported;
}

/**
 * Returns sixteen hex digits. They come from a UUID because Node buffers random bytes only for
 * UUIDs, which makes it the fastest source.
 */
function newRequestId(): string {
  return randomUUID().slice(19).replace("-", "").toUpperCase();
}

function given(headers: Answer["headers"]): Record<string, string> {
  const found: Record<string, string> = {};
  for (const [name, value] of Object.entries(headers)) if (value !== undefined) found[name] = value;
  return found;
}

export function hasBody({ headers }: IncomingMessage): boolean {
  return headers["transfer-encoding"] !== undefined || Number(headers["content-length"] ?? 0) > 0;
}

function isSmallStream(answer: Answer): answer is Answer & { readonly body: AsyncIterable<Uint8Array> } {
  const { body, headers } = answer;
  return (
    typeof body === "object" && !(body instanceof Uint8Array) && Number(headers["content-length"]) <= smallBytesMax
  );
}

async function gather(body: AsyncIterable<Uint8Array>): Promise<Uint8Array> {
  const pieces: Uint8Array[] = [];
  for await (const piece of body) pieces.push(piece);
  return pieces.length === 1 ? (pieces[0] as Uint8Array) : Buffer.concat(pieces);
}

/** A stream that is never read must still close its files. */
async function discard(body: Answer["body"]): Promise<void> {
  if (body === undefined || typeof body === "string" || body instanceof Uint8Array) return;
  await body[Symbol.asyncIterator]().return?.();
}
