// What S3 answers about settings of buckets: those that are checked, and those that cannot be set.
import * as s3 from "@aws-sdk/client-s3";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { failureOf, sendSigned, startSite, type Site } from "./conformity-gateway.ts";

let site: Site;
let Bucket = "";
beforeAll(async () => {
  site = await startSite();
  Bucket = await site.newBucket();
});
afterAll(() => site.close());

describe("a bucket", () => {
  it.each(["sthree-x", "x-s3alias", "x--ol-s3", "x.mrap", "x--x-s3"])(
    "cannot be created with the name %s",
    async (name) => {
      const answer = await sendSigned(site.port, { method: "PUT", path: `/${name}` });
      expect(answer).toMatchObject({ status: 400, code: "InvalidBucketName" });
    },
  );

  it("is created with its tags, and deleted with its incomplete uploads", async () => {
    const Tags = [{ Key: "team", Value: "photos" }];
    const tagged = await site.newBucket({ CreateBucketConfiguration: { Tags } });
    expect((await site.client.send(new s3.GetBucketTaggingCommand({ Bucket: tagged }))).TagSet).toEqual(Tags);
    const long = site.newBucket({ CreateBucketConfiguration: { Tags: [{ Key: "k".repeat(129), Value: "" }] } });
    expect(await failureOf(long)).toEqual(["InvalidTag", 400]);
    await site.client.send(new s3.CreateMultipartUploadCommand({ Bucket: tagged, Key: "film" }));
    await site.client.send(new s3.DeleteBucketCommand({ Bucket: tagged }));
    const both = site.newBucket({ ObjectOwnership: "BucketOwnerEnforced", ACL: "public-read" });
    expect(await failureOf(both)).toEqual(["InvalidBucketAclWithObjectOwnership", 400]);
  });

  const unset: Readonly<Record<string, readonly [method: string, body: string, status: number, code?: string]>> = {
    website: ["GET", "", 404, "NoSuchWebsiteConfiguration"],
    "website ": ["DELETE", "", 204],
    encryption: ["DELETE", "", 204],
    replication: ["DELETE", "", 204],
    logging: ["PUT", "<BucketLoggingStatus/>", 200],
    "logging ": ["PUT", "<BucketLoggingStatus><LoggingEnabled/></BucketLoggingStatus>", 501, "NotImplemented"],
    notification: ["PUT", "<NotificationConfiguration/>", 200],
    accelerate: ["PUT", "<AccelerateConfiguration><Status>Suspended</Status></AccelerateConfiguration>", 200],
    requestPayment: [
      "PUT",
      "<RequestPaymentConfiguration><Payer>BucketOwner</Payer></RequestPaymentConfiguration>",
      200,
    ],
    "requestPayment ": [
      "PUT",
      "<RequestPaymentConfiguration><Payer>Requester</Payer></RequestPaymentConfiguration>",
      501,
      "NotImplemented",
    ],
    "requestPayment  ": [
      "PUT",
      "<RequestPaymentConfiguration><Payer>Santa</Payer></RequestPaymentConfiguration>",
      400,
      "MalformedXML",
    ],
  };
  it.each(Object.entries(unset))(
    "cannot have %s, but accepts a request to have none",
    async (name, [method, body, status, code]) => {
      const answer = await sendSigned(site.port, { method, path: `/${Bucket}`, query: { [name.trim()]: "" }, body });
      expect(answer).toMatchObject({ status, code });
    },
  );

  it("refuses an unknown encryption, and encryption headers on reads", async () => {
    const header = (value: string): Record<string, string> => ({ "x-amz-server-side-encryption": value });
    const path = `/${Bucket}/k`;
    const put = await sendSigned(site.port, { method: "PUT", path, headers: header("rot13"), body: "x" });
    expect(put).toMatchObject({ status: 400, code: "InvalidArgument" });
    await sendSigned(site.port, { method: "PUT", path, body: "x" });
    expect(await sendSigned(site.port, { path, headers: header("AES256") })).toMatchObject({ code: "InvalidArgument" });
  });
});

