// Scenarios of sessions: processes that commit, append or die at any step. No message is lost or archived twice, and
// the memories of every archive are extracted.
import { openSession } from "../../../src/files/sessions/session-archives.ts";
import { TreeSession } from "../../../src/files/sessions/tree-session.ts";
import type { Ports } from "../../../src/ports/ports.ts";
import { mustHold, valuesOf, type Fact, type Scenario } from "../../../src/testing/explorer/scenario.ts";
import { root, textsBelow } from "./file-actors.ts";
import { indexer, indexScenario, nextProcess, workOff, workOnce } from "./index-actors.ts";
import type { IndexProcess, IndexScenarioOptions, OpenIndexOptions } from "./index-world.ts";

const id = "monday";

export interface SessionScenarioOptions extends IndexScenarioOptions {
  readonly SessionClass?: typeof TreeSession | undefined;
}

/** The memory of an archive is the text of its messages. */
const functions: OpenIndexOptions["functions"] = {
  sessions: {
    extract: async ({ number, messages }) => [
      { path: `memory-${number}`, text: messages.map(({ content }) => content).join() },
    ],
  },
};

export function sessionScenarios(options: SessionScenarioOptions = {}): Scenario[] {
  const remembering = { ...options, functions, writesPlainly: true };
  const begin = async (process: IndexProcess): Promise<void> => append(process, "one");
  const commit = async (process: IndexProcess): Promise<unknown> => (await sessionOf(process, options)).commit();
  const open = async (process: IndexProcess): Promise<unknown> => sessionOf(process, options);
  return [
    indexScenario({
      name: "files sessions: a process that dies while it commits",
      about:
        "A process is killed at any step of its commit. A worker archives and extracts the messages that it has left.",
      begin,
      killsMax: 1,
      actors: {
        ada: indexer(
          remembering,
          async ({ note }, process) => {
            await commit(process);
            note("committed");
          },
          open,
        ),
      },
      audit,
    }),
    indexScenario({
      name: "files sessions: a process that dies while it extracts",
      about: "A worker is killed at any step. The next one extracts the same archive, and no other.",
      begin: async (process) => {
        await begin(process);
        await commit(process);
      },
      killsMax: 1,
      actors: { ada: indexer(remembering, (_context, process) => workOnce(process)) },
      audit,
    }),
    indexScenario({
      name: "files sessions: two commits and a message",
      about: "Two processes commit, one of which has appended meanwhile. Each message is in one archive, or in none.",
      begin,
      actors: {
        ada: indexer(remembering, (_context, process) => commit(process), open),
        bob: indexer(
          remembering,
          async ({ note }, process) => {
            await append(process, "two");
            note("said", "two");
            await commit(process);
          },
          open,
        ),
      },
      audit,
    }),
    indexScenario({
      name: "files sessions: a commit against the worker of its ticket",
      about: "The worker may win the archive before the process that commits. There is one archive.",
      begin,
      actors: {
        ada: indexer(remembering, (_context, process) => commit(process), open),
        bob: indexer(remembering, (_context, process) => workOnce(process), open),
      },
      audit,
    }),
  ];
}

async function sessionOf(
  process: IndexProcess,
  { SessionClass = TreeSession }: SessionScenarioOptions = {},
): Promise<TreeSession> {
  return new SessionClass(await openSession(process.tree, id), undefined, process, () => undefined);
}

async function append(process: IndexProcess, content: string): Promise<void> {
  await (await sessionOf(process)).append({ role: "user", content });
}

async function audit(ports: Ports, facts: readonly Fact[]): Promise<void> {
  const next = await nextProcess(ports, { functions, writesPlainly: true });
  const session = await sessionOf(next);
  if (facts.some(({ what }) => what === "committed"))
    mustHold((await session.messages()).length === 0, "what was committed is not archived");
  await workOff(next);
  const texts = await textsBelow(ports.disk, root);
  const archived: string[] = [];
  for await (const { number, messages } of session.archives()) {
    const said = messages.map(({ content }) => content);
    mustHold(said.length > 0, `archive ${number} is empty`);
    mustHold(texts[`memory-${number}`] === said.join(), `archive ${number} was not extracted`);
    archived.push(...said);
  }
  const open = (await session.messages()).map(({ content }) => content);
  const all = [...archived, ...open].join();
  const expected = ["one", ...valuesOf<string>(facts, "said")].join();
  mustHold(all === expected, `${all} is archived or open, and ${expected} was said`);
  mustHold(Object.keys(texts).length === (await countOf(session)), "a memory is of no archive");
}

async function countOf(session: TreeSession): Promise<number> {
  let count = 0;
  for await (const _ of session.archives()) count++;
  return count;
}
