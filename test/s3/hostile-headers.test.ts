// Names and values that no header can carry, or that are no header's: they are refused where they come from a client,
// and an object that has them can be read all the same.
import * as s3 from "@aws-sdk/client-s3";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { readForm } from "../../src/s3/body/form-data.ts";
import { S3Error } from "../../src/s3/http/s3-error.ts";
import { send, sendSigned, signed, startSite, type Answered, type Site } from "./conformity-gateway.ts";

let site: Site;
let bucket = "";
beforeAll(async () => {
  site = await startSite();
  bucket = await site.newBucket({ ACL: "public-read-write" });
  await sendSigned(site.port, { method: "PUT", path: `/${bucket}/good`, body: "good" });
});
afterAll(() => site.close());

/** As Node reads it, byte by byte. */
const latin1 = (text: string): string => Buffer.from(text).toString("latin1");
const get = (key: string, query: Record<string, string> = {}): Promise<Answered> =>
  sendSigned(site.port, { path: `/${bucket}/${key}`, query });

function post(fields: Readonly<Record<string, string>>, fileName = "f.txt"): Promise<Answered> {
  const part = (head: string, text: string): string =>
    `--b\r\nContent-Disposition: form-data; ${head}\r\n\r\n${text}\r\n`;
  const named = Object.entries(fields).map(([name, value]) => part(`name="${name}"`, value));
  const body = [...named, part(`name="file"; filename="${fileName}"`, "file"), "--b--\r\n"].join("");
  const headers = { "content-type": "multipart/form-data; boundary=b" };
  return send(site.port, { method: "POST", path: `/${bucket}`, headers, body });
}

describe("response headers chosen by the request", () => {
  it.each(["a\r\nx-evil: 1", "a\nb", "a\u0000b", "\u007f", "\u0001"])("are refused if they are %j", async (value) => {
    const answer = await get("good", { "response-content-disposition": value });
    expect(answer).toMatchObject({ status: 400, code: "InvalidArgument" });
    expect(answer.headers["x-evil"]).toBe(undefined);
  });

  it.each(["attachment; filename=ä.txt", 'attachment; filename="日本.txt"'])("may be %s", async (value) => {
    const { status, headers, text } = await get("good", { "response-content-disposition": value });
    expect({ status, text }).toEqual({ status: 200, text: "good" });
    expect([value, latin1(value)]).toContain(headers["content-disposition"]);
  });
});

it.each(["\u0000", "日本", "a\r\nb", "../x"])(
  "a version id like %j is refused, even by a delete",
  async (versionId) => {
    for (const method of ["GET", "HEAD", "DELETE"]) {
      const answer = await sendSigned(site.port, { method, path: `/${bucket}/good`, query: { versionId } });
      expect(answer.status).toBe(400);
    }
  },
);

describe("an object", () => {
  it("keeps a Content-Disposition in UTF-8, with and without its body", async () => {
    const value = latin1('attachment; filename="日本 ä.txt"');
    // As a raw client sends it: the SDK encodes it.
    const put = await signed(site.port, {
      method: "PUT",
      path: `/${bucket}/named`,
      headers: { "content-disposition": value },
      body: "named",
    });
    expect((await send(site.port, put)).status).toBe(200);
    for (const method of ["GET", "HEAD"]) {
      const { status, headers } = await sendSigned(site.port, { method, path: `/${bucket}/named` });
      expect([status, headers["content-disposition"]]).toEqual([200, value]);
    }
  });

  it("with metadata that no header can carry is readable, and the response counts what is missing", async () => {
    const own = await site.objects.bucket(bucket);
    const metadata = { fine: "1", "not a name": "2", lines: "a\r\nx-evil: b", wide: "日本" };
    await own.put("odd", "odd", { metadata, contentDisposition: "a\r\nx-evil: b", contentType: "text/\u0000" });
    const { status, headers, text } = await get("odd");
    expect({ status, text }).toEqual({ status: 200, text: "odd" });
    expect(headers).toMatchObject({
      "x-amz-meta-fine": "1",
      "x-amz-meta-wide": latin1("日本"),
      "x-amz-missing-meta": "2",
      "content-type": "binary/octet-stream",
    });
    expect(Object.keys(headers).filter((name) => /evil|disposition|not/.test(name))).toEqual([]);
  });
});

