// What an object store takes for granted of a share, asked of two real clients: how a key comes into
// being, how a bucket is deleted, and what a reader gets whose object another machine deletes.
import type { Scenario } from "../scenario.ts";
import { gone, rounds, textOf, truth } from "./truth.ts";

/** What a rename may answer whose target is a directory with something in it. */
const taken: readonly string[] = ["ENOTEMPTY", "EEXIST", "ENOTDIR", "EACCES", "EPERM", "EBUSY"];
const full: readonly string[] = ["ENOTEMPTY", "EEXIST"];
const megabytes = 32;

export const objectsTruths: readonly Scenario[] = [
  truth(
    "objects-new-key-race",
    "of two machines that rename a prepared directory to the same name at the same moment one wins, and its file is there",
    async ({ here, there, directory }, report) => {
      const answers = new Map<string, number>();
      for (let round = 0; round < 2 * rounds; round++) {
        const key = `${directory}/key-${round}`;
        const hands = [here, there] as const;
        for (const [index, hand] of hands.entries()) {
          await hand.do("mkdir", `${directory}/prepared-${round}-${index}`);
          await hand.do("make", `${directory}/prepared-${round}-${index}/first-${index}`, `of ${index}`);
        }
        // Then its client remembers that nothing was there.
        if (round % 2 === 0) for (const hand of hands) await hand.try("stat", key);
        const renames = hands.map((hand, index) => hand.try("rename", `${directory}/prepared-${round}-${index}`, key));
        const errnos = (await Promise.all(renames)).map(({ errno = "done" }) => errno);
        const winner = errnos.indexOf("done");
        const loser = errnos[1 - winner] ?? "";
        answers.set(loser, (answers.get(loser) ?? 0) + 1);
        report.must(winner >= 0 && taken.includes(loser), `two renames to one name: ${errnos.join(" and ")}`);
        for (const hand of hands) {
          const names = await hand.do<string[]>("listByDisk", key, 100);
          report.must(
            names.length === 1 && names[0] === `first-${winner}`,
            `the winner is ${winner}, and in its place are ${names.join(", ")}`,
          );
        }
        const lost = `${directory}/prepared-${round}-${1 - winner}/first-${1 - winner}`;
        report.must(
          (await hands[1 - winner]?.try("readByDisk", lost))?.errno === undefined,
          `the file of the loser is gone`,
        );
      }
      report.note(`the loser is told: ${textOf(answers)}`);
    },
  ),

  truth(
    "objects-rmdir-of-used",
    "a directory in which another machine has just made something is not removed, and nothing comes into one that is",
    async ({ here, there, directory }, report) => {
      for (const how of ["a directory is made", "a directory is moved in"] as const)
        for (const isAtOnce of [false, true]) {
          const answers = new Map<string, number>();
          for (let round = 0; round < 2 * rounds; round++) {
            const name = `${how.replaceAll(" ", "-")}-${isAtOnce}-${round}`;
            const [keys, prepared] = [`${directory}/${name}`, `${directory}/prepared-${name}`];
            await here.do("mkdir", keys);
            await there.do("mkdir", prepared);
            await there.do("make", `${prepared}/first`, "x");
            // Both know the directory, and that it is empty.
            for (const hand of [here, there]) await hand.do("readdir", keys);
            const fill = () =>
              how === "a directory is made"
                ? there.try("mkdir", `${keys}/in`)
                : there.try("rename", prepared, `${keys}/in`);
            const filling = fill();
            if (!isAtOnce) await filling;
            const { errno: removal = "done" } = await here.try("rmdir", keys);
            const { errno: filled = "done" } = await filling;
            const answer = `${filled}, rmdir ${removal}`;
            answers.set(answer, (answers.get(answer) ?? 0) + 1);
            if (filled === "done") {
              report.must(full.includes(removal), `${how}, and the directory was removed: ${removal}`);
              for (const hand of [here, there])
                report.must((await hand.do<string[]>("readdir", keys)).includes("in"), `${how}, and is lost`);
            } else report.must(removal === "done" && gone.includes(filled), `${how}: ${answer}`);
          }
          report.note(`${how}${isAtOnce ? " at the same moment" : " before"}: ${textOf(answers)}`);
        }
    },
  ),

  truth(
    "objects-replace-while-open",
    "what a rename over a file leaves that a process has open; nothing that counts is replaced so on a share",
    async ({ here, there, directory }, report) => {
      for (const opener of [here, there]) {
        const answers = new Map<string, number>();
        for (let round = 0; round < rounds; round++) {
          const place = `${directory}/${opener === here ? "here" : "there"}-${round}`;
          await here.do("make", place, "old");
          await here.do("make", `${place}-new`, "new");
          const handle = await opener.do<number>("open", place, "r");
          const { errno = "done" } = await here.try("rename", `${place}-new`, place);
          await opener.do("close", handle);
          const { value, errno: failure = "" } = await there.try("readByDisk", place);
          const answer = `${errno}, then ${JSON.stringify(value ?? failure)}`;
          answers.set(answer, (answers.get(answer) ?? 0) + 1);
        }
        report.note(`open on the ${opener === here ? "same" : "other"} machine: ${textOf(answers)}`);
      }
    },
  ),

  truth(
    "objects-get-while-deleted",
    "an object that is read while another machine deletes or replaces it is read whole, or its reader is told",
    async ({ here, there, directory }, report) => {
      const store = `${directory}/objects`;
      await here.do("createBucket", store);
      for (const change of ["delete", "replace"] as const) {
        const answers = new Map<string, number>();
        for (let round = 0; round < rounds; round++) {
          const key = `${change} ${round}`;
          const written = await there.do<string>("putObject", store, key, megabytes);
          const reading = await here.do<number>("getObject", store, key);
          if (change === "delete") await there.do("deleteObject", store, key);
          else await there.do("putObject", store, key, 1);
          const { hash, failure } = await here.do<{ hash?: string; failure?: string }>("readObject", reading);
          const answer = hash === written ? "whole" : (failure ?? "other bytes");
          answers.set(answer, (answers.get(answer) ?? 0) + 1);
          report.must(answer !== "other bytes", `${key} was read with other bytes`);
          // What begins after the answer sees what it has done.
          const after = await here.do<string>("findObject", store, key);
          report.must(
            change === "delete" ? after === "NO_SUCH_KEY" : after === "1 MB",
            `${key} was changed, and the next get gives ${after}`,
          );
        }
        report.note(`${change}: ${textOf(answers)}`);
      }
    },
  ),

  truth(
    "objects-put-is-in-the-next-get",
    "a put that was acknowledged is in every get and every listing that begins after it, on another machine",
    async ({ here, there, directory }, report) => {
      const store = `${directory}/objects`;
      await here.do("createBucket", store);
      let wrong = 0;
      for (let round = 0; round < 2 * rounds; round++) {
        const [writer, reader] = round % 2 === 0 ? [here, there] : [there, here];
        // The reader has looked before: its client remembers what was there, or that nothing was.
        for (const key of ["hot", `new ${round}`]) await reader.do("findObject", store, key);
        const megabytesNow = (round % 3) + 1;
        for (const key of ["hot", `new ${round}`]) {
          await writer.do("putObject", store, key, megabytesNow);
          if ((await reader.do<string>("findObject", store, key)) !== `${megabytesNow} MB`) wrong++;
          if (!(await reader.do<string[]>("listObjects", store)).includes(key)) wrong++;
        }
      }
      report.note(`old answers: ${wrong} of ${8 * rounds}`);
      report.must(wrong === 0, "a get or a listing did not have what was acknowledged before it");
    },
  ),
];
