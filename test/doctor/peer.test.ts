import { describe, expect, test } from "vitest";
import { examine, type DoctorOptions } from "../../src/doctor/doctor.ts";
import { decideRole } from "../../src/doctor/peer/pairing.ts";
import { seeking, type Intent } from "../../src/doctor/peer/presence.ts";
import type { CheckVerdict, DoctorReport } from "../../src/doctor/report.ts";
import { decodeRecord, encodeRecord, type RecordKind } from "../../src/format/record.ts";
import { diskError } from "../../src/ports/disk-error.ts";
import type { Disk } from "../../src/ports/disk.ts";
import type { Ports } from "../../src/ports/ports.ts";
import { folder, Simulation, untouched, withDisk, type SimulationOptions } from "./simulation.ts";

interface Meeting extends SimulationOptions {
  /** What is different for one of the two, "a" or "b". */
  readonly change?: Readonly<Record<string, (ports: Ports, simulation: Simulation) => Ports>>;
  /** Default: one each. */
  readonly machines?: Readonly<Record<string, string>>;
  readonly options?: Readonly<Record<string, DoctorOptions>>;
  /** Before they come. */
  readonly prepare?: (simulation: Simulation) => Promise<void>;
  readonly who?: readonly string[];
}

const room = `${folder}/.holdfast-doctor-peer`;

/** Two that examine the folder at the same time; nothing may be left behind when both are done. */
async function meet(meeting: Meeting): Promise<DoctorReport[]> {
  const { change, machines, options, prepare, who = ["a", "b"] } = meeting;
  const simulation = new Simulation({ ...meeting, quirks: { watch: "hints", ...meeting.quirks } });
  await simulation.furnish();
  await prepare?.(simulation);
  const reports = await Promise.all(
    who.map((name) => {
      const ports = simulation.ports(name, machines?.[name]);
      return examine(change?.[name]?.(ports, simulation) ?? ports, folder, { withPeer: true, ...options?.[name] });
    }),
  );
  expect(simulation.remains()).toEqual(untouched);
  return reports;
}

function verdictsOf(report: DoctorReport | undefined): Record<string, CheckVerdict> {
  const checks = report?.checks.filter(({ id }) => id.startsWith("peer")) ?? [];
  return Object.fromEntries(checks.map(({ id, verdict }) => [id, verdict]));
}

/** What is not good between the two; both must say the same of everything but each other. */
function jointWeaknesses(reports: readonly DoctorReport[]): Record<string, CheckVerdict> {
  const [a, b] = reports.map((report) => {
    const { "peer-own": _own, ...joint } = verdictsOf(report);
    return joint;
  });
  expect(b).toEqual(a);
  expect(new Set(reports.map(({ verdict }) => verdict)).size).toBe(1);
  return Object.fromEntries(Object.entries(a ?? {}).filter(([, verdict]) => verdict !== "good"));
}

const checkOf = (report: DoctorReport | undefined, id: string) => report?.checks.find((check) => check.id === id);

describe("two machines on a clean disk", () => {
  test("find each other, and find everything good", async () => {
    const [a, b] = await meet({});
    for (const report of [a, b]) {
      expect(verdictsOf(report)).toEqual({
        "peer-machines": "good",
        "peer-own": "good",
        "peer-clock": "good",
        "peer-link": "good",
        "peer-create": "good",
        "peer-os-lock": "good",
        "peer-listing": "good",
        "peer-absence": "good",
        "peer-presence": "good",
        "peer-replacement": "good",
      });
      expect(report?.verdict).toBe("ok");
    }
    expect(a?.peer).toEqual({ state: "met", host: "machine-of-b", pid: 100, sameMachine: false });
    expect(b?.peer).toMatchObject({ state: "met", host: "machine-of-a" });
  });

  test("do so whatever the order of their calls is", async () => {
    for (let seed = 1; seed <= 15; seed++) expect(jointWeaknesses(await meet({ seed }))).toEqual({});
  });

  test("come to the same verdict through clients that answer from their caches", async () => {
    for (let seed = 1; seed <= 10; seed++) {
      let calls = 0;
      const reports = await meet({
        seed,
        quirks: { staleListings: true, staleAbsence: true, directoryHandles: true },
        choose: (_process, _call, outcomes) =>
          ++calls % 3 === 0 ? outcomes.find(({ trouble }) => trouble === "stale") : undefined,
      });
      expect(reports.map(({ peer }) => peer?.state)).toEqual(["met", "met"]);
      expect(jointWeaknesses(reports)).toEqual({});
    }
  });

  test("both win names, so that they did contend", async () => {
    const [a] = await meet({});
    const { first = 0, second = 0, names = 0 } = checkOf(a, "peer-link")?.measured ?? {};
    expect(first + second).toBe(names);
    expect(Math.min(first, second)).toBeGreaterThan(0);
  });

  test("are told apart from two processes of one machine, which prove nothing", async () => {
    const reports = await meet({ machines: { a: "one", b: "one" } });
    expect(jointWeaknesses(reports)).toEqual({ "peer-machines": "limited" });
    expect(reports[0]?.peer?.sameMachine).toBe(true);
    expect(checkOf(reports[0], "peer-link")?.verdict).toBe("good");
  });
});

