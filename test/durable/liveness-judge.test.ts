import { beforeEach, describe, expect, it } from "vitest";
import { Ground } from "../../src/durable/liveness/ground.ts";
import { GroundLayout, type HolderRecord } from "../../src/durable/liveness/holder-record.ts";
import { HolderSession } from "../../src/durable/liveness/holder-session.ts";
import { LivenessJudge } from "../../src/durable/liveness/liveness-judge.ts";
import { ServerClock, withServerClock } from "../../src/durable/liveness/server-age.ts";
import type { Staging } from "../../src/durable/publish/staging.ts";
import { encodeBeat } from "../../src/format/beat.ts";
import type { Volume } from "../../src/ports/disk.ts";
import { changedDisk } from "../sites/disks.ts";
import { local, nfs, World } from "../sites/world.ts";

const leaseMs = 8000;
const layout = new GroundLayout("/ground");
const beat = (count: number): Uint8Array => encodeBeat(count, 0);

let world: World;
/** The holder that is judged; not of the judge's machine unless a test says so. */
let holder: HolderRecord;
let judge: LivenessJudge;

async function prepare(volume: Volume = nfs): Promise<void> {
  world = new World({ volume });
  const { disk } = world.ports("ada", "machine of ada", 0);
  for (const path of [layout.directory, layout.holders, layout.temps]) await disk.mkdir(path);
  ({ holder } = await HolderSession.begin(world.ports("ada"), layout, { leaseMs, name: "" }));
  judge = new LivenessJudge(world.ports("wit", "machine of wit"), layout);
}
beforeEach(() => prepare());

async function writeBeat(bytes: Uint8Array): Promise<void> {
  const file = await world.ports("ada").disk.open(layout.beat(holder.id), "write");
  await file.write(0, bytes);
  await file.close();
}

/** Looks every `everyMs`, `times` times; the last answer. */
async function watch(everyMs: number, times: number): Promise<string> {
  let state = "";
  for (let time = 0; time < times; time++) {
    world.nowMs += everyMs;
    state = await judge.observe(holder);
  }
  return state;
}

