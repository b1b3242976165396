// Known-wrong variants of sidecars and of sessions.
import { SidecarVersion } from "../../../src/files/sidecars/sidecar-version.ts";
import { recordOf } from "../../../src/files/sessions/session-archives.ts";
import { TreeSession } from "../../../src/files/sessions/tree-session.ts";
import { sessionScenarios } from "../../scenarios/files/sessions.ts";
import { sidecarScenarios } from "../../scenarios/files/sidecars.ts";
import { scenarioNamed, type Mutant } from "../mutant.ts";

/** Writes its result, however late. */
class UncomparedVersion extends SidecarVersion {
  override async begin(): Promise<boolean> {
    return true;
  }
}

/** Does not record that it has listed the directory. */
class UnstartedVersion extends SidecarVersion {
  override async start(): Promise<boolean> {
    return true;
  }
}

/** Archives first, and then publishes the ticket of the extraction. */
class EarlyArchive extends TreeSession {
  readonly #parts: ConstructorParameters<typeof TreeSession>;

  constructor(...parts: ConstructorParameters<typeof TreeSession>) {
    super(...parts);
    this.#parts = parts;
  }

  override async commit(): Promise<{ readonly archive: number; readonly task: string } | undefined> {
    const [log, , { queue }] = this.#parts;
    const { archive, upTo } = await log.open();
    const task = { task: "session", session: this.id, archive, commit: log.newCommit(), upTo } as const;
    if (!(await log.archive(archive, recordOf(task)))) return undefined;
    return { archive, task: (await queue.publish(task)).id };
  }
}

const late = "files sidecars: a version that is late against the next one";

export const sessionMutants: readonly Mutant[] = [
  {
    name: "sidecars written without a look at the versions",
    about: "The summary of an older state of a directory replaces a newer one.",
    scenario: scenarioNamed(sidecarScenarios({ VersionClass: UncomparedVersion }), late),
    breaks: /shows x, and/,
  },
  {
    name: "sidecars whose version is not marked as started",
    about: "A file that arrives after the directory was listed is left to a refresh that has already listed it.",
    scenario: scenarioNamed(sidecarScenarios({ VersionClass: UnstartedVersion }), late),
    breaks: /shows x, and/,
  },
  {
    name: "archive that is made before its ticket",
    about: "If the process dies in between, the archive is never extracted.",
    scenario: scenarioNamed(
      sessionScenarios({ SessionClass: EarlyArchive }),
      "files sessions: a process that dies while it commits",
    ),
    breaks: /was not extracted/,
  },
];
