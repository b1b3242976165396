// The command `holdfast console`: a page that shows what is going on in a store, until it is told to
// end.
import { Option, type Command } from "commander";
import { startConsole, type ConsoleAction, type RunningConsole } from "../../../console/index.ts";
import { openStore, type Store } from "../../../index.ts";
import { exitCodes } from "../../exit-codes.ts";
import { endHelp } from "../../help.ts";
import { mustBeFolder } from "../location.ts";
import { failed } from "../../part-verb.ts";
import type { Run } from "../../run.ts";
import { collect as addWord } from "../events/log.ts";
import { tlsOf, type TlsFlags } from "../s3/place.ts";
import { hintOf, parsePort } from "../s3/s3.ts";

interface ConsoleFlags extends TlsFlags {
  readonly port: number;
  readonly host: string;
  readonly allowHost?: readonly string[];
  readonly allowActions?: true;
  readonly behindProxy?: true;
}

export function registerConsole(command: Command, run: Run): void {
  command
    .description(
      "Serves a page that shows what is going on in a store. It only reads, unless --allow-actions is given. Guide: docs/console.md.",
    )
    .argument("<DIR>", "the store")
    .addOption(new Option("--port <n>", "the port; 0: any free one").argParser(parsePort).default(8484))
    .addOption(new Option("--host <address>", "the address to listen on").default("127.0.0.1"))
    .option("--allow-actions", "offer release, replay, discard, pause, resume, restore and doctor; each is logged")
    .option("--cert <file>", "certificate in PEM, for HTTPS")
    .option("--key <file>", "its key in PEM")
    .option("--behind-proxy", "a proxy with TLS is in front: allow HTTP beyond this machine")
    .option("--allow-host <name>", "a name under which browsers may open it; repeatable", addWord)
    .action(async (directory: string, flags: ConsoleFlags) => {
      if ((flags.cert === undefined) !== (flags.key === undefined))
        command.error("error: --cert and --key go together");
      mustBeFolder(directory, "the console");
      await using store = await openStore(directory, { readOnly: true });
      const running = await start(store, flags, run);
      if (running === undefined) return;
      const { url, port } = running;
      run.output.result({ url, port, allowActions: flags.allowActions === true }, () => introductionOf(directory, url, flags)); // prettier-ignore
      await untilEnd(run.signal);
      run.output.note("holdfast: closing the console");
      await running.close();
    });
  endHelp(command, {
    examples: [
      "holdfast console /mnt/shop",
      "holdfast console /mnt/shop --allow-actions --port 0",
      "holdfast console /mnt/shop --host 0.0.0.0 --allow-host shop.example --cert tls.crt --key tls.key",
    ],
    exits: {
      done: "stopped",
      failed: `${failed}; the port is in use`,
      wrongUsage: "wrong usage: a --host beyond this machine without --cert or --behind-proxy",
      missing: "there is no store in DIR: is the share mounted?",
      verificationFailed: "the store is damaged, or its file system cannot be used",
    },
  });
}

/** Returns undefined and sets the exit code if the address is not available. */
async function start(store: Store, flags: ConsoleFlags, run: Run): Promise<RunningConsole | undefined> {
  const { port, host, allowHost, allowActions = false, behindProxy = false } = flags;
  const onAction = (action: ConsoleAction): void => run.output.note(`holdfast: ${lineOf(action)}`);
  try {
    const tls = await tlsOf(flags);
    return await startConsole(store, { port, host, hosts: allowHost, allowActions, behindProxy, tls, onAction });
  } catch (error) {
    const { code = "", message, name } = error as NodeJS.ErrnoException;
    const isUsage = name === "TypeError";
    const hint = isUsage ? "Give --cert and --key, or --behind-proxy." : hintOf[code];
    if (hint === undefined) throw error;
    run.exitCode = isUsage ? exitCodes.wrongUsage : exitCodes.failed;
    const details = { name, code: code === "" ? "WRONG_USAGE" : code, action: "fix-caller", message };
    run.output.failure({ ...details, exitCode: run.exitCode }, `the console cannot start: ${message}`, hint);
    return undefined;
  }
}

async function untilEnd(signal: AbortSignal): Promise<void> {
  if (!signal.aborted) await new Promise((resolve) => signal.addEventListener("abort", resolve, { once: true }));
}

function introductionOf(directory: string, url: string, { allowActions }: ConsoleFlags): string {
  const rights =
    allowActions === true ? "Actions are allowed, and logged." : "It only shows: --allow-actions lets you act.";
  return `Console of ${directory}\n  ${url}\n${rights} Ctrl-C ends it.`;
}

function lineOf({ action, by, result, error }: ConsoleAction): string {
  return `${action} by ${by}: ${error === undefined ? result : `failed: ${error}`}`;
}