describe("a form", () => {
  const refused: Readonly<Record<string, readonly [Readonly<Record<string, string>>, string]>> = {
    "a name of metadata that is no header's": [{ "x-amz-meta-a b": "1" }, "InvalidArgument"],
    "metadata with a line break": [{ "x-amz-meta-a": "1\r\nx-evil: 1" }, "InvalidArgument"],
    "a type with a control character": [{ "Content-Type": "text/\u0001" }, "InvalidArgument"],
    "too much metadata": [{ "x-amz-meta-a": "x".repeat(2048) }, "MetadataTooLarge"],
    "a key that is too long": [{ key: "x".repeat(1025) }, "KeyTooLongError"],
    "a key that becomes too long": [{ key: "${filename}".repeat(1_800) }, "KeyTooLongError"],
  };
  it.each(Object.entries(refused))("with %s is refused, and nothing is stored", async (_, [fields, code]) => {
    expect(await post({ key: "refused", ...fields })).toMatchObject({ status: 400, code });
    expect((await get("refused")).status).toBe(404);
  });

  it("may have a file name and a Content-Disposition in any language", async () => {
    const value = 'attachment; filename="日本.txt"';
    expect((await post({ key: "form/${filename}", "Content-Disposition": value }, "日本.txt")).status).toBe(204);
    const { Contents = [] } = await site.client.send(new s3.ListObjectsV2Command({ Bucket: bucket, Prefix: "form/" }));
    expect(Contents.map(({ Key }) => Key)).toEqual(["form/日本.txt"]);
    const { status, headers } = await get("form/%E6%97%A5%E6%9C%AC.txt");
    expect([status, headers["content-disposition"]]).toEqual([200, latin1(value)]);
  });

  async function* pieces(...texts: readonly string[]): AsyncGenerator<Uint8Array> {
    for (const text of texts) yield Buffer.from(text);
  }
  const codeOf = async (reading: Promise<unknown>): Promise<string> =>
    await reading.then(
      () => "none",
      (error: unknown) => (error instanceof S3Error ? error.code : String(error)),
    );
  const type = "multipart/form-data; boundary=b";

  it("is refused if the head of a part exceeds the limit, however the network splits it", async () => {
    const head = `--b\r\nContent-Disposition: form-data; name="file"; filename="${"x".repeat(60_000)}"\r\n\r\n`;
    expect(await codeOf(readForm(type, pieces(`${head}x\r\n--b--`)))).toBe("MalformedPOSTRequest");
    expect(await codeOf(readForm(type, pieces(head.slice(0, 100), head.slice(100))))).toBe("MalformedPOSTRequest");
  });

  it("must send its fields within a time limit, before its sender is known", async () => {
    async function* endless(): AsyncGenerator<Uint8Array> {
      yield Buffer.from("--b\r\n");
      for (let count = 0; ; count++) {
        // Time passes: a client that sends a field now and then.
        await new Promise((resolve) => setTimeout(resolve, 5));
        yield Buffer.from(`Content-Disposition: form-data; name="f${count % 50}"\r\n\r\nx\r\n--b\r\n`);
      }
    }
    expect(await codeOf(readForm(type, endless(), { msMax: 50 }))).toBe("RequestTimeout");
  });
});

it.each(["constructor", "__proto__", "valueof", "hasownproperty"])(
  "a signature over %s, which is not a header, does not match",
  async (name) => {
    const request = await signed(site.port, { path: `/${bucket}/good` });
    const authorization = (request.headers?.["authorization"] ?? "").replace(
      "SignedHeaders=",
      `SignedHeaders=${name};`,
    );
    const answer = await send(site.port, { ...request, headers: { ...request.headers, authorization } });
    expect(answer).toMatchObject({ status: 403, code: "SignatureDoesNotMatch" });
  },
);
