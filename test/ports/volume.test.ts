import { symlinkSync } from "node:fs";
import { join } from "node:path";
import { afterEach, describe, expect, it, vi } from "vitest";
import type { Volume } from "../../src/ports/disk.ts";
import { kindOfType, parseMountinfo, parseMountOutput, volumeAt } from "../../src/ports/node/disk/mount-table.ts";
import { findVolume } from "../../src/ports/node/disk/volume.ts";
import { findOnWindows, type DriveQuestions } from "../../src/ports/node/windows/drive-volume.ts";
import { makeScratch } from "../sites/scratch.ts";

const mountinfo = `22 27 0:21 / /proc rw,relatime - proc proc rw
27 1 254:0 / / rw,relatime - ext4 /dev/vda rw,discard
40 27 0:40 / /mnt rw,relatime shared:1 master:2 - nfs4 server:/export rw,vers=4.2,hard,local_lock=none
41 40 0:41 / /mnt/usb rw,nosuid - vfat /dev/sdb1 rw,fmask=0022
42 40 0:42 / /mnt/with\\040space\\134and\\011tab rw - cifs //server/share rw,vers=3.1.1,nobrl
43 27 0:43 / /auto rw - autofs systemd-1 rw
44 43 0:44 / /auto rw - nfs server:/home rw,nolock
45 27 0:45 / /fuse rw propagate_from:3 - fuse.sshfs me@host: rw,user_id=0
46 27 0:46 / /odd rw - fuse.something odd rw
`;
const volume = (path: string): unknown => volumeAt(path, parseMountinfo(mountinfo));

describe("the volume of a path on Linux", () => {
  it("is that of the last mount on the way to it", () => {
    expect(volume("/home/me")).toMatchObject({ kind: "local", type: "ext4" });
    expect(volume("/mnt/store")).toMatchObject({ kind: "network", type: "nfs4" });
    expect(volume("/mnt")).toMatchObject({ type: "nfs4" });
    expect(volume("/mnt/usb/store")).toMatchObject({ kind: "local", type: "vfat" });
  });

  it("is not the mount whose name only begins the same", () => {
    expect(volume("/mnt2/store")).toMatchObject({ type: "ext4" });
    expect(volume("/mnt/usb2")).toMatchObject({ type: "nfs4" });
  });

  it("is found behind escaped spaces, tabs and backslashes", () => {
    expect(volume("/mnt/with space\\and\ttab/store")).toMatchObject({ kind: "network", type: "cifs" });
  });

  it("is the later of two mounts on one point", () => {
    expect(volume("/auto/me")).toMatchObject({ kind: "network", type: "nfs" });
  });

  it("is not one that a later mount above it hides", () => {
    // A share was mounted, and then another thing over the directory that it is in; to writers on
    // it a wrong "local" would lose writes.
    const hidden = `27 1 254:0 / / rw - ext4 /dev/vda rw
50 27 0:50 / /data/share rw - ext4 /dev/vdb rw
51 27 0:51 / /data rw - nfs4 server:/data rw`;
    const at = (path: string, table = hidden): unknown => volumeAt(path, parseMountinfo(table));
    expect(at("/data/share/store")).toMatchObject({ kind: "network", type: "nfs4" });
    expect(at("/data/share/store", hidden.split("\n").reverse().join("\n"))).toMatchObject({ type: "nfs4" });
    expect(at("/data/share/store", `${hidden}\n52 51 0:52 / /data/share rw - xfs /dev/vdc rw`)).toMatchObject({
      type: "xfs",
    });
    // Nor is the order of the table: a mount that was moved keeps its line.
    const moved =
      "27 1 254:0 / / rw - ext4 /dev/vda rw\n60 61 0:60 / /a/b rw - tmpfs none rw\n61 27 0:61 / /a rw - nfs4 s:/ rw";
    expect(at("/a/b/store", moved)).toMatchObject({ type: "tmpfs" });
  });

  it("is found in a chroot, where the root has no line or a parent that has none", () => {
    const table = "70 5 0:70 / /srv rw - nfs4 server:/ rw\n71 70 0:71 / /srv/x rw - ext4 /dev/vdb rw";
    expect(volumeAt("/srv/x/store", parseMountinfo(table))).toMatchObject({ type: "ext4" });
    expect(volumeAt("/home", parseMountinfo(table))).toBe(undefined);
    expect(
      volumeAt("/", parseMountinfo("1 1 0:1 / / rw - rootfs none rw\n2 1 0:2 / / rw - ext4 /dev/vda rw")),
    ).toMatchObject({
      type: "ext4",
    });
  });

  it("lists the options of the mount and of the file system, each once", () => {
    expect(volume("/mnt/store")).toMatchObject({
      mountOptions: ["rw", "relatime", "vers=4.2", "hard", "local_lock=none"],
    });
  });

  it("is unknown for a FUSE file system that is not known to be remote", () => {
    expect(volume("/fuse/a")).toMatchObject({ kind: "network" });
    expect(volume("/odd/a")).toMatchObject({ kind: "unknown", type: "fuse.something" });
  });

  it("is undefined when the table is empty or is no table", () => {
    expect(volumeAt("/a", parseMountinfo(""))).toBe(undefined);
    expect(volumeAt("/a", parseMountinfo("nonsense\n - \n"))).toBe(undefined);
  });

  it.runIf(process.platform === "linux")("is asked of the running kernel", async () => {
    expect(await findVolume("/proc/self")).toMatchObject({ kind: "unknown", type: "proc" });
    expect((await findVolume("/")).type).not.toBe("unknown");
  });

  it.runIf(process.platform === "linux")("is the volume that a symbolic link leads to", async () => {
    const link = join(makeScratch(), "link");
    symlinkSync("/proc", link);
    expect(await findVolume(join(link, "self"))).toMatchObject({ type: "proc" });
  });

  it("is that of the nearest directory above when the path does not exist", async () => {
    const scratch = makeScratch();
    expect(await findVolume(join(scratch, "not", "there"))).toEqual(await findVolume(scratch));
  });
});

