// rclone, as it is installed, against a gateway.
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { owner } from "../gateway-process.ts";
import { digestsOf, findTool, makeFiles, useGateway } from "./tool.ts";

const version = findTool("rclone", "rclone")?.split("\n", 1)[0];

describe.skipIf(version === undefined)(`rclone (${version ?? "missing"})`, () => {
  const bench = useGateway();
  const rclone = (...args: readonly string[]): Promise<string> => {
    const { run, gateway } = bench();
    return run("rclone", ["--s3-chunk-size", "5M", "--s3-upload-cutoff", "6M", ...args], {
      RCLONE_CONFIG: "/dev/null",
      RCLONE_CONFIG_HF_TYPE: "s3",
      RCLONE_CONFIG_HF_PROVIDER: "Other",
      RCLONE_CONFIG_HF_ENDPOINT: gateway.url,
      RCLONE_CONFIG_HF_REGION: "us-east-1",
      RCLONE_CONFIG_HF_ACCESS_KEY_ID: owner.accessKeyId,
      RCLONE_CONFIG_HF_SECRET_ACCESS_KEY: owner.secretAccessKey,
    });
  };

  it("creates, lists and removes buckets", async () => {
    await rclone("mkdir", "hf:made");
    expect(await rclone("lsd", "hf:")).toMatch(/ made\n/);
    await rclone("rmdir", "hf:made");
    expect(await rclone("lsd", "hf:")).not.toMatch(/ made\n/);
  });

  it("syncs a tree up and down, finds no difference, and changes no byte", async () => {
    const { directory } = bench();
    makeFiles(join(directory, "up"));
    await rclone("sync", "up", "hf:tools/tree");
    await rclone("check", "up", "hf:tools/tree");
    await rclone("check", "--download", "up", "hf:tools/tree");
    await rclone("sync", "hf:tools/tree", "down");
    expect(digestsOf(join(directory, "down"))).toEqual(digestsOf(join(directory, "up")));
  });

  it("moves on the server, reads a range, and removes", async () => {
    await rclone("moveto", "hf:tools/tree/plain.txt", "hf:tools/moved.txt");
    expect(await rclone("cat", "--offset", "1", "--count", "3", "hf:tools/moved.txt")).toHaveLength(3);
    await rclone("purge", "hf:tools/tree");
    expect((await rclone("lsf", "-R", "hf:tools")).trim()).toBe("moved.txt");
  });
});
