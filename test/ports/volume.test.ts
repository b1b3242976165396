import { symlinkSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { kindOfType, parseMountinfo, parseMountOutput, volumeAt } from "../../src/ports/node/disk/mount-table.ts";
import { findVolume, volumeOfWindowsPath } from "../../src/ports/node/disk/volume.ts";
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
  it("is a network volume behind a UNC path and unknown behind a drive letter", () => {
    expect(volumeOfWindowsPath("\\\\server\\share\\store").kind).toBe("network");
    expect(volumeOfWindowsPath("C:\\store").kind).toBe("unknown");
  });
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
