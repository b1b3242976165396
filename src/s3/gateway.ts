// The gateway: from an HTTP request to an operation on the object store.
import { checkOptions, type OptionNames } from "../format/known-options.ts";
import type { Bucket, ObjectStore } from "../objects/index.ts";
import { corsHeaders, preflight } from "./access/cors.ts";
import { operator } from "./access/account.ts";
import { mayBeUnsigned } from "./access/actions.ts";
import { hasGrants, hideAbsence, mustBeExpectedOwner, mustBeGranted } from "./access/grant.ts";
import { mustHaveRight, type Principal, type S3Credentials } from "./access/principal.ts";
import type { S3AccessEntry } from "./http/access-entry.ts";
import { asS3Error, type Answer } from "./http/answer.ts";
import type { Exchange } from "./http/exchange.ts";
import { parseTarget, type RawTarget } from "./http/raw-target.ts";
import { addressOf, bucketOfHost, type RequestAddress, type S3Request } from "./http/request.ts";
import { S3Error } from "./http/s3-error.ts";
import { HttpServer } from "./http/server.ts";
import { bucketOf, bucketOfAnybody, checkBucketName, type Operation, type Service } from "./operations/operation.ts";
import { postObject } from "./operations/object/post-object.ts";
import { operationOf, subResources } from "./operations/router.ts";
import { verifySignature } from "./signature/verify.ts";
import { statusBucket, StatusPages } from "./status/status-pages.ts";
import { tracedAnswer } from "./traced-answer.ts";

/** Options of `startS3Gateway`. */
export interface S3GatewayOptions {
  /** TCP port; 0: any free port. Default 9000. */
  port?: number | undefined;
  /** Address to listen on. Default "127.0.0.1". */
  host?: string | undefined;
  /** The key pairs that may sign requests. */
  credentials: readonly S3Credentials[];
  /** Region that clients must sign for. Default "us-east-1". */
  region?: string | undefined;
  /** Domain for virtual-host style requests. Default: none, path style only. */
  domain?: string | undefined;
  /** Certificate and key in PEM, for HTTPS. Default: none, HTTP. */
  tls?: { cert: string | Uint8Array; key: string | Uint8Array } | undefined;
  /** Serves `/-/metrics`, without a signature, like `/-/health`. Default false. */
  metrics?: boolean | undefined;
  /**
   * How many connections may be open at a time. For a further one, the gateway closes the
   * connection that has been idle for longest, or else the one with the oldest unsigned upload. If
   * neither exists, it answers the new connection with 503 SlowDown. Default 1,000.
   */
  connectionsMax?: number | undefined;
  /** Called once for each request after its answer was sent, for an access log. Default: none. */
  onAnswered?: ((entry: S3AccessEntry) => void) | undefined;
}

/** A running gateway. */
export interface S3Gateway extends AsyncDisposable {
  /** The URL of the gateway. */
  readonly url: string;
  /** The TCP port of the gateway. */
  readonly port: number;
  /**
   * Stops accepting requests, waits at most `drainMs` (default 10,000) for those in progress, and
   * closes the gateway. The object store stays open.
   */
  close(options?: { drainMs?: number | undefined }): Promise<void>;
}

const optionNames: OptionNames<S3GatewayOptions> = {
  port: true,
  host: true,
  credentials: true,
  region: true,
  domain: true,
  tls: true,
  metrics: true,
  connectionsMax: true,
  onAnswered: true,
};
const drainMsDefault = 10_000;

/**
 * Starts an S3 gateway on an object store. Any number of gateways may serve one folder. Throws a
 * TypeError for invalid options or credentials; a port that is in use rejects with the error of
 * Node.
 *
 * @example
 * ```ts
 * await using objects = await openObjects("/mnt/shop/objects");
 * const credentials = [{ accessKeyId: "shop", secretAccessKey: "…" }];
 * await using gateway = await startS3Gateway(objects, { credentials });
 * ```
 */