describe("a judge", () => {
  it("takes a holder that it observes for the first time for alive, whatever its beat says", async () => {
    world.nowMs += 1_000_000;
    expect(await judge.observe(holder)).toBe("alive");
  });

  it("judges silent after half a lease and dead after a whole one of its own watching", async () => {
    await judge.observe(holder);
    expect(await watch(leaseMs / 8, 3)).toBe("alive");
    expect(await watch(leaseMs / 8, 1)).toBe("silent");
    expect(await watch(leaseMs / 8, 3)).toBe("silent");
    expect(await watch(leaseMs / 8, 1)).toBe("dead");
  });

  it("counts one gap between two looks for at most a quarter of the lease: its own sleep makes no holder older", async () => {
    await judge.observe(holder);
    expect(await watch(1_000_000, 1)).toBe("alive");
    expect(await watch(1_000_000, 1)).toBe("silent");
    expect(await watch(1_000_000, 1)).toBe("silent");
    expect(await watch(1_000_000, 1)).toBe("dead");
  });

  it("begins anew with every change of the bytes", async () => {
    await judge.observe(holder);
    for (let count = 1; count <= 5; count++) {
      expect(await watch(leaseMs / 4, 3)).not.toBe("dead");
      await writeBeat(beat(count));
      expect(await watch(leaseMs / 4, 1)).toBe("alive");
    }
    expect(await watch(leaseMs / 4, 4)).toBe("dead");
  });

  it.each([
    ["half of the next beat", Buffer.from("beat 0000000000000001")],
    ["the same count at another time", encodeBeat(0, 5)],
    ["nonsense", Buffer.from([0xff, 0xfe, 0])],
  ])("takes %s for a sign of life: a process has written it", async (_, bytes) => {
    await judge.observe(holder);
    await watch(leaseMs / 4, 3);
    await writeBeat(bytes);
    expect(await watch(leaseMs / 4, 1)).toBe("alive");
    // And what does not change any more is silent.
    expect(await watch(leaseMs / 4, 4)).toBe("dead");
  });

  it("takes a beat that is gone for one that does not change", async () => {
    await world.ports("ada").disk.unlink(layout.beat(holder.id));
    await judge.observe(holder);
    expect(await watch(leaseMs / 4, 4)).toBe("dead");
  });

  it("lets a look that fails count for nothing, however many fail", async () => {
    await judge.observe(holder);
    await watch(leaseMs / 4, 3);
    await world.withFault({ process: "wit", at: 1, label: "EIO", lasting: true }, async () => {
      for (let look = 0; look < 20; look++) {
        world.nowMs += leaseMs / 4;
        await expect(judge.observe(holder)).rejects.toMatchObject({ code: "IO_ERROR" });
      }
    });
    await writeBeat(beat(1));
    expect(await watch(leaseMs / 4, 1)).toBe("alive");
  });

  it("counts no time in which its question was on the way: the holder may have beaten meanwhile", async () => {
    const ports = world.ports("wit");
    const slow = changedDisk(ports.disk, (disk) => ({
      async readFile(path, bytesMax) {
        const bytes = await disk.readFile(path, bytesMax);
        world.nowMs += leaseMs;
        return bytes;
      },
    }));
    judge = new LivenessJudge({ ...ports, disk: slow }, layout);
    await judge.observe(holder);
    // One question right after the other: from its answer to the next question no time passes.
    for (let look = 0; look < 2; look++) expect(await judge.observe(holder)).toBe("alive");
  });

  it("counts no time twice when an answer comes late, after those to later questions", async () => {
    const ports = world.ports("wit");
    const held: (() => void)[] = [];
    let isSlow = false;
    const slow = changedDisk(ports.disk, (disk) => ({
      async readFile(path, bytesMax) {
        if (isSlow) await new Promise<void>((resolve) => held.push(resolve));
        return await disk.readFile(path, bytesMax);
      },
    }));
    judge = new LivenessJudge({ ...ports, disk: slow }, layout);
    await judge.observe(holder);
    isSlow = true;
    const late = Array.from({ length: 4 }, () => judge.observe(holder));
    await world.settle();
    isSlow = false;
    world.nowMs += leaseMs / 4;
    for (const answer of held) {
      expect(await judge.observe(holder)).toBe("alive");
      answer();
      await world.settle();
    }
    expect(await Promise.all(late)).toEqual(["alive", "alive", "alive", "alive"]);
    expect(await judge.observe(holder)).toBe("alive");
  });

  it("counts the outage of the server as one gap", async () => {
    await judge.observe(holder);
    await watch(leaseMs / 4, 2);
    await world.withFault({ process: "wit", at: 1, label: "EIO", lasting: true }, async () => {
      world.nowMs += 10 * leaseMs;
      await expect(judge.observe(holder)).rejects.toMatchObject({ code: "IO_ERROR" });
    });
    expect(await watch(0, 1)).toBe("silent");
    expect(await watch(leaseMs / 4, 1)).toBe("dead");
  });

  it("judges by its own monotonic clock only: wall clocks may say what they like", async () => {
    await judge.observe(holder);
    world.machine("machine of wit").wallOffsetMs += 86_400_000;
    world.machine("machine of ada").wallOffsetMs -= 86_400_000;
    expect(await watch(leaseMs / 8, 3)).toBe("alive");
  });

  it("judges each holder by the lease in its record", async () => {
    const patient = { ...holder, leaseMs: 4 * leaseMs };
    await judge.observe(patient);
    for (let look = 0; look < 15; look++) {
      world.nowMs += leaseMs / 4;
      expect(await judge.observe(patient)).not.toBe("dead");
    }
    world.nowMs += leaseMs / 4;
    expect(await judge.observe(patient)).toBe("dead");
  });

  it("forgets a holder that it is told to forget", async () => {
    await judge.observe(holder);
    await watch(leaseMs / 4, 3);
    judge.forget(holder.id);
    expect(await watch(leaseMs / 4, 1)).toBe("alive");
  });

  it("forgets the holder that it has not observed for longest: holders come and go for ever", async () => {
    await judge.observe(holder);
    await watch(leaseMs / 4, 3);
    const seen = { ...holder, id: "seen" };
    for (let look = 0; look < 4; look++) {
      world.nowMs += leaseMs / 4;
      await judge.observe(seen);
    }
    for (let other = 0; other < 9_999; other++) {
      await judge.observe({ ...holder, id: `other-${other}` });
      if (other === 5000) await judge.observe(seen);
    }
    world.nowMs += leaseMs / 4;
    expect(await judge.observe(seen)).toBe("dead");
    // Then it is watched anew.
    expect(await judge.observe(holder)).toBe("alive");
  });

  it("tells when a holder last beat; its start when it has not", async () => {
    await writeBeat(encodeBeat(7, 1_234_567, leaseMs));
    expect(await judge.lastSeenMs(holder)).toBe(1_234_567);
    await writeBeat(Buffer.from("torn"));
    expect(await judge.lastSeenMs(holder)).toBe(holder.startedAtMs);
  });
});

