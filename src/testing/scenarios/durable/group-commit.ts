// Scenarios of group commit: callers share a sync that may fail, and the power fails at every moment.
import { AppendFile } from "../../../durable/group-commit/append-file.ts";
import { GroupCommit } from "../../../durable/group-commit/group-commit.ts";
import { isHoldfastError } from "../../../errors.ts";
import type { DiskFile } from "../../../ports/disk.ts";
import { mustHold, valuesOf, type Scenario } from "../../explorer/scenario.ts";

const path = "/log";

/** What the scenarios run on: the real append, or a known-wrong variant. */
export type MakeAppendFile = (file: DiskFile) => Pick<AppendFile, "append">;

export function groupCommitScenarios(make: MakeAppendFile = (file) => new AppendFile(file, 0)): Scenario[] {
  return [
    {
      name: "group commit: a sync that fails once",
      about:
        "Three callers share two groups; any sync may fail once and then succeed; the power fails at every moment.",
      powerCuts: true,
      errors: { errnos: ["EIO"], operations: ["sync"] },
      troubles: { error: 1 },
      setup: async (ports) => ports.disk.createFile(path, new Uint8Array(), { sync: true }),
      actors: {
        ada: {
          run: async ({ ports, note }) => {
            const log = make(await ports.disk.open(path, "write"));
            const commits = new GroupCommit<string, void>({
              groupSizeMax: 2,
              commit: async (lines) => {
                await log.append(Buffer.from(lines.join("")));
                return lines.map(() => undefined);
              },
            });
            const call = async (line: string): Promise<void> => {
              try {
                await commits.add(line);
                note("acknowledged", line);
              } catch (error) {
                if (!isHoldfastError(error, "IO_ERROR", "CLOSED")) throw error;
              }
            };
            await Promise.all([call("first\n"), call("second\n"), call("third\n")]);
          },
        },
      },
      audit: async (ports, facts) => {
        const text = Buffer.from(await ports.disk.readFile(path, 1000)).toString();
        for (const line of valuesOf<string>(facts, "acknowledged"))
          mustHold(
            text.includes(line),
            `${JSON.stringify(line)} was acknowledged, but the file is ${JSON.stringify(text)}`,
          );
      },
    },
  ];
}