describe("the volume of a path on macOS", () => {
  const mounts = parseMountOutput(`/dev/disk3s1s1 on / (apfs, sealed, local, read-only, journaled)
devfs on /dev (devfs, local, nobrowse)
//me@server/my%20share on /Volumes/my share (smbfs, nodev, nosuid, mounted by me)
`);
  it("is read from the output of mount", () => {
    expect(volumeAt("/Users/me", mounts)).toEqual({
      kind: "local",
      type: "apfs",
      mountOptions: ["sealed", "local", "read-only", "journaled"],
    });
    expect(volumeAt("/Volumes/my share/store", mounts)).toMatchObject({ kind: "network", type: "smbfs" });
  });
});

describe("the volume of a path on Windows", () => {
  const ntfs = `Volume Name : \r
Volume Serial Number : 0x8a1c2b3d\r
Max Component Length : 255\r
File System Name : NTFS\r
Is ReadWrite\r
`;
  interface Machine {
    /** What fsutil prints about the file system of a drive. */
    readonly drives?: Readonly<Record<string, string>>;
    /** What fsutil prints about the kind of a drive. */
    readonly kinds?: Readonly<Record<string, string>>;
    readonly powershell?: string;
    readonly serials?: Readonly<Record<string, bigint>>;
  }
  function questions({ drives = {}, kinds = {}, powershell, serials = {} }: Machine): {
    readonly asked: string[];
    readonly questions: DriveQuestions;
  } {
    const asked: string[] = [];
    const run = async (program: string, args: readonly string[]): Promise<string> => {
      asked.push([program, ...args.slice(0, 3)].join(" "));
      const [, question = "", drive = ""] = args;
      const text = program === "fsutil.exe" ? { volumeinfo: drives, drivetype: kinds }[question]?.[drive] : powershell;
      if (text === undefined) throw new Error("refused");
      return text;
    };
    const serialOf = async (path: string): Promise<bigint> => serials[path] ?? 1n;
    return { asked, questions: { run, serialOf, systemDrive: "C:" } };
  }
  const find = async (real: string, machine: Machine): Promise<Volume> =>
    await findOnWindows(real, questions(machine).questions);

  it("is a network volume behind a UNC path, to which a mapped drive resolves", async () => {
    expect(await find("\\\\server\\share\\store", {})).toMatchObject({ kind: "network", type: "unc" });
  });

  it("is local on the drive of Windows with NTFS, in any language and spelling", async () => {
    const german = ntfs.replace("File System Name", "Dateisystemname").replace("Volume Name", "Volumename");
    for (const text of [ntfs, german, ntfs.replace("NTFS", "ReFS")])
      expect(await find("c:\\store", { drives: { "C:\\": text } })).toMatchObject({ kind: "local" });
  });

  it("is local on another fixed drive, and unknown on one that can be removed", async () => {
    const drives = { "D:\\": ntfs };
    const fixed = { "C:": "C: - Lokaler Datenträger\r\n", "D:": "D: - Lokaler Datenträger\r\n" };
    expect(await find("D:\\store", { drives, kinds: fixed })).toMatchObject({ kind: "local", type: "ntfs" });
    const removable = { ...fixed, "D:": "D: - Wechseldatenträger\r\n" };
    expect(await find("D:\\store", { drives, kinds: removable })).toMatchObject({ kind: "unknown", type: "ntfs" });
  });

  it.each(["FAT32", "exFAT", "CSVFS", "FUSE-sshfs", "UDF"])("is unknown with %s", async (type) => {
    expect((await find("C:\\store", { drives: { "C:\\": ntfs.replace("NTFS", type) } })).kind).toBe("unknown");
  });

  it("is not judged by the name that someone gave to the volume", async () => {
    const named = ntfs.replace(": NTFS", ": FAT32").replace("Volume Name : ", "Volume Name : NTFS");
    expect((await find("C:\\store", { drives: { "C:\\": named } })).kind).toBe("unknown");
  });

  it("is unknown where a volume is mounted on a folder, as a shared volume of a cluster is", async () => {
    const real = "C:\\ClusterStorage\\Volume1\\store";
    expect((await find(real, { drives: { "C:\\": ntfs }, serials: { [real]: 2n } })).kind).toBe("unknown");
  });

  it("is asked of PowerShell where fsutil is refused, and unknown where both are", async () => {
    expect(await find("C:\\store", { powershell: "Fixed NTFS\r\n" })).toMatchObject({ kind: "local", type: "ntfs" });
    for (const powershell of ["Network NTFS\r\n", "Removable NTFS\r\n", "Fixed exFAT\r\n", "", undefined])
      expect((await find("C:\\store", powershell === undefined ? {} : { powershell })).kind).toBe("unknown");
  });

  it("is unknown without a drive letter", async () => {
    expect((await find("Volume{0a1b}\\store", { drives: { "C:\\": ntfs } })).kind).toBe("unknown");
  });

  it("is asked of Windows once for each drive of a process", async () => {
    const { asked, questions: same } = questions({ drives: { "C:\\": ntfs } });
    await Promise.all([findOnWindows("C:\\a", same), findOnWindows("C:\\b", same)]);
    await findOnWindows("c:\\c", same);
    expect(asked).toEqual(["fsutil.exe fsinfo volumeinfo C:\\"]);
  });
});

