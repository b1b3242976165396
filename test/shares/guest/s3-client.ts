// A client of the gateway in its own guest, by the AWS SDK: it puts until it is told to finish, or
// reads every version that there is.
import * as s3 from "@aws-sdk/client-s3";
import { setTimeout as sleep } from "node:timers/promises";
import { finishSignal, report as tell } from "../../../harness/processes/child-side.ts";
import {
  bodyOf,
  bucket as Bucket,
  findMark,
  gatewayPort,
  hotKeys,
  keyPair,
  onceKey,
  type ClientOrders,
  type ClientReport,
  type OnceOrder,
} from "./s3-messages.ts";

const { role, name } = JSON.parse(process.argv[2] ?? "") as ClientOrders;
const endpoint = `http://127.0.0.1:${gatewayPort}`;
// Tries nothing twice: what the gateway answers is what the bed hears.
const client = new s3.S3Client({
  endpoint,
  region: "us-east-1",
  forcePathStyle: true,
  credentials: keyPair,
  maxAttempts: 1,
});
const report = (heard: ClientReport): void => tell(heard);
const healthEveryMs = 500;
const healthMsMax = 10_000;
const readsAtOnce = 8;
/** Of the keys that are put once: far from those of the others. */
const onceCounts = 1_000_000;

const finish = finishSignal();
if (role === "auditor") await audit();
else {
  process.on("message", (message) => {
    if (typeof message === "object" && message !== null) void putOnce((message as OnceOrder).once);
  });
  await Promise.all([putUntil(finish), watchHealth(finish)]);
}
process.exit(0);

async function putUntil(signal: AbortSignal): Promise<void> {
  for (let count = 1; !signal.aborted; count++) {
    const key = hotKeys[count % hotKeys.length] ?? "";
    const mark = { name, count };
    try {
      const { VersionId: versionId = "" } = await client.send(
        new s3.PutObjectCommand({ Bucket, Key: key, Body: bodyOf(mark) }),
      );
      report({ kind: "acknowledged", ...mark, key, versionId });
      await readCurrent(key);
    } catch (error) {
      report({ kind: "refused", ...mark, key, ...failureOf(error) });
      // A gateway that is gone refuses at once, and thousands of times a second.
      await sleep(100);
    }
  }
}

/** Whatever version it is by now: it is whole. */
async function readCurrent(Key: string): Promise<void> {
  try {
    const { Body, VersionId } = await client.send(new s3.GetObjectCommand({ Bucket, Key }));
    const bytes = (await Body?.transformToByteArray()) ?? new Uint8Array();
    if (findMark(bytes) === undefined)
      report({ kind: "broken", what: `${Key} ${VersionId ?? ""}, ${bytes.length} bytes` });
  } catch (error) {
    // No answer, or one that was cut off: the client knows that it has nothing.
    const { status } = failureOf(error);
    if (status !== undefined && status !== 200 && status !== 503)
      report({ kind: "broken", what: `get of ${Key}: ${status}` });
  }
}

async function putOnce(number: number): Promise<void> {
  const mark = { name, count: onceCounts + number };
  const put = new s3.PutObjectCommand({ Bucket, Key: onceKey(number), Body: bodyOf(mark), IfNoneMatch: "*" });
  try {
    await client.send(put);
    report({ kind: "once", number, ...mark, status: 200, code: "" });
  } catch (error) {
    report({ kind: "once", number, ...mark, ...failureOf(error) });
  }
}

async function watchHealth(signal: AbortSignal): Promise<void> {
  let last = 0;
  while (!signal.aborted) {
    const status = await fetch(`${endpoint}/-/health`, { signal: AbortSignal.timeout(healthMsMax) }).then(
      (answer) => answer.status,
      () => 0,
    );
    if (status !== last) report({ kind: "health", status });
    last = status;
    await sleep(healthEveryMs);
  }
}

function failureOf(error: unknown): { readonly status?: number; readonly code: string } {
  const { name: code, $metadata } = error as Partial<s3.S3ServiceException>;
  const status = $metadata?.httpStatusCode;
  return { ...(status === undefined ? {} : { status }), code: code ?? String(error) };
}

/** Every version that is listed, and every key that a plain listing has. */
async function audit(): Promise<void> {
  let [KeyMarker, VersionIdMarker]: (string | undefined)[] = [];
  do {
    const list = new s3.ListObjectVersionsCommand({ Bucket, KeyMarker, VersionIdMarker });
    const page: s3.ListObjectVersionsCommandOutput = await client.send(list);
    const versions = page.Versions ?? [];
    for (let at = 0; at < versions.length; at += readsAtOnce)
      await Promise.all(versions.slice(at, at + readsAtOnce).map(auditVersion));
    [KeyMarker, VersionIdMarker] = [page.NextKeyMarker, page.NextVersionIdMarker];
  } while (KeyMarker !== undefined);
  const keys: string[] = [];
  for await (const page of s3.paginateListObjectsV2({ client }, { Bucket }))
    keys.push(...(page.Contents ?? []).map(({ Key = "" }) => Key));
  report({ kind: "audited", keys });
}

async function auditVersion({ Key = "", VersionId = "" }: s3.ObjectVersion): Promise<void> {
  const { Body } = await client.send(new s3.GetObjectCommand({ Bucket, Key, VersionId }));
  const bytes = (await Body?.transformToByteArray()) ?? new Uint8Array();
  const mark = findMark(bytes);
  if (mark === undefined) report({ kind: "broken", what: `${Key} ${VersionId}, ${bytes.length} bytes` });
  else report({ kind: "found", ...mark, key: Key, versionId: VersionId });
}
