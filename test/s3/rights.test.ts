// Who may do what: every operation, asked for by everybody, under policies that name its actions as AWS does.
import { createHmac } from "node:crypto";
import * as s3 from "@aws-sdk/client-s3";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Bucket as StoredBucket } from "../../src/objects/index.ts";
import { operationsWithActions } from "../../src/s3/access/actions.ts";
import { routedOperations } from "../../src/s3/operations/router.ts";
import type { S3AccessEntry } from "../../src/s3/index.ts";
import {
  bank,
  failureOf,
  send,
  sendSigned,
  shop,
  shopReader,
  shopWriter,
  startSite,
  type Answered,
  type Signed,
  type Site,
} from "./conformity-gateway.ts";

const entries: S3AccessEntry[] = [];
let site: Site;
let stored: StoredBucket;
const Bucket = "rights";
const denied = ["AccessDenied", 403];
beforeAll(async () => {
  site = await startSite({ onAnswered: (entry) => void entries.push(entry) });
  await site.shop.send(new s3.CreateBucketCommand({ Bucket, ObjectLockEnabledForBucket: true }));
  stored = await site.objects.bucket(Bucket);
  await put("k", { Tagging: "a=b" });
});
afterAll(() => site.close());

const put = (Key: string, more: Partial<s3.PutObjectCommandInput> = {}): Promise<s3.PutObjectCommandOutput> =>
  site.shop.send(new s3.PutObjectCommand({ Bucket, Key, Body: "x", ...more }));
const Resource = [`arn:aws:s3:::${Bucket}`, `arn:aws:s3:::${Bucket}/*`];
const policyOf = (...statements: object[]): string =>
  JSON.stringify({ Statement: statements.map((each) => ({ Effect: "Allow", Principal: "*", Resource, ...each })) });
const setPolicy = (...statements: object[]): Promise<unknown> =>
  site.shop.send(new s3.PutBucketPolicyCommand({ Bucket, Policy: policyOf(...statements) }));
/** As an older build has stored it. */
const storePolicy = (text: string | undefined): Promise<void> => stored.setDocument("policy", text);