describe("HOLDFAST_LOCAL", () => {
  afterEach(() => vi.unstubAllEnvs());

  it.runIf(process.platform === "linux")(
    "makes an unknown volume local for the folders that it names, and for no others",
    async () => {
      for (const [folders, kind] of [
        ["/srv:/proc", "local"],
        ["/proc/self", "local"],
        ["/proc/self/task", "unknown"],
        ["/pro", "unknown"],
        ["", "unknown"],
      ] as const) {
        vi.stubEnv("HOLDFAST_LOCAL", folders);
        expect((await findVolume("/proc/self")).kind).toBe(kind);
      }
    },
  );
});

describe("the kind of a type", () => {
  it.each(["ext4", "xfs", "btrfs", "tmpfs", "overlay", "zfs", "f2fs", "ntfs3", "apfs", "vfat"])("%s is local", (type) =>
    expect(kindOfType(type)).toBe("local"),
  );
  it.each([
    "nfs",
    "nfs4",
    "cifs",
    "smb3",
    "smbfs",
    "9p",
    "fuse.sshfs",
    "glusterfs",
    "ceph",
    "afs",
    "virtiofs",
    "ocfs2",
  ])("%s is network", (type) => expect(kindOfType(type)).toBe("network"));
  it.each(["fuse", "fuseblk", "fuse.mergerfs", "autofs", "ecryptfs", "", "EXT4"])("%s is unknown", (type) =>
    expect(kindOfType(type)).toBe("unknown"),
  );
});
