import { describe, expect, test } from "vitest";
import { examine, type DoctorOptions } from "../../src/doctor/doctor.ts";
import type { CheckVerdict, DoctorReport, DoctorVerdict } from "../../src/doctor/report.ts";
import { diskError } from "../../src/ports/disk-error.ts";
import type { Disk, Volume } from "../../src/ports/disk.ts";
import type { Ports } from "../../src/ports/ports.ts";
import type { ServerQuirks } from "../../src/testing/sim/server.ts";
import { folder, Simulation, untouched, withDisk } from "./simulation.ts";

interface World {
  readonly quirks?: ServerQuirks;
  readonly volume?: Volume;
  /** What the simulated disk has no quirk for. */
  readonly change?: (ports: Ports) => Ports;
}

/** Hints come, as on a real local disk; all else is as the simulated disk is by itself. */
async function examineWorld({ quirks, volume, change }: World, options?: DoctorOptions): Promise<DoctorReport> {
  const simulation = new Simulation({ quirks: { watch: "hints", ...quirks }, volume });
  await simulation.furnish();
  const ports = simulation.ports("p");
  try {
    return await examine(change?.(ports) ?? ports, folder, options);
  } finally {
    expect(simulation.remains()).toEqual(untouched);
  }
}

const mounted = (type: string, ...mountOptions: string[]): Volume => ({ kind: "network", type, mountOptions });

test("on a clean local disk everything is good", async () => {
  const report = await examineWorld({});
  expect(report.checks.filter(({ verdict }) => verdict !== "good")).toEqual([]);
  expect(report.verdict).toBe("ok");
  expect(report.checks.map(({ id }) => id)).toEqual([
    "location",
    "mount-options",
    "hard-link",
    "exclusive-create",
    "rename",
    "rename-while-open",
    "file-sync",
    "directory-sync",
    "os-lock",
    "case",
    "spelling",
    "stamps",
    "clock",
    "watch",
  ]);
  expect(report).not.toHaveProperty("peer");
});

interface Defect extends World {
  readonly id: string;
  readonly verdict: CheckVerdict;
  readonly finding: RegExp;
}