type Need = "read" | "write" | "manage";
interface Row {
  /** By the method, the key and the query: `GET k?acl`. */
  readonly ask: string;
  readonly need: Need;
  /** As the Service Authorization Reference of AWS has them. */
  readonly actions: readonly string[];
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
}
const row = (ask: string, need: Need, actions: string, more: Partial<Row> = {}): Row => ({
  ask,
  need,
  actions: actions.split(" "),
  ...more,
});
const hold = "<LegalHold><Status>ON</Status></LegalHold>";
const until = new Date(Date.now() + 86_400_000).toISOString();
const retention = `<Retention><Mode>GOVERNANCE</Mode><RetainUntilDate>${until}</RetainUntilDate></Retention>`;
const tags = "<Tagging><TagSet><Tag><Key>a</Key><Value>b</Value></Tag></TagSet></Tagging>";
const attributes = { "x-amz-object-attributes": "ETag" };
const version = "versionId=00000000000000000000";
const locked = { "x-amz-object-lock-mode": "GOVERNANCE", "x-amz-object-lock-retain-until-date": until };
const rows: Readonly<Record<string, Row | readonly Row[]>> = {
  DeleteBucket: row("DELETE", "manage", "DeleteBucket"),
  HeadBucket: row("HEAD", "read", "ListBucket"),
  ListObjects: row("GET", "read", "ListBucket"),
  ListObjectsV2: row("GET ?list-type=2", "read", "ListBucket"),
  ListObjectVersions: row("GET ?versions", "read", "ListBucketVersions"),
  ListMultipartUploads: row("GET ?uploads", "read", "ListBucketMultipartUploads"),
  GetBucketLocation: row("GET ?location", "read", "GetBucketLocation"),
  GetBucketAcl: row("GET ?acl", "read", "GetBucketAcl"),
  PutBucketAcl: row("PUT ?acl", "manage", "PutBucketAcl", { headers: { "x-amz-acl": "private" } }),
  GetBucketPolicy: row("GET ?policy", "read", "GetBucketPolicy"),
  PutBucketPolicy: row("PUT ?policy", "manage", "PutBucketPolicy", { body: policyOf({ Action: "s3:GetObject" }) }),
  DeleteBucketPolicy: row("DELETE ?policy", "manage", "DeleteBucketPolicy"),
  GetBucketPolicyStatus: row("GET ?policyStatus", "read", "GetBucketPolicyStatus"),
  GetBucketVersioning: row("GET ?versioning", "read", "GetBucketVersioning"),
  PutBucketVersioning: row("PUT ?versioning", "manage", "PutBucketVersioning"),
  GetBucketTagging: row("GET ?tagging", "read", "GetBucketTagging"),
  PutBucketTagging: row("PUT ?tagging", "manage", "PutBucketTagging"),
  DeleteBucketTagging: row("DELETE ?tagging", "manage", "PutBucketTagging"),
  GetBucketLifecycleConfiguration: row("GET ?lifecycle", "read", "GetLifecycleConfiguration"),
  PutBucketLifecycleConfiguration: row("PUT ?lifecycle", "manage", "PutLifecycleConfiguration"),
  DeleteBucketLifecycle: row("DELETE ?lifecycle", "manage", "PutLifecycleConfiguration"),
  GetObjectLockConfiguration: row("GET ?object-lock", "read", "GetBucketObjectLockConfiguration"),
  PutObjectLockConfiguration: row("PUT ?object-lock", "manage", "PutBucketObjectLockConfiguration"),
  GetBucketCors: row("GET ?cors", "read", "GetBucketCORS"),
  PutBucketCors: row("PUT ?cors", "manage", "PutBucketCORS"),
  DeleteBucketCors: row("DELETE ?cors", "manage", "PutBucketCORS"),
  GetPublicAccessBlock: row("GET ?publicAccessBlock", "read", "GetBucketPublicAccessBlock"),
  PutPublicAccessBlock: row("PUT ?publicAccessBlock", "manage", "PutBucketPublicAccessBlock"),
  DeletePublicAccessBlock: row("DELETE ?publicAccessBlock", "manage", "PutBucketPublicAccessBlock"),
  GetBucketOwnershipControls: row("GET ?ownershipControls", "read", "GetBucketOwnershipControls"),
  PutBucketOwnershipControls: row("PUT ?ownershipControls", "manage", "PutBucketOwnershipControls"),
  DeleteBucketOwnershipControls: row("DELETE ?ownershipControls", "manage", "PutBucketOwnershipControls"),
  GetBucketAccelerateConfiguration: row("GET ?accelerate", "read", "GetAccelerateConfiguration"),
  PutBucketAccelerateConfiguration: row("PUT ?accelerate", "manage", "PutAccelerateConfiguration"),
  GetBucketLogging: row("GET ?logging", "read", "GetBucketLogging"),
  PutBucketLogging: row("PUT ?logging", "manage", "PutBucketLogging"),
  GetBucketNotificationConfiguration: row("GET ?notification", "read", "GetBucketNotification"),
  PutBucketNotificationConfiguration: row("PUT ?notification", "manage", "PutBucketNotification"),
  GetBucketRequestPayment: row("GET ?requestPayment", "read", "GetBucketRequestPayment"),
  PutBucketRequestPayment: row("PUT ?requestPayment", "manage", "PutBucketRequestPayment"),
  GetBucketEncryption: row("GET ?encryption", "read", "GetEncryptionConfiguration"),
  DeleteBucketEncryption: row("DELETE ?encryption", "manage", "PutEncryptionConfiguration"),
  GetBucketReplication: row("GET ?replication", "read", "GetReplicationConfiguration"),
  DeleteBucketReplication: row("DELETE ?replication", "manage", "PutReplicationConfiguration"),
  GetBucketWebsite: row("GET ?website", "read", "GetBucketWebsite"),
  DeleteBucketWebsite: row("DELETE ?website", "manage", "DeleteBucketWebsite"),
  GetObject: [row("GET k", "read", "GetObject"), row("GET k?versionId=ID", "read", "GetObjectVersion")],
  HeadObject: [row("HEAD k", "read", "GetObject"), row("HEAD k?versionId=ID", "read", "GetObjectVersion")],
  GetObjectAttributes: [
    row("GET k?attributes", "read", "GetObject GetObjectAttributes", { headers: attributes }),
    row("GET k?attributes&versionId=ID", "read", "GetObjectVersion GetObjectVersionAttributes", {
      headers: attributes,
    }),
  ],
  GetObjectAcl: [
    row("GET k?acl", "read", "GetObjectAcl"),
    row("GET k?acl&versionId=ID", "read", "GetObjectVersionAcl"),
  ],
  PutObjectAcl: [
    row("PUT k?acl", "write", "PutObjectAcl", { headers: { "x-amz-acl": "private" } }),
    row("PUT k?acl&versionId=ID", "write", "PutObjectVersionAcl", { headers: { "x-amz-acl": "private" } }),
  ],
  GetObjectTagging: [
    row("GET k?tagging", "read", "GetObjectTagging"),
    row("GET k?tagging&versionId=ID", "read", "GetObjectVersionTagging"),
  ],
  PutObjectTagging: [
    row("PUT k?tagging", "write", "PutObjectTagging", { body: tags }),
    row("PUT k?tagging&versionId=ID", "write", "PutObjectVersionTagging", { body: tags }),
  ],
  DeleteObjectTagging: [
    row("DELETE other?tagging", "write", "DeleteObjectTagging"),
    row("DELETE k?tagging&versionId=ID", "write", "DeleteObjectVersionTagging"),
  ],
  GetObjectRetention: row("GET k?retention", "read", "GetObjectRetention"),
  PutObjectRetention: row("PUT kept?retention", "write", "PutObjectRetention", { body: retention }),
  GetObjectLegalHold: row("GET k?legal-hold", "read", "GetObjectLegalHold"),
  PutObjectLegalHold: row("PUT kept?legal-hold", "write", "PutObjectLegalHold", { body: hold }),
  PutObject: [
    row("PUT new", "write", "PutObject"),
    row("PUT new", "write", "PutObject PutObjectTagging", { headers: { "x-amz-tagging": "a=b" } }),
    row("PUT new", "write", "PutObject PutObjectAcl", { headers: { "x-amz-acl": "private" } }),
    row("PUT new", "write", "PutObject PutObjectRetention", { headers: locked }),
    row("PUT new", "write", "PutObject PutObjectLegalHold", { headers: { "x-amz-object-lock-legal-hold": "OFF" } }),
  ],
  CopyObject: [
    row("PUT new", "write", "PutObject GetObject", { headers: { "x-amz-copy-source": `${Bucket}/kept` } }),
    row("PUT new", "write", "PutObject GetObject GetObjectTagging PutObjectTagging", {
      headers: { "x-amz-copy-source": `${Bucket}/tagged` },
    }),
  ],
  CreateMultipartUpload: row("POST new?uploads", "write", "PutObject"),
  UploadPart: row("PUT new?uploadId=none&partNumber=1", "write", "PutObject"),
  UploadPartCopy: row("PUT new?uploadId=none&partNumber=1", "write", "PutObject", {
    headers: { "x-amz-copy-source": `${Bucket}/kept` },
  }),
  CompleteMultipartUpload: row("POST new?uploadId=none", "write", "PutObject"),
  AbortMultipartUpload: row("DELETE new?uploadId=none", "write", "AbortMultipartUpload"),
  ListParts: row("GET new?uploadId=none", "read", "ListMultipartUploadParts"),
  DeleteObject: [
    row("DELETE gone", "write", "DeleteObject"),
    row(`DELETE gone?${version}`, "write", "DeleteObjectVersion"),
  ],
  DeleteObjects: [
    row("POST ?delete", "write", "DeleteObject", { body: "<Delete><Object><Key>gone</Key></Object></Delete>" }),
    row("POST ?delete", "write", "DeleteObjectVersion", {
      body: `<Delete><Object><Key>gone</Key><VersionId>${version.slice(10)}</VersionId></Object></Delete>`,
    }),
  ],
};

