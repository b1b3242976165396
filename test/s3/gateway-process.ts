// `holdfast s3` as a process of its own, as it is installed, and a client for it.
import { spawn, type ChildProcess } from "node:child_process";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import * as s3 from "@aws-sdk/client-s3";

export const program: string = fileURLToPath(new URL("../../dist/cli/bin.cjs", import.meta.url));

export const owner = { accessKeyId: "OWNER", secretAccessKey: "owner-secret-of-the-tests" };

export interface GatewayEnd {
  readonly exitCode: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly stdout: string;
  readonly stderr: string;
}

export class GatewayProcess {
  readonly url: string;
  readonly ended: Promise<GatewayEnd>;
  readonly #child: ChildProcess;

  private constructor(child: ChildProcess, ended: Promise<GatewayEnd>, url: string) {
    this.#child = child;
    this.ended = ended;
    this.url = url;
  }

  /** When it serves. */
  static async start(args: readonly string[], env: Readonly<Record<string, string>> = {}): Promise<GatewayProcess> {
    return await GatewayProcess.run(process.execPath, [program, "s3", "--port", "0", "--json", ...args], env);
  }

  /** The same by another command, whose first line on stdout is JSON with the url. */
  static async run(
    command: string,
    args: readonly string[],
    env: Readonly<Record<string, string>> = {},
  ): Promise<GatewayProcess> {
    const child = spawn(command, args, {
      stdio: ["ignore", "pipe", "pipe"],
      env: {
        ...process.env,
        HOLDFAST_S3_ACCESS_KEY: owner.accessKeyId,
        HOLDFAST_S3_SECRET_KEY: owner.secretAccessKey,
        ...env,
      },
    });
    const written = { stdout: "", stderr: "" };
    child.stdout.setEncoding("utf8").on("data", (text: string) => (written.stdout += text));
    child.stderr.setEncoding("utf8").on("data", (text: string) => (written.stderr += text));
    const ended = new Promise<GatewayEnd>((resolve, reject) => {
      child.once("error", reject);
      child.once("close", (exitCode, signal) => resolve({ exitCode, signal, ...written }));
    });
    const first = await new Promise<string>((resolve, reject) => {
      createInterface({ input: child.stdout }).once("line", resolve);
      void ended.then((end) => reject(new Error(`it did not start: ${end.stderr}`)), reject);
    });
    return new GatewayProcess(child, ended, (JSON.parse(first) as { url: string }).url);
  }

  get pid(): number {
    return this.#child.pid ?? 0;
  }

  kill(signal: NodeJS.Signals): void {
    this.#child.kill(signal);
  }

  /** As an operator ends it. */
  async stop(): Promise<GatewayEnd> {
    this.kill("SIGTERM");
    return await this.ended;
  }
}

/** Tries nothing twice: what the gateway answers is what a test sees. */
export function clientOf(url: string, credentials: s3.S3ClientConfig["credentials"] = owner): s3.S3Client {
  return new s3.S3Client({
    endpoint: url,
    region: "us-east-1",
    forcePathStyle: true,
    credentials,
    maxAttempts: 1,
  });
}
