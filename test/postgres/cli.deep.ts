// The command line and a server that does not answer: the attempts to reach it take their time.
import { expect, test } from "vitest";
import { holdfast } from "../cli/holdfast-process.ts";

test("a command that cannot reach the server ends with 1, and its message has no password", async () => {
  const ended = await holdfast(["events", "head", "postgres://me:s3cret@127.0.0.1:1/shop"]);
  expect(ended).toMatchObject({ exitCode: 1, stdout: "" });
  expect(ended.stderr).toContain("ECONNREFUSED");
  expect(ended.stderr).not.toContain("s3cret");
});