it("every operation that the gateway routes has its actions, and is in the matrix of this test", () => {
  const routed = [...new Set(routedOperations.map(({ name }) => name))].sort();
  expect(routed.filter((name) => !operationsWithActions.includes(name))).toEqual([]);
  const withoutPolicy = ["CreateBucket", "ListBuckets"];
  expect([...Object.keys(rows), ...withoutPolicy].sort()).toEqual(routed);
});

describe("the matrix of rights", () => {
  const people = { nobody: undefined, bank, shop, shopReader, shopWriter } as const;
  const mayNeed: Readonly<Record<keyof typeof people, readonly Need[]>> = {
    nobody: ["read", "write", "manage"],
    bank: ["read", "write", "manage"],
    shop: ["read", "write", "manage"],
    shopReader: ["read"],
    shopWriter: ["read", "write"],
  };
  const namesOf = (actions: readonly string[]): string[] =>
    // In an unusual case: AWS does not distinguish.
    actions.map((action) => `s3:${action.toLowerCase()}`);
  const policies: Readonly<Record<string, (actions: readonly string[]) => string | undefined>> = {
    none: () => undefined,
    "Allow by name": (actions) => policyOf({ Action: namesOf(actions) }),
    "Deny by name": (actions) => policyOf({ Action: "s3:*" }, { Effect: "Deny", Action: namesOf(actions.slice(-1)) }),
    "Deny s3:*": () => policyOf({ Action: "s3:*" }, { Effect: "Deny", Action: "s3:*" }),
    // All actions of AWS but the one: exactly as good as none.
    "Allow all others": (actions) => policyOf({ NotAction: namesOf(actions.slice(-1)) }),
  };

  function isAllowed(operation: string, who: keyof typeof people, policy: string, { need }: Row): boolean {
    const isPolicy = operation.endsWith("BucketPolicy");
    if (!mayNeed[who].includes(need)) return false;
    if (who.startsWith("shop")) return !policy.startsWith("Deny") || (isPolicy && who === "shop");
    return policy === "Allow by name" && !isPolicy && !(who === "nobody" && operation.includes("Copy"));
  }

  let versionId = "";
  beforeAll(async () => {
    await Promise.all(["kept", "other", "gone"].map((key) => put(key)));
    await put("tagged", { Tagging: "a=b" });
    versionId = (await put("k", { Tagging: "a=b" })).VersionId ?? "";
  });
  afterAll(() => storePolicy(undefined));

  async function ask({ ask: text, headers = {}, body }: Row, by: typeof shop | undefined): Promise<Answered> {
    const [method = "", rest = ""] = text.replace("ID", versionId).split(" ");
    const [key = "", search = ""] = rest.split("?");
    const query = Object.fromEntries(new URLSearchParams(search));
    const path = `/${Bucket}${key === "" ? "" : `/${key}`}`;
    const request: Signed = { method, path, headers, ...(body === undefined ? {} : { body }) };
    if (by === undefined)
      return await send(site.port, { ...request, path: search === "" ? path : `${path}?${search}` });
    return await sendSigned(site.port, { ...request, query, by });
  }

  it.each(Object.entries(rows))("%s is allowed to exactly those in the matrix", async (operation, found) => {
    for (const each of [found].flat())
      for (const [policy, make] of Object.entries(policies)) {
        await storePolicy(make(each.actions));
        for (const [who, by] of Object.entries(people) as [keyof typeof people, typeof shop | undefined][]) {
          if (operation.endsWith("BucketPolicy")) await storePolicy(make(each.actions));
          const { status, text } = await ask(each, by);
          const isRefused = status === 403 || (status === 405 && operation.endsWith("BucketPolicy"));
          const isDone = !isRefused && !text.includes("<Code>AccessDenied</Code>");
          const what = `${each.ask} by ${who}, ${policy}: ${each.actions.join()}`;
          expect([what, isDone]).toEqual([what, isAllowed(operation, who, policy, each)]);
        }
      }
  });
});