describe("both sides say so when", () => {
  test("OS locks exclude only within a machine, though each alone finds them good", async () => {
    const reports = await meet({ quirks: { osLocks: "per machine" } });
    expect(reports.map((report) => checkOf(report, "os-lock")?.verdict)).toEqual(["good", "good"]);
    expect(jointWeaknesses(reports)).toEqual({ "peer-os-lock": "limited" });
    expect(checkOf(reports[0], "peer-os-lock")?.finding).toMatch(/Both held/);
    expect(reports[0]?.verdict).toBe("limited");
  });

  test("there are no OS locks", async () => {
    const reports = await meet({ quirks: { osLocks: "none" } });
    expect(jointWeaknesses(reports)).toEqual({ "peer-os-lock": "limited" });
    expect(checkOf(reports[0], "peer-os-lock")?.finding).toMatch(/has no OS locks/);
  });

  test("a lock that is free cannot be taken", async () => {
    const never = (ports: Ports): Ports => ({
      ...ports,
      osLock: {
        open: async () => ({
          tryLock: async () => false,
          lock: async () => undefined,
          isIntact: async () => false,
          identity: "",
          unlock: async () => undefined,
          close: async () => undefined,
        }),
      },
    });
    const reports = await meet({ change: { b: never } });
    expect(jointWeaknesses(reports)).toEqual({ "peer-os-lock": "limited" });
    expect(checkOf(reports[0], "peer-os-lock")?.finding).toMatch(/could not be taken/);
  });

  test("links replace what is there", async () => {
    const reports = await meet({ quirks: { linkReplaces: true } });
    expect(jointWeaknesses(reports)).toEqual({ "peer-link": "bad" });
    expect(reports[0]?.verdict).toBe("unusable");
  });

  test("links cannot be made", async () => {
    const reports = await meet({ quirks: { noHardLinks: true } });
    expect(jointWeaknesses(reports)).toEqual({ "peer-link": "bad" });
    expect(checkOf(reports[0], "peer-link")?.finding).toMatch(/60 of 60 .* EPERM/);
  });

  test("exclusive creates replace what is there", async () => {
    expect(jointWeaknesses(await meet({ quirks: { exclusiveCreateReplaces: true } }))).toEqual({
      "peer-create": "bad",
    });
  });

  // As a client does that checks for the name first and links then: alone it looks right.
  test("one of them links over names that the other won", async () => {
    const change = {
      b: (ports: Ports): Ports =>
        withDisk(ports, (disk) => ({
          link: async (from, to) => {
            if (to.includes("peer") && (await disk.canOpen(to))) await disk.unlink(to);
            return disk.link(from, to);
          },
        })),
    };
    const reports = await meet({ change });
    expect(reports.map((report) => checkOf(report, "hard-link")?.verdict)).toEqual(["good", "good"]);
    expect(jointWeaknesses(reports)).toEqual({ "peer-link": "bad" });
  });

  test("neither wins a name", async () => {
    const reports = await meet({ change: { a: refusingName, b: refusingName } });
    expect(jointWeaknesses(reports)).toEqual({ "peer-link": "bad" });
    expect(checkOf(reports[0], "peer-link")?.finding).toMatch(/1 of 60 .* neither won/);
  });

  test("their clocks differ", async () => {
    const reports = await meet({
      prepare: async (simulation) => void (simulation.machine("machine-of-b").wallOffsetMs = 3_600_000),
    });
    expect(jointWeaknesses(reports)).toEqual({ "peer-clock": "limited" });
    expect(checkOf(reports[0], "peer-clock")?.finding).toMatch(/machine-of-b .* 3600 s ahead/);
    expect(checkOf(reports[0], "clock")?.verdict).toBe("good");
    expect(checkOf(reports[1], "clock")?.verdict).toBe("limited");
  });

  test("a name that was absent stays so in a cache", async () => {
    const reports = await meet({
      quirks: { staleAbsence: true },
      choose: (_process, call, outcomes) =>
        call.detail.includes("absent") ? outcomes.find(({ trouble }) => trouble === "stale") : undefined,
    });
    expect(jointWeaknesses(reports)).toEqual({ "peer-absence": "limited" });
    expect(checkOf(reports[0], "peer-absence")?.finding).toMatch(/more than 5 s/);
  });

  // What `nocto` does: an open is answered from what this client remembers.
  test("a file that was removed can still be opened", async () => {
    const reports = await meet({ change: { b: rememberingOpens } });
    expect(jointWeaknesses(reports)).toEqual({ "peer-presence": "bad" });
    expect(reports[0]?.verdict).toBe("unusable");
  });

  test("a file that was replaced is read old", async () => {
    const reports = await meet({ change: { a: rememberingReads(5) } });
    expect(jointWeaknesses(reports)).toEqual({});
    const stale = await meet({ change: { a: rememberingReads(300) } });
    expect(jointWeaknesses(stale)).toEqual({ "peer-replacement": "limited" });
  });

  test("listings are old", async () => {
    const reports = await meet({ change: { a: (ports, simulation) => lateListings(ports, simulation, 4_000) } });
    expect(jointWeaknesses(reports)).toEqual({ "peer-listing": "limited" });
    expect(checkOf(reports[1], "peer-listing")?.measured?.["listingMs"]).toBeGreaterThan(1_500);
  });

  test("one of them is unfit by itself", async () => {
    const broken = (ports: Ports): Ports =>
      withDisk(ports, () => ({ syncDirectory: (path) => Promise.reject(diskError("EINVAL", "sync", path)) }));
    const [a, b] = await meet({ change: { b: broken } });
    expect(verdictsOf(a)["peer-own"]).toBe("bad");
    expect(checkOf(a, "peer-own")?.finding).toMatch(/machine-of-b .* directory-sync/);
    expect(verdictsOf(b)["peer-own"]).toBe("good");
    expect([a?.verdict, b?.verdict]).toEqual(["unusable", "unusable"]);
  });

  test("they run two versions, and examine nothing", async () => {
    const reports = await meet({ change: { a: greetingOf("0.1.1"), b: greetingOf("0.0.9") } });
    expect(jointWeaknesses(reports)).toEqual({ "peer-version": "limited" });
    expect(checkOf(reports[0], "peer-version")?.finding).toMatch(/0\.0\.9/);
    expect(checkOf(reports[1], "peer-version")?.finding).toMatch(/0\.1\.1/);
  });
});

