// The command `holdfast s3`: an S3 gateway on a folder, until it is told to end.
import { InvalidArgumentError, Option, type Command } from "commander";
import type { ObjectStore } from "../../../objects/index.ts";
import { startS3Gateway, type S3AccessEntry, type S3Gateway, type S3GatewayOptions } from "../../../s3/index.ts";
import { parseDuration } from "../../duration.ts";
import { exitCodes } from "../../exit-codes.ts";
import { messageOf } from "../../failure.ts";
import { endHelp } from "../../help.ts";
import { printable } from "../../output.ts";
import { failed, noCreateOption, wrongUsage } from "../../part-verb.ts";
import type { Run } from "../../run.ts";
import { collect as addWord } from "../events/log.ts";
import { AccessLog } from "./access-log.ts";
import { environmentText, introductionText, type Introduction } from "./introduction.ts";
import { keyPairsOf, type KeyFlags } from "./key-pairs.ts";
import { makeBuckets, openObjectsOf, tlsOf, type TlsFlags } from "./place.ts";

interface S3Flags extends KeyFlags, TlsFlags {
  readonly port: number;
  readonly host: string;
  readonly region: string;
  readonly domain?: string;
  readonly bucket?: readonly string[];
  readonly metrics?: true;
  readonly accessLog?: true;
  readonly printEnv?: true;
  readonly memory?: true;
  /** False for `--no-create`. */
  readonly create: boolean;
  readonly connections: number;
  readonly collect: number;
  readonly drain: number;
}

export function registerS3(s3: Command, run: Run): void {
  s3.description(
    "Serves the buckets of an object store over S3 until it is stopped; several gateways may share one folder. Guide: docs/s3.md.",
  )
    .argument("[DIR]", "the object store, or a store that has it: a directory, or postgres://…; created if missing")
    .addOption(new Option("--port <n>", "the port; 0: any free one").argParser(parsePort).default(9000))
    .addOption(new Option("--host <address>", "the address to listen on").default("127.0.0.1"))
    .addOption(
      new Option("--access-key <id>", "the id of the key pair (default: a new pair, printed once)").env(
        "HOLDFAST_S3_ACCESS_KEY",
      ),
    )
    .addOption(
      new Option("--secret-key <secret>", "its secret; other users cannot see it in the environment").env(
        "HOLDFAST_S3_SECRET_KEY",
      ),
    )
    .addOption(
      new Option(
        "--keys <file>",
        'more key pairs, as JSON: [{"accessKeyId":"ci","secretAccessKey":"…","rights":"read-only","only":["builds"]}]; rights: owner, read-write or read-only; only: buckets and bucket/prefix; account: own buckets',
      ),
    )
    .addOption(new Option("--bucket <name>", "create this bucket if it is missing; may be repeated").argParser(addWord))
    .addOption(new Option("--region <name>", "the region that clients must sign for").default("us-east-1"))
    .addOption(new Option("--domain <name>", "also serve bucket.NAME: virtual-host style"))
    .addOption(new Option("--cert <file>", "TLS: the certificate and its chain, PEM"))
    .addOption(new Option("--key <file>", "TLS: its private key, PEM"))
    .addOption(new Option("--metrics", "serve Prometheus metrics at /-/metrics, without a signature"))
    .addOption(new Option("--access-log", "print a line of JSON for each request").conflicts("printEnv"))
    .addOption(new Option("--print-env", "print shell variables for the AWS CLI and SDKs, including the secret"))
    .addOption(new Option("--memory", "store everything in memory, for tests"))
    .addOption(noCreateOption("object store"))
    .addOption(
      new Option("--connections <n>", "the number of open connections; beyond it, idle ones are closed first")
        .argParser(parseConnections)
        .default(1000),
    )
    .addOption(
      new Option("--collect <duration>", "how often to remove expired objects and leftovers; 0s: never")
        .argParser(parseDuration)
        .default(3_600_000, "1h"),
    )
    .addOption(
      new Option("--drain <duration>", "when stopped, how long to let running requests finish")
        .argParser(parseDuration)
        .default(10_000, "10s"),
    );
  endHelp(s3, {
    examples: [
      "holdfast s3 /mnt/shop/objects --bucket photos",
      "HOLDFAST_S3_ACCESS_KEY=shop HOLDFAST_S3_SECRET_KEY=… holdfast s3 /mnt/shop --host 0.0.0.0 --cert tls.crt --key tls.key",
      "holdfast s3 --memory --port 0 --bucket test --print-env > s3.env & … . ./s3.env",
    ],
    exits: {
      done: "stopped, after finishing the running requests",
      failed: `${failed}; the port is in use`,
      wrongUsage,
      nothingToDo: "a file of --keys, --cert or --key does not exist",
      missing: "with --no-create: there is no object store in DIR",
      verificationFailed: "the object store is damaged, or its file system cannot be used",
    },
  });
  s3.action(async (directory: string | undefined, flags: S3Flags) => {
    if ((directory === undefined) === (flags.memory === undefined))
      s3.error("error: name the directory, or give --memory");
    if ((flags.cert === undefined) !== (flags.key === undefined)) s3.error("error: --cert and --key go together");
    const pairs = await keyPairsOf(flags, s3);
    const log = flags.accessLog === true ? new AccessLog(run.pipes.stdout) : undefined;
    const options: S3GatewayOptions = {
      port: flags.port,
      host: flags.host,
      region: flags.region,
      domain: flags.domain,
      credentials: pairs.all,
      tls: await tlsOf(flags),
      metrics: flags.metrics,
      connectionsMax: flags.connections,
      onAnswered: (entry) => {
        log?.add(entry);
        warnOf(entry, run);
      },
    };
    const opened = await openObjectsOf(directory, { create: flags.create });
    try {
      const buckets = await makeBuckets(opened.objects, flags.bucket ?? []);
      const gateway = await start(opened.objects, options, run);
      if (gateway === undefined) return;
      const [first] = pairs.all;
      const { region } = flags;
      const place = directory ?? "memory";
      const introduction = { url: shownUrl(gateway.url), region, place, first, bucket: buckets[0] ?? "photos" };
      introduce({ ...introduction, isGenerated: pairs.isGenerated }, gateway, buckets, flags, run);
      await serve(gateway, opened.objects, flags, run);
    } finally {
      await opened.close();
    }
  });
}

