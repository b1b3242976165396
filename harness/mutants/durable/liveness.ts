// Known-wrong ways to find out which holders are alive.
import { decodeBeat, encodeBeat } from "../../../src/format/beat.ts";
import { Ground } from "../../../src/durable/liveness/ground.ts";
import { holderKind, type GroundLayout, type HolderRecord } from "../../../src/durable/liveness/holder-record.ts";
import type { HolderSession, HolderSessionOptions } from "../../../src/durable/liveness/holder-session.ts";
import { LivenessJudge, type HolderState } from "../../../src/durable/liveness/liveness-judge.ts";
import { getRecord } from "../../../src/durable/publish/record-file.ts";
import type { Staging } from "../../../src/durable/publish/staging.ts";
import { hasErrno } from "../../../src/ports/disk-error.ts";
import type { Ports } from "../../../src/ports/ports.ts";
import { groundScenarios } from "../../scenarios/durable/ground.ts";
import { livenessScenarios, type Judging } from "../../scenarios/durable/liveness.ts";
import { scenarioNamed, type Mutant } from "../mutant.ts";

const realJudge: Judging["makeJudge"] = (ports, layout) => new LivenessJudge(ports, layout);
const realDeadline: Judging["goesOn"] = async (session) => !session.isOver;

/** A late holder writes its heartbeat again, finds its file in place, and continues. */
async function continuesLate(session: HolderSession, ports: Ports): Promise<boolean> {
  const file = await ports.disk.open(session.temp.replace("/temp/", "/holders/").concat(".beat"), "write");
  await file.write(0, encodeBeat(99, ports.clock.wallMs()));
  await file.close();
  return true;
}

/** A heartbeat that resumes after any silence. */
function withTirelessHeart(ports: Ports): Ports {
  return { ...ports, heart: { start: (file, options) => ports.heart.start(file, { ...options, gapMsMax: Infinity }) } };
}

/** Compares the time in the heartbeat with the clock of the machine that judges. */
const comparesClocks: Judging["makeJudge"] = (ports: Ports, layout: GroundLayout) => ({
  observe: async (holder: HolderRecord): Promise<HolderState> => {
    const beat = decodeBeat(await ports.disk.readFile(layout.beat(holder.id), 100));
    return ports.clock.wallMs() - (beat?.wallMs ?? 0) > holder.leaseMs ? "dead" : "alive";
  },
});

/** Looks the holder's pid up in its own process table. */
const looksUpPids: Judging["makeJudge"] = (ports: Ports) => ({
  observe: async (holder: HolderRecord): Promise<HolderState> => ports.host.processState(holder.pid, ""),
});

const recordAlone = { bootId: "", processSpace: "", startMark: "", isLocal: false, beatIdentity: "" };

/** Takes an unreadable record for that of a dead process. */
const tornIsDead: Judging["find"] = async (ports, layout, id) =>
  await getRecord(ports.disk, holderKind, layout.record(id)).catch(() => undefined);

/** Judges a holder with an unreadable record by a lease that the judge assumes. */
const ownLease: Judging["find"] = async (ports, layout, id) =>
  await getRecord(ports.disk, holderKind, layout.record(id)).catch(() => ({
    ...{ ...recordAlone, id, name: "", host: "", pid: 0, startedAtMs: 0, version: "" },
    leaseMs: 1000,
  }));

type GroundMade = [
  ports: Ports,
  layout: GroundLayout,
  id: string,
  session: HolderSession | undefined,
  options: HolderSessionOptions,
];

/** Takes the modification time of a heartbeat for the time at which it was written. */
class BelievesStamps extends Ground {
  protected constructor(...made: GroundMade) {
    super(...made);
    this.cleanup.stampsOf = (temp, beat) => [beat ?? temp].filter((stat) => stat !== undefined);
  }
}

/** Removes the record of a death before the dead holder's directory. */
class ForgetsDeathsFirst extends Ground {
  protected constructor(...made: GroundMade) {
    super(...made);
    const forget = this.cleanup.forget.bind(this.cleanup);
    this.cleanup.forget = async (id) => {
      await this.ports.disk.unlink(this.layout.deathRecord(id));
      await forget(id);
    };
  }
}

/** Reports a holder as settled once it is dead, and removes its directory only afterwards. */
class AnswersBeforeRemoval extends Ground {
  override async settle(id: string): Promise<boolean> {
    const isDead = (await this.stateOf(id)) === "dead";
    if (isDead) void super.settle(id).catch(() => undefined);
    return isDead;
  }
}

