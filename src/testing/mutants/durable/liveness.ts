// Known-wrong ways to tell which holders are alive.
import { decodeBeat, encodeBeat } from "../../../format/beat.ts";
import { Ground } from "../../../durable/liveness/ground.ts";
import { DeadHolderCleanup } from "../../../durable/liveness/dead-holder-cleanup.ts";
import type { GroundLayout, HolderRecord } from "../../../durable/liveness/holder-record.ts";
import type { HolderSession } from "../../../durable/liveness/holder-session.ts";
import { LivenessJudge, type HolderState } from "../../../durable/liveness/liveness-judge.ts";
import type { Staging } from "../../../durable/publish/staging.ts";
import { hasErrno } from "../../../ports/disk-error.ts";
import type { FileStat } from "../../../ports/disk.ts";
import type { Ports } from "../../../ports/ports.ts";
import { groundScenarios } from "../../scenarios/durable/ground.ts";
import { livenessScenarios, type Judging } from "../../scenarios/durable/liveness.ts";
import { scenarioNamed, type Mutant } from "../mutant.ts";

const realJudge: Judging["makeJudge"] = (ports, layout) => new LivenessJudge(ports, layout);
const realDeadline: Judging["goesOn"] = async (session) => !session.isOver;

/** A holder that comes late writes its heartbeat again, finds its file in place, and continues. */
async function continuesLate(session: HolderSession, ports: Ports): Promise<boolean> {
  const file = await ports.disk.open(session.temp.replace("/temp/", "/holders/").concat(".beat"), "write");
  await file.write(0, encodeBeat(99, ports.clock.wallMs()));
  await file.close();
  return true;
}

/** A heart that does not mind how long it was silent. */
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

/** Takes the stamp of a beat for the time at which it was made. */
class BelievesStamps extends Ground {
  protected override newCleanup(): DeadHolderCleanup {
    return new CleanupByStamps(this.ports, this.layout);
  }
}

class CleanupByStamps extends DeadHolderCleanup {
  protected override stampsOf(temp: FileStat | undefined, beat: FileStat | undefined): FileStat[] {
    return [beat ?? temp].filter((stat) => stat !== undefined);
  }
}

/** Takes away the record of a death before what it stands for. */
class ForgetsDeathsFirst extends Ground {
  protected override newCleanup(): DeadHolderCleanup {
    return new CleanupForgettingFirst(this.ports, this.layout);
  }
}

class CleanupForgettingFirst extends DeadHolderCleanup {
  protected override async forget(id: string): Promise<void> {
    await this.ports.disk.unlink(this.layout.deathRecord(id));
    await super.forget(id);
  }
}

/** Answers as soon as the holder is dead, and removes its directory afterwards. */
class AnswersBeforeRemoval extends Ground {
  override async settle(id: string): Promise<boolean> {
    const isDead = (await this.stateOf(id)) === "dead";
    if (isDead) void super.settle(id).catch(() => undefined);
    return isDead;
  }
}

/** Takes every link that finds nothing for the absence of the file that it asks for. */
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

const inContainers = "liveness: a killed process of this kernel is dead at once";

export const livenessMutants: readonly Mutant[] = [
  {
    name: "late holder that continues (V1)",
    about: "It was judged dead while it slept, wakes and goes on.",
    scenario: scenarioNamed(
      livenessScenarios({ goesOn: continuesLate, makeJudge: realJudge }),
      "liveness: a sleeping holder is evicted",
    ),
    breaks: /acted after it was judged dead/,
  },
  {
    name: "late heart that beats again",
    about: "After a sleep the heart's thread wakes first, and the main thread finds its last beat fresh.",
    scenario: scenarioNamed(
      livenessScenarios({ goesOn: realDeadline, makeJudge: realJudge, adapt: withTirelessHeart }),
      "liveness: a sleeping holder is evicted",
    ),
    breaks: /acted after it was judged dead/,
  },
  {
    name: "clocks of two machines compared",
    about: "A clock that is ahead kills every holder.",
    scenario: scenarioNamed(
      livenessScenarios({ goesOn: realDeadline, makeJudge: comparesClocks }),
      "liveness: clocks that jump kill no holder",
    ),
    breaks: /acted after it was judged dead/,
  },
  {
    name: "pid liveness at pid 1",
    about: "In its own container every judge finds itself under pid 1: the dead look alive for ever.",
    scenario: scenarioNamed(livenessScenarios({ goesOn: realDeadline, makeJudge: looksUpPids }), inContainers),
    breaks: /a dead holder was judged alive/,
  },
  {
    name: "pid liveness and a foreign container",
    about: "A pid that this container does not have belongs to a living process of another.",
    scenario: scenarioNamed(
      livenessScenarios({ goesOn: realDeadline, makeJudge: looksUpPids }),
      "liveness: a pid of another container",
    ),
    breaks: /a living holder was judged dead/,
  },
  {
    name: "pid liveness and reuse",
    about: "The pid of a dead holder belongs to another process by now.",
    scenario: scenarioNamed(
      livenessScenarios({ goesOn: realDeadline, makeJudge: looksUpPids }),
      "liveness: a pid that is used again",
    ),
    breaks: /a dead holder was judged alive/,
  },
  {
    name: "own directory swept, another's file taken for gone",
    about:
      "A process that was taken for dead asks by a link whether another's hold stands, and its own directory is what is gone.",
    scenario: scenarioNamed(
      groundScenarios({ isStillThere: blamesTheFile }),
      "ground: a process that asks for another's file against a sweeper",
    ),
    breaks: /a file that is there was taken for gone/,
  },
  {
    name: "record of a death that goes before the directory",
    about:
      "The sweeper is killed in between, and a process that was taken for dead finds neither its record nor its directory gone.",
    scenario: scenarioNamed(
      groundScenarios({ GroundClass: ForgetsDeathsFirst }),
      "ground: a holder whose death is forgotten",
    ),
    breaks: /never found out/,
  },
  {
    name: "settled before the temp directory is gone",
    about: "The holder wakes and publishes what it has staged, though its work was given to another.",
    scenario: scenarioNamed(groundScenarios({ GroundClass: AnswersBeforeRemoval }), "ground: a sleeper is settled"),
    breaks: /a holder that was settled published a file/,
  },
  {
    name: "stamps of a file that is being made are believed",
    about:
      "A process that is just joining looks decades old on NFS, and a sweeper removes its temp directory under it.",
    scenario: scenarioNamed(
      groundScenarios({ GroundClass: BelievesStamps }),
      "ground: a process that joins against a sweeper, stamps are late",
    ),
    breaks: /ada failed: .* its directory is gone/,
  },
];
