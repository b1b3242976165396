// The console of a store: answers a request with the page, a stream, data or the result of an
// action.
import type { IncomingMessage, ServerResponse } from "node:http";
import { hostname, userInfo } from "node:os";
import { checkOptions, type OptionNames } from "../format/known-options.ts";
import type { Store } from "../index.ts";
import { Actions, type ConsoleAction } from "./actions.ts";
import { Checks } from "./checks.ts";
import { sendDownload, sendError, sendHead, sendJson, sendText } from "./http/answer.ts";
import { Guard } from "./http/guard.ts";
import { Query } from "./http/query.ts";
import { asRequestError, RequestError } from "./http/request-error.ts";
import { Streams } from "./http/stream.ts";
import { downloads, routes } from "./routes/routes.ts";
import type { Sources } from "./routes/route.ts";
import { StoreNumbers } from "./watch/store-numbers.ts";
import { Sampler } from "./watch/sampler.ts";
import { WatchedStore } from "./watch/watched-store.ts";

/** Options of `createConsole`. */
export interface ConsoleOptions {
  /** The path under which the program serves the console, such as "/console". Default "/". */
  path?: string | undefined;
  /**
   * Offers actions: release, replay, discard, pause, resume, restore, doctor. Default false: the
   * console only shows.
   */
  allowActions?: boolean | undefined;
  /**
   * Host names that the page may be opened under, besides localhost and IP addresses. A request for
   * another name is refused, which defeats DNS rebinding. Default: none.
   */
  hosts?: readonly string[] | undefined;
  /**
   * Returns the name of the user who sends a request, or undefined for a stranger. It replaces the
   * token with your own login. Default: whoever has the token acts as the user that runs this
   * process.
   */
  authorize?: ((request: IncomingMessage) => string | undefined | Promise<string | undefined>) | undefined;
  /**
   * True if browsers reach the console only by HTTPS: its cookie is then never sent without it.
   * Default false; with `startConsole`, true if `tls` or `behindProxy` is set.
   */
  secure?: boolean | undefined;
  /** Called after each action, for a log of your own. Default: none. */
  onAction?: ((action: ConsoleAction) => void) | undefined;
}

/** The console of a store. */
export interface StoreConsole extends AsyncDisposable {
  /** Answers the requests of `node:http`, and those of Express, Fastify and others that pass Node's own. */
  readonly handler: (request: IncomingMessage, response: ServerResponse) => void;
  /** The secret that opens the page: `<address>/?token=…`. Not used with `authorize`. */
  readonly token: string;
  /** Ends all streams and waits for actions in progress. The store that was passed stays open. */
  close(): Promise<void>;
}

const optionNames: OptionNames<ConsoleOptions> = {
  path: true,
  allowActions: true,
  hosts: true,
  authorize: true,
  secure: true,
  onAction: true,
};
/** Enough for an action, which names at most 200 tickets. */
const bodyBytesMax = 64 * 1024;

/**
 * Creates the console of a store: a request handler with a page that shows what is going on. It
 * opens the store a second time, read-only, and for writing while an action runs.
 *
 * Throws a TypeError for a store in memory, which no second process could show.
 *
 * @example
 * ```ts
 * const store = await openStore("/mnt/shop");
 * const { handler, token } = createConsole(store, { path: "/console" });
 * createServer(handler).listen(8080, "127.0.0.1");
 * console.log(`http://127.0.0.1:8080/console/?token=${token}`);
 * ```
 */
export function createConsole(store: Pick<Store, "location" | "id">, options: ConsoleOptions = {}): StoreConsole {
  checkOptions("createConsole", options, optionNames);
  if (store.location === "memory:") throw new TypeError("createConsole: a store in memory has no console.");
  const { path = "/", hosts = [], authorize } = options;
  if (!path.startsWith("/")) throw new TypeError(`createConsole: path must begin with /, not be ${path}.`);
  const base = path.endsWith("/") ? path : `${path}/`;
  const user = `${userInfo().username} on ${hostname()}`;
  const guard = new Guard({ hosts, authorize, user, path: base });
  const front = new ConsoleHandler(store, guard, base, options);
  const close = (): Promise<void> => front.close();
  return {
    handler: (request, response) => void front.handle(request, response),
    token: guard.token,
    close,
    [Symbol.asyncDispose]: close,
  };
}

class ConsoleHandler {
  readonly #guard: Guard;
  readonly #base: string;
  readonly #options: ConsoleOptions;
  readonly #sources: Sources;
  readonly #streams = new Streams();
  readonly #actions: Actions;
  readonly #numbers: StoreNumbers;
  #closing: Promise<void> | undefined;

  constructor(store: Pick<Store, "location" | "id">, guard: Guard, base: string, options: ConsoleOptions) {
    this.#guard = guard;
    this.#base = base;
    this.#options = options;
    const watched = new WatchedStore(store);
    this.#sources = { watched, sampler: new Sampler(watched), checks: new Checks(watched) };
    this.#numbers = new StoreNumbers(watched);
    const { location, id } = store;
    this.#actions = new Actions({ location, id, onAction: options.onAction });
  }

