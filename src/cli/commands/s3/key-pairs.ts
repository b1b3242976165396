// The key pairs of a gateway: from flags, from the environment, from a file, or generated here.
import { randomBytes, randomInt } from "node:crypto";
import type { Command } from "commander";
import type { S3Credentials } from "../../../s3/index.ts";
import { read } from "./place.ts";

export interface KeyFlags {
  readonly accessKey?: string;
  readonly secretKey?: string;
  readonly keys?: string;
}

export interface KeyPairs {
  /** The key pairs, at least one. Examples use the first one. */
  readonly all: readonly [S3Credentials, ...S3Credentials[]];
  /** True if the first one was generated now. Its secret is shown only this time. */
  readonly isGenerated: boolean;
}

export async function keyPairsOf({ accessKey, secretKey, keys }: KeyFlags, command: Command): Promise<KeyPairs> {
  if ((accessKey === undefined) !== (secretKey === undefined))
    command.error("error: --access-key and --secret-key go together");
  const given = accessKey === undefined || secretKey === undefined ? [] : [pair(accessKey, secretKey)];
  const listed = keys === undefined ? [] : await readKeys(keys, command);
  const [first, ...others] = [...given, ...listed];
  return first === undefined
    ? { all: [generate()], isGenerated: true }
    : { all: [first, ...others], isGenerated: false };
}

function pair(accessKeyId: string, secretAccessKey: string): S3Credentials {
  return { accessKeyId, secretAccessKey };
}

const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";

/** As long as those of AWS, which some clients check. */
function generate(): S3Credentials {
  const id = Array.from({ length: 18 }, () => letters[randomInt(letters.length)]).join("");
  // Only letters and digits, because people paste a secret into shells and all kinds of files.
  const secret = randomBytes(60).toString("base64").replaceAll(/[+/=]/g, "").slice(0, 40);
  return pair(`HF${id}`, secret);
}

/** Parses a pair. The gateway checks its parts. */
async function readKeys(path: string, command: Command): Promise<readonly S3Credentials[]> {
  const text = (await read(path)).toString("utf8");
  let list: unknown;
  try {
    list = JSON.parse(text);
  } catch {
    command.error(`error: ${path} is not JSON`);
  }
  if (!Array.isArray(list) || list.length === 0 || list.some((each) => typeof each !== "object" || each === null))
    command.error(`error: ${path} must be a list of key pairs: [{"accessKeyId":"…","secretAccessKey":"…"}]`);
  return list as readonly S3Credentials[];
}