test.each(["retransmit", "lostReply"])("a link whose answer is lost (%s) is judged by the content", async (lost) => {
  const reports = await meet({
    choose: (_process, { operation, detail }, outcomes) =>
      operation === "link" && detail.includes("peer") ? outcomes.find(({ trouble }) => trouble === lost) : undefined,
  });
  expect(jointWeaknesses(reports)).toEqual({});
  expect(checkOf(reports[0], "peer-link")?.measured?.["lostAnswers"]).toBe(60);
});

describe("one that waits for a peer", () => {
  test("says so when none comes", async () => {
    const [report] = await meet({ who: ["a"], options: { a: { timeoutMs: 3_000 } } });
    expect(report?.peer).toEqual({ state: "none came" });
    expect(verdictsOf(report)).toEqual({ peer: "limited" });
    expect(checkOf(report, "peer")?.finding).toBe("No peer came within 3 s.");
  });

  test("does not wait at all when told so", async () => {
    const [report] = await meet({ who: ["a"], options: { a: { timeoutMs: 0 } } });
    expect(report?.peer?.state).toBe("none came");
  });

  test("is not misled by what an aborted run left behind, and takes it away", async () => {
    const prepare = async (simulation: Simulation): Promise<void> => {
      const { disk } = simulation.ports("past");
      const [dead, other] = ["0".repeat(26), "z".repeat(26)];
      await disk.mkdir(room);
      for (const name of [`${dead}.7.seeks.nobody`, `${other}.12.accepts.${dead}`])
        await disk.createFile(`${room}/${name}`, new Uint8Array(), { sync: false });
      await disk.mkdir(`${room}/${dead}-${other}`);
      await disk.mkdir(`${room}/${dead}-${other}/link`);
      await disk.createFile(`${room}/${dead}-${other}/link/name-0`, Buffer.from("first"), { sync: false });
      await disk.createFile(`${room}/${dead}-${other}/first.greeting`, Buffer.from("?"), { sync: false });
    };
    // Sooner than it would take to find out that a leftover is one: nothing waits for it.
    expect(
      jointWeaknesses(await meet({ prepare, options: { a: { timeoutMs: 3_000 }, b: { timeoutMs: 3_000 } } })),
    ).toEqual({});
    const [alone] = await meet({ prepare, who: ["a"], options: { a: { timeoutMs: 1_000 } } });
    expect(alone?.peer?.state).toBe("none came");
  });

  test("is left alone when three come: two are a pair, the third waits in vain", async () => {
    for (let seed = 1; seed <= 10; seed++) {
      const reports = await meet({ seed, who: ["a", "b", "c"], options: { a: brief, b: brief, c: brief } });
      const [paired, alone] = ["met", "none came"].map((state) => reports.filter(({ peer }) => peer?.state === state));
      expect([paired?.length, alone?.length]).toEqual([2, 1]);
      expect(jointWeaknesses(paired ?? [])).toEqual({});
    }
  });

  test("finds one of four, and so do the others", async () => {
    for (let seed = 1; seed <= 5; seed++) {
      const reports = await meet({ seed, who: ["a", "b", "c", "d"] });
      expect(reports.map(({ peer }) => peer?.state)).toEqual(["met", "met", "met", "met"]);
    }
  });

  test("that is called off leaves nothing behind", async () => {
    const reason = new Error("enough");
    const abort = new AbortController();
    const simulation = new Simulation();
    await simulation.furnish();
    const onPeer = (): void => abort.abort(reason);
    const options = { withPeer: true, signal: abort.signal, onPeer };
    await expect(examine(simulation.ports("a"), folder, options)).rejects.toBe(reason);
    expect(simulation.remains()).toEqual(untouched);
  });
});