describe("proof of death", () => {
  beforeEach(async () => {
    await prepare();
    judge = new LivenessJudge(world.ports("neighbour", "machine of ada"), layout);
  });

  it("is had at the first look when the process of this kernel is dead", async () => {
    world.kill("ada");
    expect(await judge.observe(holder)).toBe("dead");
  });

  it("is not had while the process lives, and leaves its lock alone", async () => {
    for (let look = 0; look < 3; look++) expect(await judge.observe(holder)).toBe("alive");
    world.kill("ada");
    expect(await judge.observe(holder)).toBe("dead");
  });

  it("is had of an earlier boot on a local disk, whose kernel has taken its locks along", async () => {
    await prepare(local);
    world.kill("ada");
    expect(await judge.observe(holder)).toBe("dead");
  });

  it("is not had of another boot id on a local disk while its process lives: a container may show an id of its own", async () => {
    await prepare(local);
    for (let look = 0; look < 3; look++) expect(await judge.observe(holder)).toBe("alive");
    // Nor of a holder that could not lock its beat.
    expect(await judge.observe({ ...holder, beatIdentity: "" })).toBe("alive");
  });

  it("is had after a restart that numbers files anew, and of a holder that left neither record nor beat", async () => {
    await prepare(local);
    expect(await judge.observe({ ...holder, beatIdentity: "99:99" })).toBe("alive");
    world.kill("ada");
    expect(await judge.observe({ ...holder, beatIdentity: "99:99" })).toBe("dead");
    for (const path of [layout.record(holder.id), layout.beat(holder.id)])
      await world.ports("neighbour").disk.unlink(path);
    expect(await judge.observe(holder)).toBe("dead");
    // Over the network an absence may be an old answer.
    expect(await judge.observe({ ...holder, isLocal: false })).toBe("alive");
  });

  it("is not had of a beat that was deleted under its living holder: its lease decides, and it learns of it before", async () => {
    world = new World({ volume: local });
    const ground = await Ground.open(world.ports("ada", "machine", 1000), "/ground", { leaseMs });
    const session = await ground.session();
    judge = new LivenessJudge(world.ports("neighbour", "machine"), layout);
    await world.ports("neighbour").disk.unlink(layout.beat(session.holder.id));
    for (let look = 0; look < 3; look++) {
      expect(await judge.observe(session.holder)).toBe("alive");
      await world.advance(leaseMs / 8);
      // As often as it is used.
      await ground.session();
      await world.settle();
    }
    expect(session.signal.reason).toMatchObject({ code: "LOCK_LOST" });
    for (let look = 0; look < 8; look++) {
      await world.advance(leaseMs / 8);
      await judge.observe(session.holder);
    }
    expect(await judge.observe(session.holder)).toBe("dead");
  });

  it("is not had of a holder that came to a local disk over the network", async () => {
    await prepare(local);
    world.kill("ada");
    expect(await judge.observe({ ...holder, isLocal: false })).toBe("alive");
  });

  it("is not had of another boot: a lock may not reach to another kernel", async () => {
    world.kill("ada");
    const other = new LivenessJudge(world.ports("wit", "machine of wit"), layout);
    expect(await other.observe(holder)).toBe("alive");
    expect(await judge.observe({ ...holder, bootId: "boot before" })).toBe("alive");
  });

  it("is not had of another file: two mounts of one share have one boot id", async () => {
    world.kill("ada");
    expect(await judge.observe({ ...holder, beatIdentity: "99:99" })).toBe("alive");
    const { disk } = world.ports("neighbour");
    await disk.unlink(layout.beat(holder.id));
    await disk.createFile(layout.beat(holder.id), beat(1), { sync: true });
    judge.forget(holder.id);
    expect(await judge.observe(holder)).toBe("alive");
  });

  it("is not had of a beat that is gone, which the question does not bring back", async () => {
    const { disk } = world.ports("neighbour");
    await disk.unlink(layout.beat(holder.id));
    expect(await judge.observe(holder)).toBe("alive");
    expect(await disk.list(layout.holders)).toEqual([`${holder.id}.json`]);
  });

  it("is not had of a holder that could not lock its beat", async () => {
    world.kill("ada");
    expect(await judge.observe({ ...holder, beatIdentity: "" })).toBe("alive");
  });

  it("is not needed: without OS locks the lease decides", async () => {
    world = new World({ quirks: { osLocks: "none" } });
    const { disk } = world.ports("ada", "machine of ada", 0);
    for (const path of [layout.directory, layout.holders, layout.temps]) await disk.mkdir(path);
    ({ holder } = await HolderSession.begin(world.ports("ada"), layout, { leaseMs, name: "" }));
    expect(holder.beatIdentity).toBe("");
    judge = new LivenessJudge(world.ports("neighbour", "machine of ada"), layout);
    world.kill("ada");
    expect(await judge.observe(holder)).toBe("alive");
    expect(await watch(leaseMs / 4, 4)).toBe("dead");
  });

  it("is not had from a failing disk", async () => {
    world.kill("ada");
    await judge.observe({ ...holder, beatIdentity: "" });
    const isSpoiled = await world.withFault(
      { process: "neighbour", at: "stat", label: "EIO", lasting: false },
      async () => {
        expect(await judge.observe(holder)).toBe("alive");
      },
    );
    expect(isSpoiled).toBe(true);
  });
});