/** Takes every ENOENT of a link as proof that the linked file does not exist. */
async function blamesTheFile({ disk, directory }: Staging, path: string): Promise<boolean> {
  try {
    const temp = `${await directory()}/asked`;
    await disk.link(path, temp);
    await disk.unlink(temp);
    return true;
  } catch (error) {
    if (hasErrno(error, "ENOENT")) return false;
    throw error;
  }
}

const torn = "liveness: a living holder whose record is torn";
const inContainers = "liveness: a killed process of this kernel is dead at once";

export const livenessMutants: readonly Mutant[] = [
  {
    name: "late holder that continues (V1)",
    about: "The holder was judged dead while it slept, wakes and continues.",
    scenario: scenarioNamed(
      livenessScenarios({ goesOn: continuesLate, makeJudge: realJudge }),
      "liveness: a sleeping holder is evicted",
    ),
    breaks: /acted after it was judged dead/,
  },
  {
    name: "late heart that beats again",
    about: "After a sleep, the heartbeat's thread wakes first, so the main thread finds a fresh beat.",
    scenario: scenarioNamed(
      livenessScenarios({ goesOn: realDeadline, makeJudge: realJudge, adapt: withTirelessHeart }),
      "liveness: a sleeping holder is evicted",
    ),
    breaks: /acted after it was judged dead/,
  },
  {
    name: "clocks of two machines compared",
    about: "A machine whose clock is ahead judges every holder dead.",
    scenario: scenarioNamed(
      livenessScenarios({ goesOn: realDeadline, makeJudge: comparesClocks }),
      "liveness: clocks that jump kill no holder",
    ),
    breaks: /acted after it was judged dead/,
  },
  {
    name: "torn record taken for a death",
    about: "One damaged record would cost a living process its tickets and locks.",
    scenario: scenarioNamed(livenessScenarios({ goesOn: realDeadline, makeJudge: realJudge, find: tornIsDead }), torn),
    breaks: /acted after it was judged dead/,
  },
  {
    name: "torn record judged by another lease",
    about: "A holder with a long lease beats rarely, and seems silent to a judge that assumes a short one.",
    scenario: scenarioNamed(livenessScenarios({ goesOn: realDeadline, makeJudge: realJudge, find: ownLease }), torn),
    breaks: /acted after it was judged dead/,
  },
  {
    name: "pid liveness at pid 1",
    about: "In its own container, every judge finds itself under pid 1, so dead holders seem alive forever.",
    scenario: scenarioNamed(livenessScenarios({ goesOn: realDeadline, makeJudge: looksUpPids }), inContainers),
    breaks: /a dead holder was judged alive/,
  },
  {
    name: "pid liveness and a foreign container",
    about: "A pid that does not exist in this container belongs to a living process in another.",
    scenario: scenarioNamed(
      livenessScenarios({ goesOn: realDeadline, makeJudge: looksUpPids }),
      "liveness: a pid of another container",
    ),
    breaks: /a living holder was judged dead/,
  },
  {
    name: "pid liveness and reuse",
    about: "The pid of a dead holder now belongs to another process.",
    scenario: scenarioNamed(
      livenessScenarios({ goesOn: realDeadline, makeJudge: looksUpPids }),
      "liveness: a pid that is used again",
    ),
    breaks: /a dead holder was judged alive/,
  },
  {
    name: "own directory swept, another's file taken for gone",
    about:
      "A process that was judged dead checks another's hold by a link. The link fails because its own directory is gone.",
    scenario: scenarioNamed(
      groundScenarios({ isStillThere: blamesTheFile }),
      "ground: a process that asks for another's file against a sweeper",
    ),
    breaks: /a file that is there was taken for gone/,
  },
  {
    name: "record of a death that goes before the directory",
    about:
      "The sweeper is killed in between, and a process that was judged dead does not find that out: the record of its death is gone, and its directory is not.",
    scenario: scenarioNamed(
      groundScenarios({ GroundClass: ForgetsDeathsFirst }),
      "ground: a holder whose death is forgotten",
    ),
    breaks: /never found out/,
  },
  {
    name: "settled before the temp directory is gone",
    about: "The holder wakes and publishes what it staged, although another process has its work.",
    scenario: scenarioNamed(groundScenarios({ GroundClass: AnswersBeforeRemoval }), "ground: a sleeper is settled"),
    breaks: /a holder that was settled published a file/,
  },
  {
    name: "stamps of a file that is being made are believed",
    about:
      "On NFS, the file of a process that is just joining seems decades old, and a sweeper removes its temp directory.",
    scenario: scenarioNamed(
      groundScenarios({ GroundClass: BelievesStamps }),
      "ground: a process that joins against a sweeper, stamps are late",
    ),
    breaks: /ada failed: .* its directory is gone/,
  },
];