export async function startS3Gateway(objects: ObjectStore, options: S3GatewayOptions): Promise<S3Gateway> {
  checkOptions("startS3Gateway", options, optionNames);
  const { port = 9000, host = "127.0.0.1", region = "us-east-1", tls } = options;
  const secrets = checkCredentials(options.credentials);
  const { connectionsMax } = options;
  if (connectionsMax !== undefined && !(Number.isSafeInteger(connectionsMax) && connectionsMax >= 1))
    throw new TypeError(`connectionsMax must be a whole number from 1, not ${connectionsMax}.`);
  const accounts = new Set([operator, ...options.credentials.flatMap(({ account }) => account ?? [])]);
  const service: Service = { objects, region, accounts };
  const status = new StatusPages(objects, { hasMetrics: options.metrics === true });
  const server: HttpServer = new HttpServer({
    tls,
    connectionsMax,
    answer: (exchange) =>
      tracedAnswer(exchange, objects.directory, (traced) =>
        answerTo(traced, service, {
          secrets,
          domain: options.domain,
          findStatus: (page) => status.find(page, traced, server),
        }),
      ),
    onAnswered: (entry) => {
      status.add(entry);
      options.onAnswered?.(entry);
    },
  });
  const address = await server.listen(port, host);
  const scheme = tls === undefined ? "http" : "https";
  const close: S3Gateway["close"] = async (closing = {}) => {
    checkOptions("close", closing, { drainMs: true });
    await server.close(closing.drainMs ?? drainMsDefault);
  };
  return {
    url: `${scheme}://${host.includes(":") ? `[${host}]` : host}:${address.port}`,
    port: address.port,
    close,
    [Symbol.asyncDispose]: () => close(),
  };
}

const credentialNames: OptionNames<S3Credentials> = {
  accessKeyId: true,
  secretAccessKey: true,
  rights: true,
  only: true,
  account: true,
};
const rightsNames = ["owner", "read-write", "read-only"];

function checkCredentials(credentials: readonly S3Credentials[]): ReadonlyMap<string, S3Credentials> {
  const byId = new Map<string, S3Credentials>();
  for (const pair of credentials) {
    checkOptions("a key pair", pair, credentialNames);
    const { accessKeyId, secretAccessKey, rights = "owner", only = [], account } = pair;
    if (typeof accessKeyId !== "string" || typeof secretAccessKey !== "string" || secretAccessKey === "")
      throw new TypeError("A key pair needs an accessKeyId and a secretAccessKey.");
    // An access key id must not contain slashes or commas: these enclose it in a signature.
    if (!/^[\w.+@-]{1,128}$/.test(accessKeyId))
      throw new TypeError(
        `The accessKeyId ${JSON.stringify(accessKeyId)} must have 1 to 128 letters, digits and . _ + @ - characters.`,
      );
    if (!rightsNames.includes(rights))
      throw new TypeError(`rights is one of ${rightsNames.join(", ")}, not ${rights}.`);
    if (!Array.isArray(only) || only.some((place) => typeof place !== "string" || place === ""))
      throw new TypeError('only must be a list of buckets, or of prefixes such as "bucket/prefix".');
    if (account !== undefined && !/^[\w.@-]{1,64}$/.test(account))
      throw new TypeError(
        `The account ${JSON.stringify(account)} must have 1 to 64 letters, digits and . _ @ - characters.`,
      );
    if (byId.has(accessKeyId)) throw new TypeError(`There are two key pairs with the accessKeyId ${accessKeyId}.`);
    byId.set(accessKeyId, pair);
  }
  return byId;
}

interface GatewayContext {
  readonly secrets: ReadonlyMap<string, S3Credentials>;
  readonly domain: string | undefined;
  /** A status page of the gateway, by name. */
  readonly findStatus: (page: string) => Promise<Answer | undefined>;
}

async function answerTo(exchange: Exchange, service: Service, front: GatewayContext): Promise<Answer> {
  const { incoming, note } = exchange;
  const { method = "", url = "", headers } = incoming;
  const target = parseTarget(url);
  const address = addressOf(target, headers.host, front.domain);
  const status = address.bucket === statusBucket ? await front.findStatus(address.key ?? "") : undefined;
  if (status !== undefined) return status;
  const findBucket = async (): Promise<Bucket | undefined> =>
    address.bucket === undefined ? undefined : await service.objects.findBucket(checkBucketName(address.bucket));
  // A preflight request is unsigned. Its address is that of the request that the browser wants to
  // send.
  if (method === "OPTIONS") return await preflight(headers, await findBucket());
  const cors = (): Promise<Readonly<Record<string, string>>> => corsHeaders({ method, headers }, findBucket);
  try {
    const request = identify(exchange, { target, address }, service, front);
    const answered = await perform(request, service, (accessKeyId) => front.secrets.get(accessKeyId), note);
    return { ...answered, headers: { ...(await cors()), ...answered.headers } };
  } catch (error) {
    // Without these headers, the browser hides the error from the page.
    throw asS3Error(error).with(await cors());
  }
}