describe("a policy", () => {
  afterAll(() => storePolicy(undefined));
  const get = (client: s3.S3Client, Key: string, VersionId?: string): Promise<s3.GetObjectCommandOutput> =>
    client.send(new s3.GetObjectCommand({ Bucket, Key, VersionId }));

  const refused: Readonly<Record<string, readonly [object, string]>> = {
    "an action that is misspelt": [{ Action: ["s3:GetObject", "s3:GetObjects"] }, "s3:GetObjects"],
    "a kind of principal that does not exist here": [{ Principal: { Service: "logs.example" } }, "Service"],
    "a principal that is not an account": [{ Principal: { AWS: "arn:aws:iam::*:root" } }, "arn:aws:iam::*:root"],
    "an allowance for all but one": [{ Principal: undefined, NotPrincipal: { AWS: "bank" } }, "NotPrincipal"],
    "a condition on something else": [{ Condition: { StringEquals: { "aws:SourceVpce": "x" } } }, "aws:SourceVpce"],
    "an operator that does not exist": [{ Condition: { StringIs: { "s3:prefix": "x" } } }, "StringIs"],
    "an address that is none": [{ Condition: { NotIpAddress: { "aws:SourceIp": "10.0.0/99" } } }, "10.0.0/99"],
    "an element that is misspelt": [{ Conditions: { Bool: { "aws:SecureTransport": "true" } } }, "Conditions"],
    "both actions and exceptions": [{ NotAction: "s3:PutObject" }, "NotAction"],
  };
  it.each(Object.entries(refused))("with %s is refused by name", async (_, [statement, name]) => {
    const setting = setPolicy({ Action: "s3:GetObject", ...statement });
    await expect(setting).rejects.toMatchObject({ name: "MalformedPolicy", message: expect.stringContaining(name) });
  });

  it("may name actions of AWS that the gateway has no operation for", async () => {
    await setPolicy({ Effect: "Deny", Action: ["s3:PutReplicationConfiguration", "s3:RestoreObject"] });
    await get(site.shop, "k");
  });

  it("that an older build stored denies what cannot be evaluated, and is reported", async () => {
    await storePolicy(policyOf({ Action: "s3:*" }, { Effect: "Deny", Action: "s3:GetObject", Condition: { Odd: {} } }));
    entries.length = 0;
    expect(await failureOf(get(site.shop, "k"))).toEqual(denied);
    await expect.poll(() => entries.map(({ error }) => String(error))).toEqual([expect.stringContaining("Odd")]);
    await site.shop.send(new s3.ListObjectsV2Command({ Bucket }));
    for (const text of ["{", "[]", '{"Statement":[]}', '{"Statement":[7]}']) {
      await storePolicy(text);
      expect(await failureOf(site.shop.send(new s3.ListObjectsV2Command({ Bucket })))).toEqual(denied);
    }
    await site.shop.send(new s3.DeleteBucketPolicyCommand({ Bucket }));
    await get(site.shop, "k");
  });

  it("can exclude accounts, actions and resources", async () => {
    const secret = `arn:aws:s3:::${Bucket}/secret/*`;
    await put("secret/k");
    await setPolicy(
      { Action: "s3:GetObject" },
      { Effect: "Deny", Principal: undefined, NotPrincipal: { AWS: ["shop", "bank"] }, Action: "s3:*" },
    );
    await get(site.bank, "k");
    expect((await send(site.port, { path: `/${Bucket}/k` })).status).toBe(403);
    await setPolicy({ Action: "s3:GetObject", Resource: undefined, NotResource: secret });
    await get(site.bank, "k");
    expect(await failureOf(get(site.bank, "secret/k"))).toEqual(denied);
  });

  it("does not reveal absent keys, tags or holds to those who may only read", async () => {
    await put("held", { Tagging: "a=b", ObjectLockLegalHoldStatus: "ON" });
    await setPolicy({ Action: "s3:GetObject" });
    const { TagCount, ObjectLockLegalHoldStatus } = await get(site.bank, "held");
    expect([TagCount, ObjectLockLegalHoldStatus]).toEqual([undefined, undefined]);
    expect(await failureOf(get(site.bank, "none"))).toEqual(denied);
    await setPolicy({ Action: ["s3:GetObject*", "s3:ListBucket"] });
    expect(await get(site.bank, "held")).toMatchObject({ TagCount: 1, ObjectLockLegalHoldStatus: "ON" });
    expect(await failureOf(get(site.bank, "none"))).toEqual(["NoSuchKey", 404]);
  });

  it("is public if its conditions depend only on the request, and not if they name addresses", async () => {
    const isPublic = async (Condition: object): Promise<boolean | undefined> => {
      await setPolicy({ Action: "s3:GetObject", Condition });
      return (await site.shop.send(new s3.GetBucketPolicyStatusCommand({ Bucket }))).PolicyStatus?.IsPublic;
    };
    expect(await isPublic({ StringLike: { "aws:UserAgent": "*" } })).toBe(true);
    expect(await isPublic({ IpAddress: { "aws:SourceIp": "0.0.0.0/0" } })).toBe(true);
    expect(await isPublic({ IpAddress: { "aws:SourceIp": "10.0.0.0/8" } })).toBe(false);
  });

  it("treats tags in a document like tags in a header", async () => {
    const Condition = { StringEquals: { "s3:RequestObjectTag/a": "good" } };
    await setPolicy({ Action: "s3:PutObjectTagging", Condition });
    const tag = (Value: string): Promise<unknown> => {
      const Tagging = { TagSet: [{ Key: "a", Value }] };
      return site.bank.send(new s3.PutObjectTaggingCommand({ Bucket, Key: "k", Tagging }));
    };
    await tag("good");
    expect(await failureOf(tag("bad"))).toEqual(denied);
  });
});

