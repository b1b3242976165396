// The AWS CLI, as it is installed, against a gateway.
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { owner } from "../gateway-process.ts";
import { digestsOf, findTool, makeFiles, useGateway } from "./tool.ts";

const version = findTool("aws", "awscli");

describe.skipIf(version === undefined)(`the AWS CLI (${version ?? "missing"})`, () => {
  const bench = useGateway();
  const aws = (...args: readonly string[]): Promise<string> => {
    const { run, gateway } = bench();
    return run("aws", ["--endpoint-url", gateway.url, ...args], {
      AWS_ACCESS_KEY_ID: owner.accessKeyId,
      AWS_SECRET_ACCESS_KEY: owner.secretAccessKey,
      AWS_DEFAULT_REGION: "us-east-1",
    });
  };

  it("creates, lists and removes buckets", async () => {
    await aws("s3", "mb", "s3://made");
    expect(await aws("s3", "ls")).toMatch(/ made\n/);
    await aws("s3", "rb", "s3://made");
    expect(await aws("s3", "ls")).not.toMatch(/ made\n/);
  });

  it("syncs a tree up and down without changing a byte, large files in parts", async () => {
    const { directory } = bench();
    makeFiles(join(directory, "up"));
    await aws("s3", "sync", "up", "s3://tools/tree", "--quiet");
    expect(await aws("s3", "sync", "up", "s3://tools/tree")).toBe("");
    await aws("s3", "sync", "s3://tools/tree", "down", "--quiet");
    expect(digestsOf(join(directory, "down"))).toEqual(digestsOf(join(directory, "up")));
    const head = JSON.parse(await aws("s3api", "head-object", "--bucket", "tools", "--key", "tree/large.bin")) as {
      ETag: string;
    };
    expect(head.ETag).toMatch(/-\d+"$/);
  });

  it("copies, moves and removes on the server", async () => {
    await aws("s3", "cp", "s3://tools/tree/large.bin", "s3://tools/copy.bin", "--quiet");
    await aws("s3", "mv", "s3://tools/copy.bin", "s3://tools/moved.bin", "--quiet");
    expect(await aws("s3", "ls", "s3://tools/")).toMatch(/20971537 moved\.bin/);
    await aws("s3", "rm", "s3://tools/", "--recursive", "--quiet");
    expect(await aws("s3", "ls", "s3://tools/", "--recursive").catch(() => "")).toBe("");
  });

  it("keeps versions, and reads one of them", async () => {
    const { directory } = bench();
    await aws("s3", "mb", "s3://versions");
    await aws("s3api", "put-bucket-versioning", "--bucket", "versions", "--versioning-configuration", "Status=Enabled");
    for (const text of ["one", "two"]) {
      writeFileSync(join(directory, "v.txt"), text);
      await aws("s3", "cp", "v.txt", "s3://versions/v.txt", "--quiet");
    }
    const { Versions } = JSON.parse(await aws("s3api", "list-object-versions", "--bucket", "versions")) as {
      Versions: { VersionId: string; IsLatest: boolean }[];
    };
    expect(Versions.map(({ IsLatest }) => IsLatest)).toEqual([true, false]);
    const id = Versions[1]?.VersionId ?? "";
    await aws("s3api", "get-object", "--bucket", "versions", "--key", "v.txt", "--version-id", id, "old.txt");
    expect(await bench().run("cat", ["old.txt"])).toBe("one");
  });

  it("signs URLs that any program can use", async () => {
    const { directory } = bench();
    // Version 1 of the CLI signs URLs of other servers than those of AWS by version 2, unless it is told.
    mkdirSync(join(directory, ".aws"));
    writeFileSync(join(directory, ".aws/config"), "[default]\ns3 =\n  signature_version = s3v4\n");
    writeFileSync(join(directory, "p q.txt"), "presigned");
    await aws("s3", "cp", "p q.txt", "s3://tools/p q.txt", "--quiet");
    const url = (await aws("s3", "presign", "s3://tools/p q.txt")).trim();
    expect(await (await fetch(url)).text()).toBe("presigned");
  });
});