test("two that lose step do not wait for each other for ever", async () => {
  // One takes the other for a different version and ends; the other begins with the rounds.
  const reports = await meet({ change: { b: greetingOf("0.0.9") } });
  expect(reports.map(({ peer }) => peer?.state)).toEqual(["met", "went away"]);
});

describe("a peer that goes away", () => {
  const leaveAt = (path: string, leave: () => void) => (ports: Ports) =>
    withDisk(ports, (disk) => ({
      createFile: (name, bytes, options) => {
        if (name.includes(path)) leave();
        return disk.createFile(name, bytes, options);
      },
    }));

  // The rounds in which the two depend on each other in different ways.
  for (const step of ["greeting.temp", "link-tried.temp", "lock-first-holds.temp", "sight/", "sight.temp"])
    test(`by a kill before it has made ${step} is noticed, and swept up after`, async () => {
      const simulation = new Simulation({ quirks: { watch: "hints" } });
      await simulation.furnish();
      const dying = leaveAt(step, () => simulation.kill("b"))(simulation.ports("b"));
      void examine(dying, folder, { withPeer: true });
      const startedMs = simulation.nowMs;
      const report = await examine(simulation.ports("a"), folder, { withPeer: true });
      expect(report.peer).toEqual({ state: "went away" });
      expect(simulation.nowMs - startedMs).toBeLessThan(60_000);
      expect(report.verdict).toBe("limited");
      const { [`${folder}/till-3.csv`]: _foreign, ...left } = simulation.remains();
      expect(left).toEqual({});
    });

  test("because it is called off is noticed at once", async () => {
    const simulation = new Simulation({ quirks: { watch: "hints" } });
    await simulation.furnish();
    const reason = new Error("enough");
    const abort = new AbortController();
    const leaving = leaveAt("link-ready.temp", () => abort.abort(reason))(simulation.ports("b"));
    const startedMs = simulation.nowMs;
    const [stayed, left] = await Promise.allSettled([
      examine(simulation.ports("a"), folder, { withPeer: true }),
      examine(leaving, folder, { withPeer: true, signal: abort.signal }),
    ]);
    expect(left).toEqual({ status: "rejected", reason });
    expect(stayed).toMatchObject({ value: { peer: { state: "went away" } } });
    expect(simulation.nowMs - startedMs).toBeLessThan(10_000);
    expect(simulation.remains()).toEqual(untouched);
  });
});