describe("a condition", () => {
  afterAll(() => storePolicy(undefined));
  const makeBank = (): Promise<unknown> => site.bank.send(new s3.CreateBucketCommand({ Bucket: "bank-own" }));
  const bankPuts = (Key: string): Promise<unknown> =>
    site.bank.send(new s3.PutObjectCommand({ Bucket: "bank-own", Key, Body: "x" }));
  const copy = (CopySource: string, more: Partial<s3.CopyObjectCommandInput> = {}): Promise<unknown> =>
    site.bank.send(new s3.CopyObjectCommand({ Bucket, Key: "copied", CopySource, ...more }));

  it("on the source of a copy matches the same object however its name is encoded", async () => {
    await makeBank();
    for (const key of ["secret/a", "open/a"]) await bankPuts(key);
    await setPolicy(
      { Action: "s3:PutObject" },
      {
        Effect: "Deny",
        Action: "s3:PutObject",
        Condition: { StringLike: { "s3:x-amz-copy-source": "bank-own/secret/*" } },
      },
    );
    await copy("bank-own/open/a");
    for (const source of ["bank-own/secret/a", "/bank-own/secret/a", "bank-own/%73ecret/a", "%62ank-own%2Fsecret%2Fa"])
      expect(await failureOf(copy(source))).toEqual(denied);
  });

  it("on the account that owns the source of a copy is checked", async () => {
    await makeBank();
    await bankPuts("own");
    await setPolicy({ Action: "s3:PutObject" });
    await copy("bank-own/own", { ExpectedSourceBucketOwner: "bank" });
    expect(await failureOf(copy("bank-own/own", { ExpectedSourceBucketOwner: "shop" }))).toEqual(denied);
  });

  it("on the age and version of a signature applies to URLs and forms", async () => {
    const old = { NumericGreaterThan: { "s3:signatureAge": "60000" } };
    await setPolicy({ Action: "s3:GetObject" }, { Effect: "Deny", Action: "s3:GetObject", Condition: old });
    const get = (agoMs: number): Promise<Answered> =>
      sendSigned(site.port, { path: `/${Bucket}/k`, by: bank, at: new Date(Date.now() - agoMs) });
    expect((await get(0)).status).toBe(200);
    expect((await get(120_000)).status).toBe(403);
    // The age of a URL of version 2 is not known.
    const expires = Math.floor(Date.now() / 1000) + 60;
    const signature = createHmac("sha1", bank.secretAccessKey)
      .update(`GET\n\n\n${expires}\n/${Bucket}/k`)
      .digest("base64");
    const search = new URLSearchParams({
      AWSAccessKeyId: bank.accessKeyId,
      Expires: String(expires),
      Signature: signature,
    });
    expect((await send(site.port, { path: `/${Bucket}/k?${search.toString()}` })).status).toBe(403);
    const version2 = { StringEquals: { "s3:signatureversion": "AWS" } };
    const form = async (): Promise<number> => {
      const conditions = [{ bucket: Bucket }, { key: "form" }];
      const policy = Buffer.from(JSON.stringify({ expiration: until, conditions })).toString("base64");
      const body = new FormData();
      const signed = createHmac("sha1", bank.secretAccessKey).update(policy).digest("base64");
      const fields = { key: "form", AWSAccessKeyId: bank.accessKeyId, policy, signature: signed };
      for (const [name, value] of Object.entries(fields)) body.append(name, value);
      body.append("file", new Blob(["x"]));
      return (await fetch(`${site.url}/${Bucket}`, { method: "POST", body })).status;
    };
    await setPolicy({ Action: "s3:PutObject" });
    expect(await form()).toBe(204);
    await setPolicy({ Action: "s3:PutObject" }, { Effect: "Deny", Action: "s3:PutObject", Condition: version2 });
    expect(await form()).toBe(403);
  });

  it("can require If-None-Match of requests that create an object, but not of parts", async () => {
    const Condition = { Null: { "s3:if-none-match": "true" }, Bool: { "s3:ObjectCreationOperation": "true" } };
    await setPolicy({ Action: "s3:PutObject" }, { Effect: "Deny", Action: "s3:PutObject", Condition });
    const target = { Bucket, Key: "once" };
    const puts = (IfNoneMatch?: string): Promise<unknown> =>
      site.bank.send(new s3.PutObjectCommand({ ...target, Body: "x", IfNoneMatch }));
    expect(await failureOf(puts())).toEqual(denied);
    await puts("*");
    const { UploadId } = await site.bank.send(new s3.CreateMultipartUploadCommand(target));
    const part = await site.bank.send(new s3.UploadPartCommand({ ...target, UploadId, PartNumber: 1, Body: "x" }));
    const MultipartUpload = { Parts: [{ PartNumber: 1, ETag: part.ETag }] };
    const complete = new s3.CompleteMultipartUploadCommand({ ...target, UploadId, MultipartUpload });
    expect(await failureOf(site.bank.send(complete))).toEqual(denied);
  });
});

