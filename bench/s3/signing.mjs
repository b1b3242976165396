// Signs requests as the AWS SDK does, with what is the same for all of them computed once: the client
// shares the machine with the servers.
import { createHash, createHmac } from "node:crypto";

const region = "us-east-1";
const hmac = (key, text) => createHmac("sha256", key).update(text).digest();
const sha256 = (data) => createHash("sha256").update(data).digest("hex");
const keys = new Map();
const hashes = new Map();

function signingKey(secret, day) {
  const name = `${secret} ${day}`;
  if (!keys.has(name))
    keys.set(
      name,
      [day, region, "s3", "aws4_request"].reduce((key, step) => hmac(key, step), `AWS4${secret}`),
    );
  return keys.get(name);
}

function bodyHash(body) {
  if (!hashes.has(body)) hashes.set(body, sha256(body));
  return hashes.get(body);
}

export function signedRequest({ accessKeyId, secretAccessKey }, { method, url, path, query = "", body = "" }) {
  const date = `${new Date().toISOString().slice(0, 19).replaceAll(/[-:]/g, "")}Z`;
  const day = date.slice(0, 8);
  const headers = {
    host: url.replace(/^https?:\/\//, ""),
    "x-amz-content-sha256": bodyHash(body),
    "x-amz-date": date,
  };
  const names = Object.keys(headers).sort();
  const lines = names.map((name) => `${name}:${headers[name]}\n`).join("");
  const signed = names.join(";");
  const canonical = [method, path, query, lines, signed, headers["x-amz-content-sha256"]].join("\n");
  const scope = `${day}/${region}/s3/aws4_request`;
  const text = ["AWS4-HMAC-SHA256", date, scope, sha256(canonical)].join("\n");
  const signature = hmac(signingKey(secretAccessKey, day), text).toString("hex");
  headers.authorization = `AWS4-HMAC-SHA256 Credential=${accessKeyId}/${scope}, SignedHeaders=${signed}, Signature=${signature}`;
  return { path: query === "" ? path : `${path}?${query}`, headers };
}
