// What the mechanisms take for granted of a share, asked of two real clients: each wrong answer
// would be a number won twice or a write lost.
import { setTimeout as sleep } from "node:timers/promises";
import { handoffTruths } from "./handoff-truths.ts";
import { objectsTruths } from "./objects-truths.ts";
import { openAndClose } from "./open-and-close.ts";
import { openOfUnlinked } from "./open-of-unlinked.ts";
import type { Scenario } from "../scenario.ts";
import { gone, rounds, truth } from "./truth.ts";

/**
 * How a waiter could ask whether the hold file of another is still there; the last is how it does.
 */
const questionsOfHoldFile = ["open", "open after its directory", "link from it", "link from it after its directory"];

export const diskTruths: readonly Scenario[] = [
  openOfUnlinked,
  openAndClose,

  truth(
    "replace-of-open",
    "how long a file cannot be replaced, renamed or removed that another machine has open and was cut off with",
    async ({ bed, here, there, directory }, report) => {
      for (const isCut of [false, true])
        for (const change of ["replace", "rename away", "unlink"]) {
          const path = `${directory}/${change.replace(" ", "-")}-${isCut ? "cut" : "connected"}`;
          await there.do("make", path, "old");
          await there.do("make", `${path}.new`, "new");
          const handle = await here.do<number>("open", path, "r");
          if (isCut) await bed.guest(1).cut();
          const startMs = performance.now();
          const attempt = () =>
            change === "replace"
              ? there.try("rename", `${path}.new`, path)
              : change === "unlink"
                ? there.try("unlink", path)
                : there.try("rename", path, `${path}.away`);
          const first = await attempt();
          let last = first;
          while (last.errno !== undefined && performance.now() - startMs < bed.server.leaseMs + 20_000) {
            await sleep(500);
            last = await attempt();
          }
          const seconds = Math.round((performance.now() - startMs) / 100) / 10;
          const end = last.errno === undefined ? `done after ${seconds} s` : `${last.errno} for ${seconds} s`;
          report.note(`${change}, its reader ${isCut ? "cut off" : "connected"}: first ${first.errno ?? "ok"}, ${end}`);
          if (isCut) await bed.guest(1).heal();
          await here.try("close", handle);
        }
    },
  ),

  truth(
    "released-hold-file",
    "a hold file that its owner has unlinked is known to be gone at once, though its inode lives on as a slot",
    async ({ here, there, directory }, report) => {
      for (const question of questionsOfHoldFile) {
        let wrong = 0;
        for (let round = 0; round < rounds; round++) {
          const [hold, slot] = ["hold", "slot"].map((kind) => `${directory}/${kind}s/${kind}-${question}-${round}`);
          const ask = () => here.do<boolean>("isThere", question, hold ?? "", `${directory}/${question}-${round}`);
          for (const kind of ["hold", "slot"]) await there.try("mkdir", `${directory}/${kind}s`);
          await there.do("make", hold ?? "", "x");
          await there.do("link", hold ?? "", slot ?? "");
          for (let again = 0; again < 3; again++) await ask();
          await there.do("unlink", hold ?? "");
          if (await ask()) wrong++;
        }
        report.note(`${question}: wrong "it is there" ${wrong} of ${rounds}`);
        if (question === questionsOfHoldFile.at(-1)) report.must(wrong === 0, `${question} was answered from a cache`);
      }
    },
  ),

  truth(
    "second-name",
    "a file can be read by its second name at once, on the machine that linked it and on another",
    async ({ here, there, directory }, report) => {
      // A slot of a chain is the second name of a temp file. The loser of the race for it reads it
      // next, maybe beside the winner.
      for (const [where, reader] of [
        ["the same machine", here],
        ["another machine", there],
      ] as const) {
        const answers = new Map<string, number>();
        for (let round = 0; round < 3 * rounds; round++) {
          const name = `${directory}/${where.replaceAll(" ", "-")}-${round}`;
          await here.do("make", `${name}-temp`, "x");
          await here.do("link", `${name}-temp`, name);
          // Looked at by both names, by turns and at once.
          const reads = [name, `${name}-temp`, name].map((path) => reader.try("readFile", path));
          for (const { errno = "ok" } of await Promise.all(reads)) answers.set(errno, (answers.get(errno) ?? 0) + 1);
        }
        report.note(`read on ${where}: ${[...answers].map(([answer, count]) => `${answer} ${count}`).join(", ")}`);
        report.must(answers.size === 1 && answers.has("ok"), `a second name could not be read on ${where}`);
      }
    },
  ),

  truth(
    "link-into-removed",
    "nothing can be linked into a directory that another machine has emptied and removed",
    async ({ here, there, directory }, report) => {
      const answers = new Set<string>();
      for (let round = 0; round < rounds; round++) {
        const [epoch, temp] = [`${directory}/epoch-${round}`, `${directory}/temp-${round}`];
        await here.do("mkdir", epoch);
        await here.do("make", temp, "x");
        // It knows the directory well: it has linked into it, and listed it.
        await here.do("link", temp, `${epoch}/1`);
        await here.do("readdir", epoch);
        await there.do("unlink", `${epoch}/1`);
        await there.do("rmdir", epoch);
        const { errno = "it worked" } = await here.try("link", temp, `${epoch}/2`);
        answers.add(errno);
        report.must(gone.includes(errno), `link into a removed directory: ${errno}`);
      }
      report.note(`answers: ${[...answers].join(", ")}`);
    },
  ),

  truth(
    "late-rename",
    "a rename whose request arrives after its target directory was removed fails, and leaves the file where it was",
    async ({ bed, here, there, directory }, report) => {
      const answers = new Set<string>();
      for (let round = 0; round < 4; round++) {
        const [step, file] = [`${directory}/step-${round}`, `${directory}/file-${round}`];
        await here.do("mkdir", step);
        await here.do("make", file, "x");
        await here.do("readdir", step);
        await bed.guest(1).delay(1500);
        const renamed = here.try("rename", file, `${step}/in`);
        // The order is on its way to the guest at once; its request to the server is what waits.
        await sleep(700);
        const { errno: removed } = await there.try("rmdir", step);
        report.must(removed === undefined, `the directory could not be removed: ${removed}`);
        const { errno = "it worked", ms } = await renamed;
        await bed.guest(1).heal();
        answers.add(`${errno} after ${Math.round(ms)} ms`);
        report.must(gone.includes(errno), `rename into a removed directory: ${errno}`);
        const names = await there.do<string[]>("readdir", directory);
        report.must(names.includes(`file-${round}`), `the file of round ${round} is gone`);
      }
      report.note(`answers: ${[...answers].join(", ")}`);
    },
  ),

  truth(
    "absence-by-polling",
    "how soon a released hold is seen to be gone, by stat and by open",
    async ({ here, there, directory }, report) => {
      for (const how of ["stat", "open"] as const) {
        const late: number[] = [];
        for (let round = 0; round < 6; round++) {
          const path = `${directory}/${how}-${round}`;
          await there.do("make", path, "x");
          const absence = here.do<{ ms: number } | undefined>("awaitAbsence", how, path, 20, 40_000);
          await sleep(500);
          await there.do("unlink", path);
          const unlinkedMs = performance.now();
          await absence;
          late.push(Math.round(performance.now() - unlinkedMs));
        }
        report.note(`by ${how}, every 20 ms: ${late.join(", ")} ms after the unlink`);
        if (how === "open") report.must(Math.max(...late) < 1000, "an open saw a removed file for more than a second");
      }
    },
  ),

  truth(
    "read-after-others",
    "what another machine has made or replaced a moment ago is what a read finds: a reader under a lock relies on it",
    async ({ here, there, directory }, report) => {
      for (const how of ["readFile", "readByDisk"] as const)
        for (const before of ["looked for in vain", "read"]) {
          const answers = new Map<string, number>();
          for (let round = 0; round < rounds; round++) {
            const path = `${directory}/${how}-${before.replaceAll(" ", "-")}-${round}`;
            if (before === "read") await there.do("make", path, "old");
            await here.try(how, path);
            await there.do("make", `${path}.new`, "new");
            await there.do("rename", `${path}.new`, path);
            const { value, errno } = await here.try(how, path);
            const answer = errno ?? String(value);
            answers.set(answer, (answers.get(answer) ?? 0) + 1);
          }
          const found = [...answers].map(([answer, count]) => `${answer} ${count}`).join(", ");
          report.note(`${before} before, by ${how === "readFile" ? "Node" : "our disk"}: ${found}`);
          if (how === "readByDisk") report.must(answers.get("new") === rounds, "an old answer was believed");
        }
    },
  ),

  truth(
    "absence-by-default",
    "with default options, what another machine has made is found although it was looked for in vain: by our disk each time",
    async ({ bed, here, there, directory }, report) => {
      const name = directory.slice(directory.lastIndexOf("/") + 1);
      const second = "/mnt/by-default";
      await bed.server.mount(bed.guest(1), second, bed.kind === "smb" ? "nosharesock" : "nosharecache");
      try {
        for (const how of ["readFile", "readByDisk", "lookByDisk"] as const)
          for (const below of ["", "/made/too"]) {
            let missed = 0;
            for (let round = 0; round < rounds; round++) {
              const made = `${name}/${how}${below.replaceAll("/", "-")}-${round}`;
              const asked = `${second}/${made}${below}`;
              await here.try(how, asked);
              if (below !== "") {
                await there.do("mkdir", `${directory}/../${made}`);
                await there.do("mkdir", `${directory}/../${made}/made`);
              }
              await there.do("make", `${directory}/../${made}${below}`, "new");
              if ((await here.try(how, asked)).errno !== undefined) missed++;
            }
            const depth = below === "" ? "a file" : "a file in new directories";
            report.note(`${depth}, by ${how}: missed ${missed} of ${rounds}`);
            if (how !== "readFile") report.must(missed === 0, "an absence was believed");
          }
      } finally {
        await bed.guest(1).shell(`umount -l ${second}`);
      }
    },
  ),

  {
    ...truth(
      "two-mounts",
      "two mounts of one share on one machine: whether they look like one, and whether locks work between them",
      async ({ bed, here, there, directory }, report) => {
        const name = directory.slice(directory.lastIndexOf("/") + 1);
        const second = "/mnt/second";
        await bed.server.mount(bed.guest(1), second, bed.kind === "smb" ? "nosharesock,nobrl" : "nosharecache,nolock");
        try {
          const line = (await bed.guest(1).shell("mount")).split("\n").find((each) => each.includes(` ${second} `));
          report.note(line ?? "no second mount");
          await here.do("make", `${directory}/lock`, "x");
          const device = async (path: string): Promise<number> => (await here.do<{ dev: number }>("stat", path)).dev;
          const isOneDevice = (await device(directory)) === (await device(`${second}/${name}`));
          report.note(`st_dev of the two is ${isOneDevice ? "the same" : "different"}`);
          const [one, two] = [
            await here.do<number>("open", `${directory}/lock`, "r+"),
            await here.do<number>("open", `${second}/${name}/lock`, "r+"),
          ];
          const first = await here.do<boolean>("tryLock", one);
          const both = await here.do<boolean>("tryLock", two);
          const other = await there.do<number>("open", `${directory}/lock`, "r+");
          report.note(`locked by the first: ${first}; then also by the second: ${both}`);
          report.note(`and by another machine: ${String(await there.do<boolean>("tryLock", other))}`);
          report.must(!(both && isOneDevice), "two mounts that look like one both gave out the lock");
        } finally {
          await bed.guest(1).shell(`umount -l ${second}`);
        }
      },
    ),
  },

  ...handoffTruths,
  ...objectsTruths,
];
