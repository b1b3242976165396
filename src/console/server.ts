// A server for a console, as `holdfast console` starts it.
import { createServer as createHttpServer, type Server } from "node:http";
import { createServer as createHttpsServer } from "node:https";
import { isIP, type AddressInfo } from "node:net";
import { checkOptions, type OptionNames } from "../format/known-options.ts";
import type { Store } from "../index.ts";
import { createConsole, type ConsoleOptions, type StoreConsole } from "./console.ts";

/** Options of `startConsole`. */
export interface ConsoleServerOptions extends ConsoleOptions {
  /** TCP port; 0: any free port. Default 8484. */
  port?: number | undefined;
  /** Address to listen on. Beyond this machine it requires `tls` or `behindProxy`. Default "127.0.0.1". */
  host?: string | undefined;
  /** Certificate and key in PEM, for HTTPS. Default: none, HTTP. */
  tls?: { cert: string | Uint8Array; key: string | Uint8Array } | undefined;
  /**
   * True if a proxy with TLS is in front of the console, so that HTTP beyond this machine is
   * intended. Default false.
   */
  behindProxy?: boolean | undefined;
}

/** A running console. */
export interface RunningConsole extends StoreConsole {
  /** The address of the page, with the token. */
  readonly url: string;
  /** The TCP port. */
  readonly port: number;
}

const optionNames: OptionNames<Omit<ConsoleServerOptions, keyof ConsoleOptions>> = {
  port: true,
  host: true,
  tls: true,
  behindProxy: true,
};
const limits = { maxHeaderSize: 16 * 1024, headersTimeout: 10_000, requestTimeout: 30_000 };

/**
 * Starts a server with the console of a store. Throws a TypeError for a host beyond this machine
 * without `tls` or `behindProxy`; a port that is in use rejects with the error of Node.
 *
 * @example
 * ```ts
 * await using running = await startConsole(await openStore("/mnt/shop", { readOnly: true }));
 * console.log(running.url);
 * ```
 */
export async function startConsole(
  store: Pick<Store, "location" | "id">,
  options: ConsoleServerOptions = {},
): Promise<RunningConsole> {
  const { port: wanted = 8484, host = "127.0.0.1", tls, behindProxy = false, ...given } = options;
  checkOptions("startConsole", { port: wanted, host, tls, behindProxy }, optionNames);
  if (!isLoopback(host) && tls === undefined && !behindProxy)
    throw new TypeError(
      `startConsole: the host ${host} is reachable from other machines, and the token must not cross the network in the clear. Pass tls, or behindProxy if a proxy with TLS stands in front.`,
    );
  const hosts = [...(given.hosts ?? []), ...(isIP(host) === 0 ? [host] : [])];
  const secure = given.secure ?? (tls !== undefined || behindProxy);
  const shown = createConsole(store, { ...given, hosts, secure });
  const server =
    tls === undefined
      ? createHttpServer(limits, shown.handler)
      : createHttpsServer({ ...limits, cert: bufferOf(tls.cert), key: bufferOf(tls.key) }, shown.handler);
  try {
    await listen(server, wanted, host);
  } catch (error) {
    await shown.close();
    throw error;
  }
  const { port } = server.address() as AddressInfo;
  const close = async (): Promise<void> => {
    const closed = new Promise<void>((resolve) => server.close(() => resolve()));
    await shown.close();
    server.closeAllConnections();
    await closed;
  };
  const name = host === "0.0.0.0" || host === "::" ? "localhost" : host.includes(":") ? `[${host}]` : host;
  const { path = "/" } = given;
  const address = `${tls === undefined ? "http" : "https"}://${name}:${port}${path.endsWith("/") ? path : `${path}/`}`;
  const url = `${address}?token=${shown.token}`;
  return { handler: shown.handler, token: shown.token, url, port, close, [Symbol.asyncDispose]: close };
}

function isLoopback(host: string): boolean {
  return host === "localhost" || host === "::1" || /^127(\.\d{1,3}){3}$/.test(host);
}

async function listen(server: Server, port: number, host: string): Promise<void> {
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(port, host, () => {
      server.off("error", reject);
      resolve();
    });
  });
}

function bufferOf(pem: string | Uint8Array): string | Buffer {
  return typeof pem === "string" ? pem : Buffer.from(pem);
}
