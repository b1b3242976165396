// One request to an S3 service: signed by AWS Signature Version 4, and repeated while the service is not available.
import { isHoldfastError, holdfastError } from "../../errors.ts";
import type { Clock } from "../../ports/clock.ts";
import { canonicalHash, sha256 } from "../../s3/signature/canonical-request.ts";
import { encodeUri } from "../../s3/http/raw-target.ts";
import { scopeText, sign, signingKey } from "../../s3/signature/signing-key.ts";

/**
 * Access to a bucket with backups. The defaults are environment variables that other S3 clients use, too. Without a key
 * pair, the call throws NO_PERMISSION.
 */
export interface S3Options {
  /** URL of the service. Default `AWS_ENDPOINT_URL_S3`, `AWS_ENDPOINT_URL`, or that of AWS. */
  readonly endpoint?: string | undefined;
  /** Region to sign for. Default `AWS_REGION`, `AWS_DEFAULT_REGION`, or "us-east-1". */
  readonly region?: string | undefined;
  /** Id of the key pair. Default `AWS_ACCESS_KEY_ID`. */
  readonly accessKeyId?: string | undefined;
  /** Secret of the key pair. Default `AWS_SECRET_ACCESS_KEY`. */
  readonly secretAccessKey?: string | undefined;
  /** Token of a temporary key pair. Default `AWS_SESSION_TOKEN`, or none. */
  readonly sessionToken?: string | undefined;
}

export interface S3Request {
  readonly method: "GET" | "PUT" | "DELETE";
  readonly key: string;
  readonly query?: readonly (readonly [string, string])[];
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: Uint8Array;
}

export interface S3Answer {
  readonly status: number;
  readonly headers: Headers;
  readonly body: Uint8Array;
  /** The code of an S3 error; empty for another answer. */
  readonly code: string;
}

const triesMax = 6;
const firstPauseMs = 200;
const retried = new Set([429, 500, 502, 503, 504]);

export class S3Service {
  readonly #clock: Clock;
  readonly #bucket: string;
  readonly #base: URL;
  readonly #isPathStyle: boolean;
  readonly #region: string;
  readonly #keys: { readonly id: string; readonly secret: string; readonly token: string | undefined };

  constructor(clock: Clock, bucket: string, options: S3Options) {
    const { env } = process;
    const endpoint = options.endpoint ?? env["AWS_ENDPOINT_URL_S3"] ?? env["AWS_ENDPOINT_URL"];
    this.#clock = clock;
    this.#bucket = bucket;
    this.#region = options.region ?? env["AWS_REGION"] ?? env["AWS_DEFAULT_REGION"] ?? "us-east-1";
    // A bucket with dots in its name has no certificate of its own.
    this.#isPathStyle = endpoint !== undefined || bucket.includes(".");
    const host = `${this.#isPathStyle ? "" : `${bucket}.`}s3.${this.#region}.amazonaws.com`;
    this.#base = baseOf(endpoint ?? `https://${host}`);
    const id = options.accessKeyId ?? env["AWS_ACCESS_KEY_ID"];
    const secret = options.secretAccessKey ?? env["AWS_SECRET_ACCESS_KEY"];
    if (!id || !secret) {
      const message = `There are no credentials for s3://${bucket}: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY.`;
      throw holdfastError("NO_PERMISSION", message, { path: `s3://${bucket}` });
    }
    this.#keys = { id, secret, token: options.sessionToken ?? env["AWS_SESSION_TOKEN"] };
  }

