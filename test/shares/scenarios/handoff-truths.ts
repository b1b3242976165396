// What a hand-off takes for granted of a share, asked of two real clients: how a result is won, how
// a claim finds its directory gone, how long directories and large files are read.
import type { Scenario } from "../scenario.ts";
import { gone, rounds, textOf, truth } from "./truth.ts";

/** What a rename may answer whose target has another kind of thing or a full directory there. */
const taken = ["ENOTEMPTY", "EEXIST", "ENOTDIR", "EISDIR", "EACCES", "EPERM"];
const namesInLong = 3000;
const namesPerLook = 256;
const megabytes = 256;

export const handoffTruths: readonly Scenario[] = [
  truth(
    "handoff-directory-onto",
    "a directory that is renamed onto a file or onto a full directory of another machine is refused, and both stay",
    async ({ here, there, directory }, report) => {
      for (const onto of ["a file", "a full directory", "an empty directory"])
        for (const isLookedFor of [false, true]) {
          const answers = new Map<string, number>();
          for (let round = 0; round < rounds; round++) {
            const place = `${directory}/${onto.replaceAll(" ", "-")}-${isLookedFor}-${round}`;
            const [from, to] = [`${place}/staged`, `${place}/result`];
            await here.do("mkdir", place);
            await here.do("mkdir", from);
            await here.do("make", `${from}/record`, "ours");
            // Then its client remembers that nothing was there.
            if (isLookedFor) await here.try("stat", to);
            if (onto === "a file") await there.do("make", to, "theirs");
            else await there.do("mkdir", to);
            if (onto === "a full directory") await there.do("make", `${to}/record`, "theirs");
            const { errno = "done" } = await here.try("rename", from, to);
            answers.set(errno, (answers.get(errno) ?? 0) + 1);
            if (onto === "an empty directory") continue;
            report.must(taken.includes(errno), `onto ${onto}: ${errno}`);
            const record = onto === "a file" ? to : `${to}/record`;
            for (const hand of [here, there]) {
              const { value, errno: failure } = await hand.try("readByDisk", record);
              report.must(
                value === "theirs",
                `after a rename onto ${onto} its record says ${JSON.stringify(value ?? failure)}`,
              );
            }
            const { value } = await there.try("readByDisk", `${from}/record`);
            report.must(value === "ours", `after a rename onto ${onto} the source is gone`);
          }
          report.note(
            `onto ${onto}, ${isLookedFor ? "looked for in vain before" : "not looked for"}: ${textOf(answers)}`,
          );
        }
    },
  ),

  truth(
    "handoff-link-onto-directory",
    "a file that is linked onto a directory of another machine is refused with EEXIST",
    async ({ here, there, directory }, report) => {
      const answers = new Map<string, number>();
      for (let round = 0; round < rounds; round++) {
        const [file, taken] = [`${directory}/file-${round}`, `${directory}/taken-${round}`];
        await here.do("make", file, "ours");
        await here.try("stat", taken);
        await there.do("mkdir", taken);
        await there.do("make", `${taken}/record`, "theirs");
        const { errno = "done" } = await here.try("link", file, taken);
        answers.set(errno, (answers.get(errno) ?? 0) + 1);
        report.must(errno === "EEXIST", `a link onto a directory: ${errno}`);
        const { value } = await there.try("readByDisk", `${taken}/record`);
        report.must(value === "theirs", "after a link onto a directory its record is another one");
      }
      report.note(`answers: ${textOf(answers)}`);
    },
  ),

  truth(
    "handoff-rename-into-removed",
    "a file cannot be renamed into a directory that another machine has removed, and stays where it was",
    async ({ here, there, directory }, report) => {
      for (const isMadeAgain of [false, true]) {
        const answers = new Map<string, number>();
        for (let round = 0; round < rounds; round++) {
          const [minute, file] = [
            `${directory}/minute-${isMadeAgain}-${round}`,
            `${directory}/file-${isMadeAgain}-${round}`,
          ];
          await here.do("mkdir", minute);
          await here.do("make", file, "x");
          // It knows the directory well.
          await here.do("make", `${minute}/first`, "x");
          await here.do("readdir", minute);
          await there.do("unlink", `${minute}/first`);
          await there.do("rmdir", minute);
          if (isMadeAgain) await there.do("mkdir", minute);
          const { errno = "done" } = await here.try("rename", file, `${minute}/in`);
          answers.set(errno, (answers.get(errno) ?? 0) + 1);
          const names = await there.do<string[]>("readdir", directory);
          if (!isMadeAgain) report.must(gone.includes(errno), `a rename into a removed directory: ${errno}`);
          if (errno !== "done") report.must(names.includes(file.slice(directory.length + 1)), `${file} is gone`);
          else
            report.must((await there.do<string[]>("readdir", minute)).includes("in"), `${file} was moved out of sight`);
        }
        report.note(`${isMadeAgain ? "removed and made again" : "removed"}: ${textOf(answers)}`);
      }
    },
  ),

  truth(
    "handoff-list-some",
    "the first names of a long directory are had without the others, and are names that are there",
    async ({ here, there, directory }, report) => {
      const long = `${directory}/long`;
      await there.do("mkdir", long);
      await there.do("makeMany", long, namesInLong);
      for (const how of ["listSome", "list"] as const) {
        const { value, ms } = await here.try("listByDisk", long, how === "list" ? namesInLong : namesPerLook);
        const names = value as string[];
        report.note(`${how}: ${names.length} of ${namesInLong} names in ${Math.round(ms)} ms`);
        report.must(
          names.length === (how === "list" ? namesInLong : namesPerLook),
          `${how} gave ${names.length} names`,
        );
      }
      await there.do("removeMany", long, namesInLong - 10);
      const left = await here.do<string[]>("listByDisk", long, namesPerLook);
      report.note(`after another machine has removed all but 10: ${left.length} names`);
      await there.do("removeMany", long, namesInLong);
      report.note(
        `after it has removed the rest: ${(await here.do<string[]>("listByDisk", long, namesPerLook)).length} names`,
      );
    },
  ),

  truth(
    "handoff-bulk-read",
    "what another machine has written is read as it is, through the page cache and past it; how fast each is",
    async ({ here, there, directory }, report) => {
      for (const isBulk of [1, 0]) {
        const path = `${directory}/payload-${isBulk}`;
        const written = await there.do<string>("makeLarge", path, megabytes);
        for (const time of ["first", "second"]) {
          const { value, ms, errno } = await here.try("readLarge", path, isBulk);
          report.must(value === written, `the ${time} read of ${path} gave ${errno ?? "other bytes"}`);
          const rate = Math.round((megabytes * 1000) / ms);
          report.note(`${isBulk === 1 ? "in bulk" : "as a record"}, ${time} time: ${rate} MB/s`);
        }
        await there.try("unlink", path);
      }
    },
  ),
];
