// Guard: decides who may use a console. It refuses other hosts (DNS rebinding), other origins
// (forged requests), and anyone who has neither the token nor a user name from the program.
import { createHash, randomBytes, timingSafeEqual } from "node:crypto";
import type { IncomingMessage } from "node:http";
import { isIP } from "node:net";
import { RequestError } from "./request-error.ts";

export interface GuardOptions {
  /** Host names that the page may be opened under, besides localhost and IP addresses. */
  readonly hosts: readonly string[];
  /** Returns the name of the user, or undefined for a stranger. Absent: the token decides. */
  readonly authorize?: ((request: IncomingMessage) => string | undefined | Promise<string | undefined>) | undefined;
  /** The name of the user who has the token. */
  readonly user: string;
  readonly path: string;
}

export class Guard {
  readonly token: string = randomBytes(32).toString("base64url");
  readonly #options: GuardOptions;
  /** Differs from the token, which an address bar, a history or a log may keep. */
  readonly #session = randomBytes(32).toString("base64url");
  readonly #cookie: string;

  constructor(options: GuardOptions) {
    this.#options = options;
    // Cookies ignore ports: two consoles on one machine must not overwrite each other's.
    this.#cookie = `holdfast-console-${digest(this.token).toString("hex").slice(0, 12)}`;
  }

  /**
   * Throws a RequestError unless the host is an IP address, localhost or an allowed name. An
   * attacker can make a name of their own resolve to this machine.
   */
  mustBeOwnHost({ headers }: IncomingMessage): void {
    const host = hostOf(headers.host ?? "");
    const isOwn =
      host === "localhost" || isIP(host) !== 0 || this.#options.hosts.some((name) => name.toLowerCase() === host);
    if (!isOwn)
      throw new RequestError(421, "WRONG_HOST", `This console is not served under the name ${host || "(none)"}.`);
  }

  /** Throws a RequestError for a request made by the page of another site. */
  mustBeOwnOrigin({ headers, method }: IncomingMessage): void {
    const site = headers["sec-fetch-site"];
    const { origin } = headers;
    const changes = method !== "GET" && method !== "HEAD";
    // Browsers send the origin with every POST. A proxy may end TLS, so the scheme is not compared.
    const isOwn = origin === undefined ? !changes : origin.replace(/^https?:\/\//, "") === headers.host;
    const isOwnSite = site === undefined || site === "same-origin" || (!changes && site === "none");
    if (!isOwn || !isOwnSite) throw new RequestError(403, "WRONG_ORIGIN", "Another site's page has made this request.");
    if (changes && headers["content-type"]?.split(";")[0] !== "application/json")
      throw new RequestError(415, "WRONG_REQUEST", "Send JSON.");
  }

  /** Returns the name of the user. Throws a RequestError for a stranger. */
  async userOf(request: IncomingMessage): Promise<string> {
    const { authorize, user } = this.#options;
    const isOwn = (): boolean => this.#hasSession(request) || this.#hasToken(request);
    const name = authorize === undefined ? isOwn() && user : await authorize(request);
    if (name === undefined || name === false || name === "")
      throw new RequestError(401, "NO_TOKEN", "Open the address that the console printed: it has the token.");
    return name;
  }

  /** Returns the cookie for a request that has the token in its address. Throws a RequestError for a wrong one. */
  cookieFor(token: string, { isSecure }: { readonly isSecure: boolean }): string {
    if (!isSame(token, this.token)) throw new RequestError(401, "NO_TOKEN", "This token is of another console.");
    const secure = isSecure ? "; Secure" : "";
    return `${this.#cookie}=${this.#session}; Path=${this.#options.path}; HttpOnly; SameSite=Strict${secure}`;
  }

  /** For programs that keep no cookies, such as Prometheus. Browsers never send this header of their own accord. */
  #hasToken({ headers: { authorization = "" } }: IncomingMessage): boolean {
    return authorization.startsWith("Bearer ") && isSame(authorization.slice("Bearer ".length), this.token);
  }

  #hasSession({ headers }: IncomingMessage): boolean {
    const cookies = (headers.cookie ?? "").split(/; */);
    return cookies.some((cookie) => {
      const at = cookie.indexOf("=");
      return cookie.slice(0, at) === this.#cookie && isSame(cookie.slice(at + 1), this.#session);
    });
  }
}

/** Returns the host name without its port and without the brackets of IPv6. */
function hostOf(host: string): string {
  return host
    .toLowerCase()
    .replace(/:\d+$/, "")
    .replace(/^\[(.*)\]$/, "$1");
}

/** Compares two texts in a time that does not depend on their content. */
function isSame(one: string, other: string): boolean {
  return timingSafeEqual(digest(one), digest(other));
}

function digest(text: string): Buffer {
  return createHash("sha256").update(text).digest();
}