  /** Throws for every answer but success, and "not found" for what may be absent. */
  async send(request: S3Request): Promise<S3Answer> {
    for (let tries = 1, pauseMs = firstPauseMs; ; tries++, pauseMs *= 2) {
      const last = tries >= triesMax;
      const answer = await this.#sendOnce(request).catch((error: unknown) => {
        if (last || isHoldfastError(error)) throw this.#failed(request, "it did not answer", error);
        return undefined;
      });
      if (answer !== undefined && (last || !retried.has(answer.status))) {
        if (answer.status < 300 || (answer.status === 404 && mayBeAbsent(request, answer))) return answer;
        throw this.#refused(request, answer);
      }
      await this.#clock.sleep(pauseMs);
    }
  }

  async #sendOnce({ method, key, query = [], headers = {}, body = new Uint8Array() }: S3Request): Promise<S3Answer> {
    const path = `${this.#base.pathname.replace(/\/$/, "")}/${this.#isPathStyle ? `${this.#bucket}/` : ""}${key}`;
    const time = new Date(this.#clock.wallMs()).toISOString().replaceAll(/[-:]|\.[0-9]{3}/g, "");
    const { id, secret, token } = this.#keys;
    const payload = sha256(body);
    const signed: Record<string, string> = {
      ...headers,
      host: this.#base.host,
      "x-amz-content-sha256": payload,
      "x-amz-date": time,
      ...(token === undefined ? {} : { "x-amz-security-token": token }),
    };
    const names = Object.keys(signed).sort();
    const scope = { day: time.slice(0, 8), region: this.#region };
    const canonical = canonicalHash({ method, target: { path, query }, headers: signed }, names, payload);
    const text = ["AWS4-HMAC-SHA256", time, scopeText(scope), canonical].join("\n");
    const signature = sign(signingKey(secret, scope), text);
    const { host: _, ...sent } = signed;
    const search = query.map(([name, value]) => `${encodeUri(name)}=${encodeUri(value)}`).join("&");
    const url = `${this.#base.origin}${path.split("/").map(encodeUri).join("/")}${search === "" ? "" : `?${search}`}`;
    const response = await fetch(url, {
      method,
      redirect: "manual",
      headers: {
        ...sent,
        authorization: `AWS4-HMAC-SHA256 Credential=${id}/${scopeText(scope)}, SignedHeaders=${names.join(";")}, Signature=${signature}`,
      },
      ...(method === "PUT" ? { body } : {}),
    });
    const bytes = new Uint8Array(await response.arrayBuffer());
    // A copy may fail after the service has begun its answer with 200.
    const mayFail = response.status >= 300 || headers["x-amz-copy-source"] !== undefined;
    const error = mayFail ? Buffer.from(bytes).toString("utf8") : "";
    const code = error.includes("<Error>") ? (/<Code>([A-Za-z0-9]+)<\/Code>/.exec(error)?.[1] ?? "") : "";
    const status = response.status < 300 && error.includes("<Error>") ? 500 : response.status;
    return { status, headers: response.headers, body: bytes, code };
  }

  #refused(request: S3Request, { status, code }: S3Answer): Error {
    const path = this.#shown(request);
    if (code === "NoSuchBucket")
      return holdfastError("NO_SUCH_BUCKET", `There is no bucket ${this.#bucket}. Create it first.`, {
        bucket: this.#bucket,
      });
    if (status === 403 || status === 401) {
      const message = `${path}: the service refused the request (${status} ${code}). Check the key pair, the region and the rights to read, list, write and delete.`;
      return holdfastError("NO_PERMISSION", message, { path });
    }
    return this.#failed(request, `it answered ${status} ${code}`, undefined);
  }

  #failed(request: S3Request, why: string, cause: unknown): Error {
    const path = this.#shown(request);
    const message = `${request.method} ${path} failed, at ${this.#base.origin}: ${why}. Run the same command again: it continues.`;
    return holdfastError("IO_ERROR", message, { path }, cause);
  }

  #shown({ key }: S3Request): string {
    return `s3://${this.#bucket}/${key}`;
  }
}

/** A listing or a put that finds nothing has met something else than the bucket. */
function mayBeAbsent({ method, key, headers = {} }: S3Request, { code }: S3Answer): boolean {
  if (method === "PUT") return headers["x-amz-copy-source"] !== undefined && code === "NoSuchKey";
  return key !== "" && code !== "NoSuchBucket";
}

function baseOf(endpoint: string): URL {
  try {
    const url = new URL(endpoint);
    if (["http:", "https:"].includes(url.protocol)) return url;
  } catch {
    // Reported below, as another protocol is.
  }
  const message = `The endpoint ${JSON.stringify(endpoint)} is not a URL that begins with http:// or https://.`;
  throw holdfastError("INVALID_PATH", message, { path: endpoint });
}