describe("who pairs with whom", () => {
  const to = (state: Intent["state"], whom: string): Intent => ({ state, whom });

  test("is decided by the lower one alone", () => {
    expect(decideRole("b", seeking, [{ id: "a", intent: seeking }])).toEqual(to("accepts", "a"));
    expect(decideRole("a", seeking, [{ id: "b", intent: seeking }])).toEqual(seeking);
    expect(decideRole("a", seeking, [{ id: "b", intent: to("accepts", "a") }])).toEqual(to("takes", "b"));
    expect(decideRole("b", to("accepts", "a"), [{ id: "a", intent: to("takes", "b") }])).toEqual(to("with", "a"));
  });

  test("is not changed while the other makes up its mind", () => {
    const others = [
      { id: "a", intent: seeking },
      { id: "b", intent: to("accepts", "a") },
    ];
    expect(decideRole("c", to("accepts", "b"), others)).toEqual(to("accepts", "b"));
  });

  test("is looked for anew when the other took a third", () => {
    const taken = { id: "a", intent: to("takes", "b") };
    expect(decideRole("c", to("accepts", "a"), [taken])).toEqual(seeking);
    expect(decideRole("c", to("accepts", "a"), [taken, { id: "b", intent: seeking }])).toEqual(to("accepts", "b"));
  });

  test("is no doctor that is only waited for by a third", () => {
    expect(decideRole("a", seeking, [{ id: "c", intent: to("accepts", "b") }])).toEqual(seeking);
  });
});

const brief: DoctorOptions = { timeoutMs: 8_000 };

/** Says EEXIST for a name that is free. */
function refusingName(ports: Ports): Ports {
  return withDisk(ports, (disk) => ({
    link: (from, to) =>
      to.endsWith("link/name-7") ? Promise.reject(diskError("EEXIST", "link", to)) : disk.link(from, to),
  }));
}

function rememberingOpens(ports: Ports): Ports {
  const seen = new Set<string>();
  return withDisk(ports, (disk) => ({
    canOpen: async (path) => {
      if (!seen.has(path) && (await disk.canOpen(path))) seen.add(path);
      return seen.has(path);
    },
  }));
}

/** Answers so many reads of a file with what it was at the first. */
function rememberingReads(times: number): (ports: Ports) => Ports {
  const remembered = new Map<string, { readonly bytes: Uint8Array; left: number }>();
  return (ports) =>
    withDisk(ports, (disk) => ({
      readFile: async (path, bytesMax) => {
        const old = remembered.get(path);
        if (old !== undefined && old.left-- > 0) return old.bytes;
        const bytes = await disk.readFile(path, bytesMax);
        if (path.includes("replaced")) remembered.set(path, { bytes, left: times });
        return bytes;
      },
    }));
}

/** Shows the names of the sight round only so long after they were made. */
function lateListings(ports: Ports, simulation: Simulation, lateMs: number): Ports {
  const firstSeenMs = new Map<string, number>();
  return withDisk(ports, (disk: Disk) => ({
    list: async (path) => {
      const names = await disk.list(path);
      if (!path.endsWith("/sight")) return names;
      for (const name of names) if (!firstSeenMs.has(name)) firstSeenMs.set(name, simulation.nowMs);
      return names.filter((name) => simulation.nowMs - (firstSeenMs.get(name) ?? 0) >= lateMs);
    },
  }));
}

/** Tells the other that it runs this version. */
function greetingOf(version: string): (ports: Ports) => Ports {
  const noteKind: RecordKind<object> = { kind: "doctor-note", decode: (body) => body as object };
  return (ports) =>
    withDisk(ports, (disk) => ({
      createFile: (path, bytes, options) => {
        if (!path.endsWith("greeting.temp")) return disk.createFile(path, bytes, options);
        const greeting = { ...decodeRecord(noteKind, bytes, path), version };
        return disk.createFile(path, encodeRecord(noteKind, greeting), options);
      },
    }));
}
