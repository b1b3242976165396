// s3cmd, as it is installed, against a gateway.
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { owner } from "../gateway-process.ts";
import { digestsOf, findTool, makeFiles, useGateway } from "./tool.ts";

const version = findTool("s3cmd", "s3cmd");

describe.skipIf(version === undefined)(`s3cmd (${version ?? "missing"})`, () => {
  const bench = useGateway();
  const s3cmd = (...args: readonly string[]): Promise<string> => {
    const { run, gateway } = bench();
    const host = gateway.url.replace("http://", "");
    return run("s3cmd", [
      ...["--no-ssl", "--config", "/dev/null", `--host=${host}`, `--host-bucket=${host}`],
      ...[`--access_key=${owner.accessKeyId}`, `--secret_key=${owner.secretAccessKey}`],
      ...["--region=us-east-1", "--no-progress"],
      ...args,
    ]);
  };

  it("creates, lists and removes buckets", async () => {
    await s3cmd("mb", "s3://made");
    expect(await s3cmd("ls")).toContain("s3://made");
    await s3cmd("rb", "s3://made");
    expect(await s3cmd("ls")).not.toContain("s3://made");
  });

  it("syncs a tree up and down without changing a byte, large files in parts", async () => {
    const { directory } = bench();
    makeFiles(join(directory, "up"));
    await s3cmd("sync", "up/", "s3://tools/tree/", "--multipart-chunk-size-mb=5");
    await s3cmd("sync", "s3://tools/tree/", `${directory}/down/`);
    expect(digestsOf(join(directory, "down"))).toEqual(digestsOf(join(directory, "up")));
  });

  it("copies, moves and removes on the server", async () => {
    await s3cmd("cp", "s3://tools/tree/plain.txt", "s3://tools/copy.txt");
    await s3cmd("mv", "s3://tools/copy.txt", "s3://tools/moved.txt");
    expect(await s3cmd("ls", "s3://tools/")).toContain("s3://tools/moved.txt");
    await s3cmd("del", "--recursive", "--force", "s3://tools/");
    expect(await s3cmd("ls", "--recursive", "s3://tools/")).toBe("");
  });
});