/**
 * Identifies the sender and the target. Throws S3Error for a wrong signature, before anything is
 * looked up.
 */
function identify(
  { id, incoming, continue: goOn, signal, note, giveWay }: Exchange,
  { target, address }: { readonly target: RawTarget; readonly address: RequestAddress },
  service: Service,
  { secrets, domain }: GatewayContext,
): S3Request {
  const { method = "", headers } = incoming;
  const hostBucket = bucketOfHost(headers.host ?? "", domain);
  const verified = verifySignature(
    { method, target, headers },
    {
      region: service.region,
      nowMs: Date.now(),
      path: hostBucket === undefined ? target.path : `/${hostBucket}${target.path}`,
      subResources,
      findSecret: (accessKeyId) => secrets.get(accessKeyId)?.secretAccessKey,
    },
  );
  const credentials = verified === undefined ? undefined : secrets.get(verified.accessKeyId);
  if (credentials !== undefined) note({ accessKeyId: credentials.accessKeyId });
  else giveWay(true);
  const principal: Principal = credentials === undefined ? { kind: "anonymous" } : { kind: "key", credentials };
  const trailerNames = (headers["x-amz-trailer"] ?? "")
    .toString()
    .split(",")
    .map((name) => name.trim().toLowerCase())
    .filter((name) => name !== "");
  return {
    id,
    method,
    ...address,
    query: new Map(target.query),
    headers: { ...verified?.headers, ...headers },
    principal,
    verified,
    trailerNames,
    incoming,
    continue: goOn,
    signal,
    giveWay,
  };
}

async function perform(
  request: S3Request,
  service: Service,
  findCredentials: (accessKeyId: string) => S3Credentials | undefined,
  note: Exchange["note"],
): Promise<Answer> {
  const { method, bucket, key, headers } = request;
  const isForm = (headers["content-type"] ?? "").toLowerCase().startsWith("multipart/form-data");
  if (method === "POST" && bucket !== undefined && key === undefined && isForm) {
    note({ operation: "PostObject" });
    return await postObject(request, service, findCredentials);
  }
  const operation = operationOf(request);
  note({ operation: operation.name });
  await mustAllow(operation, request, service);
  try {
    return await operation.run(request, service);
  } catch (error) {
    if (bucket === undefined || key === undefined) throw error;
    return await hideAbsence(error, request, await bucketOf(request, service), { key });
  }
}

/**
 * Checks the rights of the key pair, then the grants of the bucket. Throws AccessDenied or
 * NoSuchBucket.
 */
async function mustAllow(operation: Operation, request: S3Request, service: Service): Promise<void> {
  const { principal, bucket, key, query } = request;
  const { name, need } = operation;
  if (principal.kind === "anonymous" && !mayBeUnsigned(name)) throw new S3Error("AccessDenied");
  // ListBuckets itself decides which buckets it shows.
  if (bucket === undefined) return;
  if (principal.kind === "key") {
    // DeleteObjects checks each key itself; the others only reveal that the bucket exists.
    const isOfAny = ["DeleteObjects", "HeadBucket", "GetBucketLocation"].includes(name);
    const prefix = key ?? (need === "read" ? (query.get("prefix") ?? "") : "");
    const first = isOfAny ? firstPrefix(principal.credentials, bucket) : prefix;
    mustHaveRight(principal.credentials, need, { bucket, prefix: first });
  }
  if (name === "CreateBucket") return;
  const found = await bucketOfAnybody(request, service);
  // DeleteObjects checks each key. Its document is read only if the bucket grants something to
  // others.
  if (name === "DeleteObjects") {
    if (principal.kind === "anonymous" && !(await hasGrants(found))) throw new S3Error("AccessDenied");
  } else await mustBeGranted(request, found, { operation: name, key, versionId: query.get("versionId") });
  await mustBeExpectedOwner(request, found, "x-amz-expected-bucket-owner");
}

function firstPrefix({ only = [] }: S3Credentials, bucket: string): string {
  const service = only.find((name) => name === bucket || name.startsWith(`${bucket}/`)) ?? bucket;
  return service.slice(bucket.length + 1);
}