describe("a policy", () => {
  const arn = (): string => `arn:aws:s3:::${Bucket}`;
  const bad: Readonly<Record<string, () => object>> = {
    "no action": () => ({ Action: [] }),
    "an action that does not exist": () => ({ Action: "s3:FlyObject" }),
    "an action of another service": () => ({ Action: "ec2:RunInstances" }),
    "an empty principal": () => ({ Principal: "" }),
    "principals without names": () => ({ Principal: { AWS: [] } }),
    "a principal that is a list": () => ({ Principal: ["*"] }),
    "no resource": () => ({ Resource: [] }),
    "an action on objects for a bucket": () => ({ Resource: arn() }),
    "an action on buckets for objects": () => ({ Action: "s3:ListBucket" }),
  };
  const put = (statement: object): Promise<unknown> => {
    const whole = { Effect: "Allow", Principal: "*", Action: "s3:GetObject", Resource: `${arn()}/*`, ...statement };
    return site.client.send(new s3.PutBucketPolicyCommand({ Bucket, Policy: JSON.stringify({ Statement: whole }) }));
  };
  it.each(Object.entries(bad))("with %s is malformed", async (_, statement) => {
    expect(await failureOf(put(statement()))).toEqual(["MalformedPolicy", 400]);
  });

  it("may contain patterns in its actions and resources", async () => {
    await put({ Action: "s3:Get*", Resource: ["arn:aws:s3:::*"] });
    await put({ Action: ["*"], Resource: [arn(), `${arn()}/*`], Principal: { AWS: "*" } });
    await site.client.send(new s3.DeleteBucketPolicyCommand({ Bucket }));
  });
});

it("a public-access block returns all four settings", async () => {
  const put = new s3.PutPublicAccessBlockCommand({ Bucket, PublicAccessBlockConfiguration: { BlockPublicAcls: true } });
  await site.client.send(put);
  const { PublicAccessBlockConfiguration: block } = await site.client.send(
    new s3.GetPublicAccessBlockCommand({ Bucket }),
  );
  const others = { IgnorePublicAcls: false, BlockPublicPolicy: false, RestrictPublicBuckets: false };
  expect(block).toEqual({ BlockPublicAcls: true, ...others });
  await site.client.send(new s3.DeletePublicAccessBlockCommand({ Bucket }));
});

it("CORS rules need valid header names, and accept any age", async () => {
  const cors = (rule: Partial<s3.CORSRule>): Promise<unknown> => {
    const CORSRules = [{ AllowedMethods: ["GET"], AllowedOrigins: ["*"], ...rule }];
    return site.client.send(new s3.PutBucketCorsCommand({ Bucket, CORSConfiguration: { CORSRules } }));
  };
  for (const name of ["two words", "a:b", "(a)", "a/b", "a=b", '"a"'])
    for (const rule of [{ AllowedHeaders: [name] }, { ExposeHeaders: [name] }])
      expect(await failureOf(cors(rule))).toEqual(["InvalidRequest", 400]);
  await cors({ AllowedHeaders: ["x-amz-*"], MaxAgeSeconds: -100 });
});

describe("tags in a header", () => {
  const tagsOf = async (Tagging: string): Promise<unknown> => {
    await site.client.send(new s3.PutObjectCommand({ Bucket, Key: "tagged", Body: "", Tagging }));
    const { TagSet } = await site.client.send(new s3.GetObjectTaggingCommand({ Bucket, Key: "tagged" }));
    return Object.fromEntries((TagSet ?? []).map(({ Key = "", Value }) => [Key, Value]));
  };
  it.each([
    ["&&", {}],
    ["a&", { a: "" }],
    ["a=&b=c", { a: "", b: "c" }],
    ["a%2E=b++c", { "a.": "b  c" }],
  ])("%s are %j", async (text, tags) => {
    expect(await tagsOf(text)).toEqual(tags);
  });
  it.each([
    ["=", "InvalidArgument"],
    ["a%", "InvalidArgument"],
    ["a=1&a=2", "InvalidArgument"],
    ["a!=1", "InvalidTag"],
    ["aws:a=1", "InvalidTag"],
  ])("%s are refused as %s", async (text, code) => {
    expect(await failureOf(tagsOf(text))).toEqual([code, 400]);
  });
});