  /** Answers a request. Never rejects. */
  async handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    // The client is gone, or was disconnected because it did not read: nobody can receive an error.
    response.on("error", () => undefined);
    try {
      if (this.#closing !== undefined) throw new RequestError(503, "CLOSED", "The console was closed.");
      await this.#answer(request, response);
    } catch (error) {
      if (response.headersSent) response.destroy();
      else sendError(response, asRequestError(error));
    }
  }

  async close(): Promise<void> {
    await (this.#closing ??= this.#close());
  }

  async #close(): Promise<void> {
    const { watched, checks } = this.#sources;
    this.#streams.close();
    await this.#actions.close();
    await checks.close();
    await watched.close();
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    this.#guard.mustBeOwnHost(request);
    // Express strips the path under which a handler is mounted.
    const { originalUrl = request.url ?? "/" } = request as { originalUrl?: string };
    const { pathname, searchParams } = new URL(originalUrl, "http://console");
    if (`${pathname}/` === this.#base) return redirect(response, this.#base);
    if (!pathname.startsWith(this.#base)) throw new RequestError(404, "NO_SUCH_PAGE", "There is no such page.");
    const name = pathname.slice(this.#base.length);
    const isGet = request.method === "GET" || request.method === "HEAD";
    if (isGet && (await this.#sendAsset(name, searchParams, response))) return;
    this.#guard.mustBeOwnOrigin(request);
    const user = await this.#guard.userOf(request);
    if (isGet) await this.#read(name, new Query(searchParams), user, response);
    else if (request.method === "POST") await this.#act(name, user, request, response);
    else throw new RequestError(405, "WRONG_REQUEST", "Use GET or POST.");
  }

  /**
   * Sends the page or one of its files, which are no secret. Returns false if `name` is not one of
   * them.
   */
  async #sendAsset(name: string, parameters: URLSearchParams, response: ServerResponse): Promise<boolean> {
    const token = parameters.get("token");
    if (name === "" && token !== null) {
      const cookie = this.#guard.cookieFor(token, { isSecure: this.#options.secure === true });
      redirect(response, this.#base, { "Set-Cookie": cookie });
      return true;
    }
    const { page } = await import("../../dist/console/page.js");
    if (name === "") sendText(response, 200, "text/html", page.html);
    else if (name === "console.css") sendText(response, 200, "text/css", page.css);
    else if (name === "console.js") sendText(response, 200, "text/javascript", page.js);
    else return false;
    return true;
  }

  async #read(name: string, query: Query, user: string, response: ServerResponse): Promise<void> {
    const sources = this.#sources;
    const allowActions = this.#options.allowActions === true;
    if (name === "metrics") return sendText(response, 200, "text/plain; version=0.0.4", await this.#numbers.text());
    if (name === "api/me") return sendJson(response, { user, allowActions });
    if (name === "api/stream") return this.#streams.start(response, sources.sampler);
    const route = name.startsWith("api/") ? name.slice(4) : "";
    if (Object.hasOwn(routes, route)) return sendJson(response, await routes[route]?.(query, sources));
    if (!Object.hasOwn(downloads, route)) throw new RequestError(404, "NO_SUCH_PAGE", "There is no such page.");
    const download = await downloads[route]?.(query, sources);
    if (download !== undefined) await sendDownload(response, download);
  }

  async #act(name: string, by: string, request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { checks, sampler } = this.#sources;
    const what = await bodyOf(request);
    // It reads everything, and changes nothing.
    if (name === "api/verify") {
      checks.startVerification();
      return sendJson(response, { result: "Verification has begun." });
    }
    if (this.#options.allowActions !== true)
      throw new RequestError(
        403,
        "READ_ONLY",
        "This console only shows. Start it with --allow-actions to change something.",
      );
    if (!name.startsWith("api/actions/")) throw new RequestError(404, "NO_SUCH_PAGE", "There is no such page.");
    const action = name.slice("api/actions/".length);
    const who = { by, from: request.socket.remoteAddress ?? "" };
    const result =
      action === "doctor"
        ? await this.#actions.record(action, what, who, () => checks.examine())
        : await this.#actions.run(action, what, who);
    sampler.expire();
    sendJson(response, { result });
  }
}

function redirect(response: ServerResponse, to: string, headers: Readonly<Record<string, string>> = {}): void {
  sendHead(response, 303, { ...headers, Location: to, "Content-Length": "0" });
  response.end();
}

/** Returns the body of a request, even if a framework has read it already. */
async function bodyOf(request: IncomingMessage): Promise<Readonly<Record<string, unknown>>> {
  let { body } = request as { body?: unknown };
  if (body === undefined) {
    const chunks: Uint8Array[] = [];
    let size = 0;
    for await (const chunk of request as AsyncIterable<Uint8Array>) {
      size += chunk.length;
      if (size > bodyBytesMax) throw new RequestError(413, "WRONG_REQUEST", "The request is too large.");
      chunks.push(chunk);
    }
    try {
      body = JSON.parse(Buffer.concat(chunks).toString());
    } catch {
      throw new RequestError(400, "WRONG_REQUEST", "The request is not JSON.");
    }
  }
  if (typeof body !== "object" || body === null || Array.isArray(body))
    throw new RequestError(400, "WRONG_REQUEST", "The request is not a JSON object.");
  return body as Readonly<Record<string, unknown>>;
}