const defects: Readonly<Record<string, Defect>> = {
  "without hard links": {
    quirks: { noHardLinks: true },
    id: "hard-link",
    verdict: "bad",
    finding: /cannot be made \(EPERM\)/,
  },
  "whose links replace what is there": {
    quirks: { linkReplaces: true },
    id: "hard-link",
    verdict: "bad",
    finding: /replaced the file/,
  },
  "that reports a second link as won": {
    change: afterFirst("link", () => Promise.resolve()),
    id: "hard-link",
    verdict: "bad",
    finding: /reported as won/,
  },
  "whose link shows another file": {
    change: (ports) =>
      withDisk(ports, (disk) => ({ link: (_from, to) => disk.createFile(to, Buffer.from("?"), { sync: false }) })),
    id: "hard-link",
    verdict: "bad",
    finding: /does not show the file/,
  },
  "that refuses a second link by another name": {
    change: afterFirst("link", (_from, to) => Promise.reject(diskError("EACCES", "link", to))),
    id: "hard-link",
    verdict: "bad",
    finding: /EACCES and not with EEXIST/,
  },
  "that creates over what is there": {
    quirks: { exclusiveCreateReplaces: true },
    id: "exclusive-create",
    verdict: "bad",
    finding: /changed its content/,
  },
  "that reports a second create as done": {
    change: (ports) =>
      withDisk(ports, (disk) => ({
        createFile: (path, bytes, options) =>
          path.endsWith("create-name") && Buffer.from(bytes).toString() === "second"
            ? Promise.resolve()
            : disk.createFile(path, bytes, options),
      })),
    id: "exclusive-create",
    verdict: "bad",
    finding: /reported as done/,
  },
  "that does not rename over a file": {
    quirks: { renameRefusesToReplace: true },
    id: "rename",
    verdict: "bad",
    finding: /EEXIST/,
  },
  "whose rename leaves the old content": {
    change: (ports) => withDisk(ports, (disk) => ({ rename: (from) => disk.unlink(from) })),
    id: "rename",
    verdict: "bad",
    finding: /old content/,
  },
  "whose rename is a copy": {
    change: (ports) => withDisk(ports, copyingRename),
    id: "rename",
    verdict: "bad",
    finding: /old name is still there/,
  },
  "that keeps open files from being replaced": {
    quirks: { busyWhileOpen: true },
    id: "rename-while-open",
    verdict: "limited",
    finding: /EBUSY/,
  },
  "that cannot sync files": {
    change: (ports) => withDisk(ports, unsyncedFiles),
    id: "file-sync",
    verdict: "bad",
    finding: /EINVAL/,
  },
  "that cannot sync directories": {
    quirks: { noDirectorySync: true },
    id: "directory-sync",
    verdict: "bad",
    finding: /EINVAL/,
  },
  "without OS locks": { quirks: { osLocks: "none" }, id: "os-lock", verdict: "limited", finding: /no OS locks/ },
  "whose OS locks exclude no process": {
    change: (ports) => withTryLock(ports, () => true),
    id: "os-lock",
    verdict: "limited",
    finding: /Two holders/,
  },
  "whose OS locks cannot be taken": {
    change: (ports) => withTryLock(ports, () => false),
    id: "os-lock",
    verdict: "limited",
    finding: /free OS lock cannot be taken/,
  },
  "whose OS locks stay taken": {
    change: (ports) => withTryLock(ports, (calls) => calls === 1),
    id: "os-lock",
    verdict: "limited",
    finding: /stays taken/,
  },
  "that takes A for a": {
    quirks: { caseInsensitive: true },
    id: "case",
    verdict: "limited",
    finding: /one name/,
  },
  "that takes two spellings of a letter for one": {
    change: (ports) =>
      withDisk(ports, (disk) => ({
        createFile: (path, bytes, options) => disk.createFile(path.normalize("NFC"), bytes, options),
      })),
    id: "spelling",
    verdict: "limited",
    finding: /one name/,
  },
  "that takes only ASCII": {
    change: (ports) =>
      withDisk(ports, (disk) => ({
        createFile: (path, bytes, options) =>
          /^[ -~]*$/.test(path)
            ? disk.createFile(path, bytes, options)
            : Promise.reject(diskError("EILSEQ", "create", path)),
      })),
    id: "spelling",
    verdict: "limited",
    finding: /EILSEQ/,
  },
  "that stamps whole seconds": {
    quirks: { mtimeGranularityMs: 1_000 },
    id: "stamps",
    verdict: "limited",
    finding: /multiples of 1 s/,
  },
  "that stamps every two seconds": {
    quirks: { mtimeGranularityMs: 2_000 },
    id: "stamps",
    verdict: "limited",
    finding: /multiples of 2 s/,
  },
  "whose clock is ahead": {
    quirks: { clockOffsetMs: 90_000 },
    id: "clock",
    verdict: "limited",
    finding: /90 s ahead of/,
  },
  "whose clock is behind": {
    quirks: { clockOffsetMs: -7_200_000 },
    id: "clock",
    verdict: "limited",
    finding: /7200 s behind/,
  },
  "that gives no hints": { quirks: { watch: "silent" }, id: "watch", verdict: "limited", finding: /No hint came/ },
  "in memory": {
    volume: { kind: "local", type: "tmpfs", mountOptions: ["rw"] },
    id: "location",
    verdict: "limited",
    finding: /in the memory/,
  },
  "that is a share": { volume: mounted("ceph"), id: "location", verdict: "limited", finding: /on a share \(ceph\)/ },
  "that may be a share": {
    volume: { kind: "unknown", type: "fuse", mountOptions: [] },
    id: "location",
    verdict: "limited",
    finding: /treated as a share/,
  },
  "that is a share, so that its OS locks say nothing of another machine": {
    volume: mounted("nfs4", "vers=4.2"),
    id: "os-lock",
    verdict: "limited",
    finding: /one machine alone cannot show more/,
  },
  "that is a share, so that no hint comes from another machine": {
    volume: mounted("nfs4", "vers=4.2"),
    id: "watch",
    verdict: "limited",
    finding: /another machine/,
  },
  "that may be a share, so that hints may not come from another machine": {
    volume: { kind: "unknown", type: "fuse", mountOptions: [] },
    id: "watch",
    verdict: "limited",
    finding: /not known/,
  },
};

const overall: Readonly<Record<CheckVerdict, DoctorVerdict>> = { good: "ok", limited: "limited", bad: "unusable" };

describe("a disk", () => {
  for (const [title, { id, verdict, finding, ...world }] of Object.entries(defects)) {
    test(`${title} is ${verdict === "bad" ? "unusable" : "limited"}`, async () => {
      const report = await examineWorld(world);
      const check = report.checks.find((each) => each.id === id);
      expect(check).toMatchObject({ verdict, finding: expect.stringMatching(finding) as string });
      expect(check?.meaning).toMatch(/\.$/);
      expect(report.verdict).toBe(overall[verdict]);
    });
  }

  test("with one defect is good in everything else", async () => {
    for (const { quirks, volume, change, id } of Object.values(defects)) {
      if (volume !== undefined || change !== undefined || quirks === undefined) continue;
      const { checks } = await examineWorld({ quirks });
      expect(checks.filter(({ verdict }) => verdict !== "good").map((check) => check.id)).toEqual([id]);
    }
  });
});