it("an account that may put can list and abort its own uploads, and no others", async () => {
  await setPolicy({ Action: "s3:PutObject" });
  const begin = async (client: s3.S3Client): Promise<string | undefined> =>
    (await client.send(new s3.CreateMultipartUploadCommand({ Bucket, Key: "begun" }))).UploadId;
  const [own, others] = [await begin(site.bank), await begin(site.shop)];
  const list = (UploadId: string | undefined): Promise<unknown> =>
    site.bank.send(new s3.ListPartsCommand({ Bucket, Key: "begun", UploadId }));
  const abort = (UploadId: string | undefined): Promise<unknown> =>
    site.bank.send(new s3.AbortMultipartUploadCommand({ Bucket, Key: "begun", UploadId }));
  await list(own);
  for (const refused of [list(others), abort(others)]) expect(await failureOf(refused)).toEqual(denied);
  await setPolicy({ Action: "s3:PutObject" }, { Effect: "Deny", Action: "s3:AbortMultipartUpload" });
  expect(await failureOf(abort(own))).toEqual(denied);
  await setPolicy({ Action: "s3:PutObject" });
  await abort(own);
  await storePolicy(undefined);
});

describe("the protection of a version", () => {
  afterAll(() => storePolicy(undefined));
  const status = (by: typeof shop, Status: "ON" | "OFF"): Promise<Answered> =>
    sendSigned(site.port, {
      method: "PUT",
      path: `/${Bucket}/hold`,
      query: { "legal-hold": "" },
      body: `<LegalHold><Status>${Status}</Status></LegalHold>`,
      by,
    });

  it("is not lifted by a key pair that may write, unless the policy allows it", async () => {
    await put("hold");
    expect((await status(shopWriter, "ON")).status).toBe(200);
    expect((await status(shopWriter, "OFF")).status).toBe(403);
    await setPolicy({ Principal: { AWS: "shop" }, Action: "s3:PutObjectLegalHold" });
    expect((await status(shopWriter, "OFF")).status).toBe(200);
    await setPolicy({ Effect: "Deny", Action: "s3:PutObjectLegalHold" });
    expect((await status(shop, "ON")).status).toBe(403);
  });

  it("is bypassed by an owner unless the policy denies it, and by others only if the policy names the action", async () => {
    const ObjectLockRetainUntilDate = new Date(Date.now() + 3_600_000);
    const remove = async (by: typeof shop, ...statements: object[]): Promise<number> => {
      const { VersionId: versionId = "" } = await put("governed", {
        ObjectLockMode: "GOVERNANCE",
        ObjectLockRetainUntilDate,
      });
      if (statements.length > 0) await setPolicy(...statements);
      else await storePolicy(undefined);
      const headers = { "x-amz-bypass-governance-retention": "true" };
      const path = `/${Bucket}/governed`;
      return (await sendSigned(site.port, { method: "DELETE", path, query: { versionId }, headers, by })).status;
    };
    const bypass = "s3:BypassGovernanceRetention";
    expect(await remove(shop)).toBe(204);
    expect(await remove(shopWriter)).toBe(403);
    expect(await remove(shop, { Effect: "Deny", Action: bypass })).toBe(403);
    expect(await remove(shopWriter, { Action: bypass })).toBe(204);
    expect(await remove(bank, { Action: "s3:*" })).toBe(403);
    expect(await remove(bank, { Action: ["s3:DeleteObjectVersion", bypass] })).toBe(204);
  });
});