describe("a judge that cannot watch for a lease", () => {
  const staging = (): Staging => ({ ...world.ports("wit"), directory: async () => layout.temps });
  const observeOnce = async (): Promise<string> =>
    await withServerClock(staging(), (clock) => judge.observeOnce(holder, clock));

  it("believes a heartbeat dead that is older than two leases, by the stamps of the server, and was silent for longer than a beat", async () => {
    world.nowMs += (2 - 3 / 8) * leaseMs + 1;
    await judge.observe(holder);
    await watch(leaseMs / 8, 3);
    expect(await observeOnce()).toBe("dead");
  });

  it("believes nothing of a younger one", async () => {
    world.nowMs += (2 - 3 / 8) * leaseMs;
    await judge.observe(holder);
    await watch(leaseMs / 8, 3);
    expect(await observeOnce()).toBe("alive");
  });

  it("believes no stamp before it has seen the silence: the server's clock may have been set ahead", async () => {
    world.nowMs += 100 * leaseMs;
    expect(await observeOnce()).toBe("alive");
    await watch(leaseMs / 8, 2);
    await writeBeat(beat(1));
    world.server.find(layout.beat(holder.id))!.mtimeMs -= 100 * leaseMs;
    expect(await watch(leaseMs / 8, 1)).toBe("alive");
    expect(await observeOnce()).toBe("alive");
  });

  it("asks no clock of any machine", async () => {
    world.machine("machine of wit").wallOffsetMs += 86_400_000;
    expect(await observeOnce()).toBe("alive");
  });

  it("believes nothing when a stamp cannot be had", async () => {
    world.nowMs += 10 * leaseMs;
    await judge.observe(holder);
    await watch(leaseMs / 8, 3);
    expect(await judge.observeOnce(holder, new ServerClock(staging(), "/ground/missing"))).toBe("alive");
    await world.ports("ada").disk.unlink(layout.beat(holder.id));
    expect(await observeOnce()).toBe("alive");
  });

  it.each(["cifs", "smb3", "smbfs"])(
    "believes no stamps of %s, where they may come only with the close",
    async (type) => {
      await prepare({ kind: "network", type, mountOptions: [] });
      world.nowMs += 100 * leaseMs;
      await judge.observe(holder);
      await watch(leaseMs / 8, 3);
      expect(await observeOnce()).toBe("alive");
    },
  );
});