describe("what the doctor says of a mount with", () => {
  const nfs = ["vers=4.2", "hard", "proto=tcp", "local_lock=none"];
  const cifs = ["vers=3.1.1", "cache=strict", "nolease", "soft", "nounix", "actimeo=1", "closetimeo=0"];
  const cases: readonly (readonly [Volume, string, CheckVerdict])[] = [
    [mounted("nfs4", ...nfs), "mount-options", "good"],
    [mounted("nfs4", ...nfs, "noac", "lookupcache=positive", "sync"), "mount-options", "good"],
    [mounted("nfs4", ...nfs, "acregmin=0", "acdirmax=60"), "mount-options", "good"],
    [mounted("nfs4", ...nfs, "nocto"), "mount-option:nocto", "bad"],
    [mounted("nfs4", "vers=4.2", "soft"), "mount-option:soft", "bad"],
    [mounted("nfs4", "vers=4.2", "softerr"), "mount-option:softerr", "bad"],
    [mounted("nfs4", ...nfs, "softreval"), "mount-option:softreval", "bad"],
    [mounted("nfs", "vers=2"), "mount-option:vers", "bad"],
    [mounted("nfs", "vers=3", "hard"), "mount-option:vers", "limited"],
    [mounted("nfs", "hard", "nolock"), "mount-option:nolock", "limited"],
    [mounted("nfs", "hard", "local_lock=all"), "mount-option:local_lock", "limited"],
    [mounted("nfs", "hard", "local_lock=posix"), "mount-option:local_lock", "limited"],
    [mounted("nfs", "hard", "local_lock=flock"), "mount-option:local_lock", "limited"],
    [mounted("nfs", "hard", "proto=udp"), "mount-option:proto", "limited"],
    [mounted("nfs4", ...nfs, "acdirmax=3600"), "mount-option:acdirmax", "limited"],
    [mounted("cifs", ...cifs), "mount-options", "good"],
    [mounted("cifs", ...cifs, "nobrl"), "mount-option:nobrl", "limited"],
    [mounted("cifs", "cache=loose", "nolease", "closetimeo=0"), "mount-option:cache", "bad"],
    [mounted("cifs", "cache=ro", "nolease", "closetimeo=0"), "mount-option:cache", "bad"],
    [mounted("smb3", "cache=singleclient", "nolease", "closetimeo=0"), "mount-option:cache", "bad"],
    [mounted("cifs", "vers=3.1.1", "cache=strict", "nolease", "soft"), "mount-option:closetimeo", "limited"],
    [mounted("cifs", "cache=strict", "nolease", "closetimeo=1"), "mount-option:closetimeo", "limited"],
    [mounted("cifs", "cache=strict", "closetimeo=0"), "mount-option:nolease", "limited"],
    [mounted("cifs", "nolease", "closetimeo=0", "actimeo=600"), "mount-option:actimeo", "limited"],
    [mounted("9p", "trans=virtio", "cache=loose"), "mount-option:cache", "bad"],
    [{ kind: "local", type: "ext4", mountOptions: ["rw", "barrier=0"] }, "mount-option:barrier", "limited"],
    [{ kind: "local", type: "overlay", mountOptions: ["rw", "volatile"] }, "mount-option:volatile", "limited"],
    // The same word means nothing where it is not an option of that file system.
    [{ kind: "local", type: "ext4", mountOptions: ["rw", "soft", "nolock"] }, "mount-options", "good"],
  ];

  for (const [volume, id, verdict] of cases) {
    test(`${volume.type} ${volume.mountOptions.join(",")}: ${verdict}`, async () => {
      const report = await examineWorld({ volume });
      const found = report.checks.filter((check) => check.id.startsWith("mount-option"));
      expect(found.map((check) => [check.id, check.verdict])).toEqual([[id, verdict]]);
      expect(report.verdict === "unusable").toBe(verdict === "bad");
    });
  }
});

