// The gateway: from an HTTP request to an operation on the object store.
import { checkOptions, type OptionNames } from "../format/known-options.ts";
import type { Bucket, ObjectStore } from "../objects/index.ts";
import { corsHeaders, preflight } from "./access/cors.ts";
import { operator, ownerOf } from "./access/account.ts";
import { mustBeGranted } from "./access/grant.ts";
import { accountOf, mustHaveRight, type Principal, type S3Credentials } from "./access/principal.ts";
import { mayBePublic } from "./access/public-access.ts";
import type { S3AccessEntry } from "./http/access-entry.ts";
import { asS3Error, type Answer } from "./http/answer.ts";
import type { Exchange } from "./http/exchange.ts";
import { parseTarget } from "./http/raw-target.ts";
import { addressOf, bucketOfHost, findHeader, type S3Request } from "./http/request.ts";
import { S3Error } from "./http/s3-error.ts";
import { HttpServer } from "./http/server.ts";
import { checkBucketName, type Operation, type Place } from "./operations/operation.ts";
import { postObject } from "./operations/object/post-object.ts";
import { operationOf } from "./operations/router.ts";
import { verifySignature } from "./signature/verify.ts";
import { statusBucket, StatusPages } from "./status/status-pages.ts";

export interface S3GatewayOptions {
  /** Default 9000; 0: any free port. */
  port?: number | undefined;
  /** Default "127.0.0.1". */
  host?: string | undefined;
  credentials: readonly S3Credentials[];
  /** Default "us-east-1". */
  region?: string | undefined;
  /** Domain for virtual-host style. */
  domain?: string | undefined;
  tls?: { cert: string | Uint8Array; key: string | Uint8Array } | undefined;
  /** Whether `/-/metrics` is answered, without a signature as `/-/health` is. Default false. */
  metrics?: boolean | undefined;
  /**
   * How many connections may be open at a time. Beyond that the one that has waited for a request for
   * the longest is closed; where each has a request, a new one is answered 503 SlowDown. Default 1_000.
   */
  connectionsMax?: number | undefined;
  /** Told once for each request, when its answer has been sent: for an access log. */
  onAnswered?: ((entry: S3AccessEntry) => void) | undefined;
}