/** Starts the gateway. If the address is not available, returns undefined and sets the exit code. */
async function start(objects: ObjectStore, options: S3GatewayOptions, run: Run): Promise<S3Gateway | undefined> {
  try {
    return await startS3Gateway(objects, options);
  } catch (error) {
    const { code = "", message, name } = error as NodeJS.ErrnoException;
    const hint = hintOf[code] ?? (error instanceof TypeError || code.startsWith("ERR_") ? "Correct it." : undefined);
    if (hint === undefined) throw error;
    run.exitCode = exitCodes.failed;
    const details = { name, code: code === "" ? "WRONG_USAGE" : code, action: "fix-caller", message };
    run.output.failure({ ...details, exitCode: run.exitCode }, `the gateway cannot start: ${message}`, hint);
    return undefined;
  }
}

export const hintOf: Readonly<Record<string, string>> = {
  EADDRINUSE: "Another program has this port: choose another one with --port, or 0 for any.",
  EADDRNOTAVAIL: "This machine does not have the address that --host names.",
  EACCES: "This user may not listen there: ports below 1024 are for root.",
  ENOTFOUND: "The name that --host gives is not known.",
};

function introduce(
  introduction: Introduction,
  { url, port }: S3Gateway,
  buckets: readonly string[],
  flags: S3Flags,
  run: Run,
): void {
  const { region, first, isGenerated } = introduction;
  const { accessKeyId, secretAccessKey } = first;
  const isLocal = ["127.0.0.1", "::1", "localhost"].includes(flags.host);
  if (!isLocal && flags.cert === undefined)
    run.output.warning({
      name: "NoTls",
      message: "requests are signed but not encrypted: give --cert and --key, or put a proxy with TLS in front",
    });
  if (flags.printEnv === true) return void run.pipes.stdout.write(environmentText(introduction));
  const secret = isGenerated ? { secretAccessKey } : {};
  run.output.result({ url, port, region, accessKeyId, ...secret, buckets }, () => introductionText(introduction));
}

/** Returns the URL for examples: a client cannot use the wildcard address. */
function shownUrl(url: string): string {
  return url.replace(/\/\/(0\.0\.0\.0|\[::\])/, "//localhost");
}

async function serve(gateway: S3Gateway, objects: ObjectStore, flags: S3Flags, run: Run): Promise<void> {
  const { signal } = run;
  const collect = (): void =>
    void objects.collect({ signal }).catch((error: unknown) => {
      if (!signal.aborted) run.output.warning({ name: "Collect", message: `collecting failed: ${textOf(error)}` });
    });
  const timer = flags.collect === 0 ? undefined : setInterval(collect, flags.collect);
  if (!signal.aborted) await new Promise((resolve) => signal.addEventListener("abort", resolve, { once: true }));
  clearInterval(timer);
  run.output.note("holdfast: taking no new requests, and finishing what runs");
  await gateway.close({ drainMs: flags.drain });
}

/** Reports internal errors, which the client does not get. */
function warnOf({ id, method, target, code, error }: S3AccessEntry, run: Run): void {
  if (error === undefined) return;
  const message = `${method} ${printable(target)}: ${code ?? ""}, request ${id}: ${textOf(error)}`;
  run.output.warning({ name: code ?? "InternalError", message });
}

function textOf(error: unknown): string {
  return printable(messageOf(error));
}

export function parsePort(text: string): number {
  const port = Number(text);
  if (/^\d{1,5}$/.test(text) && port <= 65_535) return port;
  throw new InvalidArgumentError("Write a port from 0 to 65535.");
}

function parseConnections(text: string): number {
  const count = Number(text);
  if (/^\d{1,7}$/.test(text) && count >= 1) return count;
  throw new InvalidArgumentError("Write a whole number from 1.");
}
