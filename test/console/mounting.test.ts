// The examples that mount the console in a program with Express or Fastify.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { expect, onTestFinished, test } from "vitest";
import { openStore } from "../../src/index.ts";
import { makeScratch } from "../sites/scratch.ts";
import { ask } from "./pages.ts";

test.each(["express", "fastify"])(
  "the example with %s serves page, data, stream and actions under its path",
  async (name) => {
    const directory = makeScratch();
    await using store = await openStore(directory);
    const box = await store.handoff("labels");
    const program = fileURLToPath(new URL(`../../examples/console/${name}.mjs`, import.meta.url));
    const child = spawn(process.execPath, [program, directory], { env: { ...process.env, PORT: "0" } });
    onTestFinished(() => void child.kill("SIGKILL"));
    const [said] = (await once(child.stdout, "data")) as [Buffer];
    const { port: text, pathname, search } = new URL(said.toString().trim());
    const port = Number(text);
    expect((await ask(port, "/")).text).toBe("The shop.");
    const signedIn = await ask(port, `${pathname}${search}`);
    expect(signedIn.headers.location).toBe("/console/");
    const cookie = (signedIn.headers["set-cookie"]?.[0] ?? "").split(";")[0] ?? "";
    expect((await ask(port, "/console/")).text).toContain("<title>Holdfast console</title>");
    expect((await ask(port, "/console/api/me")).status).toBe(401);
    expect((await ask(port, "/console/api/boxes", { headers: { cookie } })).text).toContain("labels");
    const headers = { cookie, origin: `http://127.0.0.1:${port}`, "content-type": "application/json" };
    const body = JSON.stringify({ box: "labels", reason: "moving" });
    expect((await ask(port, "/console/api/actions/pause", { method: "POST", headers, body })).status).toBe(200);
    expect(await box.stats()).toMatchObject({ paused: true, pauseReason: "moving" });
  },
);