export interface S3Gateway extends AsyncDisposable {
  readonly url: string;
  readonly port: number;
  /** Finishes what is running, at most `drainMs` (default 10_000). */
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

export async function startS3Gateway(objects: ObjectStore, options: S3GatewayOptions): Promise<S3Gateway> {
  checkOptions("startS3Gateway", options, optionNames);
  const { port = 9000, host = "127.0.0.1", region = "us-east-1", tls } = options;
  const secrets = checkCredentials(options.credentials);
  const { connectionsMax } = options;
  if (connectionsMax !== undefined && !(Number.isSafeInteger(connectionsMax) && connectionsMax >= 1))
    throw new TypeError(`connectionsMax is a whole number from 1, not ${connectionsMax}.`);
  const accounts = new Set([operator, ...options.credentials.flatMap(({ account }) => account ?? [])]);
  const place: Place = { objects, region, accounts };
  const status = new StatusPages(objects, { hasMetrics: options.metrics === true });
  const server: HttpServer = new HttpServer({
    tls,
    connectionsMax,
    answer: (exchange) =>
      answerTo(exchange, place, {
        secrets,
        domain: options.domain,
        findStatus: (page) => status.find(page, exchange, server),
      }),
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
    // A signature names it between slashes and commas.
    if (!/^[\w.+@-]{1,128}$/.test(accessKeyId))
      throw new TypeError(
        `The accessKeyId ${JSON.stringify(accessKeyId)} must have 1 to 128 letters, digits and . _ + @ - characters.`,
      );
    if (!rightsNames.includes(rights))
      throw new TypeError(`rights is one of ${rightsNames.join(", ")}, not ${rights}.`);
    if (!Array.isArray(only) || only.some((place) => typeof place !== "string" || place === ""))
      throw new TypeError('only is a list of buckets, or of prefixes as "bucket/prefix".');
    if (account !== undefined && !/^[\w.@-]{1,64}$/.test(account))
      throw new TypeError(
        `The account ${JSON.stringify(account)} must have 1 to 64 letters, digits and . _ @ - characters.`,
      );
    if (byId.has(accessKeyId)) throw new TypeError(`There are two key pairs with the accessKeyId ${accessKeyId}.`);
    byId.set(accessKeyId, pair);
  }
  return byId;
}

interface Front {
  readonly secrets: ReadonlyMap<string, S3Credentials>;
  readonly domain: string | undefined;
  /** A page of the gateway's own, by its name. */
  readonly findStatus: (page: string) => Promise<Answer | undefined>;
}

async function answerTo(
  { id, incoming, continue: goOn, signal, note }: Exchange,
  place: Place,
  { secrets, domain, findStatus }: Front,
): Promise<Answer> {
  const { method = "", url = "", headers } = incoming;
  const target = parseTarget(url);
  const address = addressOf(target, headers.host, domain);
  const status = address.bucket === statusBucket ? await findStatus(address.key ?? "") : undefined;
  if (status !== undefined) return status;
  const hostBucket = bucketOfHost(headers.host ?? "", domain);
  const verified = verifySignature(
    { method, target, headers },
    {
      region: place.region,
      nowMs: Date.now(),
      path: hostBucket === undefined ? target.path : `/${hostBucket}${target.path}`,
      findSecret: (accessKeyId) => secrets.get(accessKeyId)?.secretAccessKey,
    },
  );
  const credentials = verified === undefined ? undefined : secrets.get(verified.accessKeyId);
  if (credentials !== undefined) note({ accessKeyId: credentials.accessKeyId });
  const principal: Principal = credentials === undefined ? { kind: "anonymous" } : { kind: "key", credentials };
  const trailerNames = (headers["x-amz-trailer"] ?? "")
    .toString()
    .split(",")
    .map((name) => name.trim().toLowerCase())
    .filter((name) => name !== "");
  const request: S3Request = {
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
  };
  const findBucket = async (): Promise<Bucket | undefined> =>
    address.bucket === undefined ? undefined : await place.objects.findBucket(checkBucketName(address.bucket));
  if (method === "OPTIONS") return await preflight(request, await findBucket());
  const cors = await corsHeaders(request, findBucket);
  try {
    const answered = await perform(request, place, (accessKeyId) => secrets.get(accessKeyId), note);
    return { ...answered, headers: { ...cors, ...answered.headers } };
  } catch (error) {
    throw asS3Error(error).with(cors);
  }
}

async function perform(
  request: S3Request,
  place: Place,
  findCredentials: (accessKeyId: string) => S3Credentials | undefined,
  note: Exchange["note"],
): Promise<Answer> {
  const { method, bucket, key, headers } = request;
  const isForm = (headers["content-type"] ?? "").toLowerCase().startsWith("multipart/form-data");
  if (method === "POST" && bucket !== undefined && key === undefined && isForm) {
    note({ operation: "PostObject" });
    return await postObject(request, place, findCredentials);
  }
  const operation = operationOf(request);
  note({ operation: operation.name });
  await mustAllow(operation, request, place);
  return await operation.run(request, place);
}

/** What the key pair may do, and then what the bucket grants. AccessDenied, NoSuchBucket. */
async function mustAllow(operation: Operation, request: S3Request, { objects }: Place): Promise<void> {
  const { principal, bucket, key, query } = request;
  const { name, need } = operation;
  if (bucket === undefined) {
    // Which buckets are shown is decided by the operation.
    if (principal.kind === "anonymous") throw new S3Error("AccessDenied");
    return;
  }
  if (principal.kind === "key") {
    // Each of its keys is decided by the operation, or it tells no more than that the bucket is there.
    const isOfAny = ["DeleteObjects", "HeadBucket", "GetBucketLocation"].includes(name);
    const prefix = key ?? (need === "read" ? (query.get("prefix") ?? "") : "");
    const first = isOfAny ? firstPrefix(principal.credentials, bucket) : prefix;
    mustHaveRight(principal.credentials, need, { bucket, prefix: first });
  } else if (!mayBePublic(name)) throw new S3Error("AccessDenied");
  const expected = findHeader(request, "x-amz-expected-bucket-owner");
  const isOperator = principal.kind === "key" && accountOf(principal) === undefined;
  if (name === "CreateBucket" || (isOperator && expected === undefined)) return;
  // Each of the keys is decided by the operation.
  if (name === "DeleteObjects" && expected === undefined) return;
  const named = checkBucketName(bucket);
  // What is not signed does not learn whether a bucket is there.
  const found = principal.kind === "anonymous" ? await objects.findBucket(named) : await objects.bucket(named);
  if (found === undefined) throw new S3Error("AccessDenied");
  await mustBeGranted(request, found, { operation: name, key, versionId: query.get("versionId") });
  // A number is an account of AWS, which clients cannot do without.
  if (expected !== undefined && !/^[0-9]{12}$/.test(expected) && expected !== (await ownerOf(found)))
    throw new S3Error("AccessDenied");
}

function firstPrefix({ only = [] }: S3Credentials, bucket: string): string {
  const place = only.find((name) => name === bucket || name.startsWith(`${bucket}/`)) ?? bucket;
  return place.slice(bucket.length + 1);
}
