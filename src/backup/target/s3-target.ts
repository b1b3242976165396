// A target in a bucket of any S3 service.
import { holdfastError } from "../../errors.ts";
import { nodeClock } from "../../ports/node/clock.ts";
import { encodeUri } from "../../s3/http/raw-target.ts";
import { S3Service, type S3Answer, type S3Options } from "./s3-request.ts";
import type { BackupTarget, TargetFile } from "./target.ts";

export type { S3Options } from "./s3-request.ts";

/** `s3://BUCKET` or `s3://BUCKET/PREFIX`. */
export async function openS3Target(location: string, options: S3Options): Promise<BackupTarget> {
  const [, bucket = "", prefix = ""] = /^s3:\/\/([^/?#]+)(?:\/(.*))?$/i.exec(location) ?? [];
  if (bucket === "" || prefix.split("/").some((part) => part === "." || part === "..")) {
    const message = `The location ${JSON.stringify(location)} cannot be used: a target in S3 is s3://BUCKET or s3://BUCKET/PREFIX.`;
    throw holdfastError("INVALID_PATH", message, { path: location });
  }
  return new S3Target(new S3Service(nodeClock, bucket, options), bucket, prefix.replace(/\/+$/, ""));
}

class S3Target implements BackupTarget {
  readonly shown: string;
  readonly #service: S3Service;
  readonly #bucket: string;
  readonly #prefix: string;

  constructor(service: S3Service, bucket: string, prefix: string) {
    this.#service = service;
    this.#bucket = bucket;
    this.#prefix = prefix === "" ? "" : `${prefix}/`;
    this.shown = `s3://${bucket}${prefix === "" ? "" : `/${prefix}`}`;
  }

  async find(name: string): Promise<Uint8Array | undefined> {
    const { status, body } = await this.#service.send({ method: "GET", key: this.#key(name) });
    return status === 404 ? undefined : body;
  }

  async put(name: string, body: Uint8Array): Promise<void> {
    await this.#service.send({ method: "PUT", key: this.#key(name), body });
  }

  adopt(): void {
    // As below.
  }

  async settle(): Promise<void> {
    // A service has stored what it has acknowledged.
  }

  async *list(folder: string): AsyncIterable<TargetFile> {
    let token: string | undefined;
    do {
      const text = Buffer.from((await this.#list(folder, token)).body).toString("utf8");
      for (const [contents] of text.matchAll(/<Contents>.*?<\/Contents>/gs)) {
        const key = decodeURIComponent(fieldOf(contents, "Key").replaceAll("+", " "));
        const [size, atMs] = [Number(fieldOf(contents, "Size")), Date.parse(fieldOf(contents, "LastModified"))];
        if (key.startsWith(this.#prefix)) yield { name: key.slice(this.#prefix.length), size, atMs };
      }
      token = fieldOf(text, "IsTruncated") === "true" ? unescaped(fieldOf(text, "NextContinuationToken")) : undefined;
    } while (token);
  }

  async remove(name: string): Promise<void> {
    await this.#service.send({ method: "DELETE", key: this.#key(name) });
  }

  async move(from: string, to: string): Promise<boolean> {
    const source = `/${this.#bucket}/${this.#key(from)}`.split("/").map(encodeUri).join("/");
    const headers = { "x-amz-copy-source": source };
    const { status } = await this.#service.send({ method: "PUT", key: this.#key(to), headers });
    // If the source is gone, an earlier try may have moved it and lost its answer: then the copy exists.
    if (status === 404) return (await this.find(to)) !== undefined;
    await this.remove(from);
    return true;
  }

  async nowMs(): Promise<number> {
    const date = Date.parse((await this.#list("", undefined, 1)).headers.get("date") ?? "");
    return Number.isNaN(date) ? nodeClock.wallMs() : date;
  }

  async isEmpty(): Promise<boolean> {
    for await (const _ of this.list("")) return false;
    return true;
  }

  async #list(folder: string, token: string | undefined, max = 1000): Promise<S3Answer> {
    const query: (readonly [string, string])[] = [
      ["list-type", "2"],
      ["encoding-type", "url"],
      ["max-keys", String(max)],
      ["prefix", this.#prefix + folder],
    ];
    if (token !== undefined) query.push(["continuation-token", token]);
    return await this.#service.send({ method: "GET", key: "", query });
  }

  #key(name: string): string {
    return this.#prefix + name;
  }
}

function fieldOf(xml: string, name: string): string {
  return new RegExp(`<${name}>([^<]*)</${name}>`).exec(xml)?.[1] ?? "";
}

function unescaped(text: string): string {
  return text.replaceAll("&lt;", "<").replaceAll("&gt;", ">").replaceAll("&quot;", '"').replaceAll("&apos;", "'").replaceAll("&amp;", "&"); // prettier-ignore
}
