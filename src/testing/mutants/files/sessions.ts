// Known-wrong variants of sidecars and of sessions.
import { SidecarVersion } from "../../../files/sidecars/sidecar-version.ts";
import { recordOf } from "../../../files/sessions/session-archives.ts";
import { TreeSession, type TreeSessionParts } from "../../../files/sessions/tree-session.ts";
import { sessionScenarios } from "../../scenarios/files/sessions.ts";
import { sidecarScenarios } from "../../scenarios/files/sidecars.ts";
import { scenarioNamed, type Mutant } from "../mutant.ts";

/** Writes whatever it has, however late. */
class UncomparedVersion extends SidecarVersion {
  override async begin(): Promise<boolean> {
    return true;
  }
}

/** Does not say that it has looked at the directory. */
class UnstartedVersion extends SidecarVersion {
  override async start(): Promise<boolean> {
    return true;
  }
}

/** Archives first, and then publishes the ticket of the extraction. */
class EarlyArchive extends TreeSession {
  readonly #early: TreeSessionParts;

  constructor(parts: TreeSessionParts) {
    super(parts);
    this.#early = parts;
  }

  override async commit(): Promise<{ readonly archive: number; readonly task: string } | undefined> {
    const { log, queue } = this.#early;
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
    about: "The summary of a directory as it was comes after a newer one.",
    scenario: scenarioNamed(sidecarScenarios({ VersionClass: UncomparedVersion }), late),
    breaks: /shows x, and/,
  },
  {
    name: "sidecars whose version is not marked as started",
    about: "A file that comes after the look is left to a version that has looked already.",
    scenario: scenarioNamed(sidecarScenarios({ VersionClass: UnstartedVersion }), late),
    breaks: /shows x, and/,
  },
  {
    name: "archive that is made before its ticket",
    about: "A process that dies in between leaves an archive that is never extracted.",
    scenario: scenarioNamed(
      sessionScenarios({ SessionClass: EarlyArchive }),
      "files sessions: a process that dies while it commits",
    ),
    breaks: /was not extracted/,
  },
];