describe("an examination", () => {
  const failing = (errno: string, operation: keyof Disk, when: (path: string) => boolean) => (ports: Ports) =>
    withDisk(ports, (disk) => ({
      [operation]: (path: string, ...rest: unknown[]) =>
        when(path)
          ? Promise.reject(diskError(errno, operation, path))
          : (disk[operation] as (...all: unknown[]) => Promise<unknown>).call(disk, path, ...rest),
    }));

  test("goes on when the disk fails in something that Holdfast can do without", async () => {
    const change = failing("EIO", "stat", (path) => path.includes("stamp-"));
    const report = await examineWorld({ change });
    expect(report.checks.find(({ id }) => id === "stamps")).toMatchObject({
      verdict: "limited",
      finding: expect.stringContaining("EIO") as string,
    });
    expect(report.verdict).toBe("limited");
  });

  test("is negative when the disk fails in something that Holdfast cannot do without", async () => {
    const report = await examineWorld({ change: failing("EIO", "readFile", (path) => path.endsWith("link-name")) });
    expect(report.checks.find(({ id }) => id === "hard-link")?.verdict).toBe("bad");
    expect(report.verdict).toBe("unusable");
  });

  test("of a full disk is refused, and leaves nothing behind", async () => {
    const change = failing("ENOSPC", "createFile", (path) => path.endsWith("create-name"));
    await expect(examineWorld({ change })).rejects.toMatchObject({ code: "DISK_FULL" });
  });

  test.each(["EACCES", "EPERM", "EROFS"])("of a folder that cannot be written (%s) is refused", async (errno) => {
    const change = failing(errno, "mkdir", () => true);
    await expect(examineWorld({ change })).rejects.toMatchObject({ code: "NO_PERMISSION", path: folder });
  });

  test("of what is not there, or not a directory, is refused", async () => {
    const simulation = new Simulation();
    await simulation.furnish();
    const ports = simulation.ports("p");
    for (const path of ["/nowhere", `${folder}/till-3.csv`, `${folder}/till-3.csv/below`])
      await expect(examine(ports, path)).rejects.toMatchObject({ code: "INVALID_PATH", path });
  });

  test("that is called off rejects with the reason, and leaves nothing behind", async () => {
    const reason = new Error("enough");
    const abort = new AbortController();
    const change = (ports: Ports): Ports =>
      withDisk(ports, (disk) => ({
        link: (from, to) => {
          abort.abort(reason);
          return disk.link(from, to);
        },
      }));
    await expect(examineWorld({ change }, { signal: abort.signal })).rejects.toBe(reason);
  });

  test("says so when its own directory cannot be removed", async () => {
    const simulation = new Simulation({ quirks: { watch: "hints" } });
    await simulation.furnish();
    const ports = withDisk(simulation.ports("p"), () => ({
      rmdir: (path) => Promise.reject(diskError("EBUSY", "rmdir", path)),
    }));
    const report = await examine(ports, folder);
    expect(report.verdict).toBe("limited");
    expect(report.checks.at(-1)).toMatchObject({ id: "clean-up", verdict: "limited" });
    expect(Object.keys(simulation.remains()).join()).toMatch(/\.holdfast-doctor-[0-9a-z]{26}/);
  });

  test("removes its directory though something holds it for a moment", async () => {
    let refusals = 0;
    const change = (ports: Ports): Ports =>
      withDisk(ports, (disk) => ({
        rmdir: (path) => (++refusals <= 5 ? Promise.reject(diskError("EBUSY", "rmdir", path)) : disk.rmdir(path)),
      }));
    expect((await examineWorld({ change })).verdict).toBe("ok");
  });
});

/** The first call of an operation goes to the disk, later ones to `later`. */
function afterFirst(operation: "link", later: Disk["link"]): (ports: Ports) => Ports {
  let calls = 0;
  return (ports) =>
    withDisk(ports, (disk) => ({
      [operation]: (from: string, to: string) => (calls++ === 0 ? disk : { link: later }).link(from, to),
    }));
}

function copyingRename(disk: Disk): Partial<Disk> {
  return {
    rename: async (from, to) => {
      const bytes = await disk.readFile(from, 1_000);
      await disk.unlink(to);
      await disk.createFile(to, bytes, { sync: false });
    },
  };
}

function unsyncedFiles(disk: Disk): Partial<Disk> {
  return {
    open: async (path, mode) => {
      const file = await disk.open(path, mode);
      return {
        read: (offset, length) => file.read(offset, length),
        write: (offset, bytes) => file.write(offset, bytes),
        stat: () => file.stat(),
        close: () => file.close(),
        sync: () => Promise.reject(diskError("EINVAL", "sync", path)),
      };
    },
  };
}

function withTryLock(ports: Ports, tryLock: (calls: number) => boolean): Ports {
  let calls = 0;
  return {
    ...ports,
    osLock: {
      open: async (path) => {
        const lock = await ports.osLock.open(path);
        return {
          tryLock: async () => tryLock(++calls),
          lock: (options) => lock.lock(options),
          isIntact: () => lock.isIntact(),
          identity: "",
          unlock: () => lock.unlock(),
          close: () => lock.close(),
        };
      },
    },
  };
}