describe("a lifecycle", () => {
  const put = (rule: Partial<s3.LifecycleRule>, bucket = Bucket): Promise<unknown> => {
    const Rules = [{ ID: "rule", Status: "Enabled" as const, ...rule }];
    const LifecycleConfiguration = { Rules };
    return site.client.send(new s3.PutBucketLifecycleConfigurationCommand({ Bucket: bucket, LifecycleConfiguration }));
  };
  const everything = { Filter: { Prefix: "" } };
  const Days = { Expiration: { Days: 1 } };

  it("may contain a date and sizes, which are returned", async () => {
    const Expiration = { Date: new Date("2030-01-01T00:00:00Z") };
    const Filter = { And: { Prefix: "p", ObjectSizeGreaterThan: 10, ObjectSizeLessThan: 20 } };
    await put({ Filter, Expiration });
    const { Rules } = await site.client.send(new s3.GetBucketLifecycleConfigurationCommand({ Bucket }));
    expect(Rules).toEqual([{ ID: "rule", Status: "Enabled", Filter, Expiration }]);
  });

  const bad: Readonly<Record<string, readonly [Partial<s3.LifecycleRule>, string]>> = {
    "a date within a day": [
      { ...everything, Expiration: { Date: new Date("2030-01-01T05:00:00Z") } },
      "InvalidArgument",
    ],
    "days and a date": [{ ...everything, Expiration: { Days: 1, Date: new Date(0) } }, "MalformedXML"],
    "neither a filter nor a prefix": [Days, "MalformedXML"],
    "sizes that no object has": [
      { ...Days, Filter: { And: { ObjectSizeGreaterThan: 7, ObjectSizeLessThan: 5 } } },
      "InvalidRequest",
    ],
    "tags for uploads": [
      { Filter: { Tag: { Key: "a", Value: "b" } }, AbortIncompleteMultipartUpload: { DaysAfterInitiation: 1 } },
      "InvalidRequest",
    ],
  };
  it.each(Object.entries(bad))("cannot contain %s", async (_, [rule, code]) => {
    expect(await failureOf(put(rule))).toEqual([code, 400]);
  });

  it("reports with each object when it will expire, at the end of a day", async () => {
    const bucket = await site.newBucket();
    await put({ ID: "by tag", Filter: { And: { Prefix: "d/", Tags: [{ Key: "a", Value: "b" }] } }, ...Days }, bucket);
    const write = async (Key: string, Tagging?: string): Promise<string | undefined> =>
      (await site.client.send(new s3.PutObjectCommand({ Bucket: bucket, Key, Body: "x", Tagging }))).Expiration;
    expect(await write("d/plain")).toBe(undefined);
    expect(await write("other", "a=b")).toBe(undefined);
    const told = await write("d/tagged", "a=b");
    const [, date = "", id] = /^expiry-date="([^"]+)", rule-id="([^"]+)"$/.exec(told ?? "") ?? [];
    expect(id).toBe("by%20tag");
    const inMs = Date.parse(date) - Date.now();
    expect([Date.parse(date) % 86_400_000, inMs > 86_400_000 - 60_000, inMs <= 2 * 86_400_000]).toEqual([
      0,
      true,
      true,
    ]);
    const of = { Bucket: bucket, Key: "d/tagged" };
    expect((await site.client.send(new s3.HeadObjectCommand(of))).Expiration).toBe(told);
    expect((await site.client.send(new s3.GetObjectCommand(of))).Expiration).toBe(told);
    await site.client.send(new s3.DeleteObjectTaggingCommand(of));
    expect((await site.client.send(new s3.HeadObjectCommand(of))).Expiration).toBe(undefined);
  });
});
